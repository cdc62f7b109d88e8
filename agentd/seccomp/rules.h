/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_SECCOMP_RULES_H
#define AGENTD_SECCOMP_RULES_H

#include <errno.h>
#include <stdint.h>

/*
 * The one table of what a command may not ask the kernel for. From it come the filters (gen.c), the lists in
 * docs/security-model.md ("gen doc" prints them) and the tests, which try every line.
 *
 * `default` denies what no ordinary program needs. Compilers, package managers, sudo and nested containers must go on working,
 * so what is denied there is what acts on the kernel as a whole, not on what a process owns. `restricted` denies more.
 * Both let everything else through: a call that a later kernel brings is allowed until it has a line here.
 *
 * A reader can be anything that is C: the test includes this too.
 */
enum rule_in { IN_BOTH, IN_RESTRICTED };

enum rule_when {
	ALWAYS,
	BITS,  /* (argument & mask) == value */
	ABOVE, /* argument > value, in 64 bits */
};

struct rule {
	enum rule_in in;
	const char *
		calls; /* names that libseccomp knows (2.5.4: up to Linux 5.17), a space between two */
	enum rule_when when;
	unsigned arg;
	uint64_t mask, value;
	int errnum;	  /* what the caller sees */
	int quiet;	  /* answered by the kernel itself and not counted */
	const char *what; /* of the argument; "" without one */
	const char *why;
};

/* Arguments that are an int: the kernel looks at 32 bits only, so a filter must, too (CVE-2019-10063). */
#define INT_ARG 0xffffffffULL

#define DENY(in, calls, why)                                  \
	{                                                     \
		in, calls, ALWAYS, 0, 0, 0, EPERM, 0, "", why \
	}
/* As a kernel that was built without it, which is what callers are prepared for. */
#define MISSING(in, calls, why)                                \
	{                                                      \
		in, calls, ALWAYS, 0, 0, 0, ENOSYS, 0, "", why \
	}
#define ABSENT(in, calls, why)                                 \
	{                                                      \
		in, calls, ALWAYS, 0, 0, 0, ENOSYS, 1, "", why \
	}
#define DENY_BITS(in, calls, arg, mask, value, what, why)              \
	{                                                              \
		in, calls, BITS, arg, mask, value, EPERM, 0, what, why \
	}
#define DENY_INT(in, calls, arg, value, what, why) \
	DENY_BITS(in, calls, arg, INT_ARG, value, what, why)
#define DENY_FLAG(in, calls, flag, what, why) DENY_BITS(in, calls, 0, flag, flag, what, why)
#define DENY_ABOVE(in, calls, arg, value, what, why)                 \
	{                                                            \
		in, calls, ABOVE, arg, 0, value, EPERM, 0, what, why \
	}

#define FAMILY(n, name)                                          \
	DENY_INT(IN_RESTRICTED, "socket socketpair", 0, n, name, \
		 "only AF_UNIX, AF_INET, AF_INET6, AF_NETLINK")
#define NAMESPACE(flag, name) DENY_FLAG(IN_RESTRICTED, "clone unshare", flag, name, "no namespaces")

