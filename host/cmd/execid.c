/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cmd/execid.h"

#include <errno.h>
#include <string.h>

#include "host/agent/ask.h"
#include "host/cmd/common.h"
#include "lib/str.h"

int execid_list(const struct core_named *n, cJSON **ret_doc, struct err *e)
{
	struct ask a = { .backend = n->backend,
			 .id = n->record.microvm_id,
			 .method = "GET",
			 .path = "/v1/execs" };
	const cJSON *list = NULL, *x;
	AUTO_JSN *doc = NULL;
	int r;

	if (!n->backend->connect && !n->backend->route)
		return cmd_unsupported(n->backend, "run commands", e);
	r = agent_ask(&a, &doc, e);
	if (r < 0)
		return r;
	r = jsn_array(doc, "execs", &list, e) == 1 ? 0 : -EPROTO;
	cJSON_ArrayForEach(x, list)
	{
		if (!cJSON_IsObject(x))
			r = -EPROTO;
	}
	if (r < 0)
		return err_set(e, ERR_INTERNAL, EPROTO, "the agent's list of commands");
	*ret_doc = doc;
	doc = NULL;
	return 0;
}

const char *execid_of(const cJSON *x)
{
	const char *s = NULL;
	size_t n = jsn_str(x, "id", &s, NULL) == 1 ? strlen(s) : 0;

	if (n == 0 || n > EXECID_MAX ||
	    strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") != n)
		return NULL;
	return s;
}

int execid_find(const struct core_named *n, const char *word, char ret[static EXECID_MAX + 1],
		struct err *e)
{
	const char *found = NULL, *id;
	AUTO_JSN *doc = NULL;
	unsigned count = 0;
	const cJSON *x;
	int r = execid_list(n, &doc, e);

	if (r < 0)
		return r;
	cJSON_ArrayForEach(x, jsn_get(doc, "execs"))
	{
		id = execid_of(x);
		if (!id || !str_starts(id, word))
			continue;
		found = id;
		count = id[strlen(word)] ? count + 1 : 1;
		if (!id[strlen(word)])
			break;
	}
	if (count == 1)
		return str_format(ret, EXECID_MAX + 1, "%s", found);
	(void)err_set(e, count ? ERR_INVALID : ERR_NOT_FOUND, 0,
		      count ? "several commands in '%s' have an id that begins with '%s'"
			    : "no command in '%s' has the id '%s'",
		      n->record.name, word);
	return count ? -EINVAL : -ENOENT;
}

const char *execid_hint(const struct err *e, int r, const char *name)
{
	static char text[SANDBOX_NAME_MAX + 80];

	if (r != -ENOENT && r != -EINVAL && r != -ESRCH)
		return cmd_hint(e, name);
	ignore_result(str_format(text, sizeof(text),
				 "asb execs %s lists the commands that run or have ended", name));
	return text;
}
