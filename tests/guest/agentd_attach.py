#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GET /v1/execs/{id}/attach: terminals over a WebSocket, with a client of our own and with one that misbehaves."""
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from _agentd import *
from _ws import BINARY, CLOSE, CONT, PING, PONG, TEXT, Refused, WebSocket

a = Agentd()
names = (f"t{i}" for i in range(10**6))
PTY = {"rows": 24, "cols": 80}


def start(shell, **more):
    name = next(names)
    s, b = a.put(name, shell=shell, pty=PTY, **more)
    assert s == 201, (s, b)
    return name


def attach(name, query="", **kw):
    return WebSocket(a.port, f"/v1/execs/{name}/attach{query}", **kw)


def refused(path, **kw):
    try:
        WebSocket(a.port, path, **kw).close()
    except Refused as why:
        return why.status
    return 101


def end(name):
    a.request("DELETE", f"/v1/execs/{name}?kill=1")


# --- from the first byte to the exit
n = start("stty -echo; echo ready; read x; echo got $x; exit 3")
w = attach(n)
first = w.message()
equal(first, {"type": "attached", "offset": 0}, "the first message tells the offset")
got, ev = w.until(lambda b: b"ready" in b)
w.send(b"some words\n")
got2, ev = w.all()
got += got2
ok(b"ready\r\n" in got and b"got some words\r\n" in got, "bytes go both ways", got)
ok(ev and ev[-1]["type"] == "exit" and ev[-1]["exit_code"] == 3 and ev[-1]["signal"] is None and ev[-1]["offset"] == len(got),
   "the exit event ends it", ev)
equal(w.closed, (1000, ""), "and the connection is closed in order")
ok(until(lambda: a.json("GET", "/v1/metrics")[1]["agent"]["connections"] <= 1), "and given back")

# --- after the end: the same bytes again, whole or from an offset (F97)
for i in range(20):
    w = attach(n)
    again, ev = w.all()
    if again != got or ev[-1]["exit_code"] != 3:
        break
ok(again == got, "F97: an ended command is replayed whole, 20 times", (again, got))
w = attach(n, "?offset=5")
m = w.message()
part, ev = w.all()
ok(m["offset"] == 5 and part == got[5:] and ev[-1]["type"] == "exit", "or from an offset", (m, part))
w = attach(n, f"?offset={len(got)}")
w.message()
equal(w.all()[0], b"", "or from its end")
w = attach(n)
w.message()
w.control(type="resize", rows=5, cols=5)
w.control(type="signal", signal="INT")
w.control(type="eof")
w.send(b"nobody reads this")
equal(w.all()[1][-1]["type"], "exit", "input and control of an ended command are no error")
end(n)

# --- refused before the upgrade
n = start("cat")
a.put("pipe", argv=["cat"], stdin=True)
P = f"/v1/execs/{n}/attach"
for want, path, kw, why in (
    (404, "/v1/execs/nobody/attach", {}, "an unknown command"),
    (409, "/v1/execs/pipe/attach", {}, "a command without a terminal"),
    (416, P + "?offset=99999", {}, "an offset behind the end"),
    (400, P + "?offset=-1", {}, "an offset that is no number"),
    (400, P + "?offset=", {}, "an empty offset"),
    (426, P, {"headers": {"Upgrade": None}}, "no Upgrade"),
    (426, P, {"headers": {"Sec-WebSocket-Version": "12"}}, "version 12"),
    (400, P, {"headers": {"Sec-WebSocket-Key": "x"}}, "a bad key"),
    (403, P, {"headers": {"Origin": "http://evil.example"}}, "a page of another origin"),
    (400, P, {"headers": {"X-Bad ": "1"}}, "a bad head"),
    (400, P, {"headers": {"Host": "a", "HOST": "b"}}, "two hosts"),
):
    equal(refused(path, **kw), want, f"{want}: {why}")
s, b, h = a.request("GET", P)
ok(s == 426 and h["Upgrade"] == "websocket" and json.loads(b)["detail"], "a plain GET is told what to do", (s, b))
equal(a.json("POST", P)[0], 405, "only GET")
end("pipe")

