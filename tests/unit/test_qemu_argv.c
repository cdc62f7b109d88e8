/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/local/qemu.c host/local/tsc.c */
#include "../../host/local/qemu.h"
#include "../../host/local/tsc.h"
#include "../lib/tap.h"

static const struct qemu_config plain = {
	.binary = "/usr/bin/qemu-system-x86_64",
	.kernel = "/share/vmlinux",
	.initrd = "/share/guest.cpio",
	.rootfs = "/share/images/base/rootfs.erofs",
	.disk = "disk.qcow2",
	.hostname = "box",
	.memory_mib = 512,
	.cpus = 1,
	.tsc_khz = 2500000,
	.time_s = 1700000000,
	.time_ns = 5,
	.fd = { 10, 11, 12, 13 },
};

/* The argument behind the N-th OPTION; "" when there is none. */
static const char *after(const struct qemu_args *a, const char *option, int n)
{
	for (int i = 0; i + 1 < a->argc; i++)
		if (!strcmp(a->argv[i], option) && n-- == 0)
			return a->argv[i + 1];
	return "";
}

static int count(const struct qemu_args *a, const char *option)
{
	int n = 0;

	for (int i = 0; i < a->argc; i++)
		n += !strcmp(a->argv[i], option);
	return n;
}

static void test_plain(void)
{
	struct qemu_args a;

	ok_int(qemu_args(&plain, &a), 0, "plain");
	ok_str(a.argv[0], plain.binary, "the program");
	ok_str(after(&a, "-accel", 0), "tcg,tb-size=192", "emulation");
	ok_str(after(&a, "-cpu", 0), "max,la57=off,-erms,-fsrm", "its CPU");
	ok_str(after(&a, "-m", 0), "512M", "memory");
	ok_str(after(&a, "-append", 0),
	       "console=ttyS0 quiet panic=-1 reboot=t pci=off tsc_early_khz=2500000 "
	       "tsc=reliable asb.hostname=box "
	       "asb.net=none asb.time=1700000000.000000005",
	       "kernel command line");
	ok_str(after(&a, "-sandbox", 0),
	       "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
	       "seccomp");
	ok(count(&a, "-nodefaults") && count(&a, "-no-user-config") && count(&a, "-no-reboot"),
	   "no defaults, no user's configuration, no reboot");
	ok_int(count(&a, "-netdev"), 0, "no network");
	ok_str(after(&a, "-chardev", 0), "socket,id=qmp,fd=10", "QMP");
	ok_str(after(&a, "-chardev", 2), "socket,id=channel,fd=12", "channel");
	ok(!a.argv[a.argc], "NULL at the end");
	qemu_args_done(&a);
}

static void test_variants(void)
{
	struct qemu_config c = plain;
	struct qemu_args a;

	c.kvm = true;
	c.tsc_khz = 0;
	c.cpus = 4;
	c.net_user = true;
	ok_int(qemu_args(&c, &a), 0, "KVM");
	ok_str(after(&a, "-cpu", 0), "host", "the host's CPU");
	ok_str(after(&a, "-smp", 0), "4", "CPUs");
	ok(!strstr(after(&a, "-append", 0), "tsc"), "the TSC is not told about");
	ok(strstr(after(&a, "-append", 0), "asb.net=user") != NULL,
	   "the guest is told of its network");
	ok_str(after(&a, "-netdev", 0), "user,id=net", "user-mode network");
	qemu_args_done(&a);
	c.kvm = false;
	c.tsc_khz = 1;
	ok_int(qemu_args(&c, &a), 0, "emulation, 4 CPUs");
	ok(strstr(after(&a, "-append", 0), "tsc_early_khz=1 tsc=reliable") != NULL,
	   "the TSC is trusted");
	qemu_args_done(&a);
}

