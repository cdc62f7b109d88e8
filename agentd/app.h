/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_APP_H
#define AGENTD_APP_H

#include <cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "envbase.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/httpd.h"
#include "lib/loop.h"
#include "private.h"

/* agentd as a whole. One of it. */
struct app {
	/* set by the caller, see main.c */
	uint16_t port;
	const char *bind_addr;	 /* numeric address */
	const char *socket_path; /* private socket */
	const char *token_file;	 /* NULL: none */
	const char *passwd_path;
	const char *cgroup_root;

	struct loop loop;
	struct httpd *tcp;
	struct private *priv; /* NULL when the socket could not be made */
	bool closed;	      /* the gate: new execs and writes get 503 */
	bool stopping;
	uint64_t requests;  /* that were routed, those without a token too */
	unsigned in_flight; /* requests that are being answered, as the drain counts them */
	struct envbase env;
	cJSON *identity_env; /* owned, or NULL */
	char *token;	     /* owned, or NULL */
	char generation[33];
	struct loop_timer stop_timer;
	int stop_phase;
	int64_t stop_since;
};

int app_start(struct app *a, struct err *e) MUST_CHECK; /* 0, or a negative errno with a message */
int app_run(struct app *a) MUST_CHECK;			/* until SIGTERM or SIGINT */
void app_done(struct app *a);

extern const struct httpd_route app_routes[];

/* True when new work is admitted; else R has been answered with 503. */
bool app_admits(struct httpd_req *r);
/* R counts as in flight until it ends. Then FN (may be NULL) is called with ARG, as httpd_on_end
 * would. 0 or -ENOMEM, in which case R has been answered. */
int app_enter(struct httpd_req *r, void (*fn)(void *arg), void *arg) MUST_CHECK;

/* identity.c */
int app_read_token(struct app *a, struct err *e) MUST_CHECK;
bool app_authorized(struct httpd_req *r, const struct httpd_route *route);
int app_identity(void *app, const struct private_identity *id, struct err *e) MUST_CHECK;
/* What an earlier agentd of this guest was told, if there was one. A file that cannot be read is an error: without it a
 * guest that wants a token would come back open. */
int app_restore_identity(struct app *a, struct err *e) MUST_CHECK;
int app_exec_check(void *app, struct err *e) MUST_CHECK;

struct exec;

struct output_query {
	uint64_t offset;
	uint64_t max;	 /* 0 = no limit */
	uint64_t forget; /* of PUT: seconds; 0 = never */
	bool follow;
	bool greet; /* something is sent at once: an event when there are no bytes */
};

/* routes_output.c: what R's query says of output. False: R has been answered. */
bool output_query(struct httpd_req *r, struct output_query *q) MUST_CHECK;
/* Answers R with STATUS and the output of E. Q->offset must not be behind the end. */
void output_begin(struct httpd_req *r, int status, struct exec *e, const struct output_query *q);

/* handlers */
void route_healthz(struct httpd_req *r);
void route_info(struct httpd_req *r);
void route_metrics(struct httpd_req *r);
void route_ports(struct httpd_req *r);
void route_compat_exec(struct httpd_req *r);
void route_fs_read(struct httpd_req *r);
void route_fs_write(struct httpd_req *r);
void route_watch(struct httpd_req *r);
void route_fsop(struct httpd_req *r);
void route_files_get(struct httpd_req *r);
void route_files_put(struct httpd_req *r);
void route_exec_put(struct httpd_req *r);
void route_exec_get(struct httpd_req *r);
void route_exec_list(struct httpd_req *r);
void route_exec_delete(struct httpd_req *r);
void route_exec_signal(struct httpd_req *r);
void route_exec_resize(struct httpd_req *r);
void route_exec_output(struct httpd_req *r);
void route_exec_attach(struct httpd_req *r);
void route_exec_stdin(struct httpd_req *r);
void route_archive_get(struct httpd_req *r);
void route_archive_put(struct httpd_req *r);

#endif
