/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "host/core/forward.h"
#include "host/mcp/tools.h"

/*
 * Ports of sandboxes on 127.0.0.1. The worker that has started a forward serves it after its answer, as a child of the server, and
 * ends with it. A forward is named by its local port, which no other can have.
 */

#define POLL_NS	 (5 * 1000000000LL)
#define KEPT_MAX 32

struct kept_forward {
	struct core_named n;
	struct forward *f;
};

static void serve(void *arg)
{
	struct kept_forward *k = arg;
	struct err e = ERR_INIT;

	ignore_result(forward_run(k->f, &e)); /* nobody is left to hear why */
	forward_close(k->f);
}

static int check(struct mcp_job *j, struct port_spec *ret, struct err *e)
{
	int64_t port = job_int(j, "port"), local = job_int(j, "local_port");

	if (j->cfg->no_network)
		return job_fail(j, e, "policy_denied",
				"this server was started with --no-network: nothing is forwarded");
	if (port < 1 || port > 65535 || local < 0 || local > 65535)
		return job_fail(j, e, "ValueError",
				"port is 1 to 65535, local_port 0 to 65535; 0 picks a free one");
	if (cJSON_GetArraySize(j->kept) >= KEPT_MAX)
		return job_fail(j, e, "too_big", "at most %d forwards at a time", KEPT_MAX);
	*ret = (struct port_spec){ .address = "127.0.0.1",
				   .local = (uint16_t)local,
				   .remote = (uint16_t)port };
	return 0;
}

static bool add_forward(cJSON *o, const char *name, uint64_t local, uint64_t port)
{
	return jsn_add_str(o, "name", name) && jsn_add_str(o, "address", "127.0.0.1") &&
	       jsn_add_u64(o, "local_port", local) && jsn_add_u64(o, "port", port);
}

int tool_forward_start(struct mcp_job *j, struct err *e)
{
	static struct kept_forward k; /* until the process ends */
	struct port_spec spec = { .local = 0 };
	int r = check(j, &spec, e);

	if (r == 0)
		r = job_find(j, &k.n, "SandboxError", e);
	if (r != 0)
		return r;
	r = forward_possible(k.n.backend) ? forward_open(&k.n, &spec, 1, POLL_NS, &k.f, e)
					  : job_unsupported(k.n.backend, "forwards", e);
	if (r == 0 &&
	    !add_forward(j->data, k.n.record.name, forward_port(k.f, 0)->local, spec.remote))
		r = -ENOMEM;
	if (r == 0)
		job_log(j, MCP_LOG_INFO, "127.0.0.1:%u leads to port %u of '%s'",
			forward_port(k.f, 0)->local, spec.remote, k.n.record.name);
	return r < 0 ? r : job_keep(j, j->data, serve, &k);
}

int tool_forward_list(struct mcp_job *j, struct err *e)
{
	cJSON *list = cJSON_AddArrayToObject(j->data, "forwards"), *x;

	(void)e;
	cJSON_ArrayForEach(x, j->kept)
	{
		cJSON *o = list ? cJSON_Duplicate(x, true) : NULL;

		if (!o)
			return -ENOMEM;
		cJSON_DeleteItemFromObject(o, "pid");
		if (!cJSON_AddItemToArray(list, o))
			return -ENOMEM;
	}
	return list && jsn_add_u64(j->data, "count", (uint64_t)cJSON_GetArraySize(list)) ? 0
											 : -ENOMEM;
}

int tool_forward_stop(struct mcp_job *j, struct err *e)
{
	int64_t local = job_int(j, "local_port");
	uint64_t port;
	const cJSON *x;
	int r;

	cJSON_ArrayForEach(x, j->kept)
	{
		if (jsn_u64(x, "local_port", 1, 65535, &port, NULL) != 1 || (int64_t)port != local)
			continue;
		r = job_end_kept(j, jsn_get(x, "pid")->valueint);
		if (r < 0)
			return err_set(e, ERR_TIMEOUT, -r, "the forward does not end");
		job_log(j, MCP_LOG_INFO, "127.0.0.1:%lld is closed", (long long)local);
		return jsn_add_i64(j->data, "local_port", local) &&
				       jsn_add_bool(j->data, "stopped", true)
			       ? 0
			       : -ENOMEM;
	}
	return job_fail(j, e, "not_found",
			"this server has no forward at local port %lld: see sandbox_forward_list",
			(long long)local);
}
