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

/*
 * N bytes of P, in one piece, and with them a duplicate of PASS (-1: none), by SCM_RIGHTS (unix(7)). Does not
 * wait, allocates nothing: also for the child of a fork(2).
 */
int sock_send_fd(int fd, const void *p, size_t n, int pass) MUST_CHECK;

/*
 * What recv(2) of N bytes gives, without waiting, and the descriptor that came with it in *RET_PASS (owned), or
 * -1; a second one is closed by the kernel.
 */
ssize_t sock_recv_fd(int fd, void *p, size_t n, int *ret_pass) MUST_CHECK;

#endif
