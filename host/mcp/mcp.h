/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_MCP_H
#define ASB_MCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/err.h"

/*
 * The MCP server of `asb mcp`: tools and resources over standard input and output. docs/mcp.md is for those who use it,
 * docs/decisions/0020-mcp-processes.md tells why it is made of processes.
 */
struct cli;

#define MCP_ROOTS_MAX 64

struct mcp_config {
	const struct cli *cli; /* --backend; borrowed */
	bool read_only;	       /* tools that change something are not there */
	bool no_network;       /* no sandbox gets a network, and nothing is forwarded */
	/* From the environment (mcp_config_read). */
	uint64_t max_output; /* bytes of each text; 0 = as much as there may ever be */
	int64_t default_ns;  /* timeout of a command */
	const char *workdir; /* borrowed */
	bool any_host_path;
	char *roots[MCP_ROOTS_MAX]; /* owned, absolute, links resolved */
	unsigned roots_len;
};

/* $AGENT_SANDBOX_MCP_* and $AGENT_SANDBOX_WORKDIR into C. 0 or a negative errno with E. mcp_config_done. */
int mcp_config_read(struct mcp_config *c, struct err *e) MUST_CHECK;
void mcp_config_done(struct mcp_config *c);

/* Serves until the client goes or SIGTERM comes. The exit status. */
int mcp_serve(const struct mcp_config *c);

/* What the configuration of CLIENT (one of the choices of --print-config) needs, on standard output. 0 or a negative errno. */
int mcp_print_config(const char *client) MUST_CHECK;

#endif
