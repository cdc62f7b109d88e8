/* SPDX-License-Identifier: Apache-2.0 */
#include "routes_files_head.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "lib/str.h"

/* --- ranges --- */
/* Digits at *S; a number beyond 64 bits is as good as the largest. False when there is none. */
static bool digits(const char **s, uint64_t *ret)
{
	const char *p = *s;
	uint64_t v = 0;

	for (; *p >= '0' && *p <= '9'; p++) {
		uint64_t d = (uint64_t)(*p - '0');

		v = v > (UINT64_MAX - d) / 10 ? UINT64_MAX : v * 10 + d;
	}
	if (p == *s)
		return false;
	*s = p;
	*ret = v;
	return true;
}

int files_range(const char *field, uint64_t size, uint64_t *ret_first, uint64_t *ret_len)
{
	uint64_t first, last = UINT64_MAX;
	bool from, to;

	if (!field || strncasecmp(field, "bytes=", 6) != 0)
		return 0;
	field += 6;
	from = digits(&field, &first);
	if (*field++ != '-')
		return 0;
	to = digits(&field, &last);
	if (*field || (!from && !to) || (from && to && last < first))
		return 0;
	if (!from) { /* the last so many bytes */
		if (last == 0 || size == 0)
			return -ERANGE;
		first = last < size ? size - last : 0;
		last = size - 1;
	}
	if (first >= size)
		return -ERANGE;
	*ret_first = first;
	*ret_len = (last < size ? last : size - 1) - first + 1;
	return 1;
}

/* --- validators --- */
void files_etag(const struct stat *st, char *out)
{
	ignore_result(str_format(out, FILES_ETAG_MAX, "\"%llx-%llx-%llx-%llx.%lx\"",
				 (unsigned long long)st->st_dev, (unsigned long long)st->st_ino,
				 (unsigned long long)st->st_size,
				 (unsigned long long)st->st_mtim.tv_sec,
				 (unsigned long)st->st_mtim.tv_nsec));
}

bool files_etag_listed(const char *field, const char *etag)
{
	size_t n = strlen(etag);

	if (!strcmp(field, "*"))
		return true;
	for (const char *p = strstr(field, etag); p; p = strstr(p + 1, etag)) {
		char before = p == field ? ',' : p[-1], after = p[n];

		if (strchr(", \t/", before) && (after == '\0' || strchr(", \t", after)))
			return true;
	}
	return false;
}

void files_date(int64_t seconds, char *out)
{
	static const char days[] = "SunMonTueWedThuFriSat";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	time_t t = (time_t)seconds;
	struct tm tm;

	/* years of four digits only; no strftime, whose names may be another language's */
	if (!gmtime_r(&t, &tm) || tm.tm_year < -1900 || tm.tm_year > 8099 ||
	    str_format(out, FILES_DATE_MAX, "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
		       days + 3 * tm.tm_wday, tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900,
		       tm.tm_hour, tm.tm_min, tm.tm_sec) < 0)
		memcpy(out, "Thu, 01 Jan 1970 00:00:00 GMT", 30);
}

/* --- names --- */
static bool is_attr_char(unsigned char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
	       (c && strchr("!#$&+-.^_`|~", c));
}

void files_disposition(const char *name, char *out)
{
	static const char hex[] = "0123456789ABCDEF";
	static const char head[] = "attachment; filename=\"", ext[] = "\"; filename*=UTF-8''";
	size_t n = strnlen(name, 255);
	bool plain = true;
	char *w = out;

	memcpy(w, head, sizeof(head) - 1);
	w += sizeof(head) - 1;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)name[i];
		/* '%' too: some clients decode it in the plain form */
		bool good = c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '%';

		plain = plain && good;
		*w++ = good ? (char)c : '_';
	}
	if (!plain && str_is_utf8(name, n)) {
		memcpy(w, ext, sizeof(ext) - 1);
		w += sizeof(ext) - 1;
		for (size_t i = 0; i < n; i++) {
			unsigned char c = (unsigned char)name[i];

			if (is_attr_char(c)) {
				*w++ = (char)c;
				continue;
			}
			*w++ = '%';
			*w++ = hex[c >> 4];
			*w++ = hex[c & 15];
		}
	} else {
		*w++ = '"';
	}
	*w = '\0';
}
