/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_FIT_H
#define ASB_LOCAL_FIT_H

#include <stdbool.h>

#include "host/local/share.h"
#include "host/local/vmdir.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * What the memory of a guest needs of the machine that it goes on at, in words that mean the same elsewhere.
 * (template_fit in template.h is the same by the files of this machine: quicker, and good for here only.)
 */
#define FIT_KEY_LEN 32 /* hexadecimal digits */

struct fit {
	char qemu[128];		       /* the line that it says of its version */
	char accel[8];		       /* "kvm", "tcg" */
	char cpu[96];		       /* model, for people */
	char cpu_key[FIT_KEY_LEN + 1]; /* of vendor, family, model, stepping and features */
	char machine[FIT_KEY_LEN + 1]; /* of QEMU's command line, less the paths in it */
};

/* As it is here, for a sandbox of C under ACCEL, with that QEMU. Runs `QEMU --version`. */
int fit_here(const char *qemu, const struct vm_config *c, const char *accel, struct fit *ret,
	     struct err *e) MUST_CHECK;

/* -ESTALE + ERR_CONFLICT with what is different; 0 when memory of WAS can go on at HERE. */
int fit_check(const struct fit *was, const struct fit *here, struct err *e) MUST_CHECK;

#endif
