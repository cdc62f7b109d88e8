/* SPDX-License-Identifier: Apache-2.0 */
#include "bare.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/chan.h"
#include "../lib/fd.h"
#include "../lib/loop.h"
#include "../lib/proc.h"
#include "../lib/str.h"
#include "stats.h"

#define PORTS	 4 /* qmp, console, channel, boot: in the order of the command line */
#define CHANNEL	 2
#define LIMIT_NS 60000000000LL
#define BODY	 "{\"argv\":[\"echo\",\"BARE\"]}"

static const char put[] =
	"PUT /v1/execs/bare HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	"Content-Length: 24\r\n\r\n" BODY,
		  get[] = "GET /v1/execs/bare/output?offset=0&follow=1 HTTP/1.1\r\nHost: x\r\n\r\n";

struct restore {
	struct loop loop;
	struct chan *chan;
	struct chan_stream *stream;
	int64_t start, hello, byte;
	char seen[65536];
	size_t len;
	bool asked;
};

static int copy(const char *from, const char *to)
{
	const char *const argv[] = { "cp", "--sparse=always", "-f", from, to, NULL };
	struct proc_spec s = PROC_SPEC_INIT;
	struct proc_child c;
	struct err e = ERR_INIT;
	int status = -1;

	s.argv = (char *const *)(uintptr_t)argv;
	s.fd[2] = STDERR_FILENO;
	if (proc_spawn(&s, &c, NULL, &e) < 0)
		return -1;
	(void)waitpid(c.pid, &status, 0);
	fd_close(&c.pidfd);
	return status ? -1 : 0;
}

int bare_prepare(struct bare *b, pid_t qemu, const char *template, const char *dir)
{
	static const char *const files[][2] = { { "ram", "base.ram" },
						{ "devices", "base.devices" },
						{ "disk.qcow2", "disk.template" } };
	char from[512], to[512];
	size_t n = 0;
	AUTO_BUF raw;

	buf_init(&raw, sizeof(b->raw));
	(void)snprintf(from, sizeof(from), "/proc/%d/cmdline", (int)qemu);
	if (fd_read_file(AT_FDCWD, from, &raw) < 0)
		return -1;
	memcpy(b->raw, raw.p, raw.len);
	for (size_t i = 0; i < raw.len && n + 1 < ARRAY_LEN(b->argv); i += strlen(b->raw + i) + 1)
		b->argv[n++] = b->raw + i;
	b->argv[n] = NULL;
	(void)snprintf(b->dir, sizeof(b->dir), "%s", dir);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		(void)snprintf(from, sizeof(from), "%s/%s", template, files[i][0]);
		(void)snprintf(to, sizeof(to), "%s/%s", dir, files[i][1]);
		/* The memory is the very file that asb's clones map: it is in the page cache, or is not, for both. */
		if ((i == 0 && link(from, to) == 0) || copy(from, to) == 0)
			continue;
		return -1;
	}
	return 0;
}

static void on_opened(void *arg)
{
	struct restore *r = arg;

	(void)chan_write(r->stream, put, sizeof(put) - 1);
}

static size_t on_data(void *arg, const void *p, size_t n)
{
	struct restore *r = arg;
	size_t k = n < sizeof(r->seen) - 1 - r->len ? n : sizeof(r->seen) - 1 - r->len;

	memcpy(r->seen + r->len, p, k);
	r->len += k;
	if (!r->asked && memmem(r->seen, r->len, " 201 ", 5)) {
		r->asked = true;
		r->len = 0;
		(void)chan_write(r->stream, get, sizeof(get) - 1);
	} else if (r->asked && memmem(r->seen, r->len, "BARE\n", 5)) {
		r->byte = stats_now() - r->start;
		loop_stop(&r->loop);
	}
	return n;
}

static void on_writable(void *arg)
{
	(void)arg;
}

static void on_closed(void *arg, int error)
{
	struct restore *r = arg;

	(void)error;
	loop_stop(&r->loop);
}

static const struct chan_stream_ops stream_ops = { on_opened, on_data, on_writable, on_closed };

static void on_up(void *arg)
{
	struct restore *r = arg;

	r->hello = stats_now() - r->start;
	if (chan_connect(r->chan, 8080, &stream_ops, r, &r->stream) < 0)
		loop_stop(&r->loop);
}

