/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agentd beside a stand-in for the Python original (bench/original.py), the same work in the same run:
 *     bench-peer BIN_DIR TRUE PYTHON ORIGINAL
 * Each pair of rows: the stand-in first, then agentd with its ratio to it.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "stats.h"

#define N_START 15
#define N_EXEC	500
#define N_READ	9
#define FILE_MB 64

static struct stats theirs, ours;

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "bench-peer: %s failed\n", what);
	exit(1);
}

static void start_both(const char *bin_dir, const char *python, const char *script,
		       struct bench_agent *them, struct bench_agent *us)
{
	int64_t t = stats_now();
	int64_t took;

	need(bench_agent_start_script(them, python, script) == 0, python);
	took = bench_agent_wait(them, t);
	need(took > 0, script);
	stats_add(&theirs, took);
	t = stats_now();
	need(bench_agent_start(us, bin_dir, "agentd") == 0, "agentd");
	took = bench_agent_wait(us, t);
	need(took > 0, "agentd");
	stats_add(&ours, took);
}

static void rows(void)
{
	stats_row(&theirs, NULL);
	stats_row(&ours, &theirs);
}

/* N times BODY to PATH on a kept connection to each, in turn. */
static void compare(const struct bench_agent *them, const struct bench_agent *us, const char *path,
		    const char *body, int n, const char *their_name, const char *our_name)
{
	void *h = bench_http_new(), *k = bench_http_new();
	char url[2][128];

	(void)snprintf(url[0], sizeof(url[0]), "%s%s", them->url, path);
	(void)snprintf(url[1], sizeof(url[1]), "%s%s", us->url, path);
	stats_reset(&theirs, their_name);
	stats_reset(&ours, our_name);
	for (int i = 0; i < n; i++) {
		int64_t t = stats_now();

		need(bench_http(h, url[0], body) == 200, their_name);
		stats_add(&theirs, stats_now() - t);
		t = stats_now();
		need(bench_http(k, url[1], body) == 200, our_name);
		stats_add(&ours, stats_now() - t);
	}
	bench_http_free(h);
	bench_http_free(k);
	rows();
}

static void make_file(const char *path)
{
	static char block[1 << 20];
	FILE *f = fopen(path, "we");

	need(f != NULL, path);
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (char)(i * 2654435761U >> 13);
	for (int i = 0; i < FILE_MB; i++)
		need(fwrite(block, sizeof(block), 1, f) == 1, path);
	need(fclose(f) == 0, path);
}

int main(int argc, char **argv)
{
	struct bench_agent them, us;
	char path[512], body[4200];
	const char *tmp = getenv("TMPDIR");
	long a, b;

	if (argc != 5) {
		fprintf(stderr, "usage: bench-peer BIN_DIR TRUE PYTHON ORIGINAL\n");
		return 2;
	}
	curl_global_init(CURL_GLOBAL_DEFAULT);
	stats_title(
		"agentd beside the same routes in FastAPI and uvicorn (stand-in for the Python original)");
	stats_reset(&theirs, "Python: start to /healthz 200");
	stats_reset(&ours, "agentd: start to /healthz 200 (goal 1/50 = 0.02)");
	for (int i = 0; i < N_START; i++) {
		start_both(argv[1], argv[3], argv[4], &them, &us);
		if (i + 1 < N_START) {
			bench_agent_stop(&them);
			bench_agent_stop(&us);
		}
	}
	rows();
	a = bench_rss_of(them.pid);
	b = bench_rss_of(us.pid);
	stats_figure("Python: at rest, RSS", (double)a, "KiB", "-");
	stats_figure("agentd: at rest, RSS", (double)b, "KiB", "<= 1/20");
	stats_figure("  times less memory", b > 0 ? (double)a / (double)b : 0, "x", ">= 20");
	(void)snprintf(body, sizeof(body), "{\"command\":\"%s\"}", argv[2]);
	compare(&them, &us, "/v1/exec", body, N_EXEC,
		"Python: POST /v1/exec of a static true, kept connection",
		"agentd: the same (goal 1/5 = 0.2)");
	(void)snprintf(path, sizeof(path), "%s/bench-64MiB", tmp ? tmp : "/tmp");
	make_file(path);
	(void)snprintf(body, sizeof(body), "{\"path\":\"%s\"}", path);
	compare(&them, &us, "/v1/fs/read", body, N_READ, "Python: POST /v1/fs/read of 64 MiB",
		"agentd: the same (goal 1/10 = 0.1)");
	(void)unlink(path);
	bench_agent_stop(&them);
	bench_agent_stop(&us);
	return 0;
}
