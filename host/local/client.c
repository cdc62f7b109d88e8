/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/client.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "host/backend.h"
#include "host/local/vmdir.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/str.h"

#define ANSWER_MAX 65536
#define LOOK_MS	   200
#define UNLOCK_NS  2000000L

int client_dial(int dirfd, const char *name, int *ret_fd)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	AUTO_FD fd = -1;
	int r = str_format(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/%s", dirfd, name);

	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	r = fd_set_nonblock(fd, false);
	if (r == 0)
		*ret_fd = fd_take(&fd);
	return r;
}

/* 1: readable; 0: look again; negative errno. */
static int wait_readable(int fd, int64_t deadline_ns, const volatile sig_atomic_t *cancel)
{
	struct pollfd pf = { .fd = fd, .events = POLLIN };
	int64_t left = (deadline_ns - loop_now() + 999999) / 1000000;
	int r;

	if (cancel && *cancel)
		return -EINTR;
	if (left <= 0)
		return -ETIMEDOUT;
	backend_turn();
	r = poll(&pf, 1, left < LOOK_MS ? (int)left : LOOK_MS);
	if (r < 0 && errno != EINTR)
		return -errno;
	return r > 0;
}

/* Peeks, so that what follows the line stays in the socket. */
int client_read_line(int fd, struct buf *b, int64_t deadline_ns,
		     const volatile sig_atomic_t *cancel)
{
	char p[512];

	buf_clear(b);
	for (;;) {
		int r = wait_readable(fd, deadline_ns, cancel);
		ssize_t n;
		char *nl;

		if (r < 0)
			return r;
		if (r == 0)
			continue;
		n = recv(fd, p, sizeof(p), MSG_PEEK | MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return -EPIPE;
		nl = memchr(p, '\n', (size_t)n);
		if (nl)
			n = nl - p + 1;
		if (recv(fd, p, (size_t)n, MSG_DONTWAIT) != n)
			return -EPIPE;
		r = buf_add(b, p, (size_t)n - (nl ? 1 : 0));
		if (r < 0)
			return r == -ENOSPC ? -EMSGSIZE : r;
		if (nl)
			return 0;
	}
}

enum err_code client_err_code(const char *s)
{
	for (int i = 1; i < ERR_CODE_COUNT; i++)
		if (!strcmp(s, err_code_name((enum err_code)i)))
			return (enum err_code)i;
	return ERR_INTERNAL;
}

static int gone(struct err *e)
{
	return err_set(e, ERR_UNAVAILABLE, ENOTCONN, "the sandbox's supervisor");
}

static int read_answer(int fd, int64_t deadline_ns, cJSON **ret, struct err *e)
{
	const char *code = "", *message = "no reason given";
	bool ok = false;
	AUTO_JSN *j = NULL;
	AUTO_BUF b;
	int r;

	buf_init(&b, ANSWER_MAX);
	r = client_read_line(fd, &b, deadline_ns, NULL);
	if (r == -ETIMEDOUT)
		return err_set(e, ERR_TIMEOUT, ETIMEDOUT,
			       "the sandbox's supervisor does not answer");
	if (r < 0)
		return gone(e);
	j = jsn_parse(b.p ? b.p : "", b.len, NULL);
	if (!j || jsn_bool(j, "ok", &ok, NULL) < 0 || jsn_str(j, "code", &code, NULL) < 0 ||
	    jsn_str(j, "message", &message, NULL) < 0)
		return err_set(e, ERR_INTERNAL, EPROTO, "the sandbox's supervisor");
	if (!ok) {
		(void)err_set(e, client_err_code(code), 0, "%s", message);
		return -EIO;
	}
	if (ret) {
		*ret = j;
		j = NULL;
	}
	return 0;
}

static int ask_on(int fd, const char *request, int64_t deadline_ns, cJSON **ret, struct err *e)
{
	AUTO_BUF line;
	int r;

	buf_init(&line, 4096);
	r = buf_addf(&line, "%s\n", request);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "the request");
	if (send(fd, line.p, line.len, MSG_NOSIGNAL) != (ssize_t)line.len)
		return gone(e);
	return read_answer(fd, deadline_ns, ret, e);
}

int client_ask(int dirfd, const char *request, int64_t deadline_ns, cJSON **ret, struct err *e)
{
	AUTO_FD fd = -1;

	if (client_dial(dirfd, "ctl.sock", &fd) < 0)
		return gone(e);
	return ask_on(fd, request, deadline_ns, ret, e);
}

int client_hold(int dirfd, int64_t deadline_ns, int *ret_fd, struct err *e)
{
	AUTO_FD fd = -1;
	int r;

	if (client_dial(dirfd, "ctl.sock", &fd) < 0)
		return gone(e);
	r = ask_on(fd, "{\"op\":\"hold\"}", deadline_ns, NULL, e);
	if (r == 0)
		*ret_fd = fd_take(&fd);
	return r;
}

int client_wait_unlocked(int dirfd, int64_t deadline_ns)
{
	const struct timespec step = { .tv_nsec = UNLOCK_NS };

	while (vmdir_is_locked(dirfd)) {
		if (loop_now() >= deadline_ns)
			return -ETIMEDOUT;
		backend_turn();
		(void)nanosleep(&step, NULL);
	}
	return 0;
}
