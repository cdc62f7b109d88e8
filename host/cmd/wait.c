/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "host/agent/ask.h"
#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/cmd/execid.h"
#include "lib/jsn.h"
#include "lib/loop.h"
#include "lib/str.h"

/*
 * Waits as `docker wait` does: prints how it ended, and succeeds. It looks again and again, at first often: neither a backend nor the
 * agent can tell the end without being asked, and following a command's output would set the pace of the command.
 */

#define FIRST_NS (50 * 1000000LL)
#define MOST_NS	 (1000 * 1000000LL)

struct waiting {
	const struct cli *c;
	struct core_named n;
	char id[EXECID_MAX + 1]; /* "" for the sandbox */
	int64_t until;		 /* loop_now(); 0 = never */
};

/* 1 when the sandbox has ended, with its state; 0 when not yet. */
static int look_at_sandbox(struct waiting *w, cJSON **ret, const char **ret_word, struct err *e)
{
	struct sandbox_info i;
	int r = w->n.backend->info(w->n.record.microvm_id, &i, e);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0 && i.state != SANDBOX_TERMINATED)
		return 0;
	*ret_word = cmd_state(r == 0 ? &i : NULL);
	*ret = cJSON_CreateObject();
	if (*ret && jsn_add_str(*ret, "name", w->n.record.name) &&
	    jsn_add_str(*ret, "id", w->n.record.microvm_id) &&
	    jsn_add_str(*ret, "state", *ret_word) &&
	    (r < 0 || jsn_add_str(*ret, "reason", i.reason[0] ? i.reason : NULL)))
		return 1;
	return err_set(e, ERR_INTERNAL, ENOMEM, "waiting");
}

static bool flag(const cJSON *o, const char *name)
{
	bool b = false;

	return jsn_bool(o, name, &b, NULL) == 1 && b;
}

/* What `asb exec` would have ended with. */
static int status_of(const cJSON *o, struct err *e)
{
	uint64_t v;

	if (flag(o, "timed_out"))
		return EXIT_TIMEOUT;
	if (jsn_u64(o, "signal", 1, 64, &v, NULL) == 1)
		return 128 + (int)v;
	if (jsn_u64(o, "exit_code", 0, 255, &v, NULL) == 1)
		return (int)v;
	return err_set(e, ERR_INTERNAL, EPROTO, "the agent's answer about the command");
}

static int look_at_exec(struct waiting *w, cJSON **ret, char word[16], struct err *e)
{
	char path[32 + EXECID_MAX];
	struct ask a = {
		.backend = w->n.backend, .id = w->n.record.microvm_id, .method = "GET", .path = path
	};
	const char *state = "";
	AUTO_JSN *doc = NULL;
	int r;

	ignore_result(str_format(path, sizeof(path), "/v1/execs/%s", w->id)); /* it fits */
	r = agent_ask(&a, &doc, e);
	if (r < 0)
		return r;
	if (jsn_str(doc, "state", &state, e) < 0)
		return -EPROTO;
	if (strcmp(state, "exited") != 0)
		return 0;
	r = status_of(doc, e);
	if (r < 0)
		return r;
	ignore_result(str_format(word, 16, "%d", r));
	*ret = cJSON_CreateObject();
	if (!*ret || !jsn_add_str(*ret, "name", w->n.record.name) ||
	    !jsn_add_i64(*ret, "status", r) || !cJSON_AddItemToObject(*ret, "exec", doc))
		return err_set(e, ERR_INTERNAL, ENOMEM, "waiting");
	doc = NULL;
	return 1;
}

/* False when the time is over. */
static bool rest(const struct waiting *w, int64_t ns)
{
	int64_t end = loop_now() + ns, left;

	if (w->until && end > w->until)
		end = w->until;
	while ((left = end - loop_now()) > 0)
		(void)poll(NULL, 0, (int)(left / 1000000) + 1);
	return !w->until || loop_now() < w->until;
}

/* 1 with what is to print; -ETIMEDOUT. */
static int wait_for(struct waiting *w, cJSON **ret, const char **ret_word, struct err *e)
{
	static char word[16];
	int64_t pause = FIRST_NS;

	for (;;) {
		int r = w->id[0] ? look_at_exec(w, ret, word, e)
				 : look_at_sandbox(w, ret, ret_word, e);

		if (r != 0) {
			*ret_word = w->id[0] ? word : *ret_word;
			return r;
		}
		if (!rest(w, pause))
			break;
		pause = pause * 2 > MOST_NS ? MOST_NS : pause * 2;
	}
	(void)err_set(e, ERR_TIMEOUT, 0, "%s has not ended in %s seconds",
		      w->id[0] ? w->id : w->n.record.name, w->c->val[OPT_WAIT_TIMEOUT].text);
	return -ETIMEDOUT;
}

static int find(struct waiting *w, struct err *e)
{
	const struct cli *c = w->c;
	int64_t limit = c->val[OPT_WAIT_TIMEOUT].ns;
	int r = 0;

	if (c->names_len > 1)
		r = execid_find(&w->n, c->names[1], w->id, e);
	w->until = limit ? loop_now() + limit : 0;
	return r;
}

int cmd_wait(const struct cli *c)
{
	struct waiting w = { .c = c };
	struct err e = ERR_INIT;
	const char *word = "";
	AUTO_JSN *doc = NULL;
	int r = core_find(c->names[0], &w.n, &e);

	if (r < 0)
		return cmd_fail(c, &e, cmd_hint(&e, NULL));
	if (c->names_len > 1)
		r = core_wake(&w.n, &e);
	if (r == 0)
		r = find(&w, &e);
	if (r == 0)
		r = wait_for(&w, &doc, &word, &e);
	core_named_done(&w.n);
	if (r < 0) {
		const char *hint = r == -ETIMEDOUT /* all is well: nothing to look for */
					   ? NULL
					   : execid_hint(&e, c->names_len > 1 ? r : 0, c->names[0]);
		int status = cmd_fail(c, &e, hint);

		return r == -ETIMEDOUT ? EXIT_TIMEOUT : status;
	}
	if (out_json_wanted()) {
		cJSON *give = doc;

		doc = NULL;
		return out_doc(give) < 0 ? c->cmd->failure : 0;
	}
	return out_line("%s", word) < 0 ? c->cmd->failure : 0;
}
