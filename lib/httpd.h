/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_HTTPD_H
#define ASB_HTTPD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "compiler.h"
#include "loop.h"

/*
 * HTTP/1.1 servers inside a loop: libmicrohttpd in its external-epoll form, the framing checks that
 * it lacks (docs/security-model.md), a route table, and answers that may come later. Everything
 * that speaks HTTP to others in this project goes through here.
 */
struct cJSON;
struct httpd;	  /* a listening server */
struct httpd_req; /* one request; valid until its on_end, or for plain replies until the reply call
		     returns */

enum httpd_body {
	HTTPD_BODY_NONE,   /* a body is read and dropped, up to 64 KiB */
	HTTPD_BODY_BUFFER, /* collected up to body_cap before the handler runs; 413 above */
	HTTPD_BODY_STREAM, /* the handler runs at the end of the headers and sets a sink */
};

struct httpd_route {
	/* "GET"; HEAD is answered by GET routes only where flags say so. Here, not pointed to: a
	 * pointer in a constant costs 32 bytes of a position-independent program. */
	char method[8];
	const char
		*pattern; /* "/v1/execs/{}/output": "{}" is one path segment, see httpd_segment */
	enum httpd_body body;
	size_t body_cap; /* bytes, for BUFFER and as a limit of STREAM (0 = none) */
	void (*fn)(struct httpd_req *r);
	unsigned flags; /* enum httpd_route_flags */
};

enum httpd_route_flags {
	HTTPD_OPEN = 1 << 0, /* no authentication wanted */
	HTTPD_HEAD = 1 << 1, /* the GET handler serves HEAD as well */
};

struct httpd_config {
	const char *name; /* for log lines */
	int listen_fd;	  /* owned by the server from httpd_start on, also when it fails */
	const struct httpd_route *routes; /* borrowed, terminated by pattern == NULL */
	/* Borrowed; serves every method and target instead of ROUTES, which are not looked at; the target is neither
	 * decoded nor checked then (httpd_target). NULL = none */
	const struct httpd_route *any;
	size_t pool;	    /* bytes for head and answer's head of a connection; 0 = 32 KiB */
	unsigned max_conns; /* above it connections wait in the listener's backlog */
	unsigned idle_s;    /* keep-alive and stalled-client limit, seconds */
	/* Called when the headers are in, before any body byte is read. NULL or true: go on. False:
	 * it has replied. */
	bool (*admit)(struct httpd_req *r, const struct httpd_route *route);
	void *arg; /* httpd_server_arg */
};

int httpd_start(struct loop *l, const struct httpd_config *c, struct httpd **ret) MUST_CHECK;
void httpd_stop(struct httpd *h); /* closes the listener and every connection; runs the on_end of
				     each request */
unsigned httpd_connections(const struct httpd *h);

/* TCP listener on PORT of every IPv4 (and, when there, IPv6) address, CLOEXEC and non-blocking;
 * PORT 0 picks one. */
int httpd_listen_tcp(const char *addr, uint16_t port, int *ret_fd) MUST_CHECK;
/* Unix stream listener at PATH (unlinked first) with MODE; a PATH that starts with '@' is abstract.
 */
int httpd_listen_unix(const char *path, mode_t mode, int *ret_fd) MUST_CHECK;

/* --- what a handler reads --- */
void *httpd_server_arg(const struct httpd_req *r);
const char *httpd_method(const struct httpd_req *r);
const char *httpd_path(const struct httpd_req *r); /* decoded once; no NUL inside */
const char *httpd_segment(const struct httpd_req *r,
			  unsigned i); /* i-th "{}", decoded; NULL when absent */
const char *httpd_query(const struct httpd_req *r,
			const char *name); /* decoded; NULL when absent, "" when empty */
const char *httpd_header(const struct httpd_req *r,
			 const char *name); /* case-insensitive; NULL when absent */
const char *httpd_body_data(const struct httpd_req *r,
			    size_t *ret_len);		 /* BUFFER routes; NUL-terminated */
int64_t httpd_content_length(const struct httpd_req *r); /* -1 when chunked or absent */

/* --- plain answers, at once or later (a handler that returns without one has promised to answer) --- */
void httpd_reply(struct httpd_req *r, int status, const char *content_type, const void *p,
		 size_t n);
/* Takes ownership of J (NULL stands for an allocation failure: 500). */
void httpd_reply_json(struct httpd_req *r, int status, struct cJSON *j);
/* {"detail": "<message>"} */
void httpd_reply_error(struct httpd_req *r, int status, const char *fmt, ...) PRINTF(3, 4);

/* LENGTH bytes of the regular file FD from OFFSET. FD is owned from here on. A file that becomes shorter meanwhile cuts the
 * connection, so that the client sees an incomplete answer. */
void httpd_reply_file(struct httpd_req *r, int status, const char *content_type, int fd,
		      uint64_t offset, uint64_t length);

