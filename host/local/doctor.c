/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "host/local/accel.h"
#include "host/local/local.h"
#include "host/local/qemu.h"
#include "host/local/qemubin.h"
#include "host/local/share.h"
#include "host/local/vmdir.h"
#include "lib/fd.h"
#include "lib/str.h"

/* What a local sandbox needs, looked at without starting one. Whether KVM really runs a guest only
 * a boot can tell: the verdict of the last one is reported. */

#define DISK_LEAST_MIB 512
#define EMULATION_FAST \
	10000000 /* QEMU 10: fork and exec are several times faster under emulation */

struct report {
	local_doctor_fn *fn;
	void *arg;
	int stop;
};

static void say(struct report *r, const char *check, const char *status, const char *text)
{
	if (r->stop == 0)
		r->stop = r->fn(r->arg, check, status, text);
}

/* True when PATH holds a QEMU that can be used. */
static bool check_qemu(struct report *r, char path[LOCAL_PATH_MAX], uint32_t *ret_version)
{
	struct err e = ERR_INIT;
	char text[ERR_MSG_MAX];

	*ret_version = 0;
	if (qemubin_find(path, &e) < 0 || qemubin_version(path, ret_version, &e) < 0) {
		say(r, "qemu", "fail", e.msg);
		return false;
	}
	(void)snprintf(text, sizeof(text), "%.400s, version %u.%u.%u", path, *ret_version / 1000000,
		       *ret_version / 1000 % 1000, *ret_version % 1000);
	if (*ret_version < QEMU_VERSION_LEAST) {
		(void)snprintf(text, sizeof(text),
			       "%.400s is older than 7.2: install a newer one, or set ASB_QEMU",
			       path);
		say(r, "qemu", "fail", text);
		return false;
	}
	say(r, "qemu", "ok", text);
	return true;
}

static void check_kvm(struct report *r, const char *qemu, const char *kernel, uint32_t version)
{
	AUTO_FD fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	char text[320];

	if (fd < 0) {
		(void)snprintf(
			text, sizeof(text),
			"/dev/kvm: %s; sandboxes run under emulation, which is slower and which "
			"QEMU's authors do not call a security boundary%s",
			strerror(errno),
			version && version < EMULATION_FAST
				? " (QEMU 10 or later starts programs several times faster there)"
				: "");
		say(r, "kvm", "warn", text);
		return;
	}
	switch (accel_choose(qemu, kernel)) {
	case ACCEL_KVM:
		say(r, "kvm", "ok", "it has run a guest with this QEMU and this kernel");
		break;
	case ACCEL_KVM_UNPROVEN:
		say(r, "kvm", "ok",
		    "/dev/kvm can be opened; the first sandbox finds out whether it runs a guest");
		break;
	case ACCEL_TCG:
		say(r, "kvm", "warn",
		    "/dev/kvm can be opened, but no guest has come up with it: sandboxes run under emulation "
		    "(local/accel.json holds the verdict; remove it to try again)");
		break;
	}
}

static void check_disk(struct report *r)
{
	char root[LOCAL_PATH_MAX], text[ERR_MSG_MAX];
	struct err e = ERR_INIT;
	struct statvfs v;
	unsigned long long mib;

	if (vmdir_base(root, &e) < 0) {
		say(r, "disk", "fail", e.msg);
		return;
	}
	if (statvfs(root, &v) < 0 || access(root, W_OK) < 0) {
		(void)snprintf(text, sizeof(text), "%.500s: %s", root, strerror(errno));
		say(r, "disk", "fail", text);
		return;
	}
	mib = (unsigned long long)v.f_bavail * v.f_frsize >> 20;
	(void)snprintf(text, sizeof(text), "%llu MiB free in %.500s", mib, root);
	say(r, "disk", mib < DISK_LEAST_MIB ? "warn" : "ok", text);
}

int local_doctor(local_doctor_fn *fn, void *arg)
{
	static struct share share; /* too big for the stack */
	static char qemu[LOCAL_PATH_MAX];
	struct report r = { .fn = fn, .arg = arg };
	struct err e = ERR_INIT;
	uint32_t version;
	bool have_qemu = check_qemu(&r, qemu, &version);

	if (share_find("base", &share, &e) < 0) {
		say(&r, "share", "fail", e.msg);
	} else {
		say(&r, "share", "ok", share.dir);
		if (have_qemu)
			check_kvm(&r, qemu, share.kernel, version);
	}
	check_disk(&r);
	return r.stop;
}
