/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AGENT_HTTP_H
#define ASB_AGENT_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/loop.h"

/*
 * HTTP/1.1 requests to the agent in a sandbox, inside a loop: over streams that the backend opens, or along its route (TLS).
 * Connections are kept and used again. Several calls may be under way at once, each then on a connection of its own.
 */
struct backend;
struct http;
struct http_call;

#define HTTP_CONNECT_NS (5LL * 1000000000) /* at most; a connect blocks the loop */
/* Most bytes kept of an answer's body: 256 commands of which the agent tells 4 KiB, all of them escaped. */
#define HTTP_REPLY_MAX	(8U << 20)

struct http_spec {
	const char *method;
	const char *path; /* with its query, encoded */
	const void *body; /* borrowed until the end; NULL = none */
	size_t body_len;
	const char *type; /* of the body; NULL = bytes */
	/*
	 * A body that is made while it is sent (chunked), instead of BODY: up to N bytes into P; > 0, 0 at
	 * its end, -EAGAIN: not now, ask again after http_resume; another negative errno ends the call
	 * with that error. No function of http may be called here.
	 */
	ssize_t (*read)(void *arg, void *p, size_t n);
	int64_t limit_ns; /* for the whole call; 0 = none */
	/* On a connection of its own: libcurl silently sends a request again whose kept connection
	 * turns out to be dead, which not every request stands. */
	bool once;
	/*
	 * The body of a 200 answer as it comes, instead of being kept. Returns 0, or -EAGAIN: not
	 * now, give the same bytes again after http_resume; anything else ends the call with that
	 * error. No function of http may be called here.
	 */
	int (*data)(void *arg, const void *p, size_t n);
	/* That of a 200 or 201 answer with this Content-Type alone; others are kept. NULL = any 200. */
	const char *data_type;
	/*
	 * The end. STATUS is the answer's, and BODY what was kept of it; or STATUS is 0 and E tells
	 * why there is no (complete) answer. CALL is freed afterwards.
	 */
	void (*done)(void *arg, int status, const struct buf *body, const struct err *e);
	void *arg;
};

/* To the agent of sandbox ID, both borrowed. A route is asked for here, which may take a call of the platform. */
int http_open(struct loop *l, const struct backend *b, const char *id, struct http **ret,
	      struct err *e) MUST_CHECK;
void http_free(struct http *h); /* ends all calls without a word */

int http_start(struct http *h, const struct http_spec *s, struct http_call **ret, struct err *e)
	MUST_CHECK;
void http_cancel(struct http_call *c); /* done is not called; NULL is fine */
void http_resume(struct http_call *c);

#endif
