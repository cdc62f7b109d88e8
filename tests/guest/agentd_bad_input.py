#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 900
"""Bad input: each route of agentd/app.c with what a confused or hostile client sends.

Right is a 4xx with {"detail": ...} that names the member, or the end of the connection; agentd alive, descriptors and
memory flat, other clients served. 404 means only "no such file or exec"; a missing member is 400, and 422 on the compatible
routes. A new route is tried by itself with all that needs no knowledge of it; MEMBERS and QUERIES below say more about some.
"""
import json
import os
import random
import re
import socket
import struct
import threading
import time

from _agentd import *

MANY = int(os.environ.get("AGENTD_TEST_MANY") or 10000)
COMPAT = ("/v1/exec", "/v1/fs/read", "/v1/fs/write")
with open(os.path.join(TOP, "agentd", "app.c"), encoding="utf-8") as source:
    ROUTES = re.findall(r'^\t\{ "([A-Z]+)", "(/[^"]*)", HTTPD_BODY_(\w+), ([^,]+),', source.read(), re.M)

a = Agentd()
work = os.path.join(a.dir, "work")
os.mkdir(work)
with open(work + "/file", "w") as f:
    f.write("content\n")
a.put("live", argv=["sleep", "1000"], stdin=True)
a.put("loud", argv=["yes"])
HAVE_PTY = a.put("term", argv=["sleep", "1000"], pty={"rows": 10, "cols": 10})[0] == 201
base = a.fds()

# --- what is known of some routes: a body that would do (and no harm), and the types of members
S, P, I, B, O, A, M, U, ANY = "string", "path", "integer", "bool", "object", "array", "mode", "user", "any"
NONE = work + "/none"
MEMBERS = {
    "POST /v1/exec": ({"command": "true"}, {"command": S, "args": A, "cwd": S, "env": O, "stdin": S}),
    "POST /v1/fs/read": ({"path": work + "/file"}, {"path": S}),
    "POST /v1/fs/write": ({"path": work + "/file", "content": ""}, {"path": S, "content": S, "encoding": S}),
    "PUT /v1/execs/{}": ({"argv": ["true"]}, {"argv": A, "cwd": S, "env": O, "clear_env": B, "stdin": B, "timeout_ms": I, "pty": O,
                                              "user": U, "limits": O, "seccomp": S, "shell": S, "input": S, "unheard_of": ANY}),
    "POST /v1/execs/{}/signal": ({"signal": "CONT"}, {"signal": ANY, "to": S}),
    "POST /v1/execs/{}/resize": ({"rows": 10, "cols": 10}, {"rows": ANY, "cols": ANY}),
    "POST /v1/fs/list": ({"path": work}, {"path": P, "depth": I, "limit": I}),
    "POST /v1/fs/stat": ({"path": work}, {"path": P, "follow": B}),
    "POST /v1/fs/exists": ({"path": work}, {"path": P}),
    "POST /v1/fs/mkdir": ({"path": work, "parents": True}, {"path": P, "parents": B, "mode": M}),
    "POST /v1/fs/remove": ({"path": NONE}, {"path": P, "recursive": B}),
    "POST /v1/fs/copy": ({"from": NONE, "to": NONE + "2"}, {"from": P, "to": P, "recursive": B, "overwrite": B}),
    "POST /v1/fs/rename": ({"from": NONE, "to": NONE + "2"}, {"from": P, "to": P, "overwrite": B}),
    "POST /v1/fs/chmod": ({"path": NONE, "mode": "0644"}, {"path": P, "mode": M, "uid": I, "gid": I}),
    "POST /v1/fs/symlink": ({"target": "x", "path": work + "/file"}, {"target": S, "path": P}),
}
HUGE = 10**30
WRONG = {
    S: (1, True, [], {}, 1.5, ["x"]),
    P: (1, True, [], {}, "", "relative", "./x", "../../etc/passwd", "~/x", "/x" * 3000),
    I: ("x", True, [], {}, -1, 1.5, HUGE, -HUGE, 2**64, "9" * 400),
    B: ("yes", 1, [], {}, 0.5),
    O: (1, "x", [], True),
    A: (1, "x", {}, [1], [None], [[]]),
    M: ([], {}, True, -1, 1.5, HUGE, "9z", "", "0x1ff", "17777"),
    U: ([], {}, True, -1, 1.5, HUGE, "no such user", ":", "a:b:c", "-1"),
    ANY: ([], {}, True, ["x"]),
}
LIMITS = (("limits", {"memory": -1}, "memory"), ("limits", {"memory": "x"}, "memory"), ("limits", {"memory": 1}, "memory"),
          ("limits", {"cpus": 0}, "cpus"), ("limits", {"cpus": -1}, "cpus"), ("limits", {"cpus": []}, "cpus"),
          ("limits", {"pids": 0}, "pids"), ("limits", {"pids": 1.5}, "pids"), ("limits", {"unheard_of": 1}, "unheard_of"),
          ("limits", {"rlimits": []}, "rlimits"), ("limits", {"rlimits": {"unheard_of": 1}}, "unheard_of"),
          ("limits", {"rlimits": {"nofile": -1}}, "nofile"), ("limits", {"rlimits": {"nofile": "x"}}, "nofile"),
          ("limits", {"rlimits": {"nofile": {"soft": 9, "hard": 3}}}, "nofile"),
          ("pty", {"rows": "x"}, "rows"), ("pty", {"cols": []}, "cols"), ("pty", {"unheard_of": 1}, "unheard_of"),
          ("seccomp", "unheard_of", "seccomp"), ("input", "abcde", "input"), ("env", {"A": 1}, "A"), ("env", {"A=B": "1"}, "A=B"), ("env", {"": "1"}, '""'))
