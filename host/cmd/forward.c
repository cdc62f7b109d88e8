/* SPDX-License-Identifier: Apache-2.0 */
#include <cJSON.h>
#include <errno.h>
#include <string.h>

#include "host/cli/out.h"
#include "host/cmd/cmd.h"
#include "host/cmd/common.h"
#include "host/core/forward.h"
#include "lib/jsn.h"
#include "lib/str.h"

/* asb forward: host/core/forward.c with the ports of the command line. */

struct wanted {
	struct port_spec ports[FORWARD_MAX];
	unsigned len;
};

static int add(const struct cli *c, struct wanted *w, const struct port_spec *spec, struct err *e)
{
	struct port_spec *p = &w->ports[w->len];

	if (w->len == FORWARD_MAX)
		return err_set(e, ERR_USAGE, E2BIG, "at most %d ports at a time", FORWARD_MAX);
	*p = *spec;
	if (!p->address[0])
		ignore_result(str_format(p->address, sizeof(p->address), "%s",
					 c->val[OPT_ADDRESS].text)); /* it fits: checked */
	w->len++;
	return 0;
}

static int usage(struct err *e, const char *text)
{
	(void)err_set(e, ERR_USAGE, 0, "%s", text);
	return -EINVAL;
}

static int collect(const struct cli *c, struct wanted *w, struct err *e)
{
	const struct opt_value *remote = &c->val[OPT_REMOTE_PORT], *local = &c->val[OPT_LOCAL_PORT];
	struct port_spec p;
	int r = 0;

	if (remote->set) {
		p = (struct port_spec){ .remote = (uint16_t)remote->number };
		p.local = local->set ? (uint16_t)local->number : p.remote;
		r = add(c, w, &p, e);
	} else if (local->set) {
		return usage(e, "--local-port goes with --remote-port");
	}
	for (unsigned i = 1; i < c->names_len && r == 0; i++)
		r = ports_parse(c->names[i], &p) == 0 ? add(c, w, &p, e) : usage(e, "not a port");
	if (r == 0 && w->len == 0)
		return usage(e, "a port is missing, such as: asb forward app 8080:80");
	return r;
}

static bool is_six(const struct port_spec *p)
{
	return strchr(p->address, ':') != NULL;
}

static int print_port(const struct port_spec *p, const char *name, bool http)
{
	char where[80];
	AUTO_JSN *j = NULL;
	char *text;
	int r;

	ignore_result(str_format(where, sizeof(where), is_six(p) ? "[%s]:%u" : "%s:%u", p->address,
				 p->local)); /* it fits */
	if (!out_json_wanted())
		return out_line("forwarding %s%s -> %s:%u  (Ctrl+C to stop)", http ? "http://" : "",
				where, name, p->remote);
	j = cJSON_CreateObject();
	if (!j || !jsn_add_str(j, "name", name) || !jsn_add_str(j, "address", p->address) ||
	    !jsn_add_u64(j, "local_port", p->local) || !jsn_add_u64(j, "remote_port", p->remote) ||
	    !jsn_add_str(j, "protocol", http ? "http" : "tcp"))
		return -ENOMEM;
	text = cJSON_PrintUnformatted(j);
	r = text ? out_line("%s", text) : -ENOMEM;
	cJSON_free(text);
	return r;
}

static int tell(const struct forward *f, const char *name)
{
	const struct port_spec *p;
	int r = 0;

	for (unsigned i = 0; r == 0 && (p = forward_port(f, i)) != NULL; i++)
		r = print_port(p, name, forward_is_http(f));
	return r;
}

static int serve(const struct cli *c, struct core_named *n, struct err *e)
{
	struct wanted w = { .len = 0 };
	struct forward *f = NULL;
	int r = forward_possible(n->backend) ? collect(c, &w, e)
					     : cmd_unsupported(n->backend, "forward ports", e);

	if (r == 0)
		r = forward_open(n, w.ports, w.len, c->val[OPT_POLL_INTERVAL].ns, &f, e);
	if (r < 0)
		return r;
	r = tell(f, c->names[0]);
	r = r < 0 ? err_set(e, ERR_INTERNAL, -r, "forwarding") : forward_run(f, e);
	forward_close(f);
	return r;
}

static const char *hint_of(const struct cli *c, const struct err *e)
{
	if (e->code == ERR_IO && e->errnum == EADDRINUSE)
		return "LOCAL:REMOTE takes another local port; with 0 a free one is picked";
	if (e->code == ERR_IO && e->errnum == EACCES)
		return "ports below 1024 are for root: LOCAL:REMOTE takes another local port";
	if (e->code == ERR_IO && e->errnum == EADDRNOTAVAIL)
		return "the ADDRESS must be one of this machine's own";
	return e->code == ERR_USAGE || e->code == ERR_DENIED ? NULL : cmd_hint(e, c->names[0]);
}

int cmd_forward(const struct cli *c)
{
	struct core_named n;
	struct err e = ERR_INIT;
	int r = core_find(c->names[0], &n, &e);

	if (r < 0)
		return cmd_fail(c, &e, cmd_hint(&e, NULL));
	r = serve(c, &n, &e);
	core_named_done(&n);
	return r < 0 ? cmd_fail(c, &e, hint_of(c, &e)) : 0;
}
