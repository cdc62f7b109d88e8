/* SPDX-License-Identifier: Apache-2.0 */
#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine_int.h"
#include "lib/fd.h"
#include "lib/log.h"
#include "lib/sock.h"

/*
 * The child installs the filter on itself just before it executes its program, and sends the listener to agentd over one socket
 * pair that serves all starts: one child is started at a time, and agentd looks when the program runs. The pair is CLOEXEC, so no
 * program ever holds it.
 *
 * It goes on first, while the child has CAP_SYS_ADMIN, without which a filter wants no_new_privs. What follows (limits, user,
 * directory, capabilities) is allowed in every profile.
 *
 * Nothing here may make a call that the filter denies between the installation and execve(2): agentd waits for the program and
 * would not answer.
 *
 * The kernel lets one filter of a process have a listener. Where an outer one has it, or where the kernel is too old, it answers
 * denials itself, and they are not counted.
 */
#define FLAG_LISTENER	   (1U << 3)
#define FLAG_WAIT_KILLABLE (1U << 5) /* a signal does not make the caller ask again; Linux 5.19 */
#define FLAG_SPEC_ALLOW	   (1U << 2) /* no slower code than without a filter; Linux 4.17 */

enum { CAN_DEFAULT = 1, CAN_RESTRICTED = 2, CAN_COUNT = 4 };

static unsigned can;
static unsigned flags_alone, flags_listener;
static int channel[2] = { -1, -1 }; /* agentd's end, the children's */

static const char names[][11] = { "none", "default", "restricted" };

int confine_parse(const char *name, enum confine_profile *ret)
{
	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i])) {
			*ret = (enum confine_profile)i;
			return 0;
		}
	return -EINVAL;
}

const char *confine_name(enum confine_profile p)
{
	return names[p];
}

bool confine_can(enum confine_profile p)
{
	return p == CONFINE_NONE || (can & (p == CONFINE_DEFAULT ? CAN_DEFAULT : CAN_RESTRICTED));
}

bool confine_counts(void)
{
	return can & CAN_COUNT;
}

/* --- in the child --- */
#define INSTALL(filter, flags) install(filter, ARRAY_LEN(filter), flags)

/* 0 or the listener; negative errno. What is marked COUNTED asks the listener, or has its errno when there is none. */
static int install(const struct sock_filter *code, size_t n, unsigned flags)
{
	struct sock_filter own[FILTER_MAX];
	struct sock_fprog p = { (unsigned short)n, own };
	long r;

	memcpy(own, code, n * sizeof(*own));
	for (size_t i = 0; i < n; i++)
		if (own[i].code == (BPF_RET | BPF_K) &&
		    (own[i].k & (SECCOMP_RET_ACTION_FULL | COUNTED)) ==
			    (SECCOMP_RET_ERRNO | COUNTED))
			own[i].k = flags & FLAG_LISTENER ? SECCOMP_RET_USER_NOTIF
							 : own[i].k & ~(uint32_t)COUNTED;
	r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &p);
	return r < 0 ? -errno : (int)r;
}

static int install_profile(enum confine_profile p, bool counted)
{
	unsigned flags = counted ? flags_listener : flags_alone;

	return p == CONFINE_DEFAULT ? INSTALL(filter_default, flags)
				    : INSTALL(filter_restricted, flags);
}

static int confine_now(const struct confine *c)
{
	int fd = install_profile(c->profile, c->counted), r;

	if (fd < 0 || !c->counted)
		return fd;
	r = sock_send_fd(channel[1], "", 1, fd);
	(void)close(fd);
	return r;
}

static int no_new_privs(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int confine_child_first(const struct confine *c)
{
	int r = 0;

	if (c->profile == CONFINE_NONE)
		return 0;
	if (c->profile == CONFINE_RESTRICTED)
		r = caps_drop_bounding();
	if (r == 0 && c->profile == CONFINE_RESTRICTED)
		r = no_new_privs();
	return r < 0 ? r : confine_now(c);
}

int confine_child_last(const struct confine *c)
{
	return c->profile == CONFINE_RESTRICTED ? caps_drop_restricted() : 0;
}

int confine_worker(void)
{
	int r = caps_drop_worker();

	if (r == 0)
		r = no_new_privs();
	return r < 0 ? r : INSTALL(filter_worker, 0);
}

/* --- in agentd --- */
/* The byte that a child has sent, or negative errno; its descriptor in *RET_FD, or -1. Does not wait. */
static int receive(int *ret_fd)
{
	unsigned char byte = 0;
	ssize_t n = sock_recv_fd(channel[0], &byte, 1, ret_fd);

	if (n != 1)
		return n < 0 ? (int)n : -EPIPE;
	return byte;
}

static bool known(unsigned flags)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, NULL) < 0 && errno == EFAULT;
}

