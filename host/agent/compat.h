/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AGENT_COMPAT_H
#define ASB_AGENT_COMPAT_H

#include <signal.h>

#include "host/agent/exec.h"
#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * The routes that an agent has which is not ours (docs/agent-api.md, "Compatible routes"): a command whose output comes in one piece
 * when it has ended, and whole files. Who has found that there is no native route (ask_no_route) comes here.
 */
struct backend;

#define COMPAT_FILE_MAX (64U << 20) /* of a file's content */

/* exec_run by POST /v1/exec. What S asks for and the route cannot is ERR_UNSUPPORTED, before anything is started. */
int compat_exec(const struct exec_spec *s, bool had_input, struct exec_result *ret, struct err *e)
	MUST_CHECK;

struct compat_file { /* borrowed */
	const struct backend *backend;
	const char *id;			     /* of the sandbox */
	const char *path;		     /* absolute, UTF-8 */
	const volatile sig_atomic_t *cancel; /* as stream_spec */
};
/* Says in E that PATH's content is more than COMPAT_FILE_MAX; -EFBIG. */
int compat_too_big(const char *path, struct err *e);
/* Adds the content to RET, whose cap is the limit. Negative errno: -ENOENT, -EISDIR, or as agent_ask. */
int compat_read(const struct compat_file *f, struct buf *ret, struct err *e) MUST_CHECK;
/* Replaces the content, with N bytes of P (COMPAT_FILE_MAX); folders that are missing are made. As above. */
int compat_write(const struct compat_file *f, const void *p, size_t n, struct err *e) MUST_CHECK;

#endif
