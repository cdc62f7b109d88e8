/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_INFRA_CONFIG_H
#define ASB_INFRA_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/compiler.h"
#include "lib/err.h"

/*
 * sandbox.yaml: what a stack of infrastructure is to look like. The keys are the Python project's; build_role, bucket.expire_days
 * and network.egress.enabled are ours, and its loader passes over them. Strict: an unknown key, a wrong type or a value out of its
 * limits is an error that names file, line and column.
 */
enum infra_text {
	INFRA_PROJECT,
	INFRA_STACK,
	INFRA_REGION,
	INFRA_IMAGE_NAME,
	INFRA_GUEST_DIR, /* as it stands in the file; infra_guest_dir resolves it */
	INFRA_BASE_ARN,
	INFRA_BASE_VERSION,
	INFRA_ROLE_ARN, /* of sandboxes */
	INFRA_ROLE_NAME,
	INFRA_BUILD_ROLE_ARN,
	INFRA_BUILD_ROLE_NAME,
	INFRA_BUCKET,
	INFRA_CONNECTOR_ARN,
	INFRA_EGRESS_NAME,
	INFRA_VPC,
	INFRA_SECURITY_GROUP,
	INFRA_OPERATOR_ARN,
	INFRA_TEXT_COUNT
};

struct infra_list {
	char **all; /* owned */
	size_t len;
};
#define INFRA_LIST_MAX	  16 /* subnets of a connector; policies of a role are fewer still */
#define INFRA_CONFIGS_MAX 256

struct infra_config {
	char *file;		      /* owned; where it was read from */
	unsigned line;		      /* of its document */
	char *text[INFRA_TEXT_COUNT]; /* owned, never NULL; "" = not given and no default */
	struct infra_list policies, subnets;
	unsigned expire_days; /* of old build artefacts; 0 = never */
	bool egress;	      /* a connector is wanted, one of ours or an existing one */
};

struct infra_configs { /* infra_configs_done */
	struct infra_config *all;
	size_t len;
};

/* Appends the documents of N bytes; FILE is their path. STACK (NULL = as written) stands for `stack` in all of them. */
int infra_config_parse(const char *file, const char *p, size_t n, const char *stack,
		       struct infra_configs *ret, struct err *e) MUST_CHECK;

/*
 * Reads PATHS, files or folders (their *.yaml and *.yml, sorted, not below). Without any: $AGENT_SANDBOX_SETUP, ./sandbox.yaml or
 * ./setup.yaml. ERR_NOT_FOUND when there is none. Two documents with one project and stack are refused. RET is to be released
 * in any case.
 */
int infra_config_load(const char *const *paths, size_t n, const char *stack,
		      struct infra_configs *ret, struct err *e) MUST_CHECK;
void infra_configs_done(struct infra_configs *c);

/* The folder of the guest image, relative paths being relative to the file's; the caller frees it. ERR_NOT_FOUND unless it has a
 * Dockerfile. */
int infra_guest_dir(const struct infra_config *c, char **ret, struct err *e) MUST_CHECK;

extern const char infra_template[]; /* what `asb infra init` writes */

#endif
