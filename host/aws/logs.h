/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_LOGS_H
#define ASB_AWS_LOGS_H

#include <stdint.h>

#include "host/aws/call.h"
#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * Reading CloudWatch Logs (protocol json 1.1, Logs_20140328). MicroVMs of an image write to the group LOGS_GROUP NAME, each to the stream
 * "YYYY/MM/DD[VERSION]ID" with the UTC day of its start; so do builds, whose container build is version "0.0".
 */
#define LOGS_GROUP "/aws/lambda-microvms/"

struct logs_query { /* borrowed */
	const char *group;
	const char
		*stream;  /* its name; for logs_search the beginning of names, NULL = all streams */
	int64_t since_ms; /* Unix time; 0 = all there is */
};

struct logs_event {	     /* borrowed, for the time of the call */
	const char *stream;  /* "" when it is the query's */
	const char *message; /* UTF-8, from the guest; may have line breaks */
	int64_t time_ms;     /* Unix time */
};
/* Non-zero stops, and is returned. */
typedef int logs_fn(void *arg, const struct logs_event *ev);

/*
 * The events of one stream from its beginning, or behind what TOKEN tells, to its end as it is now. TOKEN is set up by the caller with
 * LOGS_TOKEN_MAX; the next call with it goes on where this one has ended: that is how a stream is followed. -ENOENT + ERR_NOT_FOUND when there
 * is no such group or stream (yet), -EACCES + ERR_DENIED when it may not be read. When FN stops it, TOKEN tells the page in which that was.
 */
int logs_stream(struct aws *a, const struct logs_query *q, struct buf *token, logs_fn *fn,
		void *arg, struct err *e) MUST_CHECK;
#define LOGS_TOKEN_MAX 4096

/*
 * The last N events of one stream, or fewer when there are no more (of very many: what LOGS_BACK_MAX pages hold), the oldest of them first;
 * one when N is 0. TOKEN is empty; then as above, for what comes behind them.
 */
int logs_last(struct aws *a, const struct logs_query *q, uint64_t n, struct buf *token, logs_fn *fn,
	      void *arg, struct err *e) MUST_CHECK;
#define LOGS_BACK_MAX	 64
#define LOGS_PAGE_EVENTS 10000 /* AWS's most */

/* The events of several streams, the oldest first. -ENOENT as above. */
int logs_search(struct aws *a, const struct logs_query *q, logs_fn *fn, void *arg, struct err *e)
	MUST_CHECK;
#define LOGS_PAGES_MAX 1000 /* of one call: each has up to 10000 events and 1 MB; ERR_TOO_BIG */

#endif
