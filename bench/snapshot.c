/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way to a sandbox that answers: a cold boot, a start from the template, a start after a stop, a branch; each until the first byte of the
 * first command, in turn with bare QEMU that restores the same template until the same byte (bare.h). Then how long a branch's
 * source stands still, what idle clones cost in memory, and bytes on the disk.
 *     bench-snapshot ASB STATE_FOLDER SCRATCH_FOLDER
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../lib/fd.h"
#include "../lib/jsn.h"
#include "../lib/str.h"
#include "bare.h"
#include "stats.h"
#include "until.h"

#define ROUNDS	 10
#define PAUSES	 3
#define CLONES	 16
#define WORDS	 16
#define MEMORY	 "256"
#define SETTLE_S 2

static const char *asb, *state, *scratch;
static char text[65536], template[512]; /* the one for MEMORY */

/* Runs asb with the words up to NULL. ns until its first byte (-1: none), *RET_WHOLE until its end; exits when it fails. */
static int64_t call(int64_t *ret_whole, ...)
{
	const char *argv[WORDS] = { asb };
	char err[512];
	int64_t whole, first;
	va_list ap;
	size_t n = 1;

	va_start(ap, ret_whole);
	while (n < WORDS && (argv[n] = va_arg(ap, const char *)))
		n++;
	va_end(ap);
	(void)snprintf(err, sizeof(err), "%s/stderr", scratch);
	first = bench_until(argv, NULL, err, text, sizeof(text), &whole);
	if (ret_whole)
		*ret_whole = whole;
	return first;
}

static int64_t must(int64_t ns, const char *what)
{
	if (ns >= 0)
		return ns;
	fprintf(stderr, "%s failed, see %s/stderr\n", what, scratch);
	exit(1);
}

/* The QEMU of sandbox NAME, and its folder. */
static pid_t qemu_of(const char *name, char folder[512], char accel[8])
{
	const char *id = "", *how = "";
	const cJSON *config, *supervisor;
	uint64_t pid = 0;

	(void)call(NULL, "inspect", name, NULL);
	AUTO_JSN *j = jsn_parse(text, strlen(text), NULL);
	config = jsn_get(j, "config");
	supervisor = jsn_get(j, "supervisor");
	if (!j || jsn_str(config, "id", &id, NULL) < 0 || jsn_str(j, "accel", &how, NULL) < 0 ||
	    jsn_u64(supervisor, "qemu_pid", 1, INT32_MAX, &pid, NULL) < 0 || !pid)
		must(-1, "asb inspect");
	(void)snprintf(folder, 512, "%s/local/vms/%s", state, id);
	(void)snprintf(accel, 8, "%s", how);
	return (pid_t)pid;
}

/* The first template there is, when it has its name. */
static bool find_template(void)
{
	char root[400];
	struct timespec nap = { .tv_nsec = 100000000 };

	(void)snprintf(root, sizeof(root), "%s/local/templates", state);
	for (int i = 0; i < 600; i++) {
		DIR *d = opendir(root);
		struct dirent *e;
		bool found = false;

		while (d && !found && (e = readdir(d)))
			if (strlen(e->d_name) == 32) {
				(void)snprintf(template, sizeof(template), "%s/%.32s", root,
					       e->d_name);
				found = true;
			}
		if (d)
			(void)closedir(d);
		if (found)
			return true;
		(void)nanosleep(&nap, NULL);
	}
	return false;
}

/* --- the ways --- */
static struct stats cold, from_template, after_stop, branched, floor_byte, floor_hello;

