#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 900
"""Templates, suspended sandboxes and branches: that no two are alike, nothing is lost, and what is damaged is refused."""
import glob
import json
import os
import signal
import subprocess
import time

from _asb import Home, done, need_vm, ok, same
from _clones import CONNECTED, are_apart
from _shape import digest

need_vm()

WHO = ("cat /etc/machine-id; hostname; cat /run/agentd/identity; echo; cat /proc/sys/kernel/random/uuid; "
       "head -c 16 /dev/urandom | od -An -tx1; python3 -c '" + CONNECTED + "import os, uuid; print(os.getrandom(16).hex()); print(uuid.uuid4()); print(connected())'")


def templates(h):
    return sorted(glob.glob(os.path.join(h.path, ".agent_sandbox/local/templates/[0-9a-f]*")))


def wait_template(h, count=1):
    """It is given its name when it is on the disk, by a process that nobody waits for."""
    until = time.monotonic() + 60
    while len(templates(h)) < count and time.monotonic() < until:
        time.sleep(0.1)
    return same(len(templates(h)), count, f"{count} template(s) after the first sandbox of a kind")


def stages(r):
    return [x.split()[1] for x in r.stderr.decode().splitlines() if x.startswith("asb: ") and x.endswith(" ms")]


def run(h, *words, **kw):
    return h.call("run", "-v", "-m", "256", *words, **kw)


def first_and_second(h):
    r = run(h, "--", "sh", "-c", WHO)
    ok(r.returncode == 0 and "template" in stages(r) and "init" in stages(r), "the first boots and leaves a template", r)
    first = r.stdout.decode().split("\n")
    wait_template(h)
    seen = [first]
    for i in range(2):
        r = run(h, "--", "sh", "-c", WHO)
        ok(r.returncode == 0 and "init" not in stages(r) and "ready" in stages(r), f"clone {i + 1} does not boot", stages(r), r)
        seen.append(r.stdout.decode().split("\n"))
    for i, what in enumerate(("machine-id", "host name", "generation", "kernel uuid", "/dev/urandom", "getrandom", "uuid4")):
        values = {s[i] for s in seen if len(s) > i}
        same(len(values), 3, f"{what} differs in each of three")
    ok(are_apart([s[7] for s in seen if len(s) > 7]), "so do the ports of their connections", seen)
    same(len(templates(h)), 1, "one template")
    same(h.left(), [], "nothing else is left")


def clock(h):
    before = time.time()
    r = run(h, "--", "date", "+%s.%N")
    there = float(r.stdout or 0)
    ok(before - 0.5 <= there <= time.time() + 0.5, "a clone's clock is right", before, there, time.time())


def cold(h):
    r = run(h, "--no-template", "--", "cat", "/proc/sys/kernel/hostname")
    ok(r.returncode == 0 and "init" in stages(r) and "template" not in stages(r), "--no-template boots", r)
    same(len(templates(h)), 1, "and leaves none")


def variables(h):
    r = run(h, "-e", "A=1", "--name", "named", "--", "sh", "-c", "echo $A; hostname; cat /proc/cmdline | grep -c named")
    same(r.stdout, b"1\nnamed\n0\n", "a clone has its own variables and name, and no other's")


def kept(h):
    """A named one that came from a template, through its life."""
    same(h.call("create", "box", "-m", "256").returncode, 0, "create from a template")
    h.call("exec", "box", "--", "sh", "-c", "echo kept > /root/file")
    same(h.call("stop", "box").stdout, b"suspended box\n", "stop")
    same(h.call("start", "box").stdout, b"resumed box\n", "start")
    same(h.call("restart", "box").stdout, b"restarted box\n", "restart boots it from its disk")
    same(h.call("exec", "box", "cat", "/root/file").stdout, b"kept\n", "with what was written")
    same(h.call("exec", "box", "hostname").stdout, b"box\n", "under its own name")
    h.call("rm", "box")
    same(h.left(), [], "nothing is left")


def cut(name):
    return lambda top: os.truncate(os.path.join(top, name), 100)


