/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOOKS_AGENT_H
#define HOOKS_AGENT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/compiler.h"
#include "lib/line.h"
#include "lib/loop.h"

/* One question to agentd over its private socket (docs/agent-api.md), on a connection of its own.
 */
struct cJSON;

struct agent_call {
	struct loop *loop;
	struct line_peer peer;
	struct loop_timer again;
	char *request;	/* owned */
	char path[108]; /* of sun_path */
	int64_t end_ns;
	bool patient; /* try again while nobody listens: agentd may be being restarted */
	/* Once: 0 with agentd's answer, whose "ok" is true (borrowed); else a negative errno with a
	 * message in WHY. */
	void (*done)(void *arg, int result, const struct cJSON *answer, const char *why);
	void *arg;
};

/*
 * Asks REQUEST (taken, may be NULL for lack of memory) of the agent at PATH within LIMIT_NS. DONE
 * is always called, and never from inside. C must stay until then.
 */
void agent_call(struct agent_call *c, struct loop *l, const char *path, struct cJSON *request,
		bool patient, int64_t limit_ns);

#endif
