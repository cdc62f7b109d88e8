/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_LOCAL_LIFE_INT_H
#define ASB_LOCAL_LIFE_INT_H

#include "host/local/vm.h"

/* Between life.c (operations, the end), begin.c (until it is RUNNING), make.c (leaving a template behind) and
 * save.c (a stopped guest into files). */

void life_arm(struct vm *vm, int64_t ns); /* the deadline of the phase */

/* Posts a lifecycle hook; FN is called in any case, maybe at once. */
void life_post(struct vm *vm, const char *hook, int64_t limit_ns, hook_done_fn *fn);

/* Takes the place of the operation under way. False: ANSWER was called with the reason why not. */
bool life_begin(struct vm *vm, vm_answer_fn *answer, void *arg) MUST_CHECK;

/* Answers the operation under way. ERR_NONE: done. */
void life_answer(struct vm *vm, enum err_code code, const char *message);

/* Kills QEMU and ends, and what the status says stays. */
void life_leave(struct vm *vm);

/* begin.c, in phase BOOTING */
void begin_failed(struct vm *vm, const struct err *e);
void begin_late(struct vm *vm);
void begin_exited(struct vm *vm, const char *how); /* QEMU has ended */
void begin_run(struct vm *vm);			   /* the guest is ready: it gets its run hook */

/*
 * make.c: the guest is ready and has done nothing yet. Makes a template of it where one is wanted and none is there,
 * and then calls begin_run, whatever became of the template.
 */
void make_template(struct vm *vm);
void make_channel_up(struct vm *vm);
void make_channel_down(struct vm *vm);
void make_stop(struct vm *vm); /* fine when none is being made */

/*
 * save.c: stops the guest and writes DIR/devices and DIR/ram. RESULT: 0, or a negative errno with WHY; the guest
 * stays stopped in both cases. FN is called exactly once, from the loop, unless save_stop comes before.
 * -EBUSY: one is under way.
 */
typedef void save_done_fn(struct vm *vm, int result, const char *why);
int save_start(struct vm *vm, const char *dir, enum ram_kind kind, save_done_fn *fn) MUST_CHECK;
void save_stop(struct vm *vm); /* fine when none is under way */

/* Asks QEMU where the guest's memory is in its own; memory_address reads the answer. */
int memory_ask(struct vm *vm, qmp_done_fn *fn) MUST_CHECK;
int memory_address(const cJSON *ret, uint64_t *out) MUST_CHECK;

/* suspend.c, in phase SUSPENDING: a guest whose suspend hook was answered. */
void suspend_to_disk(struct vm *vm);
void suspend_channel_down(struct vm *vm);
void suspend_late(struct vm *vm);
void suspend_interrupt(struct vm *vm); /* idle_wanted: the guest is to go on */

/* branch.c, in phase RUNNING */
void branch_channel_down(struct vm *vm);
void branch_late(struct vm *vm);

/* restore.c: puts saved/ into the QEMU that waits for it, and lets it run. */
void restore_start(struct vm *vm);
void restore_stop(struct vm *vm); /* fine when none is under way */

#endif
