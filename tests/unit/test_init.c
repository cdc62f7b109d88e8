/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: init/cmdline.c init/sup.c init/cgroup.c init/find.c init/reap.c */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init/cgroup.h"
#include "init/cmdline.h"
#include "init/find.h"
#include "init/reap.h"
#include "init/sup.h"
#include "lib/fd.h"
#include "lib/hostname.h"
#include "tap.h"

#define MIB (1ULL << 20)

static void test_cmdline(void)
{
	struct cmdline c;
	struct err e = ERR_INIT;
	static const char *const bad[] = {
		"asb.hostname=",
		"asb.hostname=a_b",
		"asb.hostname=-a",
		"asb.net=tap",
		"asb.net=",
		"asb.time=",
		"asb.time=now",
		"asb.time=-1",
		"asb.time=1.",
		"asb.time=99999999999",
		"quiet asb.time=1 asb.net=x",
	};

	ok_int(cmdline_parse("", &c, &e), 0, "an empty line");
	ok(!c.ours && c.net == CMDLINE_NET_NONE && !c.hostname[0] && c.time.tv_sec == 0,
	   "holds nothing");
	ok_int(cmdline_parse("panic=-1 quiet xasb.net=user root=/dev/vda\n", &c, &e), 0,
	       "words of others");
	ok(!c.ours && c.net == CMDLINE_NET_NONE, "are passed over");
	ok_int(cmdline_parse(" quiet  asb.hostname=box-7\tasb.net=user asb.time=1767225600.25 "
			     "asb.new=1 ro\n",
			     &c, &e),
	       0, "ours");
	ok(c.ours && c.net == CMDLINE_NET_USER && !strcmp(c.hostname, "box-7"), "name and network");
	ok(c.time.tv_sec == 1767225600 && c.time.tv_nsec == 250000000, "time with its fraction");
	ok_int(cmdline_parse("asb.net=user asb.net=none", &c, &e), 0, "twice");
	ok_int(c.net, CMDLINE_NET_NONE, "the last one counts");
	ok_int(cmdline_parse("quiet -- asb.net=user", &c, &e), 0, "behind --");
	ok(!c.ours, "are init's arguments");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		c.net = CMDLINE_NET_USER;
		ok(cmdline_parse(bad[i], &c, &e) < 0 && c.net == CMDLINE_NET_USER,
		   "refused, untouched: %s", bad[i]);
	}
	ok(strstr(e.msg, "asb.net=x") != NULL, "the message quotes the word: %s", e.msg);
}

static void test_long_words(void)
{
	char line[1024];
	struct cmdline c;

	memset(line, 'a', sizeof(line));
	memcpy(line, "asb.hostname=", 13);
	line[13 + HOSTNAME_LEN_MAX] = '\0';
	ok_int(cmdline_parse(line, &c, NULL), 0, "the longest name");
	ok_int(strlen(c.hostname), HOSTNAME_LEN_MAX, "is kept whole");
	line[13 + HOSTNAME_LEN_MAX] = 'a';
	line[13 + HOSTNAME_LEN_MAX + 1] = '\0';
	ok(cmdline_parse(line, &c, NULL) < 0, "one letter more");
	line[13 + HOSTNAME_LEN_MAX + 1] = 'a';
	line[1023] = '\0';
	ok(cmdline_parse(line, &c, NULL) < 0, "a word of 1000 bytes");
}

static void hosts(const char *in, const char *want, const char *what)
{
	AUTO_BUF b;

	buf_init(&b, 4096);
	ok_int(hostname_edit_hosts(in, "box", &b), 0, what);
	ok_str(b.p, want, what);
}

