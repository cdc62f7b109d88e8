/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_CLIENT_H
#define ASB_LOCAL_CLIENT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/* Blocking talk with a supervisor, for the command line. Every wait has a deadline (loop_now()
 * time). */

/* Connects to the socket NAME in the folder DIRFD, however long its path is. CLOEXEC, blocking. 0
 * or negative errno
 * (-ENOENT, -ECONNREFUSED: nobody is there). */
int client_dial(int dirfd, const char *name, int *ret_fd) MUST_CHECK;

/*
 * Reads a line into B (cleared first; without the newline), no byte more. 0, -ETIMEDOUT, -EPIPE at
 * the end of the connection, -EMSGSIZE over B's cap, -EINTR when *CANCEL (may be NULL) is set,
 * which is looked at every 200 ms.
 */
int client_read_line(int fd, struct buf *b, int64_t deadline_ns,
		     const volatile sig_atomic_t *cancel) MUST_CHECK;

/*
 * One operation on ctl.sock: REQUEST is a JSON object. 0, or what the supervisor said as error.
 * -ENOTCONN + ERR_UNAVAILABLE when no supervisor is there, or it ended before it answered. RET (may
 * be NULL): the answer, owned by the caller.
 */
int client_ask(int dirfd, const char *request, int64_t deadline_ns, cJSON **ret, struct err *e)
	MUST_CHECK;

/*
 * Op "hold" on ctl.sock: 0 with the connection in *RET_FD, which keeps the sandbox from being suspended for being idle as long as it
 * is open. As client_ask otherwise; ERR_CONFLICT when it is not RUNNING.
 */
int client_hold(int dirfd, int64_t deadline_ns, int *ret_fd, struct err *e) MUST_CHECK;

/* Waits until nobody holds the lock of the folder. 0 or -ETIMEDOUT. */
int client_wait_unlocked(int dirfd, int64_t deadline_ns) MUST_CHECK;

/* The code that err_code_name calls S; ERR_INTERNAL when there is none. */
enum err_code client_err_code(const char *s);

#endif
