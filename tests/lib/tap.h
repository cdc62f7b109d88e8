/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_TAP_H
#define ASB_TAP_H

/*
 * TAP 12 for C tests (Test Anything Protocol): one line a check, the plan at the end, so that a test that dies half-way
 * has none. main ends with `return tap_done();`: 0 when every check passed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_count, tap_failed;

__attribute__((format(printf, 4, 5), unused)) static int tap_ok(int pass, const char *file,
								int line, const char *fmt, ...)
{
	va_list ap;

	tap_count++;
	printf("%s %d - ", pass ? "ok" : "not ok", tap_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	if (!pass) {
		tap_failed++;
		printf("#   at %s:%d\n", file, line);
	}
	fflush(stdout);
	return pass;
}

__attribute__((unused)) static int tap_int(long long got, long long want, const char *file,
					   int line, const char *what)
{
	int pass = tap_ok(got == want, file, line, "%s", what);

	if (!pass)
		printf("#   got %lld, want %lld\n", got, want);
	return pass;
}

__attribute__((unused)) static int tap_str(const char *got, const char *want, const char *file,
					   int line, const char *what)
{
	int pass = tap_ok(got && want && !strcmp(got, want), file, line, "%s", what);

	if (!pass)
		printf("#   got \"%s\", want \"%s\"\n", got ? got : "(null)",
		       want ? want : "(null)");
	return pass;
}

__attribute__((unused)) static int tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed || !tap_count;
}

#define ok(cond, ...) tap_ok(!!(cond), __FILE__, __LINE__, __VA_ARGS__)
#define ok_int(got, want, what) \
	tap_int((long long)(got), (long long)(want), __FILE__, __LINE__, what)
#define ok_str(got, want, what) tap_str(got, want, __FILE__, __LINE__, what)
#define skip(why)		(tap_count++, printf("ok %d - # SKIP %s\n", tap_count, why))

#endif
