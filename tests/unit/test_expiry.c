/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/local/expiry.c host/local/vmdir.c host/local/vmfile.c host/local/collect.c host/local/tree.c host/local/template.c
 * host/local/qemu.c host/local/saved.c host/state/?*.c host/backend.c */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../host/local/expiry.h"
#include "../../host/local/saved.h"
#include "../../host/local/vmfile.h"
#include "../../lib/fd.h"
#include "../lib/tap.h"

const struct backend backend_local = { .name = "local" };

#define ID "local-0123456789abcdef"

static char home[] = "/tmp/asb-expiry.XXXXXX", dir[64];

static struct vm_config config(uint64_t max_ms)
{
	return (struct vm_config){ .id = ID,
				   .name = "app",
				   .image = "base",
				   .cpus = 1,
				   .memory_mib = 128,
				   .created_s = 1700000000,
				   .max_duration_ms = max_ms };
}

static void test_of(void)
{
	struct vm_config c = config(0);
	struct vm_status s = { .started_ms = 0 };

	ok(expiry_of(&c, &s) == 0, "no limit: never");
	c.max_duration_ms = 1500;
	ok(expiry_of(&c, &s) == 1700000001500, "counted from its creation");
	s.started_ms = 1700000100000;
	ok(expiry_of(&c, &s) == 1700000101500, "or from its last boot");
}

/* A folder of a suspended sandbox; *RET its descriptor. */
static int suspended(uint64_t max_ms, int64_t started_ms)
{
	struct vm_config c = config(max_ms);
	struct vm_status s = { .state = SANDBOX_SUSPENDED,
			       .accel = "tcg",
			       .started_ms = started_ms };
	int fd, r;

	ignore_result(fd_remove_tree(dir));
	r = mkdir(dir, 0700);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r == 0)
		r = mkdirat(fd, SAVED, 0700);
	if (r == 0)
		r = close(openat(fd, SAVED "/state.json", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	if (r == 0)
		r = close(openat(fd, "lock", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	if (r == 0)
		r = vmfile_write_config(fd, &c);
	if (r == 0)
		r = vmdir_write_status(fd, &s);
	ok_int(r, 0, "a suspended sandbox");
	return fd;
}

static void test_enforce(void)
{
	struct sandbox_info i;
	struct vm_status s;
	AUTO_FD ended = -1;
	AUTO_FD lives = -1;
	AUTO_FD held = -1;
	AUTO_FD lock = -1;
	struct err e = ERR_INIT;

	lives = suspended(3600000, expiry_now());
	expiry_enforce(lives);
	ok(saved_is_there(lives), "one whose time has not passed stays");
	ok(vmdir_info(ID, &i, &e) == 0 && i.state == SANDBOX_SUSPENDED && i.ends_ms > expiry_now(),
	   "and tells when it ends");

	held = suspended(1000, expiry_now() - 2000);
	ok_int(vmdir_lock(held, 0, &lock), 0, "its lock");
	expiry_enforce(held);
	ok(saved_is_there(held), "one that somebody holds is left to him");
	fd_close(&lock);

	ended = suspended(1000, expiry_now() - 2000);
	ok(vmdir_info(ID, &i, &e) == 0 && i.state == SANDBOX_TERMINATED &&
		   !strcmp(i.reason, EXPIRY_REASON) && i.ends_ms == 0,
	   "one whose time has passed is seen as ended at once");
	ok(saved_is_there(ended), "by looking nothing is removed");
	expiry_enforce(ended);
	ok(!saved_is_there(ended), "its memory is");
	vmdir_read_status(ended, &s);
	ok(s.state == SANDBOX_TERMINATED && !strcmp(s.reason, EXPIRY_REASON), "its status says so");
	expiry_enforce(ended);
	ok(vmdir_info(ID, &i, &e) == 0 && i.state == SANDBOX_TERMINATED, "once is enough");
}

static void test_gone(void)
{
	AUTO_FD dirfd = suspended(3600000, expiry_now());
	AUTO_FD one = saved_gone(dirfd);
	struct err e = ERR_INIT;

	ok(one < 0, "nothing is being removed");
	ok_int(renameat(dirfd, SAVED, dirfd, SAVED_GONE), 0, "a removal that stopped there");
	one = saved_gone(dirfd);
	ok(one >= 0, "is for who comes next");
	ok(saved_gone(dirfd) < 0, "for one at a time");
	ok_int(mkdirat(dirfd, SAVED, 0700), 0, "suspended again");
	ok_int(saved_drop(dirfd, &e), 0, "and resumed meanwhile");
	ok_int(fd_remove_children(fd_take(&one)), 0, "whoever is second finds nothing");
	ok(faccessat(dirfd, SAVED_GONE, F_OK, 0) < 0, "nothing is left");
}

int main(void)
{
	char path[64];
	struct err e = ERR_INIT;
	char root[LOCAL_PATH_MAX];

	if (!mkdtemp(home))
		return 1;
	snprintf(path, sizeof(path), "%s/state.json", home);
	setenv("AGENT_SANDBOX_STATE", path, 1);
	if (vmdir_part(VMDIR_ROOT, root, &e) < 0)
		return 1;
	snprintf(dir, sizeof(dir), "%s/local/vms/" ID, home);
	test_of();
	test_enforce();
	test_gone();
	ignore_result(fd_remove_tree(home));
	return tap_done();
}
