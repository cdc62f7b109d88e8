/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/cli/ports.c */
#include "host/cli/ports.h"

#include <errno.h>
#include <string.h>

#include "lib/compiler.h"
#include "tap.h"

int main(void)
{
	static const struct {
		const char *text, *address;
		unsigned local, remote;
	} good[] = {
		{ "80", "", 80, 80 },
		{ "8080:80", "", 8080, 80 },
		{ "0:80", "", 0, 80 },
		{ ":80", "", 0, 80 },
		{ "1:65535", "", 1, 65535 },
		{ "127.0.0.2:8080:80", "127.0.0.2", 8080, 80 },
		{ "0.0.0.0::80", "0.0.0.0", 0, 80 },
		{ "[::1]:8080:80", "::1", 8080, 80 },
		{ "00080", "", 80, 80 },
	};
	static const char *const bad[] = {
		"",	  "0",	     "80:",    "80:0",		 "65536",
		"-1",	  "+80",     "80 ",    "0x50",		 "a:b",
		"::80",	  "::1:80",  "x:1:80", "localhost:1:80", "[::1:1:80",
		"[]:1:1", "1:2:3:4", "000080", "1.2.3:1:80",	 "[1:80:80"
	};
	struct port_spec p;

	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ok(ports_parse(good[i].text, &p) == 0 && p.local == good[i].local &&
			   p.remote == good[i].remote && !strcmp(p.address, good[i].address),
		   "'%s' is %s %u to %u", good[i].text, good[i].address, good[i].local,
		   good[i].remote);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok(ports_parse(bad[i], &p) == -EINVAL, "'%s' is refused", bad[i]);
	ok(ports_check_address("localhost") < 0 && ports_check_address("::1") == 0,
	   "an address is numeric");
	return tap_done();
}
