/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#include <errno.h>
#include <string.h>

#include "lib/log.h"

/*
 * Who asks while the job runs joins it. /run is the exception: one body only. The first one that
 * comes is the winner from the moment on in which its job starts; a job that fails makes room
 * again, so that the platform may retry.
 *
 * Steps run until one waits. The time of each is cut to what is left for all; a step for which
 * nothing is left has failed with ETIMEDOUT, and if it is no `must`, the answer is still given in
 * time.
 */

static void on_waiter_end(void *arg)
{
	struct waiter *w = arg;

	w->r = NULL;
}

static void add_waiter(struct job *j, struct httpd_req *r)
{
	for (int i = 0; i < JOB_WAITERS; i++) {
		if (j->waiter[i].r)
			continue;
		j->waiter[i].r = r;
		httpd_on_end(r, on_waiter_end, &j->waiter[i]);
		return;
	}
	httpd_reply(r, 503, NULL, "", 0);
}

static void finish(struct job *j, int status)
{
	j->active = false;
	payload_done(&j->payload);
	for (int i = 0; i < JOB_WAITERS; i++) {
		struct httpd_req *r = j->waiter[i].r;

		j->waiter[i].r = NULL;
		if (!r)
			continue;
		httpd_on_end(r, NULL, NULL);
		httpd_reply(r, status, NULL, "", 0);
	}
}

static int64_t step_time(const struct job *j, const struct step *s)
{
	int64_t left = j->end_ns - loop_now(),
		want = s->limit_ns ? s->limit_ns : j->h->drain_ns + JOB_MARGIN_NS;

	return left < want ? left : want;
}

/* The step at hand has ended with R. True: go on; false: the job is over. */
static bool step_over(struct job *j, int r)
{
	const struct step *s = &j->phase->steps[j->step];

	if (r < 0)
		log_warn("%s: %s: %s", j->phase->name, s->name, strerror(-r));
	if (r < 0 && s->must) {
		finish(j, 503);
		return false;
	}
	j->step++;
	return true;
}

static void run_steps(struct job *j)
{
	const struct step *s;

	while ((s = &j->phase->steps[j->step])->fn) {
		int64_t ns = step_time(j, s);
		int r = ns > 0 ? s->fn(j, ns) : -ETIMEDOUT;

		if (r == STEP_WAIT || !step_over(j, r))
			return;
	}
	finish(j, 200);
}

void job_go_on(struct job *j, int result)
{
	if (step_over(j, result))
		run_steps(j);
}

void job_init(struct job *j, struct hooks *h, const struct phase *phase)
{
	*j = (struct job){ .h = h, .phase = phase };
}

/* False: R has been answered. */
static bool read_body(struct job *j, struct httpd_req *r, const char *body, size_t n)
{
	struct err e = ERR_INIT;

	if (payload_parse(body, n, &j->payload, &e) == 0)
		return true;
	if (!j->phase->once) {
		log_warn("%s: %s", j->phase->name, e.msg);
		return true;
	}
	httpd_reply_error(r, err_http_status(e.code), "%s", e.msg);
	return false;
}

/* /run: true when R is a new one or one that may join; else it has been answered. */
static bool admit_once(struct job *j, struct httpd_req *r, const struct once_digest *d)
{
	const struct once_digest *mine = j->active ? &j->digest : &j->h->once.done;

	if (!mine->hex[0] || (j->active && once_same(mine, d)))
		return true;
	if (once_same(mine, d))
		httpd_reply(r, 200, NULL, "", 0);
	else
		httpd_reply_error(r, 409, "run was called before with something else");
	return false;
}

void job_ask(struct job *j, struct httpd_req *r, const char *body, size_t n)
{
	struct once_digest d = { "" };

	if (j->phase->once) {
		once_digest(body, n, &d);
		if (!admit_once(j, r, &d))
			return;
	}
	if (!j->active && j->phase->payload && !read_body(j, r, body, n))
		return;
	add_waiter(j, r);
	if (j->active)
		return;
	j->active = true;
	j->digest = d;
	j->step = 0;
	j->end_ns = loop_now() + j->phase->limit_ns + (j->phase->drains ? j->h->drain_ns : 0);
	run_steps(j);
}
