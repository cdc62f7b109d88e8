#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 900
"""asb forward and asb logs in one VM."""
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from _asb import Home, TOP, done, need_vm, ok, one_line, same

sys.path.insert(0, os.path.join(TOP, "tests/lib"))
from line import next_line  # noqa: E402

need_vm()

# In the guest: one server for what the test asks for in the first line.
SERVER = r"""
import socket, struct, threading
s = socket.create_server(("127.0.0.1", 7000), backlog=128)
print("up", flush=True)
def serve(c):
    f = c.makefile("rwb")
    what = f.readline().strip()
    if what == b"echo":
        while p := f.read1(65536):
            c.sendall(p)
        c.shutdown(socket.SHUT_WR)
    elif what == b"count":
        n = 0
        while p := f.read1(65536):
            n += len(p)
        c.sendall(b"%d" % n)
    elif what == b"early":
        c.sendall(b"enough")
    elif what == b"first":
        c.sendall(b"x" * 300000)
        c.shutdown(socket.SHUT_WR)
        print("got", len(f.read()), flush=True)
    elif what == b"reset":
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        f.close()
    c.close()
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
"""


class Forward:
    def __init__(self, home, *args):
        self.p = home.start("forward", "app", *args)
        self.lines = []

    def line(self):
        return next_line(self.p)

    def port(self):
        m = re.match(r"forwarding 127\.0\.0\.1:(\d+) -> app:7000  \(Ctrl\+C to stop\)$", self.line().rstrip("\n"))
        return int(m.group(1)) if m else 0

    def stop(self, sig=signal.SIGINT, limit=60):
        if sig:
            self.p.send_signal(sig)
        try:
            out, err = self.p.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            self.p.kill()
            out, err = self.p.communicate()
            return "hangs", out, err
        return self.p.returncode, out, err


def dial(port, what):
    s = socket.create_connection(("127.0.0.1", port), timeout=60)
    s.sendall(what + b"\n")
    return s


def rest(s):
    got = b""
    while p := s.recv(65536):
        got += p
    return got


def connections(h):
    f = Forward(h, "0:7000")
    port = f.port()
    ok(port > 0, "a local port is picked and printed")
    s = dial(port, b"echo")
    data = os.urandom(4 << 20)
    t = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR)))
    t.start()
    same(hashlib.sha256(rest(s)).hexdigest(), hashlib.sha256(data).hexdigest(), "4 MiB there and back")
    t.join()
    s.close()
    s = dial(port, b"count")
    s.sendall(b"y" * 100000)
    s.shutdown(socket.SHUT_WR)
    same(rest(s), b"100000", "the end of our direction is passed on, and the answer comes after it")
    s.close()
    s = dial(port, b"first")
    same(len(rest(s)), 300000, "the end of the other direction")
    s.sendall(b"z" * 5000)
    s.close()
    same(h.server.stdout.readline(), b"got 5000\n", "does not end ours")
    s = dial(port, b"early")
    try:
        for _ in range(50):
            s.sendall(b"u" * 100000)
    except OSError:
        pass
    try:
        got = rest(s)
    except OSError as e:
        got = e
    same(got, b"enough", "an answer before the end of the question arrives")
    s.close()
    s = dial(port, b"reset")
    s.settimeout(60)
    try:
        same(s.recv(10), b"", "a reset ends the connection")
    except ConnectionResetError:
        ok(True, "a reset ends the connection")
    s.close()
    idle = [dial(port, b"echo") for _ in range(20)]
    for s in idle:
        s.sendall(b"!")
    same([s.recv(1) for s in idle], [b"!"] * 20, "20 connections at a time")
    for s in idle:
        s.close()
    same(f.stop(), (0, b"", b"asb: stopped\n"), "Ctrl-C: stopped, 0")
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        ok(False, "nothing listens any more")
    except OSError:
        ok(True, "nothing listens any more")


