# SPDX-License-Identifier: Apache-2.0
"""Walks the steps of a command and lets each of them fail: what tests/e2e/fault.py (a few steps) and tests/slow/*.py (all)
share.

After a fault in a step of `asb create`, `stop`, … there is the old or the new, never a half: the sandbox works with what it
had in memory and on its disk, or it is not there and its name is free; no process is left that belongs to none; and
what the next command collects is all that was left over. When the call failed instead of killing, the command either
succeeded or said so. Another command at that moment (`asb rm` of the name that is being made) is such a fault, too.

A guest that is booted to show that a sandbox works costs seconds, a fault tenths of one. So at each step this is looked at: what
`asb ls` says of every name; that all machines belong to one; that nothing is left over; that every file with its final name
is whole (_shape.py reads them all); that what is to be gone has its name free; and that each sandbox that runs answers, with
its marks. What stands still is started, and what is gone is made, where that has not been done yet for a folder of this
shape: all that asb looks at when it starts a sandbox is in the folder, its files are whole, so what differs from one step to
another can only be which files there are, what the small ones say and which are linked, and that is the shape. A
shape is proved once in each walk, whatever fault led to it, and once more if the command says that it failed.

A world in which a sandbox runs is used again when it is what it was before the command: the same machine, the same shape.
"""
import errno
import os
import shutil
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests/lib"))

from _asb import ASB, Home, done, need_vm, ok, skip_all, until  # noqa: E402
from _outcome import (IMAGE, MEMORY, gone_or_works, image_any, image_whole, snapshot_whole, still_works,  # noqa: E402
                      with_box, with_image, with_snapshot, with_template)
from _shape import shape  # noqa: E402
from _world import LOOK_S, World  # noqa: E402
import trace  # noqa: E402

KINDS = (("kill",), ("kill-all",), ("error", errno.ENOSPC), ("error", errno.EIO), ("meanwhile",))
MEANWHILE_S = 1  # for another command while all that is traced stands still; then they go on together


def need_trace():
    need_vm()
    why = trace.possible()
    if why:
        skip_all(why)


def word(kind):
    """How a kind of fault is called."""
    return kind[0] if kind[0] != "error" else errno.errorcode[kind[1]]


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
    """COMMAND (words) in WORLD, from a state that PREPARE makes, once for each fault. PROVE(world, result) tells what is
    wrong, or None, and starts what it must. MARKED: sandboxes with marks; STAYS: those that are there in any case; MAKES: one that is
    there or free. MEANWHILE: another command, for faults of the kind "meanwhile", and PROVE_BOTH then."""

    def __init__(self, world, name, command, prepare, prove, **more):
        self.w, self.name, self.command, self.prepare, self.prove = world, name, command, prepare, prove
        self.marked, self.stays, self.makes = more.get("marked", ()), more.get("stays", ()), more.get("makes")
        self.meanwhile, self.prove_both = more.get("meanwhile"), more.get("prove_both", prove)
        self.only = more.get("only")
        self.proved, self.ready, self.listed, self.other, self.outcomes = set(), None, None, None, {}

    # --- the world
    def make_ready(self):
        """As PREPARE leaves it; by itself when it is so still."""
        if self.ready and self.ready == self.now():
            return
        self.w.reset()
        self.prepare(self.w)
        self.ready = self.now() if self.w.supervisors() else None

    def now(self):
        return sorted(self.w.processes()), shape(self.w.state)

    def tidy(self, names):
        """What the command has made goes again, when that may bring back what was there."""
        if not self.ready or not set(self.ready[0]) <= set(self.w.processes()):
            return
        if self.makes in names:
            self.w.h.call("rm", "-f", self.makes)
        if self.command[0] == "snapshot":
            self.w.h.call("snapshot", "rm", "shot")

    def kinds(self):
        return [k for k in self.only or KINDS if self.meanwhile or k != ("meanwhile",)]

    # --- one fault
    def once(self, fault, on_step=None):
        self.make_ready()
        self.other = None
        if fault and fault[0] == "meanwhile":
            fault = ("call", fault[1], self.start_other)
        t = trace.Tracer(self.w.h.path, fault, on_step)
        r = t.run([ASB, *self.command], self.w.h.env, self.w.supervisors())
        if self.other:
            self.other = self.wait_other(t.ended)
        return r

    def start_other(self):
        err = open(os.path.join(self.w.h.top, "other"), "w+b")
        self.other = subprocess.Popen([ASB, *self.meanwhile], env=self.w.h.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=err), err
        until(lambda: self.other[0].poll() is not None, MEANWHILE_S, LOOK_S)

    def wait_other(self, ended):
        """(status, stderr); the tracer has waited for all children that ended before the command did."""
        p, err = self.other
        if p.returncode is None:
            p.returncode = os.waitstatus_to_exitcode(ended[p.pid]) if p.pid in ended else p.wait(timeout=120)
        with err:
            err.seek(0)
            return p.returncode, err.read()

    def names_are_wrong(self, names):
        lost = [n for n in self.stays if n not in names]
        more = [n for n in names if n not in (*self.stays, *self.marked, self.makes)]
        if lost or more:
            return f"lost {lost}, and {more} are of no name of ours: {names}"
        if self.other and self.other[0] not in (0, 1) or self.other and self.other[0] and b"error: " not in self.other[1]:
            return f"{self.meanwhile}: {self.other}"
        if self.other and self.other[0] == 0 and self.meanwhile[0] == "rm" and self.meanwhile[1] in names:
            return f"{self.meanwhile} said that it is removed: {names}"
        return None

    def look(self, r, fault):
        """(what is wrong or None, names) without a start."""
        if fault[0] in ("error", "meanwhile") and r.returncode not in (0, None) and b"error: " not in r.stderr:
            return f"it failed without a word: {r}", {}
        problem = self.w.calm()
        names = self.w.names() or {}
        left = [] if problem else self.w.leftovers()
        ended = [n for n in self.stays if names.get(n) == "TERMINATED" and fault[0] == "error"]
        problem = problem or (f"what was in memory is lost, and nothing was killed: {ended}" if ended else None)
        problem = problem or self.names_are_wrong(names) or (f"left over: {left}" if left else None) or self.w.sound(names, self.marked)
        if not problem and self.makes and self.makes not in names:
            problem = self.w.is_free(self.makes)
        return problem, names

    def judge(self, r, fault):
        problem, names = self.look(r, fault)
        if problem:
            self.ready = None
            return problem
        seen = " ".join(f"{n}={s}" for n, s in sorted(names.items())) or "nothing"
        self.outcomes[seen] = self.outcomes.get(seen, 0) + 1
        key = self.other is not None, r.returncode == 1, str(names), shape(self.w.state)
        if key in self.proved:
            left = self.w.leftovers(collect="prune")
            self.tidy(names)
            return f"left over: {left}" if left else None
        self.ready = None
        problem = (self.prove_both if self.other else self.prove)(self.w, r)
        if not problem:
            self.proved.add(key)
        return problem

    def steps(self):
        """All of them, once without a fault."""
        if self.listed is not None:
            return self.listed
        order = Order()
        r = self.once(None, order)
        ok(not order.result(), f"{self.name}: the disk has what it must have, at each step", order.result())
        problem = self.judge(r, ("none",))
        ok(r.returncode == 0 and r.steps and not problem, f"{self.name}: {len(r.steps)} steps without a fault", problem, r)
        self.listed = [str(s) for s in r.steps]
        return self.listed

    def fault(self, kind, n):
        """KIND of fault at step N. Whether all is as it must be."""
        fault = (kind[0], n, *kind[1:])
        r = self.once(fault)
        problem = self.judge(r, fault) if r.hit else None
        at = str(r.hit).replace(self.w.state + "/", "") if r.hit else "not reached"
        return ok(not problem, f"{self.name}: {word(kind)} at {n} ({at})", problem, r, self.other or "")

    def some(self, wanted, kinds):
        """At the first step that has each of WANTED ("call part-of-path", or "last call part-of-path"), and one kind of fault after
        the other."""
        steps = self.steps()
        for i, words in enumerate(wanted):
            call, _, part = words.removeprefix("last ").partition(" ")
            found = [i for i, s in enumerate(steps, 1) if s.split()[0] == call and part in s]
            n = found[-1 if words.startswith("last ") else 0] if found else 0
            if ok(n > 0, f"{self.name}: it has a step {words}", *steps):
                self.fault(kinds[i % len(kinds)], n)


