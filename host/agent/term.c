/* SPDX-License-Identifier: Apache-2.0 */
#include "host/agent/term.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/agent/exec_int.h"
#include "lib/str.h"

/*
 * One request to resize at a time: what changes meanwhile is sent when it has been answered, so
 * that the last size wins. TCSANOW everywhere: TCSADRAIN would wait for a terminal that is stopped.
 */

#define RESIZE_NS	(5LL * 1000000000)
#define RESIZE_AGAIN_NS (200LL * 1000000)

/* --- the terminal --- */

bool term_is_ours(int fd)
{
	return isatty(fd) && tcgetpgrp(fd) == getpgrp();
}

static int raw_again(const struct term *t)
{
	struct termios raw = t->before;

	cfmakeraw(&raw);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	return tcsetattr(t->fd, TCSANOW, &raw) < 0 ? -errno : 0;
}

int term_raw(struct term *t)
{
	int r = tcgetattr(t->fd, &t->before) < 0 ? -errno : raw_again(t);

	t->raw = r == 0;
	return r;
}

void term_restore(struct term *t)
{
	if (t->raw)
		(void)tcsetattr(t->fd, TCSANOW,
				&t->before); /* a terminal that is gone needs none */
	t->raw = false;
}

bool term_size(unsigned *ret_rows, unsigned *ret_cols)
{
	struct winsize w;

	for (int fd = STDOUT_FILENO; fd >= STDIN_FILENO; fd--)
		if (ioctl(fd, TIOCGWINSZ, &w) == 0 && w.ws_row && w.ws_col) {
			*ret_rows = w.ws_row;
			*ret_cols = w.ws_col;
			return true;
		}
	return false;
}

/* --- a command's terminal behind ours --- */

static void on_resized(void *arg, int status, const struct buf *body, const struct err *e)
{
	struct exec *x = arg;

	(void)body;
	(void)e;
	x->resize = NULL;
	if (status == 0 || status == 503) /* cut: the size is told again */
		x->resized = true;
	if (x->resized)
		loop_arm(&x->loop, &x->resize_again, status == 200 ? 0 : RESIZE_AGAIN_NS);
}

static void on_again(struct loop_timer *t)
{
	term_resized(t->arg);
}

void term_resized(struct exec *x)
{
	char path[EXEC_PATH_MAX];
	struct http_spec s = { .method = "POST",
			       .path = path,
			       .body = x->resize_body,
			       .limit_ns = RESIZE_NS,
			       .done = on_resized,
			       .arg = x };
	struct err e = ERR_INIT;
	unsigned rows, cols;

	if (!x->spec->tty || x->phase != PHASE_FOLLOW || !term_size(&rows, &cols))
		return;
	x->resized = true;
	if (x->resize)
		return;
	x->resized = false;
	exec_path(x, "/resize", path);
	ignore_result(str_format(x->resize_body, sizeof(x->resize_body),
				 "{\"rows\":%u,\"cols\":%u}", rows, cols)); /* it fits */
	s.body_len = strlen(x->resize_body);
	if (http_start(x->http, &s, &x->resize, &e) < 0)
		x->resize = NULL; /* no memory: the size stays as it is */
}

int term_begin(struct exec *x)
{
	x->resize_again = (struct loop_timer)LOOP_TIMER_INIT;
	x->resize_again.fn = on_again;
	x->resize_again.arg = x;
	x->term.fd = STDIN_FILENO;
	if (!x->spec->tty || x->spec->detach || !x->spec->use_stdin || !isatty(STDIN_FILENO))
		return 0;
	return term_raw(&x->term);
}

/* A shell that gets us back into the foreground has put back the mode that it knows. */
void term_resumed(struct exec *x)
{
	if (x->term.raw && term_is_ours(x->term.fd) && raw_again(&x->term) < 0)
		stop_hang_up(x, SIGHUP);
	term_resized(x);
}

void term_stop(struct exec *x)
{
	bool raw = x->term.raw;

	term_restore(&x->term);
	(void)raise(SIGSTOP); /* returns when somebody has sent SIGCONT, which is then told too */
	x->term.raw = raw;
}

void term_done(struct exec *x)
{
	loop_disarm(&x->resize_again);
	http_cancel(x->resize);
	x->resize = NULL;
	term_restore(&x->term);
}
