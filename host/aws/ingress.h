/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_INGRESS_H
#define ASB_AWS_INGRESS_H

#include <stdbool.h>

#include "host/aws/arn.h"
#include "host/backend.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * What lets requests in to a MicroVM: "http", "shell", "all" and "none" for AWS's own connectors, or ARNs of the region. Pure.
 * Source: Lambda MicroVMs, network connectors; RunMicrovm takes ten. AWS itself tells of combinations that cannot be only later.
 */
#define INGRESS_MAX 10

/* ERR_USAGE or ERR_INVALID says what is wrong with the list of S. */
int ingress_check(const struct sandbox_spec *s, const char *region, struct err *e) MUST_CHECK;
/* Whether HTTPS reaches the guest with it, and so asb its agent. */
bool ingress_has_http(const struct sandbox_spec *s);
/* Item I (below ingress_count) as an ARN. */
unsigned ingress_count(const struct sandbox_spec *s);
int ingress_arn(const struct sandbox_spec *s, unsigned i, const char *region,
		char ret[static ARN_CONNECTOR_MAX]) MUST_CHECK;

#endif
