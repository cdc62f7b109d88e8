#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GET /v1/watch: nothing is lost, nothing leaks, and a slow client costs little."""
import json
import os
import queue
import shutil
import socket
import threading
import time
import urllib.parse

from _agentd import *

a = Agentd()
D = os.path.join(a.dir, "w")
os.mkdir(D)


def at(name):
    return os.path.join(D, name)


def touch(name, data=b""):
    with open(at(name), "ab") as f:
        f.write(data)


class Watch:
    def __init__(self, path=D, headers=None, **more):
        p = path if isinstance(path, bytes) else path.encode()
        head = f"GET /v1/watch?path={urllib.parse.quote(p)}" + "".join(f"&{k}={v}" for k, v in more.items()) + " HTTP/1.1\r\nHost: x\r\n"
        self.s = socket.create_connection(("127.0.0.1", a.port), timeout=30)
        self.s.sendall((head + "".join(f"{k}: {v}\r\n" for k, v in (headers or {}).items()) + "\r\n").encode())
        self.f = self.s.makefile("rb")
        self.status = int(self.f.readline().split()[1])
        self.type = None
        while line := self.f.readline().strip():
            if line.lower().startswith(b"content-type:"):
                self.type = line.split(b": ")[1].decode()
        self.events, self.lines, self.ended = [], queue.Queue(), False
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        rest = b""
        try:
            while n := int(self.f.readline(), 16):
                rest += self.f.read(n)
                self.f.readline()
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    if line:
                        self.lines.put(json.loads(line.removeprefix(b"data: ")))
        except (OSError, ValueError):
            pass
        self.ended = True

    def until(self, test, seconds=10):
        """Collects events until test(events), then says whether that came."""
        end = time.monotonic() + seconds
        while not test(self.events):
            try:
                self.events.append(self.lines.get(timeout=max(0.01, end - time.monotonic())))
            except queue.Empty:
                return test(self.events)
        return True

    def has(self, event, name, **more):
        want = {"event": event, "path": at(name), **more}
        return self.until(lambda evs: any(all(e.get(k) == v for k, v in want.items()) for e in evs))

    def expect(self, name, event, path, **more):
        return ok(self.has(event, path, **more), name, self.events[-20:])

    def close(self):
        self.s.shutdown(socket.SHUT_RDWR)
        self.s.close()


# --- one directory
os.mkdir(at("sub"))
w = Watch()
ok(w.status == 200 and w.type == "application/x-ndjson", "NDJSON unless asked otherwise")
ok(w.until(lambda e: len(e) > 0) and w.events[0] == {"event": "ready"}, "ready comes first", w.events)
touch("f")
w.expect("create", "create", "f", type="file")
touch("f", b"x")
w.expect("modify", "modify", "f", type="file")
os.chmod(at("f"), 0o600)
w.expect("attrib", "attrib", "f")
os.rename(at("f"), at("g"))
w.expect("rename is one event", "rename", "f", to=at("g"), type="file")
os.unlink(at("g"))
w.expect("delete", "delete", "g", type="file")
os.symlink("nowhere", at("l"))
w.expect("a link", "create", "l", type="symlink")
os.mkdir(at("d"))
w.expect("a directory", "create", "d", type="dir")
touch("d/unseen")
touch("marker")
w.expect("what is below is not told without recursive", "create", "marker")
ok(not any(e.get("path", "").endswith("unseen") for e in w.events), "  really", w.events)
touch("out1")
os.rename(at("out1"), os.path.join(a.dir, "out1"))
w.expect("moved out is a delete", "delete", "out1")
os.rename(os.path.join(a.dir, "out1"), at("in1"))
w.expect("moved in is a create", "create", "in1", type="file")
os.close(os.open(D.encode() + b"/\xff\xfe", os.O_CREAT | os.O_WRONLY))
ok(w.until(lambda evs: any("path_b64" in e and base64.b64decode(e["path_b64"]) == D.encode() + b"/\xff\xfe" for e in evs)),
   "a name that is no UTF-8", w.events[-3:])
w.close()

# --- server-sent events
for headers, more in (({"Accept": "text/event-stream"}, {}), (None, {"format": "sse"})):
    w = Watch(headers=headers, **more)
    ok(w.type == "text/event-stream" and w.until(lambda e: len(e) > 0) and w.events[0]["event"] == "ready",
       "server-sent events", w.events)
    w.close()

# --- recursive
shutil.rmtree(D)
os.makedirs(at("old/a/b"))
w = Watch(recursive=1)
w.until(lambda e: len(e) > 0)
touch("old/a/b/f")
w.expect("what was there before", "create", "old/a/b/f")
for i in range(20):
    a.sh(f"mkdir -p {D}/n{i}/a/b/c && touch {D}/n{i}/a/b/c/f && echo x > {D}/n{i}/a/g")
made = (f"n{i}{n}" for i in range(20) for n in ("", "/a", "/a/b", "/a/b/c", "/a/b/c/f", "/a/g"))
equal(next((n for n in made if not w.has("create", n)), None), None, "mkdir -p and touch at once, 20 times: every level is told")
os.rename(at("old/a"), at("moved"))
w.expect("a directory is renamed", "rename", "old/a", to=at("moved"), type="dir")
touch("moved/b/later")
w.expect("and what happens in it has its new path", "create", "moved/b/later")
os.rename(at("moved"), os.path.join(a.dir, "away"))
w.expect("a directory leaves", "delete", "moved", type="dir")
with open(os.path.join(a.dir, "away/b/x"), "w"):
    pass
