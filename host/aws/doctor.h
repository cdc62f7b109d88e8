/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_DOCTOR_H
#define ASB_AWS_DOCTOR_H

/* STATUS: "ok", "warn", "fail". Non-zero stops. */
typedef int aws_doctor_fn(void *arg, const char *check, const char *status, const char *text);

/*
 * What asb would use to talk to AWS: source of the credentials (never a secret; a role or SSO is asked for them), region, endpoint,
 * certificates. MicroVMs are not asked. Unless WANTED
 * (somebody means to use it), a machine without any AWS settings gets one line, and the instance metadata service is not asked.
 */
int aws_doctor(aws_doctor_fn *fn, void *arg, int wanted);

#endif
