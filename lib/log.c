/* SPDX-License-Identifier: Apache-2.0 */
#include "log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define LINE_MAX_LEN 1024

static const char *log_program = "asb";
static int log_fd = STDERR_FILENO;
static enum log_level log_most = LOG_LEVEL_WARN;

void log_open(const char *program, int fd, enum log_level most)
{
	log_program = program;
	log_fd = fd;
	log_most = most;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	static const char *const prefix[] = { "error: ", "warning: ", "", "debug: " };
	int saved = errno, n, m;
	char line[LINE_MAX_LEN];
	va_list ap;

	if (level > log_most)
		return;
	n = snprintf(line, sizeof(line) - 1, "%s: %s", log_program, prefix[level]);
	if (n < 0 || n >= (int)sizeof(line) - 1)
		return;
	va_start(ap, fmt);
	m = vsnprintf(line + n, sizeof(line) - 1 - (size_t)n, fmt, ap);
	va_end(ap);
	if (m < 0)
		return;
	n = n + m < (int)sizeof(line) - 2 ? n + m : (int)sizeof(line) - 2;
	for (int i = 0; i < n; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = '?';
	line[n] = '\n';
	if (write(log_fd, line, (size_t)n + 1) < 0) {
		/* Nowhere to say it: losing a line is better than blocking PID 1. */
	}
	errno = saved;
}
