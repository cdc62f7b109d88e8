# SPDX-License-Identifier: Apache-2.0
"""The HOME in which _walk.py lets commands fail: brought back from a copy for each fault, with the processes that belong to it."""
import glob
import json
import os
import shutil
import signal

from _asb import until
from _shape import whole

MARK = "cat /dev/shm/marker /root/marker"
SETTLE_S, LOOK_S = 30, 0.02  # until what was killed is gone
NEVER_WRITTEN = ("ram", "devices", "base.ram")  # once they are there


class World:
    """A HOME with a template and perhaps a box that is suspended: copied from one for each fault."""

    def __init__(self, home):
        self.h, self.state = home, os.path.join(home.path, ".agent_sandbox")
        self.kept, self.stamps = os.path.join(home.top, "kept"), {}

    def save(self):
        shutil.rmtree(self.kept, ignore_errors=True)
        self.copy(self.state, self.kept)
        self.stamps = self.shared()

    @staticmethod
    def copy(a, b):
        """Times of change stay. What nobody ever writes to is linked, which costs nothing; `spoilt` looks whether that was right."""
        same = {}
        for top, _, files in os.walk(a):
            to = os.path.join(b, os.path.relpath(top, a))
            os.makedirs(to, 0o700, exist_ok=True)
            for name in files:
                path = os.path.join(top, name)
                inode = os.lstat(path).st_ino
                if name in NEVER_WRITTEN or inode in same:
                    os.link(same.get(inode, path), os.path.join(to, name))
                elif not name.endswith(".sock"):
                    same[inode] = shutil.copy2(path, os.path.join(to, name))
        for top, _, _ in os.walk(a, topdown=False):  # at last: filling them has changed them
            shutil.copystat(top, os.path.join(b, os.path.relpath(top, a)))

    def shared(self):
        found = {}
        for top, _, files in os.walk(self.kept):
            for path in (os.path.join(top, name) for name in files):
                st = os.stat(path)
                found[path] = st.st_size, st.st_mtime_ns
        return found

    def spoilt(self):
        """What was written to although it is never written to."""
        return [path for path, stamp in self.shared().items() if self.stamps.get(path) != stamp]

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
        until(lambda: not self.processes(), SETTLE_S, LOOK_S)

    # --- sandboxes
    def names(self):
        r = self.h.call("ls", "--json")
        return {x["name"]: x["state"] for x in json.loads(r.stdout)["sandboxes"]} if r.returncode == 0 else None

    def calm(self):
        """No sandbox is on its way to another state, and no machine is there that belongs to none. What is told when it
        is not so, else None."""
        def quiet():
            names, here = self.names(), list(self.processes().values())
            return names is not None and not {"PENDING", "SUSPENDING", "TERMINATING"} & set(names.values()) and \
                here.count("asb") == here.count("qemu") == list(names.values()).count("RUNNING")
        return None if until(quiet, SETTLE_S, LOOK_S) else f"names {self.names()}, processes {self.processes()}"

    def leftovers(self, written=False, collect="ls"):
        """What nobody needs any more, after the next command has collected: `prune` collects all, others no half snapshots and
        images. WRITTEN: that has changed state.json."""
        self.h.call(collect)
        names, found = self.names() or {}, []
        for path in glob.glob(os.path.join(self.state, "**"), recursive=True, include_hidden=True):
            name, where = os.path.basename(path), os.path.relpath(path, self.state)
            if collect != "prune" and where.startswith(("local/snapshots", "local/images")):
                continue
            if name.startswith((".new", ".old", ".gone", "branch-")) or name in ("saved.new", "saved.gone") or \
                    (written and name.startswith("state.json.")):
                found.append(where)
        if len(os.listdir(os.path.join(self.state, "local/vms"))) != len(names):
            found += os.listdir(os.path.join(self.state, "local/vms"))
        return found

    def sound(self, names, marked):
        """Without a start: all that there is is whole, what runs answers, and MARKED ones among it have what was in their memory
        and on their disk. None, or what is not so."""
        running = [name for name, state in names.items() if state == "RUNNING"]
        why = whole(self.state, running)
        for name in running if not why else []:
            why = why or self.works(name, name in marked)
        return why

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

    def is_free(self, name):
        """Whether a sandbox of that name may be made: it is refused for another reason, which is looked at later."""
        r = self.h.call("create", name, "-m", "1048576")
        return None if b"more than this machine has" in r.stderr else f"the name {name} is not free: {r}"
