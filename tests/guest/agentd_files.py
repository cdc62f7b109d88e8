#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GET, HEAD and PUT /v1/files: ranges, conditions, atomic replacement, and what is refused."""
import email.utils
import json
import os
import socket
import stat
import threading
import time
import urllib.parse

from _agentd import *

a = Agentd()
D = os.path.join(a.dir, "files")
os.mkdir(D)
q = urllib.parse.quote


def at(name):
    return os.path.join(D, name)


def url(path, **more):
    path = path if isinstance(path, bytes) else path.encode()
    return "/v1/files?path=" + q(path, safe="/") + "".join(f"&{k}={q(str(v))}" for k, v in more.items())


def get(path, headers=None, method="GET"):
    return a.request(method, url(path), None, headers)


def put(path, data=b"", **more):
    s, b, h = a.request("PUT", url(path, **more), data)
    return s, json.loads(b)


def write(name, data, mode=0o644):
    with open(at(name), "wb") as f:
        f.write(data)
    os.chmod(at(name), mode)


def read(name):
    with open(at(name), "rb") as f:
        return f.read()


def refused(result, status, word, name):
    s, b = result[0], result[1] if isinstance(result[1], dict) else json.loads(result[1])
    return ok(s == status and word in b.get("detail", "") or s == status and b.get("errno") == word, name, (s, b))


def leftovers():
    return [n for n in os.listdir(D) if n.startswith(".agentd")]


# --- GET
small, big = bytes(range(256)) * 10, os.urandom(3 << 20)
write("small", small, 0o640)
write("big", big)
write("empty", b"")
s, b, h = get(at("small"))
ok(s == 200 and b == small, "GET gives the bytes", (s, len(b)))
equal(h["Content-Length"], str(len(small)), "  with their length")
equal((h["X-File-Mode"], h["X-File-Uid"], h["X-File-Gid"]), ("0640", str(os.getuid()), str(os.getgid())), "  mode and owner")
equal(h["Accept-Ranges"], "bytes", "  and takes ranges")
equal(int(email.utils.parsedate_to_datetime(h["Last-Modified"]).timestamp()), int(os.stat(at("small")).st_mtime),
      "  Last-Modified is the file's")
equal(h["Content-Type"], "application/octet-stream", "  as bytes")
etag, date = h["ETag"], h["Last-Modified"]
s, b, h = get(at("small"), method="HEAD")
ok(s == 200 and b == b"" and h["Content-Length"] == str(len(small)) and h["ETag"] == etag, "HEAD is GET without the bytes", h.items())
s, b, h = get(at("big"))
ok(s == 200 and b == big, "a large file is whole", (s, len(b)))
s, b, h = get(at("empty"))
ok(s == 200 and b == b"" and h["Content-Length"] == "0", "an empty file is 200 with 0 bytes", (s, h.items()))
s, b, h = get("/proc/self/status")
ok(s == 200 and b"VmRSS" in b and h["Content-Length"] == str(len(b)), "a file of /proc that claims to be empty is read", (s, b[:50]))
s, b, h = get("/sys/kernel/mm/transparent_hugepage/enabled")
if s == 404:
    skip("a file of /sys that claims to have a page", "no such file here")
else:
    ok(s == 200 and 0 < len(b) < 4096, "a file of /sys that claims to have a page has what it has", (s, b))
s, b, h = get("/proc/kallsyms")
ok(s == 200 and (h["Transfer-Encoding"] == "chunked" and len(b) > 16384 or int(h["Content-Length"]) == len(b)),
   "a long one comes in chunks", (s, len(b)))

for field, first, last in (("bytes=0-0", 0, 0), ("bytes=10-19", 10, 19), ("bytes=2550-", 2550, 2559), ("bytes=-5", 2555, 2559),
                           ("bytes=0-99999", 0, 2559), ("bytes=-99999", 0, 2559), ("BYTES=3-3", 3, 3),
                           ("bytes=5-99999999999999999999999", 5, 2559)):
    s, b, h = get(at("small"), {"Range": field})
    ok(s == 206 and b == small[first:last + 1] and h["Content-Range"] == f"bytes {first}-{last}/2560", f"Range: {field}",
       (s, h["Content-Range"], len(b)))
