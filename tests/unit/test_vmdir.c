/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/local/vmdir.c host/local/vmfile.c host/local/collect.c host/local/caplog.c
 * host/local/tree.c host/local/template.c host/local/qemu.c host/local/saved.c host/local/expiry.c host/state/?*.c host/backend.c */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include "../../host/local/caplog.h"
#include "../../host/local/vmdir.h"
#include "../../host/local/vmfile.h"
#include "../../host/state/state.h"
#include "../../lib/fd.h"
#include "../lib/tap.h"

const struct backend backend_local = { .name = "local" };

#define ID1 "local-0123456789abcdef"
#define ID2 "local-ffffffffffffffff"

static char home[] = "/tmp/asb-vmdir.XXXXXX", upper[64];

static struct vm_config config(const char *id)
{
	struct vm_config c = {
		.cpus = 2, .memory_mib = 512, .net = NET_USER, .created_s = 1700000000
	};

	snprintf(c.id, sizeof(c.id), "%s", id);
	snprintf(c.name, sizeof(c.name), "app");
	snprintf(c.image, sizeof(c.image), "base");
	return c;
}

static void test_ids(void)
{
	static const char *const bad[] = { "",
					   "local-",
					   "local-0123456789ABCDEF",
					   "local-0123456789abcde",
					   "local-0123456789abcdef0",
					   "local-../../../../etcx",
					   "aws-0123456789abcdef" };

	ok(vmdir_is_id(ID1), "an id");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(!vmdir_is_id(bad[i]), "not an id: '%s'", bad[i]);
}

static void test_create(void)
{
	struct vm_config c = config(ID1), back;
	struct sandbox_info i;
	struct vm_status s = { .state = SANDBOX_RUNNING, .accel = "tcg", .reason = "a\"b\n" };
	struct err e = ERR_INIT;
	struct stat st;
	char path[LOCAL_PATH_MAX], file[LOCAL_PATH_MAX + 16];
	AUTO_FD dirfd = -1;
	int lock, other;

	ok_int(vmdir_create(&c, &(struct vm_source){ .disk = upper }, &lock, &e), -ENOENT,
	       "nothing is made where there is no folder for it");
	vmdir_collect();
	c.env = cJSON_CreateObject();
	ok(jsn_add_str(c.env, "K", "v=\"1\""), "env");
	ok_int(vmdir_open(ID1, &dirfd, &e), -ENOENT, "not there yet");
	ok_int(vmdir_create(&c, &(struct vm_source){ .disk = upper }, &lock, &e), 0, "create");
	ok_int(vmdir_create(&c, &(struct vm_source){ .disk = upper }, &other, &e), -ENOTEMPTY,
	       "not twice");
	ok_int(vmdir_open(ID1, &dirfd, &e), 0, "open");
	ok(fstat(dirfd, &st) == 0 && (st.st_mode & 0777) == 0700, "the folder is private");
	ok(fstatat(dirfd, "vm.json", &st, 0) == 0 && (st.st_mode & 0777) == 0600, "so is vm.json");
	ok(fstatat(dirfd, "disk.qcow2", &st, 0) == 0 && st.st_size == 300000, "the disk is a copy");
	ok_int(vmdir_read_config(dirfd, &back, &e), 0, "read");
	ok(!strcmp(back.id, ID1) && back.cpus == 2 && back.memory_mib == 512 &&
		   back.net == NET_USER && back.created_s == 1700000000 &&
		   cJSON_Compare(back.env, c.env, true),
	   "what was written");
	vm_config_done(&back);
	vm_config_done(&c);
	ok(vmdir_is_locked(dirfd), "it is locked");
	ok_int(vmdir_lock(dirfd, 0, &other), -EWOULDBLOCK, "by us alone");
	ok_int(vmdir_info(ID1, &i, &e), 0, "info");
	ok_int(i.state, SANDBOX_PENDING, "pending");
	ok_int(vmdir_write_status(dirfd, &s), 0, "status");
	ok_int(vmdir_info(ID1, &i, &e), 0, "info");
	ok(i.state == SANDBOX_RUNNING && !strcmp(i.accel, "tcg") && !strcmp(i.reason, "a\"b\n"),
	   "running");
	fd_close(&lock);
	ok_int(vmdir_info(ID1, &i, &e), 0, "info");
	ok(i.state == SANDBOX_TERMINATED && i.reason[0], "without its lock it has ended (%s)",
	   i.reason);
	ok_int(vmdir_path(ID1, path, &e), 0, "path");
	snprintf(file, sizeof(file), "%s/vm.json", path);
	ok_int(fd_replace_file(file, "{\"id\":", 6, 0600), 0, "a corrupt vm.json");
	ok(vmdir_info(ID1, &i, &e) < 0 && strstr(e.msg, "vm.json"), "is told: %s", e.msg);
	ok_int(vmdir_remove(ID1, &e), 0, "remove");
	ok_int(vmdir_remove(ID1, &e), 0, "again");
}