static void one_round(struct bare *bare, int i)
{
	char name[32];
	int64_t hello = 0, whole = 0, byte;

	(void)snprintf(name, sizeof(name), "branch%d", i);
	stats_add(&cold,
		  must(call(NULL, "run", "--no-template", "-m", MEMORY, "--", "echo", "x", NULL),
		       "a cold boot"));
	byte = must(bare_restore(bare, &hello), "bare QEMU");
	stats_add(&floor_byte, byte);
	stats_add(&floor_hello, hello);
	stats_add(&from_template,
		  must(call(NULL, "run", "-m", MEMORY, "--", "echo", "x", NULL), "a start"));
	must(call(NULL, "stop", "source", NULL), "asb stop");
	stats_add(&after_stop, must(call(NULL, "exec", "source", "--", "echo", "x", NULL),
				    "a command in a stopped sandbox"));
	must(call(&whole, "branch", "source", "--name", name, NULL), "asb branch");
	stats_add(&branched,
		  whole + must(call(NULL, "exec", name, "--", "echo", "x", NULL), "its command"));
	must(call(NULL, "rm", name, NULL), "asb rm");
}

static void ways(void)
{
	char folder[512], accel[8], dir[512];
	static struct bare bare;

	stats_reset(&floor_byte, "bare QEMU, the template, the command's first byte");
	stats_reset(&floor_hello, "   of that until the guest's answer to a hello");
	stats_reset(&cold, "asb run --no-template (boots)");
	stats_reset(&from_template, "asb run, from the template (goal 1.3)");
	stats_reset(&after_stop, "asb exec in a stopped sandbox");
	stats_reset(&branched, "asb branch, and asb exec in the branch");
	must(call(NULL, "run", "-m", MEMORY, "--", "echo", "x", NULL), "the first start");
	if (!find_template())
		must(-1, "making a template");
	must(call(NULL, "create", "source", "-m", MEMORY, NULL), "asb create");
	(void)snprintf(dir, sizeof(dir), "%s/bare", scratch);
	if (mkdir(dir, 0700) < 0 ||
	    bare_prepare(&bare, qemu_of("source", folder, accel), template, dir) < 0)
		must(-1, "preparing bare QEMU");
	for (int i = 0; i < ROUNDS; i++)
		one_round(&bare, i);
	printf("\naccelerator: %s\n", accel);
	stats_title("First byte of the first command, " MEMORY " MiB");
	stats_row(&floor_byte, NULL);
	stats_row(&floor_hello, &floor_byte);
	stats_row(&from_template, &floor_byte);
	stats_row(&after_stop, &floor_byte);
	stats_row(&branched, &floor_byte);
	stats_row(&cold, &floor_byte);
}

/* --- how long a branch's source stands still --- */
static int64_t last_pause(const char *folder)
{
	static const char mark[] = "it stood still for ";
	char path[600], *at, *last = NULL;
	AUTO_BUF b;

	buf_init(&b, 1 << 20);
	(void)snprintf(path, sizeof(path), "%s/supervisor.log", folder);
	if (fd_read_file(AT_FDCWD, path, &b) < 0 || !b.p)
		return -1;
	for (at = strstr(b.p, mark); at; at = strstr(at + 1, mark))
		last = at;
	return last ? strtoll(last + sizeof(mark) - 1, NULL, 10) * 1000000 : -1;
}

static void pauses(void)
{
	static const int mib[] = { 0, 64, 256 };
	static struct stats s[3];
	static char what[3][80];
	char folder[512], accel[8], fill[128];

	must(call(NULL, "run", "-m", "1024", "--", "echo", "x", NULL), "a template of 1 GiB");
	(void)sleep(2 * SETTLE_S); /* until it is on the disk */
	for (size_t i = 0; i < ARRAY_LEN(mib); i++) {
		must(call(NULL, "create", "pause", "-m", "1024", NULL), "asb create");
		(void)qemu_of("pause", folder, accel);
		(void)snprintf(what[i], sizeof(what[i]), "%d MiB written since the start", mib[i]);
		(void)snprintf(fill, sizeof(fill),
			       "head -c %dM /dev/zero | tr '\\0' x >/dev/shm/x; echo done", mib[i]);
		stats_reset(&s[i], what[i]);
		must(call(NULL, "exec", "pause", "--", "sh", "-c", fill, NULL), "filling memory");
		for (int k = 0; k < PAUSES; k++) {
			must(call(NULL, "branch", "pause", "--name", "copy", NULL), "asb branch");
			stats_add(&s[i], must(last_pause(folder), "the pause of a branch"));
			must(call(NULL, "rm", "copy", NULL), "asb rm");
		}
		must(call(NULL, "rm", "pause", NULL), "asb rm");
	}
	stats_title(
		"How long a branch's source of 1024 MiB stands still (ratio: to nothing written)");
	for (size_t i = 0; i < ARRAY_LEN(mib); i++)
		stats_row(&s[i], i ? &s[0] : NULL);
}