def box_path(h):
    return glob.glob(os.path.join(h.path, ".agent_sandbox/local/vms/local-*"))[0]


def machines(h):
    """Processes whose working directory is a sandbox's folder: its supervisor and QEMU."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd").startswith(h.path):
                found.append(int(pid))
        except OSError:
            pass
    return found


def state(h):
    return h.call("ps", "box").stdout.decode().split()[1]


COUNT = "i=0; while [ $i -lt 40 ]; do echo $i; i=$((i + 1)); sleep 0.2; done; exit 7"


def suspended(h, name, *options):
    h.call("create", "box", "-m", "256", *options)
    h.call("exec", "box", "--", "sh", "-c", "echo memory > /dev/shm/marker; cat /etc/machine-id /run/agentd/identity > /root/before")
    p = h.start("exec", "box", "--timeout", "60", "--", "sh", "-c", COUNT)
    first = p.stdout.readline()
    same(h.call("stop", "box").stdout, b"suspended box\n", f"{name}: stop")
    same((state(h), machines(h)), ("SUSPENDED", []), f"{name}: suspended, and no process is left")
    time.sleep(2)
    same(h.call("start", "box").stdout, b"resumed box\n", f"{name}: start")
    out, err = p.communicate(timeout=120)
    same((first + out, p.returncode), ("".join(f"{i}\n" for i in range(40)).encode(), 7),
         f"{name}: a command that ran goes on, none of its output is lost or said twice")
    same(h.call("exec", "box", "cat", "/dev/shm/marker").stdout, b"memory\n", f"{name}: its memory is there")
    r = h.call("exec", "box", "--", "sh", "-c", "cat /etc/machine-id /run/agentd/identity | cmp -s - /root/before; echo $?")
    same(r.stdout, b"1\n", f"{name}: its identity is another")
    there = float(h.call("exec", "box", "date", "+%s.%N").stdout or 0)
    ok(abs(time.time() - there) < 2, f"{name}: its clock is right", time.time() - there)
    ok(not os.path.exists(os.path.join(box_path(h), "saved")), f"{name}: what was written down is gone")


def again(h, name):
    """Of a guest that was restored before, with more in its memory."""
    h.call("exec", "box", "--", "sh", "-c", "head -c 60000000 /dev/urandom > /dev/shm/big; sha256sum /dev/shm/big > /root/sum")
    h.call("stop", "box")
    h.call("start", "box")
    same(h.call("exec", "box", "sha256sum", "-c", "/root/sum").stdout, b"/dev/shm/big: OK\n", f"{name}: a second time")


def killed_after(h):
    """Whoever is killed afterwards, a suspended one stays what it is; one that ran is off."""
    h.call("stop", "box")
    with open(os.path.join(box_path(h), "status.json"), "w") as f:
        f.write('{"state": "RUNNING", "accel": "tcg", "reason": ""}')
    os.makedirs(os.path.join(box_path(h), "saved.new"))
    same(state(h), "SUSPENDED", "a supervisor that was killed when all was written down")
    same(h.call("start", "box").returncode, 0, "leaves a sandbox that goes on")
    for pid in machines(h):
        os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + 20
    while machines(h) and time.monotonic() < until:
        time.sleep(0.1)
    same(state(h), "TERMINATED", "a killed one that ran is off")
    same(h.call("start", "box").stdout, b"started box\n", "and boots")


def refused(h, what, damage):
    h.call("stop", "box")
    damage(os.path.join(box_path(h), "saved"))
    r = h.call("start", "box")
    ok(r.returncode == 1 and b"error: " in r.stderr, f"{what}: start is refused", r)
    same(state(h), "SUSPENDED", f"{what}: it stays suspended")
    same(h.call("restart", "box").stdout, b"restarted box\n", f"{what}: restart boots it")
    same(h.call("exec", "box", "cat", "/root/sum").returncode, 0, f"{what}: with its disk")


def misfit(saved):
    path = os.path.join(saved, "state.json")
    text = open(path).read()
    i = text.index('"fit": "') + 8
    with open(path, "w") as f:
        f.write(text[:i] + ("1" if text[i] != "1" else "2") + text[i + 1:])


def no_space(h):
    if os.geteuid() != 0:
        ok(True, "a full disk # SKIP needs root to mount a small file system")
        return
    small = os.path.join(h.top, "small")
    os.makedirs(small)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=30m", "tmpfs", small], check=False).returncode:
        ok(True, "a full disk # SKIP cannot mount a small file system here")
        return
    try:
        env = {"HOME": small}
        same(h.call("create", "box", "-m", "256", env=env).returncode, 0, "no room for a template: it starts all the same")
        r = h.call("stop", "box", env=env)
        ok(r.returncode == 1 and b"space" in r.stderr, "no room for its memory: stop fails and says so", r)
        same(h.call("exec", "box", "echo", "alive", env=env).stdout, b"alive\n", "and the sandbox runs on")
        h.call("rm", "box", env=env)
        same(h.call("ls", "-q", env=env).stdout, b"", "and can be removed")
    finally:
        subprocess.run(["umount", "-l", small], check=False)


WHO_NOW = "hostname; cat /etc/machine-id; head -c 16 /dev/urandom | od -An -tx1; cat /run/agentd/identity; echo; cat /dev/shm/marker /root/disk; date +%s.%N"


def branches(h):
    """The box of suspended(), running."""
    h.call("exec", "box", "--", "sh", "-c", "echo disk > /root/disk")
    p = h.start("exec", "box", "--", "sh", "-c", COUNT)
    p.stdout.readline()
    ids = [{x["id"] for x in json.loads(h.call("execs", "box", "--json").stdout)["execs"]}]
    r = h.call("branch", "box", "--name", "left", "--name", "right")
    same([x.split()[:2] for x in r.stdout.decode().splitlines()], [["created", "left"], ["created", "right"]], "branch")
    seen = [h.call("exec", n, "--", "sh", "-c", WHO_NOW).stdout.decode().splitlines() for n in ("box", "left", "right")]
    same([s[0] for s in seen], ["box", "left", "right"], "each has its own host name")
    for i, what in ((1, "machine-id"), (2, "/dev/urandom"), (3, "generation")):
        same(len({s[i] for s in seen}), 3, f"{what} differs in source and branches")
    same([s[4:6] for s in seen], [["memory", "disk"]] * 3, "memory and disk are the source's")
    ok(all(abs(time.time() - float(s[6])) < 60 for s in seen), "clocks", seen)
    ids += [{x["id"] for x in json.loads(h.call("execs", n, "--json").stdout)["execs"]} for n in ("left", "right")]
    ok(ids[0] & ids[1] & ids[2], "a command that runs has the same id in all", ids)
    out = p.communicate(timeout=120)[0]
    same((out, p.returncode), ("".join(f"{i}\n" for i in range(1, 40)).encode(), 7), "the source's command goes on, and nothing is lost")
    h.call("exec", "left", "--", "sh", "-c", "echo left > /root/disk; echo left > /dev/shm/marker")
    same(h.call("exec", "box", "cat", "/root/disk", "/dev/shm/marker").stdout, b"disk\nmemory\n", "what a branch writes stays there")
    ok(not glob.glob(os.path.join(h.path, ".agent_sandbox/local/vms/*/branch*")), "no copy is left")
    r = h.call("branch", "box", "--name", "new", "--name", "left")
    same((r.returncode, h.call("ps", "new").returncode), (1, 1), "a name that is taken: nothing is made")
    h.call("stop", "box")
    same(h.call("branch", "box", "--name", "third").returncode, 0, "a suspended one is copied too")
    same((state(h), h.call("exec", "third", "cat", "/dev/shm/marker").stdout), ("SUSPENDED", b"memory\n"), "and stays suspended")
    h.call("rm", "left", "right", "third")
    same(h.call("start", "box").returncode, 0, "and goes on when its branches are gone")
    same(h.call("branch", "nobody", "--name", "x").returncode, 1, "a branch of nobody")
    same(h.call("branch", "box").returncode, 2, "a branch without a name")


def life(h):
    suspended(h, "from a template")
    again(h, "from a template")
    branches(h)
    killed_after(h)
    refused(h, "a memory that was cut", cut("ram"))
    refused(h, "one of another machine", misfit)
    h.call("rm", "box")
    suspended(h, "booted", "--no-template")
    again(h, "booted")
    h.call("rm", "box")
    same(h.left(), [], "nothing is left of it")


def many(h):
    ps = [h.start("run", "-m", "256", "--", "cat", "/etc/machine-id") for _ in range(4)]
    out = [p.communicate(timeout=120)[0] for p in ps]
    ok(len(set(out)) == 4 and all(len(x) == 33 for x in out), "four at once are four", out)


def mappings(h):
    """The permissions of every mapping of a template's memory in the QEMUs of this HOME."""
    found = []
    for path in glob.glob("/proc/[0-9]*/maps"):
        try:
            if os.readlink(os.path.dirname(path) + "/cwd").startswith(h.path):
                found += [line.split()[1] for line in open(path, encoding="utf-8") if "/base.ram" in line]
        except OSError:
            pass
    return found


