/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/agent/?*.c host/net/?*.c host/backend.c */
/*
 * A hostile guest that answers a client of its agent. The first byte: what the client wants. Then come the answers, one for each
 * connection, between bytes of 0xff: the first byte of each says which status, or that the rest is the answer as it is, head and
 * all. Whatever it says, the client comes to an end, and a failure has words.
 */
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "fuzz/confined.h"
#include "fuzz/fuzz.h"
#include "host/agent/ask.h"
#include "host/agent/copy_int.h"
#include "host/agent/exec.h"
#include "host/agent/tail.h"
#include "host/backend.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/str.h"

#define HOME	"build/fuzz/guest.d"
#define ENDS	0xff
#define ANSWERS 16
#define TRIES	5    /* pauses between them grow */
#define RUNS	0x80 /* the sandbox runs on when its agent is gone: the client tries again */

static const uint8_t *rest;
static size_t left;
static unsigned given;
static int peers[ANSWERS];
static bool runs;

static int info(const char *id, struct sandbox_info *ret, struct err *e)
{
	(void)id;
	(void)e;
	*ret = (struct sandbox_info){ .state = runs && given < TRIES && left ? SANDBOX_RUNNING
									     : SANDBOX_TERMINATED };
	return 0;
}

/* The head of an answer with N bytes behind it. */
static size_t head(unsigned kind, size_t n, char out[static 128])
{
	static const int statuses[] = { 200, 201, 200, 204, 400, 401, 403, 404,
					409, 410, 416, 429, 500, 503, 100, 302 };
	int status = statuses[kind % 16];

	if (kind & 0x40)
		return 0;
	if (kind & 0x20)
		return (size_t)snprintf(out, 128, "HTTP/1.1 %d X\r\nConnection: close\r\n\r\n",
					status);
	return (size_t)snprintf(out, 128, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n", status,
				n);
}

/* The next answer is in the socket before the client asks. */
static int answer(const char *id, uint16_t port, int64_t deadline_ns, int *ret_fd, int *ret_end,
		  struct err *e)
{
	const uint8_t *end = left ? memchr(rest, ENDS, left) : NULL;
	const size_t n = end ? (size_t)(end - rest) : left;
	const uint8_t *p = rest;
	size_t k;
	char h[128];
	int sv[2];

	(void)id;
	(void)port;
	(void)deadline_ns;
	rest += end ? n + 1 : n;
	left = n ? left - (end ? n + 1 : n) : 0; /* an empty one is the last */
	if (!n || given == ANSWERS)
		return err_set(e, ERR_UNAVAILABLE, ECONNREFUSED, "it has ended");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		abort();
	k = head(p[0], n - 1, h);
	if ((k && send(sv[1], h, k, MSG_DONTWAIT) < 0) ||
	    (n > 1 && send(sv[1], p + 1, n - 1, MSG_DONTWAIT) < 0))
		abort();
	(void)shutdown(sv[1], SHUT_WR);
	peers[given++] = sv[1];
	*ret_fd = sv[0];
	if (ret_end)
		*ret_end = -1;
	return 0;
}

const struct backend backend_local = { .name = "local", .info = info, .connect = answer };

/* --- what clients want --- */

static void run(bool attach, enum exec_watch watch)
{
	static char x[] = "x";
	char *argv[] = { x, NULL };
	const struct exec_spec s = { .backend = &backend_local,
				     .id = "local-0",
				     .argv = argv,
				     .argc = 1,
				     .attach = attach ? "0123456789abcdef0123456789abcdef" : NULL,
				     .watch = watch,
				     .capture = true,
				     .capture_max = 4096 };
	struct exec_result res;
	struct err e = ERR_INIT;
	int r = exec_run(&s, &res, &e);

	if ((r < 0 && !e.msg[0]) || res.output[0].len > 4096 || res.output[1].len > 4096 ||
	    (r == 0 && res.end == EXEC_ENDED && (res.exit_code < 0 || res.exit_code > 255)))
		abort();
	exec_result_done(&res);
}

static void ask(void)
{
	const struct ask a = {
		.backend = &backend_local, .id = "local-0", .method = "GET", .path = "/v1/info"
	};
	cJSON *doc = NULL;
	struct err e = ERR_INIT;
	int r = agent_ask(&a, &doc, &e);

	if ((r < 0) != (doc == NULL) || (r < 0 && !e.msg[0]))
		abort();
	cJSON_Delete(doc);
}

static void kind(void)
{
	const struct copy_spec s = { .backend = &backend_local, .id = "local-0" };
	char *path = malloc(COPY_PATH_MAX + 1); /* of exactly that size */
	enum copy_kind k;
	struct err e = ERR_INIT;

	if (!path)
		abort();
	memcpy(path, "/a/b", 5);
	if (copy_guest_kind(&s, path, true, &k, &e) < 0 && !e.msg[0])
		abort();
	free(path);
}

static void copy(bool in)
{
	const struct copy_spec s = { .backend = &backend_local,
				     .id = "local-0",
				     .guest = "/a/b",
				     .local = in ? "fuzz/fuzz.h" : HOME "/out" };
	struct copy_count n;
	struct err e = ERR_INIT;

	if ((in ? copy_in : copy_out)(&s, &n, &e) < 0 && !e.msg[0])
		abort();
	if (!in)
		ignore_result(fd_remove_tree(HOME "/out"));
}

static void tail(void)
{
	uint64_t offset;
	struct err e = ERR_INIT;

	if (tail_offset(&backend_local, "local-0", "0123456789abcdef0123456789abcdef", 10, &offset,
			&e) < 0 &&
	    !e.msg[0])
		abort();
}

static bool start(void)
{
	int null;

	if (!fuzz_confine("build/fuzz"))
		return false;
	(void)mkdir(HOME, 0755);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (mount("none", HOME, "tmpfs", 0, "size=16m") < 0 || null < 0 ||
	    dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		abort();
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	if (!fuzz_started(start) || n < 1 || n > 100000)
		return 0;
	rest = p + 1;
	left = n - 1;
	given = 0;
	runs = p[0] & RUNS;
	switch (p[0] % 8) {
	case 0:
		run(false, EXEC_TAKE_PART);
		break;
	case 1:
		run(true, EXEC_WATCH_NOW);
		break;
	case 2:
		run(true, EXEC_WATCH_END);
		break;
	case 3:
		ask();
		break;
	case 4:
		kind();
		break;
	case 5:
		copy(false);
		break;
	case 6:
		copy(true);
		break;
	default:
		tail();
	}
	while (given)
		(void)close(peers[--given]);
	return 0;
}
