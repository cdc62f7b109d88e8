/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/mcp/policy.h"
#include "host/mcp/tools.h"
#include "lib/loop.h"
#include "lib/str.h"

/* Sandboxes: made, listed, started, stopped, removed, waited for, copied. */

#define BRANCH_MAX 16
#define POLL_NS	   (200 * 1000000LL)

/* --- states --- */

const char *life_state(const struct core_named *n)
{
	struct sandbox_info i;
	int r = n->backend->info(n->record.microvm_id, &i, NULL);

	if (r < 0)
		return r == -ENOENT ? "stopped" : "unknown";
	switch (i.state) {
	case SANDBOX_PENDING:
		return "pending";
	case SANDBOX_RUNNING:
	case SANDBOX_SUSPENDING:
		return "running";
	case SANDBOX_SUSPENDED:
		return "suspended";
	case SANDBOX_TERMINATING:
	case SANDBOX_TERMINATED:
		return "stopped";
	case SANDBOX_UNKNOWN:
	case SANDBOX_STATE_COUNT:
		break;
	}
	return "unknown";
}

cJSON *life_summary(const struct state_record *r)
{
	const struct backend *b = backend_of_id(r->microvm_id);
	struct sandbox_info i;
	int found = b->info(r->microvm_id, &i, NULL);
	AUTO_JSN *j = cJSON_CreateObject();
	cJSON *ret = j;

	if (!j || !jsn_add_str(j, "name", r->name) ||
	    !jsn_add_str(j, "microvm_id", r->microvm_id) ||
	    !jsn_add_str(j, "endpoint", r->endpoint) ||
	    !jsn_add_str(j, "image_arn", core_image_name(r, found == 0 ? &i : NULL)) ||
	    !jsn_add_str(j, "region", r->region) ||
	    !jsn_add_str(j, "status", found == 0 ? sandbox_state_name(i.state) : "unreachable") ||
	    !jsn_add_str(j, "backend", b->name))
		return NULL;
	j = NULL;
	return ret;
}

static int add_summary(void *list, const struct state_record *r)
{
	cJSON *j = life_summary(r);

	return j && cJSON_AddItemToArray(list, j) ? 0 : -ENOMEM;
}

int life_list(cJSON *o, struct err *e)
{
	cJSON *list = cJSON_AddArrayToObject(o, "sandboxes");
	int r = list ? state_each(add_summary, list, e) : -ENOMEM;

	if (r == 0 && !jsn_add_u64(o, "count", (uint64_t)cJSON_GetArraySize(list)))
		r = -ENOMEM;
	return r;
}

int tool_list(struct mcp_job *j, struct err *e)
{
	return life_list(j->data, e);
}

int tool_status(struct mcp_job *j, struct err *e)
{
	struct core_named n;
	int r;

	if (job_null(j, "name")) {
		r = life_list(j->data, e);
		cJSON_DeleteItemFromObjectCaseSensitive(j->data, "count");
		return r;
	}
	r = job_find(j, &n, "not_found", e);
	if (r < 0)
		return r;
	cJSON_Delete(j->data);
	j->data = life_summary(&n.record);
	core_named_done(&n);
	return j->data ? 0 : err_set(e, ERR_INTERNAL, ENOMEM, "the state");
}

int tool_inspect(struct mcp_job *j, struct err *e)
{
	struct core_named n;
	char *text = NULL;
	cJSON *doc = NULL;
	int r = job_find(j, &n, "not_found", e);

	if (r < 0)
		return r;
	r = n.backend->inspect ? n.backend->inspect(n.record.microvm_id, &text, e)
			       : job_unsupported(n.backend, "inspect", e);
	if (r == -ENOENT)
		(void)err_set(e, ERR_NOT_FOUND, 0, "there is no machine behind '%s' any more",
			      n.record.name);
	if (r == 0) {
		doc = jsn_parse(text, strlen(text), e);
		r = doc ? 0 : -EIO;
	}
	free(text);
	if (r == 0 && (!jsn_add_str(j->data, "name", n.record.name) ||
		       !cJSON_AddItemToObject(j->data, "microvm", doc)))
		r = err_set(e, ERR_INTERNAL, ENOMEM, "the description");
	core_named_done(&n);
	return r;
}

/* --- made --- */

/* A MicroVM on AWS without a connector reaches the internet, and nothing that could be asked for takes that away. */
static int want_net(struct mcp_job *j, struct sandbox_spec *spec, const struct backend *b,
		    struct err *e)
{
	bool on_aws = b != &backend_local;
	bool wanted = job_bool(j, "egress") || !job_null(j, "egress_connector");
	int r = policy_network(j, on_aws, "every sandbox on AWS", e);

	if (r == 0)
		r = policy_network(j, wanted, "this one", e);
	if (r < 0)
		return r;
	if (wanted)
		spec->net = NET_USER;
	spec->egress = job_str(j, "egress_connector");
	if (on_aws && wanted && !spec->egress)
		spec->egress = platform_egress();
	return 0;
}