static int exists(const char *id)
{
	int fd, r = vmdir_open(id, &fd, NULL);

	if (r == 0)
		fd_close(&fd);
	return r == 0;
}

/* What is left of suspensions: half made by one that was killed, and dropped but not removed. */
static void test_rest(void)
{
	struct err e = ERR_INIT;
	AUTO_FD dirfd = -1;
	int lock;

	ok_int(vmdir_open(ID1, &dirfd, &e), 0, "open");
	ok_int(mkdirat(dirfd, "saved.new", 0700), 0, "with a memory that is half written");
	ok_int(mkdirat(dirfd, "saved.gone", 0700), 0, "and one that is half removed");
	vmdir_prune(PRUNE_STALE | PRUNE_DRY, NULL, NULL);
	ok(faccessat(dirfd, "saved.new", F_OK, 0) == 0 &&
		   faccessat(dirfd, "saved.gone", F_OK, 0) == 0,
	   "a dry run removes nothing");
	ok_int(vmdir_lock(dirfd, 0, &lock), 0, "by somebody");
	vmdir_collect();
	ok(faccessat(dirfd, "saved.new", F_OK, 0) == 0, "who is at it");
	ok(faccessat(dirfd, "saved.gone", F_OK, 0) < 0, "of the other nobody is in need");
	fd_close(&lock);
	vmdir_collect();
	ok(faccessat(dirfd, "saved.new", F_OK, 0) < 0, "or is dead: it goes");
}

/* A process that is killed in the middle of creating and after it. */
static void test_collect(void)
{
	struct vm_config c = config(ID1), c2 = config(ID2);
	struct state_record rec = { .name = (char[]){ "app" }, .microvm_id = (char[]){ ID1 } };
	struct err e = ERR_INIT;
	char root[LOCAL_PATH_MAX], hidden[LOCAL_PATH_MAX], aside[LOCAL_PATH_MAX];
	struct utimbuf old = { 1, 1 };
	struct state_record got;
	int lock, lock2, dirfd;

	ok_int(vmdir_create(&c, &(struct vm_source){ .disk = upper }, &lock, &e), 0, "create");
	ok_int(state_add(&rec, &e), 0, "recorded");
	vmdir_collect();
	ok(exists(ID1), "a locked one stays");
	fd_close(&lock);
	vmdir_collect();
	ok(!exists(ID1), "one whose maker was killed before it kept it goes");
	ok(state_get("app", &got, NULL) == -ENOENT, "its name too");
	ok_int(vmdir_create(&c, &(struct vm_source){ .disk = upper }, &lock, &e), 0, "create");
	ok_int(state_add(&rec, &e), 0, "recorded");
	ok_int(vmdir_open(ID1, &dirfd, &e), 0, "open");
	ok_int(vmdir_keep(dirfd), 0, "kept");
	fd_close(&dirfd);
	fd_close(&lock);
	ok_int(vmdir_open(ID1, &dirfd, &e), 0, "open");
	ok_int(mkdirat(dirfd, "branch-" ID2, 0700), 0, "with a copy");
	vmdir_making();
	vmdir_collect();
	ok(faccessat(dirfd, "branch-" ID2, F_OK, 0) == 0, "that somebody may be at");
	vmdir_made();
	vmdir_collect();
	ok(faccessat(dirfd, "branch-" ID2, F_OK, 0) < 0, "and that nobody can be at any more");
	fd_close(&dirfd);
	ok(exists(ID1), "one that was kept and is recorded stays");
	test_rest();
	c2.ephemeral = true;
	ok_int(vmdir_create(&c2, &(struct vm_source){ .disk = upper }, &lock2, &e), 0,
	       "an ephemeral one");
	fd_close(&lock2);
	vmdir_collect();
	ok(!exists(ID2), "whose processes are gone is removed");
	ok(exists(ID1), "the other stays");
	ok_int(state_remove("app", ID1, &e), 0, "forget the record");
	vmdir_collect();
	ok(!exists(ID1), "then it goes too");
	ok_int(vmdir_root(root, &e), 0, "root");
	snprintf(hidden, sizeof(hidden), "%.1000s/.new-" ID1, root);
	snprintf(aside, sizeof(aside), "%.1000s.aside", root);
	ok_int(mkdir(hidden, 0700), 0, "a half-made one");
	ok_int(state_add(&rec, &e), 0, "and a record whose folder is not there");
	vmdir_making();
	vmdir_collect();
	ok(access(hidden, F_OK) == 0, "it is left alone while somebody makes one and it is young");
	ok_int(state_get("app", &got, NULL), 0, "so is the record");
	state_record_done(&got);
	ok_int(rmdir(hidden), 0, "without it");
	vmdir_collect();
	ok_int(state_get("app", &got, NULL), 0, "the record stays as well");
	state_record_done(&got);
	vmdir_made();
	ok_int(rename(root, aside), 0, "nor when the folder of all is missing");
	vmdir_collect();
	ok_int(state_get("app", &got, NULL), 0, "is it forgotten");
	state_record_done(&got);
	ok(access(root, F_OK) < 0, "and no other folder is made");
	ok_int(rename(aside, root), 0, "it is there again");
	vmdir_collect();
	ok_int(state_get("app", &got, NULL), -ENOENT, "until nobody makes one");
	ok_int(mkdir(hidden, 0700), 0, "a half-made one");
	vmdir_making();
	ok_int(utime(hidden, &old), 0, "is old");
	vmdir_collect();
	ok(access(hidden, F_OK) < 0, "it goes in any case");
	vmdir_made();
	ok_int(mkdir(hidden, 0700), 0, "a half-made one");
	vmdir_collect();
	ok(access(hidden, F_OK) < 0, "is removed at once when nobody makes one");
}

