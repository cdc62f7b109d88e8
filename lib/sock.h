/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_SOCK_H
#define ASB_SOCK_H

#include <sys/types.h>

#include "compiler.h"

/* Unix stream sockets by path. All descriptors are CLOEXEC and non-blocking. 0 or negative errno.
 */

/*
 * Listens at PATH with MODE, which holds from the first moment on. What was at PATH is unlinked
 * first. -ENAMETOOLONG when PATH does not fit sun_path.
 */
int sock_listen(const char *path, mode_t mode, int *ret_fd) MUST_CHECK;

/* Connects to PATH: at once, or it fails (-EAGAIN when the listener's backlog is full). */
int sock_connect(const char *path, int *ret_fd) MUST_CHECK;

/* Takes a connection from LISTEN_FD. -EAGAIN when there is none. */
int sock_accept(int listen_fd, int *ret_fd) MUST_CHECK;

#endif
