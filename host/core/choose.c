/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "host/core/core.h"
#include "lib/str.h"

static const char *from_env(const char *name)
{
	const char *s = getenv(name);

	return s && *s ? s : NULL;
}

static int check_image(const char *image, struct err *e)
{
	size_t n = strlen(image);
	bool ok = n > 0 && n <= SANDBOX_IMAGE_MAX && strstr(image, "..") == NULL;

	for (size_t i = 0; ok && i < n; i++)
		ok = image[i] > ' ' && image[i] < 0x7f; /* bytes >= 0x80 too, signed or not */
	if (ok)
		return 0;
	(void)err_set(e, ERR_USAGE, 0, "'%.200s' is not an image's name", image);
	return -EINVAL;
}

/* Where the image decides, an option would be a wish that nobody hears. */
static int check_size(const struct cli *c, const struct backend *b, struct err *e)
{
	static const enum opt_id sizes[] = { OPT_CPUS, OPT_MEMORY, OPT_NET, OPT_NO_TEMPLATE };
	static const enum opt_id places[] = { OPT_REGION, OPT_PROFILE, OPT_ROLE, OPT_EGRESS,
					      OPT_INGRESS };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		if (b->size_of_image && c->val[sizes[i]].set)
			return err_set(
				e, ERR_UNSUPPORTED, ENOSYS,
				"--%s: on the %s backend that is decided when the image is built",
				cli_opts[sizes[i]].name, b->name);
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (!b->size_of_image && c->val[places[i]].set)
			return err_set(e, ERR_USAGE, 0, "--%s is for the aws backend",
				       cli_opts[places[i]].name);
	return 0;
}

/* NULL = nobody has said. */
static const char *wanted_backend(const struct cli *c)
{
	return c->val[OPT_BACKEND].set ? c->val[OPT_BACKEND].text
				       : from_env("AGENT_SANDBOX_BACKEND");
}

static int find_backend(const char *name, const char *image, const struct backend **ret,
			struct err *e)
{
	bool arn = image && str_starts(image, "arn:");

	if (!name)
		name = arn ? "aws" : "local";
	*ret = backend_by_name(name);
	if (!*ret)
		return err_set(e, ERR_USAGE, 0, "there is no backend named '%.40s'", name);
	if (strcmp(name, "local") == 0 && arn)
		return err_set(e, ERR_USAGE, 0, "'%.150s' is an image of the aws backend", image);
	return 0;
}

int core_images(const struct cli *c, const char *image, const struct backend **ret, struct err *e)
{
	static const enum opt_id local[] = { OPT_CPUS, OPT_NO_TEMPLATE };
	static const enum opt_id aws[] = { OPT_REGION,	OPT_PROFILE, OPT_BUILD_ROLE, OPT_BUCKET,
					   OPT_MANAGED, OPT_REBUILD, OPT_NO_CHECK };
	int r = find_backend(wanted_backend(c), image, ret, e);
	bool here = r == 0 && *ret == &backend_local;
	const enum opt_id *bad = here ? aws : local;
	size_t n = here ? ARRAY_LEN(aws) : ARRAY_LEN(local);

	for (size_t i = 0; r == 0 && i < n; i++)
		if (c->val[bad[i]].set)
			r = err_set(e, ERR_USAGE, 0, "--%s is for the %s backend",
				    cli_opts[bad[i]].name, here ? "aws" : "local");
	return r;
}

int core_choose(const struct cli *c, const char *image, const struct backend **ret_backend,
		const char **ret_image, struct err *e)
{
	const char *name = wanted_backend(c);
	const char *arn = from_env("AGENT_SANDBOX_IMAGE_ARN");
	const struct backend *b;
	int r;

	if (!image && arn && !(name && strcmp(name, "local") == 0))
		image = arn;
	if (!image && name && strcmp(name, "aws") == 0)
		return err_set(e, ERR_USAGE, 0,
			       "the aws backend needs an image: its ARN or name, or "
			       "$AGENT_SANDBOX_IMAGE_ARN");
	if (!image)
		image = cli_opts[OPT_IMAGE].def;
	r = check_image(image, e);
	if (r < 0)
		return r;
	r = find_backend(name, image, &b, e);
	if (r == 0)
		r = check_size(c, b, e);
	if (r < 0)
		return r;
	*ret_backend = b;
	*ret_image = image;
	return 0;
}

void core_platform(const struct cli *c, struct sandbox_spec *s)
{
	s->region = c->val[OPT_REGION].set ? c->val[OPT_REGION].text : NULL;
	s->role = c->val[OPT_ROLE].set ? c->val[OPT_ROLE].text : NULL;
	s->egress = c->val[OPT_EGRESS].set ? c->val[OPT_EGRESS].text : NULL;
	s->ingress = c->val[OPT_INGRESS].all;
	s->ingress_len = c->val[OPT_INGRESS].all_len;
}