os.rename(os.path.join(a.dir, "away"), at("back"))
w.expect("it comes back", "create", "back", type="dir")
w.expect("with what is in it", "create", "back/b/x", type="file")
ok(not any(e.get("path", "").endswith(("away/b/x", "moved/b/x")) for e in w.events), "what happened outside is not told")
shutil.rmtree(at("back"))
for n in ("back/b/f", "back/b/later", "back/b", "back"):
    w.expect(f"rm -r tells {n}", "delete", n)
os.makedirs(at("tree/x"))
w.has("create", "tree/x")
os.symlink("/usr", at("tree/usr"))
w.expect("a link to a directory is a link", "create", "tree/usr", type="symlink")
ok(not any("/tree/usr/" in e.get("path", "") for e in w.events), "  and not followed")
before = a.fds()
shutil.rmtree(D)
ok(w.until(lambda e: e[-1] == {"event": "delete", "path": D}) and until(lambda: w.ended), "the end of the path ends the watch", w.events[-3:])
os.mkdir(D)

# --- a file
touch("one", b"1")
w = Watch(at("one"))
w.until(lambda e: len(e) > 0)
touch("one", b"2")
w.expect("a single file can be watched", "modify", "one", type="file")
os.unlink(at("one"))
ok(w.until(lambda e: e[-1]["event"] == "delete") and until(lambda: w.ended), "until it is gone", w.events)

# --- refused
for query, status, word in (("", 400, "path"), ("?path=x", 400, "path"), ("?path=", 400, "path"), (f"?path={D}/none", 404, "ENOENT"),
                            (f"?path={D}&recursive=yes", 400, "recursive"), ("?path_b64=%25", 400, "path_b64"),
                            (f"?path={D}/{'x' * 256}", 400, "ENAMETOOLONG")):
    s, b, h = a.request("GET", "/v1/watch" + query)
    b = json.loads(b)
    ok(s == status and (word in b["detail"] or b.get("errno") == word), f"watch {query[-20:]!r} is {status} {word}", (s, b))
equal(a.request("POST", "/v1/watch?path=/tmp", b"")[0], 405, "POST is 405")
ws = [Watch() for _ in range(32)]
s, b, h = a.request("GET", f"/v1/watch?path={D}")
ok(s == 429 and "32" in json.loads(b)["detail"], "the 33rd is 429", (s, b))
for w in ws:
    w.close()

# --- a client that does not read: bounded memory, then an overflow, and nobody else is delayed
queued = int(open("/proc/sys/fs/inotify/max_queued_events").read())
until(lambda: a.fds() <= before)
s1 = socket.create_connection(("127.0.0.1", a.port))
s1.sendall(f"GET /v1/watch?path={D}&recursive=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
first = s1.recv(2000)
rss = a.rss()
long = "n" * 200
for i in range(queued + 30000):
    n = at(long + str(i % 50))
    if i // 50 % 2 == 0:
        os.close(os.open(n, os.O_CREAT | os.O_WRONLY))
    else:
        os.unlink(n)
ok(a.rss() < rss + 2048, "a client that does not read costs no memory", (rss, a.rss()))
os.makedirs(at("made/while/full"))
got = b""
s1.settimeout(20)
while b'"overflow"' not in got:
    chunk = s1.recv(1 << 16)
    if not chunk:
        break
    got = got[-20000:] + chunk
ok(b'"overflow"' in got, "it is told that it missed something", got[-300:])
time.sleep(0.5)
touch("made/while/full/after")
while b"made/while/full/after" not in got:
    chunk = s1.recv(1 << 16)
    if not chunk:
        break
    got = got[-20000:] + chunk
ok(b"made/while/full/after" in got, "and directories made meanwhile are watched afterwards", got[-300:])
s1.close()

# --- a big tree does not delay others
for i in range(300):
    os.makedirs(at(f"big/{i}/a/b/c"))
w = Watch(recursive=1)
ok(w.until(lambda e: len(e) > 0) and w.events[0]["event"] == "ready", "1,500 directories")
touch("big/299/a/b/c/f")
w.expect("  the last of which is watched", "create", "big/299/a/b/c/f")
w.close()
shutil.rmtree(at("big"))

# --- nothing leaks
until(lambda: a.fds() <= before - 1, 5)
before = a.fds()
for i in range(1000):
    with socket.create_connection(("127.0.0.1", a.port)) as s1:
        s1.sendall(f"GET /v1/watch?path={D}&recursive={i % 2} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        if i % 3:
            s1.recv(10)
ok(until(lambda: a.fds() <= before), "1,000 aborted watches leave no descriptor", (before, a.fds()))
for i in range(100):
    with socket.create_connection(("127.0.0.1", a.port)) as s1:
        s1.sendall(f"GET /v1/watch?path={D}&recursive=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        s1.recv(10)
r1 = a.rss()
for i in range(500):
    with socket.create_connection(("127.0.0.1", a.port)) as s1:
        s1.sendall(f"GET /v1/watch?path={D}&recursive=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        s1.recv(10)
until(lambda: a.fds() <= before)
ok(a.rss() <= r1 + 256, "nor memory", (r1, a.rss()))
long = "x" * 200
for i in range(100):
    os.makedirs(at("/".join(["long"] + [long] * 9 + [str(i)])))
for i in range(30):
    w = Watch(recursive=1)
    if w.status != 200 or not w.until(lambda e: len(e) > 0):
        break
    w.close()
equal(w.status, 200, "nor anything of the room for paths, 4 MiB for all watches")
w = Watch()
w.until(lambda e: len(e) > 0)
equal(a.private(op="drain", timeout_ms=3000, reopen_ms=1000)["drained"], True, "a watch does not hold up a suspension")
equal(a.stop(), 0, "nor the end of agentd")
done()