def untouched(h):
    """QEMU has the memory of the template open for writing; nothing that a guest writes may get there."""
    path = os.path.join(templates(h)[0], "ram")
    before = digest(path)
    fill = "import sys\nb = bytearray(b'x') * (150 << 20)\nprint(len(b), flush=True)\nsys.stdin.read()"
    p = h.start("run", "-m", "256", "-i", "--", "python3", "-c", fill, stdin=subprocess.PIPE)
    same(p.stdout.readline(), b"157286400\n", "a guest that writes to all of its memory")
    found = mappings(h)
    ok(found and all(x.endswith("p") for x in found), "has it mapped privately", found)
    p.communicate(timeout=60)
    same(digest(path), before, "and the template is what it was")


def broken(h, what, damage):
    top = templates(h)[0]
    damage(top)
    r = run(h, "--", "echo", "fine")
    ok(r.returncode == 0 and r.stdout == b"fine\n" and "init" in stages(r), f"{what}: the sandbox boots", r)
    wait_template(h)
    r = run(h, "--", "echo", "fine")
    ok(r.returncode == 0 and "init" not in stages(r), f"{what}: a new one was made", r)


def scribble(name):
    def f(top):
        with open(os.path.join(top, name), "r+b") as file:
            file.seek(8192)
            file.write(b"\0" * 4096)
    return f


