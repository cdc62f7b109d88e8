# SPDX-License-Identifier: Apache-2.0
"""Helpers of the agentd tests: a private agentd on a loopback port, plain requests, TAP."""
import atexit
import base64
import http.client
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN_DIR = os.environ.get("ASB_BIN_DIR") or os.path.join(TOP, "build", "x86_64", "bin")
BIN = os.path.join(BIN_DIR, "agentd")
SANITIZED = os.environ.get("ASB_TEST_VARIANT") == "sanitized"  # see tests/run
started = []
# In front of a program: it is started by one who ignores SIGCHLD, which is inherited.
IGNORES_SIGCHLD = ("python3", "-c", "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])")

count = failed = 0


def ok(passed, name, detail=None):
    global count, failed
    count += 1
    print(f"{'ok' if passed else 'not ok'} {count} - {name}")
    if not passed:
        failed += 1
        if detail is not None:
            print("#   " + repr(detail)[:2000])
    sys.stdout.flush()
    return bool(passed)


def equal(got, want, name):
    return ok(got == want, name, f"got {got!r}, want {want!r}")


def skip(name, why):
    global count
    count += 1
    print(f"ok {count} - {name} # SKIP {why}")


def sanitizer_env():
    """Of a sanitized program: tests/run says where it writes its reports."""
    return {k: os.environ[k] for k in ("ASAN_OPTIONS", "UBSAN_OPTIONS") if SANITIZED and k in os.environ}


def done():
    for agentd in started:
        agentd.stop()
    print(f"1..{count}")
    sys.exit(1 if failed or not count else 0)


def until(fn, seconds=10.0):
    """True as soon as fn() is; False when it never was."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if fn():
            return True
        time.sleep(0.02)
    return bool(fn())


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Agentd:
    def __init__(self, env=None, prefix=(), stderr=None):
        self.dir = tempfile.mkdtemp(prefix="agentd-test-")
        self.port = free_port()
        self.socket = os.path.join(self.dir, "agentd.sock")
        rd, wr = os.pipe()
        self.env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": self.dir, "AGENTD_PORT": str(self.port),
                    "AGENTD_BIND": "127.0.0.1", "AGENTD_SOCKET": self.socket, "ASB_NOTIFY_FD": str(wr),
                    **sanitizer_env(), **(env or {})}
        self.proc = subprocess.Popen([*prefix, BIN], env=self.env, pass_fds=[wr], stdin=subprocess.DEVNULL,
                                     stderr=stderr, cwd="/")
        os.close(wr)
        self.notified = os.read(rd, 10)
        os.close(rd)
        started.append(self)
        atexit.register(self.stop)

    @property
    def pid(self):
        return self.proc.pid

    def stop(self, sig=signal.SIGTERM):
        if self.proc.poll() is None:
            self.proc.send_signal(sig)
        try:
            status = self.proc.wait(20)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            status = self.proc.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
        return status

    def fds(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def rss(self):
        """KiB; 0 for a sanitized agentd, whose shadow memory and quarantine say nothing"""
        if SANITIZED:
            return 0
        with open(f"/proc/{self.pid}/status") as f:
            for line in f:
                if line.startswith("VmRSS"):
                    return int(line.split()[1])
        return 0

    def request(self, method, path, body=None, headers=None, timeout=60):
        """(status, body bytes, headers)"""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return r.status, r.read(), r.headers
        finally:
            c.close()

    def json(self, method, path, body=None, headers=None, timeout=60):
        """(status, decoded body)"""
        h = {"Content-Type": "application/json", **(headers or {})}
        s, b, _ = self.request(method, path, None if body is None else json.dumps(body), h, timeout)
        return s, json.loads(b) if b else None

    def exec(self, command, args=(), **more):
        s, b = self.json("POST", "/v1/exec", {"command": command, "args": list(args), **more})
        if isinstance(b, dict):
            for name in ("stdout", "stderr"):
                if name in b:
                    b[name] = base64.b64decode(b[name])
        return s, b

    def sh(self, script, **more):
        return self.exec("sh", ["-c", script], **more)

    def put(self, name, **spec):
        return self.json("PUT", f"/v1/execs/{name}", spec)

    def stream(self, name, offset=0, follow=True, timeout=60):
        return Stream(self, name, offset, follow, timeout)

    def output(self, name, offset=0, follow=True, timeout=60):
        """(stdout, stderr, events) of the whole stream"""
        return self.stream(name, offset, follow, timeout).all()

    def raw(self, data, timeout=10):
        """Sends bytes, returns what comes until the end or the time is over."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as s:
            try:
                s.sendall(data)
            except OSError:
                pass
            got = b""
            try:
                while chunk := s.recv(65536):
                    got += chunk
            except OSError:
                pass
            return got

    def private(self, **request):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(self.socket)
            s.sendall(json.dumps(request).encode() + b"\n")
            return json.loads(s.makefile().readline())


class Stream:
    """One GET .../output, frame by frame."""

    def __init__(self, agentd, name, offset, follow, timeout):
        self.conn = http.client.HTTPConnection("127.0.0.1", agentd.port, timeout=timeout)
        self.conn.request("GET", f"/v1/execs/{name}/output?offset={offset}&follow={int(follow)}")
        self.reply = self.conn.getresponse()
        self.status = self.reply.status

    def read(self, n):
        data = b""
        while len(data) < n:
            chunk = self.reply.read(n - len(data))
            if not chunk:
                return None
            data += chunk
        return data

    def frame(self):
        """(stream, bytes), or None at the end of the answer"""
        head = self.read(8)
        if head is None:
            return None
        n = struct.unpack(">I", head[4:])[0]
        assert head[1:4] == b"\0\0\0", head
        return head[0], self.read(n) if n else b""

    def all(self):
        out, events = {1: [], 2: []}, []
        while f := self.frame():
            if f[0] == 3:
                events.append(json.loads(f[1]))
            else:
                out[f[0]].append(f[1])
        self.close()
        return b"".join(out[1]), b"".join(out[2]), events

    def close(self):
        self.conn.close()


def processes(needle):
    """Pids whose command line contains needle (bytes), zombies not counted."""
    found = []
    for d in os.listdir("/proc"):
        if not d.isdigit() or int(d) == os.getpid():
            continue
        try:
            with open(f"/proc/{d}/cmdline", "rb") as f:
                if needle in f.read():
                    found.append(int(d))
        except OSError:
            pass
    return found


def zombies(parent):
    """Pids of zombies that are children of parent."""
    found = []
    for d in os.listdir("/proc"):
        if d.isdigit():
            try:
                with open(f"/proc/{d}/stat") as f:
                    s = f.read()
            except OSError:
                continue
            rest = s[s.rindex(")") + 2:].split()
            if rest[0] == "Z" and int(rest[1]) == parent:
                found.append(int(d))
    return found
