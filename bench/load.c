/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agentd under load, on this kernel, no VM: a GiB through each of its streams beside `cat` through a TCP pair on the loopback
 * interface, memory, and what is left after ten thousand commands.
 *     bench-load BIN_DIR
 */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"
#include "stats.h"

#define GIB	   (1ULL << 30)
#define N_GIB	   5
#define N_EXEC	   10000
#define N_ABORTED  1000
#define N_PARALLEL 200
#define N_HELD	   100
#define CHUNK	   (256 << 10)

static struct bench_agent ag;
static struct stats a, b;
static char chunk[CHUNK];

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "bench-load: %s failed\n", what);
	exit(1);
}

/* --- the floor: a command whose stdin or stdout is one end of a TCP connection --- */
static int tcp_pair(pid_t *ret_pid, const char *script, int child_fd)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(in);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	need(l >= 0 && bind(l, (struct sockaddr *)&in, n) == 0 && listen(l, 1) == 0 &&
		     getsockname(l, (struct sockaddr *)&in, &n) == 0,
	     "a listener");
	*ret_pid = fork();
	if (*ret_pid == 0) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0 || connect(fd, (struct sockaddr *)&in, sizeof(in)) < 0 ||
		    dup2(fd, child_fd) < 0)
			_exit(1);
		(void)close(fd);
		(void)execl("/bin/sh", "sh", "-c", script, (char *)NULL);
		_exit(1);
	}
	fd = accept(l, NULL, NULL);
	need(fd >= 0, "accept");
	(void)close(l);
	return fd;
}

static int64_t floor_down(const char *script)
{
	int64_t start = stats_now();
	uint64_t got = 0;
	pid_t pid;
	int fd = tcp_pair(&pid, script, 1);
	ssize_t k;

	while ((k = read(fd, chunk, sizeof(chunk))) > 0)
		got += (uint64_t)k;
	(void)close(fd);
	need(waitpid(pid, NULL, 0) == pid && got == GIB, script);
	return stats_now() - start;
}

static int64_t floor_up(const char *script)
{
	int64_t start = stats_now();
	uint64_t sent = 0;
	pid_t pid;
	int fd = tcp_pair(&pid, script, 0);
	ssize_t k;

	while (sent < GIB && (k = write(fd, chunk, sizeof(chunk))) > 0)
		sent += (uint64_t)k;
	(void)close(fd);
	need(waitpid(pid, NULL, 0) == pid && sent == GIB, script);
	return stats_now() - start;
}

/* --- the same through agentd --- */
struct flow {
	uint64_t bytes;
	long peak; /* KiB of RSS, looked at every 16 MiB */
};

static void look(struct flow *f, uint64_t more)
{
	if (f->bytes >> 24 != (f->bytes + more) >> 24) {
		long rss = bench_rss_of(ag.pid);

		f->peak = rss > f->peak ? rss : f->peak;
	}
	f->bytes += more;
}

static size_t on_data(char *p, size_t size, size_t n, void *arg)
{
	(void)p;
	look(arg, size * n);
	return size * n;
}

static size_t on_want(char *p, size_t size, size_t n, void *arg)
{
	struct flow *f = arg;
	size_t k = size * n < GIB - f->bytes ? size * n : (size_t)(GIB - f->bytes);

	memset(p, 'x', k);
	look(f, k);
	return k;
}

static long perform(CURL *c, const char *method, const char *path, const char *body, struct flow *f)
{
	char url[512];
	long status = -1;

	(void)snprintf(url, sizeof(url), "%s%s", ag.url, path);
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_BUFFERSIZE, (long)CHUNK);
	curl_easy_setopt(c, CURLOPT_UPLOAD_BUFFERSIZE, (long)CHUNK);
	curl_easy_setopt(c, CURLOPT_TIMEOUT, 300L);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, f);
	if (body) {
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
		curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method);
	} else if (!strcmp(method, "PUT")) {
		curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(c, CURLOPT_READFUNCTION, on_want);
		curl_easy_setopt(c, CURLOPT_READDATA, f);
		curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)GIB);
	} else {
		curl_easy_setopt(c, CURLOPT_HTTPGET, 1L);
		curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, method);
	}
	if (curl_easy_perform(c) == CURLE_OK)
		curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static long ask(const char *method, const char *path, const char *body, struct flow *f)
{
	struct flow none = { 0 };
	CURL *c = curl_easy_init();
	long status = perform(c, method, path, body, f ? f : &none);

	curl_easy_cleanup(c);
	return status;
}