static const struct rule rules[] = {
	DENY(IN_BOTH, "kexec_load kexec_file_load", "replaces the running kernel"),
	DENY(IN_BOTH, "reboot", "the sandbox is ended from outside"),
	DENY(IN_BOTH, "init_module finit_module delete_module", "code in the kernel"),
	DENY(IN_BOTH, "swapon swapoff", "memory of the whole guest, and its limits"),
	DENY(IN_BOTH,
	     "settimeofday clock_settime clock_settime64 stime adjtimex clock_adjtime clock_adjtime64",
	     "the guest's clock is set by the host; reading it needs none of these"),
	DENY(IN_BOTH, "iopl ioperm", "raw I/O ports"),
	DENY(IN_BOTH, "acct", "process accounting of the whole guest"),
	DENY(IN_BOTH, "quotactl quotactl_fd", "quotas of whole file systems"),
	DENY(IN_BOTH, "perf_event_open", "large, and shows what others do"),
	DENY(IN_BOTH, "userfaultfd", "serves attacks on the kernel more than programs"),
	DENY(IN_BOTH, "uselib", "obsolete; only old 32-bit programs could"),
	MISSING(IN_BOTH, "add_key request_key keyctl",
		"keyrings belong to no container; container engines go on without them at ENOSYS only"),
	DENY_INT(IN_BOTH, "ioctl", 1, 0x5412, "TIOCSTI",
		 "types into the terminal of who started it"),
	DENY_INT(IN_BOTH, "ioctl", 1, 0x541c, "TIOCLINUX",
		 "the same by way of the console's selection"),

	NAMESPACE(0x00020000, "CLONE_NEWNS"),
	NAMESPACE(0x02000000, "CLONE_NEWCGROUP"),
	NAMESPACE(0x04000000, "CLONE_NEWUTS"),
	NAMESPACE(0x08000000, "CLONE_NEWIPC"),
	NAMESPACE(0x10000000, "CLONE_NEWUSER"),
	NAMESPACE(0x20000000, "CLONE_NEWPID"),
	NAMESPACE(0x40000000, "CLONE_NEWNET"),
	DENY_FLAG(IN_RESTRICTED, "unshare", 0x00000080, "CLONE_NEWTIME", "no namespaces"),
	DENY(IN_RESTRICTED, "setns", "no namespaces"),
	ABSENT(IN_RESTRICTED, "clone3", "its flags cannot be seen; libraries then use clone"),
	DENY(IN_RESTRICTED,
	     "mount umount umount2 pivot_root fsopen fsconfig fsmount fspick open_tree move_mount mount_setattr",
	     "no mounts"),
	DENY_INT(IN_RESTRICTED, "ptrace", 0, 16, "PTRACE_ATTACH",
		 "other processes; a child that asks to be traced may be"),
	DENY_INT(IN_RESTRICTED, "ptrace", 0, 0x4206, "PTRACE_SEIZE", "other processes"),
	DENY(IN_RESTRICTED, "process_vm_readv process_vm_writev pidfd_getfd kcmp process_madvise",
	     "other processes"),
	DENY(IN_RESTRICTED, "open_by_handle_at", "opens files past every directory above them"),
	DENY(IN_RESTRICTED, "bpf", "programs in the kernel"),
	DENY(IN_RESTRICTED, "io_uring_setup io_uring_enter io_uring_register",
	     "does what calls do, past this filter"),
	DENY(IN_RESTRICTED, "syslog", "the kernel's log"),
	DENY(IN_RESTRICTED, "modify_ldt vm86 vm86old", "segments and modes for 16-bit code"),
	FAMILY(3, "AF_AX25"),
	FAMILY(4, "AF_IPX"),
	FAMILY(5, "AF_APPLETALK"),
	FAMILY(6, "AF_NETROM"),
	FAMILY(7, "AF_BRIDGE"),
	FAMILY(8, "AF_ATMPVC"),
	FAMILY(9, "AF_X25"),
	FAMILY(11, "AF_ROSE"),
	FAMILY(12, "AF_DECnet"),
	FAMILY(13, "AF_NETBEUI"),
	FAMILY(14, "AF_SECURITY"),
	FAMILY(15, "AF_KEY"),
	DENY_ABOVE(IN_RESTRICTED, "socket socketpair", 0, 16,
		   "above 16: AF_PACKET, AF_ALG, AF_VSOCK, ...",
		   "only AF_UNIX, AF_INET, AF_INET6, AF_NETLINK"),
};

/* All that a worker process of agentd may call; everything else is EPERM. It reads an archive of a stranger. */
struct allowed {
	const char *calls;
	const char *why;
};

static const struct allowed worker[] = {
	{ "read readv pread64 preadv write writev pwrite64 pwritev lseek sendfile copy_file_range splice",
	  "bytes" },
	{ "open openat openat2 close close_range dup dup2 dup3 fcntl flock pipe2 ioctl",
	  "descriptors" },
	{ "stat lstat fstat newfstatat statx access faccessat faccessat2 readlink readlinkat getdents64 getcwd chdir fchdir statfs fstatfs",
	  "looking" },
	{ "mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat mknod mknodat umask",
	  "names; a device also needs a capability, which it has not" },
	{ "chmod fchmod fchmodat chown fchown lchown fchownat utimensat truncate ftruncate fallocate fsync fdatasync sync_file_range syncfs",
	  "what files are" },
	{ "getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr",
	  "extended attributes" },
	{ "brk mmap munmap mremap mprotect madvise", "memory" },
	{ "poll ppoll select pselect6 nanosleep clock_nanosleep restart_syscall sched_yield",
	  "waiting" },
	{ "clock_gettime clock_getres gettimeofday time getrandom uname sysinfo",
	  "time and chance" },
	{ "getpid getppid gettid getuid geteuid getgid getegid getresuid getresgid getgroups getrlimit getrusage",
	  "itself" },
	{ "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending sigaltstack tkill tgkill",
	  "signals; tkill is how abort() ends" },
	{ "futex set_tid_address set_robust_list rseq exit exit_group", "what the C library does" },
};

#endif
