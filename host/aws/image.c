/* SPDX-License-Identifier: Apache-2.0 */
#include "host/aws/image.h"

#include <errno.h>
#include <string.h>

#include "host/aws/logs.h"
#include "host/aws/ops.h"
#include "host/aws/vm.h"
#include "lib/str.h"

static int no_memory(struct err *e, const char *what)
{
	return err_set(e, ERR_INTERNAL, ENOMEM, "%s", what);
}

/* --- the request --- */

struct newest {
	char *arn;
	double created;
};

static int on_managed(void *arg, const cJSON *item)
{
	struct newest *n = arg;
	const cJSON *at = jsn_get(item, "createdAt");
	const char *arn = vm_text(item, "imageArn");

	if (!arn || (n->arn[0] && cJSON_GetNumberValue(at) <= n->created))
		return 0;
	n->created = cJSON_IsNumber(at) ? at->valuedouble : 0;
	return str_format(n->arn, IMAGE_ARN_MAX, "%s", arn);
}

int image_base(struct aws *a, char ret[static IMAGE_ARN_MAX], struct err *e)
{
	AUTO_JSN *params = cJSON_CreateObject();
	struct newest n = { .arn = ret };
	int r;

	ret[0] = '\0';
	r = params ? ops_each(a, OP_LIST_MANAGED_MICROVM_IMAGES, params, on_managed, &n, e)
		   : no_memory(e, "ListManagedMicrovmImages");
	if (r == 0 && !ret[0])
		return err_set(e, ERR_NOT_FOUND, 0,
			       "AWS manages no base image in the region: is the service there?");
	return r < 0 && e && !e->code ? err_set(e, ERR_INTERNAL, -r, "the base image's ARN") : r;
}

/* Hook times: the guest drains for up to 8 s within the 10 of suspend. */
static const char hooks[] =
	"{\"port\":9000,\"microvmImageHooks\":{\"ready\":\"ENABLED\",\"readyTimeoutInSeconds\":60,"
	"\"validate\":\"ENABLED\",\"validateTimeoutInSeconds\":15},\"microvmHooks\":{\"run\":\"ENABLED\","
	"\"runTimeoutInSeconds\":5,\"resume\":\"ENABLED\",\"resumeTimeoutInSeconds\":5,\"suspend\":\"ENABLED\","
	"\"suspendTimeoutInSeconds\":10,\"terminate\":\"ENABLED\",\"terminateTimeoutInSeconds\":10}}";

static bool add_log_group(cJSON *params, const char *name)
{
	cJSON *l = cJSON_AddObjectToObject(params, "logging");
	char group[160];

	l = l ? cJSON_AddObjectToObject(l, "cloudWatch") : NULL;
	return l && str_format(group, sizeof(group), LOGS_GROUP "%s", name) == 0 &&
	       jsn_add_str(l, "logGroup", group);
}

static bool add_artefact(cJSON *params, const char *bucket, const char *object)
{
	cJSON *o = cJSON_AddObjectToObject(params, "codeArtifact");
	char uri[400];

	return o && str_format(uri, sizeof(uri), "s3://%s/%s", bucket, object) == 0 &&
	       jsn_add_str(o, "uri", uri);
}

static bool add_memory(cJSON *params, uint64_t mib)
{
	cJSON *list = mib ? cJSON_AddArrayToObject(params, "resources") : NULL,
	      *one = list ? cJSON_CreateObject() : NULL;

	if (!mib)
		return true;
	if (one && jsn_add_u64(one, "minimumMemoryInMiB", mib) && cJSON_AddItemToArray(list, one))
		return true;
	cJSON_Delete(one);
	return false;
}

static bool add_tag(cJSON *params, const struct image_recipe *i)
{
	cJSON *o = i->tag && !i->arn ? cJSON_AddObjectToObject(params, "tags") : NULL;

	return !i->tag || i->arn || (o && jsn_add_str(o, i->tag, i->tag_value));
}

static bool given(const char *s)
{
	return s && *s;
}

int image_params(struct aws *a, const struct image_recipe *i, cJSON **ret, struct err *e)
{
	char newest[IMAGE_ARN_MAX];
	int r = given(i->base) ? 0 : image_base(a, newest, e);
	cJSON *p = r == 0 ? cJSON_CreateObject() : NULL;

	if (r < 0)
		return r;
	if (p &&
	    (i->arn ? jsn_add_str(p, "imageIdentifier", i->arn)
		    : jsn_add_str(p, "name", i->name)) &&
	    jsn_add_str(p, "baseImageArn", given(i->base) ? i->base : newest) &&
	    (!given(i->base_version) || jsn_add_str(p, "baseImageVersion", i->base_version)) &&
	    jsn_add_str(p, "buildRoleArn", i->build_role) && add_log_group(p, i->name) &&
	    cJSON_AddItemToObject(p, "hooks", cJSON_Parse(hooks)) &&
	    add_artefact(p, i->bucket, i->object) && add_memory(p, i->memory_mib) &&
	    add_tag(p, i)) {
		*ret = p;
		return 0;
	}
	cJSON_Delete(p);
	return no_memory(e, "the image's parameters");
}