static void bench_streams(const char *file)
{
	char get[600], cat[600], put[600], sink[600];
	struct flow f = { 0 };

	(void)snprintf(cat, sizeof(cat), "cat %s", file);
	(void)snprintf(sink, sizeof(sink), "cat >%s", file);
	(void)snprintf(get, sizeof(get), "/v1/files?path=%s", file);
	(void)snprintf(put, sizeof(put), "/v1/files?path=%s.put", file);
	stats_reset(&a, "cat >FILE of 1 GiB from a TCP connection");
	stats_reset(&b, "PUT /v1/files of the same (goal 2)");
	for (int i = 0; i < N_GIB; i++) {
		int64_t t;

		stats_add(&a, floor_up(sink));
		t = stats_now();
		f.bytes = 0;
		need(ask("PUT", put, NULL, &f) / 100 == 2, put);
		stats_add(&b, stats_now() - t);
		(void)unlink(put + strlen("/v1/files?path="));
	}
	stats_row(&a, NULL);
	stats_row(&b, &a);
	stats_reset(&a, "cat FILE of 1 GiB to a TCP connection");
	stats_reset(&b, "GET /v1/files of the same (goal 2)");
	for (int i = 0; i < N_GIB; i++) {
		int64_t t;

		stats_add(&a, floor_down(cat));
		t = stats_now();
		f.bytes = 0;
		need(ask("GET", get, NULL, &f) == 200 && f.bytes == GIB, get);
		stats_add(&b, stats_now() - t);
	}
	stats_row(&a, NULL);
	stats_row(&b, &a);
	stats_reset(&a, "head -c 1G /dev/zero to a TCP connection");
	stats_reset(&b, "GET .../output?follow=1 of the same (goal 2)");
	for (int i = 0; i < N_GIB; i++) {
		int64_t t;

		stats_add(&a, floor_down("head -c 1073741824 /dev/zero"));
		t = stats_now();
		f.bytes = 0;
		need(ask("PUT", "/v1/execs/gib", "{\"shell\":\"head -c 1073741824 /dev/zero\"}",
			 NULL) == 201,
		     "PUT");
		need(ask("GET", "/v1/execs/gib/output?follow=1", NULL, &f) == 200 && f.bytes > GIB,
		     "output");
		stats_add(&b, stats_now() - t);
		need(ask("DELETE", "/v1/execs/gib", NULL, NULL) == 200, "DELETE");
	}
	stats_row(&a, NULL);
	stats_row(&b, &a);
	stats_figure("agentd during all that, highest RSS", (double)f.peak, "KiB", "flat");
}

/* --- memory of what runs --- */
static void bench_held(void)
{
	long before = bench_rss_of(ag.pid), after;
	char path[64];

	for (int i = 0; i < N_HELD; i++) {
		(void)snprintf(path, sizeof(path), "/v1/execs/held%d", i);
		need(ask("PUT", path, "{\"argv\":[\"sleep\",\"1000\"],\"stdin\":true}", NULL) ==
			     201,
		     path);
	}
	after = bench_rss_of(ag.pid);
	stats_figure("agentd for each of 100 running execs, RSS", (double)(after - before) / N_HELD,
		     "KiB", "<= 64");
	for (int i = 0; i < N_HELD; i++) {
		(void)snprintf(path, sizeof(path), "/v1/execs/held%d?kill=1", i);
		need(ask("DELETE", path, NULL, NULL) == 200, path);
	}
}

