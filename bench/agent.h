/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_BENCH_AGENT_H
#define ASB_BENCH_AGENT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Starting the guest programs for a measurement, and asking the agent over HTTP (libcurl). */

struct bench_agent {
	pid_t pid;     /* what was started */
	uint16_t port; /* of the agent API */
	char url[64];  /* http://127.0.0.1:<port> */
};

/* Starts BIN_DIR/PROGRAM ("agentd", or "asb-init": then the hooks run too) on free ports. 0 or -1. */
int bench_agent_start(struct bench_agent *a, const char *bin_dir, const char *program);
/* The same for a SCRIPT that INTERPRETER (a path) runs. */
int bench_agent_start_script(struct bench_agent *a, const char *interpreter, const char *script);
void bench_agent_stop(struct bench_agent *a);

/* Busy-waits until GET /healthz answers 200; ns since START_NS, or -1 after 10 s. */
int64_t bench_agent_wait(struct bench_agent *a, int64_t start_ns);

/* A kept connection. POST when BODY is set, else GET. The HTTP status, or -1. */
void *bench_http_new(void);
long bench_http(void *h, const char *url, const char *body);
void bench_http_free(void *h);

/* VmRSS in KiB of PID, or of the first descendant whose name is COMM. -1 when there is none. */
long bench_rss_kib(pid_t pid, const char *comm);
long bench_rss_of(pid_t pid); /* VmRSS in KiB, -1 when it is gone */
int bench_zombies(pid_t parent);

#endif
