/* SPDX-License-Identifier: Apache-2.0 */
#include "clone3.h"

#include <errno.h>
#include <sys/syscall.h>

/*
 * A child with a stack of its own comes out of the system call with nothing on that stack, so it cannot
 * return into C. libcs have an assembler function for clone(2) and none for clone3(2), without which no
 * process is born into a cgroup. The system call keeps every register but those that are listed; the child
 * goes from it straight into FN.
 */

#if defined(__x86_64__)

static long call(const struct clone_args *a, int (*fn)(void *arg), void *arg)
{
	register void *child_arg __asm__("r8") = arg;
	register int (*child_fn)(void *) __asm__("r9") = fn;
	long r;

	__asm__ volatile("syscall\n\t"
			 "testq %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xorl %%ebp, %%ebp\n\t" /* the end for who walks up the stack */
			 "movq %[arg], %%rdi\n\t"
			 "callq *%[fn]\n\t"
			 "hlt\n"
			 "1:"
			 : "=a"(r)
			 : "0"((long)SYS_clone3), "D"(a),
			   "S"(sizeof(*a)), [arg] "r"(child_arg), [fn] "r"(child_fn)
			 : "rcx", "r11", "memory");
	return r;
}

#elif defined(__aarch64__)

static long call(const struct clone_args *a, int (*fn)(void *arg), void *arg)
{
	register long number __asm__("x8") = SYS_clone3;
	register long x0 __asm__("x0") = (long)a;
	register long size __asm__("x1") = (long)sizeof(*a);
	register void *child_arg __asm__("x9") = arg;
	register int (*child_fn)(void *) __asm__("x10") = fn;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, xzr\n\t"
			 "mov x0, %[arg]\n\t"
			 "blr %[fn]\n\t"
			 "brk #0\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(number), "r"(size), [arg] "r"(child_arg), [fn] "r"(child_fn)
			 : "memory");
	return x0;
}

#else

static long call(const struct clone_args *a, int (*fn)(void *arg), void *arg)
{
	(void)a;
	(void)fn;
	(void)arg;
	return -ENOSYS;
}

#endif

pid_t clone3_call(const struct clone_args *a, int (*fn)(void *arg), void *arg)
{
	long r = call(a, fn, arg);

	if (r < 0) {
		errno = (int)-r;
		return -1;
	}
	return (pid_t)r;
}
