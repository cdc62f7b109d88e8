/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "app.h"
#include "cgroup.h"
#include "confine.h"
#include "exec.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/proto.h"
#include "limits.h"
#include "ports.h"
#include "version.h"

/* What this agent is, what this guest can enforce, and which ports wait for a client. */

/* The boot's own id (proc_sys_kernel(5)); a new one after each start, the same after a suspension. */
static void read_boot_id(char out[64])
{
	AUTO_BUF b = { .cap = 63 };

	out[0] = '\0';
	if (fd_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &b) == 0 && b.len)
		memcpy(out, b.p, strcspn(b.p, "\n") + 1);
	out[strcspn(out, "\n")] = '\0';
}

static bool add_system(cJSON *o, const struct app *a)
{
	struct utsname u = { .machine = "unknown" };
	struct timespec up = { 0 };
	char boot_id[64];

	(void)uname(&u);
	(void)clock_gettime(CLOCK_BOOTTIME, &up);
	read_boot_id(boot_id);
	return jsn_add_str(o, "version", ASB_VERSION) && jsn_add_str(o, "arch", u.machine) &&
	       jsn_add_text(o, "kernel", u.release, strlen(u.release)) &&
	       jsn_add_text(o, "hostname", u.nodename, strlen(u.nodename)) &&
	       jsn_add_str(o, "boot_id", boot_id[0] ? boot_id : NULL) &&
	       jsn_add_i64(o, "uptime_ms", (int64_t)up.tv_sec * 1000 + up.tv_nsec / 1000000) &&
	       jsn_add_str(o, "generation", a->generation[0] ? a->generation : NULL);
}

static bool add_abilities(cJSON *o, const struct app *a)
{
	cJSON *limits = cJSON_AddObjectToObject(o, "limits");
	const char *group = "cgroup";

	return limits &&
	       jsn_add_str(limits, "memory", cgroup_can(CGROUP_MEMORY) ? group : "rlimit") &&
	       jsn_add_str(limits, "cpu", cgroup_can(CGROUP_CPU) ? group : NULL) &&
	       jsn_add_str(limits, "pids", cgroup_can(CGROUP_PIDS) ? group : NULL) &&
	       jsn_add_bool(o, "cgroups", cgroup_have()) &&
	       jsn_add_bool(o, "workload_limits", cgroup_limited()) &&
	       jsn_add_bool(o, "private_socket", a->priv != NULL);
}

/* Caps of the API that a client may want to know before it runs into them. */
static bool add_caps(cJSON *o)
{
	cJSON *c = cJSON_AddObjectToObject(o, "caps");

	return c && jsn_add_u64(c, "connections", LIMIT_CONNS) &&
	       jsn_add_u64(c, "execs", LIMIT_EXECS) && jsn_add_u64(c, "id_chars", LIMIT_ID) &&
	       jsn_add_u64(c, "spec_bytes", LIMIT_SPEC_BODY) &&
	       jsn_add_u64(c, "body_bytes", PROTO_MAX_BODY) &&
	       jsn_add_u64(c, "capture_bytes", PROTO_MAX_CAPTURE) &&
	       jsn_add_u64(c, "output_bytes", LIMIT_LOG) &&
	       jsn_add_u64(c, "message_bytes", LIMIT_WS_MESSAGE) &&
	       jsn_add_u64(c, "idle_s", LIMIT_IDLE_S) && jsn_add_u64(c, "follow_s", LIMIT_FOLLOW_S);
}

static bool add_seccomp(cJSON *o)
{
	cJSON *s = cJSON_AddObjectToObject(o, "seccomp");

	return s && jsn_add_bool(s, "default", confine_can(CONFINE_DEFAULT)) &&
	       jsn_add_bool(s, "restricted", confine_can(CONFINE_RESTRICTED)) &&
	       jsn_add_bool(s, "counted", confine_counts());
}

void route_info(struct httpd_req *r)
{
	const struct app *a = httpd_server_arg(r);
	cJSON *o = cJSON_CreateObject();

	if (o &&
	    (!add_system(o, a) || !add_abilities(o, a) ||
	     !jsn_add_bool(o, "draining", a->closed || a->stopping) ||
	     !jsn_add_u64(o, "execs", exec_running()) || !jsn_add_u64(o, "slots", exec_busy()) ||
	     !jsn_add_u64(o, "slots_max", LIMIT_EXECS) ||
	     !jsn_add_u64(o, "in_flight", a->in_flight) || !add_caps(o) || !add_seccomp(o)))
		jsn_free(&o);
	httpd_reply_json(r, 200, o);
}

/* --- ports --- */
static cJSON *describe_port(const struct port *p)
{
	cJSON *o = cJSON_CreateObject();
	char addr[INET6_ADDRSTRLEN] = "";

	(void)inet_ntop(p->v6 ? AF_INET6 : AF_INET, p->addr, addr, sizeof(addr));
	if (o && jsn_add_u64(o, "port", p->port) && jsn_add_str(o, "address", addr) &&
	    jsn_add_str(o, "protocol", p->udp ? "udp" : "tcp") &&
	    (p->pid == 0 || (jsn_add_i64(o, "pid", p->pid) &&
			     jsn_add_text(o, "process", p->process, strlen(p->process)))))
		return o;
	cJSON_Delete(o);
	return NULL;
}

/* agentd's own, and its neighbour's for the hooks: not what somebody looks for who wants to reach a server. */
static bool is_ours(const struct app *a, const struct port *p)
{
	return !p->udp && (p->port == a->port || p->port == PROTO_HOOK_PORT);
}

void route_ports(struct httpd_req *r)
{
	static struct ports ports; /* one at a time: agentd has one thread */
	const char *all = httpd_query(r, "all");
	cJSON *o, *list;

	if (all && strcmp(all, "0") != 0 && strcmp(all, "1") != 0) {
		httpd_reply_error(r, 400, "all must be 0 or 1");
		return;
	}
	ports_collect(&ports);
	o = cJSON_CreateObject();
	list = cJSON_AddArrayToObject(o, "ports");
	for (unsigned i = 0; i < ports.count && list; i++) {
		cJSON *d;

		if ((!all || all[0] == '0') && is_ours(httpd_server_arg(r), &ports.list[i]))
			continue;
		d = describe_port(&ports.list[i]);
		if (!d || !cJSON_AddItemToArray(list, d)) {
			cJSON_Delete(d);
			list = NULL;
		}
	}
	if (!list || !jsn_add_bool(o, "truncated", ports.truncated))
		jsn_free(&o);
	httpd_reply_json(r, 200, o);
}

/* --- alive --- */
void route_healthz(struct httpd_req *r)
{
	static const char ok[] = "{\"status\":\"ok\",\"version\":\"" ASB_VERSION "\"}";

	httpd_reply(r, 200, "application/json", ok, sizeof(ok) - 1);
}
