/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_FETCH_H
#define ASB_AWS_FETCH_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * One HTTP exchange at a time, blocking: libcurl in a loop of its own (host/net/). Connections are kept and used again. TLS
 * verifies against the bundle that was given. Redirects are never followed: a signed request is for one host.
 */
struct fetch;

struct fetch_request { /* all borrowed */
	const char *method;
	const char *url;	    /* http:// or https://, encoded; sent as it is */
	const char *const *headers; /* "Name: value", NULL-terminated; NULL = none */
	const void *body;	    /* NULL = none */
	size_t body_len;
	int64_t connect_ns, limit_ns; /* for the connection; for the whole exchange */
	bool direct;		      /* no proxy: what is on this machine or its link */
};

#define FETCH_BODY_MAX	  (16U << 20)
#define FETCH_CONNECT_NS  (5LL * 1000000000)
#define FETCH_LIMIT_NS	  (60LL * 1000000000)
#define FETCH_HEADERS_MAX 16

struct fetch_reply { /* fetch_reply_done */
	int status;
	char request_id[80];  /* x-amzn-requestid, x-amz-request-id; "" = none */
	char error_type[160]; /* x-amzn-errortype as it came */
	char etag[128];	      /* as it came, with its quotes; "" = none, or too long */
	int64_t date_s;	      /* Date, Unix time; 0 = none */
	int retry_after_s;    /* Retry-After in seconds, -1 = none */
	struct buf body;
};

/* CA_BUNDLE (borrowed; NULL = the system's) is read when the first https URL is. CANCEL: see struct progress. */
int fetch_open(const char *ca_bundle, struct fetch **ret, struct err *e) MUST_CHECK;
void fetch_free(struct fetch *f);					 /* NULL is fine */
void fetch_cancel(struct fetch *f, const volatile sig_atomic_t *cancel); /* NULL = never */

/*
 * 0 when there is a whole answer, of whatever status. Else -ETIMEDOUT, -ECONNREFUSED (no connection came about),
 * -ECONNRESET (it was cut), -EPROTO (TLS: the certificate or the protocol), -EINTR, -EMSGSIZE (the body is over
 * FETCH_BODY_MAX), with a message that names the host. RET is to be released in any case.
 */
int fetch_do(struct fetch *f, const struct fetch_request *q, struct fetch_reply *ret, struct err *e)
	MUST_CHECK;
void fetch_reply_done(struct fetch_reply *r);

/* Waits for NS, or less when cancelled: 0, -EINTR. */
int fetch_sleep(struct fetch *f, int64_t ns) MUST_CHECK;

#endif
