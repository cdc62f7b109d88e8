/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ASB_MCP_RPC_H
#define ASB_MCP_RPC_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/jsn.h"

/*
 * JSON-RPC 2.0 over lines, as MCP's stdio transport has it: one message a line, UTF-8, no newline inside.
 * Pure: bytes in, messages out. Whatever comes is either a message, or something that is answered by an error.
 */

#define RPC_LINE_MAX (16U << 20) /* of one message; a longer line is thrown away as it comes */
#define RPC_ID_MAX   256	 /* bytes of an id, as JSON */

enum rpc_error {
	RPC_PARSE = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_NO_METHOD = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	RPC_NO_RESOURCE = -32002,	 /* up to revision 2025-11-25 */
	RPC_UNSUPPORTED_VERSION = -32022 /* from revision 2026-07-28 on */
};

/* --- lines --- */
struct rpc_lines {
	struct buf in;
	bool throwing; /* the rest of a line that is too long */
	/* One line without its newline; P is NUL-terminated, may be changed, and is gone afterwards. NULL: one that was too
	 * long (or memory ran out). Returns false to stop; what was not given out yet is dropped. */
	bool (*line)(void *arg, char *p, size_t n);
	void *arg;
};

void rpc_lines_init(struct rpc_lines *l, bool (*line)(void *arg, char *p, size_t n), void *arg);
void rpc_lines_done(struct rpc_lines *l);
/* False when LINE stopped it. */
bool rpc_feed(struct rpc_lines *l, const char *p, size_t n);
/* The input has ended: what came last had no newline, and is given out all the same. */
void rpc_end(struct rpc_lines *l);

/* --- messages --- */
enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE, RPC_BAD };

struct rpc_msg {
	cJSON *doc; /* owned; what follows points into it */
	enum rpc_kind kind;
	const char *method;  /* of requests and notifications */
	const cJSON *params; /* an object, or NULL */
	char id[RPC_ID_MAX +
		1];	     /* as JSON text: "\"a\"" or "7"; "null" where it could not be read */
	enum rpc_error code; /* of RPC_BAD, with WHY */
	char why[160];
};

/* Reads one message. Blank lines are RPC_RESPONSE without a document: nothing is to be done. rpc_done. */
void rpc_read(char *p, size_t n, struct rpc_msg *ret);
void rpc_done(struct rpc_msg *m);

/* ID of a JSON value as text; false for what cannot be one. */
bool rpc_id_text(const cJSON *id, char out[static RPC_ID_MAX + 1]);

/* Appends {"jsonrpc":"2.0","id":ID,"error":{…}} and a newline; DATA (JSON text) may be NULL. 0 or as buf_add. */
int rpc_error(struct buf *b, const char *id, enum rpc_error code, const char *message,
	      const char *data) MUST_CHECK;

#endif
