/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/signame.h"

#include <signal.h>

#include "tap.h"

int main(void)
{
	ok_int(signame_number("TERM"), SIGTERM, "a name");
	ok_int(signame_number("SIGWINCH"), SIGWINCH, "a name with SIG");
	ok_int(signame_number("SIG"), 0, "SIG alone");
	ok_int(signame_number("term"), 0, "small letters are no name here");
	ok_int(signame_number("SIGSIGHUP"), 0, "SIG twice");
	ok_int(signame_number(""), 0, "nothing");
	ok_str(signame(9), "KILL", "the name of 9");
	ok(signame(0) == NULL && signame(64) == NULL, "numbers without a name");
	for (int i = 1; i < 32; i++)
		ok(i == 16 ? !signame(i) : signame(i) && signame_number(signame(i)) == i,
		   "number, name and number of %d", i);
	return tap_done();
}
