#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 900
"""No two sandboxes are one: a process that runs on in a branch, after stop and start, and in two restorations of one snapshot
draws other random numbers, UUIDs and ports in each; machine-id, host name and agentd's generation differ; the clock is right
before the first command; the image's hooks have run by then. And a template whose guest stays silent does no harm.
(Clones of one template: snapshot.py.)"""
import glob
import os
import signal
import threading
import time

from _asb import Home, done, need_vm, ok, same
from _clones import CONNECTED, are_apart

need_vm()

# Runs since before the copies: what it has of its own is the same in all of them.
ORACLE = CONNECTED + r"""
import json, os, time, urllib.request, uuid
n = 0
while True:
    n += 1
    while not os.path.exists(f"/dev/shm/ask.{n}"):
        time.sleep(0.05)
    ports = []
    for _ in range(3):
        s = socket.socket(); s.bind(("127.0.0.1", 0)); ports.append(s.getsockname()[1]); s.close()
    with open("/dev/urandom", "rb") as f:
        pool = f.read(16).hex()
    kernel = open("/proc/sys/kernel/random/uuid").read().strip()
    agent = json.load(urllib.request.urlopen("http://127.0.0.1:8080/v1/info"))["generation"]
    text = f"{os.getrandom(16).hex()}\n{pool}\n{uuid.uuid4()}\n{kernel}\n{ports}\n{connected()}\n{agent}\n"
    open(f"/dev/shm/new.{n}", "w").write(text)
    os.rename(f"/dev/shm/new.{n}", f"/dev/shm/told.{n}")
"""
WHAT = ("getrandom", "/dev/urandom", "uuid4", "kernel uuid", "ports", "ports of connections", "generation", "machine-id",
        "host name")
HOOK = "#!/bin/sh\n{ date +%s.%N; cat /run/agentd/identity; echo; } > /root/hook\n"
ASK = "touch /dev/shm/ask.{n}; i=0; while [ ! -e /dev/shm/told.{n} ] && [ $i -lt 300 ]; do sleep 0.1; i=$((i + 1)); done; cat /dev/shm/told.{n}"


def ask(h, name, n):
    """What the process that runs on, and a new one, say in NAME. N: how often it has been asked, this time included."""
    before = time.time()
    r = h.call("exec", name, "--", "sh", "-c", "date +%s.%N")
    there, after = float(r.stdout or 0), time.time()
    ok(before - 0.5 <= there <= after + 0.5, f"{name}: its clock is right at the first command", before, there, after, r)
    r = h.call("exec", name, "--", "sh", "-c", ASK.format(n=n) + " /etc/machine-id; hostname; cat /root/hook")
    lines = r.stdout.decode().splitlines()
    if not ok(len(lines) >= 11, f"{name}: the process that ran goes on", r):
        return ["?"] * 9
    hook_time, hook_identity = float(lines[9]), lines[10]
    ok(abs(hook_time - before) < 120 and hook_identity == lines[6],
       f"{name}: its hook has run before the first command, in the right time and with the generation that agentd has", lines)
    return lines[:9]


def differ(seen, what, but=()):
    for i, name in enumerate(WHAT):
        if name not in but:
            values = [s[i] for s in seen]
            ok(are_apart(values) if name == "ports of connections" else len(set(values)) == len(values), f"{what}: {name} differs", values)


