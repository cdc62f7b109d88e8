/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_MCP_TOOL_H
#define ASB_MCP_TOOL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/backend.h"
#include "host/core/core.h"
#include "host/mcp/mcp.h"
#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/* What a tool is, and what it gets when it is called. The tools themselves are the one table of tools.c. */

enum mcp_kind { MCP_STR, MCP_INT, MCP_NUM, MCP_BOOL, MCP_LIST, MCP_MAP };

struct mcp_param {
	const char *name;
	enum mcp_kind kind;
	const char *def;  /* JSON; "null" also takes null; NULL = it must be given */
	const char *help; /* NULL where the name says it */
};

enum mcp_flags {
	MCP_READ = 1 << 0,	  /* changes nothing that a user would miss */
	MCP_DESTRUCTIVE = 1 << 1, /* may remove or replace what was there */
	MCP_IDEMPOTENT = 1 << 2,
	MCP_OPEN = 1 << 3,   /* reaches beyond the sandboxes: files of this machine, a network */
	MCP_CAREFUL = 1 << 4 /* takes care of signals itself, because something has to be undone */
};

struct mcp_job;

struct mcp_tool {
	const char *name;
	const char *about;		/* what a model reads */
	const struct mcp_param *params; /* ends at name == NULL */
	const char *result;		/* the shape of `data` (schema.h) */
	unsigned flags;
	int (*run)(struct mcp_job *j, struct err *e);
	const void *arg; /* what tells tools that share RUN from each other */
};

extern const struct mcp_tool mcp_tools[]; /* ends at name == NULL */
const struct mcp_tool *mcp_tool_find(const char *name);
/* It is offered under C. */
bool mcp_tool_offered(const struct mcp_tool *t, const struct mcp_config *c);

/* --- one call: in a process of its own (worker.c) --- */
struct mcp_job {
	const struct mcp_config *cfg;
	const struct mcp_tool *tool;
	const cJSON *args;	  /* every parameter of the tool, checked, with its default */
	cJSON *data;		  /* an object: filled by the tool */
	const char *code;	  /* of an error, where err_code_name is not meant */
	cJSON *extra;		  /* what an error has beside code and message, or NULL; owned */
	struct progress progress; /* its cancel is set while core_cancel_begin */
	const char *token;	  /* JSON of the progress token; NULL = no progress is wanted */
	int64_t began;		  /* loop_now() */
	double told;		  /* the last progress */
	int64_t told_at;	  /* loop_now() of it */
	int out;		  /* where lines for the client go */
	cJSON *kept;		  /* what workers of earlier calls go on as: objects with "pid" */
	/* Set by a tool that goes on after its answer (job_keep): until SIGTERM, then the process ends. */
	void (*after)(void *arg);
	void *after_arg;
};

/* Arguments, which are there and of their type. Text is NULL for null. */
const char *job_str(const struct mcp_job *j, const char *name);
int64_t job_int(const struct mcp_job *j, const char *name);
double job_num(const struct mcp_job *j, const char *name);
bool job_bool(const struct mcp_job *j, const char *name);
bool job_null(const struct mcp_job *j, const char *name);

/* Lines of a worker for the server: it goes on as JSON; the worker with that pid is to end; a log message (job_log): the digits
 * of its level and of what is told only once (0 = always), and JSON. */
#define WORKER_KEEP "keep "
#define WORKER_END  "end "
#define WORKER_LOG  "log "
/* The answer is not the end: AFTER goes on as WHAT, an object (borrowed). 0 or a negative errno. */
int job_keep(struct mcp_job *j, const cJSON *what, void (*after)(void *arg), void *arg) MUST_CHECK;
/* Ends what went on as the process PID, and waits for that; 0 or a negative errno. */
int job_end_kept(struct mcp_job *j, int pid) MUST_CHECK;

/* Fails with CODE (static) and a message; returns a negative errno. */
int job_fail(struct mcp_job *j, struct err *e, const char *code, const char *fmt, ...) PRINTF(4, 5);
/* Says that B cannot do WHAT; returns a negative errno. */
static inline int job_unsupported(const struct backend *b, const char *what, struct err *e)
{
	return err_set(e, ERR_UNSUPPORTED, 0, "not supported by the %s backend: %s", b->name, what);
}
/*
 * Argument NAME as bytes when "encoding" is base64: *RET is malloc'd, with *RET_LEN bytes in it. With any other encoding *RET is
 * NULL, and the bytes are the text's own.
 */
int job_bytes(struct mcp_job *j, const char *name, char **ret, size_t *ret_len, struct err *e)
	MUST_CHECK;
/* TIMEOUT as in all tools: seconds; null, 0 and less are the default. */
int64_t job_timeout_ns(const struct mcp_job *j, const char *name);
/* The sandbox that argument "name" names. CODE: of the error when there is none. core_named_done. */
int job_find(struct mcp_job *j, struct core_named *ret, const char *code, struct err *e) MUST_CHECK;
/* The same for what talks with the guest: a suspended one is resumed. */
int job_reach(struct mcp_job *j, struct core_named *ret, const char *code, struct err *e)
	MUST_CHECK;

/* --- what is told meanwhile (tell.c) --- */
/* Tells the client how far it is; nothing when it did not ask. */
void job_progress(struct mcp_job *j, double done, double total, const char *message);
/* The same at most every EVERY_NS, for what is told as it goes: BYTES of TOTAL (0 = not known), or the seconds since the call began. */
void job_bytes_done(struct mcp_job *j, uint64_t bytes, uint64_t total);
void job_elapsed(struct mcp_job *j, int64_t every_ns, const char *message);
/* Waits for NS, and tells the time meanwhile. */
void job_pause(struct mcp_job *j, int64_t ns);
#define JOB_OFTEN_NS  (250 * 1000000LL)
#define JOB_SELDOM_NS (2 * 1000000000LL)
/* RFC 5424's severities, as the protocol names them. */
enum mcp_level {
	MCP_LOG_DEBUG,
	MCP_LOG_INFO,
	MCP_LOG_NOTICE,
	MCP_LOG_WARNING,
	MCP_LOG_ERROR,
	MCP_LOG_CRITICAL,
	MCP_LOG_ALERT,
	MCP_LOG_EMERGENCY,
	MCP_LOG_NONE
};
#define MCP_LOG_TEXT 512 /* bytes of a message; a longer one is cut */
/*
 * A log message for the client, if it wants those of LEVEL. For people: what happened to what, never a command, its variables or
 * its output.
 */
void job_log(const struct mcp_job *j, enum mcp_level level, const char *fmt, ...) PRINTF(3, 4);
/* Warns, once a server, when the sandbox ID of B is emulated. */
void job_log_emulated(const struct mcp_job *j, const struct backend *b, const char *id);

/*
 * Text of a guest as {"text","truncated"} and, when it is more than the cap, total_bytes and returned_bytes: TOTAL bytes
 * there were, of which P has N. Never half a character at the end.
 */
bool job_add_capped(const struct mcp_job *j, cJSON *o, const char *name, const char *p, size_t n,
		    uint64_t total) MUST_CHECK;
/* How many of N bytes of P are within CAP (0 = all), without half a character of UTF-8 at the end. */
size_t mcp_cut(const char *p, size_t n, uint64_t cap);

#define MCP_TEXT_MAX (8U << 20) /* of one text, whatever was asked for */
/* The most bytes that one text of an answer may have. */
static inline size_t job_cap(const struct mcp_job *j)
{
	return j->cfg->max_output && j->cfg->max_output < MCP_TEXT_MAX ? (size_t)j->cfg->max_output
								       : MCP_TEXT_MAX;
}

#endif
