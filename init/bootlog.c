/* SPDX-License-Identifier: Apache-2.0 */
#include "bootlog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/proto.h"
#include "lib/str.h"

/*
 * The guest's side of a virtio port writes with EAGAIN until the kernel has processed the host's
 * "open" message, which arrives a moment after the name. So every line goes to `kept` first, and
 * from there when the port takes it.
 *
 * The port is opened once and stays open for ever.
 */

#define KEPT_MAX 4096
#define RETRY_NS (5 * 1000000LL)

static int port = -1;
static char kept[KEPT_MAX];
static size_t kept_len;
static struct loop *retry_loop;
static struct loop_timer retry = LOOP_TIMER_INIT;

void bootlog_console(void)
{
	int fd = open("/dev/console", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	for (int i = 0; i < 3; i++)
		if (fd != i)
			(void)dup2(fd, i);
	if (fd > 2)
		fd_close(&fd);
}

/* Does the port directory DIR/ENTRY belong to the port that we look for? */
static bool is_boot_port(int dir, const char *entry)
{
	char path[300];
	AUTO_BUF name;

	buf_init(&name, 64);
	if (str_format(path, sizeof(path), "%s/name", entry) < 0 ||
	    fd_read_file(dir, path, &name) < 0 || !name.p)
		return false;
	name.p[strcspn(name.p, "\n")] = '\0';
	return !strcmp(name.p, PROTO_PORT_BOOT);
}

void bootlog_open_port(void)
{
	DIR *d;
	struct dirent *e;

	if (port >= 0)
		return;
	d = opendir("/sys/class/virtio-ports");
	if (!d)
		return;
	while (port < 0 && (e = readdir(d))) {
		char path[300];

		if (e->d_name[0] == '.' || !is_boot_port(dirfd(d), e->d_name))
			continue;
		if (str_format(path, sizeof(path), "/dev/%s", e->d_name) == 0)
			port = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
		break;
	}
	(void)closedir(d);
	bootlog_flush(0);
}

/* True when nothing is left to be sent. */
static bool send_kept(void)
{
	while (port >= 0 && kept_len) {
		ssize_t k = write(port, kept, kept_len);

		if (k <= 0)
			break;
		kept_len -= (size_t)k;
		memmove(kept, kept + k, kept_len);
	}
	return port < 0 || kept_len == 0;
}

static void on_retry(struct loop_timer *t)
{
	if (!send_kept())
		loop_arm(retry_loop, t, RETRY_NS);
}

void bootlog_attach(struct loop *l)
{
	retry_loop = l;
	retry.fn = on_retry;
	if (!send_kept())
		loop_arm(l, &retry, RETRY_NS);
}

void bootlog_flush(int max_ms)
{
	for (int ms = 0; !send_kept() && ms < max_ms; ms++)
		(void)poll(NULL, 0, 1);
}

static void line(const char *s, size_t n)
{
	if (write(STDERR_FILENO, s, n) < 0) {
		/* no console, or one that nobody reads: the port is what counts */
	}
	if (n <= sizeof(kept) - kept_len) { /* else the host has not read for a whole boot */
		memcpy(kept + kept_len, s, n);
		kept_len += n;
	}
	if (!send_kept() && retry_loop)
		loop_arm(retry_loop, &retry, RETRY_NS);
}

void bootlog_stage(const char *name)
{
	struct timespec t;
	char s[128];
	int n;

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	n = snprintf(s, sizeof(s), "{\"stage\":\"%s\",\"ms\":%lld}\n", name,
		     (long long)t.tv_sec * 1000 + t.tv_nsec / 1000000);
	if (n > 0 && n < (int)sizeof(s))
		line(s, (size_t)n);
}

/* The inside of a JSON string: what JSON wants escaped, and bytes that are no ASCII, become '?'. */
static void quote(char *out, size_t size, const char *s)
{
	size_t n = 0;

	for (; *s && n + 3 < size; s++) {
		if (*s == '"' || *s == '\\')
			out[n++] = '\\';
		out[n++] = *s >= 0x20 && *s < 0x7f ? *s : '?';
	}
	out[n] = '\0';
}

void bootlog_error(const struct err *e)
{
	const char *why = e->errnum ? strerror(e->errnum) : "failed";
	size_t len = strlen(e->msg), tail = strlen(why);
	char what[ERR_MSG_MAX], a[320], s[640];
	int n;

	memcpy(what, e->msg, len + 1);
	if (e->errnum && len > tail + 2 &&
	    !strcmp(what + len - tail, why)) /* err_set has put it there */
		what[len - tail - 2] = '\0';
	quote(a, sizeof(a), what);
	n = snprintf(s, sizeof(s), "{\"error\":\"%s\",\"errno\":%d,\"message\":\"%s\"}\n", a,
		     e->errnum, why);
	if (n > 0 && n < (int)sizeof(s))
		line(s, (size_t)n);
}
