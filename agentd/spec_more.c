/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/jsn.h"
#include "spec.h"

#define MEMORY_MIN (4ULL << 20)
#define NUMBER_MAX (1ULL << 53) /* what a JSON number holds exactly */
#define CPUS_MAX   1e6
#define CPU_US_MIN 1000 /* the kernel's */

/* --- pty --- */
static int read_side(const cJSON *o, const char *name, uint16_t *ret, struct err *e)
{
	uint64_t v = *ret;

	if (jsn_u64(o, name, 0, NUMBER_MAX, &v, e) < 0)
		return err_wrap(e, "\"pty\"");
	*ret = (uint16_t)(v < 1 ? 1 : v > UINT16_MAX ? UINT16_MAX : v);
	return 0;
}

int spec_window(const cJSON *o, uint16_t *rows, uint16_t *cols, struct err *e)
{
	const cJSON *m;

	cJSON_ArrayForEach(
		m, o) if (strcmp(m->string, "rows") != 0 &&
			  strcmp(m->string, "cols") !=
				  0) return err_set(e, ERR_INVALID, 0,
						    "\"pty\": this agent does not know \"%.100s\"",
						    m->string);
	return read_side(o, "rows", rows, e) < 0 || read_side(o, "cols", cols, e) < 0 ? -EINVAL : 0;
}

int spec_pty(struct spec *s, struct err *e)
{
	const cJSON *o = NULL;
	int r = jsn_object(s->root, "pty", &o, e);

	if (r <= 0)
		return r;
	if (s->input)
		return err_set(e, ERR_INVALID, 0, "\"input\" cannot go with \"pty\"");
	s->rows = 24;
	s->cols = 80;
	s->pty = s->want_stdin = true;
	return spec_window(o, &s->rows, &s->cols, e);
}

/* --- user --- */
int spec_user(struct spec *s, struct err *e)
{
	const cJSON *m = jsn_get(s->root, "user");
	char number[24];
	const char *who = number;
	uint64_t v;

	if (!m || cJSON_IsNull(m))
		return 0;
	if (cJSON_IsString(m)) {
		who = m->valuestring;
	} else if (jsn_u64(s->root, "user", 0, UINT32_MAX - 1, &v, NULL) == 1) {
		(void)snprintf(number, sizeof(number), "%llu", (unsigned long long)v);
	} else {
		return err_set(e, ERR_INVALID, 0, "\"user\" must be a name or a number");
	}
	s->user = malloc(sizeof(*s->user));
	if (!s->user)
		return err_set(e, ERR_IO, ENOMEM, "user");
	return passwd_resolve(who, PASSWD_FILE, PASSWD_GROUP_FILE, s->user, e);
}

/* --- limits --- */
static const struct {
	char name[11];
	unsigned char resource;
} rlimits[] = {
	{ "as", RLIMIT_AS },
	{ "core", RLIMIT_CORE },
	{ "cpu", RLIMIT_CPU },
	{ "data", RLIMIT_DATA },
	{ "fsize", RLIMIT_FSIZE },
	{ "locks", RLIMIT_LOCKS },
	{ "memlock", RLIMIT_MEMLOCK },
	{ "msgqueue", RLIMIT_MSGQUEUE },
	{ "nice", RLIMIT_NICE },
	{ "nofile", RLIMIT_NOFILE },
	{ "nproc", RLIMIT_NPROC },
	{ "rss", RLIMIT_RSS },
	{ "rtprio", RLIMIT_RTPRIO },
	{ "rttime", RLIMIT_RTTIME },
	{ "sigpending", RLIMIT_SIGPENDING },
	{ "stack", RLIMIT_STACK },
};

/* O.NAME as a number or "unlimited"; absent leaves *RET alone. */
static int read_value(const cJSON *o, const char *name, rlim_t *ret)
{
	const cJSON *m = jsn_get(o, name);
	uint64_t v = 0;
	int r;

	if (cJSON_IsString(m) && !strcmp(m->valuestring, "unlimited")) {
		*ret = RLIM_INFINITY;
		return 1;
	}
	r = jsn_u64(o, name, 0, NUMBER_MAX, &v, NULL);
	if (r == 1)
		*ret = (rlim_t)v;
	return r;
}

