#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 400
# VARIANTS: sanitized
"""Process trees where it matters which process a number is, and cgroups that are not what they seem: B38, B39, B47, B49."""
import os
import signal
import subprocess
import tempfile

from _agentd import *

ME = os.getpid()
names = (f"t{i}" for i in range(10**6))


def alive(n):
    return processes(f"sleep\0{n}.{ME}".encode())


def run(a, script, **spec):
    name = next(names)
    s, b = a.put(name, shell=script, **spec)
    if s != 201:
        return s, b
    out, err, events = a.output(name)
    return out, err, events[-1]


def can(*argv):
    return os.getuid() == 0 and subprocess.run(argv, capture_output=True).returncode == 0


a = Agentd()

# --- B39
for to, deaths in (("group", 2), ("tree", 2), ("leader", 0)):
    name = next(names)
    a.put(name, shell=f"true & sleep 41.{ME} & sleep 41.{ME}; wait")
    until(lambda: len(alive(41)) == 2)
    dead = [p for p in zombies(a.json("GET", f"/v1/execs/{name}")[1]["pid"])]
    equal(a.json("POST", f"/v1/execs/{name}/signal", {"signal": "TERM", "to": to})[0], 200, f"B39: TERM to the {to}, one member is dead ({len(dead)})")
    ok(until(lambda: len(alive(41)) == 2 - deaths), f"  reaches {deaths} others", alive(41))
    a.request("DELETE", f"/v1/execs/{name}?kill=1")
    ok(until(lambda: not alive(41)), "  and DELETE the rest")

# --- A9
name = next(names)
a.put(name, shell="dd if=/dev/zero bs=100 count=1000000 2>/dev/null")
st, n, peak = a.stream(name), 0, 0
while f := st.frame():
    n += len(f[1]) if f[0] == 1 else 0
    last = f
    peak = max(peak, a.rss()) if n % 1000 == 0 else peak
ok(n == 100_000_000 and json.loads(last[1])["exit_code"] == 0 and not json.loads(last[1])["truncated"], "A9: a million small writes", (n, last))
ok(a.rss() < 6000, f"  in {max(peak, a.rss())} KiB")
a.stop()

# --- B38: numbers that come again
if can("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", "echo 400 >/proc/sys/kernel/pid_max && [ $(cat /proc/sys/kernel/pid_max) = 400 ]") and \
        int(open("/proc/sys/kernel/pid_max").read()) > 400:
    a = Agentd(prefix=["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", 'echo 400 >/proc/sys/kernel/pid_max; exec "$@"', "sh"])
    run(a, "i=0; while [ $i -lt 310 ]; do /bin/true; i=$((i+1)); done")  # numbers below 300 do not come again
    name = next(names)
    pid = a.put(name, shell="exit 3")[1]["pid"]
    a.output(name)
    out, err, end = run(a, f"i=0; while [ $i -lt 5000 ]; do setsid sleep 42.{ME} & [ $! = {pid} ] && break; kill -9 $!; wait $!; i=$((i+1)); done 2>/dev/null\n"
                           f"echo $!")
    if ok(out.decode() == f"{pid}\n" and len(alive(42)) == 1, f"the number {pid} of a leader that has ended is another's now", out):
        for to, want in (("leader", 410), ("group", 410), ("tree", 410)):
            for sig in ("TERM", "KILL"):
                equal(a.json("POST", f"/v1/execs/{name}/signal", {"signal": sig, "to": to})[0], want, f"B38: {sig} to its {to} is {want}")
        a.request("DELETE", f"/v1/execs/{name}?kill=1")
        time.sleep(0.5)
        ok(len(alive(42)) == 1, "  and reaches nobody, nor does DELETE")
    # a background child keeps the tree, not the number
    name = next(names)
    pid = a.put(name, shell=f"setsid sleep 43.{ME} & exit 0")[1]["pid"]
    a.output(name)
    out, err, end = run(a, f"i=0; while [ $i -lt 5000 ]; do setsid sleep 44.{ME} & [ $! = {pid} ] && break; kill -9 $!; wait $!; i=$((i+1)); done 2>/dev/null\n"
                           f"echo $!")
    ok(out.decode() == f"{pid}\n", "once more, with a child that is left", out)
    equal(a.json("POST", f"/v1/execs/{name}/signal", {"signal": "KILL", "to": "tree"})[0], 200, "B38: KILL to the tree")
    ok(until(lambda: not alive(43)), "  reaches the child")
    ok(len(alive(44)) == 1, "  and not who has the leader's number")
    a.stop()
    ok(until(lambda: not alive(42) and not alive(44)), "nothing is left")
