/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/since.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "lib/str.h"

#define SECOND	  1000000000LL
#define SINCE_MAX (1ULL << 33) /* seconds: what fits nanoseconds in 64 bits, with room */
#define AGO_MAX	  (36500LL * 86400 * SECOND)
#define STAMP_LEN 28 /* "2026-11-29T18:00:00.123456Z " */

/* Up to MAX digits at *S, at least MIN, as a number; moves *S behind them. -1 for too few. */
static int64_t digits(const char **s, unsigned min, unsigned max)
{
	int64_t v = 0;
	unsigned n = 0;

	for (; n < max && **s >= '0' && **s <= '9'; n++, (*s)++)
		v = v * 10 + (**s - '0');
	return n < min ? -1 : v;
}

static bool take(const char **s, char c)
{
	if (**s != c)
		return false;
	(*s)++;
	return true;
}

/* ".5" behind a second; digits after the ninth count nothing. */
static int64_t fraction(const char **s)
{
	int64_t ns = 0, unit = SECOND / 10;

	if (!take(s, '.') && !take(s, ','))
		return 0;
	if (**s < '0' || **s > '9')
		return -1;
	for (; **s >= '0' && **s <= '9'; (*s)++, unit /= 10)
		ns += unit * (**s - '0');
	return ns;
}

/* "Z", "+02:00", "-0530" or nothing, as seconds east of UTC. */
static int zone(const char **s, int64_t *ret)
{
	int64_t h, m = 0;
	int sign = **s == '-' ? -1 : 1;

	*ret = 0;
	if (take(s, 'Z') || take(s, 'z') || (**s != '+' && **s != '-'))
		return 0;
	(*s)++;
	h = digits(s, 2, 2);
	(void)take(s, ':');
	m = digits(s, 2, 2);
	if (h < 0 || h > 23 || m < 0 || m > 59)
		return -EINVAL;
	*ret = sign * (h * 3600 + m * 60);
	return 0;
}

static int clock_time(const char **s, struct tm *tm, int64_t *ret_ns)
{
	int64_t h, m, sec = 0;

	h = digits(s, 2, 2);
	if (h < 0 || h > 23 || !take(s, ':'))
		return -EINVAL;
	m = digits(s, 2, 2);
	if (m < 0 || m > 59)
		return -EINVAL;
	if (take(s, ':')) {
		sec = digits(s, 2, 2);
		*ret_ns = fraction(s);
	}
	if (sec < 0 || sec > 60 || *ret_ns < 0)
		return -EINVAL;
	tm->tm_hour = (int)h;
	tm->tm_min = (int)m;
	tm->tm_sec = (int)sec;
	return 0;
}

static int date(const char *s, int64_t *ret_ns)
{
	struct tm tm = { .tm_isdst = 0 };
	int64_t y = digits(&s, 4, 4), mon, day, ns = 0, east = 0, t;

	if (y < 1970 || y > 2200 || !take(&s, '-'))
		return -EINVAL;
	mon = digits(&s, 2, 2);
	if (mon < 1 || mon > 12 || !take(&s, '-'))
		return -EINVAL;
	day = digits(&s, 2, 2);
	if (day < 1 || day > 31)
		return -EINVAL;
	tm.tm_year = (int)y - 1900;
	tm.tm_mon = (int)mon - 1;
	tm.tm_mday = (int)day;
	if ((take(&s, 'T') || take(&s, ' ')) && clock_time(&s, &tm, &ns) < 0)
		return -EINVAL;
	if (zone(&s, &east) < 0 || *s)
		return -EINVAL;
	t = timegm(&tm);
	if (tm.tm_mday != day) /* 30 February */
		return -EINVAL;
	*ret_ns = (t - east) * SECOND + ns;
	return 0;
}

/* "1h30m": a row of numbers with units. */
static int ago(const char *s, int64_t now_ns, int64_t *ret_ns)
{
	static const struct {
		const char *unit;
		int64_t ns;
	} units[] = { { "ms", SECOND / 1000 },
		      { "d", 86400 * SECOND },
		      { "h", 3600 * SECOND },
		      { "m", 60 * SECOND },
		      { "s", SECOND } };
	int64_t sum = 0;

	if (!*s)
		return -EINVAL;
	while (*s) {
		int64_t whole = digits(&s, 1, 10), part = fraction(&s);
		size_t i = 0;

		while (i < ARRAY_LEN(units) && !str_starts(s, units[i].unit))
			i++;
		if (whole < 0 || part < 0 || i == ARRAY_LEN(units) || whole > AGO_MAX / units[i].ns)
			return -EINVAL;
		sum += whole * units[i].ns + part / 1000 * (units[i].ns / 1000000);
		if (sum > AGO_MAX)
			return -EINVAL;
		s += strlen(units[i].unit);
	}
	*ret_ns = now_ns - sum;
	return 0;
}

int since_parse(const char *s, int64_t now_ns, int64_t *ret_ns)
{
	if (strspn(s, "0123456789.") == strlen(s)) /* "10s" is no such number here */
		return str_to_ns(s, SINCE_MAX, ret_ns);
	return date(s, ret_ns) == 0 ? 0 : ago(s, now_ns, ret_ns);
}

unsigned since_stamp(const char *s, uint64_t n, int64_t *ret_ns)
{
	char text[STAMP_LEN];

	if (n < STAMP_LEN || s[STAMP_LEN - 1] != ' ' || s[STAMP_LEN - 2] != 'Z' || s[10] != 'T')
		return 0;
	memcpy(text, s, STAMP_LEN - 1);
	text[STAMP_LEN - 1] = '\0';
	return date(text, ret_ns) < 0 ? 0 : STAMP_LEN;
}