/* --- memory of clones --- */
/* KiB of FIELDS, in smaps_rollup of PID. */
static long rollup(pid_t pid, const char *const *fields)
{
	char path[64], line[256];
	long sum = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		for (size_t i = 0; fields[i]; i++)
			if (str_starts(line, fields[i]))
				sum += strtol(line + strlen(fields[i]), NULL, 10);
	if (f)
		(void)fclose(f);
	return sum;
}

static void memory_of(int clones)
{
	static const char *const private[] = { "Private_Clean:", "Private_Dirty:", NULL };
	static const char *const pss[] = { "Pss:", NULL };
	char name[32], folder[512], accel[8], what[80];
	long own = 0, share = 0;

	for (int i = 0; i < clones; i++) {
		pid_t pid;

		(void)snprintf(name, sizeof(name), "clone%d", i);
		pid = qemu_of(name, folder, accel);
		own += rollup(pid, private);
		share += rollup(pid, pss);
	}
	(void)snprintf(what, sizeof(what), "%d idle clones: private memory of each QEMU", clones);
	stats_figure(what, (double)own / clones / 1024, "MiB", "");
	(void)snprintf(what, sizeof(what), "%d idle clones: proportional share (Pss) of each",
		       clones);
	stats_figure(what, (double)share / clones / 1024, "MiB", "");
}

static void memory(void)
{
	char name[32];

	for (int i = 1; i <= CLONES; i++) {
		(void)snprintf(name, sizeof(name), "clone%d", i - 1);
		must(call(NULL, "create", name, "-m", MEMORY, NULL), "asb create");
		if (i != 1 && i != 4 && i != CLONES)
			continue;
		(void)sleep(SETTLE_S);
		memory_of(i);
	}
	for (int i = 0; i < CLONES; i++) {
		(void)snprintf(name, sizeof(name), "clone%d", i);
		must(call(NULL, "rm", name, NULL), "asb rm");
	}
}

/* --- bytes on the disk --- */
static void disk_figure(const char *what, const char *folder, const char *const *files)
{
	long long bytes = 0;
	char path[700];
	struct stat st;

	for (size_t i = 0; files[i]; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
		if (stat(path, &st) == 0)
			bytes += (long long)st.st_blocks * 512;
	}
	stats_figure(what, (double)bytes / (1 << 20), "MiB", "");
}

static void disk(void)
{
	static const char *const of_template[] = { "ram", "devices", "disk.qcow2", NULL },
				 *const of_running[] = { "disk.qcow2", NULL },
				 *const of_saved[] = { "saved/ram", "saved/devices", NULL };
	char folder[512], accel[8];

	must(call(NULL, "create", "disk", "-m", MEMORY, NULL), "asb create");
	(void)qemu_of("disk", folder, accel);
	disk_figure("disk: a template (memory, devices, disk)", template, of_template);
	disk_figure("disk: a new sandbox, its own disk", folder, of_running);
	must(call(NULL, "stop", "disk", NULL), "asb stop");
	disk_figure("disk: what its suspension adds", folder, of_saved);
	must(call(NULL, "rm", "disk", NULL), "asb rm");
}

int main(int argc, char **argv)
{
	if (argc != 4) {
		fprintf(stderr, "usage: bench-snapshot ASB STATE_FOLDER SCRATCH_FOLDER\n");
		return 2;
	}
	asb = argv[1];
	state = argv[2];
	scratch = argv[3];
	(void)signal(SIGPIPE, SIG_IGN);
	ways();
	pauses();
	printf("\nMemory and disk\n");
	memory();
	disk();
	return must(call(NULL, "rm", "source", NULL), "asb rm") < 0;
}
