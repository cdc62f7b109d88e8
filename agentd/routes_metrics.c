/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "confine.h"
#include "lib/buf.h"
#include "lib/jsn.h"
#include "metrics.h"

/*
 * GET /v1/metrics: one table makes both forms. {"memory":{"total":N}} is asb_memory_total_bytes in Prometheus' text
 * (exposition format 0.0.4). The names are arrays so that the table needs no relocations.
 */
enum unit { PLAIN, BYTES, MICRO, REAL };

static const struct metric {
	char group[9], name[14];
	unsigned char unit;
	bool counter;
	unsigned short at; /* in struct metrics */
} table[] = {
#define M(group, name, unit, counter, member)                                                \
	{                                                                                    \
		group, name, unit, counter, (unsigned short)offsetof(struct metrics, member) \
	}
	M("", "time_ms", PLAIN, false, time_ms),
	M("", "uptime_ms", PLAIN, false, uptime_ms),
	M("cpu", "count", PLAIN, false, cpus),
	M("cpu", "percent", REAL, false, cpu_percent),
	M("cpu", "interval_ms", PLAIN, false, interval_ms),
	M("cpu", "busy", MICRO, true, busy),
	M("cpu", "user", MICRO, true, user),
	M("cpu", "system", MICRO, true, system),
	M("cpu", "iowait", MICRO, true, iowait),
	M("cpu", "steal", MICRO, true, steal),
	M("load", "1m", REAL, false, load[0]),
	M("load", "5m", REAL, false, load[1]),
	M("load", "15m", REAL, false, load[2]),
	M("memory", "total", BYTES, false, mem_total),
	M("memory", "used", BYTES, false, mem_used),
	M("memory", "available", BYTES, false, mem_available),
	M("memory", "free", BYTES, false, mem_free),
	M("memory", "cached", BYTES, false, mem_cached),
	M("memory", "swap_total", BYTES, false, swap_total),
	M("memory", "swap_used", BYTES, false, swap_used),
	M("workload", "memory", BYTES, false, work_mem),
	M("workload", "memory_peak", BYTES, false, work_peak),
	M("workload", "memory_max", BYTES, false, work_max),
	M("workload", "cpu", MICRO, true, work_busy),
	M("workload", "cpu_percent", REAL, false, work_percent),
	M("workload", "pids", PLAIN, false, work_pids),
	M("workload", "pids_max", PLAIN, false, work_pids_max),
	M("workload", "oom_kills", PLAIN, true, work_kills),
	M("disk", "total", BYTES, false, disk_total),
	M("disk", "used", BYTES, false, disk_used),
	M("disk", "available", BYTES, false, disk_available),
	M("tasks", "all", PLAIN, false, tasks),
	M("tasks", "running", PLAIN, false, tasks_running),
	M("execs", "running", PLAIN, false, ex_running),
	M("execs", "slots", PLAIN, false, ex_slots),
	M("execs", "started", PLAIN, true, ex_started),
	M("execs", "failed", PLAIN, true, ex_failed),
	M("execs", "ended", PLAIN, true, ex_ended),
	M("execs", "timed_out", PLAIN, true, ex_timed_out),
	M("execs", "oom", PLAIN, true, ex_oom),
	M("agent", "rss", BYTES, false, rss),
	M("agent", "cpu", MICRO, true, agent_busy),
	M("agent", "fds", PLAIN, false, fds),
	M("agent", "connections", PLAIN, false, connections),
	M("agent", "requests", PLAIN, true, requests),
#undef M
};

static const struct {
	char name[12];
	unsigned short at; /* in struct metrics_net */
} net_table[] = {
#define N(member)                                                             \
	{                                                                     \
#member, (unsigned short)offsetof(struct metrics_net, member) \
	}
	N(rx_bytes), N(rx_packets), N(rx_errors), N(tx_bytes), N(tx_packets), N(tx_errors),
#undef N
};

static uint64_t value(const void *base, size_t at)
{
	uint64_t v;

	memcpy(&v, (const char *)base + at, sizeof(v));
	return v;
}

/* A number of the table as text for both forms; "" when it is not known. */
static void print_value(const struct metric *t, const struct metrics *m, char out[40])
{
	uint64_t v = value(m, t->at);
	double d;

	out[0] = '\0';
	if (t->unit == REAL) {
		memcpy(&d, &v, sizeof(d));
		(void)snprintf(out, 40, "%.2f", isfinite(d) ? d : 0.0);
	} else if (v == METRICS_NONE) {
		return;
	} else if (t->unit == MICRO) {
		(void)snprintf(out, 40, "%llu.%06llu", (unsigned long long)(v / 1000000),
			       (unsigned long long)(v % 1000000));
	} else {
		(void)snprintf(out, 40, "%llu", (unsigned long long)v);
	}
}

static bool applies(const struct metric *t, const struct metrics *m)
{
	return m->have_work || strcmp(t->group, "workload") != 0;
}

/* --- JSON --- */
static bool add_number(cJSON *o, const char *name, const char *text)
{
	cJSON *v = text[0] ? cJSON_CreateRaw(text) : cJSON_CreateNull();

	if (v && cJSON_AddItemToObject(o, name, v))
		return true;
	cJSON_Delete(v);
	return false;
}

static bool add_metric(cJSON *root, const struct metric *t, const struct metrics *m)
{
	char text[40], name[sizeof(t->name) + 2];
	cJSON *o = root;

	if (!applies(t, m))
		return cJSON_GetObjectItemCaseSensitive(root, t->group) ||
		       cJSON_AddNullToObject(root, t->group);
	if (t->group[0])
		o = cJSON_GetObjectItemCaseSensitive(root, t->group);
	if (!o)
		o = cJSON_AddObjectToObject(root, t->group);
	print_value(t, m, text);
	(void)snprintf(name, sizeof(name), "%s%s", t->name, t->unit == MICRO ? "_s" : "");
	return o && add_number(o, name, text);
}

