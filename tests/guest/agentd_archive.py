#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""/v1/archive of agentd and the worker process behind it."""
import http.client
import io
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
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
equal(members(get("/proc/sys/kernel/ostype")[1])[0].extractfile("ostype").read(), b"Linux\n", "a file that does not tell its size")
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

# --- in


class Kind:
    def __init__(self, kind):
        self.type = kind


DIR, SYM, HARD, FIFO, CHAR = map(Kind, (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE))


def tar(entries, **kw):
    """entries: (name, Kind or content, more)"""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", encoding="utf-8", errors="surrogateescape", **kw) as t:
        for name, what, *more in entries:
            m = tarfile.TarInfo(name)
            m.mode, m.mtime = 0o644, 1000000000
            data = None
            if isinstance(what, bytes):
                m.size, data = len(what), io.BytesIO(what)
            else:
                m.type = what.type
                if what is DIR:
                    m.mode = 0o755
            for k, v in (more[0] if more else {}).items():
                setattr(m, k, v)
            t.addfile(m, data)
    return out.getvalue()


dest = os.path.join(agent.dir, "dest")
outside = os.path.join(agent.dir, "outside")
os.mkdir(outside)


def put(data, more="", path=dest, headers=None):
    s, body, _ = agent.request("PUT", f"/v1/archive?path={q(path)}{more}", data, headers or {})
    return s, json.loads(body) if body else None


def fresh():
    shutil.rmtree(dest, ignore_errors=True)
    os.mkdir(dest)


def read(name):
    with open(os.path.join(os.fsencode(dest), os.fsencode(name)), "rb") as f:
        return f.read()


fresh()
good = [("d", DIR, {"mode": 0o2750}), ("d/f", b"content", {"mode": 0o4755}), ("d/l", SYM, {"linkname": "../x"}),
        ("d/dangling", SYM, {"linkname": "/no/where"}), ("h", HARD, {"linkname": "d/f"}), ("e", b""),
        (os.fsdecode(b"raw\xff"), b"raw"), ("\u00fcml", b"u"), ("n" * 150 + "/" + "m" * 150, b"long"), (".dot", b"."),
        ("no/parents/x", b"p"), ("fifo", FIFO)]
for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
    fresh()
    s, body = put(tar(good, format=form))
    ok(s == 200 and body["members"] == len(good), "a tar is extracted", (s, body))
    equal([read(n) for n in ("d/f", "h", "e", b"raw\xff", "\u00fcml", ".dot", "no/parents/x")],
          [b"content", b"content", b"", b"raw", b"u", b".", b"p"], "its files")
    equal(read("n" * 150 + "/" + "m" * 150), b"long", "with long names")
    equal([os.readlink(dest + "/d/l"), os.readlink(dest + "/d/dangling")], ["../x", "/no/where"], "links as they are")
    st, sd = os.lstat(dest + "/d/f"), os.lstat(dest + "/d")
    equal((st.st_mode & 0o7777, sd.st_mode & 0o7777, st.st_mtime, sd.st_mtime), (0o4755, 0o2750, 1e9, 1e9), "modes, times")
    equal((st.st_ino, st.st_nlink), (os.lstat(dest + "/h").st_ino, 2), "a hard link is one")
    ok(stat.S_ISFIFO(os.lstat(dest + "/fifo").st_mode), "a FIFO is one")
equal(put(tar([("e", b"over")]))[0], 200, "a file is replaced")
equal(read("e"), b"over", "by the new one")
os.chmod(dest + "/d", 0o755)

# GNU sparse, as GNU tar makes it
fresh()
with open(src + "/sparse", "rb") as f:
    want = f.read()
for form in ("gnu", "pax"):
    made = subprocess.run(["tar", "-c", "-S", f"--format={form}", "-C", src, "sparse"], stdout=subprocess.PIPE, check=True)
    equal(put(made.stdout)[0], 200, f"a sparse file of GNU tar ({form})")
    ok(read("sparse") == want and os.stat(dest + "/sparse").st_blocks * 512 < 1 << 20, "keeps its holes")

# what is hostile: (what, members, the one that is refused)
HOSTILE = [
    ("through a link", [("a", SYM, {"linkname": outside}), ("a/x", b"evil")], "a/x"),
    ("through a relative link", [("a", SYM, {"linkname": "../outside"}), ("a/x", b"evil")], "a/x"),
    ("a directory through a link", [("a", SYM, {"linkname": outside}), ("a/b", DIR)], "a/b"),
    ("a chain of links", [("a", SYM, {"linkname": "b"}), ("b", SYM, {"linkname": outside}), ("a/x", b"evil")], "a/x"),
    ("a dangling link", [("a", SYM, {"linkname": outside + "/new"}), ("a/x", b"evil")], "a/x"),
    ("a directory over a link", [("a", SYM, {"linkname": outside}), ("a", DIR), ("a/x", b"evil")], "a"),
    ("..", [("../outside/x", b"evil")], "../outside/x"),
    (".. inside", [("a/../../outside/x", b"evil")], "a/../../outside/x"),
    ("an absolute name", [(outside + "/x", b"evil")], outside + "/x"),
    ("a hard link with ..", [("h", HARD, {"linkname": "../../etc/passwd"})], "h"),
    ("an absolute hard link", [("h", HARD, {"linkname": "/etc/passwd"})], "h"),
    ("a hard link through a link", [("a", SYM, {"linkname": "/etc"}), ("h", HARD, {"linkname": "a/passwd"})], "h"),
    ("a device", [("null", CHAR)], "null"),
]
for what, entries, name in HOSTILE:
    fresh()
    at = max(i for i, entry in enumerate(entries) if entry[0] == name)
    s, body = put(tar([("before", b"1")] + entries + [("after", b"2")]))
    ok(s == 400 and f'"{name}"' in body["detail"].replace('/"', '"') and body["members"] == 1 + at, f"{what}: 400 and the name",
       (s, body))
    ok(not os.listdir(outside) and read("before") == b"1" and not os.path.exists(dest + "/after"), "nothing outside, what came before stands")
    ok(not [n for n in os.listdir(dest) if n.startswith(".asb")], "no temporary is left")

