/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/boot.h"

#include <errno.h>
#include <string.h>

#include "lib/jsn.h"
#include "lib/str.h"

static void copy(char *out, size_t size, const char *s)
{
	size_t n = strnlen(s, size - 1);

	memcpy(out, s, n);
	out[n] = '\0';
	for (char *c = out; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
}

int boot_line(struct boot *b, const char *s, size_t n)
{
	AUTO_JSN *j = jsn_parse(s, n, NULL);
	const char *stage = NULL, *error = NULL, *message = "";

	if (!j || !cJSON_IsObject(j))
		return -EINVAL;
	if (jsn_str(j, "stage", &stage, NULL) < 0 || jsn_str(j, "error", &error, NULL) < 0 ||
	    jsn_str(j, "message", &message, NULL) < 0 || (!stage && !error))
		return -EINVAL;
	if (error && !b->error[0]) { /* the first is the cause, later ones follow from it */
		copy(b->error, sizeof(b->error), error);
		copy(b->why, sizeof(b->why), message);
	}
	if (!stage)
		return 0;
	if (!strcmp(stage, "stopping") || !strcmp(stage, "power-off"))
		b->stopping = true;
	else
		copy(b->stage, sizeof(b->stage), stage);
	if (!strcmp(stage, "ready"))
		b->ready = true;
	return 0;
}

static void console_line(struct boot *b)
{
	static const char panic[] = "Kernel panic - not syncing: ";
	const char *at;

	b->part[b->part_len] = '\0';
	b->part_len = 0;
	if (b->part[strspn(b->part, " \t\r")] == '\0')
		return;
	copy(b->console, sizeof(b->console), b->part);
	at = strstr(b->part, panic);
	if (at && !b->panic[0])
		copy(b->panic, sizeof(b->panic), at + sizeof(panic) - 1);
}

void boot_console(struct boot *b, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\n' || b->part_len == sizeof(b->part) - 1)
			console_line(b);
		if (p[i] != '\n' && p[i] != '\r' && p[i] != '\0')
			b->part[b->part_len++] = p[i];
	}
	b->part[b->part_len] = '\0';
}

int boot_fail(const struct boot *b, const char *what, enum err_code code, struct err *e)
{
	const char *last = b->console[0] ? b->console : b->part_len ? b->part : "";

	if (b->error[0])
		(void)err_set(e, code, 0, "the guest failed at %s%s%s", b->error,
			      b->why[0] ? ": " : "", b->why);
	else if (b->panic[0])
		(void)err_set(e, code, 0, "the guest kernel panicked: %s", b->panic);
	else if (b->stage[0])
		(void)err_set(e, code, 0, "%s; the guest had come as far as '%s'%s%s", what,
			      b->stage, last[0] ? ", its last words were: " : "", last);
	else
		(void)err_set(e, code, 0, "%s before the guest's init had started%s%s", what,
			      last[0] ? "; its last words were: " : "", last);
	return -EIO;
}
