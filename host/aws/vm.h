/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_VM_H
#define ASB_AWS_VM_H

#include "host/aws/aws.h"
#include "host/aws/shape.h"
#include "host/backend.h"
#include "lib/compiler.h"
#include "lib/err.h"
#include "lib/jsn.h"

/* One MicroVM: what AWS says of it, and the calls that change it. */

/* A member of RunMicrovm's or GetMicrovm's answer, or an entry of ListMicrovms. What it lacks stays as zero. */
void vm_read(const cJSON *o, struct sandbox_info *ret);
/* Text of a member; NULL when it is absent or null. Borrowed. */
const char *vm_text(const cJSON *o, const char *name);

/* GetMicrovm. The document is owned by the caller. -ENOENT for one that AWS does not know. */
int vm_get(struct aws *a, const char *id, cJSON **ret, struct err *e) MUST_CHECK;
/* SuspendMicrovm, ResumeMicrovm, TerminateMicrovm: ID is all they take. */
int vm_do(struct aws *a, enum aws_op_id op, const char *id, struct err *e) MUST_CHECK;

/*
 * Asks until the VM is in state WANT, in front of DEADLINE_NS. ERR_UNAVAILABLE with AWS's reason when it has ended instead; -EINTR when P is
 * cancelled. RET (may be NULL) is the last document, owned.
 */
int vm_wait(struct aws *a, const char *id, enum sandbox_state want, const struct progress *p,
	    int64_t deadline_ns, cJSON **ret, struct err *e) MUST_CHECK;

/* vmlog.c: the log of the MicroVM ID, which *RET reads. As open_log of the backend. */
int vmlog_open(struct aws *a, const char *id, const struct log_wish *w, struct backend_log *ret,
	       struct err *e) MUST_CHECK;

/* run.c: the backend's create, keep and drop. */
int run_create(const struct sandbox_spec *spec, const char *id, const struct progress *p,
	       int64_t deadline_ns, struct backend_owner **ret, struct err *e) MUST_CHECK;
int run_keep(struct backend_owner *o, struct err *e) MUST_CHECK;
void run_drop(struct backend_owner *o);

#endif
