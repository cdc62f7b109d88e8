#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 300
"""Limits of single commands: rlimits everywhere; memory, CPU and processes where there is cgroup2 (B45, B46), and what
happens where there is not. AGENTD_TEST_PORT: the agentd of a running sandbox instead of one of its own."""
import os
import time

from _agentd import *

if os.environ.get("AGENTD_TEST_PORT"):
    a = Agentd.__new__(Agentd)
    a.port = int(os.environ["AGENTD_TEST_PORT"])
else:
    a = Agentd()
names = (f"l{i}-{os.getpid()}" for i in range(10**6))


def run(script, limits=None, argv=None, **spec):
    """(stdout, stderr, exit event), or (status, body) of a refusal"""
    name = next(names)
    if limits is not None:
        spec["limits"] = limits
    s, b = a.put(name, **({"argv": argv} if argv else {"shell": script}), **spec)
    if s != 201:
        return s, b
    out, err, events = a.output(name, timeout=250)
    a.request("DELETE", f"/v1/execs/{name}?kill=1")
    return out.decode(), err.decode(), events[-1]


def rlimits(**want):
    """{name in /proc/self/limits: (soft, hard)} of a command that starts with these"""
    out = run("cat /proc/self/limits", {"rlimits": want})[0]
    found = {}
    for line in out.splitlines()[1:]:
        w = line[26:].split()
        found[line[:26].strip()] = (w[0], w[1])
    return found


# --- rlimits
PROC = {"as": "Max address space", "core": "Max core file size", "cpu": "Max cpu time", "data": "Max data size",
        "fsize": "Max file size", "locks": "Max file locks", "memlock": "Max locked memory", "msgqueue": "Max msgqueue size",
        "nice": "Max nice priority", "nofile": "Max open files", "nproc": "Max processes", "rss": "Max resident set",
        "rtprio": "Max realtime priority", "rttime": "Max realtime timeout", "sigpending": "Max pending signals", "stack": "Max stack size"}
SAFE = {"as": 2**33, "data": 2**32, "stack": 2**22, "nproc": 4000, "nofile": 333, "fsize": 2**31}
with open("/proc/self/status") as status:
    RAISE = int(next(x for x in status if x.startswith("CapEff")).split()[1], 16) >> 24 & 1  # CAP_SYS_RESOURCE
before = rlimits()
ok(set(PROC.values()) == set(before), "every rlimit of the kernel has a name", sorted(before))
for name, text in PROC.items():
    v = SAFE.get(name, 5)
    if before[text][1] == "0" and not RAISE:
        s, b = run("true", {"rlimits": {name: v}})
        ok(s == 400 and b["step"] == "limits", f"{name} cannot be raised here, and that is told", b)
        continue
    got = rlimits(**{name: v})
    ok(got[text] == (str(v), str(v)) and {k: x for k, x in got.items() if k != text} == {k: x for k, x in before.items() if k != text},
       f"{name} alone", got)
if RAISE:
    got = rlimits(core={"soft": 0, "hard": "unlimited"}, fsize="unlimited", nofile={"soft": 10, "hard": 20})
    ok(got["Max core file size"] == ("0", "unlimited") and got["Max file size"] == ("unlimited", "unlimited") and
       got["Max open files"] == ("10", "20"), "soft and hard", got)
equal(rlimits(), before, "and the next command has none of it")
out, err, end = run("head -c 100000 /dev/zero >/tmp/agentd-limits.$$; s=$?; rm /tmp/agentd-limits.$$; exit $s", {"rlimits": {"fsize": 4096}})
ok(end["exit_code"] != 0 and ("too large" in err or "limit exceeded" in err), "fsize is kept", (err, end))
s = run("while :; do :; done", {"rlimits": {"cpu": {"soft": 1, "hard": 2}}}, timeout_ms=60000)
ok(s[2]["signal"] in (9, 24) and not s[2]["timed_out"], "cpu is kept", s)
s, b = run("true", {"rlimits": {"nofile": "unlimited"}})
ok(s == 400 and b["step"] == "limits" and b["errno"], "one that the kernel refuses is 400", b)

# --- what is no limit
for limits, name in (
        ([], "limits"), (5, "limits"), ({"x": 1}, '"x"'), ({"memory": 4194303}, "memory"), ({"memory": "1g"}, "memory"), ({"memory": -1}, "memory"),
        ({"memory": 1e300}, "memory"), ({"memory": 5000000.5}, "memory"), ({"cpus": 0}, "cpus"), ({"cpus": -1}, "cpus"), ({"cpus": "2"}, "cpus"),
        ({"cpus": 1e9}, "cpus"), ({"pids": 0}, "pids"), ({"pids": 1.5}, "pids"), ({"pids": True}, "pids"), ({"rlimits": []}, "rlimits"),
        ({"rlimits": {"NOFILE": 5}}, "NOFILE"), ({"rlimits": {"rlimit_nofile": 5}}, "rlimit_nofile"), ({"rlimits": {"nofile": "5"}}, "nofile"),
        ({"rlimits": {"nofile": "Unlimited"}}, "nofile"), ({"rlimits": {"nofile": -1}}, "nofile"), ({"rlimits": {"nofile": None}}, "nofile"),
        ({"rlimits": {"nofile": {}}}, "nofile"), ({"rlimits": {"nofile": {"soft": 1}}}, "nofile"), ({"rlimits": {"nofile": {"soft": 2, "hard": 1}}}, "nofile"),
        ({"rlimits": {"nofile": {"soft": 1, "hard": 1, "x": 1}}}, "nofile"), ({"rlimits": {"nofile": {"soft": "unlimited", "hard": 1}}}, "nofile")):
    s, b = a.put("bad", shell="true", limits=limits)
    ok(s == 400 and name in b["detail"], f"limits {json.dumps(limits)[:60]} is 400", (s, b))
