/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/fit.h"

#include <bearssl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/local/qemu.h"
#include "host/local/qemubin.h"
#include "host/local/template.h"
#include "lib/fd.h"
#include "lib/str.h"

/*
 * What must be the same for a guest to go on. Here, files are the same when size, time of change and inode are; elsewhere
 * only what QEMU says of itself can be compared, and the file system of the guest by its checksum (snapuse.c).
 */

#define FORMAT	    1
#define CPUINFO_MAX 4096
#define MODEL_MAX   sizeof(((struct fit *)NULL)->cpu)

static void add(br_sha256_context *h, const char *s)
{
	br_sha256_update(h, s, strlen(s) + 1);
}

static int add_file(br_sha256_context *h, const char *path, struct err *e)
{
	char text[128];
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set(e, ERR_IO, errno, "%s", path);
	(void)snprintf(text, sizeof(text), "%llu %lld %lld.%09ld", (unsigned long long)st.st_ino,
		       (long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	add(h, text);
	return 0;
}

static void copy_value(const char *line, char model[MODEL_MAX])
{
	const char *at = strchr(line, ':');

	ignore_result(str_format(model, MODEL_MAX, "%.90s",
				 at ? at + 1 + (at[1] == ' ') : "")); /* fits */
	str_clean(model);
}

/* The first CPU as Linux describes it, less what changes by itself. One read gives it: more would ask every CPU for
 * its frequency, which takes milliseconds. */
static void add_cpu(br_sha256_context *h, char model[MODEL_MAX])
{
	static const char *const lines[] = { "vendor_id", "cpu family", "model",   "stepping",
					     "flags",	  "CPU",	"Features" };
	AUTO_FD fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	char text[CPUINFO_MAX + 1], *rest = text, *line;
	ssize_t n = fd < 0 ? -1 : read(fd, text, CPUINFO_MAX);

	text[n > 0 ? n : 0] = '\0';
	while ((line = strsep(&rest, "\n")) && *line)
		for (size_t i = 0; i < ARRAY_LEN(lines); i++)
			if (str_starts(line, lines[i])) {
				add(h, line);
				if (str_starts(line, "model name"))
					copy_value(line, model);
				break;
			}
}

/* The command line as it would be for a boot at a fixed time with fixed descriptors. */
static int add_argv(br_sha256_context *h, const char *qemu, const struct share *share,
		    const struct vm_config *c, bool kvm)
{
	const struct qemu_config q = { .binary = qemu,
				       .kernel = share->kernel,
				       .initrd = share->initrd,
				       .rootfs = share->rootfs,
				       .disk = "disk.qcow2",
				       .hostname = QEMU_TEMPLATE_HOSTNAME,
				       .memory_mib = c->memory_mib,
				       .cpus = c->cpus,
				       .kvm = kvm,
				       .net_user = c->net == NET_USER };
	struct qemu_args a;
	int r = qemu_args(&q, &a);

	for (int i = 0; r == 0 && i < a.argc; i++)
		add(h, a.argv[i]);
	qemu_args_done(&a);
	return r;
}

static int make_key(const char *const *files, size_t count, const char *qemu,
		    const struct share *share, const struct vm_config *c, bool kvm,
		    char ret[TEMPLATE_KEY_LEN + 1], struct err *e)
{
	unsigned char sum[br_sha256_SIZE];
	char format[32], model[MODEL_MAX];
	br_sha256_context h;
	int r = 0;

	br_sha256_init(&h);
	(void)snprintf(format, sizeof(format), "%d %zu", FORMAT, count);
	add(&h, format);
	for (size_t i = 0; i < count && r == 0; i++)
		r = add_file(&h, files[i], e);
	if (r < 0)
		return r;
	r = add_argv(&h, qemu, share, c, kvm);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "QEMU's command line");
	add_cpu(&h, model);
	br_sha256_out(&h, sum);
	str_hex(sum, TEMPLATE_KEY_LEN / 2, ret);
	return 0;
}

int template_key(const char *qemu, const struct share *share, const struct vm_config *c, bool kvm,
		 char ret[TEMPLATE_KEY_LEN + 1], struct err *e)
{
	const char *const files[] = { qemu, share->rootfs, share->kernel, share->initrd,
				      share->upper };

	return make_key(files, ARRAY_LEN(files), qemu, share, c, kvm, ret, e);
}

int template_fit(const char *qemu, const struct share *share, const struct vm_config *c, bool kvm,
		 char ret[TEMPLATE_KEY_LEN + 1], struct err *e)
{
	const char *const files[] = { qemu, share->rootfs };

	return make_key(files, ARRAY_LEN(files), qemu, share, c, kvm, ret, e);
}

/* --- elsewhere --- */
static void take_key(br_sha256_context *h, char ret[FIT_KEY_LEN + 1])
{
	unsigned char sum[br_sha256_SIZE];

	br_sha256_out(h, sum);
	str_hex(sum, FIT_KEY_LEN / 2, ret);
}

int fit_here(const char *qemu, const struct vm_config *c, const char *accel, struct fit *ret,
	     struct err *e)
{
	static const struct share nowhere = { .kernel = "kernel",
					      .initrd = "initrd",
					      .rootfs = "rootfs" };
	struct fit f = { .cpu = "" };
	br_sha256_context h;
	int r = qemubin_text(qemu, f.qemu, sizeof(f.qemu), e);

	if (r == 0)
		r = str_format(f.accel, sizeof(f.accel), "%s", accel);
	if (r < 0)
		return r;
	br_sha256_init(&h);
	add_cpu(&h, f.cpu);
	take_key(&h, f.cpu_key);
	br_sha256_init(&h);
	r = add_argv(&h, "qemu", &nowhere, c, strcmp(accel, "kvm") == 0);
	if (r < 0)
		return err_set(e, ERR_INTERNAL, -r, "QEMU's command line");
	take_key(&h, f.machine);
	*ret = f;
	return 0;
}

static int differs(struct err *e, const char *what, const char *was, const char *here)
{
	(void)err_set(e, ERR_CONFLICT, 0,
		      "its memory does not fit this machine: it is of %s%.120s, and here is %.120s",
		      what, was, here);
	return -ESTALE;
}

int fit_check(const struct fit *was, const struct fit *here, struct err *e)
{
	if (strcmp(was->qemu, here->qemu) != 0)
		return differs(e, "", was->qemu, here->qemu);
	if (strcmp(was->accel, here->accel) != 0)
		return differs(e, "the accelerator ", was->accel, here->accel);
	if (strcmp(was->cpu_key, here->cpu_key) != 0)
		return differs(e, "the CPU ", was->cpu,
			       strcmp(was->cpu, here->cpu) != 0 ? here->cpu
								: "one with other features");
	if (strcmp(was->machine, here->machine) != 0)
		return differs(e, "the virtual machine of ", "another version of asb",
			       "that of this one");
	return 0;
}