int life_spec(struct mcp_job *j, struct sandbox_spec *spec, const struct backend **ret_backend,
	      struct err *e)
{
	int r = core_choose(j->cfg->cli, job_str(j, "image"), ret_backend, &spec->image, e);

	spec->region = job_str(j, "region");
	spec->role = job_str(j, "role");
	if (r == 0)
		r = want_net(j, spec, *ret_backend, e);
	if (r == 0 && *ret_backend == &backend_local && !job_null(j, "egress_connector"))
		r = job_fail(
			j, e, "unsupported",
			"not supported by the local backend: egress_connector (egress: true gives the network that "
			"asb create --net user does)");
	return r;
}

static int describe(struct mcp_job *j, const struct core_named *n, struct err *e)
{
	if (jsn_add_str(j->data, "name", n->record.name) &&
	    jsn_add_str(j->data, "microvm_id", n->record.microvm_id) &&
	    jsn_add_str(j->data, "endpoint", n->record.endpoint) &&
	    jsn_add_str(j->data, "state", life_state(n)))
		return 0;
	return err_set(e, ERR_INTERNAL, ENOMEM, "the sandbox");
}

int tool_create(struct mcp_job *j, struct err *e)
{
	const struct opt_spec *cpus = &cli_opts[OPT_CPUS], *memory = &cli_opts[OPT_MEMORY];
	struct sandbox_spec s = { .name = job_str(j, "name") };
	const struct backend *b;
	struct core_named n;
	struct core_made m;
	int r = state_check_name(s.name, e);

	if (r < 0)
		return r;
	if (job_int(j, "cpus") < (int64_t)cpus->min || job_int(j, "cpus") > (int64_t)cpus->max ||
	    job_int(j, "memory") < (int64_t)memory->min ||
	    job_int(j, "memory") > (int64_t)memory->max)
		return job_fail(j, e, "ValueError", "cpus is %d to %d, memory %d to %d MiB",
				(int)cpus->min, (int)cpus->max, (int)memory->min, (int)memory->max);
	s.cpus = (uint32_t)job_int(j, "cpus");
	s.memory_mib = (uint64_t)job_int(j, "memory");
	r = life_spec(j, &s, &b, e);
	if (r == 0)
		r = core_create(b, &s, &j->progress, LIFE_START_NS, &m, e);
	if (r == 0)
		r = core_keep(&m, e);
	if (r == 0)
		r = job_find(j, &n, NULL, e);
	if (r != 0)
		return r;
	job_log(j, MCP_LOG_INFO, "created '%s' (%s) from %s", n.record.name, n.record.microvm_id,
		s.image);
	job_log_emulated(j, b, n.record.microvm_id);
	r = describe(j, &n, e);
	core_named_done(&n);
	return r;
}

/* --- started, stopped, removed --- */

/* The sandbox and what its platform says of it now. */
static int find_info(struct mcp_job *j, struct core_named *n, struct sandbox_info *i, struct err *e)
{
	int r = job_find(j, n, "SandboxError", e);

	if (r < 0)
		return r;
	r = n->backend->info(n->record.microvm_id, i, e);
	if (r < 0)
		core_named_done(n);
	return r;
}

static int resume(struct mcp_job *j, const struct core_named *n, struct err *e)
{
	int r;

	if (!n->backend->resume)
		return job_unsupported(n->backend, "starting a sandbox again", e);
	core_cancel_begin(&j->progress);
	r = n->backend->resume(n->record.microvm_id, &j->progress, loop_now() + LIFE_START_NS, e);
	core_cancel_end();
	return r;
}

int tool_start(struct mcp_job *j, struct err *e)
{
	struct core_named n;
	struct sandbox_info i;
	int r = find_info(j, &n, &i, e);

	if (r < 0)
		return r;
	if (i.state != SANDBOX_RUNNING)
		r = resume(j, &n, e);
	if (r == 0 && i.state != SANDBOX_RUNNING)
		job_log(j, MCP_LOG_INFO, "started '%s', which was %s", n.record.name,
			sandbox_state_name(i.state));
	if (r == 0)
		r = describe(j, &n, e);
	core_named_done(&n);
	return r;
}

int tool_stop(struct mcp_job *j, struct err *e)
{
	struct core_named n;
	struct sandbox_info i;
	int r = find_info(j, &n, &i, e);

	if (r < 0)
		return r;
	job_progress(j, 0, 0, "suspending");
	if (i.state != SANDBOX_SUSPENDED && i.state != SANDBOX_TERMINATED)
		r = n.backend->suspend ? n.backend->suspend(n.record.microvm_id, e)
				       : job_unsupported(n.backend, "suspend", e);
	if (r == 0)
		job_log(j, MCP_LOG_INFO, "suspended '%s'", n.record.name);
	if (r == 0 && (!jsn_add_str(j->data, "name", n.record.name) ||
		       !jsn_add_str(j->data, "state",
				    i.state == SANDBOX_TERMINATED ? "stopped" : "suspended")))
		r = -ENOMEM;
	core_named_done(&n);
	return r;
}

