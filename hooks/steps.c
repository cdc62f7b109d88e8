/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "identity.h"
#include "job.h"
#include "lib/fd.h"
#include "lib/jsn.h"
#include "lib/log.h"
#include "lib/str.h"

/*
 * What each hook does: the table `phases`, and the functions of its steps. The limits keep to the
 * time that the platform gives by default and that our images register (ready 60 s, validate 15,
 * run and resume 5, suspend and terminate 10).
 */

#define MS 1000000LL

/* --- questions to agentd --- */

static void on_answer(void *arg, int result, const cJSON *answer, const char *why)
{
	struct job *j = arg;
	bool drained = true;

	if (result < 0)
		log_warn("%s: %s", j->phase->name, why);
	else if (jsn_bool(answer, "drained", &drained, NULL) > 0 && !drained)
		log_info("%s: requests are still in flight", j->phase->name);
	job_go_on(j, result);
}

static int ask(struct job *j, cJSON *request, bool patient, int64_t limit_ns)
{
	j->call.done = on_answer;
	j->call.arg = j;
	agent_call(&j->call, j->h->loop, j->h->agent_socket, request, patient, limit_ns);
	return STEP_WAIT;
}

static cJSON *new_request(const char *op)
{
	cJSON *q = cJSON_CreateObject();

	if (q && !jsn_add_str(q, "op", op))
		jsn_free(&q);
	return q;
}

static int step_ping(struct job *j, int64_t limit_ns)
{
	return ask(j, new_request("ping"), false, limit_ns);
}

static int step_exec_check(struct job *j, int64_t limit_ns)
{
	return ask(j, new_request("exec_check"), false, limit_ns);
}

static int step_reopen(struct job *j, int64_t limit_ns)
{
	return ask(j, new_request("reopen"), true, limit_ns);
}

static int step_terminate(struct job *j, int64_t limit_ns)
{
	return ask(j, new_request("terminate"), false, limit_ns);
}

static int step_drain(struct job *j, int64_t limit_ns)
{
	int64_t ns = limit_ns < j->h->drain_ns ? limit_ns : j->h->drain_ns;
	cJSON *q = new_request("drain");

	if (q && !jsn_add_u64(q, "timeout_ms", (uint64_t)(ns / MS)))
		jsn_free(&q);
	return ask(j, q, false, ns + JOB_MARGIN_NS);
}

static int step_tell(struct job *j, int64_t limit_ns)
{
	cJSON *q = new_request("identity"), *env = NULL;
	bool good = q && jsn_add_str(q, "generation", j->generation);

	if (good && j->payload.agent_token)
		good = jsn_add_str(q, "agent_token", j->payload.agent_token);
	if (good && j->payload.env) {
		env = cJSON_Duplicate(j->payload.env, 1);
		good = env && cJSON_AddItemToObject(q, "env", env);
		if (!good)
			cJSON_Delete(env);
	}
	if (!good)
		jsn_free(&q);
	return ask(j, q, true, limit_ns);
}

/* --- our own --- */

static int step_renew(struct job *j, int64_t limit_ns)
{
	(void)limit_ns;
	return identity_renew(j->h->identity_path, j->h->machine, &j->payload, j->generation);
}

static int step_prepare(struct job *j, int64_t limit_ns)
{
	(void)limit_ns;
	return j->h->machine && !j->h->once.done.hex[0] ? identity_prepare() : 0;
}

static int step_commit(struct job *j, int64_t limit_ns)
{
	(void)limit_ns;
	return once_commit(&j->h->once, &j->digest);
}

/* The payload for the image's scripts, beside the identity. */
static int step_keep_payload(struct job *j, int64_t limit_ns)
{
	char *s = payload_public(&j->payload), path[512];
	int r;

	(void)limit_ns;
	if (!s)
		return j->payload.text ? -ENOMEM : 0;
	r = str_format(path, sizeof(path), "%s.payload", j->h->identity_path);
	if (r == 0)
		r = fd_replace_file_lazy(path, s, strlen(s), 0600);
	free(s);
	return r;
}

static void on_check(void *arg, int status)
{
	job_go_on(arg, status == 0 ? 0 : status < 0 ? -ETIMEDOUT : -EAGAIN);
}

static void make_env(struct job *j)
{
	static char path_word[] =
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	static char home_word[] = "HOME=/root", lang_word[] = "LANG=C.UTF-8";
	const char *id = j->payload.microvm_id;
	size_t n = 0;

	j->env[n++] = path_word;
	j->env[n++] = home_word;
	j->env[n++] = lang_word;
	if (str_format(j->env_words[0], sizeof(j->env_words[0]), "ASB_HOOK=%s", j->phase->name) ==
	    0)
		j->env[n++] = j->env_words[0];
	if (str_format(j->env_words[1], sizeof(j->env_words[1]), "ASB_IDENTITY=%s",
		       j->h->identity_path) == 0)
		j->env[n++] = j->env_words[1];
	if (id &&
	    str_format(j->env_words[2], sizeof(j->env_words[2]), "ASB_MICROVM_ID=%s", id) == 0)
		j->env[n++] = j->env_words[2];
	j->env[n] = NULL;
}

