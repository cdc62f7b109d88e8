/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/aws/arn.h"
#include "host/aws/call.h"
#include "host/aws/fetch.h"
#include "host/aws/ingress.h"
#include "host/aws/ops.h"
#include "host/aws/token.h"
#include "host/aws/vm.h"
#include "lib/loop.h"
#include "lib/proto.h"
#include "lib/str.h"

/*
 * A VM bills from RunMicrovm on, so the order is: everything that can be refused here is refused; the name is recorded (core); RunMicrovm,
 * whose client token makes its repetitions one VM; the record gets the VM's id before anything else; then its start is waited for. What
 * fails after RunMicrovm ends the VM, and when that fails too, the record stays to tell of it. RunMicrovm itself is not interrupted, and when
 * its answer is lost, nobody knows whether there is a VM: that record stays, too.
 *
 * All that AWS would choose by itself is sent: its defaults stop a suspended VM after minutes or never stop it at all.
 */

#define SECOND	       1000000000LL
#define IDLE_S	       900   /* without traffic: suspended, unless --idle-timeout says otherwise */
#define IDLE_LEAST_S   60    /* AWS's least */
#define LIFE_S	       28800 /* of anything: AWS's most */
#define RUN_IDLE_S     300   /* of an `asb run` whose asb was killed: then it is ended */
#define PAYLOAD_MAX    4096
#define READY_PAUSE_NS 250000000LL
#define READY_LIMIT_NS 10000000000LL

struct backend_owner {
	int unused; /* the VM is known by its id */
};

struct run {
	const struct sandbox_spec *spec;
	const struct progress *progress;
	int64_t deadline;
	struct aws *aws;
	const char *region;	/* the session's */
	struct image_arn image; /* its name may come from a listing */
	char arn[SANDBOX_IMAGE_MAX + 1];
	char version[16]; /* "" = the newest */
	const char *role;
	char id[SANDBOX_ID_MAX + 1];
	char *endpoint; /* owned */
};

/* --- the image: an ARN, or NAME[:VERSION] --- */

struct wanted {
	const char *name;
	char *arn;
	size_t size;
};

static int on_image(void *arg, const cJSON *item)
{
	struct wanted *w = arg;
	const char *name = vm_text(item, "name"), *arn = vm_text(item, "imageArn");

	if (!name || !arn || strcmp(name, w->name) != 0)
		return 0;
	return str_format(w->arn, w->size, "%s", arn) < 0 ? -EMSGSIZE : 1;
}

/* The name filter finds parts of names, so the whole is compared. */
static int find_image(struct run *u, const char *name, struct err *e)
{
	AUTO_JSN *q = cJSON_CreateObject();
	struct wanted w = { name, u->arn, sizeof(u->arn) };
	int r = q && jsn_add_str(q, "nameFilter", name)
			? ops_each(u->aws, OP_LIST_MICROVM_IMAGES, q, on_image, &w, e)
			: -ENOMEM;

	if (r == 0)
		return err_set(e, ERR_NOT_FOUND, 0, "there is no image '%.80s' in %s", name,
			       u->region);
	if (r < 0)
		return e && e->code ? r : err_set(e, ERR_INTERNAL, -r, "finding the image");
	return arn_image(u->arn, &u->image, e);
}

static int by_name(struct run *u, const char *image, struct err *e)
{
	const char *colon = strchr(image, ':');
	size_t n = colon ? (size_t)(colon - image) : strlen(image);
	char name[IMAGE_NAME_MAX + 1];
	uint64_t version;

	if (!arn_is_image_name(image, n) ||
	    (colon && str_to_u64(colon + 1, 1, 1000000, &version) < 0))
		return err_set(e, ERR_INVALID, 0,
			       "'%.100s' is neither an image's ARN nor NAME or NAME:VERSION",
			       image);
	ignore_result(str_format(name, sizeof(name), "%.*s", (int)n, image)); /* it fits */
	if (colon)
		ignore_result(str_format(u->version, sizeof(u->version), "%llu.0",
					 (unsigned long long)version)); /* it fits */
	return find_image(u, name, e);
}