OPTIONAL = ("PUT /v1/execs/{} argv", "POST /v1/fs/mkdir parents", "POST /v1/fs/chmod mode", "POST /v1/execs/{}/resize rows",
            "POST /v1/execs/{}/resize cols")
NOTHING_NEEDED = ("POST /v1/execs/{}/resize",)  # {} is a request
QUERIES = {
    "GET /v1/execs/{}/output": ("offset=", "offset=x", "offset=-1", "offset=1e3", "offset=" + "9" * 40, "follow=2", "follow=x",
                                "offset=%20"),
    "POST /v1/execs/{}/stdin": ("offset=x", "offset=-1", "offset=" + "9" * 40, "offset=999999999", "eof=2"),
    "GET /v1/execs/{}/attach": ("offset=x", "offset=-1"),
    "PUT /v1/execs/{}": ("follow=2", "follow=x", "max=0", "max=x", "forget=0", "forget=x", "forget=86401", "format=x"),
}
PATHS = ("", "path", "path=", "path=relative", "path=../../etc/passwd", "path=%2e%2e/%2e%2e/etc/passwd", "path=/" + "x/" * 2500)
PATH_ROUTES = ("/v1/files", "/v1/archive", "/v1/watch")
JSON = {"Content-Type": "application/json"}


def fill(pattern, name):
    return pattern.replace("{}", name)


def target(method, pattern):
    """A path whose exec is there, so that the body is looked at; a new id where it would be made or forgotten."""
    if method in ("PUT", "DELETE"):
        return fill(pattern, "fresh")
    return fill(pattern, "term" if pattern.endswith(("/resize", "/attach")) and HAVE_PTY else "live")


def detail(body):
    try:
        found = json.loads(body)["detail"]
    except (ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, (str, list)) and found else None


def refused(method, path, body, problems, statuses=None, names=None, what=None):
    """Sends it; notes a problem unless it is refused as it should be."""
    try:
        s, b, h = a.request(method, path, body, JSON, timeout=30)
    except OSError as e:
        problems.append((what or body, repr(e)))
        return None, b""
    good = s in statuses if statuses else 400 <= s < 500 and s != 404
    if not (good and detail(b) and (names is None or names in b.decode("utf-8", "replace").replace('\\"', '"'))):
        problems.append(((what or (path[:80], body if body is None else body[:60])), s, b[:200]))
    return s, b


