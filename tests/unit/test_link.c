/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/local/link.c host/backend.c */
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_backend.h"
#include "host/local/vm.h"
#include "lib/fd.h"
#include "lib/sock.h"
#include "tap.h"

/* link.sock of a supervisor whose guest has no channel yet: the line that asks. */

static struct vm vm;

bool idle_interrupt(struct vm *v)
{
	(void)v;
	return false;
}

static int say(const char *text)
{
	int fd = -1;

	if (sock_connect("link.sock", &fd) < 0 || fd_write_all(fd, text, strlen(text)) < 0)
		return -1;
	for (int i = 0; i < 3; i++)
		ok(loop_once(&vm.loop, 0) == 0, "a turn");
	return fd;
}

static bool has_work(void)
{
	struct epoll_event ev;

	return epoll_wait(vm.loop.epfd, &ev, 1, 0) != 0;
}

static void ends(int fd, const char *want)
{
	char line[64];
	ssize_t n = recv(fd, line, sizeof(line) - 1, MSG_DONTWAIT);

	line[n > 0 ? n : 0] = '\0';
	ok_str(line, want, "the answer");
	(void)close(fd);
	ok(loop_once(&vm.loop, 0) == 0, "a turn");
}

int main(void)
{
	char home[] = "/tmp/test_link.XXXXXX";
	struct err e = ERR_INIT;
	int fd;

	if (!mkdtemp(home) || chdir(home) < 0)
		return 1;
	vm.phase = VM_BOOTING;
	ok(loop_init(&vm.loop) == 0 && link_start(&vm, &e) == 0, "it listens: %s", e.msg);
	fd = say("CONNECT 80\n");
	ends(fd, "ERR unavailable: the sandbox is not running\n");
	fd = say("CONNECT 0\n");
	ends(fd, "ERR invalid: expected CONNECT <port>\n");

	fd = say("CONNEC");
	ok(!has_work(), "half a line leaves nothing to do");
	ok(fd_write_all(fd, "T 80\n", 5) == 0, "until the rest comes");
	ok(loop_once(&vm.loop, 0) == 0, "a turn");
	ends(fd, "ERR unavailable: the sandbox is not running\n");
	fd = say("CONNEC");
	(void)close(fd);
	ok(loop_once(&vm.loop, 0) == 0 && !has_work(), "half a line and an end");
	link_stop(&vm);
	loop_done(&vm.loop);
	ok(fd_remove_tree(home) == 0, "cleaned up");
	return tap_done();
}
