#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""POST /v1/fs/*: what the names say, trees that change under a worker, and what is refused."""
import ctypes
import json
import os
import socket
import stat
import threading
import time

from _agentd import *

a = Agentd()
D = os.path.join(a.dir, "fs")
os.mkdir(D)
ROOT = os.getuid() == 0
um = os.umask(0)
os.umask(um)


def at(name):
    return os.path.join(D, name)


def fs(op, timeout=60, **body):
    return a.json("POST", "/v1/fs/" + op, body, timeout=timeout)


def good(op, want=200, **body):
    s, b = fs(op, **body)
    ok(s == want, f"{op} {({k: str(v)[-24:] for k, v in body.items()})} is {want}", (s, b))
    return b


def bad(status, word, op, **body):
    s, b = fs(op, **body)
    ok(s == status and (word in b.get("detail", "") or b.get("errno") == word),
       f"{op} {({k: str(v)[-24:] for k, v in body.items()})} is {status} {word}", (s, b))


def write(name, data=b"x", mode=0o644):
    with open(at(name), "wb") as f:
        f.write(data)
    os.chmod(at(name), mode)


def read(name):
    with open(at(name), "rb") as f:
        return f.read()


def mode(name):
    return stat.S_IMODE(os.lstat(at(name)).st_mode)


def tree(top):
    found = []
    for base, dirs, files in os.walk(top):
        found += [os.path.relpath(os.path.join(base, n), top) for n in dirs + files]
    return sorted(found)


def listing(**body):
    s, b = fs("list", **body)
    return sorted(os.path.relpath(e["path"], D) for e in b["entries"]), b["truncated"]


# --- stat, exists
write("file", b"12345", 0o640)
os.utime(at("file"), ns=(1, 1234567890123456789))
os.symlink("file", at("link"))
os.symlink("nothing", at("dangling"))
os.symlink("loop", at("loop"))
os.mkfifo(at("fifo"))
b = good("stat", path=at("file"))
equal(b, {"name": "file", "path": at("file"), "type": "file", "size": 5, "mode": "0640", "uid": os.getuid(),
          "gid": os.getgid(), "mtime_ms": 1234567890123}, "stat tells all")
equal(good("stat", path=at("link"))["type"], "file", "stat follows a link")
b = good("stat", path=at("link"), follow=False)
ok(b["type"] == "symlink" and b["target"] == "file" and b["size"] == 4, "  or not", b)
equal(good("stat", path="/")["name"], "/", "the root has its slash as name")
equal(good("stat", path=D)["type"], "dir", "a directory")
equal(good("stat", path=at("fifo"))["type"], "fifo", "a FIFO")
equal(good("stat", path="/dev/null")["type"], "char", "a device")
os.utime(at("fifo"), (0, -1.5))
equal(good("stat", path=at("fifo"))["mtime_ms"], -1500, "a time before 1970")
for name, want in (("file", "file"), ("link", "file"), ("dangling", None), ("none", None), ("file/x", None), (".", "dir")):
    equal(good("exists", path=at(name)), {"exists": want is not None, "type": want}, f"exists: {name}")
equal(good("exists", path=at("dangling"), follow=False), {"exists": True, "type": "symlink"}, "a dangling link itself exists")
bad(404, "ENOENT", "stat", path=at("none"))
bad(404, "ENOENT", "stat", path=at("dangling"))
bad(400, "ENOTDIR", "stat", path=at("file/x"))
bad(400, "ELOOP", "stat", path=at("loop"))
bad(400, "ELOOP", "exists", path=at("loop"))
bad(400, "ENAMETOOLONG", "stat", path=at("n" * 256))
odd = D.encode() + b"/\xff\xfe"
with open(odd, "wb"):
    pass
b = good("stat", path_b64=base64.b64encode(odd).decode())
ok(base64.b64decode(b["path_b64"]) == odd and base64.b64decode(b["name_b64"]) == b"\xff\xfe" and b["name"] == "\ufffd\ufffd",
   "a name that is no UTF-8", b)
os.unlink(odd)

