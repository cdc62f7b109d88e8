/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_PTY_H
#define AGENTD_PTY_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/compiler.h"

/*
 * Pseudo-terminals (pty(7)) without libc's helpers, which look at names and at groups. A terminal that
 * has been closed at its other side reads as EIO, which is its end and no error.
 */

/* Opens a pair with ROWS and COLS in UTF-8 mode; both are CLOEXEC, the master does not block. OWNER:
 * of the slave's file; (uid_t)-1 leaves it. The caller closes both. 0 or negative errno. */
int pty_open(uint16_t rows, uint16_t cols, uid_t owner, int *ret_master, int *ret_slave) MUST_CHECK;

/* Tells the foreground group by SIGWINCH when that is a change. 0 or negative errno. */
int pty_resize(int master, uint16_t rows, uint16_t cols) MUST_CHECK;

/* Sends SIG to the terminal's foreground group: 0, or -ESRCH when it has none, or a negative errno. */
int pty_signal(int master, int sig) MUST_CHECK;

/* The character that the terminal takes for the end of input; 0 while it takes none (raw mode, or
 * switched off). */
char pty_eof_char(int master);

#endif
