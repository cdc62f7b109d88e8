/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_MCP_SERVER_H
#define ASB_MCP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "host/agent/stdio.h"
#include "host/mcp/mcp.h"
#include "host/mcp/rpc.h"
#include "host/mcp/tool.h"
#include "lib/buf.h"
#include "lib/loop.h"

/*
 * Shared by the files of the server process: server.c (streams, ends), dispatch.c (methods), calls.c (what runs in workers),
 * worker.c (the workers themselves), listing.c (texts that are made once), watch.c (what has changed), log.c (log messages).
 */

#define MCP_RUNNING_MAX	  64 /* workers at once; more wait */
#define MCP_WAITING_MAX	  512
#define MCP_WAITING_BYTES (64U << 20)  /* of lines whose call waits */
#define MCP_RESULT_MAX	  (256U << 20) /* of one line of a worker */
#define MCP_READ_MAX \
	(16U << 10) /* of the input at once: an answer may be a thousand times its request */
#define MCP_SUBS_MAX 32
#define MCP_URI_MAX  512

struct mcp_server;

struct mcp_call {
	struct mcp_server *s;
	struct mcp_call *next;
	struct rpc_msg msg; /* owned until its worker runs */
	size_t bytes;	    /* of its line, while it waits */
	char id[RPC_ID_MAX + 1];
	bool modern;		  /* of revision 2026-07-28 */
	enum mcp_level log_level; /* the least that is wanted, when it is modern */
	const char *what;	  /* the tool or the method; static */
	pid_t pid;		  /* 0 = it waits */
	int status;		  /* of waitpid(2), once it is dead */
	int fd;			  /* the worker's lines; owned */
	struct loop_watch watch;
	struct loop_timer kill;
	struct buf in;
	bool answered, cancelled, dead;
	char *kept; /* owned: it has answered and runs on; JSON of what it is now. NULL = it has not */
};

struct mcp_log {
	enum mcp_level level;	 /* the least that is sent, of a session */
	int64_t next;		 /* when the next message is due (log.c) */
	unsigned left_out, told; /* messages that had no room; bits of what is told once */
};

/* Who wants to be told of changes. Legacy clients are one, without an id. */
struct mcp_sub {
	char id[RPC_ID_MAX + 1]; /* of subscriptions/listen; "" = not in use */
	bool list;		 /* the list of resources */
	char *uris; /* owned: the resources, each ended by a NUL, and an empty one; NULL = none */
};

struct mcp_server {
	const struct mcp_config *cfg;
	struct loop loop;
	struct source in;
	struct sink out;
	struct rpc_lines lines;
	char chunk[MCP_READ_MAX];
	struct buf outq; /* lines that the sink has not taken yet, from OUT_AT on */
	size_t out_at;
	struct mcp_call *calls;
	unsigned running, waiting; /* without those that are kept */
	size_t waiting_bytes;
	bool choked; /* the client does not read: nothing more is taken from anybody */
	bool eof, closing;
	int status;
	struct loop_timer end;
	/* the session of a client before revision 2026-07-28 */
	bool initialized; /* initialize was answered */
	struct mcp_sub legacy, subs[MCP_SUBS_MAX];
	struct mcp_log log;
	/* watch.c */
	int notify_fd;
	struct loop_watch notify;
	struct loop_timer settle;
	char *tools; /* owned: the list of tools; NULL until it is asked for */
};

/* server.c: queues N bytes of whole lines for the client. What cannot be kept ends the server. */
void server_send(struct mcp_server *s, const char *p, size_t n);
void server_error(struct mcp_server *s, const char *id, enum rpc_error code, const char *message,
		  const char *data);
/* Answers ID with the members RESULT (JSON text of an object's inside); MODERN adds what that revision wants. */
void server_result(struct mcp_server *s, const char *id, bool modern, const char *result);
/* The client reads again, or a worker has ended: what waits goes on. */
void server_resume(struct mcp_server *s);
/* Cancels everything and ends. */
void server_close(struct mcp_server *s);

/* dispatch.c: takes M (and clears it when it keeps the document). BYTES: of its line. */
void dispatch(struct mcp_server *s, struct rpc_msg *m, size_t bytes);

/* calls.c */
/* MODERN, and then LOG_LEVEL: as in struct mcp_call. */
void calls_add(struct mcp_server *s, struct rpc_msg *m, size_t bytes, bool modern,
	       enum mcp_level log_level);
struct mcp_call *calls_find(struct mcp_server *s,
			    const char *id); /* one that is not answered yet */
void calls_cancel(struct mcp_call *c);
void calls_cancel_all(struct mcp_server *s);
void calls_kill_all(struct mcp_server *s);
void calls_reap(struct mcp_server *s); /* after SIGCHLD */
void calls_go_on(struct mcp_server *s);

/* log.c: "debug", …; false when NAME is none of the levels. */
bool log_level_of(const char *name, enum mcp_level *ret) MUST_CHECK;
/* What follows WORKER_LOG in a line of C's worker. */
void log_worker(const struct mcp_call *c, const char *p, size_t n);
/* A message of the server's own; C: about a call, or NULL. */
void log_server(struct mcp_server *s, const struct mcp_call *c, enum mcp_level level,
		const char *fmt, ...) PRINTF(4, 5);

/* worker.c: answers C on OUT and exits. */
NORETURN void worker_run(const struct mcp_call *c, int out);

/* listing.c */
/* The members that every result of revision 2026-07-28 has. Static storage. */
const char *listing_modern(void);
const char *listing_server_info(void);		 /* an object */
char *listing_tools(const struct mcp_config *c); /* an array; NULL: memory. The caller frees it. */
cJSON *listing_input_schema(const struct mcp_tool *t);

/* watch.c: tells subscribers when the sandboxes change. */
void watch_begin(struct mcp_server *s);
void watch_end(struct mcp_server *s);
void sub_done(struct mcp_sub *sub);
/* Adds (or takes away) a resource. 0, -ENOSPC, -ENOMEM. */
int sub_set(struct mcp_sub *sub, const char *uri, bool on) MUST_CHECK;

/* resources.c, in a worker: the contents of URI (NULL: the list of resources) into RESULT; -ENOENT with E when there is none. */
int resource_read(struct mcp_job *j, const char *uri, cJSON *result, struct err *e) MUST_CHECK;
extern const char resource_templates[]; /* JSON: an array */

#endif