# --- bad input on every route
OPS = {"list": {"path": D}, "stat": {"path": D}, "exists": {"path": D}, "mkdir": {"path": at("m")}, "remove": {"path": at("m")},
       "copy": {"from": at("file"), "to": at("m")}, "rename": {"from": at("none"), "to": at("m")},
       "chmod": {"path": at("file"), "mode": "0640"}, "symlink": {"path": at("m"), "target": "x"}}
DEEP = "[" * 100 + "]" * 100
for op, fine in OPS.items():
    wrong = []
    path = next(iter(fine))

    def post(raw, want, word, what):
        s, b, h = a.request("POST", "/v1/fs/" + op, raw)
        try:
            detail = json.loads(b)["detail"]
        except (ValueError, KeyError):
            detail = None
        if s != want or detail is None or word not in detail:
            wrong.append((what, s, b[:200]))

    post("{}", 400, f'"{path}"', "{}")
    for raw in ("null", "[]", "1", '"x"', "", "{", "{} x", '{"path":', DEEP, '{"a":' + DEEP + "}", b"\xff", b'{"path":"\xff"}'):
        post(raw, 400, "", raw)
    for member in fine:
        for value in (1, [], {}, True, 1e400):
            post(json.dumps({**fine, member: value}).replace("Infinity", "1e400"), 400, f'"{member}"', (member, value))
        post(json.dumps({**fine, member: None}), 400, "mode" if member == "mode" else f'"{member}"', (member, None))
        if member in ("path", "from", "to"):
            for value in ("", "x", "./x", "~/x", "/" + "y" * 4095, "/" + "a/" * 3000):
                post(json.dumps({**fine, member: value}), 400, f'"{member}"', (member, value[:10]))
            post(json.dumps({**fine, member: "/a\0b"}), 400, "NUL", (member, "NUL"))
            post(json.dumps({**fine, member + "_b64": "L3g="}), 400, "both", (member, "both"))
            post(json.dumps({**{k: v for k, v in fine.items() if k != member}, member + "_b64": "*"}), 400, "_b64", "bad base64")
    post(json.dumps({**fine, "surprise": 1}), 400, "surprise", "unknown member")
    for flag in ("recursive", "overwrite", "parents", "force", "follow"):
        for value in (1, "true", []):
            post(json.dumps({**fine, flag: value}), 400, flag, (flag, value))
    for number in ("depth", "limit", "uid", "gid"):
        for value in (-1, 1.5, 1e300, "1", [], True, 4294967295 if number in ("uid", "gid") else 0):
            post(json.dumps({**fine, number: value}), 400, number, (number, value))
    post(b"x" * 70000, 413, "", "too long")
    equal(wrong, [], f"{op}: wrong bodies are 400 and name the member")
ok(not os.path.lexists(at("m")) and read("file") == b"12345", "  and nothing was done")
for path, want in (("/v1/fs/none", 404), ("/v1/fs/", 404), ("/v1/fs", 404), ("/v1/fs%2flist", 404), ("/v1/fs/list/", 404)):
    equal(a.request("POST", path, "{}")[0], want, f"POST {path} is {want}")
equal(a.request("GET", "/v1/fs/list")[0], 405, "GET is 405")

# --- mkdir
equal(good("mkdir", 201, path=at("d")), {"created": True}, "mkdir")
equal(mode("d"), 0o777 & ~um, "  by the umask")
bad(409, "EEXIST", "mkdir", path=at("d"))
equal(good("mkdir", path=at("d"), parents=True), {"created": False}, "  fine with parents")
bad(404, "ENOENT", "mkdir", path=at("p/q/r"))
good("mkdir", 201, path=at("p/q/r") + "//", parents=True, mode="2771")
ok(mode("p/q/r") == 0o2771 and mode("p/q") == 0o777 & ~um, "with parents, the mode is the last one's", (oct(mode("p/q/r")), oct(mode("p/q"))))
bad(400, "ENOTDIR", "mkdir", path=at("file"), parents=True)
bad(400, "ENOTDIR", "mkdir", path=at("file/x/y"), parents=True)
bad(409, "EEXIST", "mkdir", path="/")

