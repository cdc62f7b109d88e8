/* SPDX-License-Identifier: Apache-2.0 */
#include "host/agent/keys.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* The key that N characters of S name; -1 for none. */
static int key(const char *s, size_t n)
{
	unsigned char c = n ? (unsigned char)s[n - 1] : 0;

	if (n == 1)
		return c < 0x80 ? c : -1;
	if (n != 6 || strncasecmp(s, "ctrl-", 5) != 0)
		return -1;
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 1;
	return c >= '@' && c <= '_' ? c - '@' : -1; /* ASCII: @ A to Z [ \ ] ^ _ */
}

int keys_parse(struct keys *k, const char *text)
{
	*k = (struct keys){ .len = 0 };
	while (*text) {
		size_t n = strcspn(text, ",");
		int c = key(text, n);

		if (c < 0 || k->len == KEYS_MAX)
			return -EINVAL;
		k->seq[k->len++] = (unsigned char)c;
		text += n;
		if (*text == ',' && *++text == '\0')
			return -EINVAL;
	}
	return 0;
}

bool keys_feed(struct keys *k, unsigned char c, unsigned char out[static KEYS_MAX], size_t *ret_n)
{
	unsigned char now[KEYS_MAX + 1];
	size_t n = k->held + 1, gone = 0;

	*ret_n = 0;
	if (k->len == 0) {
		out[(*ret_n)++] = c;
		return false;
	}
	memcpy(now, k->seq, k->held); /* what is held back is the begin of the row */
	now[k->held] = c;
	while (gone < n && memcmp(now + gone, k->seq, n - gone) != 0)
		gone++;
	memcpy(out, now, gone);
	*ret_n = gone;
	k->held = n - gone;
	if (k->held < k->len)
		return false;
	k->held = 0;
	return true;
}
