/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_CLI_OUT_H
#define ASB_CLI_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/cli/opts.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * What asb prints. Standard output carries results alone: text, one JSON document with --json, or a
 * command's bytes. Errors, hints, notes and progress go to standard error; what cannot be written
 * there is lost silently.
 */
struct cJSON;
struct progress;

void out_init(const struct cli *c); /* --json, -q, -v, and what kind of file stderr is */
bool out_json_wanted(void);

/*
 * Results. A reader that has gone ends asb as it ends any program in a pipeline: by SIGPIPE,
 * quietly; so call these only when nothing is left to clean up. 0, or a negative errno after an
 * error line.
 */
int out_bytes(const void *p, size_t n) MUST_CHECK;
int out_line(const char *fmt, ...) PRINTF(1, 2) MUST_CHECK;
int out_doc(struct cJSON *j) MUST_CHECK; /* frees J; NULL stands for an allocation failure */

/* "1.5 MiB" */
#define OUT_SIZE_LEN 24
void out_size(double bytes, char ret[static OUT_SIZE_LEN]);

/* Ends the process as SIGPIPE would have. */
NORETURN void out_die_of_pipe(void);

void out_note(const char *fmt, ...) PRINTF(1, 2); /* "asb: …" on stderr, not with -q */

/*
 * "error: <message>" and, unless HINT is NULL, "hint: <HINT>" on stderr; with --json also {"error":
 * …} on stdout. out_warn is the same line with "warning: ", and no document.
 */
void out_error(const struct err *e, const char *hint);
void out_error_line(const struct err *e, const char *hint); /* never the document */
void out_warn(const char *fmt, ...) PRINTF(1, 2);
void out_log_line(const char *text); /* on stderr: a line of what somebody else has written */
/* {"code", "message", "hint"} for documents that have an error inside. NULL when memory runs out.
 */
struct cJSON *out_error_json(const struct err *e, const char *hint) MUST_CHECK;

/* The progress that a backend calls: lines with -v, one line that is rewritten on a terminal, else
 * nothing. */
void out_progress(struct progress *ret, const char *what);
void out_progress_end(void); /* takes the rewritten line away; before anything else is printed */

#endif
