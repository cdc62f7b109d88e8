/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cmd/infra_each.h"

#include <cJSON.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/cli/out.h"
#include "host/cmd/common.h"
#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/jsn.h"

/*
 * Each stack is worked on by itself; one that fails does not keep the others from being worked on. Several at a time are processes: all
 * that a stack needs (session, connections, locks) is made after the fork. What a process prints on stdout goes to a file in memory, which is
 * printed when those before it have been; its lines on stderr come at once, each with the stack's name. A process ends with its
 * parent: being killed is nothing new to a stack, the next `up` goes on. Each wait in it has a deadline, so waiting for it needs none.
 */

#define RESULT_MAX (16U << 20)

struct job {
	pid_t pid; /* 0 = not started, or has ended */
	int out;   /* owned; -1 = none */
	bool done, bad;
};

static void say(void *arg, const char *line)
{
	const struct stack *s = arg;

	out_note("%s %s", s->key, line);
}

static const char *hint_for(const struct err *e)
{
	if (e->code == ERR_NOT_FOUND && strstr(e->msg, "there is no file"))
		return "asb infra init writes a sandbox.yaml";
	return e->code == ERR_DENIED ? "asb doctor shows whose credentials are used" : NULL;
}

static cJSON *stack_doc(const struct infra_config *f)
{
	cJSON *j = cJSON_CreateObject();

	if (j && jsn_add_str(j, "project", f->text[INFRA_PROJECT]) &&
	    jsn_add_str(j, "stack", f->text[INFRA_STACK]) &&
	    jsn_add_str(j, "region", f->text[INFRA_REGION]))
		return j;
	cJSON_Delete(j);
	return NULL;
}

static void tell(const struct err *e, cJSON *doc)
{
	cJSON *why = out_error_json(e, hint_for(e));

	out_error_line(e, hint_for(e));
	if (!why || !cJSON_AddItemToObject(doc, "error", why))
		cJSON_Delete(why);
}

static int one(const struct cli *c, const struct infra_config *f, infra_work *fn, cJSON *doc)
{
	struct err e = ERR_INIT;
	struct stack s;
	int r = stack_open(&s, f, &e);

	s.say = say;
	s.say_arg = &s;
	if (r == 0)
		r = fn(c, &s, doc, &e);
	if (r < 0)
		tell(&e, doc);
	stack_done(&s);
	return r;
}

/* --- several at a time --- */

struct jobs {
	const struct cli *c;
	const struct infra_configs *f;
	infra_work *fn;
	struct job *all; /* as many as F has */
	cJSON *list;
	size_t running, started, printed, bad;
};

NORETURN static void work(const struct jobs *j, const struct job *k, const struct infra_config *f,
			  pid_t parent)
{
	cJSON *doc = stack_doc(f);
	char *text;
	int r = -ENOMEM;

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent || dup2(k->out, STDOUT_FILENO) < 0)
		_exit(1);
	if (doc)
		r = one(j->c, f, j->fn, doc);
	text = doc && out_json_wanted() ? cJSON_PrintUnformatted(doc) : NULL;
	if (text && fd_write_all(STDOUT_FILENO, text, strlen(text)) < 0)
		r = -EIO;
	_exit(r < 0);
}

static void start(struct jobs *j)
{
	struct job *k = &j->all[j->started];
	const struct infra_config *f = &j->f->all[j->started++];
	struct err e = ERR_INIT;
	pid_t parent = getpid();

	k->out = memfd_create("stack", MFD_CLOEXEC);
	k->pid = k->out < 0 ? -1 : fork();
	if (k->pid == 0)
		work(j, k, f, parent);
	if (k->pid > 0) {
		j->running++;
		return;
	}
	(void)err_set(&e, ERR_IO, errno, "a process for %s/%s", f->text[INFRA_PROJECT],
		      f->text[INFRA_STACK]);
	out_error_line(&e, NULL);
	*k = (struct job){ .out = k->out, .done = true, .bad = true };
}

