/* SPDX-License-Identifier: Apache-2.0 */
/* Made by scripts/aws-table; not to be edited. */
#include "host/aws/shape.h"

/* clang-format off */
static const struct shape s_network_connector_name = { SHAPE_STRING, 1, 140, NULL, NULL, NULL };
static const struct shape s_network_connector_subnet_id = { SHAPE_STRING, 0, 1024, NULL, NULL, NULL };
static const struct shape s_network_connector_subnet_ids = { SHAPE_LIST, 1, 16, NULL, &s_network_connector_subnet_id, NULL };
static const struct shape s_network_connector_security_group_ids = { SHAPE_LIST, 0, 5, NULL, &s_network_connector_subnet_id, NULL };
static const char *const words_0[] = { "IPv4", "DualStack", NULL };
static const struct shape s_network_protocol = { SHAPE_STRING, 0, INT64_MAX, words_0, NULL, NULL };
static const char *const words_1[] = { "MicroVm", NULL };
static const struct shape s_compute_resource_type = { SHAPE_STRING, 0, INT64_MAX, words_1, NULL, NULL };
static const struct shape s_associated_compute_resource_types_list = { SHAPE_LIST, 1, 1, NULL, &s_compute_resource_type, NULL };
static const struct member m_network_connector_vpc_egress_configuration[] = {
	{ "SubnetIds", &s_network_connector_subnet_ids, IN_BODY, 0, 0 },
	{ "SecurityGroupIds", &s_network_connector_security_group_ids, IN_BODY, 0, 0 },
	{ "NetworkProtocol", &s_network_protocol, IN_BODY, 0, 0 },
	{ "AssociatedComputeResourceTypes", &s_associated_compute_resource_types_list, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_network_connector_vpc_egress_configuration = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_network_connector_vpc_egress_configuration };
static const struct member m_network_connector_configuration[] = {
	{ "VpcEgressConfiguration", &s_network_connector_vpc_egress_configuration, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_network_connector_configuration = { SHAPE_UNION, 0, INT64_MAX, NULL, NULL, m_network_connector_configuration };
static const struct shape s_network_connector_role_arn = { SHAPE_STRING, 0, 10000, NULL, NULL, NULL };
static const struct shape s_client_token_string = { SHAPE_STRING, 1, 64, NULL, NULL, NULL };
static const struct shape s_network_connector_tag_value = { SHAPE_STRING, 0, 256, NULL, NULL, NULL };
static const struct shape s_network_connector_tags = { SHAPE_MAP, 0, INT64_MAX, NULL, &s_network_connector_tag_value, NULL };
static const struct member m_create_network_connector_request[] = {
	{ "Name", &s_network_connector_name, IN_BODY, 1, 0 },
	{ "Configuration", &s_network_connector_configuration, IN_BODY, 1, 0 },
	{ "OperatorRole", &s_network_connector_role_arn, IN_BODY, 0, 0 },
	{ "ClientToken", &s_client_token_string, IN_BODY, 0, 1 }, { "Tags", &s_network_connector_tags, IN_BODY, 0, 0 },
	{ NULL }
};
static const struct shape s_create_network_connector_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_create_network_connector_request };
static const char *const words_2[] = { "PENDING", "ACTIVE", "INACTIVE", "FAILED", "DELETING", "DELETE_FAILED", NULL };
static const struct shape s_network_connector_state = { SHAPE_STRING, 0, INT64_MAX, words_2, NULL, NULL };
static const struct member m_create_network_connector_response[] = {
	{ "Arn", &s_network_connector_name, IN_BODY, 1, 0 }, { "Name", &s_network_connector_name, IN_BODY, 1, 0 },
	{ "Id", &s_network_connector_name, IN_BODY, 1, 0 },
	{ "Configuration", &s_network_connector_configuration, IN_BODY, 0, 0 },
	{ "OperatorRole", &s_network_connector_role_arn, IN_BODY, 0, 0 },
	{ "State", &s_network_connector_state, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_create_network_connector_response = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_create_network_connector_response };
static const struct member m_delete_network_connector_request[] = {
	{ "Identifier", &s_network_connector_name, IN_PATH, 1, 0 }, { NULL }
};
static const struct shape s_delete_network_connector_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_delete_network_connector_request };
static const struct shape s_network_connector_version = { SHAPE_NUMBER, 0, INT64_MAX, NULL, NULL, NULL };
static const struct shape s_string = { SHAPE_STRING, 0, INT64_MAX, NULL, NULL, NULL };
static const char *const words_3[] = { "DisallowedByVpcEncryptionControl", "Ec2RequestLimitExceeded", "InsufficientRolePermissions", "InternalError", "InvalidSecurityGroup", "InvalidSubnet", "SubnetOutOfIPAddresses", NULL };
static const struct shape s_network_connector_state_reason_code = { SHAPE_STRING, 0, INT64_MAX, words_3, NULL, NULL };
static const char *const words_4[] = { "Successful", "Failed", "InProgress", NULL };
static const struct shape s_network_connector_last_update_status = { SHAPE_STRING, 0, INT64_MAX, words_4, NULL, NULL };
static const struct shape s_core_timestamp = { SHAPE_TIME, 0, INT64_MAX, NULL, NULL, NULL };
static const struct member m_get_network_connector_response[] = {
	{ "Arn", &s_network_connector_name, IN_BODY, 1, 0 }, { "Name", &s_network_connector_name, IN_BODY, 1, 0 },
	{ "Id", &s_network_connector_name, IN_BODY, 1, 0 }, { "Version", &s_network_connector_version, IN_BODY, 0, 0 },
	{ "Configuration", &s_network_connector_configuration, IN_BODY, 0, 0 },
	{ "OperatorRole", &s_network_connector_role_arn, IN_BODY, 0, 0 },
	{ "State", &s_network_connector_state, IN_BODY, 0, 0 }, { "StateReason", &s_string, IN_BODY, 0, 0 },
	{ "StateReasonCode", &s_network_connector_state_reason_code, IN_BODY, 0, 0 },
	{ "LastUpdateStatus", &s_network_connector_last_update_status, IN_BODY, 0, 0 },
	{ "LastUpdateStatusReason", &s_string, IN_BODY, 0, 0 },
	{ "LastUpdateStatusReasonCode", &s_network_connector_state_reason_code, IN_BODY, 0, 0 },
	{ "LastModified", &s_core_timestamp, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_get_network_connector_response = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_get_network_connector_response };
static const struct shape s_max_hundred_list_items = { SHAPE_NUMBER, 1, 100, NULL, NULL, NULL };
static const struct member m_list_network_connectors_request[] = {
	{ "State", &s_network_connector_state, IN_QUERY, 0, 0 }, { "Marker", &s_string, IN_QUERY, 0, 0 },
	{ "MaxItems", &s_max_hundred_list_items, IN_QUERY, 0, 0 }, { NULL }
};
static const struct shape s_list_network_connectors_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_list_network_connectors_request };
static const char *const words_5[] = { "VPC_EGRESS", NULL };
static const struct shape s_network_connector_type = { SHAPE_STRING, 0, INT64_MAX, words_5, NULL, NULL };
static const struct member m_network_connector_summary[] = {
	{ "Arn", &s_network_connector_name, IN_BODY, 1, 0 }, { "Name", &s_network_connector_name, IN_BODY, 1, 0 },
	{ "Id", &s_network_connector_name, IN_BODY, 1, 0 }, { "Type", &s_network_connector_type, IN_BODY, 1, 0 },
	{ "State", &s_network_connector_state, IN_BODY, 0, 0 }, { "LastModified", &s_core_timestamp, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_network_connector_summary = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_network_connector_summary };
static const struct shape s_network_connectors_list = { SHAPE_LIST, 0, 50, NULL, &s_network_connector_summary, NULL };
static const struct member m_list_network_connectors_response[] = {
	{ "NetworkConnectors", &s_network_connectors_list, IN_BODY, 1, 0 }, { "NextMarker", &s_string, IN_BODY, 0, 0 },
	{ NULL }
};
static const struct shape s_list_network_connectors_response = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_list_network_connectors_response };
static const struct member m_update_network_connector_request[] = {
	{ "Identifier", &s_network_connector_name, IN_PATH, 1, 0 },
	{ "Configuration", &s_network_connector_configuration, IN_BODY, 0, 0 },
	{ "OperatorRole", &s_network_connector_role_arn, IN_BODY, 0, 0 },
	{ "ClientToken", &s_client_token_string, IN_BODY, 0, 1 }, { NULL }
};
static const struct shape s_update_network_connector_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_update_network_connector_request };
static const struct member m_update_network_connector_response[] = {
	{ "Arn", &s_network_connector_name, IN_BODY, 1, 0 }, { "Name", &s_network_connector_name, IN_BODY, 1, 0 },
	{ "Id", &s_network_connector_name, IN_BODY, 1, 0 }, { "OperatorRole", &s_network_connector_role_arn, IN_BODY, 0, 0 },
	{ "Configuration", &s_network_connector_configuration, IN_BODY, 0, 0 },
	{ "State", &s_network_connector_state, IN_BODY, 0, 0 },
	{ "LastUpdateStatus", &s_network_connector_last_update_status, IN_BODY, 0, 0 },
	{ "LastUpdateStatusReason", &s_string, IN_BODY, 0, 0 }, { "LastModified", &s_core_timestamp, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_update_network_connector_response = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_update_network_connector_response };

const struct aws_op aws_ops_core[OP_COUNT - OP_MICROVMS_COUNT] = {
	{ "CreateNetworkConnector", "POST", "/2026-04-04/network-connectors",
	  &aws_lambda_core, &s_create_network_connector_request, &s_create_network_connector_response, 202 },
	{ "DeleteNetworkConnector", "DELETE", "/2026-04-04/network-connectors/{Identifier}",
	  &aws_lambda_core, &s_delete_network_connector_request, &s_create_network_connector_response, 202 },
	{ "GetNetworkConnector", "GET", "/2026-04-04/network-connectors/{Identifier}",
	  &aws_lambda_core, &s_delete_network_connector_request, &s_get_network_connector_response, 200 },
	{ "ListNetworkConnectors", "GET", "/2026-04-04/network-connectors",
	  &aws_lambda_core, &s_list_network_connectors_request, &s_list_network_connectors_response, 200 },
	{ "UpdateNetworkConnector", "PUT", "/2026-04-04/network-connectors/{Identifier}",
	  &aws_lambda_core, &s_update_network_connector_request, &s_update_network_connector_response, 202 },
};
