/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
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

int core_choose(const struct cli *c, const char *image, const struct backend **ret_backend,
		const char **ret_image, struct err *e)
{
	const char *name = c->val[OPT_BACKEND].set ? c->val[OPT_BACKEND].text
						   : from_env("AGENT_SANDBOX_BACKEND");
	const char *arn = from_env("AGENT_SANDBOX_IMAGE_ARN");
	const struct backend *b;
	int r;

	if (!image && arn && !(name && strcmp(name, "local") == 0))
		image = arn;
	if (!image)
		image = cli_opts[OPT_IMAGE].def;
	r = check_image(image, e);
	if (r < 0)
		return r;
	if (!name)
		name = str_starts(image, "arn:") ? "aws" : "local";
	b = backend_by_name(name);
	if (!b) {
		bool known = strcmp(name, "aws") == 0;

		return err_set(e, known ? ERR_UNSUPPORTED : ERR_USAGE, known ? ENOSYS : 0,
			       known ? "the %.40s backend is not built into this asb"
				     : "there is no backend named '%.40s'",
			       name);
	}
	*ret_backend = b;
	*ret_image = image;
	return 0;
}