# --- symlink, rename, chmod
good("symlink", 201, path=at("sl"), target="../any thing")
equal(os.readlink(at("sl")), "../any thing", "symlink")
bad(409, "EEXIST", "symlink", path=at("sl"), target="x")
bad(400, "target", "symlink", path=at("sl2"), target="")
bad(400, "target", "symlink", path=at("sl2"))
good("symlink", 201, path=at("sl3"), target_b64="/w==")
equal(os.readlink(at("sl3").encode()), b"\xff", "a target that is no UTF-8")
equal(good("stat", path=at("sl3"), follow=False)["target_b64"], "/w==", "  is told as one")
write("r1", b"one")
write("r2", b"two")
bad(409, "EEXIST", "rename", **{"from": at("r1"), "to": at("r2")})
good("rename", **{"from": at("r1"), "to": at("r3")})
good("rename", **{"from": at("r3"), "to": at("r2"), "overwrite": True})
ok(read("r2") == b"one" and not os.path.exists(at("r3")), "rename replaces only when told to")
bad(404, "ENOENT", "rename", **{"from": at("none"), "to": at("r4")})
bad(404, "ENOENT", "rename", **{"from": at("r2"), "to": at("none/x")})
bad(400, "EINVAL", "rename", **{"from": at("p"), "to": at("p/q/x")})
bad(400, "EISDIR", "rename", **{"from": at("r2"), "to": at("d"), "overwrite": True})
bad(409, "ENOTEMPTY", "rename", **{"from": at("d"), "to": at("p"), "overwrite": True})
if os.stat("/dev/shm").st_dev != os.stat(D).st_dev:
    bad(400, "EXDEV", "rename", **{"from": at("r2"), "to": "/dev/shm/agentd-test-rename"})
good("chmod", path=at("r2"), mode="04751")
equal(mode("r2"), 0o4751, "chmod")
bad(400, "mode", "chmod", path=at("r2"), mode=420)
bad(400, "mode", "chmod", path=at("r2"), mode="0o644")
bad(400, "mode", "chmod", path=at("r2"))
bad(404, "ENOENT", "chmod", path=at("none"), mode="0")
if ROOT:
    good("chmod", path=at("r2"), uid=12, gid=34, mode="4755")
    st = os.stat(at("r2"))
    equal((st.st_uid, st.st_gid, mode("r2")), (12, 34, 0o4755), "chmod is chown too")
    good("chmod", path=at("r2"), gid=35)
    st = os.stat(at("r2"))
    equal((st.st_uid, st.st_gid), (12, 35), "  also of one of them")
else:
    skip("chown", "only root gives files away")

# --- list
os.makedirs(at("t/1/2/3/4/5/6"))
write("t/f0")
write("t/1/f1")
write("t/1/2/f2")
os.symlink("1", at("t/s"))
equal(listing(path=at("t")), (["t/1", "t/f0", "t/s"], False), "list of one level, links as links")
equal(listing(path=at("t"), depth=2)[0], ["t/1", "t/1/2", "t/1/f1", "t/f0", "t/s"], "of two")
equal(len(listing(path=at("t"), depth=5)[0]), 9, "of five")
equal(len(listing(path=at("t"), depth=256)[0]), 10, "of all")
equal(listing(path=at("t/s")), (["t/s/2", "t/s/f1"], False), "through a link, by the path that was asked for")
equal(listing(path=D + "//t/./"), listing(path=at("t")), "slashes at the end")
equal(listing(path=at("t/1/2/3/4/5/6")), ([], False), "an empty directory")
b = good("list", path=at("t"))
e = next(e for e in b["entries"] if e["name"] == "s")
ok(e["type"] == "symlink" and e["target"] == "1", "a link has its target", e)
ok("usr" in [e["name"] for e in good("list", path="/")["entries"]] and
   all(e["path"] == "/" + e["name"] for e in good("list", path="/")["entries"]), "the root")
bad(404, "ENOENT", "list", path=at("none"))
bad(400, "ENOTDIR", "list", path=at("file"))
bad(400, "ELOOP", "list", path=at("loop"))
os.mkdir(at("many"))
for i in range(12000):
    os.symlink("x", at(f"many/{i}"))
