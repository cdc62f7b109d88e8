/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/local/local.h"
#include "host/mcp/tools.h"
#include "host/state/file.h"
#include "lib/str.h"

/*
 * What is below the sandboxes: this machine or an account of AWS, and images. The Python project's server only knows AWS; what it
 * asks there (boto3, a client, credentials) is answered for what it was asked for: whether sandboxes can be started.
 */

static const char *from_env(const char *name)
{
	const char *s = getenv(name);

	return s && *s ? s : NULL;
}

static const struct backend *chosen(const struct mcp_config *c, struct err *e)
{
	const struct backend *b;
	const char *image;

	return core_choose(c->cli, NULL, &b, &image, e) == 0 ? b : NULL;
}

/* --- runtime --- */

struct checks {
	cJSON *list;
	bool failed;
};

static int on_check(void *arg, const char *check, const char *status, const char *text)
{
	struct checks *k = arg;
	cJSON *o = cJSON_CreateObject();

	k->failed = k->failed || !strcmp(status, "fail");
	return o && cJSON_AddItemToArray(k->list, o) && jsn_add_str(o, "check", check) &&
			       jsn_add_str(o, "status", status) &&
			       jsn_add_text(o, "text", text, strlen(text))
		       ? 0
		       : -ENOMEM;
}

int platform_runtime(const struct mcp_config *c, cJSON *o, struct err *e)
{
	const struct backend *b = chosen(c, NULL);
	bool local = b == &backend_local;
	struct checks k = { .list = cJSON_AddArrayToObject(o, "checks") };
	int r = k.list ? 0 : -ENOMEM;

	(void)e;
	if (r == 0 && local)
		r = local_doctor(on_check, &k);
	if (r == 0 && (!jsn_add_str(o, "backend", b ? b->name : "aws") ||
		       !jsn_add_str(o, "region", from_env("AGENT_SANDBOX_REGION")) ||
		       !jsn_add_bool(o, "boto3_available", false) ||
		       !jsn_add_bool(o, "lambda_microvms_client", false) ||
		       !jsn_add_bool(o, "aws_credentials", false) ||
		       !jsn_add_str(o, "image_arn", from_env("AGENT_SANDBOX_IMAGE_ARN")) ||
		       !jsn_add_str(o, "role_arn", from_env("AGENT_SANDBOX_EXECUTION_ROLE_ARN")) ||
		       !jsn_add_bool(o, "ready", local && !k.failed)))
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

static int check_tree(const cJSON *tree, const char *path, struct err *e);

static const struct state_file infra_file = { .variable = "AGENT_SANDBOX_INFRA_STATE",
					      .name = "infra-state.json",
					      .lock = ".infra.lock",
					      .what = "infra state file",
					      .check = check_tree };

static int check_tree(const cJSON *tree, const char *path, struct err *e)
{
	const cJSON *stacks = jsn_get(tree, "stacks");

	return !stacks || cJSON_IsObject(stacks)
		       ? 0
		       : state_file_bad(&infra_file, path, "stacks is no object", e);
}

/* {value, source}: the environment before the stack's outputs. */
static bool add_value(cJSON *to, const char *name, const char *variable, const cJSON *outputs,
		      const char *key)
{
	const char *value = from_env(variable), *source = value ? "env" : "unset";
	cJSON *o = cJSON_AddObjectToObject(to, name);

	if (!value && outputs && jsn_str(outputs, key, &value, NULL) == 1)
		source = "infra";
	return o && jsn_add_str(o, "value", value) && jsn_add_str(o, "source", source);
}

static bool add_copy(cJSON *to, const char *name, const cJSON *outputs, const char *key,
		     const char *def)
{
	const cJSON *v = outputs ? jsn_get(outputs, key) : NULL;
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
	    !cJSON_AddItemToObject(o, "raw_infra_outputs",
				   outputs ? cJSON_Duplicate(outputs, true)
					   : cJSON_CreateObject()) ||
	    !jsn_add_bool(o, "ready", ready))
		return -ENOMEM;
	return 0;
}