static void reap(struct jobs *j)
{
	int status;
	pid_t pid = waitpid(-1, &status, 0);

	for (size_t i = 0; pid > 0 && i < j->started; i++) {
		struct job *k = &j->all[i];
		struct err e = ERR_INIT;

		if (k->pid != pid)
			continue;
		j->running--;
		*k = (struct job){ .out = k->out, .done = true, .bad = status != 0 };
		if (!WIFSIGNALED(status))
			continue;
		(void)err_set(&e, ERR_INTERNAL, 0, "%s/%s was ended by signal %d",
			      j->f->all[i].text[INFRA_PROJECT], j->f->all[i].text[INFRA_STACK],
			      WTERMSIG(status));
		out_error_line(&e, "asb infra up goes on where it was");
	}
}

/* The result of one that is done: its text, or its document, with an error when it could not leave one. */
static int print(const struct jobs *j, struct job *k, const struct infra_config *f)
{
	struct err e = ERR_INIT;
	AUTO_BUF b;
	cJSON *doc;
	int r = 0;

	buf_init(&b, RESULT_MAX);
	if (k->out >= 0)
		r = lseek(k->out, 0, SEEK_SET) < 0 ? -errno : fd_read_all(k->out, &b);
	fd_close(&k->out);
	if (r == 0 && !out_json_wanted())
		return b.len ? out_bytes(b.p, b.len) : 0;
	doc = r == 0 && b.len ? cJSON_ParseWithLength(b.p, b.len) : NULL;
	if (!doc && (doc = stack_doc(f)) != NULL) {
		(void)err_set(&e, ERR_INTERNAL, 0, "its process has left no result");
		tell(&e, doc);
	}
	return doc && cJSON_AddItemToArray(j->list, doc) ? r : -ENOMEM;
}

static int all_jobs(struct jobs *j, size_t at_once)
{
	int r = 0;

	j->all = calloc(j->f->len, sizeof(j->all[0]));
	if (!j->all)
		return -ENOMEM;
	while (j->printed < j->f->len) {
		while (j->started < j->f->len && j->running < at_once)
			start(j);
		if (!j->all[j->printed].done) {
			reap(j);
			continue;
		}
		j->bad += j->all[j->printed].bad;
		if (r == 0)
			r = print(j, &j->all[j->printed], &j->f->all[j->printed]);
		j->printed++;
	}
	free(j->all);
	return r;
}

static int in_turn(struct jobs *j)
{
	for (size_t i = 0; i < j->f->len; i++) {
		cJSON *doc = stack_doc(&j->f->all[i]);

		if (!doc || !cJSON_AddItemToArray(j->list, doc))
			return -ENOMEM;
		j->bad += one(j->c, &j->f->all[i], j->fn, doc) < 0;
	}
	return 0;
}

int infra_each(const struct cli *c, uint64_t parallel, infra_work *fn)
{
	const struct opt_value *files = &c->val[OPT_CONFIG];
	struct infra_configs f = { NULL, 0 };
	struct err e = ERR_INIT;
	cJSON *doc = cJSON_CreateObject();
	struct jobs j = { .c = c, .f = &f, .fn = fn };
	int r = infra_config_load(files->all, files->all_len,
				  c->val[OPT_STACK].set ? c->val[OPT_STACK].text : NULL, &f, &e);

	if (r < 0) {
		cJSON_Delete(doc);
		infra_configs_done(&f);
		return cmd_fail(c, &e, hint_for(&e));
	}
	j.list = doc ? cJSON_AddArrayToObject(doc, "stacks") : NULL;
	if (!parallel || parallel > INFRA_PARALLEL_MAX)
		parallel = INFRA_PARALLEL_MAX;
	if (!j.list)
		r = -ENOMEM;
	else
		r = parallel == 1 || f.len == 1 ? in_turn(&j) : all_jobs(&j, parallel);
	infra_configs_done(&f);
	if (r < 0) {
		cJSON_Delete(doc);
		(void)err_set(&e, ERR_INTERNAL, -r, "the results of the stacks");
		return cmd_fail(c, &e, NULL);
	}
	if (out_json_wanted())
		return out_doc(doc) < 0 || j.bad ? c->cmd->failure : 0;
	cJSON_Delete(doc);
	return j.bad ? c->cmd->failure : 0;
}
