/* SPDX-License-Identifier: Apache-2.0 */
/* Made by scripts/aws-table; not to be edited. */
#include "host/aws/shape.h"

/* clang-format off */
static const struct shape s_microvm_identifier = { SHAPE_STRING, 1, 256, NULL, NULL, NULL };
static const struct shape s_positive_integer = { SHAPE_NUMBER, 1, INT64_MAX, NULL, NULL, NULL };
static const struct shape s_port_number = { SHAPE_NUMBER, 1, 65535, NULL, NULL, NULL };
static const struct member m_port_range[] = {
	{ "startPort", &s_port_number, IN_BODY, 1, 0 }, { "endPort", &s_port_number, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_port_range = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_port_range };
static const struct member m_unit[] = {
	{ NULL }
};
static const struct shape s_unit = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_unit };
static const struct member m_port_specification[] = {
	{ "port", &s_port_number, IN_BODY, 0, 0 }, { "range", &s_port_range, IN_BODY, 0, 0 },
	{ "allPorts", &s_unit, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_port_specification = { SHAPE_UNION, 0, INT64_MAX, NULL, NULL, m_port_specification };
static const struct shape s_list_of_port_specification = { SHAPE_LIST, 1, INT64_MAX, NULL, &s_port_specification, NULL };
static const struct member m_create_microvm_auth_token_request[] = {
	{ "microvmIdentifier", &s_microvm_identifier, IN_PATH, 1, 0 },
	{ "expirationInMinutes", &s_positive_integer, IN_BODY, 1, 0 },
	{ "allowedPorts", &s_list_of_port_specification, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_create_microvm_auth_token_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_create_microvm_auth_token_request };
static const struct shape s_auth_token_value = { SHAPE_STRING, 0, 8000, NULL, NULL, NULL };
static const struct shape s_token_parts = { SHAPE_MAP, 1, 10, NULL, &s_auth_token_value, NULL };
static const struct member m_create_microvm_auth_token_response[] = {
	{ "authToken", &s_token_parts, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_create_microvm_auth_token_response = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_create_microvm_auth_token_response };
static const struct shape s_non_blank_string = { SHAPE_STRING, 1, 2048, NULL, NULL, NULL };
static const struct shape s_role_arn = { SHAPE_STRING, 20, 2048, NULL, NULL, NULL };
static const struct shape s_string = { SHAPE_STRING, 0, INT64_MAX, NULL, NULL, NULL };
static const struct member m_code_artifact[] = {
	{ "uri", &s_non_blank_string, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_code_artifact = { SHAPE_UNION, 0, INT64_MAX, NULL, NULL, m_code_artifact };
static const struct shape s_cloud_watch_logging_log_group_string = { SHAPE_STRING, 1, 512, NULL, NULL, NULL };
static const struct member m_cloud_watch_logging[] = {
	{ "logGroup", &s_cloud_watch_logging_log_group_string, IN_BODY, 0, 0 },
	{ "logStream", &s_cloud_watch_logging_log_group_string, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_cloud_watch_logging = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_cloud_watch_logging };
static const struct member m_logging[] = {
	{ "disabled", &s_unit, IN_BODY, 0, 0 }, { "cloudWatch", &s_cloud_watch_logging, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_logging = { SHAPE_UNION, 0, INT64_MAX, NULL, NULL, m_logging };
static const struct shape s_create_microvm_image_request_egress_network_connectors_list = { SHAPE_LIST, 0, 1, NULL, &s_non_blank_string, NULL };
static const char *const words_0[] = { "ARM_64", NULL };
static const struct shape s_architecture = { SHAPE_STRING, 0, INT64_MAX, words_0, NULL, NULL };
static const struct member m_cpu_configuration[] = {
	{ "architecture", &s_architecture, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_cpu_configuration = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_cpu_configuration };
static const struct shape s_cpu_configuration_list = { SHAPE_LIST, 0, INT64_MAX, NULL, &s_cpu_configuration, NULL };
static const struct shape s_integer = { SHAPE_NUMBER, INT64_MIN, INT64_MAX, NULL, NULL, NULL };
static const struct member m_resources[] = {
	{ "minimumMemoryInMiB", &s_integer, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_resources = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_resources };
static const struct shape s_resources_list = { SHAPE_LIST, 0, 1, NULL, &s_resources, NULL };
static const char *const words_1[] = { "ALL", NULL };
static const struct shape s_capability = { SHAPE_STRING, 0, INT64_MAX, words_1, NULL, NULL };
static const struct shape s_capability_list = { SHAPE_LIST, 0, INT64_MAX, NULL, &s_capability, NULL };
static const char *const words_2[] = { "DISABLED", "ENABLED", NULL };
static const struct shape s_hook_state = { SHAPE_STRING, 0, INT64_MAX, words_2, NULL, NULL };
static const struct shape s_microvm_hooks_run_timeout_in_seconds_integer = { SHAPE_NUMBER, 1, 60, NULL, NULL, NULL };
static const struct member m_microvm_hooks[] = {
	{ "run", &s_hook_state, IN_BODY, 0, 0 },
	{ "runTimeoutInSeconds", &s_microvm_hooks_run_timeout_in_seconds_integer, IN_BODY, 0, 0 },
	{ "resume", &s_hook_state, IN_BODY, 0, 0 },
	{ "resumeTimeoutInSeconds", &s_microvm_hooks_run_timeout_in_seconds_integer, IN_BODY, 0, 0 },
	{ "suspend", &s_hook_state, IN_BODY, 0, 0 },
	{ "suspendTimeoutInSeconds", &s_microvm_hooks_run_timeout_in_seconds_integer, IN_BODY, 0, 0 },
	{ "terminate", &s_hook_state, IN_BODY, 0, 0 },
	{ "terminateTimeoutInSeconds", &s_microvm_hooks_run_timeout_in_seconds_integer, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_microvm_hooks = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_microvm_hooks };
static const struct shape s_microvm_image_hooks_ready_timeout_in_seconds_integer = { SHAPE_NUMBER, 1, 3600, NULL, NULL, NULL };
static const struct member m_microvm_image_hooks[] = {
	{ "ready", &s_hook_state, IN_BODY, 0, 0 },
	{ "readyTimeoutInSeconds", &s_microvm_image_hooks_ready_timeout_in_seconds_integer, IN_BODY, 0, 0 },
	{ "validate", &s_hook_state, IN_BODY, 0, 0 },
	{ "validateTimeoutInSeconds", &s_microvm_image_hooks_ready_timeout_in_seconds_integer, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_microvm_image_hooks = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_microvm_image_hooks };
static const struct member m_hooks[] = {
	{ "port", &s_port_number, IN_BODY, 0, 0 }, { "microvmHooks", &s_microvm_hooks, IN_BODY, 0, 0 },
	{ "microvmImageHooks", &s_microvm_image_hooks, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_hooks = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_hooks };
static const struct shape s_environment_variable_value = { SHAPE_STRING, 0, 4096, NULL, NULL, NULL };
static const struct shape s_environment_variable_map = { SHAPE_MAP, 0, 50, NULL, &s_environment_variable_value, NULL };
static const struct shape s_image_name = { SHAPE_STRING, 1, 64, NULL, NULL, NULL };
static const struct shape s_tag_value = { SHAPE_STRING, 0, 256, NULL, NULL, NULL };
static const struct shape s_tags = { SHAPE_MAP, 0, INT64_MAX, NULL, &s_tag_value, NULL };
static const struct shape s_create_microvm_image_request_client_token_string = { SHAPE_STRING, 1, 128, NULL, NULL, NULL };
static const struct member m_create_microvm_image_request[] = {
	{ "baseImageArn", &s_non_blank_string, IN_BODY, 1, 0 }, { "baseImageVersion", &s_non_blank_string, IN_BODY, 0, 0 },
	{ "buildRoleArn", &s_role_arn, IN_BODY, 1, 0 }, { "description", &s_string, IN_BODY, 0, 0 },
	{ "codeArtifact", &s_code_artifact, IN_BODY, 1, 0 }, { "logging", &s_logging, IN_BODY, 0, 0 },
	{ "egressNetworkConnectors", &s_create_microvm_image_request_egress_network_connectors_list, IN_BODY, 0, 0 },
	{ "cpuConfigurations", &s_cpu_configuration_list, IN_BODY, 0, 0 }, { "resources", &s_resources_list, IN_BODY, 0, 0 },
	{ "additionalOsCapabilities", &s_capability_list, IN_BODY, 0, 0 }, { "hooks", &s_hooks, IN_BODY, 0, 0 },
	{ "environmentVariables", &s_environment_variable_map, IN_BODY, 0, 0 }, { "name", &s_image_name, IN_BODY, 1, 0 },
	{ "tags", &s_tags, IN_BODY, 0, 0 },
	{ "clientToken", &s_create_microvm_image_request_client_token_string, IN_BODY, 0, 1 }, { NULL }
};
static const struct shape s_create_microvm_image_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_create_microvm_image_request };
static const char *const words_3[] = { "CREATING", "CREATED", "CREATE_FAILED", "UPDATING", "UPDATED", "UPDATE_FAILED", "DELETING", "DELETE_FAILED", "DELETED", NULL };
static const struct shape s_microvm_image_state = { SHAPE_STRING, 0, INT64_MAX, words_3, NULL, NULL };
static const struct shape s_timestamp = { SHAPE_TIME, 0, INT64_MAX, NULL, NULL, NULL };
static const struct member m_create_microvm_image_response[] = {
	{ "imageArn", &s_non_blank_string, IN_BODY, 1, 0 }, { "name", &s_image_name, IN_BODY, 1, 0 },
	{ "state", &s_microvm_image_state, IN_BODY, 1, 0 }, { "latestActiveImageVersion", &s_non_blank_string, IN_BODY, 0, 0 },
	{ "latestFailedImageVersion", &s_non_blank_string, IN_BODY, 0, 0 }, { "createdAt", &s_timestamp, IN_BODY, 1, 0 },
	{ "baseImageArn", &s_non_blank_string, IN_BODY, 1, 0 }, { "baseImageVersion", &s_non_blank_string, IN_BODY, 0, 0 },
	{ "buildRoleArn", &s_role_arn, IN_BODY, 1, 0 }, { "description", &s_string, IN_BODY, 0, 0 },
	{ "codeArtifact", &s_code_artifact, IN_BODY, 1, 0 }, { "logging", &s_logging, IN_BODY, 0, 0 },
	{ "egressNetworkConnectors", &s_create_microvm_image_request_egress_network_connectors_list, IN_BODY, 0, 0 },
	{ "cpuConfigurations", &s_cpu_configuration_list, IN_BODY, 0, 0 }, { "resources", &s_resources_list, IN_BODY, 0, 0 },
	{ "additionalOsCapabilities", &s_capability_list, IN_BODY, 0, 0 }, { "hooks", &s_hooks, IN_BODY, 0, 0 },
	{ "environmentVariables", &s_environment_variable_map, IN_BODY, 0, 0 }, { "tags", &s_tags, IN_BODY, 0, 0 },
	{ "updatedAt", &s_timestamp, IN_BODY, 0, 0 }, { "imageVersion", &s_non_blank_string, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_create_microvm_image_response = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_create_microvm_image_response };
static const struct member m_create_microvm_shell_auth_token_request[] = {
	{ "microvmIdentifier", &s_microvm_identifier, IN_PATH, 1, 0 },
	{ "expirationInMinutes", &s_positive_integer, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_create_microvm_shell_auth_token_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_create_microvm_shell_auth_token_request };
static const struct member m_delete_microvm_image_input[] = {
	{ "imageIdentifier", &s_microvm_identifier, IN_PATH, 1, 0 }, { NULL }
};
static const struct shape s_delete_microvm_image_input = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_delete_microvm_image_input };
static const struct member m_delete_microvm_image_output[] = {
	{ "imageIdentifier", &s_microvm_identifier, IN_BODY, 1, 0 }, { "state", &s_microvm_image_state, IN_BODY, 1, 0 },
	{ NULL }
};
static const struct shape s_delete_microvm_image_output = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_delete_microvm_image_output };
static const struct member m_delete_microvm_image_version_input[] = {
	{ "imageIdentifier", &s_microvm_identifier, IN_PATH, 1, 0 }, { "imageVersion", &s_non_blank_string, IN_PATH, 1, 0 },
	{ NULL }
};
static const struct shape s_delete_microvm_image_version_input = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_delete_microvm_image_version_input };
static const char *const words_4[] = { "PENDING", "IN_PROGRESS", "SUCCESSFUL", "FAILED", "DELETING", "DELETED", "DELETE_FAILED", NULL };
static const struct shape s_microvm_image_version_state = { SHAPE_STRING, 0, INT64_MAX, words_4, NULL, NULL };
static const struct member m_delete_microvm_image_version_output[] = {
	{ "imageIdentifier", &s_microvm_identifier, IN_BODY, 1, 0 }, { "imageVersion", &s_non_blank_string, IN_BODY, 1, 0 },
	{ "state", &s_microvm_image_version_state, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_delete_microvm_image_version_output = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_delete_microvm_image_version_output };
static const struct member m_get_microvm_request[] = {
	{ "microvmIdentifier", &s_microvm_identifier, IN_PATH, 1, 0 }, { NULL }
};
static const struct shape s_get_microvm_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_get_microvm_request };
static const char *const words_5[] = { "PENDING", "RUNNING", "SUSPENDING", "SUSPENDED", "TERMINATING", "TERMINATED", NULL };
static const struct shape s_microvm_state = { SHAPE_STRING, 0, INT64_MAX, words_5, NULL, NULL };
static const struct shape s_idle_policy_max_idle_duration_seconds_integer = { SHAPE_NUMBER, 60, INT64_MAX, NULL, NULL, NULL };
static const struct shape s_idle_policy_suspended_duration_seconds_integer = { SHAPE_NUMBER, 0, INT64_MAX, NULL, NULL, NULL };
static const struct shape s_boolean = { SHAPE_BOOL, 0, INT64_MAX, NULL, NULL, NULL };
static const struct member m_idle_policy[] = {
	{ "maxIdleDurationSeconds", &s_idle_policy_max_idle_duration_seconds_integer, IN_BODY, 1, 0 },
	{ "suspendedDurationSeconds", &s_idle_policy_suspended_duration_seconds_integer, IN_BODY, 1, 0 },
	{ "autoResumeEnabled", &s_boolean, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_idle_policy = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_idle_policy };
static const struct shape s_network_connector_list = { SHAPE_LIST, 0, 10, NULL, &s_non_blank_string, NULL };
static const struct member m_get_microvm_response[] = {
	{ "microvmId", &s_microvm_identifier, IN_BODY, 1, 0 }, { "state", &s_microvm_state, IN_BODY, 1, 0 },
	{ "endpoint", &s_non_blank_string, IN_BODY, 1, 0 }, { "imageArn", &s_role_arn, IN_BODY, 1, 0 },
	{ "imageVersion", &s_non_blank_string, IN_BODY, 1, 0 }, { "executionRoleArn", &s_role_arn, IN_BODY, 0, 0 },
	{ "idlePolicy", &s_idle_policy, IN_BODY, 0, 0 }, { "maximumDurationInSeconds", &s_integer, IN_BODY, 1, 0 },
	{ "startedAt", &s_timestamp, IN_BODY, 1, 0 }, { "terminatedAt", &s_timestamp, IN_BODY, 0, 0 },
	{ "stateReason", &s_non_blank_string, IN_BODY, 0, 0 },
	{ "ingressNetworkConnectors", &s_network_connector_list, IN_BODY, 0, 0 },
	{ "egressNetworkConnectors", &s_network_connector_list, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_get_microvm_response = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_get_microvm_response };
static const struct member m_get_microvm_image_output[] = {
	{ "imageArn", &s_non_blank_string, IN_BODY, 1, 0 }, { "name", &s_image_name, IN_BODY, 1, 0 },
	{ "state", &s_microvm_image_state, IN_BODY, 1, 0 }, { "latestActiveImageVersion", &s_non_blank_string, IN_BODY, 0, 0 },
	{ "latestFailedImageVersion", &s_non_blank_string, IN_BODY, 0, 0 }, { "createdAt", &s_timestamp, IN_BODY, 1, 0 },
	{ "tags", &s_tags, IN_BODY, 0, 0 }, { "updatedAt", &s_timestamp, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_get_microvm_image_output = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_get_microvm_image_output };
static const struct member m_get_microvm_image_build_input[] = {
	{ "imageIdentifier", &s_microvm_identifier, IN_PATH, 1, 0 }, { "imageVersion", &s_non_blank_string, IN_PATH, 1, 0 },
	{ "buildId", &s_non_blank_string, IN_PATH, 1, 0 }, { NULL }
};
static const struct shape s_get_microvm_image_build_input = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_get_microvm_image_build_input };
static const char *const words_6[] = { "PENDING", "IN_PROGRESS", "SUCCESSFUL", "FAILED", NULL };
static const struct shape s_build_state = { SHAPE_STRING, 0, INT64_MAX, words_6, NULL, NULL };
static const char *const words_7[] = { "GRAVITON", NULL };
static const struct shape s_chipset = { SHAPE_STRING, 0, INT64_MAX, words_7, NULL, NULL };
static const struct member m_snapshot_build[] = {
	{ "memorySnapshotSizeInBytes", &s_integer, IN_BODY, 0, 0 }, { "codeInstallSizeInBytes", &s_integer, IN_BODY, 0, 0 },
	{ "diskSnapshotSizeInBytes", &s_integer, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_snapshot_build = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_snapshot_build };
static const struct member m_get_microvm_image_build_output[] = {
	{ "imageArn", &s_non_blank_string, IN_BODY, 1, 0 }, { "imageVersion", &s_non_blank_string, IN_BODY, 1, 0 },
	{ "buildId", &s_non_blank_string, IN_BODY, 1, 0 }, { "buildState", &s_build_state, IN_BODY, 1, 0 },
	{ "architecture", &s_architecture, IN_BODY, 1, 0 }, { "chipset", &s_chipset, IN_BODY, 1, 0 },
	{ "chipsetGeneration", &s_non_blank_string, IN_BODY, 1, 0 }, { "stateReason", &s_string, IN_BODY, 0, 0 },
	{ "createdAt", &s_timestamp, IN_BODY, 1, 0 }, { "snapshotBuild", &s_snapshot_build, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_get_microvm_image_build_output = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_get_microvm_image_build_output };
static const char *const words_8[] = { "ACTIVE", "INACTIVE", NULL };
static const struct shape s_microvm_image_version_status = { SHAPE_STRING, 0, INT64_MAX, words_8, NULL, NULL };
static const struct member m_get_microvm_image_version_output[] = {
	{ "baseImageArn", &s_non_blank_string, IN_BODY, 1, 0 }, { "baseImageVersion", &s_non_blank_string, IN_BODY, 0, 0 },
	{ "buildRoleArn", &s_role_arn, IN_BODY, 1, 0 }, { "description", &s_string, IN_BODY, 0, 0 },
	{ "codeArtifact", &s_code_artifact, IN_BODY, 1, 0 }, { "logging", &s_logging, IN_BODY, 0, 0 },
	{ "egressNetworkConnectors", &s_create_microvm_image_request_egress_network_connectors_list, IN_BODY, 0, 0 },
	{ "cpuConfigurations", &s_cpu_configuration_list, IN_BODY, 0, 0 }, { "resources", &s_resources_list, IN_BODY, 0, 0 },
	{ "additionalOsCapabilities", &s_capability_list, IN_BODY, 0, 0 }, { "hooks", &s_hooks, IN_BODY, 0, 0 },
	{ "environmentVariables", &s_environment_variable_map, IN_BODY, 0, 0 },
	{ "imageArn", &s_non_blank_string, IN_BODY, 1, 0 }, { "imageVersion", &s_non_blank_string, IN_BODY, 1, 0 },
	{ "state", &s_microvm_image_version_state, IN_BODY, 1, 0 },
	{ "status", &s_microvm_image_version_status, IN_BODY, 1, 0 }, { "createdAt", &s_timestamp, IN_BODY, 1, 0 },
	{ "updatedAt", &s_timestamp, IN_BODY, 0, 0 }, { "stateReason", &s_string, IN_BODY, 0, 0 },
	{ "tags", &s_tags, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_get_microvm_image_version_output = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_get_microvm_image_version_output };
static const struct shape s_list_managed_microvm_image_versions_input_max_results_integer = { SHAPE_NUMBER, 1, 50, NULL, NULL, NULL };
static const struct member m_list_managed_microvm_image_versions_input[] = {
	{ "maxResults", &s_list_managed_microvm_image_versions_input_max_results_integer, IN_QUERY, 0, 0 },
	{ "nextToken", &s_string, IN_QUERY, 0, 0 }, { "imageIdentifier", &s_microvm_identifier, IN_PATH, 1, 0 }, { NULL }
};
static const struct shape s_list_managed_microvm_image_versions_input = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_list_managed_microvm_image_versions_input };
static const struct member m_managed_microvm_image_version[] = {
	{ "imageArn", &s_non_blank_string, IN_BODY, 1, 0 }, { "imageVersion", &s_non_blank_string, IN_BODY, 1, 0 },
	{ "createdAt", &s_timestamp, IN_BODY, 1, 0 }, { "updatedAt", &s_timestamp, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_managed_microvm_image_version = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_managed_microvm_image_version };
static const struct shape s_managed_microvm_image_version_list = { SHAPE_LIST, 0, INT64_MAX, NULL, &s_managed_microvm_image_version, NULL };
static const struct member m_list_managed_microvm_image_versions_output[] = {
	{ "nextToken", &s_string, IN_BODY, 0, 0 }, { "items", &s_managed_microvm_image_version_list, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_list_managed_microvm_image_versions_output = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_list_managed_microvm_image_versions_output };
static const struct member m_list_managed_microvm_images_input[] = {
	{ "maxResults", &s_list_managed_microvm_image_versions_input_max_results_integer, IN_QUERY, 0, 0 },
	{ "nextToken", &s_string, IN_QUERY, 0, 0 }, { NULL }
};
static const struct shape s_list_managed_microvm_images_input = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_list_managed_microvm_images_input };
static const struct member m_managed_microvm_image_summary[] = {
	{ "imageArn", &s_non_blank_string, IN_BODY, 1, 0 }, { "createdAt", &s_timestamp, IN_BODY, 1, 0 },
	{ "updatedAt", &s_timestamp, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_managed_microvm_image_summary = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_managed_microvm_image_summary };
static const struct shape s_managed_microvm_image_summary_list = { SHAPE_LIST, 0, INT64_MAX, NULL, &s_managed_microvm_image_summary, NULL };
static const struct member m_list_managed_microvm_images_output[] = {
	{ "nextToken", &s_string, IN_BODY, 0, 0 }, { "items", &s_managed_microvm_image_summary_list, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_list_managed_microvm_images_output = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_list_managed_microvm_images_output };
static const struct member m_list_microvm_image_builds_input[] = {
	{ "maxResults", &s_list_managed_microvm_image_versions_input_max_results_integer, IN_QUERY, 0, 0 },
	{ "nextToken", &s_string, IN_QUERY, 0, 0 }, { "imageIdentifier", &s_microvm_identifier, IN_PATH, 1, 0 },
	{ "imageVersion", &s_non_blank_string, IN_PATH, 1, 0 }, { "architecture", &s_architecture, IN_QUERY, 0, 0 },
	{ "chipset", &s_chipset, IN_QUERY, 0, 0 }, { "chipsetGeneration", &s_non_blank_string, IN_QUERY, 0, 0 }, { NULL }
};
static const struct shape s_list_microvm_image_builds_input = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_list_microvm_image_builds_input };
static const struct member m_microvm_image_build_summary[] = {
	{ "imageArn", &s_non_blank_string, IN_BODY, 1, 0 }, { "imageVersion", &s_non_blank_string, IN_BODY, 1, 0 },
	{ "buildId", &s_non_blank_string, IN_BODY, 1, 0 }, { "buildState", &s_build_state, IN_BODY, 1, 0 },
	{ "architecture", &s_architecture, IN_BODY, 1, 0 }, { "chipset", &s_chipset, IN_BODY, 1, 0 },
	{ "chipsetGeneration", &s_non_blank_string, IN_BODY, 1, 0 }, { "stateReason", &s_string, IN_BODY, 0, 0 },
	{ "createdAt", &s_timestamp, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_microvm_image_build_summary = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_microvm_image_build_summary };
static const struct shape s_microvm_image_build_summaries = { SHAPE_LIST, 0, INT64_MAX, NULL, &s_microvm_image_build_summary, NULL };
static const struct member m_list_microvm_image_builds_output[] = {
	{ "nextToken", &s_string, IN_BODY, 0, 0 }, { "items", &s_microvm_image_build_summaries, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_list_microvm_image_builds_output = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_list_microvm_image_builds_output };
static const struct shape s_microvm_image_version_summary_list = { SHAPE_LIST, 0, INT64_MAX, NULL, &s_get_microvm_image_version_output, NULL };
static const struct member m_list_microvm_image_versions_output[] = {
	{ "nextToken", &s_string, IN_BODY, 0, 0 }, { "items", &s_microvm_image_version_summary_list, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_list_microvm_image_versions_output = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_list_microvm_image_versions_output };
static const struct member m_list_microvm_images_request[] = {
	{ "maxResults", &s_list_managed_microvm_image_versions_input_max_results_integer, IN_QUERY, 0, 0 },
	{ "nextToken", &s_string, IN_QUERY, 0, 0 }, { "nameFilter", &s_non_blank_string, IN_QUERY, 0, 0 }, { NULL }
};
static const struct shape s_list_microvm_images_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_list_microvm_images_request };
static const struct member m_microvm_image_summary[] = {
	{ "imageArn", &s_non_blank_string, IN_BODY, 1, 0 }, { "name", &s_image_name, IN_BODY, 1, 0 },
	{ "state", &s_microvm_image_state, IN_BODY, 1, 0 }, { "latestActiveImageVersion", &s_non_blank_string, IN_BODY, 0, 0 },
	{ "latestFailedImageVersion", &s_non_blank_string, IN_BODY, 0, 0 }, { "createdAt", &s_timestamp, IN_BODY, 1, 0 },
	{ NULL }
};
static const struct shape s_microvm_image_summary = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_microvm_image_summary };
static const struct shape s_microvm_image_summaries = { SHAPE_LIST, 0, INT64_MAX, NULL, &s_microvm_image_summary, NULL };
static const struct member m_list_microvm_images_response[] = {
	{ "nextToken", &s_string, IN_BODY, 0, 0 }, { "items", &s_microvm_image_summaries, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_list_microvm_images_response = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_list_microvm_images_response };
static const struct member m_list_microvms_request[] = {
	{ "maxResults", &s_list_managed_microvm_image_versions_input_max_results_integer, IN_QUERY, 0, 0 },
	{ "nextToken", &s_string, IN_QUERY, 0, 0 }, { "imageIdentifier", &s_microvm_identifier, IN_QUERY, 0, 0 },
	{ "imageVersion", &s_string, IN_QUERY, 0, 0 }, { NULL }
};
static const struct shape s_list_microvms_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_list_microvms_request };
static const struct member m_microvm_item[] = {
	{ "microvmId", &s_microvm_identifier, IN_BODY, 1, 0 }, { "state", &s_microvm_state, IN_BODY, 1, 0 },
	{ "imageArn", &s_role_arn, IN_BODY, 1, 0 }, { "imageVersion", &s_non_blank_string, IN_BODY, 1, 0 },
	{ "startedAt", &s_timestamp, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_microvm_item = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_microvm_item };
static const struct shape s_microvm_item_list = { SHAPE_LIST, 0, INT64_MAX, NULL, &s_microvm_item, NULL };
static const struct member m_list_microvms_response[] = {
	{ "nextToken", &s_string, IN_BODY, 0, 0 }, { "items", &s_microvm_item_list, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_list_microvms_response = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_list_microvms_response };
static const struct shape s_taggable_resource = { SHAPE_STRING, 1, 10000, NULL, NULL, NULL };
static const struct member m_list_tags_request[] = {
	{ "Resource", &s_taggable_resource, IN_PATH, 1, 0 }, { NULL }
};
static const struct shape s_list_tags_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_list_tags_request };
static const struct member m_list_tags_response[] = {
	{ "Tags", &s_tags, IN_BODY, 0, 0 }, { NULL }
};
static const struct shape s_list_tags_response = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_list_tags_response };
static const struct shape s_run_microvm_request_maximum_duration_in_seconds_integer = { SHAPE_NUMBER, 1, 28800, NULL, NULL, NULL };
static const struct member m_run_microvm_request[] = {
	{ "ingressNetworkConnectors", &s_network_connector_list, IN_BODY, 0, 0 },
	{ "egressNetworkConnectors", &s_network_connector_list, IN_BODY, 0, 0 },
	{ "imageIdentifier", &s_microvm_identifier, IN_BODY, 1, 0 }, { "imageVersion", &s_non_blank_string, IN_BODY, 0, 0 },
	{ "executionRoleArn", &s_role_arn, IN_BODY, 0, 0 }, { "idlePolicy", &s_idle_policy, IN_BODY, 0, 0 },
	{ "logging", &s_logging, IN_BODY, 0, 0 }, { "runHookPayload", &s_environment_variable_value, IN_BODY, 0, 0 },
	{ "maximumDurationInSeconds", &s_run_microvm_request_maximum_duration_in_seconds_integer, IN_BODY, 0, 0 },
	{ "clientToken", &s_create_microvm_image_request_client_token_string, IN_BODY, 0, 1 }, { NULL }
};
static const struct shape s_run_microvm_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_run_microvm_request };
static const struct member m_tag_resource_request[] = {
	{ "Resource", &s_taggable_resource, IN_PATH, 1, 0 }, { "Tags", &s_tags, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_tag_resource_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_tag_resource_request };
static const struct shape s_tag_key_list = { SHAPE_LIST, 0, INT64_MAX, NULL, &s_create_microvm_image_request_client_token_string, NULL };
static const struct member m_untag_resource_request[] = {
	{ "Resource", &s_taggable_resource, IN_PATH, 1, 0 }, { "tagKeys", &s_tag_key_list, IN_QUERY, 1, 0 }, { NULL }
};
static const struct shape s_untag_resource_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_untag_resource_request };
static const struct member m_update_microvm_image_request[] = {
	{ "baseImageArn", &s_non_blank_string, IN_BODY, 1, 0 }, { "baseImageVersion", &s_non_blank_string, IN_BODY, 0, 0 },
	{ "buildRoleArn", &s_role_arn, IN_BODY, 1, 0 }, { "description", &s_string, IN_BODY, 0, 0 },
	{ "codeArtifact", &s_code_artifact, IN_BODY, 1, 0 }, { "logging", &s_logging, IN_BODY, 0, 0 },
	{ "egressNetworkConnectors", &s_create_microvm_image_request_egress_network_connectors_list, IN_BODY, 0, 0 },
	{ "cpuConfigurations", &s_cpu_configuration_list, IN_BODY, 0, 0 }, { "resources", &s_resources_list, IN_BODY, 0, 0 },
	{ "additionalOsCapabilities", &s_capability_list, IN_BODY, 0, 0 }, { "hooks", &s_hooks, IN_BODY, 0, 0 },
	{ "environmentVariables", &s_environment_variable_map, IN_BODY, 0, 0 },
	{ "imageIdentifier", &s_microvm_identifier, IN_PATH, 1, 0 },
	{ "clientToken", &s_create_microvm_image_request_client_token_string, IN_BODY, 0, 1 }, { NULL }
};
static const struct shape s_update_microvm_image_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_update_microvm_image_request };
static const struct member m_update_microvm_image_response[] = {
	{ "imageArn", &s_non_blank_string, IN_BODY, 1, 0 }, { "name", &s_image_name, IN_BODY, 1, 0 },
	{ "state", &s_microvm_image_state, IN_BODY, 1, 0 }, { "latestActiveImageVersion", &s_non_blank_string, IN_BODY, 0, 0 },
	{ "latestFailedImageVersion", &s_non_blank_string, IN_BODY, 0, 0 }, { "createdAt", &s_timestamp, IN_BODY, 1, 0 },
	{ "baseImageArn", &s_non_blank_string, IN_BODY, 1, 0 }, { "baseImageVersion", &s_non_blank_string, IN_BODY, 0, 0 },
	{ "buildRoleArn", &s_role_arn, IN_BODY, 1, 0 }, { "description", &s_string, IN_BODY, 0, 0 },
	{ "codeArtifact", &s_code_artifact, IN_BODY, 1, 0 }, { "logging", &s_logging, IN_BODY, 0, 0 },
	{ "egressNetworkConnectors", &s_create_microvm_image_request_egress_network_connectors_list, IN_BODY, 0, 0 },
	{ "cpuConfigurations", &s_cpu_configuration_list, IN_BODY, 0, 0 }, { "resources", &s_resources_list, IN_BODY, 0, 0 },
	{ "additionalOsCapabilities", &s_capability_list, IN_BODY, 0, 0 }, { "hooks", &s_hooks, IN_BODY, 0, 0 },
	{ "environmentVariables", &s_environment_variable_map, IN_BODY, 0, 0 }, { "updatedAt", &s_timestamp, IN_BODY, 1, 0 },
	{ "imageVersion", &s_non_blank_string, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_update_microvm_image_response = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_update_microvm_image_response };
static const struct member m_update_microvm_image_version_request[] = {
	{ "imageIdentifier", &s_microvm_identifier, IN_PATH, 1, 0 }, { "imageVersion", &s_non_blank_string, IN_PATH, 1, 0 },
	{ "status", &s_microvm_image_version_status, IN_BODY, 1, 0 }, { NULL }
};
static const struct shape s_update_microvm_image_version_request = { SHAPE_STRUCT, 0, INT64_MAX, NULL, NULL, m_update_microvm_image_version_request };

const struct aws_op aws_ops_microvms[OP_MICROVMS_COUNT] = {
	{ "CreateMicrovmAuthToken", "POST", "/2025-09-09/microvms/{microvmIdentifier}/auth-token",
	  &aws_lambda_microvms, &s_create_microvm_auth_token_request, &s_create_microvm_auth_token_response, 200 },
	{ "CreateMicrovmImage", "POST", "/2025-09-09/microvm-images",
	  &aws_lambda_microvms, &s_create_microvm_image_request, &s_create_microvm_image_response, 201 },
	{ "CreateMicrovmShellAuthToken", "POST", "/2025-09-09/microvms/{microvmIdentifier}/shell-auth-token",
	  &aws_lambda_microvms, &s_create_microvm_shell_auth_token_request, &s_create_microvm_auth_token_response, 200 },
	{ "DeleteMicrovmImage", "DELETE", "/2025-09-09/microvm-images/{imageIdentifier}",
	  &aws_lambda_microvms, &s_delete_microvm_image_input, &s_delete_microvm_image_output, 200 },
	{ "DeleteMicrovmImageVersion", "DELETE", "/2025-09-09/microvm-images/{imageIdentifier}/versions/{imageVersion}",
	  &aws_lambda_microvms, &s_delete_microvm_image_version_input, &s_delete_microvm_image_version_output, 200 },
	{ "GetMicrovm", "GET", "/2025-09-09/microvms/{microvmIdentifier}",
	  &aws_lambda_microvms, &s_get_microvm_request, &s_get_microvm_response, 200 },
	{ "GetMicrovmImage", "GET", "/2025-09-09/microvm-images/{imageIdentifier}",
	  &aws_lambda_microvms, &s_delete_microvm_image_input, &s_get_microvm_image_output, 200 },
	{ "GetMicrovmImageBuild", "GET", "/2025-09-09/microvm-images/{imageIdentifier}/versions/{imageVersion}/builds/{buildId}",
	  &aws_lambda_microvms, &s_get_microvm_image_build_input, &s_get_microvm_image_build_output, 200 },
	{ "GetMicrovmImageVersion", "GET", "/2025-09-09/microvm-images/{imageIdentifier}/versions/{imageVersion}",
	  &aws_lambda_microvms, &s_delete_microvm_image_version_input, &s_get_microvm_image_version_output, 200 },
	{ "ListManagedMicrovmImageVersions", "GET", "/2025-09-09/managed-microvm-images/{imageIdentifier}/versions",
	  &aws_lambda_microvms, &s_list_managed_microvm_image_versions_input, &s_list_managed_microvm_image_versions_output, 200 },
	{ "ListManagedMicrovmImages", "GET", "/2025-09-09/managed-microvm-images",
	  &aws_lambda_microvms, &s_list_managed_microvm_images_input, &s_list_managed_microvm_images_output, 200 },
	{ "ListMicrovmImageBuilds", "GET", "/2025-09-09/microvm-images/{imageIdentifier}/versions/{imageVersion}/builds",
	  &aws_lambda_microvms, &s_list_microvm_image_builds_input, &s_list_microvm_image_builds_output, 200 },
	{ "ListMicrovmImageVersions", "GET", "/2025-09-09/microvm-images/{imageIdentifier}/versions",
	  &aws_lambda_microvms, &s_list_managed_microvm_image_versions_input, &s_list_microvm_image_versions_output, 200 },
	{ "ListMicrovmImages", "GET", "/2025-09-09/microvm-images",
	  &aws_lambda_microvms, &s_list_microvm_images_request, &s_list_microvm_images_response, 200 },
	{ "ListMicrovms", "GET", "/2025-09-09/microvms",
	  &aws_lambda_microvms, &s_list_microvms_request, &s_list_microvms_response, 200 },
	{ "ListTags", "GET", "/2017-03-31/tags/{Resource}",
	  &aws_lambda_microvms, &s_list_tags_request, &s_list_tags_response, 200 },
	{ "ResumeMicrovm", "POST", "/2025-09-09/microvms/{microvmIdentifier}/resume",
	  &aws_lambda_microvms, &s_get_microvm_request, &s_unit, 200 },
	{ "RunMicrovm", "POST", "/2025-09-09/microvms",
	  &aws_lambda_microvms, &s_run_microvm_request, &s_get_microvm_response, 200 },
	{ "SuspendMicrovm", "POST", "/2025-09-09/microvms/{microvmIdentifier}/suspend",
	  &aws_lambda_microvms, &s_get_microvm_request, &s_unit, 200 },
	{ "TagResource", "POST", "/2017-03-31/tags/{Resource}",
	  &aws_lambda_microvms, &s_tag_resource_request, NULL, 204 },
	{ "TerminateMicrovm", "DELETE", "/2025-09-09/microvms/{microvmIdentifier}",
	  &aws_lambda_microvms, &s_get_microvm_request, &s_unit, 200 },
	{ "UntagResource", "DELETE", "/2017-03-31/tags/{Resource}",
	  &aws_lambda_microvms, &s_untag_resource_request, NULL, 204 },
	{ "UpdateMicrovmImage", "PUT", "/2025-09-09/microvm-images/{imageIdentifier}",
	  &aws_lambda_microvms, &s_update_microvm_image_request, &s_update_microvm_image_response, 200 },
	{ "UpdateMicrovmImageVersion", "PATCH", "/2025-09-09/microvm-images/{imageIdentifier}/versions/{imageVersion}",
	  &aws_lambda_microvms, &s_update_microvm_image_version_request, &s_get_microvm_image_version_output, 200 },
};
