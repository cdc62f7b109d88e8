#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# VARIANTS: none
"""How the ends of a stream arrive at who has connected to asb forward. A link.sock of ours stands for the supervisor; a whole
VM is in tests/e2e/forward.py."""
import atexit
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _agentd import IGNORES_SIGCHLD, TOP, done, equal, ok, skip  # noqa: E402
sys.path.insert(0, os.path.join(TOP, "tests/lib"))
from line import next_line  # noqa: E402

ASB = os.environ.get("ASB", os.path.join(TOP, "build/bin/asb"))
if not os.access(ASB, os.X_OK):
    print("1..0 # SKIP build/bin/asb is missing (make host)")
    sys.exit(0)

home = tempfile.mkdtemp()
atexit.register(shutil.rmtree, home, ignore_errors=True)
vm = os.path.join(home, ".agent_sandbox/local/vms/local-0123456789abcdef")
os.makedirs(vm, mode=0o700)
with open(os.path.join(home, ".agent_sandbox/state.json"), "w") as f:
    json.dump({"sandboxes": {"app": {"name": "app", "microvm_id": os.path.basename(vm), "endpoint": None, "image_arn": "base",
                                     "region": None}}}, f)
with open(os.path.join(vm, "vm.json"), "w") as f:
    json.dump({"id": os.path.basename(vm), "name": "app", "image": "base"}, f)
with open(os.path.join(vm, "status.json"), "w") as f:
    json.dump({"state": "RUNNING"}, f)
LOCK = open(os.path.join(vm, "lock"), "w")
fcntl.flock(LOCK, fcntl.LOCK_EX)

os.chdir(vm)
LINK = socket.socket(socket.AF_UNIX)
LINK.bind("link.sock")
LINK.listen(8)
LINK.settimeout(60)


def forward(*prefix):
    """A forward of port 80, and the port that was picked for it."""
    p = subprocess.Popen([*prefix, ASB, "forward", "app", "0:80", "--poll-interval", "0"], env={"PATH": os.environ["PATH"], "HOME": home},
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = next_line(p)
    port = int((re.match(r"forwarding 127\.0\.0\.1:(\d+) -> app:80 ", line) or [0, 0])[1])
    ok(port > 0, "a port is picked", line)
    return p, port


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return f.read().split()


def serves(pid):
    """One that looks at the sandbox's state has a pipe where those that serve a connection have its socket."""
    try:
        return not os.readlink(f"/proc/{pid}/fd/3").startswith("pipe:")
    except FileNotFoundError:
        return os.path.exists(f"/proc/{pid}")


def until_none_serves(pid):
    end = time.monotonic() + 60
    while (left := [c for c in children(pid) if serves(c)]) and time.monotonic() < end:
        time.sleep(0.05)
    return not left


def cpu_of_children(pid):
    """Seconds of those that have been reaped."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        times = f.read().rsplit(")", 1)[1].split()
    return (int(times[13]) + int(times[14])) / os.sysconf("SC_CLK_TCK")


P, PORT = forward()


def connection():
    """Both ends: the local client's, and the supervisor's with what came along."""
    mine = socket.create_connection(("127.0.0.1", PORT), timeout=60)
    theirs, _ = LINK.accept()
    line, fds, _, _ = socket.recv_fds(theirs, 64, 4)
    equal((line, len(fds)), (b"CONNECT 80\n", 1), "asked for, with a socket")
    return mine, theirs, socket.socket(fileno=fds[0])


def rest(s):
    got = b""
    try:
        while p := s.recv(65536):
            got += p
        return got, "end"
    except ConnectionResetError:
        return got, "reset"


if PORT:
    c, s, end = connection()
    s.sendall(b"OK\nwhole")
    end.sendall(b"\0")
    s.shutdown(socket.SHUT_WR)
    equal(rest(c), (b"whole", "end"), "an end that was told is one")
    c.sendall(b"more")
    equal(s.recv(9), b"more", "and the other direction goes on")
    s.close()
    c.close()

    c, s, end = connection()
    s.sendall(b"OK\nhalf")
    equal(c.recv(9), b"half", "half of something")
    s.close()
    end.close()
    equal(rest(c), (b"", "reset"), "a cut is none")
    c.close()

    c, s, end = connection()
    end.close()
    s.sendall(b"OK\nwhole")
    s.close()
    equal(rest(c), (b"whole", "end"), "an older supervisor tells nothing")
    c.close()

    for _ in range(4):
        c, s, end = connection()
        s.sendall(b"OK\nhalf")
        s.close()  # and nothing comes along
        equal(c.recv(9), b"half", "half of something")
        time.sleep(0.2)
        c.close()
    ok(until_none_serves(P.pid), "a client that goes after a cut leaves nobody")
    ok(cpu_of_children(P.pid) < 1, "who does not keep a CPU busy until then", cpu_of_children(P.pid))

    c, s, end = connection()
    s.sendall(b"OK\nhalf")
    equal(c.recv(9), b"half", "half of something")
    P.send_signal(signal.SIGINT)
    equal(rest(c), (b"", "reset"), "Ctrl-C cuts, too")
    equal(P.wait(60), 0, "and is no failure")
P.kill()
P.communicate()

P, PORT = forward(*IGNORES_SIGCHLD)
for _ in range(201 if PORT else 0):
    c = socket.create_connection(("127.0.0.1", PORT), timeout=60)
    s = LINK.accept()[0]
    s.close()
    c.close()
ok(True, "over 200 connections one after the other, started by one who ignores SIGCHLD")
P.kill()
P.communicate()

if os.geteuid() == 0:
    P, PORT = forward("unshare", "--pid", "--fork", "--kill-child")
    c, s, end = connection()
    s.sendall(b"OK\nwhole")
    equal(c.recv(9), b"whole", "as PID 1, as in a container")
    P.kill()
    P.communicate()
else:
    skip("as PID 1", "only root makes a PID namespace")
done()
