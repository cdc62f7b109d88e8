/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOG_H
#define ASB_LOG_H

#include "compiler.h"

/*
 * One line a message on a descriptor (stderr unless changed): "<program>: <message>". Keeps errno, allocates
 * nothing, and loses the line rather than block when the descriptor is non-blocking and full.
 */
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

void log_open(const char *program, int fd, enum log_level most);
void log_line(enum log_level level, const char *fmt, ...) PRINTF(2, 3);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