s, b = fs("list", path=at("many"))
ok(len(b["entries"]) == 10000 and b["truncated"], "10,000 entries unless told otherwise", (len(b["entries"]), b["truncated"]))
s, b = fs("list", path=at("many"), limit=20000)
ok(len({e["name"] for e in b["entries"]}) == 12000 and not b["truncated"], "all of them with a higher limit", len(b["entries"]))
s, b = fs("list", path=at("many"), limit=12000)
ok(len(b["entries"]) == 12000 and not b["truncated"], "a limit that just fits truncates nothing", len(b["entries"]))
s, b = fs("list", path=at("many"), limit=1)
ok(len(b["entries"]) == 1 and b["truncated"], "a limit of one", b)
with open(D.encode() + b"/t/\xff", "wb"):
    pass
e = [e for e in good("list", path=at("t"))["entries"] if "name_b64" in e]
ok(len(e) == 1 and base64.b64decode(e[0]["path_b64"]) == at("t").encode() + b"/\xff", "names that are no UTF-8", e)

# --- copy
os.makedirs(at("src/sub/deep"))
write("src/a", b"A" * 100000, 0o751)
write("src/sub/b", b"", 0o600)
os.symlink("../a", at("src/sub/rel"))
os.symlink("/nowhere", at("src/dang"))
os.chmod(at("src/sub"), 0o2750)
os.utime(at("src/a"), (1000, 2000))
os.utime(at("src/sub"), (3000, 4000))
os.utime(at("src/dang"), (5000, 6000), follow_symlinks=False)
bad(400, "EISDIR", "copy", **{"from": at("src"), "to": at("dst")})
b = good("copy", **{"from": at("src"), "to": at("dst"), "recursive": True})
equal(b, {"count": 7, "bytes": 100000}, "copy of a tree")
equal(tree(at("dst")), tree(at("src")), "  everything is there")
ok(read("dst/a") == read("src/a") and os.readlink(at("dst/sub/rel")) == "../a" and os.readlink(at("dst/dang")) == "/nowhere",
   "  with its content, links as links")
same = [n for n in ["", *tree(at("src"))] if (lambda x, y: (x.st_mode, x.st_uid, x.st_gid, x.st_mtime_ns) !=
        (y.st_mode, y.st_uid, y.st_gid, y.st_mtime_ns))(os.lstat(at("src/" + n)), os.lstat(at("dst/" + n)))]
equal(same, [], "  with mode, owner and time")
bad(409, "EEXIST", "copy", **{"from": at("src"), "to": at("dst"), "recursive": True})
write("dst/extra", b"stays")
write("src/a", b"new", 0o600)
good("copy", **{"from": at("src"), "to": at("dst"), "recursive": True, "overwrite": True})
ok(read("dst/a") == b"new" and read("dst/extra") == b"stays", "overwrite merges directories and replaces files")
write("one", b"1" * 10, 0o4711)
good("copy", **{"from": at("one"), "to": at("two")})
ok(read("two") == b"1" * 10 and mode("two") == 0o4711, "copy of a file")
bad(409, "EEXIST", "copy", **{"from": at("one"), "to": at("two")})
bad(400, "EISDIR", "copy", **{"from": at("one"), "to": at("dst"), "overwrite": True})
bad(400, "ENOTDIR", "copy", **{"from": at("src"), "to": at("one"), "recursive": True, "overwrite": True})
bad(404, "ENOENT", "copy", **{"from": at("none"), "to": at("x")})
bad(404, "ENOENT", "copy", **{"from": at("one"), "to": at("none/x")})
bad(400, "same file", "copy", **{"from": at("one"), "to": D + "/../fs/one", "overwrite": True})
bad(400, "into itself", "copy", **{"from": at("src"), "to": at("src/sub/deep/x"), "recursive": True})
bad(400, "same file", "copy", **{"from": at("src"), "to": at("src"), "recursive": True, "overwrite": True})
bad(400, "neither", "copy", **{"from": at("fifo"), "to": at("x")})
bad(400, "neither", "copy", **{"from": "/dev/null", "to": at("x")})
write("victim", b"precious")
os.symlink("victim", at("trap"))
good("copy", **{"from": at("one"), "to": at("trap"), "overwrite": True})
ok(read("victim") == b"precious" and not os.path.islink(at("trap")), "a link in the way is replaced, not followed")
os.mkdir(at("outside"))
write("outside/a", b"precious")
os.mkdir(at("dst2"))
os.symlink("../outside", at("dst2/sub"))
s, b = fs("copy", **{"from": at("src"), "to": at("dst2"), "recursive": True, "overwrite": True})
ok(s == 400 and b["errno"] == "ENOTDIR" and tree(at("outside")) == ["a"], "nor is one where a directory should be", (s, b))
with open(at("sparse"), "wb") as f:
    f.write(b"head")
    f.seek(1 << 30)
    f.write(b"tail")
    f.truncate((1 << 30) + 100000)
