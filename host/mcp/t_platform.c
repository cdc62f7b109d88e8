/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/aws/doctor.h"
#include "host/infra/record.h"
#include "host/local/local.h"
#include "host/mcp/tools.h"
#include "lib/str.h"

/*
 * What is below the sandboxes: this machine or an account of AWS (t_image.c has the images). The Python project's server only knows AWS; what it
 * asks there (boto3, a client, credentials) is answered for what it was asked for: whether sandboxes can be started.
 */

#define STACK_MAX  512 /* "project/stack" */
#define EGRESS_MAX 512

static const char *from_env(const char *name)
{
	const char *s = getenv(name);

	return s && *s ? s : NULL;
}

int platform_backend(const struct mcp_config *c, const struct backend **ret, struct err *e)
{
	/* An image that is configured says where sandboxes live, as for those that are made. */
	return core_images(c->cli, from_env("AGENT_SANDBOX_IMAGE_ARN"), ret, e);
}

/* --- runtime --- */

struct checks {
	cJSON *list;
	bool failed;
	bool credentials; /* of AWS: they were found */
};

static int on_check(void *arg, const char *check, const char *status, const char *text)
{
	struct checks *k = arg;
	cJSON *o = cJSON_CreateObject();

	k->failed = k->failed || !strcmp(status, "fail");
	k->credentials = k->credentials || (!strcmp(check, "aws-creds") && !strcmp(status, "ok"));
	return o && cJSON_AddItemToArray(k->list, o) && jsn_add_str(o, "check", check) &&
			       jsn_add_str(o, "status", status) &&
			       jsn_add_text(o, "text", text, strlen(text))
		       ? 0
		       : -ENOMEM;
}

int platform_runtime(const struct mcp_config *c, cJSON *o, struct err *e)
{
	struct checks k = { .list = cJSON_AddArrayToObject(o, "checks") };
	const struct backend *b = &backend_aws; /* the one that may lack something */
	struct err why = ERR_INIT;
	int r = k.list ? 0 : -ENOMEM;

	(void)e;
	if (r == 0 && platform_backend(c, &b, &why) < 0)
		r = on_check(&k, "backend", "fail", why.msg);
	if (r == 0)
		r = b == &backend_local ? local_doctor(on_check, &k)
					: aws_doctor(on_check, &k, true);
	if (r == 0 && (!jsn_add_str(o, "backend", b->name) ||
		       !jsn_add_str(o, "region", from_env("AGENT_SANDBOX_REGION")) ||
		       !jsn_add_bool(o, "boto3_available", false) ||
		       !jsn_add_bool(o, "lambda_microvms_client", true) ||
		       !jsn_add_bool(o, "aws_credentials", k.credentials) ||
		       !jsn_add_str(o, "image_arn", from_env("AGENT_SANDBOX_IMAGE_ARN")) ||
		       !jsn_add_str(o, "role_arn", from_env("AGENT_SANDBOX_EXECUTION_ROLE_ARN")) ||
		       !jsn_add_bool(o, "ready", !k.failed)))
		r = -ENOMEM;
	return r;
}

int tool_runtime_check(struct mcp_job *j, struct err *e)
{
	return platform_runtime(j->cfg, j->data, e);
}

int tool_runtime_install(struct mcp_job *j, struct err *e)
{
	cJSON *o = cJSON_CreateObject();
	int r = o ? platform_runtime(j->cfg, o, e) : -ENOMEM;

	if (r == 0 && cJSON_IsTrue(jsn_get(o, "ready"))) {
		if (jsn_add_str(j->data, "message",
				"sandboxes can be started: nothing is to be installed") &&
		    cJSON_AddItemToObject(j->data, "runtime", o))
			return 0;
		r = -ENOMEM;
	} else if (r == 0) {
		j->extra = cJSON_CreateObject();
		if (j->extra && cJSON_AddItemToObject(j->extra, "runtime", o))
			return job_fail(
				j, e, "not_provisioned",
				"see the checks that fail, or run asb doctor (for AWS: asb infra up)");
		r = -ENOMEM;
	}
	cJSON_Delete(o);
	return r;
}

/* --- infra --- */

/* {value, source}: the environment before the stack's outputs. */
static bool add_value(cJSON *to, const char *name, const char *variable, const cJSON *outputs,
		      const char *key)
{
	const char *value = from_env(variable), *source = value ? "env" : "unset";
	cJSON *o = cJSON_AddObjectToObject(to, name);

	if (!value && jsn_str(outputs, key, &value, NULL) == 1)
		source = "infra";
	return o && jsn_add_str(o, "value", value) && jsn_add_str(o, "source", source);
}

static bool add_copy(cJSON *to, const char *name, const cJSON *outputs, const char *key,
		     const char *def)
{
	const cJSON *v = jsn_get(outputs, key);
	cJSON *copy = v ? cJSON_Duplicate(v, true) : jsn_parse(def, strlen(def), NULL);

	if (copy && cJSON_AddItemToObject(to, name, copy))
		return true;
	cJSON_Delete(copy);
	return false;
}