int tool_remove(struct mcp_job *j, struct err *e)
{
	struct core_named n;
	int r = job_find(j, &n, "not_found", e);

	if (r < 0)
		return r;
	job_progress(j, 0, 0, "removing");
	r = core_remove(&n, e);
	if (r == 0)
		job_log(j, MCP_LOG_INFO, "removed '%s' (%s)", n.record.name, n.record.microvm_id);
	if (r == 0 && (!jsn_add_str(j->data, "name", n.record.name) ||
		       !jsn_add_bool(j->data, "removed", true)))
		r = -ENOMEM;
	core_named_done(&n);
	return r;
}

/* --- waited for --- */

static bool is_over(const char *state)
{
	return !strcmp(state, "stopped") || !strcmp(state, "failed");
}

int tool_wait(struct mcp_job *j, struct err *e)
{
	const char *target = job_str(j, "target"), *state;
	double limit = job_num(j, "timeout");
	int64_t until =
		loop_now() + (int64_t)((limit > 0 ? limit < 86400 ? limit : 86400 : 0) * 1e9);
	struct core_named n;
	bool timed_out = false;
	int r = job_find(j, &n, "not_found", e);

	if (r < 0)
		return r;
	while (state = life_state(&n),
	       strcasecmp(state, target) != 0 && !is_over(state) && !timed_out) {
		job_pause(j, POLL_NS);
		timed_out = loop_now() > until;
		job_elapsed(j, JOB_OFTEN_NS, state);
	}
	if (timed_out && strcasecmp(state, target) != 0 && !is_over(state)) {
		j->extra = cJSON_CreateObject();
		if (!j->extra || !jsn_add_str(j->extra, "state", state))
			r = -ENOMEM;
		else
			r = job_fail(j, e, "timeout", "'%s' is %s, not %s, after %g s",
				     n.record.name, state, target, limit);
	} else if (!jsn_add_str(j->data, "name", n.record.name) ||
		   !jsn_add_str(j->data, "state", state) ||
		   !jsn_add_bool(j->data, "reached_target", !strcasecmp(state, target))) {
		r = -ENOMEM;
	}
	core_named_done(&n);
	return r;
}

/* --- copied --- */

static int tell_children(struct mcp_job *j, const struct core_child *all, size_t n)
{
	cJSON *list = cJSON_AddArrayToObject(j->data, "sandboxes"), *o, *why;

	for (size_t i = 0; i < n; i++) {
		o = list ? cJSON_CreateObject() : NULL;
		if (!o || !cJSON_AddItemToArray(list, o) || !jsn_add_str(o, "name", all[i].name))
			return -ENOMEM;
		if (all[i].child.result == 0) {
			if (!jsn_add_str(o, "microvm_id", all[i].id))
				return -ENOMEM;
			job_log(j, MCP_LOG_INFO, "created '%s' (%s) as a copy", all[i].name,
				all[i].id);
			continue;
		}
		why = cJSON_AddObjectToObject(o, "error");
		if (!why || !jsn_add_str(why, "code", err_code_name(all[i].child.err.code)) ||
		    !jsn_add_str(why, "message", all[i].child.err.msg))
			return -ENOMEM;
	}
	return 0;
}

static int may_copy(struct mcp_job *j, const struct core_named *n, struct err *e)
{
	struct sandbox_info i;

	if (!j->cfg->no_network)
		return 0;
	/* what cannot be read is not trusted */
	return policy_network(j,
			      n->backend->info(n->record.microvm_id, &i, NULL) < 0 ||
				      i.net != NET_NONE,
			      n->record.name, e);
}

int tool_branch(struct mcp_job *j, struct err *e)
{
	const cJSON *names = jsn_get(j->args, "names"), *x;
	const char *name[BRANCH_MAX];
	struct core_child *all;
	struct core_named n;
	size_t len = 0;
	int r = 0;

	if (cJSON_GetArraySize(names) < 1 || cJSON_GetArraySize(names) > BRANCH_MAX)
		return job_fail(j, e, "ValueError", "names: 1 to %d new names", BRANCH_MAX);
	cJSON_ArrayForEach(x, names)
	{
		name[len++] = x->valuestring;
		r = r < 0 ? r : state_check_name(x->valuestring, e);
	}
	if (r == 0)
		r = job_find(j, &n, "not_found", e);
	if (r != 0)
		return r;
	all = calloc(BRANCH_MAX, sizeof(*all));
	if (!all)
		r = -ENOMEM;
	else if (!n.backend->branch)
		r = job_unsupported(n.backend, "branch", e);
	else
		r = may_copy(j, &n, e);
	if (r == 0)
		job_progress(j, 0, 0, "copying");
	if (r == 0)
		r = core_branch(&n, name, len, &j->progress, LIFE_START_NS, all, e);
	if (r == 0)
		r = tell_children(j, all, len);
	free(all);
	core_named_done(&n);
	return r;
}