b = good("copy", **{"from": at("sparse"), "to": at("sparse2")})
st = os.stat(at("sparse2"))
ok(st.st_size == (1 << 30) + 100000 and st.st_blocks < 4096, "holes stay holes", (st.st_size, st.st_blocks, b))
with open(at("sparse2"), "rb") as f:
    head = f.read(8)
    f.seek(1 << 30)
    ok(head == b"head\0\0\0\0" and f.read(6) == b"tail\0\0", "  at the right place")
good("copy", **{"from": "/proc/self/status", "to": at("proc")})
ok(b"VmRSS" in read("proc"), "a file that claims to be empty is copied")

# --- recursive chmod
good("chmod", path=at("dst"), mode="0700", recursive=True)
equal({oct(mode("dst/" + n)) for n in ["", *tree(at("dst"))] if not os.path.islink(at("dst/" + n))}, {"0o700"}, "chmod of a tree")
if ROOT:
    os.symlink("../outside/a", at("dst/out"))
    good("chmod", path=at("dst"), uid=77, gid=78, mode="0777", recursive=True)
    st = os.lstat(at("dst/out"))
    ok(st.st_uid == 77 and os.stat(at("outside/a")).st_uid == os.getuid() and mode("outside/a") == 0o644,
       "links are given away themselves, not what they point to")
equal(good("chmod", path=at("one"), mode="0600", recursive=True), {"count": 1}, "chmod recursive of a file")

# --- remove
good("remove", path=at("one"))
bad(404, "ENOENT", "remove", path=at("one"))
equal(good("remove", path=at("one"), force=True), {"removed": False}, "force forgives what is not there")
bad(409, "ENOTEMPTY", "remove", path=at("p"))
good("remove", path=at("d"))
good("remove", path=at("dst2/sub") + "/")
ok(tree(at("outside")) == ["a"] and not os.path.lexists(at("dst2/sub")), "a slash at the end does not make a link its target")
b = good("remove", path=at("p"), recursive=True)
equal(b, {"removed": True, "count": 3}, "remove of a tree")
os.symlink("../outside", at("dst2/l"))
good("remove", path=at("dst2"), recursive=True)
equal(tree(at("outside")), ["a"], "links in it are removed, not followed")
good("remove", path=at("dangling"), recursive=True)
bad(404, "ENOENT", "remove", path=at("p"), recursive=True)
bad(409, "EBUSY", "remove", path="/", recursive=True)
bad(400, "EINVAL", "remove", path=at("src/.."), recursive=True)
bad(400, "EINVAL", "remove", path=at("src/."), recursive=True)
ok(os.path.exists(at("src/a")), "  and nothing is gone")
good("remove", path=at("many"), recursive=True)
ok(not os.path.exists(at("many")), "12,000 entries")

# deeper than descriptors go
fd = os.open(D, os.O_RDONLY)
DEPTH = 2000
for i in range(DEPTH):
    os.mkdir("deep", dir_fd=fd)
    sub = os.open("deep", os.O_RDONLY, dir_fd=fd)
    os.close(fd)
    fd = sub
