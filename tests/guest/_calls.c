/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * calls [n|i|x]NUMBER[,ARGUMENT]...: makes each system call, further arguments being -1, and prints its errno (0: it succeeded) on a
 * line. n: the native ABI; i: i386's, through int 0x80; x: x32's. Built by agentd_seccomp.py.
 */
static long call_i386(const long a[6], long number)
{
#if defined(__x86_64__)
	long r;

	__asm__ volatile("int $0x80"
			 : "=a"(r)
			 : "a"(number), "b"(a[0]), "c"(a[1]), "d"(a[2]), "S"(a[3]), "D"(a[4])
			 : "memory", "cc", "r8", "r9", "r10", "r11");
	r = (int)r;
	if (r >= 0 || r < -4095)
		return r;
	errno = (int)-r;
#else
	(void)a;
	(void)number;
	errno = ENOTSUP;
#endif
	return -1;
}

static long call(const char *word)
{
	long a[6] = { -1, -1, -1, -1, -1, -1 };
	char *p;
	long number = strtol(word + 1, &p, 0);

	for (int i = 0; i < 6 && *p == ','; i++)
		a[i] = (long)strtoull(p + 1, &p, 0);
	if (word[0] == 'i')
		return call_i386(a, number);
	if (word[0] == 'x')
		number |= 0x40000000;
	return syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		printf("%d\n", call(argv[i]) == -1 ? errno : 0);
	return 0;
}
