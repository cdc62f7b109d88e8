/* SPDX-License-Identifier: Apache-2.0 */
#include "cmdline.h"

#include <errno.h>
#include <string.h>

#include "lib/hostname.h"
#include "lib/str.h"

#define WORD_MAX 256

static int set_hostname(struct cmdline *c, const char *v, struct err *e)
{
	if (!hostname_valid(v))
		return err_set(e, ERR_INVALID, EINVAL, "asb.hostname=%s", v);
	return str_format(c->hostname, sizeof(c->hostname), "%s", v);
}

static int set_net(struct cmdline *c, const char *v, struct err *e)
{
	if (!strcmp(v, "none"))
		c->net = CMDLINE_NET_NONE;
	else if (!strcmp(v, "user"))
		c->net = CMDLINE_NET_USER;
	else
		return err_set(e, ERR_INVALID, EINVAL, "asb.net=%s", v);
	return 0;
}

static int set_time(struct cmdline *c, const char *v, struct err *e)
{
	int64_t ns;
	int r = str_to_ns(v, 1ULL << 33, &ns);

	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "asb.time=%s", v);
	c->time = (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				     .tv_nsec = (long)(ns % 1000000000) };
	return 0;
}

static const struct {
	const char *name; /* with its '=' */
	int (*set)(struct cmdline *c, const char *value, struct err *e);
} words[] = {
	{ "asb.hostname=", set_hostname },
	{ "asb.net=", set_net },
	{ "asb.time=", set_time },
};

static int take_word(struct cmdline *c, const char *w, struct err *e)
{
	c->ours = true;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_starts(w, words[i].name))
			return words[i].set(c, w + strlen(words[i].name), e);
	return 0;
}

int cmdline_parse(const char *text, struct cmdline *ret, struct err *e)
{
	static const char space[] = " \t\n";
	struct cmdline c = { 0 };

	for (text += strspn(text, space); *text; text += strspn(text, space)) {
		size_t n = strcspn(text, space);
		char w[WORD_MAX];
		int r;

		if (n == 2 && !memcmp(text, "--", 2))
			break;
		if (str_starts(text, "asb.")) {
			if (n >= sizeof(w))
				return err_set(e, ERR_INVALID, ENAMETOOLONG,
					       "an asb. word of %zu bytes", n);
			memcpy(w, text, n);
			w[n] = '\0';
			r = take_word(&c, w, e);
			if (r < 0)
				return r;
		}
		text += n;
	}
	*ret = c;
	return 0;
}