static int add_outputs(cJSON *o, const char *project, const char *stack, const cJSON *outputs)
{
	cJSON *net;
	bool ready;

	if (!jsn_add_str(o, "project", project) || !jsn_add_str(o, "stack", stack) ||
	    !jsn_add_str(o, "region", from_env("AGENT_SANDBOX_REGION")) ||
	    !add_value(o, "image_arn", "AGENT_SANDBOX_IMAGE_ARN", outputs, "image_arn") ||
	    !add_value(o, "role_arn", "AGENT_SANDBOX_EXECUTION_ROLE_ARN", outputs,
		       "execution_role_arn") ||
	    !add_value(o, "egress_connector_arn", "AGENT_SANDBOX_EGRESS_CONNECTOR", outputs,
		       "egress_network_connector_arn") ||
	    !add_copy(o, "build_bucket", outputs, "build_bucket", "null"))
		return -ENOMEM;
	net = cJSON_AddObjectToObject(o, "network");
	ready = cJSON_IsString(jsn_get(jsn_get(o, "image_arn"), "value")) &&
		cJSON_IsString(jsn_get(jsn_get(o, "role_arn"), "value"));
	if (!net || !add_copy(net, "vpc_id", outputs, "vpc_id", "null") ||
	    !add_copy(net, "subnet_ids", outputs, "subnet_ids", "[]") ||
	    !add_copy(net, "security_group_id", outputs, "security_group_id", "null") ||
	    !cJSON_AddItemToObject(o, "raw_infra_outputs", cJSON_Duplicate(outputs, true)) ||
	    !jsn_add_bool(o, "ready", ready))
		return -ENOMEM;
	return 0;
}

struct search {
	const char *key; /* "project/stack"; NULL = the only one there is */
	char name[STACK_MAX];
	unsigned found;
	cJSON *outputs; /* owned; of the first */
};

static int on_stack(void *arg, const char *key, const cJSON *outputs)
{
	struct search *s = arg;

	if ((s->key && strcmp(s->key, key) != 0) || ++s->found > 1)
		return 0;
	s->outputs = cJSON_Duplicate(outputs, true);
	return s->outputs ? str_format(s->name, sizeof(s->name), "%s", key) : -ENOMEM;
}

/* Of PROJECT and STACK; of the only stack there is when neither is given. A file that cannot be read has none. */
static int outputs_of(cJSON *o, const char *project, const char *stack)
{
	AUTO_JSN *none = cJSON_CreateObject();
	char key[STACK_MAX] = "", *slash;
	struct search s = { .key = project ? key : NULL };
	int r;

	if (project && !stack)
		stack = "dev";
	if (project)
		ignore_result(str_format(key, sizeof(key), "%s/%s", project,
					 stack));	       /* too long: there is none */
	ignore_result(infra_outputs_each(on_stack, &s, NULL)); /* as far as it could be read */
	slash = s.found == 1 ? strchr(s.name, '/') : NULL;
	if (!project && slash) {
		*slash = '\0';
		project = s.name;
		stack = slash + 1;
	}
	r = none ? add_outputs(o, project, stack, s.found == 1 ? s.outputs : none) : -ENOMEM;
	cJSON_Delete(s.outputs);
	return r;
}

int platform_infra(const struct mcp_config *c, cJSON *o, struct err *e)
{
	(void)c;
	(void)e;
	return outputs_of(o, NULL, NULL);
}

const char *platform_egress(void)
{
	static char arn[EGRESS_MAX];
	AUTO_JSN *o = cJSON_CreateObject();
	const char *value = NULL;

	if (!o || outputs_of(o, NULL, NULL) < 0 ||
	    jsn_str(jsn_get(o, "egress_connector_arn"), "value", &value, NULL) != 1 ||
	    str_format(arn, sizeof(arn), "%s", value) < 0)
		return NULL;
	return arn;
}

int tool_infra_outputs(struct mcp_job *j, struct err *e)
{
	(void)e;
	return outputs_of(j->data, job_str(j, "project"), job_str(j, "stack"));
}

static int add_stack(void *list, const char *key, const cJSON *outputs)
{
	size_t n = strcspn(key, "/");
	cJSON *o = cJSON_CreateObject();

	(void)outputs;
	return o && cJSON_AddItemToArray(list, o) && jsn_add_text(o, "project", key, n) &&
			       jsn_add_str(o, "stack", key[n] ? key + n + 1 : "")
		       ? 0
		       : -ENOMEM;
}

int tool_infra_list(struct mcp_job *j, struct err *e)
{
	cJSON *list = cJSON_AddArrayToObject(j->data, "stacks");
	int r = list ? infra_outputs_each(add_stack, list, e) : -ENOMEM;

	if (r == 0 && !jsn_add_u64(j->data, "count", (uint64_t)cJSON_GetArraySize(list)))
		r = -ENOMEM;
	return r;
}
