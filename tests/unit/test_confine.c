/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: agentd/confine.c agentd/confine_caps.c agentd/confine_deny.c */
#include "../../agentd/confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../lib/buf.h"
#include "../../lib/fd.h"
#include "../../lib/loop.h"
#include "../lib/tap.h"

/* The filters alone, on processes of this test: what they deny, who answers, and what is left behind. The rules are tried one
 * by one by tests/guest/agentd_seccomp.py. */

static struct loop loop;
static struct err e;

struct tally {
	const char *profile, *call;
	uint64_t n;
};

static void add(void *arg, const char *profile, const char *call, uint64_t n)
{
	struct tally *t = arg;

	if (!strcmp(profile, t->profile) && !strcmp(call, t->call))
		t->n += n;
}

static uint64_t denials(const char *profile, const char *call)
{
	struct tally t = { profile, call, 0 };

	confine_each_denial(add, &t);
	return t.n;
}

static unsigned descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n;
}

/* Runs FN confined, with the loop; its exit status, or -1. */
static int confined(enum confine_profile p, int (*fn)(void))
{
	struct confine c;
	pid_t pid;
	int status = -1, turns = 0;

	if (confine_prepare(&c, true, p, &e) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		if (confine_child_first(&c) < 0 || confine_child_last(&c) < 0)
			_exit(99);
		raise(SIGSTOP); /* stands for the end of proc_spawn */
		_exit(fn());
	}
	if (pid < 0 || waitpid(pid, &status, WUNTRACED) < 0)
		return -1;
	confine_started(&c);
	(void)kill(pid, SIGCONT);
	while (waitpid(pid, &status, WNOHANG) == 0 && turns++ < 10000)
		if (loop_once(&loop, 5) < 0)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int try_acct(void)
{
	return syscall(SYS_acct, (char *)1) < 0 ? errno : 0;
}

static int try_keyctl(void)
{
	return syscall(SYS_keyctl, -1, 0, 0, 0, 0) < 0 ? errno : 0;
}

static int try_unshare(void)
{
	return unshare(CLONE_NEWUSER) < 0 ? errno : 0;
}

static int try_clone3(void)
{
	return syscall(SYS_clone3, NULL, 0) < 0 ? errno : 0;
}

static int try_packet(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0) < 0 ? errno : 0;
}

static int try_gain(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
}

static int have_admin(void)
{
	return prctl(PR_CAPBSET_READ, 21 /* CAP_SYS_ADMIN */, 0, 0, 0);
}

static int flood(void)
{
	for (int i = 0; i < 2000; i++)
		if (syscall(SYS_acct, (char *)1) == 0 || errno != EPERM)
			return 1;
	return 0;
}

static void test_denials(void)
{
	bool counts = confine_counts();
	uint64_t before = denials("default", "acct");

	ok_int(confined(CONFINE_DEFAULT, try_acct), EPERM, "default: acct is EPERM");
	ok_int(denials("default", "acct") - before, counts, "and counted once");
	ok_int(confined(CONFINE_DEFAULT, try_keyctl), ENOSYS, "default: keyctl is ENOSYS");
	ok_int(denials("default", "keyctl"), counts, "and counted");
	ok_int(confined(CONFINE_DEFAULT, try_unshare), 0, "default: namespaces are allowed");
	ok_int(confined(CONFINE_DEFAULT, try_gain), 0, "default: no_new_privs is not set");
	ok_int(confined(CONFINE_DEFAULT, have_admin), 1, "default: capabilities are as they were");
	ok_int(confined(CONFINE_RESTRICTED, try_acct), EPERM, "restricted: acct is EPERM");
	ok_int(confined(CONFINE_RESTRICTED, try_unshare), EPERM,
	       "restricted: namespaces are EPERM");
	ok_int(denials("restricted", "unshare"), counts, "and counted under their profile");
	ok_int(confined(CONFINE_RESTRICTED, try_clone3), ENOSYS, "restricted: clone3 is ENOSYS");
	ok_int(confined(CONFINE_RESTRICTED, try_packet), EPERM,
	       "restricted: packet sockets are EPERM");
	ok_int(confined(CONFINE_RESTRICTED, try_gain), 1, "restricted: no_new_privs is set");
	ok_int(confined(CONFINE_RESTRICTED, have_admin), 0,
	       "restricted: the bounding set is small");
	ok_int(confined(CONFINE_NONE, try_unshare), 0, "none: allowed");
}