for field in ("bytes=2560-", "bytes=-0", "bytes=99999999999999999999999-"):
    s, b, h = get(at("small"), {"Range": field})
    ok(s == 416 and h["Content-Range"] == "bytes */2560" and "2560" in json.loads(b)["detail"], f"Range: {field} is 416", (s, b))
for field in ("bytes=0-1,3-4", "bytes=", "bytes=-", "bytes=5-3", "bytes=a-b", "bytes=1", "lines=1-2", "bytes= 1-2", "bytes=--1"):
    s, b, h = get(at("small"), {"Range": field})
    ok(s == 200 and b == small, f"Range: {field} gives the whole file", s)
s, b, h = get(at("big"), {"Range": "bytes=1000000-2000000"})
ok(s == 206 and b == big[1000000:2000001], "a range of a large file", (s, len(b)))
s, b, h = get(at("small"), {"Range": "bytes=1-2"}, "HEAD")
ok(s == 206 and h["Content-Length"] == "2", "HEAD of a range", (s, h.items()))

for field, want in ((etag, 304), ("W/" + etag, 304), ('"x", ' + etag, 304), ("*", 304), ('"x"', 200), (etag[:-1], 200)):
    s, b, h = get(at("small"), {"If-None-Match": field})
    ok(s == want and h["ETag"] == etag, f"If-None-Match: {field} is {want}", (s, h.items()))
equal(get(at("small"), {"If-Modified-Since": date})[0], 304, "If-Modified-Since with our own date is 304")
equal(get(at("small"), {"If-Modified-Since": "Sun, 06 Nov 1994 08:49:37 GMT"})[0], 200, "  with another 200")
equal(get(at("small"), {"Range": "bytes=1-1", "If-Range": etag})[0], 206, "If-Range with the right version")
equal(get(at("small"), {"Range": "bytes=1-1", "If-Range": '"other"'})[0], 200, "If-Range with another gives all of it")
write("small2", b"one")
first = get(at("small2"))[2]["ETag"]
write("small2", b"two")
ok(get(at("small2"))[2]["ETag"] != first, "a change of the content changes the ETag")

# names
for name, plain, ext in (("a b.txt", "a b.txt", None), ('报告 "q".txt', '______ _q_.txt', "%E6%8A%A5%E5%91%8A%20%22q%22.txt"),
                         ("x\r\nSet-Cookie: a=b", "x__Set-Cookie: a=b", "x%0D%0ASet-Cookie%3A%20a%3Db"),
                         (b"\xff\xfe", "__", None)):
    raw = name if isinstance(name, bytes) else name.encode()
    with open(D.encode() + b"/" + raw, "wb") as f:
        f.write(b"n")
    s, b, h = get(D.encode() + b"/" + raw)
    want = f'attachment; filename="{plain}"' + (f"; filename*=UTF-8''{ext}" if ext else "")
    ok(s == 200 and h["Content-Disposition"] == want and h["Set-Cookie"] is None, f"Content-Disposition of {name!r}",
       (s, h["Content-Disposition"]))
s, b, h = a.request("GET", "/v1/files?path_b64=" + base64.urlsafe_b64encode(D.encode() + b"/\xff\xfe").decode())
ok(s == 200 and b == b"n", "path_b64 names any bytes", (s, b))

# what is refused
os.mkfifo(at("fifo"))
os.symlink("loop", at("loop"))
os.symlink("small", at("link"))
sock = socket.socket(socket.AF_UNIX)
sock.bind(at("sock"))
equal(get(at("link"))[1], small, "a symbolic link is followed")
equal(get(D + "//./../files///small")[1], small, "the kernel makes sense of ., .. and //")
for path, status, word in ((at("none"), 404, "ENOENT"), (D, 400, "EISDIR"), (at("fifo"), 400, "regular"), ("/dev/null", 400, "regular"),
                           (at("sock"), 400, "regular"), (at("small/x"), 400, "ENOTDIR"), (at("small/"), 400, "ENOTDIR"),
                           (at("loop"), 400, "ELOOP"), (at("n" * 256), 400, "ENAMETOOLONG"),
                           ("relative", 400, "path"), ("~/x", 400, "path"), ("$HOME/x", 400, "path"), ("", 400, "path"),
                           ("/" + "x" * 4096, 400, "path")):
    refused(get(path), status, word, f"GET {path[-30:]!r} is {status} {word}")
    if path not in (at("none"), at("n" * 256), at("loop")) and path[:5] != "/dev/":
        refused(put(path, b"x"), status, word, f"PUT {path[-30:]!r} is {status} {word}")
