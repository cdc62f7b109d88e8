/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_CONTROL_H
#define AGENTD_CONTROL_H

#include <cJSON.h>
#include <stddef.h>

#include "exec.h"
#include "lib/compiler.h"
#include "lib/err.h"

/* What the routes of a command have in common. */

/* {"signal": name or number, "to": "leader"|"group"|"tree"}; TO stays as it is without. 0, or a negative errno with a message. */
int control_signal(const cJSON *o, int *ret_sig, enum exec_to *ret_to, struct err *e) MUST_CHECK;

/* 0; -ESRCH when the command has ended, and the tree for EXEC_TO_TREE; another negative errno. */
int control_send(struct exec *e, int sig, enum exec_to to) MUST_CHECK;

/* How E (EXEC_EXITED) has ended as a JSON object; its first member is KEY: "exit". At most 256 bytes. */
void control_exit(const struct exec *e, const char *key, char *out, size_t size);

#endif
