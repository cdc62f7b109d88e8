/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "host/core/core.h"
#include "lib/str.h"

static bool add_users(cJSON *j, const struct image_info *i)
{
	cJSON *a = cJSON_AddArrayToObject(j, "used_by");

	for (const char *const *u = i->used_by; a && *u; u++)
		if (!cJSON_AddItemToArray(a, cJSON_CreateString(*u)))
			return false;
	return a != NULL;
}

static const char *or_null(const char *s)
{
	return *s ? s : NULL;
}

cJSON *core_image_json(const struct image_info *i)
{
	AUTO_JSN *j = cJSON_CreateObject();
	cJSON *ret = j;

	if (!j || !jsn_add_str(j, "name", i->name) || !jsn_add_u64(j, "version", i->version) ||
	    !jsn_add_bool(j, "newest", i->newest) || !jsn_add_bool(j, "installed", i->installed) ||
	    !jsn_add_str(j, "sha256", or_null(i->sha256)) ||
	    !jsn_add_str(j, "created_at", or_null(i->created)) ||
	    !jsn_add_str(j, "source", or_null(i->source)) || !jsn_add_str(j, "path", i->path) ||
	    !jsn_add_u64(j, "bytes", i->bytes) ||
	    !jsn_add_u64(j, "unique_bytes", i->unique_bytes) ||
	    !jsn_add_u64(j, "templates", i->templates) ||
	    !jsn_add_u64(j, "template_bytes", i->template_bytes) || !add_users(j, i) ||
	    !jsn_add_text(j, "broken", i->broken, strlen(i->broken)) ||
	    (i->arn && (!jsn_add_str(j, "arn", i->arn) || !jsn_add_str(j, "state", i->state))))
		return NULL;
	j = NULL;
	return ret;
}

const char *core_image_name(const struct state_record *r, const struct sandbox_info *i)
{
	const bool local = backend_of_id(r->microvm_id) == &backend_local;

	return local && i && i->image[0] ? i->image : r->image_arn;
}

struct wanted {
	const char *image;
	cJSON *doc;
};

static int on_wanted(void *arg, const struct image_info *i)
{
	struct wanted *w = arg;
	char full[IMAGE_REF_MAX + 1];

	if (str_format(full, sizeof(full), "%s:%llu", i->name, (unsigned long long)i->version) < 0)
		return 0;
	if (strcmp(full, w->image) != 0 && !(i->arn && strcmp(i->arn, w->image) == 0) &&
	    !(i->newest && strcmp(i->name, w->image) == 0))
		return 0;
	w->doc = core_image_json(i);
	return w->doc ? 1 : -ENOMEM;
}

int core_image_find(const struct image_ops *ops, const char *image, cJSON **ret, struct err *e)
{
	struct wanted w = { .image = image };
	int r;

	if (ops->inspect)
		return ops->inspect(image, ret, e);
	r = ops->list(on_wanted, &w, e);
	if (r > 0) {
		*ret = w.doc;
		return 0;
	}
	if (r == 0)
		return err_set(e, ERR_NOT_FOUND, ENOENT, "there is no image '%.150s'", image);
	return e->code ? r : err_set(e, ERR_INTERNAL, -r, "listing the images");
}