static bool add_network(cJSON *root, const struct metrics *m)
{
	cJSON *list = cJSON_AddArrayToObject(root, "network");

	for (unsigned i = 0; list && i < m->nets; i++) {
		const struct metrics_net *n = &m->net[i];
		cJSON *o = cJSON_CreateObject();

		if (!o || !cJSON_AddItemToArray(list, o)) {
			cJSON_Delete(o);
			return false;
		}
		if (!jsn_add_text(o, "interface", n->name, strlen(n->name)))
			return false;
		for (size_t k = 0; k < ARRAY_LEN(net_table); k++)
			if (!jsn_add_u64(o, net_table[k].name, value(n, net_table[k].at)))
				return false;
	}
	return list != NULL;
}

static void add_denial(void *arg, const char *profile, const char *call, uint64_t n)
{
	cJSON *list = arg, *o = cJSON_CreateObject();

	/* one that finds no memory is missing this time */
	if (!o || !jsn_add_str(o, "profile", profile) || !jsn_add_str(o, "call", call) ||
	    !jsn_add_u64(o, "count", n) || !cJSON_AddItemToArray(list, o))
		cJSON_Delete(o);
}

static bool add_denials(cJSON *root)
{
	cJSON *list = cJSON_AddArrayToObject(root, "seccomp_denials");

	if (list)
		confine_each_denial(add_denial, list);
	return list != NULL;
}

static void reply_json(struct httpd_req *r, const struct metrics *m)
{
	cJSON *root = cJSON_CreateObject();
	bool good = root != NULL;

	for (size_t i = 0; i < ARRAY_LEN(table) && good; i++)
		good = add_metric(root, &table[i], m);
	if (!good || !add_network(root, m) || !add_denials(root))
		jsn_free(&root);
	httpd_reply_json(r, 200, root);
}

/* --- Prometheus --- */
static int put_metric(struct buf *b, const struct metric *t, const struct metrics *m)
{
	static const char units[][9] = { "", "_bytes", "_seconds", "" };
	char name[64], text[40];

	print_value(t, m, text);
	if (!text[0] || !applies(t, m))
		return 0;
	(void)snprintf(name, sizeof(name), "asb_%.8s%s%.13s%s%s", t->group, t->group[0] ? "_" : "",
		       t->name, units[t->unit], t->counter ? "_total" : "");
	return buf_addf(b, "# TYPE %s %s\n%s %s\n", name, t->counter ? "counter" : "gauge", name,
			text);
}

/* A label's value: what is no printable ASCII becomes '_', so that nothing needs an escape. */
static void label(const char *s, char *out, size_t size)
{
	size_t n = 0;

	for (; *s && n + 1 < size; s++)
		out[n++] = *s > ' ' && *s < 0x7f && *s != '"' && *s != '\\' ? *s : '_';
	out[n] = '\0';
}

static int put_network(struct buf *b, const struct metrics *m)
{
	int r = 0;

	for (size_t k = 0; k < ARRAY_LEN(net_table) && r == 0; k++) {
		if (m->nets)
			r = buf_addf(b, "# TYPE asb_network_%s_total counter\n", net_table[k].name);
		for (unsigned i = 0; i < m->nets && r == 0; i++) {
			char name[sizeof(m->net[i].name)];

			label(m->net[i].name, name, sizeof(name));
			r = buf_addf(b, "asb_network_%s_total{interface=\"%s\"} %llu\n",
				     net_table[k].name, name,
				     (unsigned long long)value(&m->net[i], net_table[k].at));
		}
	}
	return r;
}

struct put_denials {
	struct buf *b;
	int r;
};

static void put_denial(void *arg, const char *profile, const char *call, uint64_t n)
{
	struct put_denials *p = arg;

	if (p->r == 0)
		p->r = buf_addf(p->b,
				"asb_seccomp_denials_total{profile=\"%s\",call=\"%s\"} %llu\n",
				profile, call, (unsigned long long)n);
}

static int put_denials(struct buf *b)
{
	struct put_denials p = { b, buf_adds(b, "# TYPE asb_seccomp_denials_total counter\n") };

	confine_each_denial(put_denial, &p);
	return p.r;
}

static void reply_prometheus(struct httpd_req *r, const struct metrics *m)
{
	AUTO_BUF b = { .cap = 64U << 10 };
	int ret = 0;

	for (size_t i = 0; i < ARRAY_LEN(table) && ret == 0; i++)
		ret = put_metric(&b, &table[i], m);
	if (ret == 0)
		ret = put_network(&b, m);
	if (ret == 0)
		ret = put_denials(&b);
	if (ret < 0)
		httpd_reply_error(r, 500, "metrics: out of memory");
	else
		httpd_reply(r, 200, "text/plain; version=0.0.4; charset=utf-8", b.p, b.len);
}

/* --- the route --- */
void route_metrics(struct httpd_req *r)
{
	const char *format = httpd_query(r, "format"), *accept = httpd_header(r, "Accept");
	static struct metrics m; /* one at a time: agentd has one thread */
	bool text = !format && accept && strstr(accept, "text/plain");

	if (format && strcmp(format, "json") != 0 && strcmp(format, "prometheus") != 0) {
		httpd_reply_error(r, 400, "format must be json or prometheus");
		return;
	}
	metrics_collect(httpd_server_arg(r), &m);
	if (text || (format && format[0] == 'p'))
		reply_prometheus(r, &m);
	else
		reply_json(r, &m);
}
