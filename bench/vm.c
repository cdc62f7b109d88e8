/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cold boot, from the start of `asb run` until the command's first output byte and until asb has ended, beside bare
 * QEMU with the same kernel until its first user-space line. Both in turn, so that both see the same noise.
 *     bench-vm ASB SHARE FLOOR_CPIO QEMU
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "stats.h"
#include "until.h"

#define N      12
#define STAGES 8

static struct stats floor_s, reply_s, whole_s, stage_s[STAGES];
static char stage_name[STAGES][64];
static char text[65536];

/* The emulated TSC is the host's: its rate over 20 ms (the kernel cannot calibrate it on this machine type). */
static long long tsc_khz(void)
{
#if defined(__x86_64__)
	struct timespec nap = { .tv_nsec = 20000000 };
	int64_t t = stats_now();
	unsigned long long c = __rdtsc();

	(void)nanosleep(&nap, NULL);
	return (long long)((__rdtsc() - c) * 1000000 / (unsigned long long)(stats_now() - t));
#else
	return 0;
#endif
}

static int64_t bare_boot(char **argv)
{
	char cmdline[256], kernel[4096];
	const char *q[] = { argv[4],
			    "-M",
			    "microvm,acpi=on,pit=off,pic=off,rtc=on",
			    "-accel",
			    "tcg",
			    "-cpu",
			    "max,la57=off",
			    "-m",
			    "512",
			    "-nodefaults",
			    "-no-user-config",
			    "-display",
			    "none",
			    "-no-reboot",
			    "-serial",
			    "stdio",
			    "-kernel",
			    kernel,
			    "-initrd",
			    argv[3],
			    "-append",
			    cmdline,
			    NULL };

	(void)snprintf(kernel, sizeof(kernel), "%s/vmlinux", argv[2]);
	(void)snprintf(cmdline, sizeof(cmdline),
		       "console=ttyS0 quiet panic=-1 reboot=t tsc_early_khz=%lld", tsc_khz());
	return bench_until(q, "FLOOR", "/dev/null", text, sizeof(text), NULL);
}

/* Lines "asb: <stage> <ms> ms" that `asb run -v` writes to stderr. */
static void read_stages(const char *path)
{
	char line[256], name[64];
	FILE *f = fopen(path, "re");
	double ms;

	while (f && fgets(line, sizeof(line), f)) {
		int i = 0;

		if (sscanf(line, "asb: %63s %lf ms", name, &ms) != 2)
			continue;
		while (i < STAGES - 1 && stage_name[i][0] && strcmp(stage_name[i], name))
			i++;
		if (!stage_name[i][0]) {
			(void)snprintf(stage_name[i], sizeof(stage_name[i]), "%s", name);
			stats_reset(&stage_s[i], stage_name[i]);
		}
		stats_add(&stage_s[i], (int64_t)(ms * 1e6));
	}
	if (f)
		(void)fclose(f);
}

int main(int argc, char **argv)
{
	char err[] = "/tmp/asb-bench-stages-XXXXXX";
	int fd;

	if (argc != 5) {
		fprintf(stderr, "usage: bench-vm ASB SHARE FLOOR_CPIO QEMU\n");
		return 2;
	}
	fd = mkstemp(err);
	if (fd < 0)
		return 1;
	(void)close(fd);
	stats_reset(&floor_s, "bare QEMU to the first user-space line");
	stats_reset(&reply_s, "asb run to the command's first byte (goal 1.15)");
	stats_reset(&whole_s, "asb run to its own exit");
	for (int i = 0; i < N; i++) {
		const char *run[] = { argv[1], "run",  "-v", "--no-template",
				      "--",    "echo", "hi", NULL };
		int64_t whole, took = bare_boot(argv);

		if (took < 0)
			fprintf(stderr, "bare QEMU did not reach user space\n");
		else
			stats_add(&floor_s, took);
		took = bench_until(run, NULL, err, text, sizeof(text), &whole);
		if (took < 0) {
			fprintf(stderr, "asb run failed, see %s\n", err);
			return 1;
		}
		stats_add(&reply_s, took);
		stats_add(&whole_s, whole);
		read_stages(err);
	}
	stats_title("Cold boot of a local microVM");
	stats_row(&floor_s, NULL);
	stats_row(&reply_s, &floor_s);
	stats_row(&whole_s, &floor_s);
	stats_title("Stages of asb run, ms since its start");
	for (int i = 0; i < STAGES && stage_name[i][0]; i++)
		stats_row(&stage_s[i], &floor_s);
	(void)unlink(err);
	return 0;
}