/* Only "soft" and "hard", both there. */
static int read_pair(const cJSON *o, struct rlimit *l)
{
	const cJSON *m;

	cJSON_ArrayForEach(m, o) if (strcmp(m->string, "soft") != 0 &&
				     strcmp(m->string, "hard") != 0) return -EINVAL;
	if (read_value(o, "soft", &l->rlim_cur) != 1 || read_value(o, "hard", &l->rlim_max) != 1)
		return -EINVAL;
	return l->rlim_cur > l->rlim_max ? -EINVAL : 0;
}

static int read_rlimit(struct spec_limits *l, const cJSON *all, const cJSON *m, struct err *e)
{
	struct spec_rlimit *to = &l->rlimit[l->n_rlimit];
	size_t i = 0;

	while (i < ARRAY_LEN(rlimits) && strcmp(rlimits[i].name, m->string) != 0)
		i++;
	if (i == ARRAY_LEN(rlimits))
		return err_set(e, ERR_INVALID, 0,
			       "\"limits.rlimits\": this agent does not know \"%.100s\"",
			       m->string);
	if (l->n_rlimit == SPEC_RLIMITS)
		return err_set(e, ERR_INVALID, 0, "\"limits.rlimits\": \"%s\" is there twice",
			       m->string);
	to->resource = rlimits[i].resource;
	if (cJSON_IsObject(m) ? read_pair(m, &to->value) < 0
			      : read_value(all, m->string, &to->value.rlim_cur) != 1)
		return err_set(e, ERR_INVALID, 0,
			       "\"limits.rlimits.%s\" must be a whole number, \"unlimited\", or "
			       "{\"soft\":…,\"hard\":…} with soft not above hard",
			       m->string);
	if (!cJSON_IsObject(m))
		to->value.rlim_max = to->value.rlim_cur;
	l->n_rlimit++;
	return 0;
}

static int read_cpus(struct spec_limits *l, const cJSON *o, struct err *e)
{
	double cpus = 0;
	int r = jsn_double(o, "cpus", &cpus, e);

	if (r <= 0)
		return r;
	if (!(cpus > 0 && cpus <= CPUS_MAX))
		return err_set(e, ERR_INVALID, 0, "\"cpus\" must be above 0");
	l->cpu_us = (uint64_t)(cpus * SPEC_CPU_PERIOD);
	if (l->cpu_us < CPU_US_MIN)
		l->cpu_us = CPU_US_MIN;
	return 0;
}

static int read_limits(struct spec_limits *l, const cJSON *o, struct err *e)
{
	static const char known[][8] = { "memory", "cpus", "pids", "rlimits" };
	const cJSON *m, *r = NULL;

	cJSON_ArrayForEach(m, o)
	{
		size_t i = 0;

		while (i < ARRAY_LEN(known) && strcmp(known[i], m->string) != 0)
			i++;
		if (i == ARRAY_LEN(known))
			return err_set(e, ERR_INVALID, 0, "this agent does not know \"%.100s\"",
				       m->string);
	}
	if (jsn_u64(o, "memory", MEMORY_MIN, NUMBER_MAX, &l->memory, e) < 0 ||
	    read_cpus(l, o, e) < 0 || jsn_u64(o, "pids", 1, NUMBER_MAX, &l->pids, e) < 0 ||
	    jsn_object(o, "rlimits", &r, e) < 0)
		return -EINVAL;
	cJSON_ArrayForEach(m, r) if (read_rlimit(l, r, m, e) < 0) return -EINVAL;
	return 0;
}

int spec_resources(struct spec *s, struct err *e)
{
	const cJSON *o = NULL;
	int r = jsn_object(s->root, "limits", &o, e);

	if (r <= 0)
		return r;
	return read_limits(&s->limits, o, e) < 0 ? err_wrap(e, "\"limits\"") : 0;
}

/* --- seccomp --- */
int spec_seccomp(struct spec *s, struct err *e)
{
	const char *name = NULL;
	int r = jsn_str(s->root, "seccomp", &name, e);

	if (r <= 0)
		return r;
	s->seccomp_given = true;
	return confine_parse(name, &s->seccomp) < 0
		       ? err_set(e, ERR_INVALID, 0,
				 "\"seccomp\" must be default, restricted or none")
		       : 0;
}
