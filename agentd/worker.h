/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_WORKER_H
#define AGENTD_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/httpd.h"

/*
 * Long disk work, in a process of its own: agentd executes itself as `agentd-worker VERB ARGS…` with a clean memory (no
 * token), no environment, no descriptor but 0 and 1, resource limits, and a group below asb/work where there are cgroups: a tar bomb
 * is charged to the workload.
 *
 * Two halves that meet in two pipes: worker_* runs in agentd, work_* in the worker.
 */
struct loop;

#define WORKER_ARGS_MAX 16

/* --- in agentd --- */

/* Remembers the running program, so that it can be executed also when its file has been replaced. Before the loop runs. */
void worker_start(struct loop *l);
void worker_stop(void);	    /* kills what is left; after the loop */
void worker_kill_all(void); /* their requests are answered or cut */
bool worker_ended(
	pid_t pid); /* a child has ended: true when it was a worker, which is then reaped here */
unsigned worker_running(void);

enum worker_input {
	WORKER_NO_INPUT, /* /dev/null-like: it ends at once */
	WORKER_BODY,	 /* the collected body of a BUFFER route */
	WORKER_STREAM, /* the body of a STREAM route, with flow control; call worker_serve from the handler */
};

/*
 * Answers R by what the worker VERB says. ARGS: the words after VERB, up to WORKER_ARGS_MAX, any bytes but NUL (copied). R counts as in flight. 503 when LIMIT_WORKERS are running. The worker is killed when the
 * client goes, and when the worker makes no progress for LIMIT_WORKER_NS (504).
 */
void worker_serve(struct httpd_req *r, const char *verb, const char *const *args, unsigned nargs,
		  enum worker_input input);

/* --- in the worker --- */
struct cJSON;

struct work_verb {
	const char *name;
	/* ARGV as given to worker_serve. It answers by exactly one of the calls below and returns the exit status: 0 when the
	 * answer is complete. After work_begin anything else cuts the connection, so that the client sees it is not. */
	int (*fn)(int argc, char **argv);
};
extern const struct work_verb work_verbs[]; /* work_verbs.c; ends at name == NULL */

int worker_main(int argc, char **argv); /* main() of a process whose argv[0] is WORKER_NAME */
#define WORKER_NAME "agentd-worker"

/* The whole answer: STATUS and O (owned; NULL = {}) as its JSON body, at most LIMIT_WORKER_HEAD as text. Last act of
 * the verb. Returns its exit status. */
int work_reply(int status, struct cJSON *o);
/* The same with {"detail": …}, and "errno" by name when ERRNUM is not 0; its text is then added to the message. STATUS 0 =
 * fsop_status(ERRNUM). */
int work_error(int status, int errnum, const char *fmt, ...) PRINTF(3, 4);
/* The same for what err_set has described: its errno decides the status, else its code. O (owned; may be
 * NULL) has further members. */
int work_fail(const struct err *e, struct cJSON *o);
/* Begins an answer of 200 whose body is then written by work_write. LENGTH -1 = not known. 0 or negative errno. */
int work_begin(const char *content_type, int64_t length) MUST_CHECK;
int work_write(const void *p, size_t n) MUST_CHECK; /* all of it; 0 or negative errno */
/* "I live": call it in every loop that can last and writes nothing; it is cheap. No effect after work_begin. */
void work_alive(void);

#endif
