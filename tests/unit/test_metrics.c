/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: agentd/metrics.c agentd/ports.c agentd/cgroup.c */
#include "agentd/metrics.h"

#include <arpa/inet.h>
#include <errno.h>

#include "agentd/app.h"
#include "agentd/exec.h"
#include "agentd/ports.h"
#include "tap.h"

/* Numbers of kernels and file systems that a test machine does not have. */

static struct exec_stats stats = { .started = 7 };

const struct exec_stats *exec_get_stats(void)
{
	return &stats;
}

unsigned exec_running(void)
{
	return 2;
}

unsigned exec_busy(void)
{
	return 3;
}

static void test_disk(void)
{
	struct metrics m = { 0 };
	struct statfs s = {
		.f_bsize = 4096, .f_frsize = 4096, .f_blocks = 1000, .f_bfree = 300, .f_bavail = 200
	};

	metrics_disk(&m, &s);
	ok(m.disk_total == 4096000 && m.disk_used == 700 * 4096 && m.disk_available == 200 * 4096,
	   "a disk");
	s.f_frsize = 0;
	metrics_disk(&m, &s);
	ok_int(m.disk_total, 4096000, "f_bsize where there is no f_frsize");
	s.f_frsize = 65536;
	s.f_blocks = UINT64_MAX / 2;
	s.f_bfree = s.f_bavail = UINT64_MAX / 2 - 1;
	metrics_disk(&m, &s);
	ok(m.disk_total == UINT64_MAX - 1 && m.disk_available == UINT64_MAX - 1 &&
		   m.disk_used == 65536,
	   "E87: 2^79 bytes do not wrap");
	s.f_blocks = 1000;
	s.f_bfree = 2000;
	s.f_bavail = (fsblkcnt_t)-5;
	metrics_disk(&m, &s);
	ok(m.disk_used == 0 && m.disk_available == 0,
	   "more free than there is, less than nothing available");
}

static void test_cpu(void)
{
	struct metrics m = { 0 };

	metrics_read_cpu(&m, "cpu  100 10 50 900 20 5 5 7 3 0\ncpu0 1 1\n", 100);
	ok(m.user == 1100000 && m.system == 600000 && m.busy == 1700000 && m.iowait == 200000 &&
		   m.steal == 70000,
	   "ticks become microseconds");
	memset(&m, 0, sizeof(m));
	metrics_read_cpu(&m, "cpu  18446744073709551615 0 0 0", 100);
	metrics_read_cpu(&m, "intr 1", 100);
	metrics_read_cpu(&m, "", 100);
	metrics_read_cpu(&m, "cpu  1 2", 0);
	ok_int(m.busy, 0, "nonsense is 0");
}

static void test_memory(void)
{
	struct metrics m = { 0 };

	metrics_read_memory(
		&m, "MemTotal:  1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\nBuffers: 1 kB\n"
		    "SwapCached: 9 kB\nCached: 50 kB\nSwapTotal: 10 kB\nSwapFree: 4 kB\n");
	ok(m.mem_total == 1024000 && m.mem_used == 600 * 1024 && m.mem_available == 400 * 1024 &&
		   m.mem_cached == 50 * 1024 && m.swap_used == 6 * 1024,
	   "meminfo");
	metrics_read_memory(&m, "MemTotal: 99999999999999999999 kB\nMemAvailable: 5 kB");
	ok(m.mem_total == 0 && m.mem_used == 0 && m.swap_total == 0, "nonsense is 0");
}

static void test_net(void)
{
	static char many[32768] = "";
	struct metrics m = { 0 };

	metrics_read_net(&m, "Inter-|   Receive  |  Transmit\n face |bytes packets\n"
			     "    lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n"
			     "  eth0:123456789012 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n"
			     "wg-\"x\\\n: 1 2\n");
	ok(m.nets == 1 && !strcmp(m.net[0].name, "eth0") && m.net[0].rx_bytes == 123456789012 &&
		   m.net[0].rx_packets == 2 && m.net[0].rx_errors == 3 && m.net[0].tx_bytes == 9 &&
		   m.net[0].tx_packets == 10 && m.net[0].tx_errors == 11,
	   "interfaces but lo");
	for (int i = 0; i < 500; i++)
		snprintf(many + strlen(many), 64, "veth%d: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n", i);
	metrics_read_net(&m, many);
	ok_int(m.nets, LIMIT_INTERFACES, "no more than there is room for");
	metrics_read_net(&m, NULL);
	metrics_read_net(&m, ":\n::\n  :");
	ok_int(m.nets, 0, "none");
}