def copies(h):
    same(h.call("create", "box", "-m", "128").returncode, 0, "create")
    for phase in ("run", "resume"):
        h.call("exec", "box", "--", "sh", "-c", f"mkdir -p /etc/asb/hooks.d/{phase}; cat > /etc/asb/hooks.d/{phase}/50-test; "
               f"chmod 755 /etc/asb/hooks.d/{phase}/50-test; /etc/asb/hooks.d/{phase}/50-test", input=HOOK.encode())
    h.call("exec", "box", "--", "sh", "-c", "cat > /root/oracle.py", input=ORACLE.encode())
    h.call("exec", "-d", "box", "--", "python3", "/root/oracle.py")
    first = ask(h, "box", 1)
    same(h.call("branch", "box", "--name", "left", "--name", "right").returncode, 0, "branch")
    seen = [ask(h, n, 2) for n in ("left", "right")]
    again = h.call("exec", "box", "--", "sh", "-c", ASK.format(n=2)).stdout.decode().splitlines()
    differ([*seen, [*again, *first[7:]]], "a sandbox and its branches")
    h.call("rm", "left", "right")
    h.call("stop", "box")
    same(h.call("start", "box").returncode, 0, "stop and start")
    third = ask(h, "box", 3)
    differ([first, third], "before and after a suspension", ("host name",))
    same(h.call("snapshot", "create", "box", "shot").returncode, 0, "snapshot")
    for name in ("a", "b"):
        same(h.call("snapshot", "restore", "shot", name).returncode, 0, f"restore {name}")
    differ([third, ask(h, "a", 4), ask(h, "b", 4)], "two restorations of one snapshot")
    h.call("rm", "box", "a", "b")


def machine(h):
    """The pid of QEMU in this HOME, or None."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.path.basename(os.readlink(f"/proc/{pid}/exe")).startswith("qemu") and os.readlink(f"/proc/{pid}/cwd").startswith(h.path):
                return int(pid)
        except OSError:
            pass
    return None


def silent(h):
    """A clone's QEMU that stands still from its first moment: after 20 s its sandbox boots, and the template goes."""
    old = glob.glob(os.path.join(h.path, ".agent_sandbox/local/templates/[0-9a-f]*/template.json"))
    inodes = [os.stat(x).st_ino for x in old]

    def stop_it():
        until = time.monotonic() + 60
        while time.monotonic() < until:
            pid = machine(h)
            if pid:
                os.kill(pid, signal.SIGSTOP)
                return
    t = threading.Thread(target=stop_it)
    t.start()
    r = h.call("run", "-v", "-m", "128", "--", "echo", "fine")
    t.join()
    ok(r.returncode == 0 and r.stdout == b"fine\n" and b"no-template" in r.stderr, "a template whose guest is silent: the sandbox boots", r)
    until = time.monotonic() + 60
    def now():
        return [os.stat(x).st_ino for x in glob.glob(os.path.join(h.path, ".agent_sandbox/local/templates/[0-9a-f]*/template.json"))]
    while (not now() or now() == inodes) and time.monotonic() < until:
        time.sleep(0.1)
    ok(len(inodes) == 1 and len(now()) == 1 and now() != inodes, "and leaves a new template", inodes, now())


def slow(h):
    """A restored guest that does not answer in time is not killed: its memory is nowhere else."""
    h.call("create", "box", "-m", "128")
    h.call("exec", "box", "--", "sh", "-c", "echo memory > /dev/shm/marker")
    h.call("stop", "box")
    p = h.start("start", "-v", "--start-timeout", "10", "box")
    for line in p.stderr:
        if line.startswith(b"asb: memory"):
            os.kill(machine(h), signal.SIGSTOP)
            break
    err = p.stderr.read()
    ok(p.wait(timeout=60) == 1 and b"has not answered in time" in err, "start of one that is slow says so", err)
    os.kill(machine(h) or 0, signal.SIGCONT)
    until = time.monotonic() + 60
    while b"RUNNING" not in h.call("ps", "box").stdout and time.monotonic() < until:
        time.sleep(0.2)
    same(h.call("exec", "box", "cat", "/dev/shm/marker").stdout, b"memory\n", "and it goes on with its memory")
    h.call("stop", "box")
    base = glob.glob(os.path.join(h.path, ".agent_sandbox/local/vms/local-*/base.ram"))[0]
    os.truncate(base, 0) if os.stat(base).st_nlink == 1 else os.unlink(base)
    r = h.call("start", "box")
    ok(r.returncode == 1 and b"base.ram" in r.stderr, "one whose first memory is missing is refused", r)
    same(h.call("restart", "box").returncode, 0, "restart boots it")
    h.call("rm", "box")


with Home() as home:
    copies(home)
    silent(home)
    slow(home)
    same(home.left(), [], "nothing is left")
done()