refused(put("/dev/null", b"x"), 400, "regular", "PUT onto a device")
for target, word in (("/v1/files", "path"), ("/v1/files?path_b64=%25", "path_b64"), ("/v1/files?path_b64=L3Rt", "x"),
                     ("/v1/files?path=/a&path_b64=L3RtcA==", "both"), ("/v1/files?path_b64=LwAv", "NUL"), ("/v1/files?path_b64=", "empty")):
    for method in ("GET", "PUT"):
        if word != "x":
            refused(a.request(method, target, b"" if method == "PUT" else None), 400, word, f"{method} {target}")
equal(a.request("GET", "/v1/files?path=%00")[0], 400, "an escaped NUL")
equal(a.request("GET", "/v1/files?path=/%zz")[0], 400, "a broken escape")
equal(a.request("GET", "/v1%2ffiles?path=/tmp")[0], 404, "an escaped slash is none")
equal(a.request("POST", "/v1/files?path=/tmp", b"")[0], 405, "POST is 405")
if os.getuid() == 0:
    skip("403 for what may not be read", "root reads everything")
else:
    write("secret", b"x", 0)
    refused(get(at("secret")), 403, "EACCES", "403 for what may not be read")

# --- PUT
s, b = put(at("new"), b"hello")
ok(s == 201 and b == {"size": 5, "path": at("new")} and read("new") == b"hello", "PUT makes a file", (s, b))
um = os.umask(0)
os.umask(um)
equal(stat.S_IMODE(os.stat(at("new")).st_mode), 0o666 & ~um, "  with the mode of new files")
s, b = put(at("new"), b"")
ok(s == 200 and b["size"] == 0 and read("new") == b"", "PUT of nothing empties it", (s, b))
s, b = put(at("zero"))
ok(s == 201 and read("zero") == b"", "PUT of nothing makes an empty file", (s, b))
os.chmod(at("new"), 0o751)
os.link(at("new"), at("hard"))
before = os.stat(at("new"))
s, b = put(at("new"), big)
after = os.stat(at("new"))
ok(s == 200 and read("new") == big and b["size"] == len(big), "PUT replaces", (s, b))
ok(stat.S_IMODE(after.st_mode) == 0o751 and after.st_ino != before.st_ino and read("hard") == b"",
   "  by a new file with the old mode; other links keep the old content")
s, b = put(at("modes"), b"x", mode="4711")
ok(s == 201 and stat.S_IMODE(os.stat(at("modes")).st_mode) == 0o4711, "mode is octal", oct(os.stat(at("modes")).st_mode))
put(at("modes"), b"y", mode="600")
equal(stat.S_IMODE(os.stat(at("modes")).st_mode), 0o600, "  and wins over the old one")
if os.getuid() == 0:
    put(at("owned"), b"x", uid=1234, gid=5678, mode="4755")
    st = os.stat(at("owned"))
    equal((st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)), (1234, 5678, 0o4755), "uid, gid and the set-user-ID bit")
    put(at("owned"), b"y")
    st = os.stat(at("owned"))
    equal((st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)), (1234, 5678, 0o4755), "  stay when it is replaced")
else:
    skip("uid and gid", "only root gives files away")