/* --- what is left after many --- */
static int dial(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(ag.port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	need(fd >= 0 && connect(fd, (struct sockaddr *)&in, sizeof(in)) == 0, "connect");
	return fd;
}

static void send_exec(int fd, const char *script, int code)
{
	char body[256], text[512];
	int n = snprintf(body, sizeof(body),
			 "{\"command\":\"sh\",\"args\":[\"-c\",\"%s exit %d\"]}", script, code);
	int m = snprintf(
		text, sizeof(text),
		"POST /v1/exec HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		n, body);

	need(write(fd, text, (size_t)m) == m, "write");
}

/* Is the answer's exit_code CODE? An answer of an exec without output is one segment of a few hundred bytes. */
static int answered(int fd, int code)
{
	char text[2048], want[64];
	size_t n = 0;
	ssize_t k;

	(void)snprintf(want, sizeof(want), "\"exit_code\":%d,", code);
	while (n < sizeof(text) - 1 && (k = read(fd, text + n, sizeof(text) - 1 - n)) > 0) {
		n += (size_t)k;
		text[n] = '\0';
		if (strstr(text, "duration_ms") && text[n - 1] == '}')
			break;
	}
	text[n] = '\0';
	return strstr(text, want) != NULL;
}

static int count_fds(void)
{
	char path[64];
	DIR *d;
	int n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)ag.pid);
	d = opendir(path);
	while (d && readdir(d))
		n++;
	if (d)
		(void)closedir(d);
	return n - 2;
}

static int execs_one_by_one(void)
{
	int fd = dial(), wrong = 0;

	for (int i = 0; i < N_EXEC; i++) {
		send_exec(fd, "", i % 256);
		wrong += !answered(fd, i % 256);
	}
	(void)close(fd);
	return wrong;
}

static int execs_at_once(void)
{
	static int fd[N_PARALLEL];
	int wrong = 0;

	for (int i = 0; i < N_PARALLEL; i++) {
		fd[i] = dial();
		send_exec(fd[i], "sleep 0.5;", i);
	}
	for (int i = 0; i < N_PARALLEL; i++) {
		wrong += !answered(fd[i], i);
		(void)close(fd[i]);
	}
	return wrong;
}

static void streams_aborted(void)
{
	static const char get[] = "GET /v1/execs/loud/output?follow=1 HTTP/1.1\r\nHost: h\r\n\r\n";

	need(ask("PUT", "/v1/execs/loud", "{\"argv\":[\"yes\"]}", NULL) == 201, "yes");
	for (int i = 0; i < N_ABORTED; i++) {
		int fd = dial();

		need(write(fd, get, sizeof(get) - 1) > 0 && read(fd, chunk, sizeof(chunk)) > 0,
		     "a stream");
		(void)close(fd);
	}
	need(ask("DELETE", "/v1/execs/loud?kill=1", NULL, NULL) == 200, "DELETE");
}

static void bench_many(void)
{
	int wrong = execs_at_once(), fds, later;
	long rss, after;

	streams_aborted();
	for (int i = 0; i < 300; i++) { /* warm: what is kept for reuse is kept once */
		int fd = dial();

		send_exec(fd, "", 0);
		wrong += !answered(fd, 0);
		(void)close(fd);
	}
	(void)usleep(500000);
	rss = bench_rss_of(ag.pid);
	fds = count_fds();
	wrong += execs_one_by_one();
	streams_aborted();
	wrong += execs_at_once();
	(void)usleep(500000);
	after = bench_rss_of(ag.pid);
	later = count_fds();
	stats_figure("10,000 execs and 200 at once: wrong exit codes", wrong, "", "0");
	stats_figure("  and 1,000 aborted streams: descriptors more", later - fds, "", "0");
	stats_figure("  zombies", bench_zombies(ag.pid), "", "0");
	stats_figure("  RSS more", (double)(after - rss), "KiB", "0");
}

int main(int argc, char **argv)
{
	const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
	char file[256];

	if (argc != 2) {
		fprintf(stderr, "usage: bench-load BIN_DIR\n");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	curl_global_init(CURL_GLOBAL_DEFAULT);
	(void)snprintf(file, sizeof(file), "%s/asb-bench-%d", tmp ? tmp : "/tmp", (int)getpid());
	if (bench_agent_start(&ag, argv[1], "agentd") < 0 || bench_agent_wait(&ag, stats_now()) < 0)
		return 1;
	stats_title("agentd under load, files in memory");
	stats_figure("agentd at rest, RSS", (double)bench_rss_of(ag.pid), "KiB", "<= 1024");
	bench_held();
	bench_many();
	bench_streams(file);
	(void)unlink(file);
	bench_agent_stop(&ag);
	return 0;
}