# --- 1. bodies that are no JSON, or not an object of the right kind
BODIES = (b"", b"null", b"{}", b"[]", b"17", b'"x"', b"true", b"{", b"{}x", b"{} {}", b"'x'", b"[" * 5000, b'{"a":' * 5000, b"[" * 60000,
          b"\xff", b'{"\xff":1}', b'{"a":"\xc3\x28"}', b'{"a":"\xed\xa0\x80"}', b"\0", b'{"a"\0:1}', b'{"a":"\\u0000"}',
          b'{"a":"\\ud800"}', b'{"a\\u0000b":1}', b'{"a":1e999}', b'{"a":-1e999}', b'{"a":' + b"9" * 5000 + b"}", b'{"a":0x10}',
          b'{"a":+1}', b'{"a":01}', b'{"a":NaN}', b'{"a":1,}', b"{/**/}", b'{"a":"\n"}', b'{"__proto__":{}}', b"\xef\xbb\xbf{}",
          b'{"' + b"k" * 60000 + b'":1}', b"{" + b",".join(b'"k%d":%d' % (i, i) for i in range(5000)) + b"}")


def bad_bodies():
    for method, pattern, kind, cap in ROUTES:
        if kind != "BUFFER":
            continue
        problems = []
        for body in BODIES:
            if body.endswith(b"{}") and len(body) < 6 and f"{method} {pattern}" in NOTHING_NEEDED:
                continue
            s, b = refused(method, target(method, pattern), body, problems)
            if pattern in COMPAT and s not in (400, 422, 413):
                problems.append((body[:60], "not 422", s))
        ok(not problems, f"{method} {pattern}: {len(BODIES)} bodies that will not do", problems)


# --- 2. members of the wrong type
def bad_members():
    for method, pattern, kind, cap in ROUTES:
        route = f"{method} {pattern}"
        if route not in MEMBERS:
            continue
        if pattern.endswith("/resize") and not HAVE_PTY:
            continue
        base, members = MEMBERS[route]
        bad = (422,) if pattern in COMPAT else (400,)
        problems, tried = [], 0
        for name in base:
            if f"{route} {name}" in OPTIONAL:
                continue
            for without in ({k: v for k, v in base.items() if k != name}, {**base, name: None}):
                refused(method, target(method, pattern), json.dumps(without), problems, bad, name, f"without {name}: {without}")
                tried += 1
        for name, kind in members.items():
            for value in WRONG[kind]:
                body = {**base, name: value}
                refused(method, target(method, pattern), json.dumps(body), problems, bad, None if kind == P else name, f"{name}: {value!r:.60}")
                tried += 1
            if kind in (S, P):
                body = json.dumps({**base, name: "/a"}).replace('"/a"', '"/a\\u0000b"')
                refused(method, target(method, pattern), body, problems, bad, None, f"a NUL in {name}")
                body = json.dumps({**base, name: "/a"}).encode().replace(b'"/a"', b'"/a\xff"')
                refused(method, target(method, pattern), body, problems, (400,), None, f"a byte 255 in {name}")
                tried += 2
        ok(not problems, f"{route}: {tried} members of the wrong type are refused by name", problems)
    problems = []
    for member, value, names in LIMITS:
        refused("PUT", "/v1/execs/fresh", json.dumps({"argv": ["true"], member: value}), problems, (400,),
                names if HAVE_PTY or member == "env" else member, f"{member}: {value}")
    ok(not problems, f"PUT /v1/execs/{{}}: {len(LIMITS)} members of members", problems)


# --- 3. targets
SEGMENTS = ("..", "%2e%2e", "a%2fb", "%2f", "%2F..%2F..%2Fetc", "%ff%fe", "a" * 65, "a%0ab", "a%20b", "..%5c..", "%25%30%30", "a;b", "a:b", "é")