static void on_down(void *arg, const char *why)
{
	(void)arg;
	(void)why;
}

static void on_limit(struct loop_timer *t)
{
	loop_stop(t->arg);
}

/* ARGV of B with the descriptors THEIRS and STATE, into OUT, whose words are WORDS. */
static void give_fds(const struct bare *b, const int theirs[PORTS], int state, char *out[160],
		     char words[PORTS + 1][64])
{
	int port = 0;
	size_t i = 0;

	for (; b->argv[i]; i++) {
		const char *fd = strstr(b->argv[i], ",fd=");

		out[i] = b->argv[i];
		if (str_starts(b->argv[i], "socket,id=") && fd && port < PORTS) {
			(void)snprintf(words[port], 64, "%.*s,fd=%d", (int)(fd - b->argv[i]),
				       b->argv[i], theirs[port]);
			out[i] = words[port++];
		} else if (str_starts(b->argv[i], "fd:")) {
			(void)snprintf(words[PORTS], 64, "fd:%d", state);
			out[i] = words[PORTS];
		}
	}
	out[i] = NULL;
}

static int spawn(struct bare *b, const int theirs[PORTS], int state, struct proc_child *ret)
{
	char *argv[160], words[PORTS + 1][64];
	int keep[PORTS + 1];
	struct proc_spec s = PROC_SPEC_INIT;
	struct err e = ERR_INIT;
	int r;

	give_fds(b, theirs, state, argv, words);
	memcpy(keep, theirs, PORTS * sizeof(int));
	keep[PORTS] = state;
	s.argv = argv;
	s.cwd = b->dir;
	s.keep = keep;
	s.keep_len = PORTS + 1;
	s.flags = PROC_DEATHSIG;
	s.fd[2] = STDERR_FILENO;
	r = proc_spawn(&s, ret, NULL, &e);
	if (r < 0)
		fprintf(stderr, "bare QEMU: %s\n", e.msg);
	return r;
}

static void wait_for_byte(struct restore *r, int fd)
{
	static const struct chan_ops ops = { .up = on_up, .down = on_down };
	struct loop_timer limit = LOOP_TIMER_INIT;

	limit.fn = on_limit;
	limit.arg = &r->loop;
	loop_arm(&r->loop, &limit, LIMIT_NS);
	if (chan_start(&r->loop, CHAN_HOST, fd, &ops, r, &r->chan) == 0)
		ignore_result(loop_run(&r->loop));
	loop_disarm(&limit);
	chan_free(r->chan);
}

int64_t bare_restore(struct bare *b, int64_t *ret_hello)
{
	struct restore *r = calloc(1, sizeof(*r));
	int ours[PORTS], theirs[PORTS], state, sv[2];
	char path[512], disk[512];
	struct proc_child c;
	int64_t byte = -1;

	(void)snprintf(path, sizeof(path), "%s/disk.template", b->dir);
	(void)snprintf(disk, sizeof(disk), "%s/disk.qcow2", b->dir);
	if (!r || loop_init(&r->loop) < 0 || copy(path, disk) < 0)
		return -1;
	r->byte = r->hello = -1;
	r->start = stats_now();
	for (int i = 0; i < PORTS; i++) {
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0 ||
		    fd_set_nonblock(sv[0], true) < 0)
			return -1;
		ours[i] = sv[0];
		theirs[i] = sv[1];
	}
	(void)snprintf(path, sizeof(path), "%s/base.devices", b->dir);
	state = open(path, O_RDONLY | O_CLOEXEC);
	if (state >= 0 && spawn(b, theirs, state, &c) == 0) {
		wait_for_byte(r, ours[CHANNEL]);
		byte = r->byte;
		*ret_hello = r->hello;
		(void)kill(c.pid, SIGKILL);
		(void)waitpid(c.pid, NULL, 0);
		fd_close(&c.pidfd);
	}
	fd_close(&state);
	for (int i = 0; i < PORTS; i++) {
		fd_close(&ours[i]);
		fd_close(&theirs[i]);
	}
	loop_done(&r->loop);
	free(r);
	return byte;
}
