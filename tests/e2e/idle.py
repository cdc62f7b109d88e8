#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 400
"""--idle-timeout, --max-duration, and that whoever wants something of a suspended sandbox resumes it, once."""
import glob
import json
import os
import signal
import socket
import time
import urllib.request

from _asb import Home, done, need_vm, ok, same

need_vm()
IDLE_S = 2


def folder(h):
    return glob.glob(os.path.join(h.path, ".agent_sandbox/local/vms/local-*"))[0]


def info(h, name="box"):
    return json.loads(h.call("ps", name, "--json").stdout)


def wait_state(h, want, what, limit=60):
    until = time.monotonic() + limit
    while info(h)["state"] != want and time.monotonic() < until:
        time.sleep(0.1)
    return same(info(h)["state"], want, what)


def idle(h, what):
    return wait_state(h, "SUSPENDED", what)


def told(h):
    i = info(h)
    same((i["state"], i["idle_timeout_ms"], i["max_duration_ms"]), ("SUSPENDED", IDLE_S * 1000, None), "ps tells the limits")
    ok("no traffic" in i["reason"], "and why it is suspended", i)
    for words in (("ls",), ("inspect", "box"), ("logs", "box"), ("stop", "box")):
        same((h.call(*words).returncode, info(h)["state"]), (0, "SUSPENDED"), f"asb {words[0]} does not resume it")


def clients(h):
    """Two at once; then one of every other kind."""
    both = [h.start("exec", "box", "--", "sh", "-c", f"cat /dev/shm/marker; echo {i}") for i in (1, 2)]
    same([p.communicate(timeout=120)[0] for p in both], [b"memory\n1\n", b"memory\n2\n"], "two commands at once resume it")
    with open(os.path.join(folder(h), "supervisor.log")) as f:
        same(f.read().count("ready after"), 1, "once")
    same(h.call("stop", "box").returncode, 0, "stop")
    same(h.call("cp", "box:/dev/shm/marker", os.path.join(h.top, "marker")).returncode, 0, "asb cp resumes it")
    same(open(os.path.join(h.top, "marker")).read(), "memory\n", "and copies")


def commands_keep_it(h):
    x = h.call("exec", "-d", "box", "--", "sleep", "1000").stdout.decode().strip()
    until = time.monotonic() + 3 * IDLE_S
    while time.monotonic() < until and info(h)["state"] == "RUNNING":
        time.sleep(0.2)
    same(info(h)["state"], "RUNNING", "a command that runs keeps it awake")
    same(h.call("stop", "box").returncode, 0, "but not from being stopped")
    same(h.call("kill", "box", x).returncode, 0, "asb kill resumes it")
    idle(h, "without commands it is suspended again")


def forwards(h):
    """A forward outlives the suspension; its next connection resumes the sandbox."""
    p = h.start("forward", "box", ":8080", "--json")
    port = json.loads(p.stdout.readline())["local_port"]
    try:
        idle(h, "a forward without connections does not keep it awake")
        time.sleep(1.5)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=60) as r:
            same(r.status, 200, "a connection resumes it and gets its answer")
        same(p.poll(), None, "the forward goes on")
    finally:
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=60)


def races(h):
    """Clients that come just when it goes to sleep."""
    for i in range(5):
        same(h.call("exec", "box", "echo", str(i)).stdout, f"{i}\n".encode(), f"a command after a moment's rest ({i})")
        time.sleep(IDLE_S - 0.3 + 0.2 * i)


def interrupts(h):
    """A connection that comes while it is being suspended is held, and ends that."""
    path, log = os.path.join(folder(h), "status.json"), os.path.join(folder(h), "supervisor.log")
    h.call("exec", "box", "true")
    until = time.monotonic() + 60
    while '"SUSPENDING"' not in open(path).read() and time.monotonic() < until:
        time.sleep(0.002)
    answer = b""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(60)
        try:
            s.connect(os.path.join(folder(h), "link.sock"))
            s.sendall(b"CONNECT 8080\n")
            answer = s.recv(100)
        except OSError:
            pass  # nobody is there any more
    if not answer.startswith(b"OK"):
        ok(True, "too late to end the suspension # SKIP it was on the disk already")
        return
    same(info(h)["state"], "RUNNING", "a client that comes while it is being suspended ends that")
    ok("not suspended: a client came" in open(log).read(), "as its log says")


def durations(h):
    h.call("create", "long", "-m", "256", "--max-duration", "0")
    same(info(h, "long")["ends_at"], None, "--max-duration 0 is never")
    h.call("rm", "long")
    same(h.call("create", "box", "-m", "256", "--max-duration", "12").returncode, 0, "create with a maximum duration")
    h.call("exec", "box", "--", "sh", "-c", "echo kept > /root/file")
    wait_state(h, "TERMINATED", "it ends after it")
    ok("maximum duration" in info(h)["reason"], "and says why", info(h))
    same(h.call("exec", "box", "true").returncode, 125, "a command does not start it again")
    same(h.call("start", "box").stdout, b"started box\n", "asb start does, for as long once more")
    same(h.call("exec", "box", "cat", "/root/file").stdout, b"kept\n", "with its disk")
    same(h.call("stop", "box").stdout, b"suspended box\n", "suspended time counts too")
    ok(info(h)["ends_at"], "ps tells when it ends", info(h))
    wait_state(h, "TERMINATED", "it is over while it is suspended")
    h.call("ls")
    ok(not os.path.exists(os.path.join(folder(h), "saved")), "its memory is removed")
    h.call("rm", "box")
    began = time.monotonic()
    r = h.call("run", "-m", "256", "--max-duration", "3", "--", "sleep", "100")
    # 143: its power-off sent TERM to the command, and the agent still told so.
    ok(r.returncode in (125, 143) and b"maximum duration" in r.stderr and time.monotonic() - began < 80, "asb run ends, too", r)
    same(h.left(), [], "nothing is left")


with Home() as home:
    same(home.call("create", "box", "-m", "256", "--idle-timeout", str(IDLE_S)).returncode, 0, "create")
    home.call("exec", "box", "--", "sh", "-c", "echo memory > /dev/shm/marker")
    idle(home, "an idle sandbox is suspended")
    told(home)
    clients(home)
    commands_keep_it(home)
    forwards(home)
    races(home)
    interrupts(home)
    home.call("rm", "box")
    durations(home)
done()
