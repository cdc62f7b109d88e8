# SPDX-License-Identifier: Apache-2.0
"""Two asb at once that want the same: one may lose, with a reason, but what is left is whole and belongs to somebody. What
tests/e2e/races.py (one round each) and tests/slow/races.py (many) share."""
import glob
import json
import os
import shutil
import time

from _asb import ok
from _say import compile_program, tree

MEMORY = ("-m", "96")
MARKED = "cat /dev/shm/marker /root/marker"


def processes(h):
    """Of all that work for this HOME: (supervisors, machines)."""
    found = {"asb": 0, "qemu": 0}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            exe = os.path.basename(os.readlink(f"/proc/{pid}/exe").split(" ")[0])
            if os.readlink(f"/proc/{pid}/cwd").startswith(h.path):
                found["asb" if exe == "asb" else "qemu"] += 1
        except OSError:
            pass
    return found["asb"], found["qemu"]


def names(h):
    return {x["name"]: x["state"] for x in json.loads(h.call("ls", "--json").stdout)["sandboxes"]}


def settled(h, limit=60):
    """{name: state} when there are as many machines as sandboxes that run, and as many folders as names; else None."""
    until = time.monotonic() + limit
    while time.monotonic() < until:
        now = names(h)
        running = sum(s == "RUNNING" for s in now.values())
        folders = [x for x in os.listdir(os.path.join(h.path, ".agent_sandbox/local/vms"))]
        if set(now.values()) <= {"RUNNING", "SUSPENDED", "TERMINATED"} and processes(h) == (running, running) and len(folders) == len(now):
            return now
        time.sleep(0.1)
    return None


def both(h, first, second, gap):
    """Runs two asb, the second GAP seconds after the first: their (status, stderr)."""
    p = [h.start(*first)]
    time.sleep(gap)
    p.append(h.start(*second))
    results = []
    for x in p:
        err = x.communicate(timeout=120)[1]
        results.append((x.returncode, err.decode()))
    return results


def said(results):
    """Whoever failed has said why; none was killed."""
    return all(status == 0 or (status == 1 and "error: " in err) for status, err in results)


def judge(h, what, gap, results, good):
    now = settled(h)
    ok(said(results) and now is not None and good(now, results), f"{what}, {gap} s apart", results, now, names(h), processes(h),
       os.listdir(os.path.join(h.path, ".agent_sandbox/local/vms")))


def works(h, name):
    return h.call("exec", name, "echo", "fine").stdout == b"fine\n"


def is_whole(h, name):
    """What it had in memory and on its disk is there; it is resumed for this."""
    return h.call("exec", name, "--", "sh", "-c", MARKED).stdout == b"memory\ndisk\n"


def end(h, what):
    h.call("rm", "-f", *(names(h) or ["none"]))
    ok(settled(h) == {}, f"{what}: nothing is left", names(h), processes(h))


def creates(h, gap):
    create = ("create", "box", *MEMORY)
    judge(h, "two of one name", gap, both(h, create, create, gap),
          lambda now, r: sorted(x[0] for x in r) == [0, 1] and list(now) == ["box"] and works(h, "box"))
    end(h, "two of one name")


def create_and_rm(h, gap):
    judge(h, "create and rm", gap, both(h, ("create", "box", *MEMORY), ("rm", "-f", "box"), gap),
          lambda now, r: not now or (list(now) == ["box"] and r[0][0] == 0 and works(h, "box")))
    end(h, "create and rm")


def marked(h):
    h.call("create", "box", *MEMORY)
    h.call("exec", "box", "--", "sh", "-c", "echo memory > /dev/shm/marker; echo disk > /root/marker; sync")


def branch_and_stop(h, gap):
    marked(h)
    def good(now, r):
        if now.get("box") != ("SUSPENDED" if r[1][0] == 0 else "RUNNING") or ("left" in now) != (r[0][0] == 0):
            return False
        return all(is_whole(h, name) for name in now)
    judge(h, "branch and stop", gap, both(h, ("branch", "box", "--name", "left"), ("stop", "box"), gap), good)
    end(h, "branch and stop")


def starts(h, gap):
    marked(h)
    h.call("stop", "box")
    judge(h, "two starts", gap, both(h, ("start", "box"), ("start", "box"), gap),
          lambda now, r: now == {"box": "RUNNING"} and 0 in (r[0][0], r[1][0]) and is_whole(h, "box"))
    h.call("stop", "box")
    judge(h, "start and stop", gap, both(h, ("start", "box"), ("stop", "box"), gap),
          lambda now, r: now in ({"box": "RUNNING"}, {"box": "SUSPENDED"}) and is_whole(h, "box"))
    h.call("stop", "box")
    judge(h, "start and rm", gap, both(h, ("start", "box"), ("rm", "-f", "box"), gap), lambda now, r: r[1][0] == 0 and now == {})
    end(h, "start and rm")


def copies_and_rm(h, gap):
    """The name of a copy is removed while it is made; so is what it is made of."""
    marked(h)
    def good(now, r):
        return now.get("box") == "RUNNING" and ("left" not in now or r[0][0] == 0) and all(is_whole(h, name) for name in now)
    branch, restore = ("branch", "box", "--name", "left"), ("snapshot", "restore", "shot", "left")
    judge(h, "branch and rm of its name", gap, both(h, branch, ("rm", "-f", "left"), gap), good)
    h.call("rm", "-f", "left")
    judge(h, "snapshot create and rm", gap, both(h, ("snapshot", "create", "box", "shot"), ("snapshot", "rm", "shot"), gap), good)
    if not os.path.exists(os.path.join(h.path, ".agent_sandbox/local/snapshots/shot")):
        h.call("snapshot", "create", "box", "shot")
    judge(h, "restore and rm of its name", gap, both(h, restore, ("rm", "-f", "left"), gap), good)
    h.call("rm", "-f", "left")
    judge(h, "restore and snapshot rm", gap, both(h, restore, ("snapshot", "rm", "shot"), gap), good)
    h.call("snapshot", "rm", "shot")
    end(h, "copies and rm")


def create_and_image_rm(h, gap):
    if not shutil.which("mkfs.erofs"):
        return
    if not os.path.exists(os.path.join(h.top, "say")):
        compile_program(h)
    h.call("image", "build", tree(h, "tool", f"{time.time_ns()}\n"), "--name", "tool", "--no-template")
    def good(now, r):
        there = os.path.exists(os.path.join(h.path, ".agent_sandbox/local/images/tool/1/rootfs.erofs"))
        blobs = len(glob.glob(os.path.join(h.path, ".agent_sandbox/local/images/blobs/*")))
        if there != (r[1][0] != 0) or blobs != there or ("box" in now) != (r[0][0] == 0) or ("box" in now and not there):
            return False
        return not now or h.call("exec", "box", "say").returncode == 0
    judge(h, "create and image rm", gap, both(h, ("create", "box", "--image", "tool", "--no-template", *MEMORY), ("image", "rm", "tool"), gap), good)
    h.call("rm", "-f", "box")
    h.call("image", "rm", "tool")


def all_races(h, gaps):
    h.call("run", *MEMORY, "--", "true")
    until = time.monotonic() + 60
    while not glob.glob(os.path.join(h.path, ".agent_sandbox/local/templates/[0-9a-f]*")) and time.monotonic() < until:
        time.sleep(0.1)
    for race in (creates, create_and_rm, branch_and_stop, starts, copies_and_rm, create_and_image_rm):
        for gap in gaps:
            race(h, gap)
    end(h, "all")
