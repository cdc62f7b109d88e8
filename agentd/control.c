/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/jsn.h"
#include "lib/signame.h"

/* A name with or without SIG, or a number; 0 when it is neither. */
static int number(const cJSON *v)
{
	if (cJSON_IsNumber(v))
		return v->valuedouble >= 1 && v->valuedouble <= SIGRTMAX ? (int)v->valuedouble : 0;
	return cJSON_IsString(v) ? signame_number(v->valuestring) : 0;
}

int control_signal(const cJSON *o, int *ret_sig, enum exec_to *ret_to, struct err *e)
{
	static const char names[][7] = {
		[EXEC_TO_LEADER] = "leader", [EXEC_TO_GROUP] = "group", [EXEC_TO_TREE] = "tree"
	};
	const char *to = names[*ret_to];
	size_t i = 0;

	if (jsn_str(o, "to", &to, e) < 0)
		return -EINVAL;
	while (i < ARRAY_LEN(names) && strcmp(to, names[i]) != 0)
		i++;
	if (i == ARRAY_LEN(names))
		return err_set(e, ERR_INVALID, 0, "\"to\" must be leader, group or tree");
	*ret_to = (enum exec_to)i;
	*ret_sig = number(jsn_get(o, "signal"));
	if (*ret_sig == 0)
		return err_set(e, ERR_INVALID, 0,
			       "\"signal\" must be the name or the number of a signal");
	return 0;
}

int control_send(struct exec *e, int sig, enum exec_to to)
{
	if (e->state == EXEC_EXITED && to != EXEC_TO_TREE)
		return -ESRCH;
	if (sig != SIGKILL || to != EXEC_TO_TREE || e->state != EXEC_RUNNING)
		return exec_signal(e, sig, to);
	exec_kill(e); /* until nothing is left */
	return 0;
}

void control_exit(const struct exec *e, const char *key, char *out, size_t size)
{
	char code[16], sig[16];

	(void)snprintf(code, sizeof(code), e->signal ? "null" : "%d", e->exit_code);
	(void)snprintf(sig, sizeof(sig), e->signal ? "%d" : "null", e->signal);
	(void)snprintf(out, size,
		       "{\"%s\":\"exit\",\"exit_code\":%s,\"signal\":%s,\"timed_out\":%s,"
		       "\"oom\":%s,\"truncated\":%s,\"duration_ms\":%lld,\"offset\":%llu}",
		       key, code, sig, e->timed_out ? "true" : "false", e->oom ? "true" : "false",
		       e->truncated ? "true" : "false",
		       (long long)((e->end_ns - e->start_ns) / 1000000),
		       (unsigned long long)e->log.end);
}