/* The session. The region of an ARN is where the VM will be. */
static int place(struct run *u, struct err *e)
{
	const char *image = u->spec->image, *region = u->spec->region;
	bool is_arn = str_starts(image, "arn:");
	int r = is_arn ? arn_image(image, &u->image, e) : 0;

	if (r < 0)
		return r;
	if (is_arn && region && strcmp(region, u->image.region) != 0)
		return err_set(e, ERR_INVALID, 0, "the image is in %s, not in %.40s",
			       u->image.region, region);
	r = aws_session(is_arn ? u->image.region : region, &u->aws, e);
	if (r == 0) {
		fetch_cancel(u->aws->fetch, u->progress ? u->progress->cancel : NULL);
		r = aws_region(u->aws, &u->region, e);
	}
	if (r == 0 && is_arn)
		r = str_format(u->arn, sizeof(u->arn), "%s", image);
	return r;
}

/* --- what is asked for --- */

static bool add_one(cJSON *list, const char *value)
{
	cJSON *v = cJSON_CreateString(value);

	if (list && v && cJSON_AddItemToArray(list, v))
		return true;
	cJSON_Delete(v);
	return false;
}

static bool add_connectors(const struct run *u, cJSON *q)
{
	cJSON *in = cJSON_AddArrayToObject(q, "ingressNetworkConnectors");
	char arn[ARN_CONNECTOR_MAX];

	for (unsigned i = 0; i < ingress_count(u->spec); i++)
		if (ingress_arn(u->spec, i, u->region, arn) < 0 || !add_one(in, arn))
			return false;
	return !u->spec->egress ||
	       add_one(cJSON_AddArrayToObject(q, "egressNetworkConnectors"), u->spec->egress);
}

/* Whole seconds, rounded up; OTHERWISE when NS is 0. */
static uint64_t seconds(int64_t ns, uint64_t otherwise)
{
	return ns > 0 ? (uint64_t)((ns + SECOND - 1) / SECOND) : otherwise;
}

static bool add_idle(const struct run *u, cJSON *q)
{
	bool run = u->spec->ephemeral;
	cJSON *o = cJSON_AddObjectToObject(q, "idlePolicy");

	return o &&
	       jsn_add_u64(o, "maxIdleDurationSeconds",
			   run ? RUN_IDLE_S : seconds(u->spec->idle_timeout_ns, IDLE_S)) &&
	       jsn_add_u64(o, "suspendedDurationSeconds", run ? 0 : LIFE_S) &&
	       jsn_add_bool(o, "autoResumeEnabled", !run) &&
	       jsn_add_u64(q, "maximumDurationInSeconds",
			   seconds(u->spec->max_duration_ns, LIFE_S));
}

/* Without a role nothing can be logged, and AWS does not say so. */
static bool add_logging(const struct run *u, cJSON *q)
{
	cJSON *o = cJSON_AddObjectToObject(q, "logging"), *to;
	char group[128];

	if (!u->role)
		return o && cJSON_AddObjectToObject(o, "disabled");
	to = o ? cJSON_AddObjectToObject(o, "cloudWatch") : NULL;
	return to &&
	       str_format(group, sizeof(group), "/aws/lambda-microvms/%s", u->image.name) == 0 &&
	       jsn_add_str(to, "logGroup", group);
}

/* {"env": {…}} for the guest's run hook; only when there are variables, because an image without the hook is refused then. */
static int add_payload(const struct run *u, cJSON *q, struct err *e)
{
	AUTO_JSN *doc = NULL;
	cJSON *env;
	char *text;
	bool good = true;
	size_t n;

	if (!u->spec->env || !u->spec->env[0])
		return 0;
	doc = cJSON_CreateObject();
	env = cJSON_AddObjectToObject(doc, "env");
	for (char *const *v = u->spec->env; env && good && *v; v++) {
		const char *eq = strchr(*v, '=');
		AUTO_BUF key;

		buf_init(&key, PAYLOAD_MAX);
		good = eq && buf_add(&key, *v, (size_t)(eq - *v)) == 0;
		if (good)
			cJSON_DeleteItemFromObjectCaseSensitive(env, key.p);
		good = good && jsn_add_str(env, key.p, eq + 1);
	}
	text = env && good ? cJSON_PrintUnformatted(doc) : NULL;
	n = text ? strlen(text) : PAYLOAD_MAX + 1;
	good = n <= PAYLOAD_MAX && jsn_add_str(q, "runHookPayload", text);
	cJSON_free(text);
	return good ? 0
		    : err_set(e, ERR_TOO_BIG, 0,
			      "the variables take %zu bytes, and AWS passes at most %d on", n,
			      PAYLOAD_MAX);
}