static int step_ready_check(struct job *j, int64_t limit_ns)
{
	struct err e = ERR_INIT;
	char path[256];
	int r = str_format(path, sizeof(path), "%s/ready", j->h->etc);

	if (r < 0 || access(path, X_OK) < 0)
		return r; /* the image has none */
	make_env(j);
	j->child.done = on_check;
	j->child.arg = j;
	r = child_run(&j->child, j->h->loop, path, j->env, limit_ns, &e);
	if (r < 0)
		log_warn("%s", e.msg);
	return r < 0 ? r : STEP_WAIT;
}

/*
 * What commands are made of is read from the disk once, before the snapshot, instead of in every clone: the loader, libc, the usual shells and
 * interpreters. Each ends by itself at the end of its empty input, and says nothing.
 */
static const char *const usual[] = { "/bin/sh", "/bin/bash", "/bin/cat", "/usr/bin/python3",
				     "/usr/bin/node" };

static int warm_next(struct job *j)
{
	int64_t left = j->warm_end_ns - loop_now();

	while (j->warm < ARRAY_LEN(usual) && left > 0) {
		struct err e = ERR_INIT;
		const char *path = usual[j->warm++];

		if (access(path, X_OK) == 0 &&
		    child_run(&j->child, j->h->loop, path, j->env, left, &e) == 0)
			return STEP_WAIT;
	}
	return STEP_DONE;
}

static void on_warm(void *arg, int status)
{
	struct job *j = arg;

	(void)status; /* that it ran, or tried to, is all that is wanted */
	if (warm_next(j) == STEP_DONE)
		job_go_on(j, 0);
}

static int step_warm(struct job *j, int64_t limit_ns)
{
	if (j->h->once.done.hex[0]) /* too late for a template */
		return STEP_DONE;
	make_env(j);
	j->child.done = on_warm;
	j->child.arg = j;
	j->warm = 0;
	j->warm_end_ns = loop_now() + limit_ns;
	return warm_next(j);
}

static void on_scripts(void *arg)
{
	job_go_on(arg, 0);
}

static int step_scripts(struct job *j, int64_t limit_ns)
{
	char dir[256];
	int r = str_format(dir, sizeof(dir), "%s/hooks.d/%s", j->h->etc, j->phase->name);

	if (r < 0)
		return r;
	make_env(j);
	return scripts_run(&j->scripts, j->h->loop, dir, j->env, limit_ns, on_scripts, j)
		       ? STEP_WAIT
		       : STEP_DONE;
}

static void on_synced(void *arg, int status)
{
	job_go_on(arg, status < 0 ? -ETIMEDOUT : 0);
}

static int step_sync(struct job *j, int64_t limit_ns)
{
	int r;

	j->child.done = on_synced;
	j->child.arg = j;
	r = child_sync(&j->child, j->h->loop, limit_ns);
	return r < 0 ? r : STEP_WAIT;
}

/* --- the table --- */

const struct phase phases[JOB_PHASES] = {
	{ "ready",
	  8000 * MS,
	  false,
	  false,
	  false,
	  { { "agentd", step_ping, 1000 * MS, true },
	    { "readiness check", step_ready_check, 5000 * MS, true } } },
	{ "validate",
	  12000 * MS,
	  false,
	  false,
	  false,
	  { { "files", step_prepare, 1000 * MS, false },
	    { "exec", step_exec_check, 11000 * MS, true },
	    { "warm", step_warm, 5000 * MS, false } } },
	/* Nothing that a workload could see may happen before the generator is reseeded. */
	{ "run",
	  4600 * MS,
	  false,
	  true,
	  true,
	  { { "identity", step_renew, 1000 * MS, false },
	    { "agentd", step_tell, 2000 * MS, true },
	    { "run once", step_commit, 1000 * MS, false },
	    { "payload", step_keep_payload, 1000 * MS, false },
	    { "scripts", step_scripts, 4000 * MS, false } } },
	{ "resume",
	  4600 * MS,
	  false,
	  false,
	  true,
	  { { "identity", step_renew, 1000 * MS, false },
	    { "agentd", step_tell, 1000 * MS, false },
	    { "admission", step_reopen, 1000 * MS, false },
	    { "scripts", step_scripts, 4000 * MS, false } } },
	{ "suspend",
	  1600 * MS,
	  true,
	  false,
	  false,
	  { { "drain", step_drain, 0, false },
	    { "scripts", step_scripts, 3000 * MS, false },
	    { "sync", step_sync, 3000 * MS, false } } },
	{ "terminate",
	  9000 * MS,
	  false,
	  false,
	  false,
	  { { "workload", step_terminate, 1000 * MS, false },
	    { "drain", step_drain, 2000 * MS, false },
	    { "scripts", step_scripts, 3000 * MS, false },
	    { "sync", step_sync, 3000 * MS, false } } },
	/* Ours, not the platform's: before the disk of a guest that goes on is copied. */
	{ "sync", 9000 * MS, false, false, false, { { "sync", step_sync, 8000 * MS, true } } },
};