os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
os.close(fd)
bad(400, "ELOOP", "copy", **{"from": at("deep"), "to": at("deep2"), "recursive": True})
bad(400, "ELOOP", "chmod", path=at("deep"), mode="0755", recursive=True)
s, b = fs("list", path=at("deep"), depth=256)
ok(s == 200 and len(b["entries"]) == 256, "a very deep tree is listed as far as asked", s)
good("remove", path=at("deep2"), recursive=True)
b = good("remove", path=at("deep"), recursive=True)
ok(b["count"] == DEPTH + 1 and not os.path.exists(at("deep")), "a very deep tree is removed whole", b)

# what is mounted in it
if ROOT and ctypes.CDLL(None).unshare is not None and os.path.exists("/proc/self/ns/mnt"):
    m = Agentd(prefix=["unshare", "-m", "--propagation", "private", "sh", "-c",
                       f"mkdir -p {D}/mp/in && mount -t tmpfs t {D}/mp/in && touch {D}/mp/in/kept && exec \"$0\""])
    s, b = m.json("POST", "/v1/fs/remove", {"path": at("mp"), "recursive": True})
    s2, b2 = m.json("POST", "/v1/fs/exists", {"path": at("mp/in/kept")})
    ok(s == 400 and b["errno"] == "EXDEV" and b2["exists"], "what is mounted below is not removed", (s, b, b2))
    m.stop()
else:
    skip("what is mounted below is not removed", "only root mounts")

# --- a tree whose directories become links while it is gone through
os.mkdir(at("safe"))
write("safe/precious", b"p")
lib = ctypes.CDLL(None, use_errno=True)
stop = threading.Event()


def swap():
    """exchanges a directory and a link all the time"""
    while not stop.is_set():
        lib.renameat2(-100, at("race/x/dir").encode(), -100, at("race/x/lnk").encode(), 2)


for op in ("remove", "copy", "chmod"):
    escaped, alive = False, True
    for _ in range(30):
        os.makedirs(at("race/x/dir"), exist_ok=True)
        write("race/x/dir/precious", b"q")
        if not os.path.lexists(at("race/x/lnk")):
            os.symlink(at("safe"), at("race/x/lnk"))
        stop.clear()
        t = threading.Thread(target=swap)
        t.start()
        if op == "remove":
            fs("remove", path=at("race"), recursive=True)
        elif op == "chmod":
            fs("chmod", path=at("race"), recursive=True, mode="0711")
        else:
            fs("copy", **{"from": at("race"), "to": at("raced"), "recursive": True})
        stop.set()
        t.join()
        escaped = escaped or not os.path.exists(at("safe/precious")) or mode("safe/precious") != 0o644 or \
            (os.path.isfile(at("raced/x/lnk/precious")) and not os.path.islink(at("raced/x/lnk")) and
             read("raced/x/lnk/precious") == b"p") or \
            (os.path.isfile(at("raced/x/dir/precious")) and not os.path.islink(at("raced/x/dir")) and
             read("raced/x/dir/precious") == b"p")
        fs("remove", path=at("raced"), recursive=True, force=True)
    ok(not escaped, f"{op}: a link swapped in leads nowhere")
    fs("remove", path=at("race"), recursive=True, force=True)

# --- draining, deleting /tmp-like directories, clients that go
a.private(op="drain", timeout_ms=10, reopen_ms=60000)
for op in OPS:
    s, b = fs(op, **OPS[op])
    equal(s == 503, op not in ("list", "stat", "exists"), f"draining: {op}")
a.private(op="reopen")
before = a.fds()
for i in range(30):
    with socket.create_connection(("127.0.0.1", a.port)) as s1:
        body = json.dumps({"path": "/usr", "depth": 20, "limit": 1000000})
        s1.sendall(f"POST /v1/fs/list HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        if i % 2:
            s1.recv(10)


def workers():
    with open(f"/proc/{a.pid}/task/{a.pid}/children") as f:
        return f.read().split()


ok(until(lambda: a.fds() <= before and not workers()), "clients that go leave neither descriptor nor worker",
   (before, a.fds(), workers()))
equal(zombies(a.pid), [], "  nor a zombie")
s, b = fs("list", path="/usr", depth=3)
ok(s == 200 and len(b["entries"]) > 100, "and listing still works", s)
done()