# --- control
w = attach(n)
w.message()
w.control(type="resize", rows=0, cols=70000)
w.control(type="resize", rows=33, cols=111)
ok(until(lambda: a.json("GET", f"/v1/execs/{n}")[1]["pty"] == {"rows": 33, "cols": 111}), "resize")
for bad, why in (({"type": "type this"}, "unknown type"), ({"typ": 1}, "no type"), ({"type": 5}, "type that is no text"), ({"type": "resize", "rows": "x"}, "bad rows"),
                 ({"type": "signal", "signal": "NOPE"}, "bad signal"), ({"type": "signal", "signal": "INT", "to": "x"}, "bad target")):
    w.control(**bad)
    m = w.message()
    ok(isinstance(m, dict) and m["type"] == "error" and m["message"], f"{why} is an error message", m)
for text in (b"hello", b"[1]", b"", b'{"type":"eof"', b'"eof"', b"\0"):
    w.sock.sendall(w.frame(TEXT, text))
    m = w.message()
    ok(isinstance(m, dict) and m["type"] == "error", f"text {text!r} is an error message, and not typed", m)
w.send(b"marker\n")
got, ev = w.until(lambda b: b.count(b"marker") == 2)
equal(got, b"marker\r\nmarker\r\n", "nothing of that reached the terminal")
w.control(type="eof")
got, ev = w.all()
ok(ev[-1]["exit_code"] == 0, "eof ends cat", (got, ev))
end(n)

n = start("trap 'echo int; exit 7' INT; echo up; while :; do sleep 0.05; done")
w = attach(n)
w.until(lambda b: b"up" in b)
w.control(type="signal", signal="INT", to="leader")
got, ev = w.all()
ok(b"int" in got and ev[-1]["exit_code"] == 7, "signal", (got, ev))
end(n)
n = start("trap 'echo int; exit 8' INT; echo up; while :; do sleep 0.05; done")
w = attach(n)
w.until(lambda b: b"up" in b)
w.send(b"\x03")
got, ev = w.all()
ok(b"int" in got and ev[-1]["exit_code"] == 8, "a typed Ctrl-C is the terminal's", (got, ev))
end(n)
n = start("stty raw -echo; echo up; dd bs=1 count=5 2>/dev/null | od -An -c")
w = attach(n)
w.until(lambda b: b"up" in b)
w.send(b"ab")
w.control(type="eof")
w.send(b"cde")
got, ev = w.all()
ok(re.sub(rb"\s+", b" ", got).strip() == b"a b c d e", "in raw mode eof types nothing", got)
end(n)

# --- a second client takes over; the output goes on where it was
n = start("stty -echo; echo up; while read x; do echo = $x; done")
w1 = attach(n)
w1.until(lambda b: b"up" in b)
w2 = attach(n, "?offset=4")
equal(w2.message(), {"type": "attached", "offset": 4}, "another client attaches")
equal(w1.message(), {"type": "taken"}, "the first is told")
ok(w1.message() is None and w1.closed[0] == 4001, "and closed with 4001", w1.closed)
w2.send(b"hi\n")
got, ev = w2.until(lambda b: b"= hi" in b)
ok(b"= hi" in got, "the second one has the terminal", got)
s, b, _ = a.request("POST", f"/v1/execs/{n}/stdin", b"by post\n")
equal(s, 200, "POST stdin takes over as well")
got, ev = w2.all()
ok(ev and ev[-1] == {"type": "taken"} and w2.closed[0] == 4001, "which the client is told", (ev, w2.closed))
out, err, events = a.output(n, follow=False)
ok(b"= by post" in out or until(lambda: b"= by post" in a.output(n, follow=False)[0]), "and its bytes arrive")
ws = [attach(n) for _ in range(30)]
ok(all(x.until(lambda b: False)[1][-1] == {"type": "taken"} for x in ws[:-1]), "of 30 clients the last one stays")
ws[-1].send(b"last\n")
ok(b"= last" in ws[-1].until(lambda b: b"= last" in b)[0], "and works")
# reading along does not take over
s = a.stream(n, 0)
ws[-1].send(b"both\n")
ws[-1].until(lambda b: b"= both" in b)
seen = b""
while b"= both" not in seen:
    seen += s.frame()[1]