refused(put(at("a/b/c"), b"x"), 404, "ENOENT", "a missing directory is 404")
s, b = put(at("a/b/c"), b"x", parents=1)
ok(s == 201 and read("a/b/c") == b"x", "parents=1 makes it", (s, b))
s, b = put(at("a/b/c"), b"y", parents=1)
ok(s == 200 and read("a/b/c") == b"y", "  and is fine when it is there", (s, b))
put(at("link"), b"through")
ok(os.path.islink(at("link")) and read("small") == b"through", "PUT through a symbolic link replaces the file behind it")
os.symlink("sub/dangling", at("dangle"))
os.mkdir(at("sub"))
s, b = put(at("dangle"), b"d")
ok(s == 201 and read("sub/dangling") == b"d", "PUT through a dangling link makes its target", (s, b))
s, b = put(D.encode() + b"/\xf0\xff", b"bytes")
ok(s == 201 and base64.b64decode(b["path_b64"]) == D.encode() + b"/\xf0\xff" and os.path.exists(D.encode() + b"/\xf0\xff"),
   "a name that is no UTF-8", (s, b))
put(at("app"), b"one", append=1)
s, b = put(at("app"), b"two", append=1)
ok(s == 200 and b["size"] == 6 and read("app") == b"onetwo", "append=1 appends", (s, b))
s, b = put(at("app"), b"W", offset=3)
ok(s == 200 and b["size"] == 6 and read("app") == b"oneWwo", "offset=N writes in place", (s, b))
s, b = put(at("app"), b"!", offset=9)
ok(s == 200 and read("app") == b"oneWwo\0\0\0!", "  also behind the end", (s, b))
s, b = put(at("app"), b"x", sync=1)
ok(s == 200 and b == {"size": 1, "path": at("app")} and read("app") == b"x", "sync=1", (s, b))
s, b = put(at("synced"), b"xyz", sync=1)
ok(s == 201 and b == {"size": 3, "path": at("synced")}, "  of a new file", (s, b))
s, b = put(at("synced"), b"!", sync=1, append=1)
ok(s == 200 and b["size"] == 4 and read("synced") == b"xyz!", "  and in place", (s, b))
s, b = put(at("synced"), big, sync=1)
ok(s == 200 and b["size"] == len(big) and read("synced") == big, "  of a large body", (s, b))
s, b = put(at("synced"), big, append=1)
ok(s == 200 and b["size"] == 2 * len(big) and read("synced") == big + big, "a large body in place", (s, b))
equal(a.json("GET", "/v1/info")[1]["in_flight"] <= 1, True, "  after which nothing counts as in flight")
for k, v in (("mode", "9"), ("mode", "77777"), ("mode", ""), ("mode", "-1"), ("mode", "0x1"), ("uid", "-1"), ("uid", "root"),
             ("uid", "4294967295"), ("gid", "99999999999999999999"), ("offset", "-1"), ("offset", "9223372036854775808"),
             ("offset", ""), ("append", "yes"), ("parents", "2"), ("sync", "on")):
    refused(put(at("app"), b"bad", **{k: v}), 400, k, f"{k}={v!r} is 400 and named")
refused(put(at("app"), b"bad", offset=1, append=1), 400, "offset", "offset and append together")
equal(read("app"), b"x", "  and nothing of that was written")
refused(put(at("app"), b"x", offset=(1 << 63) - 1), 413, "EFBIG", "an offset beyond what files can have is 413")
refused(a.request("PUT", url(at("app")), None, {"Content-Length": str(1 << 60)}), 507, "ENOSPC", "a body that cannot fit is 507 at once")
equal(read("app"), b"x", "  and costs nothing")

# chunked, and cut
def chunked(*pieces):
    for p in pieces:
        yield p


c = http.client.HTTPConnection("127.0.0.1", a.port, timeout=20)
c.request("PUT", url(at("chunked")), chunked(b"ab", b"cd" * 50000, b"e"))
r = c.getresponse()
ok(r.status == 201 and read("chunked") == b"ab" + b"cd" * 50000 + b"e", "a chunked body", r.status)
c.close()
write("keep", b"old content")


def cut(head, body):
    with socket.create_connection(("127.0.0.1", a.port)) as s:
        s.sendall(head.encode() + b"Host: x\r\n" + body)
        time.sleep(0.01)


before = a.fds()
for i in range(50):
    cut(f"PUT {url(at('keep'))} HTTP/1.1\r\nContent-Length: 100000\r\n", b"\r\n" + b"n" * 5000)
    cut(f"PUT {url(at('keep'))} HTTP/1.1\r\nContent-Length: {len(big)}\r\n", b"\r\n" + big[:1 << 20])
    cut(f"PUT {url(at('keep'))} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", b"\r\n5\r\nhello\r\n")
