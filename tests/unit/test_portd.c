/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: portd/portd.c portd/port.c */
/* asb-portd's own code in a process of its own, real TCP services behind it, a host's channel
 * before it. */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../lib/chan.h"
#include "../../lib/fd.h"
#include "../../portd/port.h"
#include "../../portd/portd.h"
#include "../lib/tap.h"

static struct loop loop;
static struct chan *chan;
static pid_t children[8];
static int n_children;

struct user {
	struct chan_stream *s;
	size_t got, to_send;
	int opened, eofs, closed, error;
	bool bad;
};

static void push(struct user *u)
{
	static const char zeros[65536];

	while (u->to_send) {
		size_t n = u->to_send < sizeof(zeros) ? u->to_send : sizeof(zeros);
		size_t k = chan_write(u->s, zeros, n);

		u->to_send -= k;
		if (k < n)
			return;
	}
	chan_write_end(u->s);
}

static void on_opened(void *arg)
{
	((struct user *)arg)->opened++;
}

static size_t on_data(void *arg, const void *p, size_t n)
{
	struct user *u = arg;

	(void)p;
	u->eofs += n == 0;
	u->got += n;
	return n;
}

static void on_writable(void *arg)
{
	push(arg);
}

static void on_closed(void *arg, int error)
{
	struct user *u = arg;

	u->closed++;
	u->error = error;
}

static const struct chan_stream_ops user_ops = { on_opened, on_data, on_writable, on_closed };
static const struct chan_ops chan_ops = { NULL, NULL, NULL };

#define UNTIL(cond)                                        \
	do {                                               \
		int64_t end_ = loop_now() + 30000000000LL; \
		while (!(cond) && loop_now() < end_)       \
			if (loop_once(&loop, 20) < 0)      \
				break;                     \
	} while (0)

static pid_t child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		return 0;
	}
	children[n_children++] = pid;
	return pid;
}

static int listener(int family, uint16_t *ret_port)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in a4 = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_storage got;
	socklen_t n = sizeof(got);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 ||
	    (family == AF_INET ? bind(fd, (struct sockaddr *)&a4, sizeof(a4))
			       : bind(fd, (struct sockaddr *)&a6, sizeof(a6))) < 0 ||
	    listen(fd, 64) < 0 || getsockname(fd, (struct sockaddr *)&got, &n) < 0)
		return -1;
	*ret_port = ntohs(family == AF_INET ? ((struct sockaddr_in *)&got)->sin_port
					    : ((struct sockaddr_in6 *)&got)->sin6_port);
	return fd;
}

/* Serves each connection in a process: echoes until the end, then says so and closes. EARLY:
 * answers and closes at once, without reading. */
static uint16_t serve(int family, bool early)
{
	uint16_t port = 0;
	int fd = listener(family, &port);

	if (fd < 0 || child() != 0) {
		fd_close(&fd);
		return port;
	}
	(void)signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int c = accept(fd, NULL, NULL);
		static char p[65536];
		ssize_t k;

		if (c < 0 || fork() != 0) {
			fd_close(&c);
			continue;
		}
		while (!early && (k = read(c, p, sizeof(p))) > 0)
			if (fd_write_all(c, p, (size_t)k) < 0)
				_exit(0);
		ignore_result(fd_write_all(c, "bye", 3));
		_exit(0);
	}
}

static void dial(struct user *u, uint16_t port, size_t bytes)
{
	*u = (struct user){ .to_send = bytes };
	ok_int(chan_connect(chan, port, &user_ops, u, &u->s), 0, "connect");
	push(u);
}

static void test_services(void)
{
	static struct user u, many[100];
	uint16_t echo = serve(AF_INET, false), early = serve(AF_INET, true),
		 six = serve(AF_INET6, false), none;
	int fd = listener(AF_INET, &none);
	int64_t t;
	int good = 0;

	fd_close(&fd);
	dial(&u, echo, 100000);
	UNTIL(u.closed);
	ok(u.got == 100003 && u.eofs == 1 && u.error == 0, "an echo and its last words (%zu)",
	   u.got);
	dial(&u, none, 0);
	UNTIL(u.closed);
	ok_int(u.error, -ECONNREFUSED, "nobody listens there");
	if (six) {
		dial(&u, six, 1000);
		UNTIL(u.closed);
		ok(u.got == 1003 && u.error == 0, "a service on ::1 alone is found");
	} else {
		skip("no IPv6 on this machine");
	}
	dial(&u, early, 4 << 20);
	UNTIL(u.closed);
	ok(u.got == 3 && u.eofs == 1, "the answer of one who does not read arrives (%zu)", u.got);
	for (int i = 0; i < 100; i++)
		dial(&many[i], echo, 50000);
	UNTIL((good = 0, many[99].closed && many[0].closed));
	for (int i = 0; i < 100; i++) {
		UNTIL(many[i].closed);
		good += many[i].got == 50003 && many[i].error == 0;
	}
	ok_int(good, 100, "100 at once");
	t = loop_now();
	dial(&u, echo, 64 << 20);
	UNTIL(u.closed);
	t = loop_now() - t;
	ok_int(u.got, (64 << 20) + 3, "64 MiB there and back");
	printf("# %lld MiB/s each way, sanitized\n", 64LL * 1000000000 / (t ? t : 1));
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	ok_int(fd_replace_file(path, text, strlen(text), 0600), 0, name);
}

static void test_find_port(void)
{
	char dir[] = "/tmp/asb-port.XXXXXX", sub[64];
	struct err e = ERR_INIT;
	int fd = -1;

	ok(mkdtemp(dir) != NULL, "folder");
	snprintf(sub, sizeof(sub), "%s/vport0p1", dir);
	ok(mkdir(sub, 0700) == 0, "a port");
	write_file(sub, "name", "asb.boot\n");
	snprintf(sub, sizeof(sub), "%s/vport0p2", dir);
	ok(mkdir(sub, 0700) == 0, "another");
	write_file(sub, "name", "asb.channel\n");
	ok(port_open(dir, dir, "asb.nothing", 20, &fd, &e) == -ENOENT, "not there: %s", e.msg);
	ok(port_open(dir, dir, "asb.channel", 20, &fd, &e) < 0 && e.errnum == EISDIR,
	   "found by its name: %s", e.msg);
	fd_close(&fd);
	ignore_result(fd_remove_tree(dir));
}

int main(void)
{
	int sv[2];
	struct portd *p;

	(void)signal(SIGPIPE, SIG_IGN);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sv) < 0)
		return 1;
	if (child() == 0) {
		(void)close(sv[0]);
		return loop_init(&loop) < 0 || portd_start(&loop, sv[1], &p) < 0 ||
		       loop_run(&loop) < 0;
	}
	(void)close(sv[1]);
	if (loop_init(&loop) < 0)
		return 1;
	ok_int(chan_start(&loop, CHAN_HOST, sv[0], &chan_ops, NULL, &chan), 0, "channel");
	UNTIL(chan_is_up(chan));
	ok(chan_is_up(chan), "asb-portd answers the hello");
	test_services();
	test_find_port();
	chan_free(chan);
	loop_done(&loop);
	for (int i = 0; i < n_children; i++) {
		(void)kill(children[i], SIGKILL);
		(void)waitpid(children[i], NULL, 0);
	}
	return tap_done();
}
