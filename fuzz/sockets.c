/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/local/link.c host/local/ctl.c host/backend.c */
/*
 * What others of the same user say on link.sock and ctl.sock of a supervisor. The first byte: on which, and how the sandbox is;
 * the second: in pieces of which length. On link.sock a socket comes along. What the supervisor would do is noted only, and each
 * operation is answered once, also to a client that has gone.
 */
#include <errno.h>
#include <sys/socket.h>

#include "fuzz/confined.h"
#include "fuzz/fuzz.h"
#include "host/local/vm.h"
#include "lib/sock.h"

const struct backend backend_local = { .name = "local" };

#define HOME  "build/fuzz/sockets.d"
#define TURNS 16

static struct vm vm;
static vm_answer_fn *waiting; /* of the operation under way */
static void *waiting_arg;
static int holds;

/* --- what the two ask for --- */

static void asked(vm_answer_fn *answer, void *arg)
{
	const struct err busy = { .code = ERR_CONFLICT, .msg = "busy" };

	if (waiting) {
		answer(arg, &busy);
		return;
	}
	waiting = answer;
	waiting_arg = arg;
}

void life_suspend(struct vm *v, vm_answer_fn *answer, void *arg)
{
	(void)v;
	asked(answer, arg);
}

void life_resume(struct vm *v, vm_answer_fn *answer, void *arg)
{
	(void)v;
	asked(answer, arg);
}

void life_branch(struct vm *v, const char *name, unsigned how, vm_answer_fn *answer, void *arg)
{
	(void)v;
	if (!name || how > (BRANCH_SYNC | BRANCH_DISK))
		abort();
	asked(answer, arg);
}

void life_power_off(struct vm *v, int64_t grace_ns, vm_answer_fn *answer, void *arg)
{
	(void)v;
	if (grace_ns < 0 || grace_ns > 600LL * 1000000000)
		abort();
	asked(answer, arg);
}

void life_remove(struct vm *v, vm_answer_fn *answer, void *arg)
{
	(void)v;
	asked(answer, arg);
}

void idle_hold(struct vm *v, bool on)
{
	(void)v;
	holds += on ? 1 : -1;
	if (holds < 0)
		abort();
}

bool idle_interrupt(struct vm *v)
{
	return v->phase == VM_SUSPENDING;
}

/* --- */

static void turn(void)
{
	if (loop_once(&vm.loop, 0) < 0)
		abort();
}

static void answer(void)
{
	const struct err done = ERR_INIT;
	vm_answer_fn *fn = waiting;

	waiting = NULL;
	if (fn)
		fn(waiting_arg, &done);
}

static bool start(void)
{
	int top = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err e = ERR_INIT;

	if (!fuzz_confine("build/fuzz"))
		return false;
	(void)mkdir(HOME, 0755);
	if (chdir(HOME) < 0 || loop_init(&vm.loop) < 0 || link_start(&vm, &e) < 0 ||
	    ctl_start(&vm, &e) < 0 || fchdir(top) < 0)
		abort();
	(void)close(top);
	return true;
}

static void say(int fd, const uint8_t *p, size_t n, bool end)
{
	int pair[2] = { -1, -1 };
	bool gone = false;

	if (end && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	for (size_t at = 2, step = p[1] + 1u; at < n && !gone; at += step) {
		size_t k = n - at < step ? n - at : step;

		if (end && at == 2)
			gone = sock_send_fd(fd, p + at, k, pair[0]) < 0;
		else
			gone = send(fd, p + at, k, MSG_DONTWAIT | MSG_NOSIGNAL) < 0;
		turn();
		if (p[0] & 0x20)
			answer();
	}
	for (int i = 0; i < 2; i++)
		if (pair[i] >= 0)
			(void)close(pair[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	int fd;

	if (!fuzz_started(start) || n < 2 || n > 60000)
		return 0;
	vm.phase = (enum vm_phase)((p[0] >> 1) % (VM_ENDED + 1));
	if (sock_connect(p[0] & 1 ? HOME "/link.sock" : HOME "/ctl.sock", &fd) < 0)
		abort();
	turn();
	say(fd, p, n, p[0] & 1 && p[0] & 0x40);
	if (p[0] & 0x10) {
		(void)close(fd); /* before the answer */
		turn();
		answer();
	} else {
		answer();
		turn();
		(void)close(fd);
	}
	link_channel_up(&vm);
	link_cut(&vm);
	for (int i = 0; i < TURNS; i++)
		turn();
	if (waiting || holds)
		abort();
	return 0;
}
