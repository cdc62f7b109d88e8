/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_PROGRAM_H
#define ASB_LOCAL_PROGRAM_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"

/* A program of the machine that asb uses while it builds an image. */

struct program {
	char *const *argv;   /* argv[0] is searched along PATH */
	char *const *envp;   /* NULL-terminated; NULL = the caller's environment */
	int log;	     /* what it writes on stdout and stderr: a file, opened for appending */
	int out;	     /* a file that it writes, watched for its size; -1 = none */
	uint64_t out_max;    /* bytes */
	int64_t deadline_ns; /* loop_now() time */
	const volatile sig_atomic_t *cancel; /* NULL = never; looked at every 200 ms */
};

/*
 * Runs it in a session of its own, without input, and waits; what is left of the session then is killed. 0 when it
 * ended with 0. Else a negative errno with a message that names it: -ECHILD it failed, -ETIMEDOUT, -EINTR *CANCEL,
 * -EFBIG it wrote too much, -ENOENT there is no such program.
 */
int program_run(const struct program *p, struct err *e) MUST_CHECK;

/* Whether NAME is a program on PATH. */
bool program_is_there(const char *name);

/* The last lines of the file, cleaned for a terminal: at most MAX bytes. B is cleared first. */
int program_tail(int log, size_t max, struct buf *b) MUST_CHECK;

#endif