/* The child of a flood must not keep the loop from its other work. */
static int ticks;

static void tick(struct loop_timer *t)
{
	ticks++;
	loop_arm(&loop, t, 1000000);
}

static void test_flood(void)
{
	struct loop_timer t = { .fn = tick };
	uint64_t before = denials("default", "acct");

	loop_arm(&loop, &t, 0);
	ok_int(confined(CONFINE_DEFAULT, flood), 0, "2000 denials, each answered with EPERM");
	loop_disarm(&t);
	ok_int(denials("default", "acct") - before, confine_counts() ? 2000 : 0, "each is counted");
	ok(!confine_counts() || ticks > 50, "and the loop has done other work meanwhile (%d times)",
	   ticks);
}

static void test_leak(void)
{
	struct confine c = { CONFINE_NONE, false };
	unsigned fds;

	ignore_result(loop_once(&loop, 0));
	fds = descriptors();
	ok_int(confine_prepare(&c, false, CONFINE_NONE, &e), 0, "without a wish");
	ok_str(confine_name(c.profile), "default", "it is default");
	for (int i = 0; i < 20; i++)
		ignore_result(confined(CONFINE_DEFAULT, try_gain));
	for (int i = 0; i < 20 && descriptors() != fds; i++)
		ignore_result(loop_once(&loop, 10));
	ok_int(descriptors(), fds, "listeners go with the last process");
}

static int worker_execs(void)
{
	char *argv[] = { "true", NULL };

	if (confine_worker() < 0)
		return 100;
	(void)execv("/bin/true", argv);
	return errno;
}

static int worker_forks(void)
{
	if (confine_worker() < 0)
		return 100;
	return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) < 0 ? errno : 0;
}

static int worker_connects(void)
{
	if (confine_worker() < 0)
		return 100;
	return socket(AF_UNIX, SOCK_STREAM, 0) < 0 ? errno : 0;
}

static int worker_works(void)
{
	AUTO_BUF b = { .cap = 1 << 20 };
	char name[] = "/tmp/confine-XXXXXX";
	int fd;

	if (confine_worker() < 0)
		return 100;
	fd = mkstemp(name);
	if (fd < 0 || fchown(fd, 12, 12) < 0 || fchmod(fd, 0400) < 0 ||
	    fd_read_file(AT_FDCWD, name, &b) < 0 || unlink(name) < 0 || mkdir(name, 0700) < 0 ||
	    rmdir(name) < 0)
		return errno;
	return 0;
}

static void test_worker(void)
{
	ok_int(confined(CONFINE_NONE, worker_execs), EPERM, "worker: execve is EPERM");
	ok_int(confined(CONFINE_NONE, worker_forks), EPERM, "worker: clone is EPERM");
	ok_int(confined(CONFINE_NONE, worker_connects), EPERM, "worker: socket is EPERM");
	ok_int(confined(CONFINE_NONE, worker_works), 0, "worker: files and owners can be changed");
}

int main(void)
{
	enum confine_profile p;

	ok_int(confine_parse("restricted", &p), 0, "a name");
	ok_int(p, CONFINE_RESTRICTED, "is understood");
	ok_int(confine_parse("Default", &p), -EINVAL, "another is not");
	if (loop_init(&loop) < 0)
		return 1;
	confine_start(&loop);
	if (!confine_can(CONFINE_DEFAULT)) {
		ok(confine_prepare(&(struct confine){ 0 }, true, CONFINE_DEFAULT, &e) < 0,
		   "what is impossible is refused");
		skip("no filters without no_new_privs here");
		return tap_done();
	}
	test_denials();
	test_flood();
	test_leak();
	test_worker();
	confine_stop();
	ok(confine_prepare(&(struct confine){ 0 }, true, CONFINE_RESTRICTED, &e) < 0,
	   "what is impossible is refused");
	loop_done(&loop);
	return tap_done();
}