def bad_targets():
    for method, pattern, kind, cap in ROUTES:
        problems, tried = [], 0
        if "{}" in pattern:
            for segment in SEGMENTS:
                # a name that cannot be an exec's is no exec: 404, or 400 where it is to become one
                path = fill(pattern, segment)
                if segment == "é":
                    got = a.raw(f"{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode(), 5)
                    if not got.startswith(b"HTTP/1.1 400"):
                        problems.append((path, got[:100]))
                else:
                    refused(method, path, b"{}", problems, (400, 404), None, path)
                tried += 1
        path = target(method, pattern)
        for bad in ("%00", "%", "%z", "%zz", "%0", "\x7f"):
            got = a.raw(f"{method} {path}{bad} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode(), 5)
            tried += 1
            if not (got.startswith(b"HTTP/1.1 400") and b'"detail"' in got):
                problems.append((path + bad, got[:100]))
        for query in ("?%", "?a=%00", "?a=%z", "?" + "&".join(f"a{i}=1" for i in range(50)), "?a=" + "x" * 9000):
            refused(method, path + query, None, problems, (400, 414), None, query[:30])
            tried += 1
        for bad in (path + "/", path + "//", "/" + path, path.replace("/v1", "/v1/."), path.replace("/v1", "/v1/../v1"),
                    path.upper()):
            if bad == path:
                continue
            s, b, h = a.request(method, bad, None, JSON)
            tried += 1
            if s not in (400, 404, 405) or not detail(b):
                problems.append((bad, s, b[:100]))
        ok(not problems, f"{method} {pattern}: {tried} targets", problems)
        for query in QUERIES.get(f"{method} {pattern}", ()):
            if pattern.endswith("/attach") and not HAVE_PTY:
                continue
            problems = []
            refused(method, f"{path}?{query}", None, problems, (400, 409), query.split("=")[0] if pattern.endswith("/output") else None)
            ok(not problems, f"{method} {pattern}?{query[:20]} is refused", problems)
        if pattern in PATH_ROUTES:
            problems = []
            for query in PATHS:
                refused(method, f"{pattern}?{query}", b"" if method == "PUT" else None, problems, (400,), None, query[:40])
            s, b, h = a.request(method, f"{pattern}?path={work}/%ff/%fe", b"" if method == "PUT" else None)
            ok(not problems and s in (400, 404, 409), f"{method} {pattern}: {len(PATHS)} paths that will not do", (problems, s, b[:100]))
    problems = []
    for method in ("PATCH", "OPTIONS", "TRACE", "CONNECT", "FOO", "get", "G\x01T"):
        got = a.raw(f"{method} /v1/info HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode(), 5)
        if not re.match(rb"HTTP/1.1 (400|405|501)", got) and got:
            problems.append((method, got[:100]))
    ok(not problems, "unknown methods", problems)


# --- 4. announced lengths, and bodies where none belongs
CHUNKS = (b"x\r\n", b"-1\r\n", b"f" * 20 + b"\r\n", b"5\r\nab", b"0\r\nContent-Length: 5\r\n\r\n", b"1;" + b"e" * 100000)


def together(requests, seconds):
    """What comes within that time for each of them, on a connection of its own."""
    conns = []
    for data in requests:
        c = connect()
        conns.append(c)
        try:
            c.sendall(data)
        except OSError:
            pass
    time.sleep(seconds)
    answers = []
    for c in conns:
        got = b""
        c.setblocking(False)
        try:
            while chunk := c.recv(65536):
                got += chunk
        except OSError:
            pass
        c.close()
        answers.append(got)
    return answers


def bad_lengths():
    for method, pattern, kind, cap in ROUTES:
        path = target(method, pattern)
        problems = []
        head = f"{method} {path} HTTP/1.1\r\nHost: h\r\n"
        for length, want in (("-1", b"400"), ("x", b"400"), ("1x", b"400"), ("0x10", b"400"), ("9" * 40, b"4"), ("1, 2", b"400"),
                             ("5\r\nContent-Length: 5", b"400"), ("5\r\nTransfer-Encoding: chunked", b"400")):
            got = a.raw(f"{head}Content-Length: {length}\r\n\r\n".encode(), 5)
            if got and not got.startswith(b"HTTP/1.1 " + want):
                problems.append((length, got[:100]))
        if kind != "STREAM":
            got = a.raw(f"{head}Content-Length: 9999999999\r\n\r\n".encode(), 5)
            if not (got.startswith(b"HTTP/1.1 413") and b'"detail"' in got):
                problems.append(("a length of 10 GB", got[:100]))
        head = f"{head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode()
        for chunks, got in zip(CHUNKS, together([head + chunks for chunks in CHUNKS], 0.3)):
            if got and not re.match(rb"HTTP/1\.1 [245]\d\d ", got):
                problems.append((chunks[:20], got[:100]))
        ok(not problems, f"{method} {pattern}: lengths and chunks", problems)


# --- 5. connections
def connect():
    return socket.create_connection(("127.0.0.1", a.port), timeout=30)


class Beside(threading.Thread):
    """Other clients, while something is done to agentd: the longest that one of them had to wait."""

    def __init__(self):
        super().__init__()
        self.over, self.slowest, self.bad = threading.Event(), 0, []

    def run(self):
        while not self.over.wait(0.02):
            start = time.monotonic()
            try:
                got = (a.request("GET", "/healthz", timeout=60)[0], a.exec("echo", ["hi"])[0])
            except OSError as e:
                got = repr(e)
            if got != (200, 200):
                self.bad.append(got)
            self.slowest = max(self.slowest, time.monotonic() - start)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.join()

    def report(self, name):
        ok(not self.bad and self.slowest < 10, f"{name}; others wait {self.slowest:.2f} s at most", self.bad[:5])


HALVES = [b"", b"G", b"GET", b"GET /", b"GET /healthz HTTP/1.1", b"GET /healthz HTTP/1.1\r\n", b"GET /healthz HTTP/1.1\r\nHost: h\r\n",
          b"GET /healthz HTTP/1.1\r\nHost: h\r\nA", b"POST /v1/exec HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n",
          b"POST /v1/exec HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{\"command\":",
          b"POST /v1/exec HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"c",
          b"PUT /v1/execs/half HTTP/1.1\r\nHost: h\r\nContent-Length: 25\r\n\r\n{\"shell\":\"echo half >&2\"",
          b"POST /v1/execs/live/stdin HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nhalf of it",
          b"GET /v1/execs/loud/output?follow=1 HTTP/1.1\r\nHost: h\r\n\r\n"]
FOREIGN = [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)) * 2, b"\x80\x2e\x01\x03\x01" + bytes(60),
           b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", b"SSH-2.0-OpenSSH_9.2\r\n", b"\0" * 5000, b"\r\n" * 5000, b"\n" * 5000,
           b"A" * 200000, b"GET " + b"/" * 200000, b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 50000, b"GET http://evil/ HTTP/1.1\r\nHost: h\r\n\r\n",
           b"GET /healthz HTTP/9.9\r\nHost: h\r\n\r\n", b"GET /healthz\r\n", b"GET /healthz HTTP/1.1\r\nHost: h\r\n A: folded\r\n\r\n",
           b"GET /healthz HTTP/1.1\r\nHost : h\r\n\r\n", b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
           b"GET /healthz HTTP/1.1\nHost: h\n\n", b"GET  /healthz HTTP/1.1\r\nHost: h\r\n\r\n", b"GET /healthz HTTP/1.1\r\n\r\n",
           b"*1\r\n$4\r\nPING\r\n", b"{\"op\":\"ping\"}\n", b"EHLO x\r\n", b"\x05\x01\x00", b"\xff\xfe" * 1000]


def connections():
    problems = []
    with Beside() as others:
        for data, got in zip(FOREIGN, together(FOREIGN, 1)):
            if got.startswith(b"HTTP/1.1 200") or (got and not got.startswith(b"HTTP/1.")):
                problems.append((data[:60], got[:100]))
        rnd = random.Random(1)
        for got in together([rnd.randbytes(rnd.randrange(1, 2000)) + b"\r\n\r\n" for i in range(200)], 1):
            if got.startswith(b"HTTP/1.1 200"):
                problems.append(got[:100])
        ok(not problems, "TLS, HTTP/2, SSH, random bytes and heads that two servers would read differently", problems)
    others.report("foreign protocols")

    with Beside() as others:
        held = [connect() for i in range(20) for half in HALVES]
        for i, c in enumerate(held):
            c.sendall(HALVES[i % len(HALVES)])
        slow = [connect() for i in range(20)]
        request = b"POST /v1/exec HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 18\r\n\r\n{\"command\":\"true\"}"
        for byte in request:  # one byte in a packet, on twenty connections
            for c in slow:
                c.sendall(bytes([byte]))
            time.sleep(0.005)
        answers = []
        for c in slow:
            answers.append(c.recv(4096)[:12])
            c.close()
        equal(answers, [b"HTTP/1.1 200"] * 20, "requests that come byte by byte are answered")
        for c in held:
            c.close()
    others.report(f"{len(held)} half requests")
    equal(a.json("GET", "/v1/execs/half")[0], 404, "half a body starts nothing")

    with Beside() as others:
        for i in range(MANY):
            c = connect()
            if i % 4:
                c.sendall(HALVES[i % len(HALVES)] if i % 4 == 1 else b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
            if i % 3 == 0:
                c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
            c.close()
    others.report(f"{MANY} connections opened and dropped")


# --- 6. clients that never read
def deaf():
    a.json("POST", "/v1/fs/write", {"path": work + "/big", "content": "x" * (4 << 20), "encoding": "utf-8"})
    body = json.dumps({"path": work + "/big"}).encode()
    requests = [b"GET /v1/execs/loud/output?follow=1 HTTP/1.1\r\nHost: h\r\n\r\n",
                b"POST /v1/fs/read HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body) + body,
                b"GET /v1/execs HTTP/1.1\r\nHost: h\r\n\r\n" * 500]
    if any(pattern == "/v1/files" for method, pattern, kind, cap in ROUTES):
        requests.append(f"GET /v1/files?path={work}/big HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    if any(pattern == "/v1/archive" for method, pattern, kind, cap in ROUTES):
        requests.append(f"GET /v1/archive?path={work}/big HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    for request in requests:
        with Beside() as others:
            held = []
            for i in range(10):
                c = socket.socket()
                c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                c.connect(("127.0.0.1", a.port))
                c.settimeout(2)
                try:
                    c.sendall(request)
                except OSError:
                    pass  # agentd does not read on before it could answer
                held.append(c)
            time.sleep(1)
            for c in held:
                c.close()
        others.report(f"ten that never read {request.split()[1].decode()[:50]}")


def settled():
    """Descriptors and KiB when nothing is going on any more."""
    until(lambda: a.json("GET", "/v1/info")[1]["in_flight"] == 0, 30)
    until(lambda: a.fds() <= base + 2, 30)
    return a.fds(), a.rss()


ok(len(ROUTES) >= 12, "the table of routes was found", ROUTES)
for part in (bad_bodies, bad_members, bad_targets, bad_lengths, connections, deaf):
    part()
fds, rss = settled()
real_ok, real_equal = ok, equal
again = []
ok = lambda passed, name, detail=None: again.append(name) if not passed else None  # noqa: E731
equal = lambda got, want, name: ok(got == want, name)  # noqa: E731
for part in (bad_bodies, bad_members, bad_targets, bad_lengths, connections, deaf):
    part()
ok, equal = real_ok, real_equal
equal(again, [], "the whole once more")
ok(settled()[0] <= base + 2, f"leaves no descriptor ({base}, {fds}, {a.fds()})")
ok(a.rss() <= rss + 512, f"and no memory ({rss} -> {a.rss()} KiB)")
s, listed = a.json("GET", "/v1/execs")
equal(sorted(e["id"] for e in listed["execs"]), sorted(["live", "loud"] + ["term"] * HAVE_PTY), "no exec has been made or lost")
ok(all(e["state"] == "running" for e in listed["execs"]), "and those from the start run", listed)
equal(open(work + "/file").read(), "content\n", "no file was changed")
s, b = a.exec("echo", ["alive"])
ok(s == 200 and b["stdout"] == b"alive\n", "agentd is alive and well")
equal(a.stop(), 0, "SIGTERM ends it with 0")
done()