/* Of PROJECT and STACK; of the only stack there is when neither is given. */
static int outputs_of(cJSON *o, const char *project, const char *stack)
{
	AUTO_JSN *tree = NULL;
	const cJSON *stacks, *one = NULL, *outputs;
	char key[512] = "";

	if (state_file_load(&infra_file, &tree, NULL) < 0)
		tree = NULL; /* "never an error": then there are no outputs */
	stacks = tree ? jsn_get(tree, "stacks") : NULL;
	if (project)
		ignore_result(str_format(key, sizeof(key), "%s/%s", project,
					 stack ? stack : "dev")); /* too long: none */
	else if (stacks && cJSON_GetArraySize(stacks) == 1)
		ignore_result(
			str_format(key, sizeof(key), "%s", stacks->child->string)); /* as above */
	if (key[0])
		one = cJSON_IsObject(stacks) ? jsn_get(stacks, key) : NULL;
	outputs = cJSON_IsObject(one) ? jsn_get(one, "outputs") : NULL;
	if (!project && key[0] && strchr(key, '/')) {
		char *slash = strchr(key, '/');

		*slash = '\0';
		return add_outputs(o, key, slash + 1, cJSON_IsObject(outputs) ? outputs : NULL);
	}
	return add_outputs(o, project, project ? (stack ? stack : "dev") : stack,
			   cJSON_IsObject(outputs) ? outputs : NULL);
}

int platform_infra(const struct mcp_config *c, cJSON *o, struct err *e)
{
	(void)c;
	(void)e;
	return outputs_of(o, NULL, NULL);
}

int tool_infra_outputs(struct mcp_job *j, struct err *e)
{
	(void)e;
	return outputs_of(j->data, job_str(j, "project"), job_str(j, "stack"));
}

int tool_infra_list(struct mcp_job *j, struct err *e)
{
	AUTO_JSN *tree = NULL;
	cJSON *list = cJSON_AddArrayToObject(j->data, "stacks"), *o;
	const cJSON *x;
	int r = list ? state_file_load(&infra_file, &tree, e) : -ENOMEM;

	if (r < 0)
		return r;
	cJSON_ArrayForEach(x, jsn_get(tree, "stacks"))
	{
		const char *slash = strchr(x->string, '/');
		char project[256];

		ignore_result(str_format(project, sizeof(project), "%.*s",
					 slash ? (int)(slash - x->string) : (int)strlen(x->string),
					 x->string)); /* else cut */
		o = cJSON_CreateObject();
		if (!o || !cJSON_AddItemToArray(list, o) || !jsn_add_str(o, "project", project) ||
		    !jsn_add_str(o, "stack", slash ? slash + 1 : ""))
			return -ENOMEM;
	}
	return jsn_add_u64(j->data, "count", (uint64_t)cJSON_GetArraySize(list)) ? 0 : -ENOMEM;
}

/* --- images --- */

static int no_images(struct mcp_job *j, struct err *e)
{
	j->code = "unsupported";
	return err_set(
		e, ERR_UNSUPPORTED, 0,
		"not supported by the local backend: images are managed by asb image on the command line");
}

int platform_images(const struct mcp_config *c, cJSON *o, struct err *e)
{
	(void)c;
	(void)e;
	return cJSON_AddArrayToObject(o, "images") && jsn_add_u64(o, "count", 0) ? 0 : -ENOMEM;
}

int tool_image_list(struct mcp_job *j, struct err *e)
{
	return no_images(j, e);
}

int tool_image_inspect(struct mcp_job *j, struct err *e)
{
	return no_images(j, e);
}

static bool unconfirmed(struct mcp_job *j, struct err *e)
{
	if (job_bool(j, "confirm"))
		return false;
	(void)job_fail(j, e, "confirm_required", "this removes images for good: say confirm: true");
	return true;
}

int tool_image_remove(struct mcp_job *j, struct err *e)
{
	return unconfirmed(j, e) ? -EINVAL : no_images(j, e);
}

int tool_image_prune(struct mcp_job *j, struct err *e)
{
	return unconfirmed(j, e) ? -EINVAL : no_images(j, e);
}
