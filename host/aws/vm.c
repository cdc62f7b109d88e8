/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/vm.h"

#include <errno.h>
#include <string.h>

#include "host/aws/call.h"
#include "host/aws/fetch.h"
#include "host/aws/ops.h"
#include "lib/loop.h"
#include "lib/str.h"

/*
 * States come late and may be skipped: RUNNING is still told right after a terminate, SUSPENDING and TERMINATING last
 * less than a second. So only those at which something stays are waited for.
 */

#define POLL_FIRST_NS 200000000LL
#define POLL_MOST_NS  1000000000LL
#define SECOND	      1000000000LL

const char *vm_text(const cJSON *o, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));
}

static enum sandbox_state state_of(const char *s)
{
	for (int i = SANDBOX_PENDING; s && i < SANDBOX_STATE_COUNT; i++)
		if (strcmp(sandbox_state_name((enum sandbox_state)i), s) == 0)
			return (enum sandbox_state)i;
	return SANDBOX_UNKNOWN;
}

static int64_t seconds_of(const cJSON *o, const char *name)
{
	const cJSON *j = cJSON_GetObjectItemCaseSensitive(o, name);
	double d = cJSON_GetNumberValue(j);

	return cJSON_IsNumber(j) && d > 0 && d < 1e12 ? (int64_t)d : 0;
}

/* Only of one that traffic resumes: any other ends when it has been idle. */
static int64_t idle_ms(const cJSON *o)
{
	const cJSON *policy = cJSON_GetObjectItemCaseSensitive(o, "idlePolicy");

	if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(policy, "autoResumeEnabled")))
		return 0;
	return seconds_of(policy, "maxIdleDurationSeconds") * 1000;
}

void vm_read(const cJSON *o, struct sandbox_info *ret)
{
	const char *id = vm_text(o, "microvmId"), *image = vm_text(o, "imageArn"),
		   *reason = vm_text(o, "stateReason");

	*ret = (struct sandbox_info){ .state = state_of(vm_text(o, "state")),
				      .net = NET_USER,
				      .created_s = seconds_of(o, "startedAt"),
				      .idle_timeout_ms = idle_ms(o) };
	/* longer ones than the model allows are cut */
	ignore_result(str_format(ret->id, sizeof(ret->id), "%s", id ? id : ""));
	ignore_result(str_format(ret->image, sizeof(ret->image), "%s", image ? image : ""));
	/* "Success." is what it says of one that was terminated on request. */
	if (reason && strcmp(reason, "Success.") != 0)
		ignore_result(str_format(ret->reason, sizeof(ret->reason), "%s", reason));
	str_clean(ret->id);
	str_clean(ret->image);
	str_clean(ret->reason);
}

static cJSON *params(const char *id)
{
	cJSON *q = cJSON_CreateObject();

	if (q && jsn_add_str(q, "microvmIdentifier", id))
		return q;
	cJSON_Delete(q);
	return NULL;
}

int vm_get(struct aws *a, const char *id, cJSON **ret, struct err *e)
{
	AUTO_JSN *q = params(id);
	struct aws_answer w;
	int r = ops_call(a, OP_GET_MICROVM, q, &w, e);

	if (r == 0) {
		*ret = w.json;
		w.json = NULL;
	}
	aws_answer_done(&w);
	return r;
}

int vm_do(struct aws *a, enum aws_op_id op, const char *id, struct err *e)
{
	AUTO_JSN *q = params(id);
	struct aws_answer w;
	int r = ops_call(a, op, q, &w, e);

	aws_answer_done(&w);
	return r;
}

static int ended(const struct sandbox_info *i, struct err *e)
{
	return err_set(e, ERR_UNAVAILABLE, 0, "the MicroVM has ended%s%s", i->reason[0] ? ": " : "",
		       i->reason);
}

/* 1: as wanted. 0: not yet. Negative: never. */
static int look(struct aws *a, const char *id, enum sandbox_state want, cJSON **ret, struct err *e)
{
	struct sandbox_info i;
	cJSON *doc = NULL;
	int r = vm_get(a, id, &doc, e);

	if (r < 0)
		return r;
	vm_read(doc, &i);
	if (ret) {
		cJSON_Delete(*ret);
		*ret = doc;
	} else {
		cJSON_Delete(doc);
	}
	if (i.state == want)
		return 1;
	return i.state == SANDBOX_TERMINATED || i.state == SANDBOX_TERMINATING ? ended(&i, e) : 0;
}

int vm_wait(struct aws *a, const char *id, enum sandbox_state want, const struct progress *p,
	    int64_t deadline_ns, cJSON **ret, struct err *e)
{
	int64_t began = loop_now(), pause = POLL_FIRST_NS;
	bool fresh = true; /* one that was made just now may not be known everywhere yet */
	int r;

	for (;;) {
		r = look(a, id, want, ret, e);
		if (r == -ENOENT && fresh && loop_now() - began < 10 * SECOND)
			r = 0;
		else
			fresh = false;
		if (r)
			return r < 0 ? r : 0;
		if (loop_now() + pause >= deadline_ns)
			return err_set(e, ERR_TIMEOUT, ETIMEDOUT, "the MicroVM is not %s",
				       sandbox_state_name(want));
		if (p && p->fn)
			p->fn(p->arg, "microvm", (loop_now() - began) / 1000000);
		if (fetch_sleep(a->fetch, pause) < 0)
			return err_set(e, ERR_UNAVAILABLE, EINTR, "waiting for the MicroVM");
		pause = pause * 3 / 2 < POLL_MOST_NS ? pause * 3 / 2 : POLL_MOST_NS;
	}
}