/* Removing is one step: what is left of a removal that was killed is no sandbox, and goes. */
static void test_remove(void)
{
	struct vm_config c = config(ID1);
	char root[LOCAL_PATH_MAX], gone[LOCAL_PATH_MAX];
	struct err e = ERR_INIT;
	int lock, other;
	AUTO_FD dirfd = -1;

	ok_int(vmdir_create(&c, &(struct vm_source){ .disk = upper }, &lock, &e), 0, "create");
	ok_int(vmdir_open(ID1, &dirfd, &e), 0, "open");
	ok_int(vmdir_remove(ID1, &e), 0, "remove");
	fd_close(&lock);
	ok_int(vmdir_lock(dirfd, 0, &other), -ENOENT,
	       "nobody can take the lock of one that is gone");
	ok_int(vmdir_root(root, &e), 0, "root");
	snprintf(gone, sizeof(gone), "%.1000s/.old-" ID1, root);
	ok_int(mkdir(gone, 0700), 0, "what a killed removal left");
	vmdir_collect();
	ok(access(gone, F_OK) < 0, "goes");
}

/* Who waits for the lock of a sandbox that is removed under it. */
static void test_lock_removed(void)
{
	struct vm_config c = config(ID1);
	struct err e = ERR_INIT;
	int lock, other, status = -1, ready[2];
	pid_t pid;
	char byte = 0;

	ok_int(vmdir_create(&c, &(struct vm_source){ .disk = upper }, &lock, &e), 0, "create");
	ok_int(pipe(ready), 0, "pipe");
	pid = fork();
	if (pid == 0) {
		AUTO_FD dirfd = -1;

		fd_close(&lock);
		if (vmdir_open(ID1, &dirfd, NULL) < 0 || write(ready[1], "", 1) != 1)
			_exit(2);
		_exit(vmdir_lock(dirfd, 10000000000, &other) == -ENOENT ? 0 : 1);
	}
	ok(read(ready[0], &byte, 1) == 1, "another waits for it");
	usleep(100000);
	ok_int(vmdir_remove(ID1, &e), 0, "remove");
	fd_close(&lock);
	ok(waitpid(pid, &status, 0) == pid && status == 0,
	   "it is told that there is none any more");
	fd_close(&ready[0]);
	fd_close(&ready[1]);
}

static void test_full_disk(void)
{
	struct vm_config c = config(ID1);
	struct err e = ERR_INIT;
	int lock;

	ok(vmdir_create(&c, &(struct vm_source){ .disk = "/nonexistent/upper.qcow2" }, &lock, &e) <
		   0,
	   "no disk to copy: %s", e.msg);
	ok(!exists(ID1), "nothing remains");
	vmdir_collect();
}

static void test_caplog(void)
{
	struct caplog l;
	char line[64];
	AUTO_BUF b;
	AUTO_FD dirfd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	buf_init(&b, 1 << 20);
	ok_int(caplog_open(&l, dirfd, "log", 4096), 0, "open");
	for (int i = 0; i < 10000; i++) {
		snprintf(line, sizeof(line), "line %d\n", i);
		caplog_write(&l, line, strlen(line));
	}
	ok_int(fd_read_file(dirfd, "log", &b), 0, "read");
	ok(b.len > 1024 && b.len <= 4096, "the log keeps to its cap (%zu)", b.len);
	ok(!strncmp(b.p, "line ", 5) && b.len >= 10 && !strcmp(b.p + b.len - 10, "line 9999\n"),
	   "whole lines, the newest last");
	caplog_close(&l);
}

int main(void)
{
	char path[64];
	static char zeros[300000];

	if (!mkdtemp(home))
		return 1;
	snprintf(path, sizeof(path), "%s/state.json", home);
	snprintf(upper, sizeof(upper), "%s/upper", home);
	setenv("AGENT_SANDBOX_STATE", path, 1);
	if (fd_replace_file(upper, zeros, sizeof(zeros), 0600) < 0)
		return 1;
	test_ids();
	test_create();
	test_collect();
	test_remove();
	test_lock_removed();
	test_full_disk();
	test_caplog();
	ignore_result(fd_remove_tree(home));
	return tap_done();
}
