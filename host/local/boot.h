/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_BOOT_H
#define ASB_LOCAL_BOOT_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/compiler.h"
#include "lib/err.h"

/*
 * How far the guest has come, from the lines of asb-init and from its console, and what to tell
 * when it does not come further. Pure. All input is the guest's: unknown lines are dropped, texts
 * are cut.
 */
struct boot {
	char stage[32];	   /* last stage that was reached; "" = none */
	char error[160];   /* the step that failed: "mount /dev/vda" */
	char why[160];	   /* and why: "No such file or directory" */
	char console[200]; /* last line of the console that is not empty */
	char panic[200];   /* the kernel's last words */
	char part[200];	   /* console line under way */
	size_t part_len;
	bool ready;
	bool stopping; /* an orderly power-off has begun */
};

/* One line of the boot port, without its newline. -EINVAL when it is none of ours. */
int boot_line(struct boot *b, const char *s, size_t n) MUST_CHECK;

/* Bytes of the console, split anyhow. */
void boot_console(struct boot *b, const char *p, size_t n);

/* Why the guest is not ready: fills E with the most precise thing known. WHAT: what happened to the
 * machine
 * ("QEMU exited with status 1", "60 s have passed"). */
int boot_fail(const struct boot *b, const char *what, enum err_code code, struct err *e);

#endif