ok(True, "a reader of /output reads along")
s.close()
# a client that vanishes takes nothing with it (F102)
ws[-1].sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
ws[-1].close()
w = attach(n, "?offset=0")
w.send(b"still\n")
ok(b"= still" in w.until(lambda b: b"= still" in b)[0], "the terminal outlives its clients")
fds = a.fds()
for i in range(200):
    x = attach(n, headers={} if i % 2 else None)
    if i % 3 == 0:
        x.sock.sendall(x.frame(BINARY, b"x" * 1000)[: 1 + i % 50])
    x.close()
ok(until(lambda: a.fds() <= fds), "F102: 200 cut clients leave no descriptor", (fds, a.fds()))
end(n)

# --- forgotten under a client
n = start("echo up; sleep 100")
w = attach(n)
w.until(lambda b: b"up" in b)
end(n)
got, ev = w.all()
ok(not [e for e in ev if e["type"] == "exit"] and w.closed[0] == 1001, "F94: a forgotten command has no exit event", (ev, w.closed))

# --- more output than is held: gap, offsets that fit
n = start("stty -opost; head -c 3000000 /dev/zero | tr '\\0' x; printf END", timeout_ms=60000)
ok(until(lambda: a.json("GET", f"/v1/execs/{n}")[1]["state"] == "exited", 40), "nobody reads: the command ends all the same (F99)")
w = attach(n, "?offset=0")
m = w.message()
got, ev = w.all()
ok(m["offset"] > 0 and m["offset"] + len(got) == 3000003 and got.endswith(b"END"), "the oldest bytes are gone, the rest is whole", (m, len(got)))
equal(ev[0], {"type": "gap", "from": 0, "to": m["offset"]}, "which a gap tells")
ok(ev[-1]["type"] == "exit" and ev[-1]["truncated"], "and the result", ev)
w = attach(n)
equal(w.message(), {"type": "attached", "offset": m["offset"]}, "without an offset: from the oldest byte held")
ok(not [e for e in w.all()[1] if e["type"] == "gap"], "without a gap")
end(n)

# --- a client that reads slowly gets every byte, and holds up nobody
n = start("stty -opost; seq 1 400000; echo END", timeout_ms=120000)
w = attach(n)
t = time.monotonic()
other, _ = a.sh("echo quick")
time.sleep(1.5)
rss = a.rss()
got, ev = w.all()
want = b"".join(b"%d\n" % i for i in range(1, 400001)) + b"END\n"
ok(got == want and not [e for e in ev if e["type"] == "gap"] and not ev[-1]["truncated"], "a slow reader gets every byte",
   (len(got), len(want), ev))
ok(other == 200 and rss < 16384, "and costs little", rss)
end(n)

# --- much input to a program that does not read, then does
n = start("stty raw -echo; echo up; sleep 1.5; head -c 500000 | sha256sum", timeout_ms=60000)
w = attach(n)
w.until(lambda b: b"up" in b)
data = bytes(i * 7 & 0xff for i in range(500000))
for at in range(0, len(data), 50000):
    w.send(data[at:at + 50000])
equal(a.sh("echo quick")[0], 200, "input that nobody reads holds up nobody")
got, ev = w.all()
import hashlib  # noqa: E402
ok(hashlib.sha256(data).hexdigest().encode() in got, "half a MB typed arrives whole", got)
end(n)