static void test_hosts(void)
{
	hosts("",
	      "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\tbox\n",
	      "no file");
	hosts("127.0.0.1 localhost", "127.0.0.1 localhost\n127.0.1.1\tbox\n",
	      "no newline at the end");
	hosts("127.0.0.1 l\n127.0.1.1 old\n::1 l\n", "127.0.0.1 l\n127.0.1.1\tbox\n::1 l\n",
	      "the old name goes");
	hosts("127.0.1.1\tbox\n", "127.0.1.1\tbox\n", "the same name");
	hosts("# 127.0.1.1 x\n127.0.1.10 y\n", "# 127.0.1.1 x\n127.0.1.10 y\n127.0.1.1\tbox\n",
	      "others that look like it");
	hosts("127.0.1.1 a\n127.0.1.1 b\n", "127.0.1.1\tbox\n127.0.1.1 b\n", "only the first");
	ok(hostname_valid("a") && hostname_valid("A-1") && !hostname_valid("") &&
		   !hostname_valid("a.b") && !hostname_valid("a-"),
	   "names");
}

static void test_backoff(void)
{
	int64_t b = 0, sum = 0;

	b = sup_next_backoff(0, 0);
	ok_int(b, SUP_BACKOFF_MIN_NS, "the first wait");
	for (int i = 0; i < 20; i++) {
		int64_t next = sup_next_backoff(b, 1000);

		if (next < b || next > SUP_BACKOFF_MAX_NS)
			sum++;
		b = next;
	}
	ok(sum == 0 && b == SUP_BACKOFF_MAX_NS, "doubles up to the longest");
	ok_int(sup_next_backoff(b, SUP_GOOD_NS), SUP_BACKOFF_MIN_NS,
	       "and begins anew after a good life");
	ok_int(sup_next_backoff(b, SUP_GOOD_NS - 1), SUP_BACKOFF_MAX_NS,
	       "but not after one that was too short");
}

static void test_limits(void)
{
	static const uint64_t sizes[] = { 1, 32, 64, 128, 256, 512, 1024, 16384, 1 << 20 };
	struct cgroup_limits l;
	bool good = true;

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		l = cgroup_limits_for(sizes[i] * MIB, 4194304, 2000);
		good = good && l.work_bytes > 0 && l.work_bytes < sizes[i] * MIB &&
		       l.work_bytes >= sizes[i] * MIB / 2;
	}
	ok(good, "the workload gets at least half of any memory, and never all");
	ok_int(l.system_low, 256 * MIB, "the reserve has an upper end");
	ok_int(cgroup_limits_for(16384 * MIB, 4194304, 1840).work_pids, 1656,
	       "nine tenths of the threads");
	ok_int(cgroup_limits_for(16384 * MIB, 1000, 5000).work_pids, 900,
	       "or of the process numbers");
	ok_int(cgroup_limits_for(256 * MIB, 4194304, 5000).work_pids, 1024,
	       "or four thousand for each GiB");
	ok_int(cgroup_limits_for(256 * MIB, 1, 1).work_pids, 1, "and never none");
}

/* --- supervision: a script that notifies, and one that dies --- */
static struct loop loop;
static struct sup sup;
static int ready_calls;
static char late[64];

static void on_ready(void *arg, const char *name)
{
	(void)arg;
	ready_calls++;
	(void)snprintf(late, sizeof(late), "%s", name ? name : "");
}

static void on_ended(void *arg, pid_t pid, int status)
{
	(void)arg;
	(void)sup_exited(&sup, pid, status);
}

static void on_signal(void *arg, const void *si)
{
	(void)arg;
	(void)si;
	while (reap_children(on_ended, NULL) == REAP_MORE)
		;
}

static bool wait_state(int i, enum sup_state want, int ms)
{
	int64_t end = loop_now() + ms * 1000000LL;

	while (sup.service[i].state != want && loop_now() < end)
		if (loop_once(&loop, 10) < 0)
			return false;
	return sup.service[i].state == want;
}

static void write_script(const char *path, const char *text)
{
	ok_int(fd_replace_file_lazy(path, text, strlen(text), 0755), 0, "a script");
}

