/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AGENT_TERM_H
#define ASB_AGENT_TERM_H

#include <stdbool.h>
#include <termios.h>

#include "lib/compiler.h"

/*
 * The terminal that we were started on. In raw mode every key is the command's; the mode before is
 * put back by term_restore, which every way out of exec_run passes.
 */
struct term {
	int fd; /* borrowed: stdin */
	bool raw;
	struct termios before;
};

/* Whether FD is a terminal of which our process group is the foreground job: only then it may be
 * switched without stopping us (SIGTTOU). */
bool term_is_ours(int fd);

/* 0 or negative errno. The output side keeps its line ends as the command sends them. */
int term_raw(struct term *t) MUST_CHECK;
void term_restore(struct term *t); /* fine when it is not raw */

/* The size of stdout's or stdin's terminal; false when neither has one. */
bool term_size(unsigned *ret_rows, unsigned *ret_cols);

#endif
