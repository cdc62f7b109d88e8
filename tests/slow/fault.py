#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 28800
"""Every step of create, stop, start, branch, snapshot, rm and image build fails once: killed, all killed, no space, an error of the
disk, and another command (rm of what is made) just then. How: tests/e2e/_walk.py.

WALK=NAME[/KIND],… only these (NAME: a walk's name, or "*"; KIND: kill, kill-all, ENOSPC, EIO, meanwhile).
WALK_LOG=FILE notes what passed, and leaves out what it says has passed with this asb before.
WALK_SECONDS=N ends after so long; with WALK_LOG another run goes on there.
"""
import hashlib
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from _asb import ASB
from _walk import Home, World, done, need_trace, ok, walks, word

ROOM = 4 << 30  # bytes: in memory no time goes to a disk; what of it must be on the disk when is looked at by the calls (Order)


class Log:
    """What passed with the asb of now, as lines of "asb walk/kind step of-how-many"."""

    def __init__(self, path):
        with open(ASB, "rb") as f:
            self.asb = hashlib.sha256(f.read()).hexdigest()[:16]
        self.path, self.passed = path, set()
        if path and os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                self.passed = {tuple(line.split("\t")[1:3]) for line in f if line.startswith(self.asb + "\t")}

    def has(self, what, n):
        return (what, str(n)) in self.passed

    def add(self, what, n, most):
        self.passed.add((what, str(n)))
        if self.path:
            with open(self.path, "a", encoding="utf-8") as f:
                f.write(f"{self.asb}\t{what}\t{n}\t{most}\n")

    def whole(self, what):
        """Whether all its steps have passed, as far as is known."""
        return self.has(what, "end")


def wanted(name, kind):
    parts = [p.partition("/") for p in os.environ.get("WALK", "*").split(",")]
    return any(p[0] in ("*", name) and p[2] in ("", word(kind)) for p in parts)


def walk_one(walk, kinds, log, until):
    """False when the time is over."""
    most = len(walk.steps())
    for kind in kinds:
        what = f"{walk.name}/{word(kind)}"
        for n in range(1, most + 1):
            if log.has(what, n):
                continue
            if time.monotonic() > until:
                return False
            if walk.fault(kind, n):
                log.add(what, n, most)
        if all(log.has(what, n) for n in range(1, most + 1)):
            log.add(what, "end", most)
            ok(True, f"{what}: all {most} steps")
    print(f"# {walk.name}: what was left: {walk.outcomes}", flush=True)
    return True


def main():
    log = Log(os.environ.get("WALK_LOG"))
    until = time.monotonic() + float(os.environ.get("WALK_SECONDS", "1e9"))
    with Home() as home:
        world = World(home)
        for make, some in walks(world):
            left = [(w, [k for k in w.kinds() if wanted(w.name, k) and not log.whole(f"{w.name}/{word(k)}")]) for w in some]
            left = [(w, kinds) for w, kinds in left if kinds]
            if left:
                make(world)
            if not all(walk_one(w, kinds, log, until) for w, kinds in left):
                print("# the time is over; the rest is for another run", flush=True)
                break
            ok(not world.spoilt(), "nothing was written to that never is", world.spoilt())
        world.end()


need_trace()
if "TMPDIR" not in os.environ and os.path.isdir("/dev/shm") and os.statvfs("/dev/shm").f_bavail * os.statvfs("/dev/shm").f_bsize > ROOM:
    tempfile.tempdir = "/dev/shm"
main()
done()