static int build(const struct run *u, cJSON *q, struct err *e)
{
	if (!q || !jsn_add_str(q, "imageIdentifier", u->arn) ||
	    (u->version[0] && !jsn_add_str(q, "imageVersion", u->version)) ||
	    (u->role && !jsn_add_str(q, "executionRoleArn", u->role)) || !add_connectors(u, q) ||
	    !add_idle(u, q) || !add_logging(u, q))
		return err_set(e, ERR_INTERNAL, ENOMEM, "RunMicrovm");
	return add_payload(u, q, e);
}

static int check(struct run *u, struct err *e)
{
	const char *own;
	int r = settings_endpoint(&u->aws->set, aws_lambda_microvms.name, &own, e);

	if (r == 0 && u->spec->idle_timeout_ns &&
	    (u->spec->idle_timeout_ns < IDLE_LEAST_S * SECOND ||
	     u->spec->idle_timeout_ns > LIFE_S * SECOND))
		r = err_set(e, ERR_INVALID, 0, "--idle-timeout: AWS takes 60 s to 8 hours");
	if (r == 0 && u->spec->max_duration_ns > LIFE_S * SECOND)
		r = err_set(e, ERR_INVALID, 0, "--max-duration: AWS takes 8 hours at most");
	u->role = u->spec->role ? u->spec->role : settings_env("AGENT_SANDBOX_EXECUTION_ROLE_ARN");
	if (r == 0 && !own)
		r = arn_check_region(u->region, e);
	if (r == 0 && u->role)
		r = arn_check_role(u->role, e);
	if (r == 0 && u->spec->egress)
		r = arn_check_connector(u->spec->egress, u->region, ARN_EGRESS, e);
	if (r == 0)
		r = ingress_check(u->spec, u->region, e);
	return r;
}

/* --- starting --- */

/* The VM exists. Its id goes to the record at once. */
static int named(struct run *u, const cJSON *doc, struct err *e)
{
	const char *id = vm_text(doc, "microvmId"), *endpoint = vm_text(doc, "endpoint");
	struct sandbox_naming n = { .region = u->region, .image = u->arn };

	if (!id || str_format(u->id, sizeof(u->id), "%s", id) < 0) {
		u->id[0] = '\0';
		return err_set(e, ERR_INTERNAL, EBADMSG, "RunMicrovm gives no microvmId");
	}
	u->endpoint = endpoint ? strdup(endpoint) : NULL;
	n.id = u->id;
	n.endpoint = u->endpoint;
	return u->spec->named ? u->spec->named(u->spec->named_arg, &n, e) : 0;
}

static int begin(struct run *u, struct err *e)
{
	AUTO_JSN *q = cJSON_CreateObject();
	struct aws_answer w = { .attempts = 0 };
	int r = build(u, q, e);

	if (r < 0)
		return r;
	fetch_cancel(u->aws->fetch, NULL); /* whether it was made must be known */
	r = ops_call(u->aws, OP_RUN_MICROVM, q, &w, e);
	if (r == -ETIMEDOUT || r == -ECONNRESET) {
		(void)err_wrap(e, "a MicroVM may have been started (asb ls --all shows it)");
		r = -ENOTRECOVERABLE;
	}
	if (r == 0)
		r = named(u, w.json, e);
	aws_answer_done(&w);
	fetch_cancel(u->aws->fetch, u->progress ? u->progress->cancel : NULL);
	return r;
}