static void find_flags(void)
{
	struct seccomp_notif_sizes s;

	flags_alone = known(FLAG_SPEC_ALLOW) ? FLAG_SPEC_ALLOW : 0;
	flags_listener = 0;
	/* the kernel fills a struct of its own size */
	if (!known(FLAG_LISTENER) || syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &s) < 0 ||
	    s.seccomp_notif > sizeof(struct seccomp_notif) ||
	    s.seccomp_notif_resp > sizeof(struct seccomp_notif_resp))
		return;
	flags_listener = flags_alone | FLAG_LISTENER;
	if (known(flags_listener | FLAG_WAIT_KILLABLE))
		flags_listener |= FLAG_WAIT_KILLABLE;
}

static _Noreturn void try_all(void)
{
	unsigned char found = install_profile(CONFINE_DEFAULT, false) == 0 ? CAN_DEFAULT : 0;
	int fd = -1;

	if (no_new_privs() == 0) {
		if (flags_listener)
			fd = install_profile(CONFINE_RESTRICTED, true);
		if (fd >= 0)
			found |= CAN_RESTRICTED | CAN_COUNT;
		else if (install_profile(CONFINE_RESTRICTED, false) == 0)
			found |= CAN_RESTRICTED;
	}
	_exit(sock_send_fd(channel[1], &found, 1, fd) < 0);
}

/* Without the hang-up when nobody is left (Linux 5.9), listeners would pile up. */
static bool hangs_up(int fd)
{
	struct pollfd p = { .fd = fd };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLHUP);
}

static void probe(void)
{
	AUTO_FD fd = -1;
	pid_t pid = fork();
	int r;

	if (pid == 0)
		try_all();
	if (pid < 0)
		return;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	r = receive(&fd);
	can = r < 0 ? 0 : (unsigned)r;
	if ((can & CAN_COUNT) && !hangs_up(fd))
		can &= ~(unsigned)CAN_COUNT;
}

static int open_channel(void)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		/* above 2: there the child has put its own before it sends */
		int high = fcntl(channel[i], F_DUPFD_CLOEXEC, 3);

		if (high < 0)
			return -errno;
		(void)close(channel[i]);
		channel[i] = high;
	}
	return 0;
}

void confine_start(struct loop *l)
{
	deny_init(l);
	can = 0;
	if (open_channel() < 0) {
		log_warn("commands run unconfined: no socket pair: %s", strerror(errno));
		return;
	}
	find_flags();
	probe();
	if (!(can & CAN_DEFAULT))
		log_warn(
			"commands run without a seccomp filter unless they ask for \"restricted\": %s",
			can ? "agentd has not CAP_SYS_ADMIN" : "the kernel has none");
}

void confine_stop(void)
{
	deny_stop();
	fd_close(&channel[0]);
	fd_close(&channel[1]);
	can = 0;
}

int confine_prepare(struct confine *c, bool given, enum confine_profile asked, struct err *e)
{
	enum confine_profile p = asked;

	if (!given)
		p = confine_can(CONFINE_DEFAULT) ? CONFINE_DEFAULT : CONFINE_NONE;
	if (!confine_can(p))
		return err_set(e, ERR_INVALID, 0, "seccomp: \"%s\" is impossible here: %s",
			       confine_name(p),
			       can ? "agentd has not CAP_SYS_ADMIN" : "the kernel has no filters");
	c->profile = p;
	c->counted = p != CONFINE_NONE && confine_counts() && deny_room();
	return 0;
}

void confine_started(const struct confine *c)
{
	int fd;

	if (!c->counted || receive(&fd) < 0 || fd < 0)
		return;
	/* of a program that could not be started it hangs up at once */
	deny_listen(fd, c->profile);
}
