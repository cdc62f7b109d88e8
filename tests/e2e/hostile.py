#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 900
"""Starts that cannot work, and guests that misbehave: one clear line, an exit status, and nothing left behind."""
import os
import shutil
import signal
import subprocess
import time

from _asb import ASB, Home, done, need_vm, ok, one_line, same

need_vm()
SHARE = os.path.realpath(os.environ.get("ASB_SHARE", os.path.join(os.path.dirname(ASB), "../share/asb")))


def refused(h, what, word, **env):
    r = h.call("run", "--", "true", env=env)
    lines = one_line(r.stderr)
    ok(r.returncode == 125 and r.stdout == b"" and len(lines) == 1 and word in lines[0].lower(),
       f"{what}: one line and 125", r.returncode, r.stderr)
    same(h.left(), [], f"{what}: nothing is left")


def starts(h):
    refused(h, "no QEMU", "qemu", ASB_QEMU="/nonexistent/qemu")
    refused(h, "no share folder", "", ASB_SHARE="/nonexistent")
    broken = os.path.join(h.top, "share")
    shutil.copytree(SHARE, broken, symlinks=False)
    os.truncate(os.path.join(broken, "images/base/rootfs.erofs"), 0)
    refused(h, "an empty image", "", ASB_SHARE=broken)
    os.unlink(os.path.join(broken, "images/base/rootfs.erofs"))
    refused(h, "no image", "", ASB_SHARE=broken)
    kernel = os.path.join(broken, "vmlinux")
    with open(kernel, "wb") as f:
        f.write(b"not a kernel")
    refused(h, "a kernel that is none", "", ASB_SHARE=broken)
    false_qemu = os.path.join(h.top, "qemu")
    with open(false_qemu, "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\necho 'this is no QEMU' >&2\nexit 1\n")
    os.chmod(false_qemu, 0o755)
    refused(h, "a QEMU that fails", "", ASB_QEMU=false_qemu)


def full_disk(h):
    if os.geteuid() != 0:
        ok(True, "a full disk # SKIP needs root to mount a small file system")
        return
    small = os.path.join(h.top, "small")
    os.makedirs(small)
    r = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", small], check=False, capture_output=True)
    if r.returncode:
        ok(True, "a full disk # SKIP cannot mount a small file system here")
        return
    try:
        with open(os.path.join(small, "filler"), "wb") as f:
            try:
                f.write(b"x" * (64 << 10))
                f.flush()
            except OSError:
                pass
        refused(h, "a full disk", "space", HOME=small)
    finally:
        subprocess.run(["umount", "-l", small], check=False)


def processes(h):
    """{pid: is a supervisor} of this HOME's sandboxes: the supervisors, and QEMU as their child."""
    parents, found = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read()
            with open(f"/proc/{pid}/stat", "rb") as f:
                parents[int(pid)] = int(f.read().rsplit(b")", 1)[1].split()[1])
        except (OSError, IndexError):
            continue
        if os.fsencode(h.path) in words and b"__supervise" in words:
            found[int(pid)] = True
    found.update({pid: False for pid, parent in parents.items() if found.get(parent)})
    return found


def gone(h, name):
    until = time.monotonic() + 30
    while (processes(h) or h.left()) and time.monotonic() < until:
        time.sleep(0.2)
    same((processes(h), h.left()), ({}, []), name)


def killed(h):
    for supervisor, what in ((True, "the supervisor"), (False, "QEMU")):
        p = h.start("run", "--", "sh", "-c", "echo ready; sleep 300")
        p.stdout.readline()
        victims = [pid for pid, is_supervisor in processes(h).items() if is_supervisor == supervisor]
        same(len(victims), 1, f"{what} is one process")
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        try:
            _, err = p.communicate(timeout=90)
            ok(p.returncode == 125 and b"error: " in err, f"killing {what}: 125 and an error", p.returncode, err)
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
            ok(False, f"killing {what}: 125 and an error", "asb hangs")
        gone(h, f"killing {what} leaves no process, no file and no name")


def guests(h):
    r = h.call("create", "box", "-m", "256")
    if not ok(r.returncode == 0, "create", r.stderr):
        return
    h.call("exec", "--timeout", "10", "box", "--", "bash", "-c", ":(){ :|:& };:")
    same(h.call("exec", "box", "--", "echo", "alive").stdout, b"alive\n", "a fork bomb does not kill the agent")
    r = h.call("exec", "--timeout", "60", "box", "--", "python3", "-c", "x = []\nwhile True: x.append(bytearray(1 << 20))")
    ok(r.returncode != 0, "an allocator ends", r)
    same(h.call("exec", "box", "--", "echo", "alive").stdout, b"alive\n", "and does not kill the agent")
    r = h.call("exec", "box", "--", "sh", "-c", "kill -9 -1; echo still here", limit=60)
    ok(r.returncode in (0, 125, 137), "kill -9 -1 is answered", r)
    r = h.call("exec", "box", "--", "sh", "-c", "printf '\\033]0;title\\007\\377'")
    same(r.stdout, b"\x1b]0;title\x07\xff", "output is not touched")
    r = h.call("exec", "box", "--", "no\x1b[31msuch")
    ok(r.returncode == 127 and b"\x1b" not in r.stderr, "an error's text cannot move the terminal", r.stderr)
    h.call("rm", "box")
    gone(h, "nothing is left of it")


with Home() as home:
    starts(home)
    full_disk(home)
    killed(home)
    guests(home)
done()