def cheat(top):
    """A device state that has the right sum, and is none."""
    import hashlib
    with open(os.path.join(top, "devices"), "r+b") as file:
        data = bytearray(file.read())
        data[200:] = b"\xff" * (len(data) - 200)
        file.seek(0)
        file.write(data)
    path = os.path.join(top, "template.json")
    lines = open(path).read().splitlines()
    lines = [f'  "devices": "{hashlib.sha256(data).hexdigest()}"' if '"devices"' in x else x for x in lines]
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


def half_made(h):
    root = os.path.dirname(templates(h)[0])
    os.makedirs(os.path.join(root, ".new-0123456789abcdef0123456789abcdef"))
    run(h, "--", "true")
    same([x for x in os.listdir(root) if x.startswith(".new")], [], "what was half made is collected")


with Home(" with, a comma") as home:
    first_and_second(home)
    clock(home)
    cold(home)
    variables(home)
    kept(home)
    many(home)
    untouched(home)
    life(home)
    no_space(home)
    half_made(home)
    broken(home, "a memory that was written to", scribble("ram"))
    broken(home, "a memory that was cut", cut("ram"))
    broken(home, "a device state that was cut", cut("devices"))
    broken(home, "a device state that QEMU refuses", cheat)
    broken(home, "no manifest", lambda top: os.unlink(os.path.join(top, "template.json")))
done()
