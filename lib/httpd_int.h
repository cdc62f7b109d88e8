/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_HTTPD_INT_H
#define ASB_HTTPD_INT_H

#include <microhttpd.h>

#include "buf.h"
#include "httpd.h"

/* What the files of the server share: httpd.c (libmicrohttpd), httpd_head.c (checks, target),
 * httpd_reply.c (answers), httpd_bulk.c (large bodies), httpd_duplex.c (both directions at once), httpd_upgrade.c (101),
 * httpd_proxy.c. */

#define HTTPD_HEAD_MAX	  (16U << 10) /* bytes of target and header fields together */
#define HTTPD_FIELDS_MAX  64
#define HTTPD_TARGET_MAX  (8U << 10)
#define HTTPD_SEGS_MAX	  8  /* "{}" in one pattern */
#define HTTPD_PARAMS_MAX  16 /* of a query */
#define HTTPD_HEADERS_MAX 12 /* added to one answer */
#define HTTPD_DROP_MAX	  (64U << 10)

enum httpd_reply_state {
	HTTPD_REPLY_NONE,
	HTTPD_REPLY_READY,   /* plain bytes, not yet given to the library */
	HTTPD_REPLY_STREAM,  /* pulled, not yet given to the library */
	HTTPD_REPLY_FILE,    /* a piece of a file, not yet given to the library */
	HTTPD_REPLY_UPGRADE, /* 101, not yet given to the library */
	HTTPD_REPLY_QUEUED,  /* the library has it */
	HTTPD_REPLY_EARLY,   /* sent past the library in the middle of a body */
	HTTPD_REPLY_DUPLEX,  /* being sent past the library while a body is read: httpd_duplex.c */
};

struct httpd_pair {
	const char *name, *value; /* point into httpd_target.text */
};

/* A request target, taken apart. Everything points into TEXT. */
struct httpd_target {
	char *text; /* owned */
	char *path; /* decoded */
	char *raw;  /* still encoded: '/' in it are the separators */
	const char *segs[HTTPD_SEGS_MAX];
	unsigned nsegs;
	struct httpd_pair params[HTTPD_PARAMS_MAX];
	unsigned nparams;
};

/* One request on a connection; zeroed between two. */
struct httpd_exchange {
	const char *raw_uri, *raw_end; /* the target in the library's request line */
	struct httpd_target target;
	const char *method; /* the library's, lives as long as the request */
	const struct httpd_route *route;
	bool head_seen, head_good, body_done, in_callback, ended;
	struct buf body;
	uint64_t body_bytes;
	ssize_t (*sink)(void *arg, const char *p, size_t n);
	void *sink_arg;
	void (*bulk)(struct httpd_req *r); /* httpd_bulk.c, of sinks that want it */
	bool in_bulk;
	void (*duplex)(struct httpd_req *r); /* httpd_duplex.c, of requests that want it */
	struct buf out;			     /* of such an answer: not written yet */
	bool pulled;			     /* all of it is in OUT, or written */
	struct loop_timer push, stall;
	loop_watch_fn *on_hup_event; /* what watches the client otherwise */
	void (*on_end)(void *arg);
	void *end_arg;
	void (*on_hup)(void *arg);
	void *hup_arg;
	bool hup_told;

	enum httpd_reply_state reply;
	int status;
	char *data; /* owned, malloc */
	size_t data_len;
	ssize_t (*pull)(void *arg, char *p, size_t max);
	void *pull_arg;
	int64_t length;
	/* Of answers that not every program has: httpd_file.c, httpd_upgrade.c. */
	struct MHD_Response *(*make)(struct httpd_req *r);
	int file; /* owned while the state is FILE */
	uint64_t file_at;
	void (*on_upgrade)(void *arg, int fd, const char *p, size_t n);
	void *upgrade_arg;
	struct MHD_UpgradeResponseHandle *upgraded;	 /* the socket has been handed over */
	void (*more)(void *arg, struct MHD_Response *m); /* adds headers: httpd_proxy.c */
	void *more_arg;
	struct {
		char *name, *value; /* owned */
	} headers[HTTPD_HEADERS_MAX];
	unsigned nheaders;
};

struct httpd_req {
	struct httpd *h;
	struct MHD_Connection *con;
	struct httpd_req *next, *prev;
	struct loop_timer
		deadline;      /* for the next request head, or for the rest of an answered body */
	struct loop_watch hup; /* has the client gone, or ended its side? */
	int fd;		       /* borrowed from the library */
	unsigned timeout_s;    /* as set in the library */
	bool suspended, gone;
	bool eof;	 /* the client sends nothing more */
	bool read_again; /* the deadline is for the library to notice that */
	struct httpd_exchange x;
};

struct httpd {
	struct httpd_config c;
	struct loop *loop;
	struct MHD_Daemon *daemon;
	struct loop_watch watch;
	struct loop_timer kick; /* runs the library soon, from the loop */
	struct loop_prepare prepare;
	struct httpd_req *conns;
	unsigned nconns;
	bool stopping;
};

/* httpd_head.c. Pure but for the library's list of header fields. */
const char *httpd_check_head(struct httpd_req *r, const char *version, int *ret_status);
/* 0, -EINVAL for bad bytes, escapes or form, -ENAMETOOLONG, -ENOMEM. */
int httpd_target_parse(struct httpd_target *t, const char *target) MUST_CHECK;
int httpd_target_keep(struct httpd_target *t, const char *target)
	MUST_CHECK; /* the text alone: the library cuts its own up. -ENAMETOOLONG, -ENOMEM */
void httpd_target_done(struct httpd_target *t);
/* Does T fit PATTERN? Fills t->segs. */
bool httpd_target_match(struct httpd_target *t, const char *pattern);
/* Finds the route, or answers 404 or 405 and returns NULL. */
const struct httpd_route *httpd_find_route(struct httpd_req *r);

/* httpd_reply.c */
bool httpd_has_reply(const struct httpd_req *r);
struct MHD_Response *httpd_make_response(
	struct httpd_req *r);			  /* of what is ready; NULL: no memory */
enum MHD_Result httpd_queue(struct httpd_req *r); /* gives a ready answer to the library */
void httpd_reply_early(struct httpd_req *r);	  /* sends a ready answer past the library */
void httpd_reply_done(struct httpd_exchange *x);  /* frees what an answer owns */

void httpd_settle(struct httpd_req *r); /* the answer is complete in R->x: sends it on its way */

/* httpd.c */
void httpd_suspend(struct httpd_req *r);
void httpd_resume(struct httpd_req *r);
void httpd_drain_soon(struct httpd_req *r); /* ends the connection in a moment */

#endif