else:
    skip("B38: a leader's number is another's", "no pid namespace with a pid_max of its own")

# --- B47
if can("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/sys/fs/cgroup"):
    a = Agentd(prefix=["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup; mkdir -p /sys/fs/cgroup/asb/work; exec "$@"', "sh"])
    equal(a.json("GET", "/v1/info")[1]["cgroups"], False, "B47: a tmpfs where cgroup2 should be is none")
    equal(run(a, "echo x")[0], b"x\n", "  commands run")
    b = run(a, f"setsid sleep 45.{ME} & sleep 45.{ME}", timeout_ms=500)[2]
    ok(b["timed_out"] and until(lambda: not alive(45)), "  and end whole", b)
    a.stop()
else:
    skip("B47: a tmpfs where cgroup2 should be", "no mount namespace")

# --- B49, and groups in groups: a hierarchy of its own, below a group of ours
mnt = tempfile.mkdtemp(prefix="agentd-tree-")
OWN = f"""mount -t cgroup2 none {mnt} && mkdir {mnt}/agentd-{ME} && echo $$ >{mnt}/agentd-{ME}/cgroup.procs &&
exec unshare --cgroup --mount sh -c 'mount -t cgroup2 none /sys/fs/cgroup && exec "$@"' sh "$@\""""
if can("unshare", "--mount", "sh", "-c", f"mount -t cgroup2 none {mnt} && mkdir {mnt}/agentd-{ME}-x && rmdir {mnt}/agentd-{ME}-x"):
    a = Agentd(prefix=["unshare", "--mount", "sh", "-c", OWN, "sh"])
    work = f"/proc/{a.pid}/root/sys/fs/cgroup/asb/work"
    equal(a.json("GET", "/v1/info")[1]["cgroups"], True, "trees are groups")
    group = run(a, "cat /proc/self/cgroup")[0].decode()
    ok("/asb/work/x" in group, "a command is born in its group", group)
    name = next(names)
    a.put(name, shell=f"sleep 46.{ME}", timeout_ms=3000)
    ok(until(lambda: alive(46)), "a command runs")

    def freeze(on):
        with open(work + "/cgroup.freeze", "w") as f:
            f.write(str(on))
        return until(lambda: f"frozen {on}" in open(work + "/cgroup.events").read())

    ok(freeze(1), "the workload is frozen")
    s, b = a.put(next(names), shell="echo x")
    ok(s == 503 and "frozen" in b["detail"], "B49: a start is refused at once", (s, b))
    equal(a.sh("echo x")[0], 503, "  on the compatible route too")
    equal(a.request("GET", "/healthz")[0], 200, "  agentd answers")
    ok(until(lambda: a.json("GET", f"/v1/execs/{name}")[1]["timed_out"] and not alive(46), 20), "  a time limit ends what is frozen")
    ok(freeze(0), "thawed")
    equal(run(a, "echo x")[0], b"x\n", "  commands run again")
    b = run(a, f"g=/sys/fs/cgroup$(grep ^0:: /proc/self/cgroup | cut -d: -f3-); mkdir $g/a $g/a/b; echo $$ >$g/a/b/cgroup.procs; sleep 47.{ME} & "
               f"setsid sleep 47.{ME} & cat /proc/self/cgroup; wait", timeout_ms=1500)
    ok(b[0].endswith(b"/a/b\n") and b[2]["timed_out"] and until(lambda: not alive(47)), "a tree that has made groups of its own ends whole", b)
    a.json("POST", "/v1/exec", {"command": "true"})
    a.stop()
    left = subprocess.run(["unshare", "--mount", "sh", "-c", f"mount -t cgroup2 none {mnt}; cd {mnt}/agentd-{ME} && "
                           "for i in 1 2 3 4 5 6 7 8; do find . -depth -mindepth 1 -type d -exec rmdir {} + 2>/dev/null; done; cd ..; "
                           f"sleep 0.2; rmdir agentd-{ME}"], capture_output=True)
    equal(left.returncode, 0, "nothing is left in the groups")
else:
    skip("B49: a frozen workload", "cgroup2 cannot be mounted here")
os.rmdir(mnt)
done()
