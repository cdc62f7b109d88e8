#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 900
"""asb mcp: a thousand calls, fifty at once. Every answer is the right one; nothing grows, nothing stays behind."""
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import _asb
from _asb import ok, same
import _mcp

_asb.need_vm()
CALLS, AT_ONCE, IN_GUEST = 1000, 50, 5  # each fifth call runs a command in the guest


def look(pid):
    """Resident KiB, descriptors and children of the server."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        kib = next(int(x.split()[1]) for x in f if x.startswith("VmRSS"))
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return kib, len(os.listdir(f"/proc/{pid}/fd")), len(f.read().split())


def settled(pid, fds):
    """look(), when the server has FDS descriptors and no child, or 20 s later. An answer comes before its worker has ended: what
    it leaves goes a moment later, and what leaks never goes."""
    until = time.monotonic() + 20
    now = look(pid)
    while now[1:] != (fds, 0) and time.monotonic() < until:
        time.sleep(0.1)
        now = look(pid)
    return now


def soak(s, calls):
    wrong, running, sent, ids = [], 0, 0, {}
    while sent < calls or running:
        while running < AT_ONCE and sent < calls:
            if sent % IN_GUEST == 0:
                n = s.start("tools/call", {"name": "sandbox_exec", "arguments": {
                    "name": "box", "command": "sh", "args": ["-c", f"echo {sent}; exit {sent % 251}"]}})
            else:
                n = s.start("tools/call", {"name": "sandbox_status", "arguments": {"name": "box"}})
            ids[n] = sent
            sent += 1
            running += 1
        m = s.take()
        i = ids.pop(m.get("id"), None)
        d = m.get("result", {}).get("structuredContent", {}).get("data", {})
        running -= 1
        good = i is not None and (d.get("status") == "RUNNING" if i % IN_GUEST else
                                  (d.get("exit_code"), d.get("stdout", {}).get("text")) == (i % 251, f"{i}\n"))
        if not good:
            wrong.append((i, m))
    return wrong


with _asb.Home() as home:
    with _mcp.Server(home) as s:
        same(s.ask("ping").get("result"), {}, "the server is at rest")
        rest = look(s.p.pid)[1]  # nothing was called yet, and what watches the sandboxes is there
        ok(s.data("sandbox_create", name="box", memory=256), "a sandbox")
        same(soak(s, 100), [], "a hundred to begin with")
        before = settled(s.p.pid, rest)
        same(before[1:], (rest, 0), "no descriptor and no process is left of them")
        began = time.monotonic()
        same(soak(s, CALLS)[:3], [], f"{CALLS} calls, {AT_ONCE} at once: every answer is right")
        print(f"# {time.monotonic() - began:.1f} s")
        after = settled(s.p.pid, rest)
        ok(after[0] - before[0] < 512, "memory is flat", before, after)
        same(after[1:], (rest, 0), "no descriptor and no process is left")
        same(s.data("sandbox_exec_list", name="box")["sessions"], [], "nor a command in the guest")
        same(s.bad, [], "nothing but messages on standard output")
        same(s.end(), 0, "it ends with its input")
_asb.done()
