/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CMD_COMMON_H
#define ASB_CMD_COMMON_H

#include <errno.h>

#include "host/agent/exec.h"
#include "host/backend.h"
#include "host/cli/opts.h"
#include "host/core/core.h"
#include "lib/compiler.h"
#include "lib/err.h"

/* Shared by the files of the commands. */
struct cJSON;

#define EXIT_TIMEOUT	    124
#define EXIT_ASB_FAILED	    125
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND	    127
#define EXIT_USAGE	    2

/* Tells E and returns the exit status for it: 2 for a wrong command line, else the command's status
 * of failure. */
int cmd_fail(const struct cli *c, const struct err *e, const char *hint);

/* What to type after E, for sandbox NAME (may be NULL). Static storage; NULL when nothing is known.
 */
const char *cmd_hint(const struct err *e, const char *name);
/* The same after a create that failed: no sandbox NAME came of it. */
const char *cmd_create_hint(const struct err *e, const char *name);

/* ERR_UNSUPPORTED that names WHAT, which backend B has no operation for. */
static inline int cmd_unsupported(const struct backend *b, const char *what, struct err *e)
{
	return err_set(e, ERR_UNSUPPORTED, ENOSYS, "the %s backend cannot %s", b->name, what);
}

/*
 * For commands that take several names: calls FN for each, prints "<word> NAME" (or the JSON
 * document of all), tells the errors, goes on, and returns the exit status. FN sets *RET_WORD,
 * "unchanged" for nothing done.
 */
typedef int cmd_one_fn(const struct cli *c, const char *name, const char **ret_word, struct err *e);
int cmd_each(const struct cli *c, cmd_one_fn *fn);
/* The same for what is no sandbox: KEY is the name of the document's list, HINT what cmd_hint is for sandboxes. */
int cmd_each_of(const struct cli *c, const char *key,
		const char *(*hint)(const struct err *e, const char *name), cmd_one_fn *fn);

/* INFO, and the fields of the record, as the JSON object that ls and ps print. I may be NULL: no
 * machine. NULL: memory. */
struct cJSON *cmd_sandbox_json(const struct state_record *r, const struct sandbox_info *i)
	MUST_CHECK;
/* Shows TEXT and waits for an answer: 1 when it is yes. ERR_USAGE with HINT when nobody is there. */
int cmd_ask(const char *text, const char *hint, struct err *e) MUST_CHECK;

/* "created NAME (ID)", or the document of that sandbox. The exit status. */
int cmd_tell_created(const struct cli *c, const struct backend *b, const char *name, const char *id)
	MUST_CHECK;
/* "RUNNING", "MISSING", … */
const char *cmd_state(const struct sandbox_info *i);

/* Runs the guest's command of C (or joins that of --attach) with ENV (of core_env) in N; what is
 * printed when all is over is told by cmd_report. LEAVE: the sandbox ends with the command. */
int cmd_exec_in(const struct cli *c, const struct core_named *n, char *const *env, bool leave,
		struct exec_result *ret, struct err *e) MUST_CHECK;
/*
 * Prints what is left to tell of a command: the error, or the JSON document. R is what cmd_exec_in
 * returned. Returns the exit status, or does not return when asb is to end by a signal.
 */
int cmd_report(const struct cli *c, const char *name, const char *id, int r,
	       const struct exec_result *res, const struct err *e);

#endif
