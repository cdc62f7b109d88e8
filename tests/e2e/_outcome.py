# SPDX-License-Identifier: Apache-2.0
"""The worlds that _walk.py begins with, and what must be so after a fault, shown with guests that are started."""
import glob
import json
import os
import shutil

from _asb import until
from _say import compile_program, tree

MEMORY = "96"  # MiB
IMAGE = "tool"


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


def with_template(w):
    w.reset()
    w.h.call("run", "-m", MEMORY, "--", "true")
    until(lambda: glob.glob(os.path.join(w.state, "local/templates/[0-9a-f]*")), 60)
    w.save()


def with_box(w):
    """A box with marks in memory and on the disk, suspended; and the template that it came from."""
    if not glob.glob(os.path.join(w.kept, "local/templates/[0-9a-f]*")):
        with_template(w)
    w.reset()
    w.h.call("create", "box", "-m", MEMORY)
    w.h.call("exec", "box", "--", "sh", "-c", "echo memory > /dev/shm/marker; echo disk > /root/marker; sync")
    w.h.call("stop", "box")
    w.save()


def with_snapshot(w):
    """The box, and a snapshot of it."""
    if not os.path.isdir(os.path.join(w.kept, "local/vms")):
        with_box(w)
    w.reset()
    w.h.call("snapshot", "create", "box", "shot")
    w.save()


def still_works(w, _):
    names, left = w.names(), w.leftovers()
    if list(names) != ["box"] or left:
        return f"names: {names}, left over: {left}"
    return w.works("box", True) or (f"left over: {w.leftovers()}" if w.leftovers() else None)


def snapshot_whole(w, r):
    """The box goes on; the snapshot is whole or not there, and then it can be made. It has memory unless the box had lost its own."""
    names = w.names()
    problem = w.works("box", True) if "box" in names else f"the box is gone: {names}"
    if problem:
        return problem
    memory = names["box"] != "TERMINATED"
    if json.loads(w.h.call("snapshot", "ls", "--json").stdout)["snapshots"]:
        if r.returncode == 1:
            return f"it is there: {r}"
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


def with_image(w):
    """Version 1 of an image, from which nothing has been started, and the source of version 2."""
    shutil.rmtree(w.kept, ignore_errors=True)
    w.reset()
    compile_program(w.h)
    w.h.call("image", "build", tree(w.h, "one", "one\n"), "--name", IMAGE, "--no-template")
    tree(w.h, "two", "two\n")
    w.save()


def build_and_run(w, good):
    """Another build of version 2 is one of GOOD, it starts, and nothing is left but what is needed."""
    r = w.h.call("image", "build", os.path.join(w.h.top, "two"), "--name", IMAGE, "--no-template")
    if r.stdout.decode() not in good:
        return f"build: {r}"
    r = w.h.call("run", "-m", MEMORY, IMAGE, "say")
    blobs = glob.glob(os.path.join(w.state, "local/images/blobs/*"))
    left = w.leftovers(collect="prune") + [x for x in blobs if os.stat(x).st_nlink != 2]
    return f"run: {r}" if r.stdout != b"two\n" else f"left over: {left}" if left else None


def image_whole(w, r):
    """Version 1 is what it was, version 2 is whole or not there, and then it can be made."""
    there = {x["version"] for x in json.loads(w.h.call("image", "ls", "--json").stdout)["images"] if x["name"] == IMAGE}
    if there not in ({1}, {1, 2}) or (r.returncode == 0 and 2 not in there):
        return f"versions {there} after status {r.returncode}"
    return build_and_run(w, [f"{IMAGE}:2\n"])


def image_any(w, _):
    """The same when its versions were removed meanwhile: it can be made."""
    return build_and_run(w, [f"{IMAGE}:{n}\n" for n in (1, 2)])
