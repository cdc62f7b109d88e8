#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# VARIANTS: sanitized
# DEADLINE: 600
"""asb forward to a sandbox on AWS: a reverse proxy for HTTP, through the stand-in with its tokens, to a real server behind a port."""
import ctypes
import errno
import hashlib
import http.client
import http.server
import json
import os
import queue
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from _aws import IMAGE, Cloud, TOP, done, ok, proxy_to, same, skip, until
from _mcp import NODE, NPM, official

sys.path.insert(0, os.path.join(TOP, "tests/lib"))
from line import next_line  # noqa: E402


class App(http.server.BaseHTTPRequestHandler):
    """What runs in the sandbox."""
    protocol_version = "HTTP/1.1"
    timeout = 120
    heads, seen, go, left = [], [], threading.Event(), threading.Event()
    counted = queue.SimpleQueue()

    def log_message(self, *args):
        pass

    def head(self, status, *fields, length=None):
        self.send_response_only(status)
        for k, v in fields:
            self.send_header(k, v)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def say(self, data, status=200, *fields):
        self.head(status, *fields, length=len(data))
        if self.command != "HEAD":
            self.wfile.write(data)

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def pieces(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            while n := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(n)
                self.rfile.readline()
            self.rfile.readline()
            return
        left = int(self.headers.get("Content-Length") or 0)
        while left:
            p = self.rfile.read1(min(left, 65536))
            if not p:
                return
            left -= len(p)
            yield p

    def answer(self):
        App.heads.append(self.headers.items())
        App.seen.append((self.command, self.path))
        fn = getattr(self, "at_" + self.path.split("?")[0].strip("/").replace("/", "_"), None)
        return fn() if fn else self.say(json.dumps([self.command, self.path]).encode())

    def at_hash(self):
        h, n = hashlib.sha256(), 0
        for p in self.pieces():
            h.update(p)
            n += len(p)
        self.say(f"{n} {h.hexdigest()}".encode())

    def at_big(self):
        size = int(self.path.split("?")[1])
        self.head(200, length=size)
        block = bytes(range(256)) * 256
        while size > 0:
            self.wfile.write(block[:size])
            size -= len(block)

    def at_chunks(self):
        self.head(200, ("Transfer-Encoding", "chunked"), ("Trailer", "X-Sum"))
        for i in range(100):
            self.chunk(b"%d," % i * 500)
        self.wfile.write(b"0\r\nX-Sum: 1\r\n\r\n")

    def at_sse(self):
        self.head(200, ("Content-Type", "text/event-stream"), ("Transfer-Encoding", "chunked"))
        for i in range(3):
            self.chunk(b"data: %d\n\n" % i)
            App.go.wait(60)
            App.go.clear()
        self.chunk(b"")

    def at_endless(self):
        App.left.clear()
        self.head(200, ("Transfer-Encoding", "chunked"))
        try:
            while True:
                self.chunk(b"x" * 65536)
        except OSError:
            App.left.set()
        self.close_connection = True

    def at_silent(self):
        App.left.clear()
        self.head(200, ("Transfer-Encoding", "chunked"))
        self.chunk(b"a")
        self.connection.settimeout(120)
        if self.rfile.read(1) == b"":
            App.left.set()
        self.close_connection = True

    def at_drip(self):
        self.head(200, ("Transfer-Encoding", "chunked"))
        for i in range(13):
            self.chunk(b"%d," % i)
            time.sleep(1)
        self.chunk(b"")

    def at_cookies(self):
        self.say(b"c", 200, ("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2; HttpOnly"),
                 ("X-aws-proxy-secret", "s"))

    def at_many(self):
        self.say(b"m", 200, *((f"X-{i}", "y" * 300) for i in range(90)))

    def at_huge(self):
        self.say(b"h", 200, *((f"X-{i}", "y" * 1000) for i in range(90)))

    def at_go(self):
        self.say(b"", 302, ("Location", self.path.split("?", 1)[1].replace("HOST", self.headers["Host"])))

    def at_nothing(self):
        self.head(204)

    def at_same(self):
        self.head(304, ("ETag", '"1"'))

    def at_no(self):
        self.say(b"the application's own", 403, ("Content-Type", "text/plain"))

    def at_own502(self):
        self.say(b"its own", 502)

    def at_full(self):
        """Refuses before it has read the body."""
        self.close_connection = True
        self.say(b"too much", 413, ("Connection", "close"))

    def at_early(self):
        """Succeeds before it has read the body."""
        self.head(200, length=2)
        self.wfile.write(b"o")
        for _ in self.pieces():
            pass
        self.wfile.write(b"k")

    def at_first(self):
        """Succeeds, and says all that it says, before it reads the body."""
        self.say(b"ok")
        self.wfile.flush()
        time.sleep(1)
        n, h = 0, hashlib.sha256()
        for p in self.pieces():
            h.update(p)
            n += len(p)
        App.counted.put((n, h.hexdigest()))

    def at_turns(self):
        """Each piece comes back before the next is there."""
        self.head(200, ("Transfer-Encoding", "chunked"))
        for p in self.pieces():
            self.chunk(p.upper())
        self.chunk(b"")

    def at_ws(self):
        """Another protocol, of five bytes there and back. With "?": does not say which."""
        self.close_connection = True
        fields = [] if "?" in self.path else [("Upgrade", "websocket")]
        self.head(101, ("Connection", "Upgrade"), ("X-Own", "1"), *fields)
        self.wfile.write(self.rfile.read(5))

    def at_slow(self):
        time.sleep(float(self.path.split("?")[1]))
        self.say(b"at last")

    def at_cutlength(self):
        self.head(200, length=100)
        self.wfile.write(b"half")
        self.cut()

    def at_cutchunks(self):
        self.head(200, ("Transfer-Encoding", "chunked"))
        self.chunk(b"half")
        self.cut()

    def at_cutend(self):
        """Without a length: its end is that of the connection."""
        self.head(200)
        self.wfile.write(b"half")
        self.cut()

    def at_untilend(self):
        self.head(200)
        self.wfile.write(b"whole")
        self.close_connection = True

    def at_nohead(self):
        self.cut()

    def cut(self):
        self.wfile.flush()
        self.close_connection = True
        time.sleep(0.2)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.connection.close()

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = do_OPTIONS = answer


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass


class Forward:
    def __init__(self, cloud, *args, **kw):
        self.p = cloud.home.start("forward", "app", *args, **kw)
        line = next_line(self.p)
        m = re.match(r"forwarding http://127\.0\.0\.1:(\d+) -> app:\d+  \(Ctrl\+C to stop\)$", line.rstrip("\n"))
        self.port = int(m.group(1)) if m else 0

    def stop(self, sig=signal.SIGINT):
        if sig:
            self.p.send_signal(sig)
        out, err = self.p.communicate(timeout=60)
        return self.p.returncode, out, err

    def connect(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=(), **kw):
        c = self.connect()
        try:
            c.request(method, path, body=body, headers=dict(headers), **kw)
            r = c.getresponse()
            r.body = r.read()
            return r
        finally:
            c.close()

    def raw(self, text, end=False):
        """All that comes, and whether it ends by a reset. END: nothing more will be sent."""
        s = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        s.sendall(text)
        if end:
            s.shutdown(socket.SHUT_WR)
        got = b""
        try:
            while p := s.recv(65536):
                got += p
            return got, False
        except (ConnectionResetError, TimeoutError) as e:
            return got, isinstance(e, ConnectionResetError)
        finally:
            s.close()


def plain(cloud, f):
    aws = cloud.aws
    r = f.ask("GET", "/a%2Fb//c?x=1&y=%zz&" + "&".join("p=1" for _ in range(40)))
    path = json.loads(r.body)[1]
    ok(r.status == 200 and path.startswith("/a%2Fb//c?x=1&y=%zz&p=1"), "the target arrives as it was sent", r.body)
    aws.calls.clear()
    before = aws.connections
    for _ in range(10):
        f.ask("GET", "/")
    same((aws.count("CreateMicrovmAuthToken"), aws.connections - before <= 2), (0, True),
         "no new token, and the connection to the endpoint is used again")  # one more: asb looks at the state
    App.heads.clear()
    cloud.proxy.heads.clear()
    f.ask("GET", "/", headers={"X-Custom": "v", "X-aws-proxy-auth": "mine", "X-Aws-Proxy-Port": "9000", "X-AWS-proxy-force-h2": "true",
                              "Connection": "X-Hop, keep-alive", "X-Hop": "1", "Proxy-Authorization": "secret", "TE": "trailers",
                              "Empty": "", "Cookie": "a=b", "Accept-Encoding": "br", "Origin": f"http://127.0.0.1:{f.port}"})
    got = {k.lower(): v for k, v in App.heads[-1]}
    sent = cloud.proxy.heads[-1]
    same((got.get("x-custom"), got.get("empty"), got.get("cookie"), got.get("accept-encoding")), ("v", "", "a=b", "br"), "fields arrive")
    same([k for k in got if k in ("x-hop", "proxy-authorization", "te", "accept", "user-agent", "expect") or k.startswith("x-aws")], [],
         "those of the connection do not, and none is invented")
    same([v for k, v in sent if k.lower() == "x-aws-proxy-port"], [str(7000)], "the platform's are ours alone: the port")
    ok([v[:4] for k, v in sent if k.lower() == "x-aws-proxy-auth"] == ["eyJ."] and not [k for k, _ in sent if "force" in k.lower()],
       "and the token", sent)
    same(got["origin"], "http://" + got["host"], "the page's own origin is the sandbox's")
    same(got["host"].split(":")[0], "localhost", "which is its endpoint")
    r = f.ask("GET", "/cookies")
    same(r.headers.get_all("Set-Cookie"), ["a=1; Path=/", "b=2; HttpOnly"], "several Set-Cookie")
    same(r.headers["X-aws-proxy-secret"], None, "no field with the platform's names comes out")
    same(len([k for k in f.ask("GET", "/many").headers if k.startswith("X-")]), 90, "90 fields")
    r = f.ask("GET", "/huge")
    ok(r.status == 502 and b"head of the answer is larger" in r.body, "a head without measure", r.status, r.body)
    c = f.connect()
    for method, path, want in (("HEAD", "/big?12345", (200, b"", "12345")), ("GET", "/nothing", (204, b"", None)),
                               ("GET", "/same", (304, b"", "0")), ("OPTIONS", "/", (200, b'["OPTIONS", "/"]', "16")),
                               ("DELETE", "/d", (200, b'["DELETE", "/d"]', "16")), ("GET", "/big?3", (200, b"\0\1\2", "3"))):
        c.request(method, path)
        r = c.getresponse()
        same((r.status, r.read(), r.headers["Content-Length"]), want, f"{method} {path}, on one connection")
    c.close()


def bodies(f):
    data = os.urandom(1 << 20) * 48
    sum_of = hashlib.sha256(data).hexdigest()
    same(f.ask("POST", "/hash", data).body, f"{len(data)} {sum_of}".encode(), "48 MiB in")
    same(f.ask("PUT", "/hash", (data[i:i + 100000] for i in range(0, len(data), 100000)), encode_chunked=True).body,
         f"{len(data)} {sum_of}".encode(), "the same in chunks of no known number")
    same(f.ask("POST", "/hash", b"").body.split()[0], b"0", "an empty body")
    same(f.ask("POST", "/hash", b"small").body.split()[0], b"5", "a small one")
    r = f.ask("GET", "/big?50000000")
    same((len(r.body), hashlib.sha256(r.body).hexdigest()),
         (50000000, hashlib.sha256((bytes(range(256)) * 195313)[:50000000]).hexdigest()), "50 MB out")
    same(f.ask("GET", "/chunks").body, b"".join(b"%d," % i * 500 for i in range(100)), "chunks out; trailers are dropped")
    same(f.ask("GET", "/untilend").body, b"whole", "an answer that ends with the connection")
    got, reset = f.raw(b"POST /hash HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc")
    ok(got.startswith(b"HTTP/1.1 100") and b"HTTP/1.1 200" in got and b"\n3 ba7816bf" in got and not reset, "Expect: 100-continue", got)
    got, reset = f.raw(b"GET /chunks HTTP/1.0\r\n\r\n")
    ok(b"\r\n\r\n0,0," in got and got.endswith(b"99,") and not reset, "for HTTP/1.0 without a Host", got[:300], reset)
    r = f.ask("POST", "/full", data)
    same((r.status, r.body), (413, b"too much"), "a refusal before the body has been read")
    r = f.ask("POST", "/full", (data[i:i + 100000] for i in range(0, len(data), 100000)), encode_chunked=True)
    same((r.status, r.body), (413, b"too much"), "also of chunks")
    r = f.ask("POST", "/early", data)
    same((r.status, r.body), (200, b"ok"), "a success that begins before the body has been read")
    data = data[:8 << 20]
    want = len(data), hashlib.sha256(data).hexdigest()
    for what, body in (("one piece", data), ("chunks", (data[i:i + 65536] for i in range(0, len(data), 65536)))):
        r = f.ask("POST", "/first", body, encode_chunked=what == "chunks")
        same((r.status, r.body), (200, b"ok"), f"a success that has ended before the body has been read: {what}")
        try:
            got = App.counted.get(timeout=60)
        except queue.Empty:
            got = None
        same(got, want, "all of which arrives")


class Talk:
    """A client that reads before it has sent all."""

    def __init__(self, f, path, framing="Transfer-Encoding: chunked", version="1.1"):
        self.s = socket.create_connection(("127.0.0.1", f.port), timeout=30)
        self.s.sendall(f"POST {path} HTTP/{version}\r\nHost: localhost\r\n{framing}\r\n\r\n".encode())
        self.got = b""

    def until(self, end):
        """What has come when END has; None = the end of the connection. Or what there is when nothing more comes."""
        try:
            while (end is None or end not in self.got) and (p := self.s.recv(65536)):
                self.got += p
        except OSError as e:
            self.got += repr(e).encode()
        got, self.got = self.got, b""
        return got


def both_ways(f):
    t = Talk(f, "/turns")
    for word in (b"one", b"two", b"three"):
        t.s.sendall(b"%x\r\n%b\r\n" % (len(word), word))
        got = t.until(word.upper())
        ok(word.upper() in got, f"what was sent is answered before the next is: {word.decode()}", got)
    t.s.sendall(b"0\r\n\r\n")
    got = t.until(None)
    ok(got.endswith(b"0\r\n\r\n"), "and its end", got)
    t = Talk(f, "/early", "Content-Length: 6")
    t.s.sendall(b"abc")
    got = t.until(b"\r\n\r\no")
    ok(got.startswith(b"HTTP/1.1 200 ") and b"\r\nContent-Length: 2\r\n" in got and got.endswith(b"\r\n\r\no"), "one with a length begins", got)
    t.s.sendall(b"def")
    same(t.until(None), b"k", "and ends")
    t = Talk(f, "/full", "Content-Length: 1000000000")
    t.s.sendall(b"abc")
    got = t.until(b"too much")
    ok(got.startswith(b"HTTP/1.1 413 ") and got.endswith(b"\r\n\r\ntoo much"), "a refusal comes while the body does not", got)
    same(t.until(None), b"", "and ends the connection")
    t = Talk(f, "/endless", "Content-Length: 1000000000")
    t.until(b"xxxx")
    t.s.close()
    ok(App.left.wait(60), "a client that leaves in the middle of both ends both")
    t = Talk(f, "/cutchunks", "Content-Length: 100")
    got = t.until(b"half")
    t.s.sendall(bytes(100))  # the stand-in reads all of it before it ends
    got += t.until(None)
    ok(b"half" in got and b"ConnectionReset" in got, "an answer that is cut ends with a reset", got)
    t = Talk(f, "/big?3000000", "Content-Length: 100")
    time.sleep(1)
    t.s.sendall(b"x" * 100)
    got = t.until(None)
    same(len(got.partition(b"\r\n\r\n")[2]), 3000000, "a reader that is slow to begin gets all of it")


def memory(f):
    with open(f"/proc/{f.p.pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))


def streams(f):
    c = f.connect()
    c.request("GET", "/sse")
    r = c.getresponse()
    got = []
    for _ in range(3):
        got.append(r.readline() + r.readline())
        App.go.set()
    same((got, r.read()), ([b"data: 0\n\n", b"data: 1\n\n", b"data: 2\n\n"], b""), "each event comes before the next is made")
    c.close()
    before = memory(f)
    s = socket.create_connection(("127.0.0.1", f.port), timeout=60)
    s.sendall(b"GET /endless HTTP/1.1\r\nHost: localhost\r\n\r\n")
    s.recv(1000)
    time.sleep(3)
    grown = memory(f) - before
    ok(grown < 4096, "a reader that stops holds up the sandbox, and nothing is heaped up", f"{grown} KiB")
    s.close()
    ok(App.left.wait(60), "when it leaves, the sandbox is told")
    s = socket.create_connection(("127.0.0.1", f.port), timeout=60)
    s.sendall(b"GET /silent HTTP/1.1\r\nHost: localhost\r\n\r\n")
    got = b""
    while not got.endswith(b"a\r\n") and (p := s.recv(1000)):
        got += p
    ok(got.endswith(b"a\r\n"), "one that begins and then says nothing", got)
    s.close()
    ok(App.left.wait(60), "also when nothing is being said")
    s = socket.create_connection(("127.0.0.1", f.port), timeout=60)
    s.sendall(b"GET /slow?1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    s.shutdown(socket.SHUT_WR)
    got = b""
    while p := s.recv(1000):
        got += p
    ok(got.endswith(b"at last"), "a client that only ends its own direction gets its answer", got)
    s.close()
    got, reset = f.raw(b"GET /drip HTTP/1.0\r\n\r\n", end=True)
    ok(got.endswith(b"11,12,") and not reset, "also one that takes longer than an absent client is waited for", got[-200:], reset)


def cuts(f):
    for path, end in (("/cutlength", "with a length"), ("/cutchunks", "in chunks"), ("/cutend", "without a length")):
        for version in ("1.1", "1.0"):
            got, reset = f.raw(f"GET {path} HTTP/{version}\r\nHost: localhost\r\n\r\n".encode())
            ok(b" 200 " in got.split(b"\r\n")[0] and reset, f"an answer {end} that is cut ends with a reset, HTTP/{version}", got, reset)
    r = f.ask("GET", "/nohead")
    ok(r.status == 502 and b"closed the connection before it answered" in r.body, "one that does not begin", r.status, r.body)
    same(f.ask("GET", "/").status, 200, "and all goes on")


def strangers(f):
    before = len(App.seen)
    def refused(name, status, words, text):
        got, _ = f.raw(text.encode("latin-1"))
        ok(got.startswith(f"HTTP/1.1 {status} ".encode()) and words.encode() in got, name, got)
    refused("another Host", 403, "DNS rebinding", "GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    refused("a name that only begins so", 403, "localhost", "GET / HTTP/1.1\r\nHost: localhost.evil.example\r\nConnection: close\r\n\r\n")
    refused("another Origin", 403, "other sites", "POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\nConnection: close\r\n"
            "Content-Length: 2\r\n\r\nab")
    refused("an Origin that is nobody's", 403, "other sites", "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\nConnection: close\r\n\r\n")
    refused("a picture in another site's page", 403, "other sites",
            "GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nConnection: close\r\n\r\n")
    refused("a WebSocket of another site", 403, "other sites", "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n"
            "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    for target in ("http://evil.example/", "evil.example:443", "*", "/a\xe9", "/a#b"):
        refused(f"target {target}", 400, "", f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    refused("CONNECT", 400, "no proxy", "CONNECT /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    refused("two lengths", 400, "", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n")
    same(len(App.seen), before, "none of them has reached the sandbox")
    got, _ = f.raw(b"GET /ok HTTP/1.1\r\nHost: app.localhost:1\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nConnection: close\r\n\r\n")
    ok(got.startswith(b"HTTP/1.1 200 "), "a link to it is fine", got)
    got, _ = f.raw(b"GET //evil.example/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    ok(b'/evil.example/x"' in got, "a path like a host stays a path", got)


def redirects(cloud, f):
    catcher = Server(("127.0.0.1", 0), App)
    threading.Thread(target=catcher.serve_forever, daemon=True).start()
    away = f"http://127.0.0.1:{catcher.server_port}/stolen"
    before = len(App.seen)
    r = f.ask("GET", "/go?" + away)
    same((r.status, r.headers["Location"], len(App.seen) - before), (302, away, 1), "a redirect is handed on and not followed")
    for there, here in (("https://HOST/next?a", f"http://127.0.0.1:{f.port}/next?a"), ("//HOST/x", f"http://127.0.0.1:{f.port}/x"),
                        ("/next", "/next"), ("https://HOST.evil.example/", None)):
        r = f.ask("GET", "/go?" + there)
        if here:
            same(r.headers["Location"], here, f"a redirect to {there}")
        else:
            ok(r.headers["Location"].endswith(".evil.example/"), f"a redirect to {there} is left alone", r.headers["Location"])
    catcher.shutdown()


def tokens(cloud, f):
    aws, proxy = cloud.aws, cloud.proxy
    time.sleep(10.5)  # new ones are asked for only so often
    same({p["allowedPorts"][0]["port"] for op, p in aws.calls if op == "CreateMicrovmAuthToken"}, set(), "no other token has been asked for")
    aws.calls.clear()
    aws.tokens.clear()
    r = f.ask("POST", "/hash", b"again")
    same((r.status, r.body.split()[0], aws.count("CreateMicrovmAuthToken")), (200, b"5", 1), "a token that is refused is replaced, and the request sent again")
    ports = [p["allowedPorts"] for op, p in aws.calls if op == "CreateMicrovmAuthToken"][0]
    same(sorted(x["port"] for x in ports), [7000, 7001, 7002, 8080], "one for the ports that are forwarded, and the agent's")
    aws.calls.clear()
    aws.tokens.clear()
    r = f.ask("GET", "/")
    ok(r.status == 502 and b"refuses asb's token (Request missing authentication)" in r.body and aws.count("CreateMicrovmAuthToken") == 0,
       "but not again and again", r.status, r.body)
    time.sleep(10.5)
    proxy.reads = True  # else how much of it was sent is chance
    r = f.ask("POST", "/hash", bytes(60000))
    same((r.status, r.body.split()[0]), (200, b"60000"), "a body that asb still has is sent again")
    time.sleep(10.5)
    aws.tokens.clear()
    r = f.ask("POST", "/hash", bytes(1 << 20))
    ok(r.status == 502 and b"send the request again" in r.body, "one of which it has dropped something is not", r.status, r.body)
    proxy.reads = False
    ok(until(lambda: f.ask("GET", "/").status == 200, 60), "the next request has a new token")
    aws.calls.clear()
    r = f.ask("GET", "/no")
    same((r.status, r.body, aws.count("CreateMicrovmAuthToken")), (403, b"the application's own", 0), "a 403 of the application is its own")
    r = f.ask("GET", "/own502")
    same((r.status, r.body), (502, b"its own"), "and so is its 502")
    ok(b"eyJ." not in repr(App.heads).encode(), "the application never sees a token")


def states(cloud, f, g):
    vm = cloud.vm()
    r = g.ask("GET", "/")
    ok(r.status == 502 and b"nothing answers on port 7001 in app" in r.body, "a port on which nothing listens", r.status, r.body)
    vm["state"] = "SUSPENDED"
    cloud.proxy.resume_s = 2
    r = f.ask("GET", "/")
    same((r.status, vm["state"]), (200, "RUNNING"), "a suspended one is resumed by the request, which waits for it")
    cloud.proxy.resume_s = 0
    vm["state"] = "SUSPENDED"
    looks = cloud.aws.count("GetMicrovm") + 2
    ok(until(lambda: cloud.aws.count("GetMicrovm") >= looks, 60), "it looks at the state")
    time.sleep(0.5)
    ok(f.p.poll() is None, "and does not end asb forward")
    cloud.proxy.faults.extend(["502"] * 3)
    same(f.ask("GET", "/").status, 200, "one that is on its way is waited for")
    cloud.proxy.faults.clear()


def crowd(f):
    clients = [socket.create_connection(("127.0.0.1", f.port), timeout=60) for _ in range(201)]
    for s in clients:
        s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    got = [s.recv(1000) for s in clients]
    n = sum(x.startswith(b"HTTP/1.1 503 ") and b"at most 200 connections" in x for x in got)
    ok(n >= 1 and n + sum(x.startswith(b"HTTP/1.1 200 ") for x in got) == 201, "more than 200 connections: some are told", n,
       {x[:60] for x in got})
    for s in clients:
        s.close()
    time.sleep(0.5)
    same(f.ask("GET", "/").status, 200, "and then there is room again")


WS_SERVER = """
const {WebSocketServer} = require('ws');
const s = new WebSocketServer({port: 0, host: '127.0.0.1', handleProtocols: (p) => p.has('chat') ? 'chat' : false,
    verifyClient: (i, cb) => i.req.url === '/refused' ? cb(false, 401, 'who are you') : cb(true)});
s.on('listening', () => console.log(s.address().port));
s.on('connection', (w, r) => { w.on('error', () => {});
    if (r.url === '/first') { w.send('hello'); return; }
    if (r.url === '/drop') { w.send('x'); setTimeout(() => r.socket.resetAndDestroy(), 200); return; }
    if (r.url === '/head') { w.send(JSON.stringify(r.headers)); return; }
    w.on('message', (d, bin) => d.toString() === 'close' ? w.close(4001, 'bye') : w.send(d, {binary: bin})); });
"""

WS_CLIENT = """
const WebSocket = require('ws'); const [url, what] = process.argv.slice(1);
const w = new WebSocket(url, what === 'chat' ? ['chat', 'other'] : [], {headers: {Origin: url.replace('ws', 'http').replace(/\\/[^/]*$/, '')}});
const out = {got: [], protocol: null}; let want = 0;
const big = Buffer.alloc(5000000, 7);
w.on('open', () => { out.protocol = w.protocol;
    if (what === 'big') { w.send(big); } else if (what === 'echo' || what === 'chat') { w.send('é'); w.send('close'); } });
w.on('message', (d, bin) => { out.got.push(bin ? [d.length, d.equals(big)] : d.toString()); if (what === 'big') w.close(1000);
    if (what === 'one') w.close(1000); });
w.on('unexpected-response', (q, r) => { out.status = r.statusCode; let b = ''; r.on('data', (d) => b += d);
    r.on('end', () => { out.body = b; console.log(JSON.stringify(out)); process.exit(0); }); });
w.on('error', (e) => { out.error = String(e); });
w.on('close', (c, why) => { out.code = c; out.why = why.toString(); console.log(JSON.stringify(out)); process.exit(0); });
"""


def node(*words, **kw):
    return subprocess.Popen([NODE, "-e", *words], env={**os.environ, "NODE_PATH": NPM}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)


def websocket(port, path, what):
    p = node(WS_CLIENT, f"ws://127.0.0.1:{port}{path}", what)
    try:
        out, err = p.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        p.kill()
        out, err = p.communicate()
    try:
        return json.loads(out)
    except ValueError:
        return {"failed": out + err}


def websockets(cloud, h):
    r = websocket(h.port, "/", "echo")
    same((r.get("got"), r.get("code"), r.get("why"), r.get("protocol")), (["é"], 4001, "bye", ""),
         "a WebSocket: text, close, and no subprotocol that was not asked for")
    sent = [h for h in ({k.lower(): v for k, v in x} for x in cloud.proxy.heads) if "upgrade" in h][-1]
    ok("x-aws-proxy-auth" not in sent and "lambda-microvms.port.7002" in sent["sec-websocket-protocol"], "the token went as a subprotocol", sent)
    r = websocket(h.port, "/", "chat")
    same((r.get("got"), r.get("protocol")), (["é"], "chat"), "the application's subprotocol")
    head = json.loads(websocket(h.port, "/head", "one").get("got", ["{}"])[0])
    ok(head.get("sec-websocket-protocol") is None and head.get("origin", "x") == "http://" + head.get("host", "y"), "what the application sees of it", head)
    r = websocket(h.port, "/", "big")
    same((r.get("got"), r.get("code")), ([[5000000, True]], 1000), "5 MB there and back")
    r = websocket(h.port, "/first", "one")
    same((r.get("got"), r.get("code")), (["hello"], 1000), "a server that speaks first")
    r = websocket(h.port, "/drop", "wait")
    same((r.get("got"), r.get("code")), (["x"], 1006), "one that is cut")
    r = websocket(h.port, "/refused", "echo")
    same((r.get("status"), r.get("body")), (401, "who are you"), "a refusal with its body")
    time.sleep(10.5)
    cloud.aws.tokens.clear()
    r = websocket(h.port, "/first", "one")
    same((r.get("got"), r.get("code")), (["hello"], 1000), "a token that is refused")


def upgrade(f, path="/ws", *fields):
    """What comes back for a WebSocket's request and five bytes."""
    head = ["GET " + path + " HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: websocket", *fields, "", "12345"]
    return f.raw("\r\n".join(head).encode())[0]


def upgrades(cloud, f):
    """By hand: what no client does."""
    got = upgrade(f)
    ok(got.startswith(b"HTTP/1.1 101 ") and b"\r\nX-Own: 1\r\n" in got and got.endswith(b"\r\n\r\n12345"), "another protocol", got)
    cloud.proxy.faults.append("hint")
    got = upgrade(f)
    ok(b"\r\nX-Own: 1\r\n" in got and got.endswith(b"12345") and b"hint" not in got.lower(), "what a 103 said before is not its", got)
    cloud.proxy.faults.append("hint")
    got = upgrade(f, "/ws?")
    ok(got.startswith(b"HTTP/1.1 502 "), "and does not make it a WebSocket", got)
    cloud.proxy.faults.append("hint")
    r = f.ask("GET", "/")
    same((r.status, r.headers["X-Hint"], r.headers["Set-Cookie"]), (200, None, None), "nor is it an ordinary answer's")
    cloud.proxy.faults.append("hints")
    r = f.ask("GET", "/")
    ok(r.status == 502 and b"head of the answer is larger" in r.body, "informational answers without end", r.status, r.body)
    mark, port, auth = "lambda-microvms", "lambda-microvms.port.", "lambda-microvms.authentication."
    upgrade(f, "/ws", f"Sec-WebSocket-Protocol: {port}9000, one, {auth}x", f"Sec-WebSocket-Protocol: {mark.upper()}.PORT.9001,two,{mark}")
    sent = {k.lower(): v for k, v in cloud.proxy.heads[-1]}["sec-websocket-protocol"].split(", ")
    same(([p for p in sent if p.lower().startswith(port)], [p[len(auth):][:4] for p in sent if p.startswith(auth)], sent.count(mark)),
         ([port + "7000"], ["eyJ."], 1), "the platform's subprotocols are ours alone")
    same({k.lower(): v for k, v in App.heads[-1]}.get("sec-websocket-protocol"), "one, two", "and those of the client arrive")


def life(cloud, f):
    """A request that takes its time keeps the sandbox awake."""
    cloud.proxy.requests.clear()
    f.ask("GET", "/slow?23")
    ok(("GET", "/healthz") in cloud.proxy.requests, "signs of life while an answer is waited for", cloud.proxy.requests)
    cloud.proxy.requests.clear()
    time.sleep(22)
    same(cloud.proxy.requests, [], "and none otherwise")


def refusals(cloud):
    r = cloud.call("forward", "app", "9000")
    ok(r.returncode == 1 and b"reserved lifecycle-hook port" in r.stderr, "the hook port", r.stderr)
    vm = cloud.vm()
    p = cloud.home.start("forward", "app", "--json", "0:7000", "--poll-interval", "1")
    doc = json.loads(next_line(p))
    same((doc["protocol"], doc["remote_port"]), ("http", 7000), "--json says what it carries")
    s = socket.create_connection(("127.0.0.1", doc["local_port"]), timeout=60)
    s.sendall(b"GET /silent HTTP/1.0\r\nHost: localhost\r\n\r\n")
    s.recv(1)
    vm.update(state="TERMINATED", stateReason="Success.")
    _, err = p.communicate(timeout=60)
    ok(p.returncode == 0 and b"app is no longer running (TERMINATED); disconnecting" in err, "a sandbox that ends, ends it", err)
    try:
        while s.recv(1000):
            pass
        ok(False, "and what was under way is reset")
    except ConnectionResetError:
        ok(True, "and what was under way is reset")
    r = cloud.call("forward", "app", "0:7000")
    ok(r.returncode == 1 and b"not running (TERMINATED)" in r.stderr, "one that has ended", r.stderr)
    vm.update(state="RUNNING", stateReason=None)


def no_forks():
    """For a child: the kernel refuses it more processes. Of x86_64: fork, vfork, and clone without CLONE_VM."""
    def op(code, k, yes=0, no=0):
        return struct.pack("HBBI", code, yes, no, k)
    load, equal, test, ret = 0x20, 0x15, 0x45, 0x06
    again, allow = 0x50000 + errno.EAGAIN, 0x7fff0000
    program = ctypes.create_string_buffer(b"".join((
        op(load, 0), op(equal, 57, yes=4), op(equal, 58, yes=3), op(equal, 56, no=3), op(load, 16), op(test, 0x100, yes=1),
        op(ret, again), op(ret, allow))))
    libc = ctypes.CDLL(None)
    filters = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program.raw) // 8, ctypes.addressof(program)))

    def confine():
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(filters), 0, 0) or not program:
            raise OSError("no filter")
    return confine


def no_processes(cloud):
    """Nobody can be started who asks for a token."""
    if os.uname().machine != "x86_64":
        skip("no more processes", "the filter is for x86_64")
        return
    f = Forward(cloud, "0:7000", preexec_fn=no_forks())
    same(f.ask("GET", "/").status, 200, "with a token there is no need of another process")
    cloud.aws.tokens.clear()
    r = f.ask("GET", "/")
    ok(r.status == 502 and b"refuses asb's token" in r.body, "without one the request fails at once", r.status, r.body)
    status, _, err = f.stop()
    ok(status == 0 and b"cannot start a process that asks for it" in err, "and standard error says why", status, err)


app = Server(("127.0.0.1", 0), App)
threading.Thread(target=app.serve_forever, daemon=True).start()
ws = None if official() else node(WS_SERVER)
ports = {7000: app.server_port}
if ws:
    ports[7002] = int(next_line(ws))
with Cloud() as c:
    c.proxy = c.aws.backend = proxy_to({8080: c.agent.port, **ports})
    same(c.call("create", "app", "--image", IMAGE).returncode, 0, "a sandbox")
    f = Forward(c, "--poll-interval", "1", "0:7000", "0:7001", "0:7002")
    ok(f.port > 0, "a port is picked and printed")
    others = [int(next_line(f.p).split(":")[2].split()[0]) for _ in range(2)]
    g, h = Forward.__new__(Forward), Forward.__new__(Forward)
    g.port, h.port = others
    plain(c, f)
    bodies(f)
    both_ways(f)
    streams(f)
    cuts(f)
    strangers(f)
    redirects(c, f)
    tokens(c, f)
    states(c, f, g)
    crowd(f)
    if ws:
        websockets(c, h)
    else:
        skip("WebSockets", official())
    upgrades(c, f)
    life(c, f)
    same(f.stop(), (0, b"", b"asb: stopped\n"), "Ctrl-C: stopped, 0")
    no_processes(c)
    refusals(c)
    same(c.call("rm", "app").returncode, 0, "rm")
    ok(not c.aws.refused, "nothing was asked that AWS would refuse", c.aws.refused)
if ws:
    ws.kill()
    ws.communicate()
done()