ok(until(lambda: a.fds() <= before), "cut uploads leave no descriptor", (before, a.fds()))
equal(read("keep"), b"old content", "  and the old content")
equal(leftovers(), [], "  and no temporary file")
s1 = socket.create_connection(("127.0.0.1", a.port))
s1.sendall(f"PUT {url(at('keep'))} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345".encode())
time.sleep(0.2)
ok(read("keep") == b"old content" and a.request("GET", "/healthz")[0] == 200, "an upload under way changes nothing and delays nobody")
s1.sendall(b"67890")
ok(s1.recv(100).startswith(b"HTTP/1.1 200") and read("keep") == b"1234567890", "until its last byte")
s1.close()

# A directory that is renamed under an upload
os.mkdir(at("moving"))
s1 = socket.create_connection(("127.0.0.1", a.port))
s1.sendall(f"PUT {url(at('moving/f'))} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n1".encode())
until(lambda: a.fds() > before, 5)
time.sleep(0.1)
os.rename(at("moving"), at("moved"))
os.symlink("sub", at("moving"))
s1.sendall(b"2")
ok(s1.recv(100).startswith(b"HTTP/1.1 201") and read("moved/f") == b"12" and not os.path.exists(at("sub/f")),
   "a directory that is replaced by a link under an upload does not redirect it")
s1.close()

# visible at once
bad = 0
for i in range(100):
    put(at("seen"), str(i).encode())
    bad += a.sh("cat " + at("seen"))[1]["stdout"] != str(i).encode()
equal(bad, 0, "a command sees what was just uploaded, 100 times")

# parallel writers: always one of the two contents
def writer(ch):
    for _ in range(20):
        put(at("race"), ch * 300000)


threads = [threading.Thread(target=writer, args=(ch,)) for ch in (b"a", b"b")]
put(at("race"), b"a")
for t in threads:
    t.start()
torn = 0
while any(t.is_alive() for t in threads):
    torn += len(set(get(at("race"))[1])) != 1
for t in threads:
    t.join()
equal(torn, 0, "readers never see a mixture of two uploads")

# a file that shrinks while it is sent must not look complete
with open(at("shrink"), "wb") as f:
    f.truncate(64 << 20)
s1 = socket.create_connection(("127.0.0.1", a.port))
s1.sendall(f"GET {url(at('shrink'))} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
s1.recv(1000)
os.truncate(at("shrink"), 0)
n, ended = 0, False
try:
    s1.settimeout(20)
    while chunk := s1.recv(1 << 20):
        n += len(chunk)
    ended = True
except ConnectionResetError:
    ended = True
except OSError:
    pass
ok(ended and n < 64 << 20, "a file that becomes shorter cuts the connection", (ended, n))
s1.close()

# readers that go away, and a flat memory
with open(at("large"), "wb") as f:
    f.truncate(300 << 20)
rss = a.rss()
s, b, h = a.request("GET", url(at("large")), None, {"Range": "bytes=0-104857599"})
ok(s == 206 and len(b) == 100 << 20 and a.rss() < rss + 2048, "100 MiB cost no memory", (rss, a.rss()))
for i in range(100):
    with socket.create_connection(("127.0.0.1", a.port)) as s1:
        s1.sendall(f"GET {url(at('large'))} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        s1.recv(10)
ok(until(lambda: a.fds() <= before), "aborted downloads leave no descriptor", (before, [os.readlink(f"/proc/{a.pid}/fd/{n}") for n in os.listdir(f"/proc/{a.pid}/fd")]))

# draining
a.private(op="drain", timeout_ms=10, reopen_ms=60000)
equal(put(at("late"), b"x")[0], 503, "while draining, writing is 503")
equal(get(at("keep"))[0], 200, "  and reading is not")
a.private(op="reopen")
equal(put(at("late"), b"x")[0], 201, "and works again afterwards")
equal(a.request("GET", "/healthz")[0], 200, "alive at the end")
sock.close()
done()
