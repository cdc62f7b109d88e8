/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_TEMPLATE_H
#define ASB_LOCAL_TEMPLATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/image.h"
#include "host/local/share.h"
#include "host/local/vmdir.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * What sandboxes start from: a guest that was stopped when it was ready, as <state>/local/templates/<key>/ with
 *     ram            its memory, sparse; mapped by every sandbox that started from it
 *     devices        the state of its devices, as QEMU saves it
 *     disk.qcow2     what it had written
 *     template.json  sizes, times and a checksum: what does not fit is removed and made anew
 *     about.json     of which root file system and of what size it is: for people, and to find what is left of an image
 * A sandbox has hard links to what it needs, so a template can be removed at any time.
 */

#define TEMPLATE_KEY_LEN 32		/* hexadecimal digits */
#define TEMPLATE_RAM	 "base.ram"	/* in a sandbox's folder: the memory it is mapped from */
#define TEMPLATE_DEVICES "base.devices" /* until it has started */

/* (fit.c) The key says everything that must be the same: the command line of QEMU, the files it names, and the CPU. */
int template_key(const char *qemu, const struct share *share, const struct vm_config *c, bool kvm,
		 char ret[TEMPLATE_KEY_LEN + 1], struct err *e) MUST_CHECK;

/* The same for a guest that does not boot any more: kernel, initramfs and empty disk are left out. */
int template_fit(const char *qemu, const struct share *share, const struct vm_config *c, bool kvm,
		 char ret[TEMPLATE_KEY_LEN + 1], struct err *e) MUST_CHECK;

/* Puts memory, devices and disk of the template into DIRFD, a new sandbox's folder. -ENOENT: there is none (any
 * more), or it cannot be used, and nothing was put there. Another negative errno with a message: nobody knows where
 * templates are. */
int template_use(const char *key, int dirfd, struct err *e) MUST_CHECK;

void template_discard(const char *key); /* it does not work */

/* One that is being made. */
struct template_new {
	char dir[LOCAL_PATH_MAX]; /* where its files go: hidden until all of it is there */
	int lock;
};

/* -EEXIST: it is there; -EBUSY: another process makes one. Removes what others have left half made. SHARE and C: what
 * it is of. */
int template_begin(const char *key, const struct share *share, const struct vm_config *c,
		   struct template_new *ret, struct err *e) MUST_CHECK;

/*
 * Everything is in T->dir and nothing writes to it any more. A process of its own (`asb __supervise template KEY
 * LOCK`, in that folder) waits for the disk, writes template.json and gives the template its name, so that nobody
 * else waits for that. T is over then, also when it fails.
 */
int template_publish(struct template_new *t, const char *key, struct err *e) MUST_CHECK;
int template_publish_main(int argc, char **argv); /* that process; its exit code */

void template_abort(struct template_new *t); /* fine when nothing was begun */

/* Waits until the template of KEY, which is being published, is there: 0. -EIO: it did not come off; -ETIMEDOUT, -EINTR
 * (*CANCEL). DEADLINE_NS: loop_now() time. */
int template_wait(const char *key, int64_t deadline_ns, const volatile sig_atomic_t *cancel)
	MUST_CHECK;

struct template_info { /* what about.json says; no pointers */
	char key[TEMPLATE_KEY_LEN + 1];
	char rootfs[LOCAL_PATH_MAX]; /* "": it has no about.json */
	uint64_t cpus, memory_mib;
	uint64_t bytes; /* on the disk, of its own */
	int64_t used_s; /* Unix time of the last start from it */
};

/* FN for each that is whole. Non-zero from FN stops and is returned. */
int template_each(int (*fn)(void *arg, const struct template_info *t), void *arg) MUST_CHECK;

/*
 * Removes templates that nothing has started from for a long time, and half made ones; with FLAGS of prune_flags also
 * those whose root file system is gone, or all. FN may be NULL.
 */
void template_collect(unsigned flags, prune_fn *fn, void *arg);

#endif
