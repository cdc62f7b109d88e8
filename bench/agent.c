/* SPDX-License-Identifier: Apache-2.0 */
#include "agent.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stats.h"

#define WAIT_NS 10000000000LL

extern char **environ;

static uint16_t free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &n) < 0)
		a.sin_port = 0;
	if (fd >= 0)
		(void)close(fd);
	return ntohs(a.sin_port);
}

static int start(struct bench_agent *a, const char *program, const char *script)
{
	char port[16], hook[16], sock[64];
	char *argv[] = { (char *)(uintptr_t)program, (char *)(uintptr_t)script, NULL };
	posix_spawn_file_actions_t quiet;

	a->port = free_port();
	(void)snprintf(port, sizeof(port), "%u", a->port);
	(void)snprintf(hook, sizeof(hook), "%u", free_port());
	(void)snprintf(sock, sizeof(sock), "/tmp/asb-bench-%d.sock", (int)getpid());
	(void)snprintf(a->url, sizeof(a->url), "http://127.0.0.1:%u", a->port);
	(void)setenv("AGENTD_PORT", port, 1);
	(void)setenv("AGENTD_HOOK_PORT", hook, 1);
	(void)setenv("AGENTD_SOCKET", sock, 1);
	(void)setenv("AGENTD_BIND", "127.0.0.1", 1);
	if (script && (posix_spawn_file_actions_init(&quiet) ||
		       posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0) ||
		       posix_spawn_file_actions_adddup2(&quiet, 1, 2)))
		return -1; /* its access log is not our table */
	return posix_spawn(&a->pid, program, script ? &quiet : NULL, NULL, argv, environ) ? -1 : 0;
}

int bench_agent_start(struct bench_agent *a, const char *bin_dir, const char *program)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/%s", bin_dir, program);
	return start(a, path, NULL);
}

int bench_agent_start_script(struct bench_agent *a, const char *interpreter, const char *script)
{
	return start(a, interpreter, script);
}

void bench_agent_stop(struct bench_agent *a)
{
	(void)kill(a->pid, SIGTERM);
	(void)waitpid(a->pid, NULL, 0);
}

static int can_connect(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), r;

	if (fd < 0)
		return 0;
	r = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
	(void)close(fd);
	return r;
}

int64_t bench_agent_wait(struct bench_agent *a, int64_t start_ns)
{
	void *h;
	char url[96];
	int64_t took = -1;

	while (!can_connect(a->port))
		if (stats_now() - start_ns > WAIT_NS)
			return -1;
	h = bench_http_new();
	(void)snprintf(url, sizeof(url), "%s/healthz", a->url);
	while (took < 0 && stats_now() - start_ns < WAIT_NS)
		if (bench_http(h, url, NULL) == 200)
			took = stats_now() - start_ns;
	bench_http_free(h);
	return took;
}

static size_t drop(char *p, size_t size, size_t n, void *arg)
{
	(void)p;
	(void)arg;
	return size * n;
}

void *bench_http_new(void)
{
	CURL *c = curl_easy_init();

	if (!c)
		abort();
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, drop);
	curl_easy_setopt(c, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(c, CURLOPT_TIMEOUT, 60L);
	return c;
}

long bench_http(void *h, const char *url, const char *body)
{
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	CURL *c = h;
	long status = -1;

	curl_easy_setopt(c, CURLOPT_URL, url);
	if (body) {
		curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
		curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	} else {
		curl_easy_setopt(c, CURLOPT_HTTPGET, 1L);
	}
	if (curl_easy_perform(c) == CURLE_OK)
		curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, NULL);
	curl_slist_free_all(headers);
	return status;
}

void bench_http_free(void *h)
{
	curl_easy_cleanup(h);
}

/* One "Name:<tab>value" line of /proc/PID/status into OUT. */
static int status_value(pid_t pid, const char *name, char *out, size_t size)
{
	char path[64], line[256];
	size_t n = strlen(name);
	FILE *f;
	int r = -1;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	while (r < 0 && fgets(line, sizeof(line), f)) {
		if (strncmp(line, name, n) || line[n] != ':')
			continue;
		(void)snprintf(out, size, "%s", line + n + 1 + strspn(line + n + 1, " \t"));
		out[strcspn(out, "\n")] = '\0';
		r = 0;
	}
	(void)fclose(f);
	return r;
}

static int is_descendant(pid_t pid, pid_t of)
{
	char v[64];

	for (int i = 0; i < 16 && pid > 1; i++) {
		if (pid == of)
			return 1;
		if (status_value(pid, "PPid", v, sizeof(v)) < 0)
			return 0;
		pid = (pid_t)strtol(v, NULL, 10);
	}
	return 0;
}

long bench_rss_of(pid_t pid)
{
	char v[64];

	return status_value(pid, "VmRSS", v, sizeof(v)) < 0 ? -1 : strtol(v, NULL, 10);
}

int bench_zombies(pid_t parent)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	char v[64];
	int n = 0;

	while (d && (e = readdir(d))) {
		pid_t p = (pid_t)strtol(e->d_name, NULL, 10);

		if (p > 0 && status_value(p, "State", v, sizeof(v)) == 0 && v[0] == 'Z' &&
		    status_value(p, "PPid", v, sizeof(v)) == 0 && strtol(v, NULL, 10) == parent)
			n++;
	}
	if (d)
		(void)closedir(d);
	return n;
}

long bench_rss_kib(pid_t pid, const char *comm)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	long rss = -1;
	char v[64];

	while (d && rss < 0 && (e = readdir(d))) {
		pid_t p = (pid_t)strtol(e->d_name, NULL, 10);

		if (p <= 0 || status_value(p, "Name", v, sizeof(v)) < 0 || strcmp(v, comm) ||
		    !is_descendant(p, pid))
			continue;
		if (status_value(p, "VmRSS", v, sizeof(v)) == 0)
			rss = strtol(v, NULL, 10);
	}
	if (d)
		(void)closedir(d);
	return rss;
}