/* One question to the agent behind the endpoint. 1: it is there. 0: not yet. */
static int is_ready(struct run *u, bool fresh, int *ret_status, struct err *e)
{
	struct backend_route route;
	struct fetch_reply w = { .status = 0 };
	char url[BACKEND_URL_MAX + 16];
	struct fetch_request q = { .method = "GET",
				   .url = url,
				   .connect_ns = READY_LIMIT_NS,
				   .limit_ns = READY_LIMIT_NS };
	int r = token_route(u->aws, u->id, u->endpoint ? u->endpoint : "", &backend_agent_port,
			    fresh, &route, e);

	if (r < 0)
		return r;
	q.headers = (const char *const *)route.headers;
	ignore_result(str_format(url, sizeof(url), "%s/healthz", route.url)); /* it fits */
	r = fetch_do(u->aws->fetch, &q, &w, e);
	*ret_status = w.status;
	fetch_reply_done(&w);
	backend_route_done(&route);
	if (r == -EINTR || r == -EPROTO)
		return r;
	return r == 0 && *ret_status == 200;
}

static int wait_ready(struct run *u, struct err *e)
{
	int status = 0, r;

	for (;;) {
		struct err why = ERR_INIT;

		r = is_ready(u, status == 403, &status, &why);
		if (r) {
			if (r < 0 && e)
				*e = why;
			return r < 0 ? r : 0;
		}
		if (loop_now() + READY_PAUSE_NS >= u->deadline)
			return err_set(e, ERR_TIMEOUT, ETIMEDOUT,
				       "the agent in the sandbox does not answer (HTTP %d)",
				       status);
		if (fetch_sleep(u->aws->fetch, READY_PAUSE_NS) < 0)
			return err_set(e, ERR_UNAVAILABLE, EINTR, "waiting for the agent");
	}
}

/* The VM is not to stay. What went wrong before stays in E. */
static int undo(struct run *u, int r, struct err *e)
{
	struct err why = ERR_INIT;

	if (!u->id[0])
		return r;
	fetch_cancel(u->aws->fetch, NULL);
	if (vm_do(u->aws, OP_TERMINATE_MICROVM, u->id, &why) < 0 && why.code != ERR_NOT_FOUND) {
		(void)err_wrap(e,
			       "%.100s could not be ended (%.150s) and may still cost; before that",
			       u->id, why.msg);
		return -ENOTRECOVERABLE;
	}
	token_forget(u->id);
	return r;
}

static int start(struct run *u, struct err *e)
{
	cJSON *doc = NULL;
	int r = begin(u, e);

	if (r == 0)
		r = vm_wait(u->aws, u->id, SANDBOX_RUNNING, u->progress, u->deadline, &doc, e);
	if (r == 0 && !u->endpoint && vm_text(doc, "endpoint"))
		u->endpoint = strdup(vm_text(doc, "endpoint"));
	cJSON_Delete(doc);
	if (r == 0 && u->progress && u->progress->fn)
		u->progress->fn(u->progress->arg, "agent", 0);
	if (r == 0 && ingress_has_http(u->spec))
		r = wait_ready(u, e);
	return r < 0 ? undo(u, r, e) : 0;
}

int run_create(const struct sandbox_spec *spec, const char *id, const struct progress *p,
	       int64_t deadline_ns, struct backend_owner **ret, struct err *e)
{
	struct run u = { .spec = spec, .progress = p, .deadline = deadline_ns };
	struct backend_owner *o = calloc(1, sizeof(*o));
	int r;

	(void)id; /* AWS gives it another one */
	if (!o)
		return err_set(e, ERR_INTERNAL, ENOMEM, "the sandbox");
	r = place(&u, e);
	if (r == 0)
		r = check(&u, e);
	if (r == 0 && !u.arn[0])
		r = by_name(&u, spec->image, e);
	if (r == 0)
		r = start(&u, e);
	if (u.aws)
		fetch_cancel(u.aws->fetch, NULL);
	free(u.endpoint);
	if (r < 0)
		free(o);
	else
		*ret = o;
	return r;
}

int run_keep(struct backend_owner *o, struct err *e)
{
	(void)e;
	free(o);
	return 0;
}

/* The VM ends by remove(), which can tell of a failure. */
void run_drop(struct backend_owner *o)
{
	free(o);
}