static const char *address(const struct port *p)
{
	static char text[INET6_ADDRSTRLEN];

	return inet_ntop(p->v6 ? AF_INET6 : AF_INET, p->addr, text, sizeof(text));
}

static void test_ports(void)
{
	struct port p;
	bool more;

	ok(!ports_read_line("  sl  local_address rem_address   st tx_queue", false, false, &p,
			    &more) &&
		   more,
	   "the heading");
	ok(ports_read_line(
		   "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
		   "12345 1 ffff 100 0 0 10 0",
		   false, false, &p, &more) &&
		   more && p.port == 8080 && p.inode == 12345 && !strcmp(address(&p), "127.0.0.1"),
	   "a listener");
	ok(!ports_read_line(
		   "   1: 0100007F:1F90 0100007F:A000 01 00000000:00000000 00:00000000 00000000     0        0 "
		   "12346 1",
		   false, false, &p, &more) &&
		   !more,
	   "a connection ends the list");
	ok(ports_read_line(
		   "   0: 000080FE00000000FF005450B6FD1DFE:0050 00000000000000000000000000000000:0000 0A "
		   "00000000:00000000 00:00000000 00000000  1000        0 99 1",
		   false, true, &p, &more) &&
		   p.port == 80 && !strcmp(address(&p), "fe80::5054:ff:fe1d:fdb6"),
	   "IPv6");
	ok(ports_read_line(
		   " 1000: 00000000:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 5 2",
		   true, false, &p, &more) &&
		   p.port == 53 && p.udp,
	   "UDP without a peer");
	ok(!ports_read_line(
		   " 1000: 0100007F:0035 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 5 2",
		   true, false, &p, &more) &&
		   more,
	   "UDP with one");
	ok(!ports_read_line("", false, false, &p, &more) &&
		   !ports_read_line("   0: 01:1F90 0:0 0A 0:0 0:0 0 0 0 1", false, false, &p,
				    &more) &&
		   !ports_read_line(
			   "   0: 0100007F0100007F0100007F0100007F0100007F0100007F:1F90 0:0 0A 0:0 0:0 0 0 0 1",
			   false, true, &p, &more),
	   "nonsense");
}

static const struct httpd_route none[] = { { .pattern = NULL } };

static void test_here(void)
{
	static struct app a;
	static struct metrics m;
	static struct ports p;

	struct httpd_config c = { .name = "test", .routes = none, .max_conns = 1, .idle_s = 1 };

	if (loop_init(&a.loop) < 0 || httpd_listen_tcp("127.0.0.1", 0, &c.listen_fd) < 0 ||
	    httpd_start(&a.loop, &c, &a.tcp) < 0)
		abort();
	a.requests = 5;
	metrics_collect(&a, &m);
	ok(m.cpus > 0 && m.busy > 0 && m.mem_total > m.mem_used && m.disk_total > 0 &&
		   m.tasks > 0 && m.rss > 0 && m.fds > 0 && m.uptime_ms > 0 && m.interval_ms > 0 &&
		   m.cpu_percent <= 100,
	   "this machine");
	ok(m.requests == 5 && m.ex_started == 7 && m.ex_running == 2 && m.ex_slots == 3,
	   "and this agent");
	ports_collect(&p);
	for (unsigned i = 1; i < p.count; i++)
		if (p.list[i].port < p.list[i - 1].port)
			p.count = LIMIT_PORTS + 1;
	ok(p.count > 0 && p.count <= LIMIT_PORTS, "ports are sorted");
	httpd_stop(a.tcp);
	loop_done(&a.loop);
}

int main(void)
{
	test_disk();
	test_cpu();
	test_memory();
	test_net();
	test_ports();
	test_here();
	return tap_done();
}