# --- the commands
def nothing(_):
    pass


def started(w):
    r = w.h.call("start", "box")
    if r.returncode:
        raise RuntimeError(f"cannot prepare: {r}")


def of_image(w):
    if not shutil.which("mkfs.erofs"):
        return []
    words = ["image", "build", os.path.join(w.h.top, "two"), "--name", IMAGE, "-m", MEMORY]
    return [(with_image, [Walk(w, "image build", words, nothing, image_whole, meanwhile=["image", "rm", IMAGE], prove_both=image_any)])]


def of_box(w):
    box = {"marked": ("box", "left"), "stays": ("box",)}
    left = {**box, "makes": "left", "meanwhile": ["rm", "left"]}
    copied = gone_or_works("left", True, ["box"])
    branch = ["branch", "box", "--name", "left"]
    return [Walk(w, "stop", ["stop", "box"], started, still_works, **box),
            Walk(w, "start", ["start", "box"], nothing, still_works, **box),
            Walk(w, "branch", branch, started, copied, **left),
            Walk(w, "branch of a suspended one", branch, nothing, copied, **left),
            Walk(w, "snapshot create", ["snapshot", "create", "box", "shot"], started, snapshot_whole, **box,
                 meanwhile=["snapshot", "rm", "shot"]),
            Walk(w, "rm of a suspended one", ["rm", "box"], nothing, gone_or_works("box", True), marked=("box",), makes="box"),
            Walk(w, "rm", ["rm", "box"], started, gone_or_works("box", True), marked=("box",), makes="box")]


def of_snapshot(w):
    restore, copied = ["snapshot", "restore", "shot", "left"], gone_or_works("left", True, ["box"])
    left = {"marked": ("box", "left"), "stays": ("box",), "makes": "left"}
    return [Walk(w, "snapshot restore", restore, nothing, copied, meanwhile=["rm", "left"], **left),
            Walk(w, "restore and snapshot rm", restore, nothing, copied, meanwhile=["snapshot", "rm", "shot"], only=[("meanwhile",)],
                 **left)]


def walks(w):
    """Those from nothing, those from a template, those with a box, that of an image: (what makes the world, walks)."""
    create = ["create", "box", "-m", MEMORY]
    new = {"makes": "box", "meanwhile": ["rm", "box"]}
    return ((lambda _: None, [Walk(w, "first create", create, nothing, gone_or_works("box"), **new)]),
            (with_template, [Walk(w, "create", create, nothing, gone_or_works("box"), **new)]),
            (with_box, of_box(w)), (with_snapshot, of_snapshot(w)), *of_image(w))


__all__ = ["KINDS", "Home", "Walk", "World", "done", "need_trace", "ok", "walks", "word"]
