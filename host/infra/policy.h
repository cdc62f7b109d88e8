/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_INFRA_POLICY_H
#define ASB_INFRA_POLICY_H

#include "lib/buf.h"
#include "lib/compiler.h"

/*
 * The policy documents, as JSON texts; pure. Their values were checked where they came from, so nothing in them needs escaping. Each
 * appends to OUT and returns 0 or what buf_addf does. Sources: "Lambda MicroVMs: security", "network connectors" of the AWS Lambda
 * Developer Guide; docs/infra.md tells what each allows.
 */
#define POLICY_MAX 8192

struct policy_place {
	const char *partition, *account, *region;
};

/* Who may take the role of a build or a sandbox: Lambda, for images of this account and region only (no confused deputy). */
int policy_trust(const struct policy_place *p, struct buf *out) MUST_CHECK;
/* Who may take the role of a connector. Which of the two services does differs by source, and one shows no account. */
int policy_operator_trust(struct buf *out) MUST_CHECK;

/* Writing the log group of IMAGE; "*" = of any. */
int policy_logs(const struct policy_place *p, const char *image, struct buf *out) MUST_CHECK;
/* Reading the artefacts in BUCKET. */
int policy_read(const struct policy_place *p, const char *bucket, struct buf *out) MUST_CHECK;
/* Making the interfaces of a connector, in these subnets and with this group only. */
int policy_operator(const struct policy_place *p, const char *const *subnets, size_t n,
		    const char *group, struct buf *out) MUST_CHECK;

/* Of the bucket: no access without TLS. */
int policy_bucket(const struct policy_place *p, const char *bucket, struct buf *out) MUST_CHECK;

#endif