/* Machines that go on where another was. */
static void test_incoming(void)
{
	struct qemu_config c = plain;
	struct qemu_args a;

	ok_int(qemu_args(&c, &a), 0, "a machine that boots");
	ok(!count(&a, "-incoming") && !count(&a, "-S") &&
		   !strstr(after(&a, "-M", 0), "memory-backend"),
	   "loads nothing");
	for (int i = 0; i < a.argc; i++)
		if (strstr(a.argv[i], "balloon"))
			ok(false,
			   "a machine with templates has a balloon: a guest could write to them");
	qemu_args_done(&a);
	c.balloon = true;
	ok_int(qemu_args(&c, &a), 0, "one without templates");
	ok_str(after(&a, "-device", 6), "virtio-balloon-device,free-page-reporting=on",
	       "has a balloon");
	qemu_args_done(&a);
	c = plain;
	c.incoming = true;
	c.state_fd = 17;
	c.ram = "base.ram";
	ok_int(qemu_args(&c, &a), 0, "a clone");
	ok_str(after(&a, "-incoming", 0), "fd:17", "loads its devices");
	ok_str(after(&a, "-object", 0),
	       "memory-backend-file,id=ram,size=512M,mem-path=base.ram,share=off",
	       "maps its memory privately");
	ok(strstr(after(&a, "-M", 0), ",memory-backend=ram") != NULL, "as the machine's");
	ok(!count(&a, "-kernel") && !count(&a, "-S"), "boots nothing, and runs at once");
	qemu_args_done(&a);
	c.state_fd = -1;
	c.ram = NULL;
	ok_int(qemu_args(&c, &a), 0, "one that is told what to load");
	ok_str(after(&a, "-incoming", 0), "defer", "waits for it");
	ok(count(&a, "-S") && !count(&a, "-object"), "and for the word to run");
	qemu_args_done(&a);
}

static void test_hostile(void)
{
	struct qemu_config c = plain;
	struct qemu_args a;

	c.rootfs = "/a,b/if=none,file=x y.erofs";
	ok_int(qemu_args(&c, &a), 0, "commas in a path");
	ok_str(after(&a, "-blockdev", 0),
	       "driver=raw,node-name=root,read-only=on,discard=unmap,file.driver=file,"
	       "file.filename=/a,,b/if=none,,file=x y.erofs",
	       "are doubled");
	qemu_args_done(&a);
	c = plain;
	c.hostname = "x init=/bin/sh";
	ok_int(qemu_args(&c, &a), -22, "a hostname with a space is refused");
	qemu_args_done(&a);
	c = plain;
	c.memory_mib = 0;
	ok_int(qemu_args(&c, &a), -22, "no memory is refused");
	qemu_args_done(&a);
}

static void test_names(void)
{
	static const struct {
		const char *name, *host;
	} t[] = { { "app", "app" },
		  { "a.b_c", "a-b-c" },
		  { "x-", "x" },
		  { "...", "sandbox" },
		  { ".a", "a" },
		  { "A9", "A9" },
		  { "", "sandbox" },
		  { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" } };
	char out[64];

	for (size_t i = 0; i < ARRAY_LEN(t); i++) {
		qemu_hostname(t[i].name, out);
		ok_str(out, t[i].host, t[i].name);
	}
	ok_int(qemu_version("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)\n"), 7002022,
	       "7.2.22");
	ok_int(qemu_version("QEMU emulator version 10.0.2\n"), 10000002, "10.0.2");
	ok_int(qemu_version("QEMU emulator version 9.1 (x)\n"), 9001000, "9.1");
	ok_int(qemu_version("version 10\n"), 0, "a number alone is no version");
	ok_int(qemu_version("version 7.2.99999999999999999999\n"), 0, "a number beyond any range");
	ok_int(qemu_version("version 7.-2.1\n"), 0, "a sign");
	ok_int(qemu_version("bash: not found"), 0, "no QEMU");
}

static void test_tsc(void)
{
#if defined(__x86_64__)
	uint32_t khz = tsc_khz();

	ok(khz > 100000 && khz < 20000000, "the TSC runs at %u kHz", khz);
#else
	skip("no TSC");
#endif
}

int main(void)
{
	test_plain();
	test_variants();
	test_incoming();
	test_hostile();
	test_names();
	test_tsc();
	return tap_done();
}
