/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INIT_BOOTLOG_H
#define INIT_BOOTLOG_H

#include <stdbool.h>

#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/loop.h"

/*
 * What the host is told of the boot: JSON lines on the virtio port "asb.boot", and for people the
 * same on the console. The port may be missing. Nothing here blocks: lines that the port does not
 * take now are kept, up to a cap.
 */

/* Makes /dev/console descriptors 0, 1 and 2 (without a console, /dev/null). Called again when /dev
 * has changed. */
void bootlog_console(void);

/* Opens the port when it is there. To be called when devices are known, and harmless at any time.
 */
void bootlog_open_port(void);

void bootlog_stage(const char *name); /* {"stage":NAME,"ms":<CLOCK_BOOTTIME>} */

/* {"error":"mount /dev/vda","errno":2,"message":"No such file or directory"} of E, whose message
 * says what was done to what. */
void bootlog_error(const struct err *e);

/* Tries to send what is kept, for at most MAX_MS of waiting. */
void bootlog_flush(int max_ms);

/* From here on, kept lines are sent by a timer of L. */
void bootlog_attach(struct loop *l);

#endif
