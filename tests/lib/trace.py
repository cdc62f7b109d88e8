# SPDX-License-Identifier: Apache-2.0
"""Runs asb under ptrace(2) and makes one of its steps fail.

A step is a system call of an asb process (client, supervisor, publisher of a template; never QEMU, which is let go at
its exec) that changes something below a given folder: names, contents, or what of them is on the disk. Steps are
counted over all processes. At step number N the process is killed before it takes the step, or all of them are, or the
call fails with an error number, or something else is done while all stand still. Repeated calls on one file count twice at the most: a memory takes thousands of them.

The Linux way of it: PTRACE_SEIZE, PTRACE_GET_SYSCALL_INFO (Linux 5.3), and for errors the register of the call's
number, hence x86_64 only.
"""
import ctypes
import os
import signal
import struct
import tempfile
import time

SYSCALL, DETACH, POKEUSER = 24, 17, 6
SEIZE, INTERRUPT, LISTEN, SYSCALL_INFO = 0x4206, 0x4207, 0x4208, 0x420e
OPTIONS = 1 | 2 | 4 | 8 | 0x10  # sysgood, fork, vfork, clone, exec
EVENT_EXEC, EVENT_STOP = 4, 128
WALL = 0x40000000
ORIG_RAX, RAX = 15 * 8, 10 * 8
CREAT, FICLONE, CWD = os.O_CREAT, 0x40049409, 0xffffff9c

# number: (name, how its path is told): "p0": path in argument 0; "d0": folder in 0 and path in 1; "f0": descriptor
CALLS = {
    1: ("write", "f0"), 18: ("pwrite64", "f0"), 20: ("writev", "f0"), 74: ("fsync", "f0"), 75: ("fdatasync", "f0"),
    77: ("ftruncate", "f0"), 285: ("fallocate", "f0"), 326: ("copy_file_range", "f2"), 16: ("ioctl", "f0"),
    91: ("fchmod", "f0"), 2: ("open", "p0"), 257: ("openat", "d0"), 82: ("rename", "p1"), 264: ("renameat", "d2"),
    316: ("renameat2", "d2"), 86: ("link", "p1"), 265: ("linkat", "d2"), 83: ("mkdir", "p0"), 258: ("mkdirat", "d0"),
    87: ("unlink", "p0"), 263: ("unlinkat", "d0"), 84: ("rmdir", "p0"), 280: ("utimensat", "d0"),
    88: ("symlink", "p1"), 266: ("symlinkat", "d1"),
}
FROM = {82: "p0", 264: "d0", 316: "d0", 86: "p0", 265: "d0"}  # where a rename or a link comes from
OPEN_FLAGS = {2: 1, 257: 2}
LOGS = ("console.log", "supervisor.log", ".sock")

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, pid, addr=0, data=0):
    r = libc.ptrace(request, pid, addr, data)
    if r < 0:
        raise OSError(ctypes.get_errno(), f"ptrace {request:#x}")
    return r


