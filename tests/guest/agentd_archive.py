#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""/v1/archive of agentd and the worker process behind it."""
import http.client
import io
import os
import signal
import socket
import sys
import tarfile
import time
import urllib.parse

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _agentd import Agentd, done, equal, ok, processes, until, zombies  # noqa: E402

agent = Agentd()


def q(path):
    return urllib.parse.quote(path)


def get(path, more="", timeout=60):
    return agent.request("GET", f"/v1/archive?path={q(path)}{more}", timeout=timeout)


def members(data):
    """name (bytes) -> TarInfo, and the open archive"""
    t = tarfile.open(fileobj=io.BytesIO(data), encoding="utf-8", errors="surrogateescape")
    return t, {os.fsencode(m.name): m for m in t}


def workers():
    """Pids of the workers of our agentd."""
    found = []
    for pid in processes(b"agentd-worker"):
        try:
            with open(f"/proc/{pid}/stat") as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) == agent.pid:
                    found.append(pid)
        except OSError:
            pass
    return found


# --- out: what is in it
src = os.path.join(agent.dir, "src")
os.makedirs(src + "/sub/deep")
files = {b"f": b"hello", b"empty": b"", b".dot": b"x", b"bad\xff\xfe": b"raw", b"n" * 200: b"long",
         "ümlaut".encode(): b"u", b"big": os.urandom(3 << 20), b"sub/deep/x": b"deep"}
for name, data in files.items():
    with open(os.fsencode(src) + b"/" + name, "wb") as f:
        f.write(data)
os.symlink("nowhere", src + "/dangling")
os.symlink("../f", src + "/sub/link")
os.link(src + "/f", src + "/hard")
os.chmod(src + "/f", 0o4751)
os.utime(src + "/f", ns=(0, 1234567890_000000000))
with open(src + "/sparse", "wb") as f:
    f.seek(10 << 20)
    f.write(b"end")
    f.truncate(20 << 20)
os.mkfifo(src + "/fifo")
sock = socket.socket(socket.AF_UNIX)
sock.bind(src + "/socket")

status, data, head = get(src)
equal((status, head["Content-Type"]), (200, "application/x-tar"), "a directory comes as a tar")
t, found = members(data)
want = {b"src", b"src/sub", b"src/sub/deep", b"src/dangling", b"src/sub/link", b"src/hard", b"src/sparse", b"src/fifo"}
equal(set(found), want | {b"src/" + n for n in files}, "every member, dot files and raw names too, and no socket")
regular = {n: t.extractfile(found[b"src/" + n]).read() for n in files if b"src/" + n in found}
equal([n for n in files if regular.get(n) != files[n] and not found[b"src/" + n].islnk()], [], "their bytes")
first, second = sorted((found[b"src/f"], found[b"src/hard"]), key=lambda m: m.islnk())
ok(not first.islnk() and second.islnk() and second.linkname == first.name, "a hard link is one", (first, second))
equal((found[b"src/dangling"].linkname, found[b"src/sub/link"].linkname), ("nowhere", "../f"), "links are kept as they are")
equal((first.mode, first.mtime), (0o4751, 1234567890), "mode, mtime")
ok(found[b"src/sparse"].issparse() and len(data) < 8 << 20, "holes are not sent", len(data))
equal(t.extractfile(found[b"src/sparse"]).read()[10 << 20:(10 << 20) + 4], b"end\0", "a sparse file's bytes")
again = members(get(src)[1])[1]
equal(set(again), set(found), "the same once more")

# --- out: names, and what cannot be had
equal(sorted(members(get(src + "/sub/.")[1])[1]), [b".", b"./deep", b"./deep/x", b"./link"], "DIR/. gives names like ./x")
equal(sorted(members(get(src + "/sub/")[1])[1])[0], b"sub", "a slash at the end does not count")
equal(sorted(members(get(src + "/f")[1])[1]), [b"f"], "one file")
equal(members(get(src + "/sub/link")[1])[1][b"link"].issym(), True, "a link is packed itself")
equal(members(get(src + "/sub/link", "&follow=1")[1])[1][b"link"].isreg(), True, "with follow, what it names")
for path, status, name in (("/none/x", 404, "a missing one"), ("relative", 400, "a relative one"),
                           ("/" + "x" * 5000, 400, "a long one"), (src + "/f/x", 400, "a file taken for a directory")):
    s, body, _ = get(path)
    ok(s == status and b"detail" in body, f"{name} is {status}", (s, body))
equal(agent.request("GET", "/v1/archive")[0], 400, "no path is 400")
equal(agent.request("GET", f"/v1/archive?path={q(src)}&follow=2")[0], 400, "a flag that is neither 0 nor 1 is 400")

# --- the worker
deep = os.path.join(agent.dir, "deep")
os.makedirs(deep)
with open(deep + "/endless", "wb") as f:
    for _ in range(64):
        f.write(os.urandom(1 << 20))
c = socket.create_connection(("127.0.0.1", agent.port))
c.sendall(f"GET /v1/archive?path={q(deep)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
c.recv(10000)
pids = workers()
equal(len(pids), 1, "a worker runs while its client does not read")
if pids:
    equal(os.readlink(f"/proc/{pids[0]}/exe").split(" ")[0], os.readlink(f"/proc/{agent.pid}/exe"), "it is the same program")
    with open(f"/proc/{pids[0]}/environ", "rb") as f:
        equal(f.read(), b"", "without an environment")
    equal(sorted(map(int, os.listdir(f"/proc/{pids[0]}/fd")))[:3], [0, 1, 2], "with its three descriptors")
    ok(all(os.readlink(f"/proc/{pids[0]}/fd/{n}").startswith(("/dev/null", "pipe:", deep))
           for n in os.listdir(f"/proc/{pids[0]}/fd")), "and those of what it reads")
equal(agent.json("GET", "/healthz")[0], 200, "agentd answers meanwhile")
c.close()
ok(until(lambda: not workers()), "it ends when its client goes")
ok(until(lambda: not zombies(agent.pid)), "and is reaped")

c = http.client.HTTPConnection("127.0.0.1", agent.port, timeout=30)
c.request("GET", f"/v1/archive?path={q(deep)}")
r = c.getresponse()
r.read(100000)
for pid in workers():
    os.kill(pid, signal.SIGKILL)
try:
    while r.read(1 << 20):
        pass
    whole = True
except (http.client.IncompleteRead, ConnectionError):
    whole = False
equal(whole, False, "a worker that dies leaves a cut answer, not a short one")
c.close()

before = agent.fds()
held = []
for _ in range(8):
    c = socket.create_connection(("127.0.0.1", agent.port))
    c.sendall(f"GET /v1/archive?path={q(deep)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    c.recv(1000)
    held.append(c)
s, body, head = get(src)
equal((s, head["Retry-After"]), (503, "1"), "the ninth worker has to wait")
for c in held:
    c.close()
ok(until(lambda: get(src + "/f")[0] == 200), "and may come when the others have ended")
ok(until(lambda: agent.fds() <= before and not workers() and not zombies(agent.pid)), "nothing of them is left",
   (agent.fds(), before, workers(), zombies(agent.pid)))

# --- the end of agentd ends its workers
c = socket.create_connection(("127.0.0.1", agent.port))
c.sendall(f"GET /v1/archive?path={q(deep)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
c.recv(1000)
pids = workers()
start = time.monotonic()
equal((agent.stop(), len(pids)), (0, 1), "agentd stops with a worker at work")
ok(not [p for p in pids if os.path.exists(f"/proc/{p}")], "which ends as well")
done()
