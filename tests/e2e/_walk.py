# SPDX-License-Identifier: Apache-2.0
"""Walks the steps of a command and lets each of them fail: what tests/e2e/fault.py (a few steps) and tests/slow/*.py (all)
share.

After a fault in a step of `asb create`, `stop`, … there is the old or the new, never a half: the sandbox works with what it
had in memory and on its disk, or it is not there and its name is free; no process is left that belongs to none; and
what the next command collects is all that was left over. When the call failed instead of killing, the command either
succeeded or said so.
"""
import errno
import glob
import hashlib
import json
import os
import shutil
import signal
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests/lib"))

from _asb import ASB, Home, done, need_vm, ok, skip_all  # noqa: E402
from _say import compile_program, tree  # noqa: E402
import trace  # noqa: E402

MEMORY = "96"  # MiB
IMAGE = "tool"
MARK = "cat /dev/shm/marker /root/marker"


def need_trace():
    need_vm()
    why = trace.possible()
    if why:
        skip_all(why)


class World:
    """A HOME with a template and perhaps a box that is suspended: copied from one for each fault."""

    def __init__(self, home):
        self.h, self.state = home, os.path.join(home.path, ".agent_sandbox")
        self.kept = os.path.join(home.top, "kept")

    def save(self):
        shutil.rmtree(self.kept, ignore_errors=True)
        self.copy(self.state, self.kept)

    def copy(self, a, b):
        """Times of change stay, holes too; hard links within do."""
        if os.spawnlp(os.P_WAIT, "cp", "cp", "-a", "--sparse=always", a, b):
            raise OSError(f"cp -a {a} {b}")

    def reset(self):
        self.end()
        shutil.rmtree(self.state, ignore_errors=True)
        if os.path.isdir(self.kept):
            self.copy(self.kept, self.state)

    # --- processes
    def processes(self):
        """{pid: "asb" or "qemu"} of all that work in or for this HOME."""
        found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                exe = os.path.basename(os.readlink(f"/proc/{pid}/exe").split(" ")[0])
                where = os.readlink(f"/proc/{pid}/cwd")
            except OSError:
                continue
            if where.startswith(self.h.path) and (exe == "asb" or exe.startswith("qemu")):
                found[int(pid)] = "asb" if exe == "asb" else "qemu"
        return found

    def supervisors(self):
        return [p for p, what in self.processes().items() if what == "asb"]

    def end(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.settle(lambda: not self.processes())

    @staticmethod
    def settle(done_yet, limit=30):
        until = time.monotonic() + limit
        while not done_yet() and time.monotonic() < until:
            time.sleep(0.02)
        return done_yet()

    # --- sandboxes
    def names(self):
        r = self.h.call("ls", "--json")
        return {x["name"]: x["state"] for x in json.loads(r.stdout)["sandboxes"]} if r.returncode == 0 else None

    def calm(self):
        """No sandbox is on its way to another state, and no machine is there that belongs to none. What is told when it
        is not so, else None."""
        def quiet():
            names = self.names()
            return names is not None and not {"PENDING", "SUSPENDING", "TERMINATING"} & set(names.values()) and \
                len(self.supervisors()) == sum(1 for s in names.values() if s == "RUNNING")
        return None if self.settle(quiet) else f"names {self.names()}, processes {self.processes()}"

    def leftovers(self, written=False):
        """What nobody needs any more, after the next command has collected. WRITTEN: that has changed state.json."""
        self.h.call("ls")
        names, found = self.names() or {}, []
        for path in glob.glob(os.path.join(self.state, "**"), recursive=True, include_hidden=True):
            name, where = os.path.basename(path), os.path.relpath(path, self.state)
            if name.startswith((".new", ".old", ".gone", "branch-")) or name in ("saved.new", "saved.gone") or \
                    (written and name.startswith("state.json.")):
                found.append(where)
        if len(os.listdir(os.path.join(self.state, "local/vms"))) != len(names):
            found += os.listdir(os.path.join(self.state, "local/vms"))
        return found

    def works(self, name, marked, memory=True):
        """It is there and goes on; MARKED: with what was on its disk, and in its MEMORY unless it has ended meanwhile."""
        was = (self.names() or {}).get(name)
        if was in ("SUSPENDED", "TERMINATED"):
            r = self.h.call("start", name)
            if r.returncode:
                return f"start of {name}, which is {was}: {r.stderr.decode()}"
        r = self.h.call("exec", name, "--", "sh", "-c", MARK if marked else "echo fine")
        want = b"fine\n" if not marked else b"memory\ndisk\n"
        if r.stdout == want or (marked and (was == "TERMINATED" or not memory) and r.stdout == b"disk\n"):
            return None
        return f"exec in {name}, which was {was}: {r}"


class Order:
    """What a power cut may lose: a file gets its final name, or a mark says that all is there, only when the disk has
    what it holds, and the folder follows before the command ends. WRONG: what was not so."""
    def __init__(self):
        self.synced, self.late, self.wrong = set(), {}, []

    @staticmethod
    def key(path):
        try:
            st = os.stat(path)
            return st.st_dev, st.st_ino
        except OSError:
            return None

    def need(self, step, *paths):
        for path in paths:
            if self.key(path) not in self.synced:
                self.wrong.append(f"before {step}: {path} is not on the disk")

    def files(self, folder):
        return [e.path for e in os.scandir(folder) if e.is_file(follow_symlinks=False) and e.name not in ("base.ram", "lock")]

    def __call__(self, s):
        """Called before each step."""
        base, folder = os.path.basename(s.path), os.path.dirname(s.path)
        if s.name in ("fsync", "fdatasync"):
            self.synced.add(self.key(s.path))
            self.late.pop(s.path, None)
        elif s.name in ("write", "pwrite64", "ftruncate", "copy_file_range", "ioctl", "fallocate"):
            self.synced.discard(self.key(s.path))
        elif base == "kept" and not s.name.startswith("unlink"):  # what is removed has lost its name before
            self.need(s, os.path.join(folder, "disk.qcow2"), folder, os.path.dirname(folder),
                      *(self.files(os.path.join(folder, "saved")) if os.path.isdir(os.path.join(folder, "saved")) else []))
            self.late[folder] = s
        elif s.name.startswith("rename"):
            self.renamed(s, os.path.basename(s.old), folder)

    def renamed(self, s, old, folder):
        where = os.path.basename(folder)
        if old.startswith("state.json."):
            self.need(s, s.old)
            self.late[folder] = s
        elif old == "saved.new" or (old.startswith(".new-") and where in ("templates", "snapshots", IMAGE)):
            self.need(s, *self.files(s.old), *([s.old] if old == "saved.new" or where == IMAGE else []))
            if where != "templates":  # one that is lost is made again
                self.late[folder] = s
            if where == IMAGE:
                self.late[os.path.dirname(folder)] = s
        self.synced.discard(self.key(folder))

    def result(self):
        return "\n".join(self.wrong + [f"{d} was not brought to the disk after {s}" for d, s in self.late.items()]) or None


class Walk:
    """COMMAND (words) in WORLD, from a state that PREPARE makes, once for each fault; CHECK(world, result) tells what is
    wrong, or None."""

    def __init__(self, world, name, command, prepare, check):
        self.w, self.name, self.command, self.prepare, self.check = world, name, command, prepare, check

    def once(self, fault, on_step=None):
        self.w.reset()
        self.prepare(self.w)
        t = trace.Tracer(self.w.h.path, fault, on_step)
        return t.run([ASB, *self.command], self.w.h.env, self.w.supervisors())

    def judge(self, r, fault):
        if fault[0] == "error" and r.returncode not in (0, None) and b"error: " not in r.stderr:
            return f"it failed without a word: {r}"
        return self.w.calm() or self.check(self.w, r)

    def steps(self):
        order = Order()
        r = self.once(None, order)
        ok(not order.result(), f"{self.name}: the disk has what it must have, at each step", order.result())
        problem = self.w.calm() or self.check(self.w, r)
        ok(r.returncode == 0 and r.steps and not problem, f"{self.name}: {len(r.steps)} steps without a fault", problem, r)
        return r.steps

    def fault(self, fault):
        r = self.once(fault)
        problem = self.judge(r, fault) if r.hit else None
        at = str(r.hit).replace(self.w.state + "/", "")
        what = fault[0] if fault[0] != "error" else errno.errorcode[fault[2]]
        return ok(not problem, f"{self.name}: {what} at {fault[1]} ({at})", problem, r)

    def all(self, kinds=(("kill",), ("kill-all",), ("error", errno.ENOSPC), ("error", errno.EIO))):
        for kind in kinds:
            for n in range(1, len(self.steps()) + 1):
                self.fault((kind[0], n, *kind[1:]))

    def some(self, wanted, kinds):
        """At the first step that has each of WANTED ("call part-of-path"), and one kind of fault after the other."""
        steps = [str(s) for s in self.steps()]
        for i, words in enumerate(wanted):
            call, _, part = words.partition(" ")
            n = next((i for i, s in enumerate(steps, 1) if s.split()[0] == call and part in s), 0)
            if ok(n > 0, f"{self.name}: it has a step {words}", *steps):
                kind = kinds[i % len(kinds)]
                self.fault((kind[0], n, *kind[1:]))


# --- the commands
def nothing(_):
    pass


def started(w):
    r = w.h.call("start", "box")
    if r.returncode:
        raise RuntimeError(f"cannot prepare: {r}")


def gone_or_works(name, marked=False, others=()):
    """NAME is whole or not there, and then it can be made; OTHERS (marked) go on."""
    def check(w, _):
        names = w.names()
        for other in others:
            problem = w.works(other, True) if other in names else f"{other} is gone: {names}"
            if problem:
                return problem
        if name in names:
            problem = w.works(name, marked)
            if problem:
                return problem
            r = w.h.call("rm", name)
            if r.returncode:
                return f"rm: {r}"
        left = w.leftovers()
        if left:
            return f"left over: {left}"
        if name not in names and not marked:
            r = w.h.call("create", name, "-m", MEMORY, "--no-template")
            if r.returncode:
                return f"the name is not free: {r}"
            left = w.leftovers(True)
            if left:
                return f"left over: {left}"
        return None
    return check


def marked_box(w):
    """A box with marks in memory and on the disk, suspended; and the template that it came from."""
    w.reset()
    w.h.call("run", "-m", MEMORY, "--", "true")
    w.settle(lambda: glob.glob(os.path.join(w.state, "local/templates/[0-9a-f]*")), 60)
    w.save()


def with_box(w):
    w.h.call("create", "box", "-m", MEMORY)
    w.h.call("exec", "box", "--", "sh", "-c", "echo memory > /dev/shm/marker; echo disk > /root/marker; sync")
    w.h.call("stop", "box")
    w.save()


def still_works(w, _):
    names, left = w.names(), w.leftovers()
    if list(names) != ["box"] or left:
        return f"names: {names}, left over: {left}"
    return w.works("box", True) or (f"left over: {w.leftovers()}" if w.leftovers() else None)


def snapshot_whole(w, _):
    """The box goes on; the snapshot is whole or not there, and then it can be made. It has memory unless the box had lost its own."""
    names = w.names()
    problem = w.works("box", True) if "box" in names else f"the box is gone: {names}"
    if problem:
        return problem
    memory = names["box"] != "TERMINATED"
    if json.loads(w.h.call("snapshot", "ls", "--json").stdout)["snapshots"]:
        memory = True
    else:
        r = w.h.call("snapshot", "create", "box", "shot")
        if r.returncode:
            return f"its name is not free: {r}"
    r = w.h.call("snapshot", "restore", "shot", "left")
    if r.returncode:
        return f"restore: {r}"
    w.h.call("prune")
    left = [x for x in os.listdir(os.path.join(w.state, "local/snapshots")) if x.startswith(".new")]
    return w.works("left", True, memory) or (f"left over: {left}" if left else None)


def with_snapshot(w):
    w.h.call("snapshot", "create", "box", "shot")


def with_image(w):
    """Version 1 of an image, from which nothing has been started, and the source of version 2."""
    shutil.rmtree(w.kept, ignore_errors=True)
    w.reset()
    compile_program(w.h)
    w.h.call("image", "build", tree(w.h, "one", "one\n"), "--name", IMAGE, "--no-template")
    tree(w.h, "two", "two\n")
    w.save()


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def image_whole(w, r):
    """Version 1 is what it was, version 2 is whole or not there, and then it can be made; nothing is left but what these need."""
    store = os.path.join(w.state, "local/images")
    there = {x["version"] for x in json.loads(w.h.call("image", "ls", "--json").stdout)["images"] if x["name"] == IMAGE}
    if there not in ({1}, {1, 2}) or (r.returncode == 0 and 2 not in there):
        return f"versions {there} after status {r.returncode}"
    for version in there:
        folder = os.path.join(store, IMAGE, str(version))
        with open(os.path.join(folder, "image.json"), encoding="utf-8") as f:
            if json.load(f)["sha256"] != sha256(os.path.join(folder, "rootfs.erofs")):
                return f"version {version} is damaged"
    r = w.h.call("image", "build", os.path.join(w.h.top, "two"), "--name", IMAGE, "--no-template")
    if r.stdout != f"{IMAGE}:2\n".encode():
        return f"build: {r}"
    r = w.h.call("run", "-m", MEMORY, IMAGE, "say")
    left = w.leftovers() + [x for x in glob.glob(os.path.join(store, "blobs/*")) if os.stat(x).st_nlink != 2]
    return f"run: {r}" if r.stdout != b"two\n" else f"left over: {left}" if left else None


def image_walks(w):
    if not shutil.which("mkfs.erofs"):
        return []
    words = ["image", "build", os.path.join(w.h.top, "two"), "--name", IMAGE, "-m", MEMORY]
    return [(with_image, [Walk(w, "image build", words, nothing, image_whole)])]


def walks(w):
    """Those from nothing, those from a template, those with a box, that of an image: (what makes the world, walks)."""
    return (
        (lambda _: None, [Walk(w, "first create", ["create", "box", "-m", MEMORY], nothing, gone_or_works("box"))]),
        (marked_box, [Walk(w, "create", ["create", "box", "-m", MEMORY], nothing, gone_or_works("box"))]),
        (with_box, [Walk(w, "stop", ["stop", "box"], started, still_works),
                    Walk(w, "start", ["start", "box"], nothing, still_works),
                    Walk(w, "branch", ["branch", "box", "--name", "left"], started, gone_or_works("left", True, ["box"])),
                    Walk(w, "branch of a suspended one", ["branch", "box", "--name", "left"], nothing,
                         gone_or_works("left", True, ["box"])),
                    Walk(w, "snapshot create", ["snapshot", "create", "box", "shot"], started, snapshot_whole),
                    Walk(w, "snapshot restore", ["snapshot", "restore", "shot", "left"], with_snapshot,
                         gone_or_works("left", True, ["box"])),
                    Walk(w, "rm of a suspended one", ["rm", "box"], nothing, gone_or_works("box", True)),
                    Walk(w, "rm", ["rm", "box"], started, gone_or_works("box", True))]), *image_walks(w))


__all__ = ["Home", "Walk", "World", "done", "need_trace", "ok", "walks"]
