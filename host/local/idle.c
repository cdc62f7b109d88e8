/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/local/expiry.h"
#include "host/local/life_int.h"
#include "lib/jsn.h"
#include "lib/log.h"
#include "lib/proto.h"

/*
 * --idle-timeout and --max-duration of a sandbox that runs.
 *
 * Idle is counted as Lambda MicroVMs does, by the bytes that pass between clients and guest (link.c knows when the last one came), and no
 * command may run in the guest, which its agent is asked. That question is no traffic. As long as commands
 * run it is asked again from time to time. A guest that lies about its commands keeps itself awake, or is suspended and loses nothing; one
 * that does not answer is suspended after UNANSWERED_MAX questions.
 *
 * A client that comes while the guest is being suspended for being idle ends that, up to the moment when all is on the disk: from
 * there on it is refused, finds the sandbox suspended and resumes it (wake.c).
 */

#define ASK_NS	       5000000000LL
#define AGAIN_NS       1000000000LL /* while something else is under way */
#define LOOK_LEAST_NS  1000000000LL /* between two questions about commands that run */
#define LOOK_MOST_NS   60000000000LL
#define END_STEP_MS    60000 /* the wall clock may be set, and stands still while the host sleeps */
#define GRACE_NS       10000000000LL
#define UNANSWERED_MAX 3

struct idle {
	struct loop_timer look, end;
	int64_t since; /* loop_now: what was seen last of anybody */
	unsigned holds, unanswered;
	bool busy;	 /* commands ran when we asked last */
	bool suspending; /* it is we who suspend it */
	int64_t began;	 /* ... since then */
	bool wanted;	 /* ... and somebody came meanwhile */
};

static int64_t timeout_ns(const struct vm *vm)
{
	return (int64_t)vm->config.idle_timeout_ms * 1000000;
}

static int64_t step_ns(const struct vm *vm)
{
	int64_t ns = timeout_ns(vm) / 4;

	return ns < LOOK_LEAST_NS ? LOOK_LEAST_NS : ns > LOOK_MOST_NS ? LOOK_MOST_NS : ns;
}

static int64_t idle_left(struct vm *vm)
{
	struct idle *i = vm->idle;
	int64_t moved = link_moved(vm);

	if (moved > i->since)
		i->since = moved;
	return i->since + timeout_ns(vm) - loop_now();
}

/* --- suspending it --- */
static void on_suspended(void *arg, const struct err *e)
{
	struct vm *vm = arg;
	struct idle *i = vm->idle;

	if (!i)
		return;
	i->suspending = false;
	if (e->code == ERR_NONE)
		return;
	if (i->wanted)
		log_info("not suspended: a client came");
	else
		log_warn("it is idle, but %s", e->msg);
	i->wanted = false;
}

static void suspend_now(struct vm *vm)
{
	struct idle *i = vm->idle;

	(void)snprintf(vm->idle_reason, sizeof(vm->idle_reason),
		       "no traffic and no command for %.10g s",
		       (double)vm->config.idle_timeout_ms / 1000);
	log_info("%s: it is suspended", vm->idle_reason);
	i->suspending = true;
	i->wanted = false;
	i->began = loop_now();
	life_suspend(vm, on_suspended, vm);
}

bool idle_interrupt(struct vm *vm)
{
	struct idle *i = vm->idle;

	if (!i || !i->suspending || vm->phase != VM_SUSPENDING)
		return false;
	if (!i->wanted) {
		i->wanted = true;
		suspend_interrupt(vm);
	}
	return true;
}

bool idle_wanted(struct vm *vm)
{
	struct idle *i = vm->idle;

	if (i && i->suspending && link_moved(vm) > i->began)
		i->wanted = true;
	return i && i->wanted;
}

bool idle_hand_over(struct vm *vm)
{
	struct idle *i = vm->idle;

	if (!i || !i->suspending || i->wanted || vm->phase != VM_SUSPENDING)
		return false;
	i->suspending = false;
	vm->idle_reason[0] = '\0';
	return true;
}

