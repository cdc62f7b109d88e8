/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/utsname.h>

#include "app.h"
#include "cgroup.h"
#include "exec.h"
#include "lib/jsn.h"
#include "limits.h"
#include "version.h"

/* What this agent is, and what this guest can enforce. */

static const char *machine(struct utsname *u)
{
	return uname(u) == 0 ? u->machine : "unknown";
}

void route_info(struct httpd_req *r)
{
	const struct app *a = httpd_server_arg(r);
	cJSON *o = cJSON_CreateObject();
	struct utsname u;

	if (o &&
	    (!jsn_add_str(o, "version", ASB_VERSION) || !jsn_add_str(o, "arch", machine(&u)) ||
	     !jsn_add_str(o, "generation", a->generation[0] ? a->generation : NULL) ||
	     !jsn_add_bool(o, "cgroups", cgroup_have()) ||
	     !jsn_add_bool(o, "workload_limits", cgroup_limited()) ||
	     !jsn_add_bool(o, "private_socket", a->priv != NULL) ||
	     !jsn_add_bool(o, "draining", a->closed || a->stopping) ||
	     !jsn_add_u64(o, "execs", exec_running()) || !jsn_add_u64(o, "slots", exec_busy()) ||
	     !jsn_add_u64(o, "slots_max", LIMIT_EXECS) ||
	     !jsn_add_u64(o, "in_flight", a->in_flight)))
		jsn_free(&o);
	httpd_reply_json(r, 200, o);
}

void route_healthz(struct httpd_req *r)
{
	static const char ok[] = "{\"status\":\"ok\",\"version\":\"" ASB_VERSION "\"}";

	httpd_reply(r, 200, "application/json", ok, sizeof(ok) - 1);
}
