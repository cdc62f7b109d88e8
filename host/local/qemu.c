/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/qemu.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/hostname.h"
#include "lib/str.h"

/*
 * The machine is `microvm` with a short and fixed list of virtio devices; every one of them can be
 * saved and restored.
 *
 * acpi=on,pit=off,pic=off needs `tsc_early_khz` on the kernel's command line under emulation:
 * hardware-reduced ACPI leaves the kernel without a timer to calibrate the TSC against, and it
 * would hang. Emulated RDTSC is the host's. With several CPUs, and with one on a loaded host, the
 * kernel would then distrust the TSC and fall back to a 10 ms clock, hence `tsc=reliable`. Under
 * KVM the guest has kvmclock. rtc=off would cost two seconds of CMOS polling. There is no PCI, and
 * `pci=off` keeps the kernel from looking for it and complaining on the console.
 *
 * With "erms" or "fsrm" kernel and libc copy by `rep movsb`, which emulation takes byte by byte: without them
 * 100 MiB through two pipes cost 1.3 s instead of 3.2 s of CPU, and 50 MiB of command output a quarter less (n = 2).
 *
 * Memory of a template is mapped MAP_PRIVATE from a file that other VMs map too, and that QEMU opens for writing.
 * A balloon's pages are given back by punching holes into that file (ram_block_discard_range does so for private
 * mappings as well), and it is the guest that says which: one guest could change the memory of all others. So a
 * machine that has to do with templates has no balloon.
 *
 * Device state is what `xen-save-devices-state` writes: no configuration section and no description at its end, and
 * QEMU must be told so.
 *
 * Sockets are inherited as connected descriptors (`-chardev socket,fd=N`), so there is no path that
 * another could open first. QEMU splits its options at commas: those in paths are doubled.
 */

#define CPU_TCG	  "max,la57=off,-erms,-fsrm"
/* MiB of translated code; by default up to 1 GiB, which one VM that ran a while was seen to fill. */
#define ACCEL_TCG "tcg,tb-size=192"

static void add(struct qemu_args *a, const char *fmt, ...) PRINTF(2, 3);
static void add(struct qemu_args *a, const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	if (a->argc < 0 || a->argc == QEMU_ARGS_MAX) {
		a->argc = -1;
		return;
	}
	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0) {
		a->argc = -1;
		return;
	}
	a->argv[a->argc++] = s;
}

/* PATH with its commas doubled, in B. */
static const char *quoted(struct buf *b, const char *path)
{
	buf_init(b, 16384);
	for (; *path; path++)
		if (buf_add(b, *path == ',' ? ",," : path, *path == ',' ? 2 : 1) < 0)
			return NULL;
	return b->p ? b->p : "";
}

static void add_drive(struct qemu_args *a, const char *name, const char *driver, const char *path,
		      bool readonly)
{
	AUTO_BUF b;
	const char *q = quoted(&b, path);

	if (!q) {
		a->argc = -1;
		return;
	}
	add(a, "-blockdev");
	add(a,
	    "driver=%s,node-name=%s,read-only=%s,discard=unmap,file.driver=file,file.filename=%s",
	    driver, name, readonly ? "on" : "off", q);
	add(a, "-device");
	/* On a full host the guest gets an error; by default QEMU would stop it for good. */
	add(a, "virtio-blk-device,drive=%s,werror=report,rerror=report", name);
}

static void add_socket(struct qemu_args *a, const char *id, int fd)
{
	add(a, "-chardev");
	add(a, "socket,id=%s,fd=%d", id, fd);
}

static void add_ports(struct qemu_args *a, const struct qemu_config *c)
{
	add_socket(a, "qmp", c->fd[QEMU_PORT_QMP]);
	add(a, "-mon");
	add(a, "chardev=qmp,mode=control");
	add_socket(a, "console", c->fd[QEMU_PORT_CONSOLE]);
	add(a, "-serial");
	add(a, "chardev:console");
	add_socket(a, "channel", c->fd[QEMU_PORT_CHANNEL]);
	add_socket(a, "boot", c->fd[QEMU_PORT_BOOT]);
	add(a, "-device");
	add(a, "virtio-serial-device");
	add(a, "-device");
	add(a, "virtserialport,chardev=channel,name=asb.channel");
	add(a, "-device");
	add(a, "virtserialport,chardev=boot,name=asb.boot");
}