/* --- looking --- */
/* The number of commands that run, of agentd's /v1/info; negative: no answer. */
static int running(int status, const char *text)
{
	AUTO_JSN *j = status == 200 ? jsn_parse(text, strlen(text), NULL) : NULL;
	uint64_t n = 0;

	return j && jsn_u64(j, "execs", 0, INT32_MAX, &n, NULL) == 1 ? (int)n : -EPROTO;
}

static void on_info(struct vm *vm, int status, const char *text)
{
	struct idle *i = vm->idle;
	int n = running(status, text);

	if (!i || vm->phase != VM_RUNNING)
		return;
	i->unanswered = n < 0 ? i->unanswered + 1 : 0;
	i->busy = n > 0;
	if (n > 0)
		i->since = loop_now();
	if (n < 0)
		log_info("the agent does not say whether commands run: %d", status);
	if (i->busy || (n < 0 && i->unanswered < UNANSWERED_MAX))
		loop_arm(&vm->loop, &i->look, step_ns(vm));
	else if (idle_left(vm) > 0 || i->holds || vm->op_answer)
		loop_arm(&vm->loop, &i->look, idle_left(vm) > 0 ? idle_left(vm) : AGAIN_NS);
	else
		suspend_now(vm);
}

static void on_look(struct loop_timer *t)
{
	struct vm *vm = t->arg;
	struct idle *i = vm->idle;
	int64_t left;

	if (vm->phase != VM_RUNNING || i->holds) /* the end of either begins it anew */
		return;
	left = idle_left(vm);
	if (left > 0 && !i->busy)
		loop_arm(&vm->loop, &i->look, left);
	else if (vm->op_answer || hook_ask(vm, PROTO_AGENT_PORT, "/v1/info", ASK_NS, on_info) < 0)
		loop_arm(&vm->loop, &i->look, AGAIN_NS);
}

void idle_runs(struct vm *vm)
{
	struct idle *i = vm->idle;

	if (!i || !vm->config.idle_timeout_ms)
		return;
	vm->idle_reason[0] = '\0';
	i->since = loop_now();
	i->unanswered = 0;
	i->busy = false;
	loop_arm(&vm->loop, &i->look, timeout_ns(vm));
}

void idle_hold(struct vm *vm, bool on)
{
	struct idle *i = vm->idle;

	if (!i)
		return;
	if (on)
		i->holds++;
	else if (i->holds && --i->holds == 0 && vm->phase == VM_RUNNING)
		idle_runs(vm);
}

/* --- the longest it may last --- */
static void on_off(void *arg, const struct err *e)
{
	struct vm *vm = arg;

	if (e->code == ERR_NONE || !vm->idle)
		return;
	log_warn("%s", e->msg);
	loop_arm(&vm->loop, &vm->idle->end, AGAIN_NS);
}

static void on_end(struct loop_timer *t)
{
	struct vm *vm = t->arg;
	int64_t left_ms = expiry_of(&vm->config, &vm->status) - expiry_now();

	if (left_ms > 0) {
		loop_arm(&vm->loop, t, (left_ms < END_STEP_MS ? left_ms : END_STEP_MS) * 1000000);
	} else if (vm->op_answer || (vm->phase != VM_RUNNING && vm->phase != VM_SUSPENDED)) {
		loop_arm(&vm->loop, t, AGAIN_NS);
	} else {
		log_info("%s", EXPIRY_REASON);
		(void)snprintf(vm->end_reason, sizeof(vm->end_reason), EXPIRY_REASON);
		life_power_off(vm, GRACE_NS, on_off, vm);
	}
}

int idle_start(struct vm *vm)
{
	struct idle *i = calloc(1, sizeof(*i));

	if (!i)
		return -ENOMEM;
	i->look = i->end = (struct loop_timer)LOOP_TIMER_INIT;
	i->look.fn = on_look;
	i->end.fn = on_end;
	i->look.arg = i->end.arg = vm;
	vm->idle = i;
	if (vm->config.max_duration_ms)
		loop_arm(&vm->loop, &i->end, 0);
	return 0;
}

void idle_stop(struct vm *vm)
{
	struct idle *i = vm->idle;

	if (!i)
		return;
	loop_disarm(&i->look);
	loop_disarm(&i->end);
	vm->idle = NULL;
	free(i);
}