# what does not fit
fresh()
os.makedirs(dest + "/dir/sub")
with open(dest + "/file", "w") as f:
    f.write("old")
for what, entries, errno in (("a file over a directory", [("dir", b"x")], "EISDIR"), ("a directory over a file", [("file", DIR)], "ENOTDIR"),
                             ("below a file", [("file/x", b"x")], "ENOTDIR")):
    s, body = put(tar(entries))
    equal((s, body.get("errno")), (400, errno), f"{what} is refused")
equal(read("file"), b"old", "and nothing changed")
for what, data in (("nothing", b""), ("no tar", b"hello" * 1000), ("a cut tar", tar([("x", b"y" * 5000)])[:3000]),
                   ("a tar without its end", tar([("x", b"y")])[:1024])):
    s, body = put(data)
    ok(s == 400 and body["detail"], f"{what} is 400", (s, body))
equal(put(tar([]))[0], 200, "a tar of nothing is fine")
equal(put(tar([]), path=dest + "/none")[0], 404, "a directory that is missing is 404")
equal(put(tar([]), path=dest + "/file")[0], 400, "a file in its place is 400")
equal(put(tar([("x", b"1")]), "&parents=1", dest + "/new/er")[0], 200, "parents=1 makes it")
equal(read("new/er/x"), b"1", "with what is in it")
equal(put(tar([]), "&keep_owner=yes")[0], 400, "a flag that is neither 0 nor 1 is 400")

# owners
fresh()
owned = tar([("d", DIR, {"uid": 12, "gid": 34}), ("d/f", b"", {"uid": 1234, "gid": 5678, "uname": "root"}),
             ("l", SYM, {"linkname": "x", "uid": 1, "gid": 2})])
put(owned)
equal((os.lstat(dest + "/d/f").st_uid, os.lstat(dest + "/l").st_uid), (os.getuid(), os.getuid()), "the owner is agentd's")
if os.getuid() == 0:
    put(owned, "&keep_owner=1")
    equal([(os.lstat(dest + n).st_uid, os.lstat(dest + n).st_gid) for n in ("/d", "/d/f", "/l")], [(12, 34), (1234, 5678), (1, 2)],
          "with keep_owner=1 the archive's, by number")

# chunked, slowly, and cut
fresh()


def slowly(data):
    for i in range(0, len(data), 1000):
        yield data[i:i + 1000]
        if i < 5000:
            time.sleep(0.01)


s, body, _ = agent.request("PUT", f"/v1/archive?path={q(dest)}", slowly(tar([("slow", b"s" * 40000)])))
equal((s, read("slow")), (200, b"s" * 40000), "a chunked body")
big = tar([("first", b"1"), ("big", os.urandom(8 << 20))])
c = socket.create_connection(("127.0.0.1", agent.port))
c.sendall(f"PUT /v1/archive?path={q(dest)} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(big)}\r\n\r\n".encode() + big[:4 << 20])
ok(until(lambda: [n for n in os.listdir(dest) if n.startswith(".asb")]), "a file that is being written has another name")
c.close()
ok(until(lambda: not workers()), "the worker ends with its client")
equal(sorted(os.listdir(dest)), ["first", "slow"], "and leaves nothing half")
ok(until(lambda: not zombies(agent.pid)), "no zombie")

# an error in the middle of a body that goes on
s, body = put(tar([("../x", b"evil"), ("big", os.urandom(4 << 20))]))
ok(s == 400 and body["members"] == 0, "an error is told while the body is still coming", (s, body))
# memory: a pax header that claims much
s, body = put(tar([("m", b"x", {"pax_headers": {"comment": "x" * (2 << 20)}})]))
ok(s in (200, 400), "a big header is no harm", (s, body))
equal(agent.json("GET", "/healthz")[0], 200, "agentd is well")

# memory: the names of directories are kept to the end
long = "/".join(["d" * 200] * 19)
s, body = put(tar([(long, DIR)] * 17700))
ok(s == 413 and "64 MiB" in body["detail"], "too many bytes of directories are refused", (s, body))

# there and back
fresh()
back = get(src + "/.")[1]
equal(put(back)[0], 200, "what came out goes in")
equal(members(get(dest + "/.")[1])[1].keys(), members(back)[1].keys(), "and out again")
equal(members(get(dest + "/sub")[1])[0].extractfile("sub/deep/x").read(), b"deep", "with the same bytes")

# --- the end of agentd ends its workers
c = socket.create_connection(("127.0.0.1", agent.port))
c.sendall(f"GET /v1/archive?path={q(deep)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
c.recv(1000)
pids = workers()
start = time.monotonic()
equal((agent.stop(), len(pids)), (0, 1), "agentd stops with a worker at work")
ok(not [p for p in pids if os.path.exists(f"/proc/{p}")], "which ends as well")
done()
