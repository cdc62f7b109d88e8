/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: agentd/private.c */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/private.h"
#include "lib/jsn.h"
#include "lib/sock.h"
#include "tap.h"

/* An agentd of a few variables. */
static struct loop loop;
static struct private *priv;
static bool gate, refuse_check, refuse_identity;
static unsigned busy;
static int checks, identities, terminations;
static char generation[64], token[64];

static void admit(void *arg, bool open)
{
	(void)arg;
	gate = open;
}

static unsigned in_flight(void *arg)
{
	(void)arg;
	return busy;
}

static int exec_check(void *arg, struct err *e)
{
	(void)arg;
	checks++;
	return refuse_check ? err_set(e, ERR_FULL, EAGAIN, "table is full") : 0;
}

static int identity(void *arg, const struct private_identity *id, struct err *e)
{
	(void)arg;
	if (refuse_identity)
		return err_set(e, ERR_IO, ENOMEM, "no memory");
	identities++;
	(void)snprintf(generation, sizeof(generation), "%s", id->generation);
	(void)snprintf(token, sizeof(token), "%s", id->agent_token ? id->agent_token : "");
	return 0;
}

static void terminate(void *arg)
{
	(void)arg;
	terminations++;
}

static const struct private_ops ops = {
	"1.2.3", admit, in_flight, exec_check, identity, terminate
};

static char path[] = "/tmp/asb-test-private.XXXXXX/deep/agentd.sock";

static void spin(int ms)
{
	int64_t end = loop_now() + ms * 1000000LL;

	while (loop_now() < end)
		if (loop_once(&loop, 5) < 0)
			abort();
}

static int dial(void)
{
	int fd;

	if (sock_connect(path, &fd) < 0)
		abort();
	return fd;
}

static void put(int fd, const char *s)
{
	if (write(fd, s, strlen(s)) != (ssize_t)strlen(s))
		abort();
	spin(15);
}

/* What has arrived: "" when nothing, "EOF" at the end. Static. */
static const char *get(int fd)
{
	static char b[4096];
	ssize_t k = read(fd, b, sizeof(b) - 1);

	b[k > 0 ? k : 0] = '\0';
	return k == 0 || (k < 0 && errno == ECONNRESET) ? "EOF" : b;
}

#define GENERATION "\"generation\":\"0123456789abcdef0123456789abcdef\""

static const char *ask(const char *line)
{
	int fd = dial();
	const char *s;

	put(fd, line);
	s = get(fd);
	(void)close(fd);
	return s;
}

static void test_simple(void)
{
	struct stat st;

	ok(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600, "the socket is for root only");
	ok_str(ask("{\"op\":\"ping\"}\n"), "{\"ok\":true,\"version\":\"1.2.3\"}\n", "ping");
	ok_str(ask("{\"op\":\"ping\"}\n{\"op\":\"reopen\"}\n"),
	       "{\"ok\":true,\"version\":\"1.2.3\"}\n{\"ok\":true}\n", "two on a connection");
	ok_str(ask("{\"op\":\"nonesuch\"}\n"), "{\"ok\":false,\"message\":\"unknown op\"}\n",
	       "an unknown op");
	ok_str(ask("{}\n"), "{\"ok\":false,\"message\":\"unknown op\"}\n", "none at all");
	ok_str(ask("[]\n"), "EOF", "no object: closed");
	ok_str(ask("{\"op\":7}\n"), "EOF", "an op that is a number: closed");
	ok_str(ask("GET / HTTP/1.1\r\n"), "EOF", "HTTP: closed");
	ok_str(ask("{\"op\":\"terminate\"}\n"), "{\"ok\":true}\n", "terminate");
	ok_int(terminations, 1, "was done");
}

static void test_long(void)
{
	char *big = calloc(1, 70000);
	int fd = dial();

	memset(big, ' ', 69999);
	ignore_result((int)write(fd, big, 69999)); /* it is cut off before the end */
	spin(30);
	ok_str(get(fd), "EOF", "a line over the cap: closed");
	(void)close(fd);
	free(big);
}

static void test_identity(void)
{
	static const char *const bad[] = {
		"{\"op\":\"identity\"}\n",
		"{\"op\":\"identity\",\"generation\":\"0123\"}\n",
		"{\"op\":\"identity\",\"generation\":\"0123456789ABCDEF0123456789ABCDEF\"}\n",
		"{\"op\":\"identity\"," GENERATION ",\"env\":[]}\n",
		"{\"op\":\"identity\"," GENERATION ",\"env\":{\"A\":1}}\n",
		"{\"op\":\"identity\"," GENERATION ",\"env\":{\"A=\":\"\"}}\n",
		"{\"op\":\"identity\"," GENERATION ",\"agent_token\":\"\"}\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(!strncmp(ask(bad[i]), "{\"ok\":false", 11), "refused: %zu", i);
	ok_int(identities, 0, "nothing was taken over");
	ok_str(ask("{\"op\":\"identity\"," GENERATION
		   ",\"env\":{\"A\":\"b\"},\"agent_token\":\"t\"}\n"),
	       "{\"ok\":true}\n", "a good one");
	ok(identities == 1 && !strcmp(token, "t") && !strncmp(generation, "0123", 4),
	   "was taken over");
	refuse_identity = true;
	ok(strstr(ask("{\"op\":\"identity\"," GENERATION "}\n"), "no memory") != NULL,
	   "agentd's own no");
	refuse_identity = false;
}