def refusals(h):
    r = h.call("forward", "app", "9000")
    ok(r.returncode == 1 and b"port 9000 is the reserved lifecycle-hook port and cannot be forwarded" in r.stderr, "the hook port", r)
    r = h.call("forward", "app", "9001", env={"AGENT_SANDBOX_HOOK_PORT": "9001"})
    ok(r.returncode == 1 and b"9001" in r.stderr, "wherever it is", r)
    for words in ((), ("x",), ("70000",), ("-l", "5"), ("--address", "localhost", "80"), ("-r", "0")):
        same(h.call("forward", "app", *words).returncode, 2, f"usage: forward app {' '.join(words)}")
    r = h.call("forward", "none", "80")
    ok(r.returncode == 1 and b"none" in r.stderr, "no such sandbox", r)
    with socket.create_server(("127.0.0.1", 0)) as s:
        r = h.call("forward", "app", f"{s.getsockname()[1]}:80")
        ok(r.returncode == 1 and str(s.getsockname()[1]).encode() in r.stderr and b"in use" in r.stderr, "a port that is taken", r)
    f = Forward(h, "--json", "0:7000", "[::1]:0:7001" if socket.has_ipv6 and os.path.exists("/proc/net/if_inet6") else "0:7001")
    docs = [json.loads(f.line()) for _ in range(2)]
    same([d["remote_port"] for d in docs], [7000, 7001], "--json: an object for each port")
    s = socket.create_connection((docs[1]["address"], docs[1]["local_port"]), timeout=60)
    try:
        got = s.recv(1)
    except ConnectionResetError:
        got = b""
    same(got, b"", "what nobody listens on is reset")
    s.close()
    code, _, err = f.stop(signal.SIGTERM)
    ok(code == 0 and b"7001" in err, "and told", code, err)
    f = Forward(h, "-r", "7000", "-l", "0")
    s = dial(f.port(), b"echo")
    s.sendall(b"old")
    same(s.recv(3), b"old", "-r and -l")
    h.call("stop", "app")
    try:
        got = s.recv(3)
    except ConnectionResetError:
        got = "reset"
    same(got, "reset", "a stop cuts it, which is no end of file")
    code, _, err = f.stop(None)
    ok(code == 0 and b"app is no longer running (SUSPENDED); disconnecting" in err, "a sandbox that stops ends it with 0", code, err)
    s.close()
    f = Forward(h, "0:7000")
    f.port()
    ok(b"RUNNING" in h.call("ps", "app").stdout, "a stopped one is resumed")
    f.stop()


def log(h, *words):
    return h.call("logs", "app", *words).stdout


def logs(h):
    h.call("exec", "app", "--", "sh", "-c", "for i in 1 2 3 4 5; do echo line $i > /dev/console; done")
    time.sleep(1)
    text = log(h)
    ok(b"line 1" in text and not re.match(rb"\d{4}-", text), "logs without times", text[-300:])
    same([x.strip() for x in log(h, "--tail", "2").splitlines()], [b"line 4", b"line 5"], "--tail 2")
    same(log(h, "--tail", "0"), b"", "--tail 0")
    stamped = log(h, "-t", "-n", "1").decode()
    ok(re.match(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z line 5\r?\n$", stamped), "-t: a time before the line", stamped)
    same(log(h, "--since", stamped.split()[0], "-n", "9").splitlines()[-1].strip(), b"line 5", "--since that moment")
    same(log(h, "--since", "2100-01-01"), b"", "--since a time to come")
    ok(b"line 1" in log(h, "--since", "1h"), "--since an hour ago")
    ok("line 5" in json.loads(log(h, "--json"))["log"], "--json")
    p = h.start("logs", "app", "-f", "-n", "1")
    same(p.stdout.readline().strip(), b"line 5", "-f begins with what was there")
    h.call("exec", "app", "--", "sh", "-c", "echo more > /dev/console")
    same(p.stdout.readline().strip(), b"more", "and goes on")
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=30)


def outputs(h):
    exec_id = h.call("exec", "app", "-d", "--", "sh", "-c", "seq 1 5; echo err >&2; sleep 3; echo last; sleep 1000").stdout.decode().strip()
    time.sleep(1)
    r = h.call("logs", "app", exec_id[:9])
    same((r.returncode, r.stdout, r.stderr), (0, b"1\n2\n3\n4\n5\n", b"err\n"), "the output of a command so far")
    same(h.call("logs", "app", exec_id, "-n", "3").stdout, b"4\n5\n", "its last lines")
    p = h.start("logs", "app", exec_id, "-f", "-n", "1")
    same(p.stdout.readline(), b"last\n", "-f waits for more")
    p.send_signal(signal.SIGINT)
    same(p.wait(30), -2, "Ctrl-C ends the looking on")
    p.communicate()
    ok('"running"' in h.call("execs", "app", "--json").stdout.decode(), "and not the command")
    p = h.start("logs", "app", exec_id, "-f")
    p.stdout.readline()
    h.call("kill", "app", exec_id)
    same(p.wait(60), 0, "-f ends with the command")
    p.communicate()
    same(h.call("logs", "app", exec_id, "--since", "1h").returncode, 2, "--since has no meaning there")
    r = h.call("logs", "app", "nonesuch")
    ok(r.returncode == 1 and b"asb execs app" in r.stderr, "an unknown id", r)


with Home() as home:
    home.call("create", "app")
    home.server = home.start("exec", "app", "--", "python3", "-c", SERVER)
    same(home.server.stdout.readline(), b"up\n", "a server in the sandbox")
    connections(home)
    refusals(home)
    logs(home)
    outputs(home)
    follower = home.start("logs", "app", "-f")
    home.server.kill()
    home.server.communicate()
    home.call("rm", "app")
    same(follower.wait(60), 0, "logs -f ends with the sandbox")
    follower.communicate()
    same(len(one_line(home.call("logs", "app").stderr)), 1, "logs of nothing")
done()