/* --- how it is --- */

uint64_t image_major(const char *version)
{
	char text[IMAGE_VERSION_MAX];
	uint64_t v;

	if (!version ||
	    str_format(text, sizeof(text), "%.*s", (int)strcspn(version, "."), version) < 0)
		return 0;
	return str_to_u64(text, 0, UINT32_MAX, &v) < 0 ? 0 : v;
}

static void take(char *ret, size_t size, const cJSON *o, const char *name)
{
	const char *s = vm_text(o, name);

	if (!s || str_format(ret, size, "%s", s) < 0)
		ret[0] = '\0';
}

int image_get(struct aws *a, const char *arn, struct image_state *ret, struct err *e)
{
	AUTO_JSN *p = cJSON_CreateObject();
	struct aws_answer w = { .attempts = 0 };
	int r = p && jsn_add_str(p, "imageIdentifier", arn)
			? ops_call(a, OP_GET_MICROVM_IMAGE, p, &w, e)
			: no_memory(e, "GetMicrovmImage");

	take(ret->state, sizeof(ret->state), w.json, "state");
	take(ret->active_version, sizeof(ret->active_version), w.json, "latestActiveImageVersion");
	take(ret->failed_version, sizeof(ret->failed_version), w.json, "latestFailedImageVersion");
	ret->failed = strstr(ret->state, "FAILED") != NULL;
	ret->busy = strstr(ret->state, "ING") != NULL;
	aws_answer_done(&w);
	return r;
}

/* R of asking: 1 when it is accepted or there is none, 0 for what AWS refuses only for now. */
static int asked(int r, const struct err *e)
{
	if (r == 0 || r == -ENOENT)
		return 1;
	if (r == -EBUSY || (r == -EINVAL && (strstr(e->msg, "current state") ||
					     strstr(e->msg, "running microvms"))))
		return 0;
	return r;
}

int image_ask_to_delete(struct aws *a, const char *arn, const char *version, struct err *e)
{
	const enum aws_op_id op =
		version ? OP_DELETE_MICROVM_IMAGE_VERSION : OP_DELETE_MICROVM_IMAGE;
	AUTO_JSN *p = cJSON_CreateObject();
	struct aws_answer w = { .attempts = 0 };
	int r = p && jsn_add_str(p, "imageIdentifier", arn) &&
				(!version || jsn_add_str(p, "imageVersion", version))
			? ops_call(a, op, p, &w, e)
			: no_memory(e, ops_of(op)->name);

	aws_answer_done(&w);
	return asked(r, e);
}

int image_is_gone(struct aws *a, const char *arn, struct err *e)
{
	struct image_state i;
	int r = image_get(a, arn, &i, e);

	if (r == 0 && strcmp(i.state, "DELETE_FAILED") == 0)
		return err_set(e, ERR_UNAVAILABLE, 0, "deleting the image has failed");
	return r == -ENOENT || (r == 0 && strcmp(i.state, "DELETED") == 0) ? 1 : r;
}

/* Of the two builds of a version (one for each processor) those that tell something new. */
static int on_build(void *arg, const cJSON *item)
{
	struct buf *b = arg;
	const char *why = vm_text(item, "stateReason"), *state = vm_text(item, "buildState");

	if (!why || !*why || !state || !strstr(state, "FAILED") || (b->p && strstr(b->p, why)))
		return 0;
	return buf_addf(b, "%s%.400s", b->len ? "; " : "", why);
}

void image_reason(struct aws *a, const char *arn, const char *version, struct buf *ret)
{
	AUTO_JSN *p = cJSON_CreateObject(), *q = NULL;
	struct aws_answer w = { .attempts = 0 };
	const char *why;

	if (!p || !*version || !jsn_add_str(p, "imageIdentifier", arn) ||
	    !jsn_add_str(p, "imageVersion", version))
		return;
	q = cJSON_Duplicate(p, true);
	if (q && ops_call(a, OP_GET_MICROVM_IMAGE_VERSION, q, &w, NULL) == 0) {
		why = vm_text(w.json, "stateReason");
		ignore_result(buf_addf(ret, "%.400s", why ? why : ""));
	}
	aws_answer_done(&w);
	ignore_result(ops_each(a, OP_LIST_MICROVM_IMAGE_BUILDS, p, on_build, ret, NULL));
}