static void test_check(void)
{
	int a = dial(), b = dial();

	put(a, "{\"op\":\"exec_check\"}\n{\"op\":\"ping\"}\n");
	put(b, "{\"op\":\"exec_check\"}\n");
	ok(checks == 1 && !*get(a) && !*get(b), "two wait for one program");
	private_exec_checked(priv, 0);
	spin(15);
	ok_str(get(a), "{\"ok\":true}\n{\"ok\":true,\"version\":\"1.2.3\"}\n",
	       "its end answers, and then the next request");
	ok_str(get(b), "{\"ok\":true}\n", "both of them");
	put(a, "{\"op\":\"exec_check\"}\n");
	(void)close(a);
	spin(15);
	private_exec_checked(priv, -ENOENT);
	put(b, "{\"op\":\"exec_check\"}\n");
	private_exec_checked(priv, -ENOENT);
	spin(15);
	ok(strstr(get(b), "No such file") != NULL,
	   "a failure is told; a waiter that left is forgotten");
	refuse_check = true;
	put(b, "{\"op\":\"exec_check\"}\n");
	ok(strstr(get(b), "table is full") != NULL, "one that cannot be started");
	refuse_check = false;
	(void)close(b);
}

static void test_drain(void)
{
	int a = dial(), b = dial();

	gate = true;
	busy = 2;
	put(a, "{\"op\":\"drain\",\"timeout_ms\":5000,\"reopen_ms\":150}\n");
	ok(!gate && !*get(a), "the gate shuts, and it waits");
	put(b, "{\"op\":\"drain\",\"timeout_ms\":30,\"reopen_ms\":200}\n");
	spin(40);
	ok_str(get(b), "{\"ok\":true,\"drained\":false,\"in_flight\":2}\n",
	       "a short one ends at its time");
	busy = 0;
	private_idle(priv);
	ok_str(get(a), "{\"ok\":true,\"drained\":true,\"in_flight\":0}\n",
	       "the other when nothing is in flight");
	ok(!gate, "still shut");
	spin(250);
	ok(gate, "until it reopens by itself");
	put(a, "{\"op\":\"drain\",\"timeout_ms\":1000}\n");
	ok_str(get(a), "{\"ok\":true,\"drained\":true,\"in_flight\":0}\n",
	       "nothing in flight: at once");
	ok(!gate, "shut");
	put(b, "{\"op\":\"reopen\"}\n");
	ok(gate && !strcmp(get(b), "{\"ok\":true}\n"), "reopened");
	busy = 1;
	put(a, "{\"op\":\"drain\",\"timeout_ms\":0}\n");
	ok_str(get(a), "{\"ok\":true,\"drained\":false,\"in_flight\":1}\n",
	       "a timeout of 0 does not wait");
	put(a, "{\"op\":\"drain\",\"timeout_ms\":5000,\"reopen_ms\":60}\n");
	(void)close(a);
	spin(150);
	ok(gate, "a drainer that dies leaves no gate shut");
	put(b, "{\"op\":\"drain\",\"timeout_ms\":-1}\n");
	ok(!strncmp(get(b), "{\"ok\":false", 11) && gate, "a bad time changes nothing");
	put(b, "{\"op\":\"drain\",\"timeout_ms\":61000}\n");
	ok(!strncmp(get(b), "{\"ok\":false", 11) && gate, "nor one that is too long");
	busy = 0;
	(void)close(b);
}

static void test_many(void)
{
	int fd[PRIVATE_CONNS_MAX + 1];

	spin(30);
	for (int i = 0; i <= PRIVATE_CONNS_MAX; i++)
		fd[i] = dial();
	spin(50);
	ok_str(get(fd[PRIVATE_CONNS_MAX]), "EOF", "one connection too many is closed");
	put(fd[0], "{\"op\":\"ping\"}\n");
	ok_str(get(fd[0]), "{\"ok\":true,\"version\":\"1.2.3\"}\n", "the others are served");
	for (int i = 0; i <= PRIVATE_CONNS_MAX; i++)
		(void)close(fd[i]);
	spin(50);
	ok_str(ask("{\"op\":\"reopen\"}\n"), "{\"ok\":true}\n", "and make room");
}

int main(void)
{
	struct err e = ERR_INIT;
	struct private *p2;
	char dir[sizeof(path)], too_long[300];

	memcpy(dir, path, sizeof(path));
	*strstr(dir, "/deep") = '\0';
	if (!mkdtemp(dir) || loop_init(&loop) < 0)
		return 1;
	memcpy(path, dir, strlen(dir));
	ok_int(private_start(&loop, path, &ops, NULL, &priv, &e), 0,
	       "starts, and makes the folder");
	test_simple();
	test_long();
	test_identity();
	test_check();
	test_drain();
	test_many();
	private_stop(priv);
	ok(access(path, F_OK) < 0, "the socket goes");
	memset(too_long, 'x', sizeof(too_long));
	too_long[0] = '/';
	too_long[299] = '\0';
	ok(private_start(&loop, too_long, &ops, NULL, &p2, &e) < 0, "a path that does not fit: %s",
	   e.msg);
	private_stop(NULL);
	loop_done(&loop);
	*strstr(path, "/agentd") = '\0';
	(void)rmdir(path);
	(void)rmdir(dir);
	return tap_done();
}
