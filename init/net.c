/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/fd.h"

#define ETH	"eth0"
#define ADDRESS "10.0.2.15"
#define NETMASK "255.255.255.0"
#define GATEWAY "10.0.2.2"
#define RESOLV	"nameserver 10.0.2.3\n"
#define WAIT_MS 2000

static void name_if(struct ifreq *r, const char *name)
{
	*r = (struct ifreq){ 0 };
	memcpy(r->ifr_name, name, strlen(name) + 1);
}

static struct sockaddr make_addr(const char *dotted)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct sockaddr out;

	(void)inet_pton(AF_INET, dotted, &a.sin_addr);
	memcpy(&out, &a, sizeof(out)); /* both are 16 bytes on Linux */
	return out;
}

static int up(int s, const char *name, struct err *e)
{
	struct ifreq r;

	name_if(&r, name);
	r.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(s, SIOCSIFFLAGS, &r) < 0)
		return err_set(e, ERR_IO, errno, "bring %s up", name);
	return 0;
}

/* The card of a module's driver appears a moment later. */
static int wait_for_eth(int s, struct err *e)
{
	struct ifreq r;

	for (int ms = 0;; ms++) {
		name_if(&r, ETH);
		if (ioctl(s, SIOCGIFINDEX, &r) == 0)
			return 0;
		if (errno != ENODEV || ms == WAIT_MS)
			return err_set(e, ERR_IO, errno, "find " ETH);
		(void)poll(NULL, 0, 1);
	}
}

static int eth_setup(int s, struct err *e)
{
	struct rtentry rt = { .rt_flags = RTF_UP | RTF_GATEWAY };
	struct ifreq r;
	int ret = wait_for_eth(s, e);

	if (ret < 0)
		return ret;
	/* Nobody else is on this link: duplicate address detection would only hold packets back for
	 * a second. */
	ignore_result(fd_write_str(AT_FDCWD, "/proc/sys/net/ipv6/conf/" ETH "/accept_dad",
				   "0")); /* no IPv6 */
	name_if(&r, ETH);
	r.ifr_addr = make_addr(ADDRESS);
	if (ioctl(s, SIOCSIFADDR, &r) < 0)
		return err_set(e, ERR_IO, errno, "give " ETH " its address");
	r.ifr_addr = make_addr(NETMASK);
	if (ioctl(s, SIOCSIFNETMASK, &r) < 0)
		return err_set(e, ERR_IO, errno, "give " ETH " its netmask");
	ret = up(s, ETH, e);
	if (ret < 0)
		return ret;
	rt.rt_dst = make_addr("0.0.0.0");
	rt.rt_genmask = make_addr("0.0.0.0");
	rt.rt_gateway = make_addr(GATEWAY);
	if (ioctl(s, SIOCADDRT, &rt) < 0 && errno != EEXIST)
		return err_set(e, ERR_IO, errno, "add the default route");
	return 0;
}

/* An image that names servers keeps them. A link into nowhere (systemd-resolved's) counts as none.
 */
static int resolv_setup(struct err *e)
{
	AUTO_BUF b;
	AUTO_FD fd = -1;
	int r;

	buf_init(&b, 4096);
	r = fd_read_file(AT_FDCWD, "/etc/resolv.conf", &b);
	if (r == -ENOSPC || (b.p && b.p[strspn(b.p, " \t\n")]))
		return 0;
	if (unlink("/etc/resolv.conf") < 0 && errno != ENOENT)
		return err_set(e, ERR_IO, errno, "replace /etc/resolv.conf");
	fd = open("/etc/resolv.conf", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	r = fd < 0 ? -errno : fd_write_all(fd, RESOLV, strlen(RESOLV));
	return r < 0 ? err_set(e, ERR_IO, -r, "write /etc/resolv.conf") : 0;
}

int net_setup(enum cmdline_net net, struct err *e)
{
	AUTO_FD s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int r;

	if (s < 0)
		return err_set(e, ERR_IO, errno, "open a socket");
	r = up(s, "lo", e);
	if (r < 0 || net == CMDLINE_NET_NONE)
		return r;
	r = eth_setup(s, e);
	return r < 0 ? r : resolv_setup(e);
}