def readlink(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


class Step:
    """NAME of the call, PATH (absolute), OLD: where a rename or link comes from."""
    def __init__(self, pid, name, path, old=""):
        self.pid, self.name, self.path, self.old = pid, name, path, old

    def __str__(self):
        return f"{self.name} {self.old + ' -> ' if self.old else ''}{self.path}"


class Result:
    """RETURNCODE as subprocess has it, STDOUT, STDERR (bytes), STEPS taken, HIT: the step that failed or None."""
    def __init__(self):
        self.returncode, self.stdout, self.stderr, self.steps, self.hit = None, b"", b"", [], None

    def __str__(self):
        return f"status {self.returncode}, at: {self.hit}, stderr: {self.stderr.decode(errors='replace')}"


class Tracer:
    """FAULT: ("kill", N), ("kill-all", N), ("error", N, errno), ("call", N, function), or None: only watch. ON_STEP is called before
    each. ENDED: the wait status of every child of ours that was waited for, also of those that the function has made."""
    def __init__(self, top, fault=None, on_step=None):
        self.top, self.fault, self.on_step = os.path.realpath(top) + "/", fault, on_step
        self.procs, self.inside, self.failing, self.seen = {}, set(), {}, {}
        self.count, self.result, self.ended = 0, Result(), {}

    # --- what a call does
    def string(self, pid, addr):
        text = b""
        try:
            with open(f"/proc/{pid}/mem", "rb", buffering=0) as f:
                f.seek(addr)
                while b"\0" not in text and len(text) < 4096:  # to the end of a page: the next may not be there
                    text += f.read(4096 - (addr + len(text)) % 4096) or b"\0"
        except OSError:
            return ""
        return text.split(b"\0")[0].decode(errors="replace")

    def path(self, pid, how, args):
        i = int(how[1])
        if how[0] == "f":
            return readlink(f"/proc/{pid}/fd/{args[i] & 0xffffffff}")
        if how[0] == "p":
            base, text = CWD, self.string(pid, args[i])
        else:
            base, text = args[i] & 0xffffffff, self.string(pid, args[i + 1])
        if text.startswith("/"):
            return text
        folder = readlink(f"/proc/{pid}/cwd" if base == CWD else f"/proc/{pid}/fd/{base}")
        return os.path.normpath(os.path.join(folder, text)) if folder else ""

    def step(self, pid, nr, args):
        name, how = CALLS[nr]
        if nr in OPEN_FLAGS and not args[OPEN_FLAGS[nr]] & CREAT:
            return None
        if nr == 16 and args[1] & 0xffffffff != FICLONE:
            return None
        if nr == 280 and not args[1]:
            how = "f0"
        path = self.path(pid, how, args)
        if name.startswith("mkdir") and os.path.isdir(path):
            return None
        if not (path + "/").startswith(self.top) or path.endswith(LOGS) or path.endswith(" (deleted)"):
            return None
        return Step(pid, name, path, self.path(pid, FROM[nr], args) if nr in FROM else "")

    def counts(self, s):
        """Whether it is one to fail at: a file that is written to in many calls is so twice."""
        if s.name not in ("write", "pwrite64", "writev", "copy_file_range"):
            return True
        key = (s.pid, s.path)
        self.seen[key] = self.seen.get(key, 0) + 1
        return self.seen[key] <= 2

    # --- stops
    def enter(self, pid, nr, args):
        s = self.step(pid, nr, args) if nr in CALLS else None
        if not s:
            return True
        if self.on_step:
            self.on_step(s)
        if not self.counts(s):
            return True
        self.count += 1
        self.result.steps.append(s)
        if not self.fault or self.count != self.fault[1]:
            return True
        self.result.hit = s
        if self.fault[0] == "call":
            self.fault[2]()
            return True
        if self.fault[0] == "error":
            ptrace(POKEUSER, pid, ORIG_RAX, 2**64 - 1)
            self.failing[pid] = self.fault[2]
            return True
        for p in list(self.procs) if self.fault[0] == "kill-all" else [pid]:
            os.kill(p, signal.SIGKILL)
        return False

    def on_syscall(self, pid):
        info = ctypes.create_string_buffer(88)
        ptrace(SYSCALL_INFO, pid, 88, ctypes.addressof(info))
        if info.raw[0] == 1:
            return self.enter(pid, *struct.unpack_from("<Q", info.raw, 24), struct.unpack_from("<6Q", info.raw, 32))
        if pid in self.failing:
            ptrace(POKEUSER, pid, RAX, 2**64 - self.failing.pop(pid))
        return True

    def on_stop(self, pid, status):
        sig, event = os.WSTOPSIG(status), status >> 16
        self.procs.setdefault(pid, True)
        if sig == signal.SIGTRAP | 0x80:
            if self.on_syscall(pid):
                ptrace(SYSCALL, pid)
        elif event == EVENT_EXEC and os.path.basename(readlink(f"/proc/{pid}/exe").split(" ")[0]) != "asb":
            del self.procs[pid]
            ptrace(DETACH, pid)
        elif event == EVENT_STOP and sig != signal.SIGTRAP:
            ptrace(LISTEN, pid)
        else:
            ptrace(SYSCALL, pid, 0, 0 if event else sig)

    def is_supervisor(self, pid):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            return False
        return len(words) > 2 and words[1] == b"__supervise" and words[2] != b"template"

    def over(self, main):
        return main not in self.procs and all(self.is_supervisor(p) for p in self.procs)

    def release(self):
        """Lets those go that are left. Any stop will do: it takes the place of the one that was asked for."""
        for pid in list(self.procs):
            try:
                ptrace(INTERRUPT, pid)
                _, status = os.waitpid(pid, WALL)
                while pid in self.failing and os.WIFSTOPPED(status):
                    self.on_stop(pid, status)
                    _, status = os.waitpid(pid, WALL)
                sig, event = os.WSTOPSIG(status), status >> 16
                if os.WIFSTOPPED(status):
                    ptrace(DETACH, pid, 0, 0 if event or sig == signal.SIGTRAP | 0x80 else sig)
            except (ProcessLookupError, ChildProcessError):
                pass  # it has ended

    def run(self, argv, env, attach=(), limit=120):
        out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        main = os.fork()
        if main == 0:
            try:
                null = os.open("/dev/null", os.O_RDONLY)
                os.dup2(null, 0)
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                os.kill(os.getpid(), signal.SIGSTOP)
                os.execve(argv[0], argv, env)
            finally:
                os._exit(127)
        os.waitpid(main, os.WUNTRACED)
        for pid in [*attach, main]:
            ptrace(SEIZE, pid, 0, OPTIONS)
            self.procs[pid] = True
            if pid != main:
                ptrace(INTERRUPT, pid)
        os.kill(main, signal.SIGCONT)
        self.follow(main, time.monotonic() + limit)
        for f, name in ((out, "stdout"), (err, "stderr")):
            f.seek(0)
            setattr(self.result, name, f.read())
            f.close()
        return self.result

    def follow(self, main, until):
        def late(*_):
            raise TimeoutError
        old = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, until - time.monotonic())
        try:
            while not self.over(main):
                try:
                    pid, status = os.waitpid(-1, WALL)
                except ChildProcessError:
                    break
                if not os.WIFSTOPPED(status):
                    self.procs.pop(pid, None)
                    self.ended[pid] = status
                    if pid == main:
                        self.result.returncode = os.waitstatus_to_exitcode(status)
                    continue
                try:
                    self.on_stop(pid, status)
                except ProcessLookupError:
                    pass  # it was killed; its end comes next
        except TimeoutError:
            os.kill(main, signal.SIGKILL)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, old)
            self.release()


def possible():
    """None, or why this machine does not let us: x86_64 alone, and no policy against ptrace of processes that are not our
    children, as supervisors are."""
    if os.uname().machine != "x86_64":
        return "only x86_64"
    r, w = os.pipe()
    child = os.fork()
    if child == 0:
        pid = os.fork()
        if pid:
            os.write(w, struct.pack("i", pid))
            os._exit(0)
        time.sleep(10)
        os._exit(0)
    os.waitpid(child, 0)
    pid, = struct.unpack("i", os.read(r, 4))
    os.close(r)
    os.close(w)
    try:
        ptrace(SEIZE, pid, 0, OPTIONS)
    except OSError as e:
        return f"ptrace(2) is not allowed here ({e})"
    finally:
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, WALL)
    return None
