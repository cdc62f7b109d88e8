/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_STATE_FILE_H
#define ASB_STATE_FILE_H

#include <limits.h>
#include <stdbool.h>

#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/*
 * The two JSON files that we share with the Python project, state.json and infra-state.json. Each is read whole and replaced whole,
 * atomically, with mode 0600. Who changes one holds its lock from before reading it.
 */
struct state_file {
	const char *variable; /* of the environment, with the path */
	const char *name;     /* else ~/.agent_sandbox/NAME */
	const char *lock;     /* beside the file */
	const char *what;     /* "state file", for messages */
	int (*check)(const cJSON *tree, const char *path, struct err *e); /* of what was read */
};

int state_file_path(const struct state_file *f, char ret[static PATH_MAX], struct err *e)
	MUST_CHECK;
/* The folder of the file, made with mode 0700 when missing. */
int state_file_dir(const struct state_file *f, char ret[static PATH_MAX], struct err *e) MUST_CHECK;
/* The tree, {} when there is no file; the caller frees it. A damaged file is ERR_INVALID with its path, never {}. */
int state_file_load(const struct state_file *f, cJSON **ret, struct err *e) MUST_CHECK;
/* The same with its lock, waited for up to ten seconds; the caller closes *RET_FD. For state_file_save. */
int state_file_edit(const struct state_file *f, int *ret_fd, cJSON **ret, struct err *e) MUST_CHECK;
int state_file_save(const struct state_file *f, const cJSON *tree, struct err *e) MUST_CHECK;

/* Puts V, which is taken, under NAME in the place of what is there, so that the file keeps its order. False when memory runs out. */
bool state_file_put(cJSON *o, const char *name, cJSON *v);

/* "the WHAT PATH is damaged: WHY", for check. */
int state_file_bad(const struct state_file *f, const char *path, const char *why, struct err *e);

#endif
