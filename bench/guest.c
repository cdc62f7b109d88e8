/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guest programs on this kernel, no VM: start to a healthy agent, exec latency beside posix_spawn + wait of the same
 * program in the same run, memory at rest and for each running command, binary sizes.
 *     bench-guest BIN_DIR TRUE
 */
#include <curl/curl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"
#include "stats.h"

#define N_START 40
#define N_EXEC	2000
#define N_HELD	50

extern char **environ;

static struct stats a, b;

static void bench_start(const char *bin_dir, const char *program)
{
	char what[96];

	(void)snprintf(what, sizeof(what), "%s start to /healthz 200 (goal asb-init: 5 ms)",
		       program);
	stats_reset(&a, what);
	for (int i = 0; i < N_START; i++) {
		struct bench_agent ag;
		int64_t start = stats_now(), took;

		if (bench_agent_start(&ag, bin_dir, program) < 0)
			exit(1);
		took = bench_agent_wait(&ag, start);
		if (took < 0) {
			fprintf(stderr, "%s did not become healthy\n", program);
			exit(1);
		}
		stats_add(&a, took);
		bench_agent_stop(&ag);
	}
	stats_row(&a, NULL);
}

static void spawn_wait(const char *path)
{
	char *argv[] = { NULL, NULL };
	pid_t pid;

	argv[0] = (char *)(uintptr_t)path;
	if (posix_spawn(&pid, path, NULL, NULL, argv, environ) || waitpid(pid, NULL, 0) < 0)
		exit(1);
}

static void bench_exec(struct bench_agent *ag, const char *command)
{
	char url[96], body[4200];
	void *h = bench_http_new();

	(void)snprintf(url, sizeof(url), "%s/v1/exec", ag->url);
	(void)snprintf(body, sizeof(body), "{\"command\":\"%s\"}", command);
	stats_reset(&a, "posix_spawn + wait of a static true");
	stats_reset(&b, "POST /v1/exec of the same, kept connection (goal 1.5)");
	for (int i = 0; i < N_EXEC; i++) { /* interleaved: both see the same noise */
		int64_t t = stats_now();

		spawn_wait(command);
		stats_add(&a, stats_now() - t);
		t = stats_now();
		if (bench_http(h, url, body) != 200)
			exit(1);
		stats_add(&b, stats_now() - t);
	}
	bench_http_free(h);
	stats_row(&a, NULL);
	stats_row(&b, &a);
}

static void bench_memory(struct bench_agent *ag)
{
	char url[128];
	void *h = bench_http_new();
	long rest = bench_rss_kib(ag->pid, "agentd"), held;

	for (int i = 0; i < N_HELD; i++) {
		(void)snprintf(url, sizeof(url), "%s/v1/exec", ag->url);
		if (bench_http(
			    h, url,
			    "{\"command\":\"sh\",\"args\":[\"-c\",\"sleep 30 >/dev/null 2>&1 &\"]}") !=
		    200)
			exit(1);
	}
	held = bench_rss_kib(ag->pid, "agentd");
	bench_http_free(h);
	stats_figure("agentd at rest, RSS", (double)rest, "KiB", "<= 1024");
	stats_figure("agentd after the execs above and 50 kept children, RSS", (double)held, "KiB",
		     "flat");
}

static void bench_sizes(const char *bin_dir)
{
	static const struct {
		const char *name, *goal;
	} programs[] = { { "asb-init", "<= 120" },
			 { "agentd", "<= 400" },
			 { "asb-hooks", "<= 200" },
			 { "asb-portd", "<= 200" },
			 { "asb", "<= 2500" } };

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		char path[4096];
		struct stat st;

		(void)snprintf(path, sizeof(path), "%s/%s", bin_dir, programs[i].name);
		if (stat(path, &st) == 0)
			stats_figure(programs[i].name, (double)st.st_size / 1000, "KB",
				     programs[i].goal);
	}
}

int main(int argc, char **argv)
{
	struct bench_agent ag;

	if (argc != 3) {
		fprintf(stderr, "usage: bench-guest BIN_DIR TRUE\n");
		return 2;
	}
	curl_global_init(CURL_GLOBAL_DEFAULT);
	stats_title("Guest programs, no VM");
	bench_start(argv[1], "agentd");
	bench_start(argv[1], "asb-init");
	if (bench_agent_start(&ag, argv[1], "agentd") < 0 || bench_agent_wait(&ag, stats_now()) < 0)
		return 1;
	bench_memory(&ag);
	bench_exec(&ag, argv[2]);
	bench_agent_stop(&ag);
	stats_title("Sizes, stripped");
	bench_sizes(argv[1]);
	return 0;
}