s, b, h = a.request("PUT", "/v1/execs/bad", b'{"shell":"true","limits":{"rlimits":{' + b",".join([b'"nofile":5'] * 17) + b"}}}")
equal(s, 400, "one limit many times is 400")
for limits in ({}, None, {"memory": None, "cpus": None, "pids": None, "rlimits": {}}):
    equal(run("echo x", limits)[0], "x\n", f"limits {limits} is none")

# --- memory, CPU, processes
EAT = "import sys\nb = bytearray()\nwhile len(b) < 200 << 20: b += b'x' * (1 << 20)\nprint('ate')"


def own_group(file):
    """What a command reads in its own group"""
    return run(f"cat /sys/fs/cgroup$(cut -d: -f3- /proc/self/cgroup)/{file}", None if file == "pids.max" else
               {"memory": 64 << 20, "cpus": 0.25, "pids": 50})[0].split()


info = a.json("GET", "/v1/info")[1]
kept = os.path.exists("/sys/fs/cgroup/asb/work/memory.max") and info["cgroups"]
if not kept:
    out, err, end = run(None, {"memory": 100 << 20}, argv=["python3", "-c", EAT])
    ok("MemoryError" in err and end["exit_code"] == 1 and not end["oom"], "without a group memory is RLIMIT_AS", (err, end))
    equal(run(None, {"memory": 2 << 30}, argv=["python3", "-c", EAT])[0], "ate\n", "  which is enough when it is enough")
    for limits in ({"pids": 5}, {"cpus": 1}, {"memory": 1 << 30, "pids": 5}):
        s, b = run("true", limits)
        ok(s == 400 and "cgroup2" in b["detail"] and b["step"] == "limits" and f"limits.{list(limits)[-1]}" in b["detail"],
           f"{limits} is refused with its reason", b)
    done()

equal(own_group("memory.max"), [str(64 << 20)], "memory is the group's")
equal(own_group("cpu.max"), ["25000", "100000"], "cpus too")
equal(run("cat /sys/fs/cgroup$(cut -d: -f3- /proc/self/cgroup)/pids.max", {"pids": 50})[0], "50\n", "pids too")
with open("/sys/fs/cgroup/asb/work/pids.max") as f:
    work = int(f.read())
equal(own_group("pids.max"), [str(work // 2)], "without a limit: half of the processes of all work")
out, err, end = run(None, {"memory": 64 << 20}, argv=["python3", "-c", EAT])
ok(out == "" and end["signal"] == 9 and end["oom"] is True, "B45: too much memory ends in an OOM kill, and is told", (out, err, end))
out, err, end = run("python3 -c \"$EAT\"; echo $?", {"memory": 64 << 20}, env={"EAT": EAT})
ok(out == "137\n" and end["exit_code"] == 0 and end["oom"] is True, "  also of a child", (out, end))
s, b = a.json("POST", "/v1/exec", {"command": "sh", "args": ["-c", "kill -9 $$"]})
ok(b["signal"] == 9 and b["oom"] is False, "KILL alone is no OOM kill", b)
out, err, end = run("head -c 150000000 /dev/zero >/var/tmp/agentd-limits; rm /var/tmp/agentd-limits; "
                    "cat /sys/fs/cgroup$(cut -d: -f3- /proc/self/cgroup)/memory.events", {"memory": 32 << 20})
events = dict(x.split() for x in out.splitlines())
ok(end["exit_code"] == 0 and int(events["max"]) > 0 and events["oom_kill"] == "0" and end["oom"] is False,
   "B46: memory.events that change without a kill are no OOM kill", (events, end))
out, err, end = run(None, {"pids": 10}, argv=["python3", "-c", "import os, time\nn = 0\ntry:\n while True:\n  if os.fork() == 0: time.sleep(60)\n"
                                             "  n += 1\nexcept OSError as e: print(n, e.errno)"])
equal(out, "9 11\n", "pids is kept")
out, err, end = run(None, {"cpus": 0.2}, argv=["python3", "-c", "import time\nb, used = time.monotonic(), time.process_time()\n"
                                              "while time.monotonic() < b + 3: pass\nprint(time.process_time() - used)"])
ok(0 < float(out) < 1.8, "cpus is kept", out)

# --- a fork bomb
bomb = next(names)
a.put(bomb, argv=["python3", "-c", "import os, time\nwhile True:\n try:\n  os.fork()\n except OSError: time.sleep(0.5)"])


def full():
    with open("/sys/fs/cgroup/asb/work/pids.current") as f:
        return int(f.read()) >= work // 2


full = until(full, 120)
ok(full, "B45: a fork bomb fills its half")
equal(run("echo still")[0], "still\n", f"  others start")
a.request("DELETE", f"/v1/execs/{bomb}")
ok(until(lambda: int(open("/sys/fs/cgroup/asb/work/pids.current").read()) < 50, 60), "  and all of it is killed")
ok(until(lambda: run("true")[2]["exit_code"] == 0, 5), "  agentd is alive")
groups = lambda: [x for x in os.listdir("/sys/fs/cgroup/asb/work") if x.startswith("x")]
ok(until(lambda: len(groups()) <= 1, 10), "and no group is left", groups())
done()