# --- hostile frames
n = start("cat")
for code, data, why in (
    (1002, WebSocket.frame(BINARY, b"x", mask=False), "not masked"),
    (1002, WebSocket.frame(BINARY, b"x", rsv=4), "a reserved bit"),
    (1002, WebSocket.frame(3, b"x"), "an unknown opcode"),
    (1002, WebSocket.frame(CONT, b"x"), "a continuation of nothing"),
    (1002, WebSocket.frame(PING, b"x" * 126), "a long ping"),
    (1002, WebSocket.frame(PING, b"x", fin=False), "a ping in fragments"),
    (1002, WebSocket.frame(CLOSE, b"\x03"), "half a close code"),
    (1002, WebSocket.frame(CLOSE, b"\x03\xed"), "a close code that may not be sent"),
    (1007, WebSocket.frame(TEXT, b"\xff"), "text that is not UTF-8"),
    (1009, WebSocket.frame(BINARY, b"x" * 65537), "a message above 64 KiB"),
    (1009, WebSocket.frame(BINARY, b"x" * 40000, fin=False) + WebSocket.frame(CONT, b"x" * 40000), "fragments above 64 KiB"),
    (1009, b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xffabcd", "2^63 bytes announced"),
    (1002, b"\x82\xff\xff\xff\xff\xff\xff\xff\xff\xffabcd", "2^64 bytes announced"),
):
    for early in (False, True):
        w = attach(n, early=data) if early else attach(n)
        if not early:
            try:
                w.sock.sendall(data)
            except OSError:
                pass
        w.all()
        if not w.closed or w.closed[0] != code:
            break
    ok(w.closed and w.closed[0] == code, f"{code}: {why}", w.closed)
w = attach(n)
w.sock.sendall(w.frame(PING, b"are you there"))
while (f := w.recv_frame())[0] != PONG:
    pass
equal(f[1], b"are you there", "a ping is answered")
w.sock.sendall(w.frame(CLOSE, b"\x03\xe8bye"))
while w.recv_frame()[0] != CLOSE:
    pass
ok(w.closed[0] == 1000, "the client's close is answered with its code", w.closed)
big = attach(n)
big.message()
big.sock.sendall(big.frame(BINARY, b"y" * 3000 + b"\n", fin=False) + big.frame(PING, b"p") + big.frame(CONT, b"z" * 10 + b"\n"))
ok(b"z" * 10 in big.until(lambda b: b.count(b"z" * 10) >= 2)[0], "fragments with a ping between are one message")
end(n)

# --- the token
b = Agentd(env={"AGENTD_TOKEN_FILE": (f := os.path.join(a.dir, "token"))}) if not open(os.path.join(a.dir, "token"), "w").write("s3cret\n") is None else None
auth = {"Authorization": "Bearer s3cret"}
b.json("PUT", "/v1/execs/x", {"shell": "echo up; cat", "pty": {}}, headers=auth)
for h, want in (({}, 401), ({"Authorization": "Bearer wrong"}, 401), (auth, 101)):
    try:
        w = WebSocket(b.port, "/v1/execs/x/attach", headers=h)
        s = 101
    except Refused as why:
        s = why.status
    equal(s, want, f"with a token: {want} for {h}")
ok(b"up" in w.until(lambda x: b"up" in x)[0], "and the terminal works")
w.close()
equal(b.stop(), 0, "agentd ends in order")

# --- an official client, where one is at hand
node = shutil.which("node")
ws_js = next((p for p in ("/usr/share/nodejs/ws", "/usr/lib/node_modules/ws", "/usr/local/lib/node_modules/ws") if os.path.isdir(p)), None)
if node and ws_js:
    n = start("stty -echo; read x; echo got $x; exit 4")
    js = f"""const W=require({json.dumps(ws_js)});const w=new W('ws://127.0.0.1:{a.port}/v1/execs/{n}/attach');
let out='';w.on('message',(d,b)=>{{if(b){{out+=d}}else{{const m=JSON.parse(d);if(m.type=='attached')w.send(Buffer.from('node\\n'));
if(m.type=='exit')out+=JSON.stringify(m)}}}});w.on('close',(c)=>{{console.log(out,c)}});"""
    r = subprocess.run([node, "-e", js], capture_output=True, text=True, timeout=60, check=False)
    ok("got node" in r.stdout and '"exit_code":4' in r.stdout and r.stdout.strip().endswith("1000"), "npm's ws", r)
    end(n)
else:
    skip("npm's ws", "node and its package ws are not installed")

# --- SIGTERM with a client
n = start("echo up; sleep 100")
w = attach(n)
w.until(lambda b: b"up" in b)
equal(a.stop(), 0, "agentd ends in order with a client attached")
try:
    w.all()
    gone = True
except (EOFError, OSError):
    gone = True
ok(gone, "whose connection ends")
done()
