#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 900
"""asb metrics and asb wait, on one sandbox."""
import json
import os
import pty
import re
import select
import signal
import struct
import fcntl
import termios
import time

from _asb import *

need_vm()


def screen(home, args, cols, seconds, rows=24):
    """What asb draws on a terminal of that size until Ctrl-C after SECONDS: (bytes, exit status)"""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(ASB, [ASB, *args], {**home.env, "TERM": "xterm"})
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
    got, end, sent = b"", time.monotonic() + seconds, False
    while True:
        if not sent and time.monotonic() > end:
            os.write(fd, b"\x03")
            sent = True
        if select.select([fd], [], [], 0.1)[0]:
            try:
                data = os.read(fd, 65536)
            except OSError:
                break
            if not data:
                break
            got += data
        if time.monotonic() > end + LIMIT:
            os.kill(pid, signal.SIGKILL)
    return got, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


with Home() as h:
    r = h.call("metrics", "none")
    ok(r.returncode == 1 and r.stdout == b"" and b"none" in r.stderr, "metrics of an unknown sandbox", r)
    equal = same
    equal(h.call("wait", "none").returncode, 1, "wait for an unknown sandbox")
    r = h.call("create", "m", "--memory", "256", limit=300)
    ok(r.returncode == 0, "create", r)

    r = h.call("metrics", "m")
    text = r.stdout.decode()
    ok(r.returncode == 0 and r.stderr == b"", "metrics", r)
    for line in (r"^METRIC +LATEST", r"^CPU +[0-9.]+ % of 1 CPU", r"^LOAD +[0-9.]+ ", r"^MEMORY +[0-9.]+ MiB / 2[0-9.]+ MiB \([0-9.]+ %\)",
                 r"^DISK +[0-9.]+ \w+ / [0-9.]+ \w+ \(", r"^COMMANDS +[0-9.]+ \w+ / [0-9.]+ \w+, \d+ processes", r"^EXECS +0 running"):
        ok(re.search(line, text, re.M), f"  {line}", text)
    r = h.call("metrics", "m", "--json")
    d = json.loads(r.stdout)
    ok(d["name"] == "m" and d["id"].startswith("local-") and d["metrics"]["cpu"]["count"] == 1 and d["metrics"]["cpu"]["interval_ms"] < 60000,
       "metrics --json is one document", d)

    p = h.start("metrics", "m", "-w", "--interval", "0.2", "--json")
    lines = [json.loads(p.stdout.readline()) for _ in range(3)]
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=LIMIT)
    ok(p.returncode == 0 and all(x["metrics"]["memory"]["total"] > 0 for x in lines), "--watch --json prints a document a line, until a signal", p.returncode)
    for cols in (80, 20):
        got, code = screen(h, ["metrics", "m", "-w", "--interval", "0.2"], cols, 4)
        shown = [re.sub(rb"\x1b\[[0-9]*[A-Z]|\r", b"", x) for x in got.split(b"\n")]
        ok(code == 0 and got.count(b"MEMORY") >= 2 and b"\x1b[" in got, f"--watch redraws on a terminal of {cols} columns; Ctrl-C ends it with 0",
           code, got[-300:])
        ok(max(len(x) for x in shown) < cols, "  and no line wraps", shown)
    got, code = screen(h, ["metrics", "m", "-w", "--interval", "0.2"], 80, 3, rows=4)
    ok(code == 0 and got.count(b"CPU") >= 2 and b"DISK" not in got and b"\x1b[3A" in got, "  nor scrolls in a low window", code, got[-300:])
    ok(got.endswith(b"^C\r\n"), "  what comes next begins a line", got[-20:])

    # --- wait for a command
    r = h.call("exec", "-d", "m", "--", "sh", "-c", "sleep 1; exit 7")
    eid = r.stdout.decode().strip()
    r = h.call("wait", "m", eid[:12] if len(eid) > 12 else eid)
    ok(r.returncode == 0 and r.stdout == b"7\n", "wait prints the status of a command", r, eid)
    r = h.call("wait", "m", eid, "--json")
    ok(json.loads(r.stdout)["status"] == 7, "  --json", r)
    eid = h.call("exec", "-d", "m", "--", "sleep", "1000").stdout.decode().strip()
    r = h.call("wait", "m", eid, "--timeout", "0.5")
    ok(r.returncode == 124 and r.stdout == b"" and b"0.5 seconds" in r.stderr and b"doctor" not in r.stderr, "--timeout gives up with 124", r)
    p = h.start("wait", "m", eid)
    time.sleep(0.5)
    h.call("kill", "m", eid)
    out, err = p.communicate(timeout=LIMIT)
    ok(p.returncode == 0 and out == b"137\n", "a killed one is 137", p.returncode, out, err)
    r = h.call("wait", "m", "nosuchid")
    ok(r.returncode == 1 and b"nosuchid" in r.stderr, "an unknown command", r)

    # --- wait for the sandbox
    r = h.call("wait", "m", "--timeout", "0.3")
    ok(r.returncode == 124 and b"m has not ended" in r.stderr, "a sandbox that runs", r)
    p = h.start("wait", "m")
    time.sleep(0.5)
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=LIMIT)
    ok(p.returncode == -signal.SIGINT, "Ctrl-C ends the waiting", p.returncode)
    p = h.start("wait", "m")
    q = h.start("wait", "m", "--json")
    time.sleep(0.5)
    h.call("rm", "m")
    out, err = p.communicate(timeout=LIMIT)
    ok(p.returncode == 0 and out in (b"TERMINATED\n", b"MISSING\n"), "the end of the sandbox is told", p.returncode, out, err)
    out, err = q.communicate(timeout=LIMIT)
    ok(q.returncode == 0 and json.loads(out)["name"] == "m", "  --json", out, err)
    same(h.left(), [], "nothing stays behind")
done()