/* A header for the answer that follows. Values with control bytes are refused (-EINVAL). */
int httpd_add_header(struct httpd_req *r, const char *name, const char *value) MUST_CHECK;

/*
 * FN runs exactly once, when the answer has been sent, the client has gone, or the server stops; R
 * is invalid afterwards. For handlers that answer later or stream. A client that goes away while
 * nothing is being sent to it is noticed at the next byte sent.
 */
void httpd_on_end(struct httpd_req *r, void (*fn)(void *arg), void *arg);
/* Runs that FN now, so that somebody else can take the request over. */
void httpd_end_now(struct httpd_req *r);

/*
 * FN runs once, when the client has closed its sending side while its whole request waits for an answer, or a streamed
 * answer for httpd_wake: it may have gone, or it only reads from here on. Sending something tells. A connection that is
 * broken altogether ends by itself once it is answered.
 */
void httpd_on_hup(struct httpd_req *r, void (*fn)(void *arg), void *arg);

/* For this request only: seconds without progress after which the connection is cut, instead of
 * idle_s. */
void httpd_set_timeout(struct httpd_req *r, unsigned seconds);

/* --- streamed answers --- */
enum { HTTPD_PULL_LATER = 0, HTTPD_PULL_END = -1, HTTPD_PULL_ABORT = -2 };

/*
 * Starts an answer whose bytes PULL gives: > 0 bytes written to P, HTTPD_PULL_LATER (then
 * httpd_wake when there is more), HTTPD_PULL_END, or HTTPD_PULL_ABORT (the connection is cut so
 * that the client sees an incomplete answer). LENGTH is the Content-Length, -1 for chunked.
 */
void httpd_reply_stream(struct httpd_req *r, int status, const char *content_type, int64_t length,
			ssize_t (*pull)(void *arg, char *p, size_t max), void *arg);
void httpd_wake(struct httpd_req
			*r); /* from outside PULL and SINK: asks again; harmless when not waiting */

/* --- streamed bodies --- */
/*
 * For STREAM routes, set by the handler before it returns. SINK takes up to N bytes and returns how
 * many; fewer than N means "no more now", and httpd_wake asks again. N == 0 means that the body is
 * complete: the sink must answer then or later. A sink may answer early; the rest of the body is
 * then dropped and the connection closed. A body cut short by the client never gives N == 0: only
 * on_end tells.
 */
void httpd_set_sink(struct httpd_req *r, ssize_t (*sink)(void *arg, const char *p, size_t n),
		    void *arg);

/* After httpd_set_sink: the sink takes all that it is given, or answers. A large body is then read in large pieces, and the
 * connection ends with the answer. */
void httpd_in_bulk(struct httpd_req *r);

/* After httpd_set_sink: a streamed answer may begin before the body has ended (else it is a 500), and both go on at the same time. The
 * connection ends with it, and on_end runs then, from the loop, whether or not the body has ended. */
void httpd_in_duplex(struct httpd_req *r);

/* --- another protocol on the connection (RFC 9110 §7.8); ws.h has WebSocket on top of it --- */
/*
 * Answers 101 with "Upgrade: PROTOCOL" and the headers added before. When that has been sent, FN gets
 * the socket (non-blocking; borrowed until httpd_upgrade_done) and the N bytes that the client sent
 * behind its head (valid during the call). From then on the connection has no deadline of the
 * server's. For routes without a body. on_end runs after httpd_upgrade_done, and without FN before it
 * when the client has gone or the server stops: FD must be in no loop any more when it returns.
 */
void httpd_reply_upgrade(struct httpd_req *r, const char *protocol,
			 void (*fn)(void *arg, int fd, const char *p, size_t n), void *arg);
void httpd_upgrade_done(struct httpd_req *r); /* the socket is closed soon, from the loop */
bool httpd_is_http11(const struct httpd_req *r);

/* --- for those that hand requests on (httpd_proxy.c) --- */
const char *httpd_target(const struct httpd_req *r); /* as it was sent, not decoded */
/* Calls FN for each header field, in order; non-zero stops and is returned. */
int httpd_each_header(struct httpd_req *r,
		      int (*fn)(void *arg, const char *name, const char *value), void *arg);
/*
 * FN adds headers to the streamed answer or the 101 that is given afterwards, any number, by httpd_put_header; it runs when that
 * begins to be sent. False from httpd_put_header: the library refuses this one (a line break), or has no memory.
 */
struct MHD_Response;
void httpd_on_headers(struct httpd_req *r, void (*fn)(void *arg, struct MHD_Response *m),
		      void *arg);
bool httpd_put_header(struct MHD_Response *m, const char *name, const char *value);
/* Ends the connection at once so that the client sees a reset, whatever was under way. on_end runs from the loop. */
void httpd_reset(struct httpd_req *r);

#endif
