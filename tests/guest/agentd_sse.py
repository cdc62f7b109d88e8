#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 120
"""GET /v1/execs/{id}/output as server-sent events."""
import hashlib
import http.client
import os
import socket

from _agentd import *

a = Agentd()


class Events:
    """A reader of text/event-stream as WHATWG HTML 9.2.6 describes it."""

    def __init__(self, name, query="", headers=None):
        self.conn = http.client.HTTPConnection("127.0.0.1", a.port, timeout=60)
        self.conn.request("GET", f"/v1/execs/{name}/output?{query}",
                          headers={"Accept": "text/event-stream"} if headers is None else headers)
        self.reply = self.conn.getresponse()
        self.comments = 0

    def next(self):
        """(event, id, data), or None at the end"""
        e = {}
        while line := self.reply.readline():
            assert line.endswith(b"\n"), line
            line = line[:-1].decode()
            if not line:
                if e:
                    return e.get("event"), e.get("id"), e.get("data")
                continue
            if line.startswith(":"):
                self.comments += 1
                continue
            field, value = line.split(": ", 1)
            assert field in ("event", "id", "data") and field not in e, line
            e[field] = value
        assert not e, e
        return None

    def all(self):
        """({stream: bytes}, other events, last id of bytes)"""
        out, rest, last = {"stdout": b"", "stderr": b""}, [], None
        while e := self.next():
            if e[0] in out:
                out[e[0]] += base64.b64decode(e[2], validate=True)
                last = e[1]
            else:
                rest.append((e[0], e[1], json.loads(e[2])))
        self.conn.close()
        return out, rest, last


a.put("one", shell="printf 'a\\n\\nb\\n\\n\\nc\\n'; sleep 0.2; printf 'e\\0\\377' >&2; sleep 0.2; printf last; exit 3")
s = Events("one", "follow=1")
ok(s.reply.status == 200 and s.reply.headers["Content-Type"] == "text/event-stream" and s.reply.headers["Cache-Control"] == "no-cache", "the head",
   dict(s.reply.headers))
first = s.next()
equal(first, ("stdout", "9", base64.b64encode(b"a\n\nb\n\n\nc\n").decode()), "A5: blank lines are data; the id is the offset behind them")
equal(s.next(), ("stderr", "12", "ZQD/"), "bytes that are no text, on their stream")
out, rest, last = s.all()
ok(out["stdout"] == b"last" and last == "16" and len(rest) == 1, "the end", (out, rest))
name, at, end = rest[0]
framed = a.output("one")[2][-1]
ok(name == "exit" and at == "16" and end == framed and end["exit_code"] == 3, "the exit event is that of the frames", (rest, framed))
for query, headers in (("format=sse", {}), ("format=sse", {"Accept": "*/*"}), ("", {"Accept": "text/html, Text/Event-Stream;q=0.9"})):
    equal(Events("one", query, headers).all()[0]["stdout"], b"a\n\nb\n\n\nc\nlast", f"asked for by {query or headers}")
for query, headers in (("format=frames", {"Accept": "text/event-stream"}), ("", {"Accept": "*/*"}), ("", {})):
    r = Events("one", query, headers).reply
    equal(r.headers["Content-Type"], "application/vnd.docker.multiplexed-stream", f"frames by {query or headers}")
accept = {"Accept": "text/event-stream"}
for last, query, want in (("9", "", (b"last", b"e\0\xff")), ("12", "offset=0", (b"last", b"")), ("10", "offset=16", (b"last", b"\0\xff")),
                          ("16", "", (b"", b"")), ("0", "offset=5", (b"a\n\nb\n\n\nc\nlast", b"e\0\xff"))):
    out, rest, _ = Events("one", query, {**accept, "Last-Event-ID": last}).all()
    ok((out["stdout"], out["stderr"]) == want and rest[-1][0] == "exit", f"F96: Last-Event-ID {last} with {query or 'no offset'}", out)
equal(Events("one", "offset=9", {"Last-Event-ID": "16"}).reply.read(100)[8:11], b"e\0\xff", "frames know no Last-Event-ID")
for last, query, status in (("x", "", 400), ("-1", "", 400), ("", "", 400), ("17", "", 416), ("0", "format=xml", 400)):
    r = Events("one", query, {**accept, "Last-Event-ID": last}).reply
    ok(r.status == status and "detail" in json.loads(r.read()), f"Last-Event-ID {last!r} {query} is {status}", r.status)
a.put("run", shell="echo up; sleep 100")
time.sleep(0.2)
equal(Events("run").all(), ({"stdout": b"up\n", "stderr": b""}, [], "3"), "without follow it ends without an exit event")
s = Events("run", "follow=1")
s.next()
a.request("DELETE", "/v1/execs/run")
try:
    end = s.next()
except (http.client.HTTPException, AssertionError, ConnectionError) as e:
    end = None
equal(end, None, "F94: a forgotten command's stream has no exit event")

# --- much
data = os.urandom(3_000_000)
with open(a.dir + "/blob", "wb") as f:
    f.write(data)
a.put("big", shell="cat $F; cat $F >&2", env={"F": a.dir + "/blob"})
out, rest, last = Events("big", "follow=1").all()
ok(out["stdout"] == data and out["stderr"] == data and not rest[-1][2]["truncated"], "3 MB on each stream are exact", (len(out["stdout"]), rest))
a.put("cut", shell="i=0; while [ $i -lt 30 ]; do echo line $i; i=$((i+1)); sleep 0.05; done")
got, last = b"", "0"
for i in range(8):
    s = Events("cut", "follow=1", {**accept, "Last-Event-ID": last})
    for k in range(2):
        if (e := s.next()) and e[0] == "stdout":
            got, last = got + base64.b64decode(e[2]), e[1]
    s.conn.sock.shutdown(socket.SHUT_RDWR)
    s.conn.close()
out, rest, _ = Events("cut", "follow=1", {**accept, "Last-Event-ID": last}).all()
ok(got + out["stdout"] == b"".join(b"line %d\n" % i for i in range(30)) and rest[-1][0] == "exit", "F95: cut 8 times, and contiguous", got)
a.put("yes", shell="yes | head -c 3000000", timeout_ms=60000)
ok(until(lambda: a.json("GET", "/v1/execs/yes")[1]["state"] == "exited", 30), "a command that nobody reads")
out, rest, _ = Events("yes", "follow=1").all()
ok(rest[0][0] == "gap" and rest[0][2]["from"] == 0 and rest[0][1] == str(rest[0][2]["to"]) and rest[0][2]["to"] + len(out["stdout"]) == 3000000,
   "  has a gap, whose id is where it goes on", (rest, len(out["stdout"])))
done()
