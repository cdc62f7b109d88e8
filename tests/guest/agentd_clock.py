#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 200
# VARIANTS: sanitized
"""Time limits count running time. A pause whose clock goes on (a hardware counter as clock source, a restored snapshot) is
played by SIGSTOP for agentd and its commands: both see CLOCK_MONOTONIC jump and have not run."""
import os
import signal
import threading
import time

from _agentd import *

a = Agentd()


def state(name):
    return a.json("GET", f"/v1/execs/{name}")[1]


def pause(pids, seconds):
    for p in pids:
        os.kill(p, signal.SIGSTOP)
    time.sleep(seconds)
    for p in pids:
        os.kill(p, signal.SIGCONT)


pids = [a.put("short", argv=["sleep", "100"], timeout_ms=9000)[1]["pid"], a.put("long", argv=["sleep", "100"], timeout_ms=60000)[1]["pid"],
        a.put("none", argv=["sleep", "100"])[1]["pid"]]
answer = []
compat = threading.Thread(target=lambda: answer.append(a.exec("sleep", ["100"], timeout=9)))
compat.start()
time.sleep(1.2)
began = time.monotonic()
pause([a.pid, *pids], 12)
s = state("short")
ok(s["state"] == "running" and not s["timed_out"], "after a pause that is longer than its limit a command still runs", s)
ok(not answer, "  one of the compatible route too")
ok(until(lambda: state("short")["state"] == "exited", 60), "and its limit comes")
s = state("short")
ok(s["timed_out"] and s["signal"] == 9, "  as a time limit", s)
compat.join(60)
ok(answer and answer[0][0] == 504, "  on both routes", answer)
ok(time.monotonic() - began > 12 + 5, "  not before the time that was left of it")
ok(state("long")["state"] == "running" and state("none")["state"] == "running", "other commands are not concerned")
a.put("two", argv=["sleep", "100"], timeout_ms=1000)
ok(until(lambda: state("two")["timed_out"], 20), "later limits are as before")

# --- a pause while nothing is limited
for n in ("short", "long", "two"):
    a.request("DELETE", f"/v1/execs/{n}")
pause([a.pid], 4)
a.put("three", argv=["sleep", "100"], timeout_ms=1500)
began = time.monotonic()
ok(until(lambda: state("three")["timed_out"], 20) and time.monotonic() - began < 15, "a pause before the start is nobody's")
for n in ("three", "none"):
    a.request("DELETE", f"/v1/execs/{n}")


def wakeups():
    with open(f"/proc/{a.pid}/status") as f:
        return int(next(x for x in f if x.startswith("voluntary")).split()[1])


time.sleep(1)
before = wakeups()
time.sleep(4)
ok(wakeups() - before <= 2, "without limits the clock does not tick", wakeups() - before)
done()
