/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "host/mcp/tools.h"
#include "lib/str.h"

/* Images of the backend that new sandboxes get; those that belong to the installation are the "managed" ones. */

static int chosen(struct mcp_job *j, const struct backend **ret, struct err *e)
{
	int r = platform_backend(j->cfg, ret, e);

	return r < 0 ? r : (*ret)->images ? 0 : job_unsupported(*ret, "images", e);
}

/* --- looking --- */

struct listing {
	cJSON *list;
	bool managed; /* only these */
};

static int add_image(void *arg, const struct image_info *i)
{
	const struct listing *l = arg;
	cJSON *o;

	if (l->managed && !i->installed)
		return 0;
	o = core_image_json(i);
	return o && cJSON_AddItemToArray(l->list, o) ? 0 : -ENOMEM;
}

/* {"images":[…],"count":N} into O. */
static int list_images(const struct image_ops *ops, bool managed, cJSON *o, struct err *e)
{
	struct listing l = { .list = cJSON_AddArrayToObject(o, "images"), .managed = managed };
	int r = l.list ? 0 : -ENOMEM;

	if (r == 0 && ops)
		r = managed && ops->list_managed ? ops->list_managed(add_image, &l, e)
						 : ops->list(add_image, &l, e);
	return r < 0							       ? r
	       : jsn_add_u64(o, "count", (uint64_t)cJSON_GetArraySize(l.list)) ? 0
									       : -ENOMEM;
}

int platform_images(const struct mcp_config *c, cJSON *o, struct err *e)
{
	const struct backend *b;
	int r = platform_backend(c, &b, e);

	return r < 0 ? r : list_images(b->images, false, o, e);
}

int tool_image_list(struct mcp_job *j, struct err *e)
{
	bool managed = job_bool(j, "managed");
	const struct backend *b;
	int r = chosen(j, &b, e);

	if (r == 0)
		r = list_images(b->images, managed, j->data, e);
	return r < 0 ? r : jsn_add_bool(j->data, "managed", managed) ? 0 : -ENOMEM;
}

int tool_image_inspect(struct mcp_job *j, struct err *e)
{
	const struct backend *b;
	cJSON *image = NULL;
	int r = chosen(j, &b, e);

	if (r == 0)
		r = core_image_find(b->images, job_str(j, "image_arn"), &image, e);
	if (r < 0)
		return r;
	return cJSON_AddItemToObject(j->data, "image", image) &&
			       jsn_add_bool(j->data, "managed",
					    cJSON_IsTrue(jsn_get(image, "installed")))
		       ? 0
		       : -ENOMEM;
}

/* --- removing --- */

/* Confirmed, and possible. */
static int may_remove(struct mcp_job *j, const struct backend **ret, struct err *e)
{
	if (job_bool(j, "confirm"))
		return chosen(j, ret, e);
	(void)job_fail(j, e, "confirm_required", "this removes images for good: say confirm: true");
	return -EINVAL;
}

struct removing {
	const struct mcp_job *j;
	cJSON *list;
};

static void on_removed(void *arg, const char *image)
{
	const struct removing *r = arg;

	job_log(r->j, MCP_LOG_INFO, "removed the image %s", image);
	(void)cJSON_AddItemToArray(r->list,
				   cJSON_CreateString(image)); /* it has gone in any case */
}

int tool_image_remove(struct mcp_job *j, struct err *e)
{
	const char *image = job_str(j, "image_arn");
	struct removing rm = { .j = j, .list = cJSON_AddArrayToObject(j->data, "versions") };
	const struct backend *b;
	int r = rm.list ? may_remove(j, &b, e) : -ENOMEM;

	if (r == 0)
		job_progress(j, 0, 0, "removing");
	if (r == 0)
		r = b->images->remove(image, false, on_removed, &rm, e);
	if (r < 0)
		return r;
	return jsn_add_str(j->data, "image_arn", image) && jsn_add_bool(j->data, "removed", true)
		       ? 0
		       : -ENOMEM;
}

static void on_pruned(void *arg, const char *kind, const char *name, uint64_t bytes)
{
	(void)bytes;
	if (!strcmp(kind, "image"))
		on_removed(arg, name);
}

static int add_kept(void *list, const struct image_info *i)
{
	char full[IMAGE_REF_MAX + 1];

	if (str_format(full, sizeof(full), "%s:%llu", i->name, (unsigned long long)i->version) < 0)
		return -ENAMETOOLONG;
	return cJSON_AddItemToArray(list, cJSON_CreateString(full)) ? 0 : -ENOMEM;
}

int tool_image_prune(struct mcp_job *j, struct err *e)
{
	cJSON *removed = cJSON_AddArrayToObject(j->data, "removed"),
	      *kept = cJSON_AddArrayToObject(j->data, "kept");
	struct removing rm = { .j = j, .list = removed };
	const struct backend *b;
	int r = removed && kept ? may_remove(j, &b, e) : -ENOMEM;

	if (r == 0 && !b->prune)
		return job_unsupported(b, "pruning images", e);
	if (r == 0)
		job_progress(j, 0, 0, "removing");
	if (r == 0)
		r = b->prune(PRUNE_IMAGES, on_pruned, &rm, e);
	if (r == 0)
		r = b->images->list(add_kept, kept, e);
	if (r == 0 && !jsn_add_u64(j->data, "removed_count", (uint64_t)cJSON_GetArraySize(removed)))
		r = -ENOMEM;
	return r;
}
