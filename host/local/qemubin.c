/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/qemubin.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/local/qemu.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/proc.h"
#include "lib/str.h"

#define PROGRAM	       "qemu-system-x86_64"
#define CANDIDATES_MAX 8
#define VERSION_NS     10000000000LL
#define ANSWER_MAX     4096

struct candidates {
	char path[CANDIDATES_MAX][512];
	struct stat st[CANDIDATES_MAX];
	int len;
};

static void consider(struct candidates *c, const char *dir, size_t n)
{
	char path[512];
	struct stat st;

	if (n == 0 || dir[0] != '/' || c->len == CANDIDATES_MAX ||
	    str_format(path, sizeof(path), "%.*s/" PROGRAM, (int)n, dir) < 0)
		return;
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || access(path, X_OK) < 0)
		return;
	for (int i = 0; i < c->len; i++)
		if (c->st[i].st_ino == st.st_ino && c->st[i].st_dev == st.st_dev)
			return;
	memcpy(c->path[c->len], path, sizeof(path));
	c->st[c->len++] = st;
}

static void look_around(struct candidates *c)
{
	static const char *const more[] = { "/usr/local/bin", "/opt/qemu/bin", "/usr/bin" };
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t n = strcspn(path, ":");

		consider(c, path, n);
		path += n + (path[n] == ':');
	}
	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		consider(c, more[i], strlen(more[i]));
}

/* Reads FD until its end, for at most VERSION_NS. */
static int read_answer(int fd, struct buf *b)
{
	int64_t end = loop_now() + VERSION_NS;

	for (;;) {
		struct pollfd pf = { .fd = fd, .events = POLLIN };
		int64_t left = end - loop_now();
		char p[512];
		ssize_t k;

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(&pf, 1, (int)(left / 1000000) + 1) <= 0)
			continue;
		k = read(fd, p, sizeof(p));
		if (k <= 0)
			return k < 0 ? -errno : 0;
		if (buf_add(b, p, (size_t)k) < 0)
			return -EMSGSIZE;
	}
}

static int ask(const char *path, struct buf *b, struct err *e)
{
	char program[512], option[] = "--version", *argv[] = { program, option, NULL };
	struct proc_spec s = PROC_SPEC_INIT;
	struct proc_child child;
	AUTO_FD rd = -1;
	AUTO_FD wr = -1;
	int p[2], r;

	if (str_format(program, sizeof(program), "%s", path) < 0 || pipe2(p, O_CLOEXEC) < 0)
		return err_set(e, ERR_IO, errno, "%s --version", path);
	rd = p[0];
	wr = p[1];
	s.argv = argv;
	s.fd[1] = s.fd[2] = wr;
	s.flags = PROC_DEATHSIG;
	r = proc_spawn(&s, &child, NULL, e);
	if (r < 0)
		return r;
	fd_close(&wr);
	r = read_answer(rd, b);
	ignore_result(proc_signal(&child, SIGKILL)); /* it has ended, or it should have */
	while (waitpid(child.pid, NULL, 0) < 0 && errno == EINTR)
		;
	fd_close(&child.pidfd);
	if (r < 0 || !b->p || qemu_version(b->p) == 0)
		return err_set(e, ERR_UNSUPPORTED, r < 0 ? -r : ENOEXEC,
			       "%s --version gives no version", path);
	return 0;
}

int qemubin_version(const char *path, uint32_t *ret, struct err *e)
{
	AUTO_BUF b;
	int r;

	buf_init(&b, ANSWER_MAX);
	r = ask(path, &b, e);
	if (r == 0)
		*ret = qemu_version(b.p);
	return r;
}

int qemubin_text(const char *path, char *ret, size_t size, struct err *e)
{
	AUTO_BUF b;
	int r;

	buf_init(&b, ANSWER_MAX);
	r = ask(path, &b, e);
	if (r < 0)
		return r;
	r = str_format(ret, size, "%.*s", (int)strcspn(b.p, "\r\n"), b.p);
	str_clean(ret);
	return r < 0 ? err_set(e, ERR_UNSUPPORTED, -r, "%s --version", path) : 0;
}

static int newest(const struct candidates *c, char ret[LOCAL_PATH_MAX], struct err *e)
{
	uint32_t best = 0;
	int at = -1;

	if (c->len == 1)
		return str_format(ret, LOCAL_PATH_MAX, "%s", c->path[0]);
	for (int i = 0; i < c->len; i++) {
		uint32_t v;

		if (qemubin_version(c->path[i], &v, e) == 0 && v > best) {
			best = v;
			at = i;
		}
	}
	return at < 0 ? -ENOEXEC : str_format(ret, LOCAL_PATH_MAX, "%s", c->path[at]);
}

int qemubin_find(char ret[LOCAL_PATH_MAX], struct err *e)
{
	struct candidates c = { .len = 0 };
	const char *env = getenv("ASB_QEMU");

	if (env && *env) {
		if (env[0] != '/' || access(env, X_OK) < 0 ||
		    str_format(ret, LOCAL_PATH_MAX, "%s", env) < 0)
			return err_set(e, ERR_NOT_FOUND, env[0] == '/' ? errno : EINVAL,
				       "ASB_QEMU must be the path of a program, not '%s'", env);
		return 0;
	}
	look_around(&c);
	if (c.len == 0)
		return err_set(
			e, ERR_NOT_FOUND, ENOENT,
			"there is no " PROGRAM
			" on this machine: install the package qemu-system-x86, or set ASB_QEMU");
	return newest(&c, ret, e);
}
