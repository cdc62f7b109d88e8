/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INIT_FIND_H
#define INIT_FIND_H

#include <stddef.h>

#include "lib/compiler.h"

#define FIND_DIRS "/usr/local/bin, /opt/asb/bin"

/* Where program NAME is: beside our own executable, else in FIND_DIRS, else along PATH. 0, -ENOENT
 * or -ENAMETOOLONG. */
int find_program(const char *name, char *out, size_t size) MUST_CHECK;

#endif
