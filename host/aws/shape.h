/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_AWS_SHAPE_H
#define ASB_AWS_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/aws/call.h"

/*
 * What operations take and give, as tables in the terms of Smithy (AWS's service models, tests/aws/models). Serializer, reader and
 * tests walk the same tables; tests/unit/test_ops.c compares them with the models.
 */
enum shape_type {
	SHAPE_STRING,
	SHAPE_NUMBER, /* an integer */
	SHAPE_BOOL,
	SHAPE_TIME, /* epoch seconds with a fraction, or ISO 8601 */
	SHAPE_LIST,
	SHAPE_MAP, /* of strings */
	SHAPE_STRUCT,
	SHAPE_UNION, /* a struct of which exactly one member is there */
};

enum member_place { IN_BODY, IN_PATH, IN_QUERY, IN_HEADER };

struct member;

struct shape {
	enum shape_type type;
	int64_t min, max;	      /* of a number, of bytes, of entries; INT64_MAX = no limit */
	const char *const *words;     /* a string is one of these; NULL-terminated; NULL = any */
	const struct shape *item;     /* of a list, or the values of a map */
	const struct member *members; /* of a struct or union; ends with a name of NULL */
};

struct member {
	const char *name; /* as in the body; with another place: as there */
	const struct shape *shape;
	uint8_t place; /* enum member_place */
	bool required;
	bool token; /* idempotency token: made when it is missing */
};

struct aws_op {
	const char *name, *method;
	const char *path; /* with {members} */
	const struct aws_service *service;
	const struct shape *in, *out; /* structs; OUT NULL = no body */
	int ok;			      /* status of success */
};

enum aws_op_id {
	OP_CREATE_MICROVM_AUTH_TOKEN,
	OP_CREATE_MICROVM_IMAGE,
	OP_CREATE_MICROVM_SHELL_AUTH_TOKEN,
	OP_DELETE_MICROVM_IMAGE,
	OP_DELETE_MICROVM_IMAGE_VERSION,
	OP_GET_MICROVM,
	OP_GET_MICROVM_IMAGE,
	OP_GET_MICROVM_IMAGE_BUILD,
	OP_GET_MICROVM_IMAGE_VERSION,
	OP_LIST_MANAGED_MICROVM_IMAGE_VERSIONS,
	OP_LIST_MANAGED_MICROVM_IMAGES,
	OP_LIST_MICROVM_IMAGE_BUILDS,
	OP_LIST_MICROVM_IMAGE_VERSIONS,
	OP_LIST_MICROVM_IMAGES,
	OP_LIST_MICROVMS,
	OP_LIST_TAGS,
	OP_RESUME_MICROVM,
	OP_RUN_MICROVM,
	OP_SUSPEND_MICROVM,
	OP_TAG_RESOURCE,
	OP_TERMINATE_MICROVM,
	OP_UNTAG_RESOURCE,
	OP_UPDATE_MICROVM_IMAGE,
	OP_UPDATE_MICROVM_IMAGE_VERSION,

	OP_CREATE_NETWORK_CONNECTOR,
	OP_DELETE_NETWORK_CONNECTOR,
	OP_GET_NETWORK_CONNECTOR,
	OP_LIST_NETWORK_CONNECTORS,
	OP_UPDATE_NETWORK_CONNECTOR,
	OP_COUNT,
};
#define OP_MICROVMS_COUNT OP_CREATE_NETWORK_CONNECTOR

extern const struct aws_op aws_ops_microvms[OP_MICROVMS_COUNT];
extern const struct aws_op aws_ops_core[OP_COUNT - OP_MICROVMS_COUNT];

#endif
