/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/aws/artefact.c */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/aws/artefact.h"
#include "lib/fd.h"
#include "lib/str.h"
#include "tap.h"

static char dir[64];

static const char *at(const char *name)
{
	static char path[256];

	ignore_result(str_format(path, sizeof(path), "%s/%s", dir, name));
	return path;
}

static void put(const char *name, const char *text, mode_t mode, time_t mtime)
{
	const struct timeval t[2] = { { mtime, 0 }, { mtime, 0 } };

	ok_int(fd_replace_file(at(name), text, strlen(text), mode), 0, name);
	ok_int(utimes(at(name), t), 0, "  with a time of its own");
}

/* "name mode size;" of each entry, in order. */
static const char *listing(const struct buf *zip)
{
	static char text[1024];
	struct archive *a = archive_read_new();
	struct archive_entry *e;
	size_t n = 0;

	text[0] = '\0';
	ok(a && archive_read_support_format_zip(a) == ARCHIVE_OK &&
		   archive_read_open_memory(a, zip->p, zip->len) == ARCHIVE_OK,
	   "a zip");
	while (archive_read_next_header(a, &e) == ARCHIVE_OK) {
		ignore_result(str_format(text + n, sizeof(text) - n, "%s %o %lld;",
					 archive_entry_pathname(e), (unsigned)archive_entry_perm(e),
					 (long long)archive_entry_size(e)));
		n = strlen(text);
	}
	archive_read_free(a);
	return text;
}

static void test_keys(void)
{
	const char *sha = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	static const char *const other[] = { "microvm-images/app-0123456789abcde.zip",
					     "microvm-images/app-0123456789abcdef0.zip",
					     "microvm-images/app-0123456789abcdeF.zip",
					     "microvm-images/app-0123456789abcdef.zip.",
					     "microvm-images/app-2-0123456789abcdef.zip",
					     "microvm-images/app_0123456789abcdef.zip",
					     "microvm-images/app",
					     "microvm-images/",
					     "else/app-0123456789abcdef.zip" };
	char key[ARTEFACT_KEY_MAX];

	ok_int(artefact_key("app", sha, key), 0, "a key");
	ok_str(key, "microvm-images/app-0123456789abcdef.zip", "of name and hash");
	ok(artefact_is_key("app", key) && !artefact_is_key("ap", key), "is one of that name");
	for (size_t i = 0; i < ARRAY_LEN(other); i++)
		ok(!artefact_is_key("app", other[i]), "%s is none", other[i]);
}

/* In a process of its own, for which openat2 fails as without it, or as a filter of containers lets it fail. */
static void test_no_openat2(int why)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)why),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { ARRAY_LEN(code), code };
	struct err e = ERR_INIT;
	struct buf zip;
	int status = -1, r;
	pid_t pid = fork();

	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
			_exit(77);
		r = artefact_zip(dir, NULL, &zip, NULL, &e);
		_exit(!(r < 0 && e.code == ERR_UNSUPPORTED && strstr(e.msg, "link is a symbolic") &&
			strstr(e.msg, "openat2") && strstr(e.msg, ".dockerignore")));
	}
	ok(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
	   "openat2 fails with %d: told as what cannot be done (%d)", why, status);
}

int main(void)
{
	static const char *const out[] = { "/etc/passwd", "../../../../../../etc/passwd",
					   "/proc/self/exe" };
	const volatile sig_atomic_t yes = 1;
	struct buf one, two, names;
	struct err e = ERR_INIT;

	test_keys();
	ignore_result(str_format(dir, sizeof(dir), "/tmp/test_zip.XXXXXX"));
	ok(mkdtemp(dir), "a folder");
	ok_int(mkdir(at("sub"), 0700), 0, "sub");
	ok_int(mkdir(at(".git"), 0700), 0, ".git");
	ok_int(mkdir(at("node_modules"), 0700), 0, "node_modules");
	put("b", "bb", 0600, 100);
	put("a.sh", "#!/bin/sh\n", 0700, 200);
	put("sub/c.log", "x", 0644, 300);
	put("sub/keep.log", "x", 0644, 300);
	put("sub/d", "ddd", 0644, 300);
	put(".git/config", "x", 0644, 300);
	put(".env", "SECRET", 0644, 300);
	put(".env.local", "SECRET", 0644, 300);
	put("node_modules/m", "x", 0644, 300);
	put(".dockerignore",
	    "# comment\n\n/node_modules/\n**/*.log\n!sub/keep.log\n.dockerignore\nDockerfile\n",
	    0644, 1);
	put("Dockerfile", "FROM", 0644, 1);
	ok(symlink("b", at("link")) == 0 && symlink("sub", at("folder")) == 0, "links");
	buf_init(&names, ARTEFACT_NAMES_MAX);
	ok_int(artefact_zip(dir, NULL, &one, &names, &e), 0, "packed");
	ok_str(listing(&one),
	       "Dockerfile 644 4;a.sh 755 10;b 644 2;link 644 2;sub/d 644 3;sub/keep.log 644 1;",
	       "sorted, with fixed modes; links to files followed; what is ignored is not there");
	ok(artefact_has(&names, "sub/d") && artefact_has(&names, "sub") &&
		   artefact_has(&names, "b"),
	   "and told: files and their folders");
	ok(!artefact_has(&names, "su") && !artefact_has(&names, "sub/c.log") &&
		   !artefact_has(&names, ".env") && !artefact_has(&names, "folder"),
	   "and nothing else");
	buf_done(&names);
	put("b", "bb", 0640, 9999);
	put("a.sh", "#!/bin/sh\n", 0755, 1);
	ok_int(artefact_zip(dir, NULL, &two, NULL, &e), 0,
	       "packed again, with other times and modes");
	ok(one.len == two.len && memcmp(one.p, two.p, one.len) == 0, "gives the same bytes");
	buf_done(&two);
	put("b", "bc", 0640, 100);
	ok_int(artefact_zip(dir, NULL, &two, NULL, &e), 0, "with another content");
	ok(one.len != two.len || memcmp(one.p, two.p, one.len) != 0, "gives others");
	buf_done(&two);
	ok(symlink("../b", at("sub/up")) == 0 && artefact_zip(dir, NULL, &two, NULL, &e) == 0,
	   "a link upwards within the folder");
	buf_done(&two);
	for (size_t i = 0; i < ARRAY_LEN(out); i++) {
		ok(symlink(out[i], at("sub/out")) == 0, "a link to %s", out[i]);
		e = (struct err)ERR_INIT;
		ok(artefact_zip(dir, NULL, &two, NULL, &e) < 0 && e.code == ERR_INVALID &&
			   strstr(e.msg, "sub/out is a symbolic link out of the folder"),
		   "is refused: %s", e.msg);
		buf_done(&two);
		ok_int(unlink(at("sub/out")), 0, "gone");
	}
	test_no_openat2(ENOSYS);
	test_no_openat2(EPERM);
	ok(artefact_zip(dir, &yes, &two, NULL, &e) == -EINTR, "Ctrl-C ends it: %s", e.msg);
	buf_done(&two);
	ok_int(mkfifo(at("fifo"), 0600), 0, "a pipe");
	ok(artefact_zip(dir, NULL, &two, NULL, &e) < 0 && strstr(e.msg, "fifo is neither"),
	   "is refused, without waiting for a writer");
	buf_done(&two);
	ok(artefact_zip(at("none"), NULL, &two, NULL, &e) < 0, "a folder that is not there");
	buf_done(&two);
	buf_done(&one);
	ok_int(fd_remove_tree(dir), 0, "removed");
	return tap_done();
}