static void test_sup(void)
{
	char dir[] = "/tmp/asb-test-init.XXXXXX", a[64], b[64], none[64];
	static char path_word[] = "PATH=/usr/bin:/bin", stale[] = "ASB_NOTIFY_FD=77";
	static char *env[] = { path_word, stale, NULL };
	sigset_t set;
	pid_t first;

	if (!mkdtemp(dir))
		abort();
	(void)snprintf(a, sizeof(a), "%s/a", dir);
	(void)snprintf(b, sizeof(b), "%s/b", dir);
	(void)snprintf(none, sizeof(none), "%s/none", dir);
	write_script(a, "#!/bin/sh\neval \"printf 1 >&$ASB_NOTIFY_FD\"\nexec sleep 1000\n");
	write_script(b, "#!/bin/sh\n[ -n \"$ASB_INIT_ID\" ] || exit 9\n"
			"[ -e ${0%b}go ] || exit 3\n"
			"eval \"printf 1 >&$ASB_NOTIFY_FD\"\nexec sleep 1000\n");
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	if (loop_init(&loop) < 0 || loop_signals(&loop, &set, on_signal, NULL) < 0)
		abort();
	sup = (struct sup){ .env = env, .cgroup_fd = -1, .ready = on_ready };
	sup_init(&sup, &loop);
	ok_int(sup_add(&sup, "a", a), 0, "a service");
	ok_int(sup_add(&sup, "b", b), 0, "another");
	sup_start(&sup);
	ok(wait_state(0, SUP_UP, 10000), "one that notifies is up");
	ok(wait_state(1, SUP_BACKOFF, 10000), "one that dies backs off");
	ok_int(ready_calls, 0, "not all are ready");
	{
		char go[64];

		(void)snprintf(go, sizeof(go), "%s/go", dir);
		write_script(go, "");
	}
	ok(wait_state(1, SUP_UP, 20000), "and is started again until it is up");
	ok(ready_calls == 1 && !late[0], "ready is told once");
	first = sup.service[0].child.pid;
	(void)kill(first, SIGKILL);
	ok(wait_state(0, SUP_BACKOFF, 10000) && wait_state(0, SUP_UP, 10000),
	   "killed, it comes again");
	ok(sup.service[0].child.pid != first && ready_calls == 1,
	   "as another process, and ready is not told twice");
	sup_stop(&sup);
	ok(wait_state(0, SUP_DOWN, 10000) && wait_state(1, SUP_DOWN, 10000) && !sup_running(&sup),
	   "stopped, all go down");
	ok(!sup_exited(&sup, 1, 0), "a stranger's end is not ours");
	for (int i = sup.n; i < SUP_MAX; i++)
		ok_int(sup_add(&sup, "c", none), 0, "room for one more");
	ok_int(sup_add(&sup, "d", none), -ENFILE, "the table has a cap");
	sup.service[2].state = SUP_DOWN;
	sup_start(&sup);
	ok_int(sup.service[2].state, SUP_BACKOFF, "a program that is not there is tried again");
	sup_stop(&sup);
	ok(wait_state(0, SUP_DOWN, 10000) && wait_state(1, SUP_DOWN, 10000) &&
		   wait_state(2, SUP_DOWN, 1000),
	   "down again");
	loop_done(&loop);
	ok_int(fd_remove_tree(dir), 0, "cleaned up");
}

static void test_find(void)
{
	char out[4096], tiny[4];

	ok_int(setenv("PATH", "/nonexistent:/bin", 1), 0, "PATH");
	ok(find_program("sh", out, sizeof(out)) == 0 && !strcmp(out, "/bin/sh"), "along PATH: %s",
	   out);
	ok_int(find_program("no-such-program", out, sizeof(out)), -ENOENT, "not there");
	ok(find_program("sh", tiny, sizeof(tiny)) < 0, "no room for the answer");
}

int main(void)
{
	test_cmdline();
	test_long_words();
	test_hosts();
	test_backoff();
	test_limits();
	test_sup();
	test_find();
	return tap_done();
}