static void add_kernel(struct qemu_args *a, const struct qemu_config *c)
{
	char tsc[64] = "";

	if (c->tsc_khz)
		(void)snprintf(tsc, sizeof(tsc), " tsc_early_khz=%u tsc=reliable", c->tsc_khz);
	add(a, "-kernel");
	add(a, "%s", c->kernel);
	add(a, "-initrd");
	add(a, "%s", c->initrd);
	add(a, "-append");
	add(a,
	    "console=ttyS0 quiet panic=-1 reboot=t pci=off%s asb.hostname=%s asb.net=%s asb.time=%lld.%09lld",
	    tsc, c->hostname, c->net_user ? "user" : "none", (long long)c->time_s,
	    (long long)c->time_ns);
}

static void add_memory(struct qemu_args *a, const struct qemu_config *c)
{
	AUTO_BUF b;
	const char *q;

	buf_init(&b, 64); /* quoted() sets its own cap */
	add(a, "-m");
	add(a, "%lluM", (unsigned long long)c->memory_mib);
	if (!c->ram)
		return;
	q = quoted(&b, c->ram);
	if (!q) {
		a->argc = -1;
		return;
	}
	add(a, "-object");
	add(a, "memory-backend-file,id=ram,size=%lluM,mem-path=%s,share=off",
	    (unsigned long long)c->memory_mib, q);
}

static void add_origin(struct qemu_args *a, const struct qemu_config *c)
{
	if (!c->incoming) {
		add_kernel(a, c);
		return;
	}
	add(a, "-global");
	add(a, "migration.send-configuration=off");
	if (c->state_fd < 0)
		add(a, "-S");
	add(a, "-incoming");
	if (c->state_fd < 0)
		add(a, "defer");
	else
		add(a, "fd:%d", c->state_fd);
}

int qemu_args(const struct qemu_config *c, struct qemu_args *ret)
{
	*ret = (struct qemu_args){ .argc = 0 };
	if (!hostname_valid(c->hostname) || c->memory_mib == 0 || c->cpus == 0 || c->time_s < 0)
		return -EINVAL;
	add(ret, "%s", c->binary);
	add(ret, "-M");
	add(ret, "microvm,acpi=on,pit=off,pic=off,rtc=on,isa-serial=on%s%s",
	    c->incoming ? ",suppress-vmdesc=on" : "", c->ram ? ",memory-backend=ram" : "");
	add(ret, "-accel");
	add(ret, "%s", c->kvm ? "kvm" : ACCEL_TCG);
	add(ret, "-cpu");
	add(ret, "%s", c->kvm ? "host" : CPU_TCG);
	add(ret, "-smp");
	add(ret, "%u", c->cpus);
	add_memory(ret, c);
	add(ret, "-nodefaults");
	add(ret, "-no-user-config");
	add(ret, "-display");
	add(ret, "none");
	add(ret, "-no-reboot");
	add_ports(ret, c);
	add_drive(ret, "root", "raw", c->rootfs, true);
	add_drive(ret, "upper", "qcow2", c->disk, false);
	add(ret, "-device");
	add(ret, "virtio-rng-device");
	if (c->balloon) {
		add(ret, "-device");
		add(ret, "virtio-balloon-device,free-page-reporting=on");
	}
	if (c->net_user) {
		add(ret, "-netdev");
		add(ret, "user,id=net");
		add(ret, "-device");
		add(ret, "virtio-net-device,netdev=net");
	}
	add(ret, "-sandbox");
	add(ret, "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
	add_origin(ret, c);
	return ret->argc < 0 ? -ENOMEM : 0;
}

void qemu_args_done(struct qemu_args *a)
{
	for (char **p = a->argv; p < a->argv + QEMU_ARGS_MAX && *p; p++)
		free(*p);
	*a = (struct qemu_args){ .argc = 0 };
}

uint32_t qemu_version(const char *text)
{
	const char *p = strstr(text, "version ");
	uint32_t part[3] = { 0, 0, 0 };
	size_t n = 0;

	for (p = p ? p + strlen("version ") : ""; n < 3 && *p >= '0' && *p <= '9'; n++) {
		char *end;
		unsigned long v = strtoul(p, &end, 10); /* out of range: ULONG_MAX */

		if (v > 999)
			return 0;
		part[n] = (uint32_t)v;
		p = *end == '.' ? end + 1 : "";
	}
	return n < 2 ? 0 : part[0] * 1000000 + part[1] * 1000 + part[2];
}

void qemu_hostname(const char *name, char out[64])
{
	size_t n = 0;

	for (; *name && n < HOSTNAME_LEN_MAX; name++) {
		char c = *name;
		bool plain =
			(c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (plain || n > 0) /* none at the beginning */
			out[n++] = plain ? c : '-';
	}
	while (n > 0 && out[n - 1] == '-')
		n--;
	out[n] = '\0';
	if (n == 0)
		memcpy(out, "sandbox", sizeof("sandbox"));
}
