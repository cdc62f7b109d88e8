#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 900
"""PUT /v1/execs/{id} that is answered with the output, takes the input along, and is forgotten by itself: what a client needs
that has one round trip only. And what becomes of the end when that answer is lost."""
import http.client
import signal
import socket

from _agentd import *

a = Agentd()
FRAMES, JSON = "application/vnd.docker.multiplexed-stream", "application/json"


class Put(Stream):
    def __init__(self, name, query="follow=1", headers={}, rcvbuf=0, **spec):
        self.conn = http.client.HTTPConnection("127.0.0.1", a.port, timeout=60)
        if rcvbuf:
            self.conn.connect()
            self.conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.conn.request("PUT", f"/v1/execs/{name}?{query}", json.dumps(spec), {"Content-Type": JSON, **headers})
        self.reply = self.conn.getresponse()
        self.status, self.type = self.reply.status, self.reply.getheader("Content-Type")

    def cut(self):
        self.conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close()


def put(name, query="follow=1", **spec):
    """(status, stdout, stderr, exit event)"""
    p = Put(name, query, **spec)
    out, err, events = p.all()
    return p.status, out, err, events[-1] if events and events[-1]["event"] == "exit" else None


def state(name):
    return a.request("GET", f"/v1/execs/{name}")[0]


def listed(name):
    return any(e["id"] == name for e in a.json("GET", "/v1/execs")[1]["execs"])


# --- the answer is the output
p = Put("one", shell="echo out; echo err >&2; exit 3")
equal((p.status, p.type), (201, FRAMES), "PUT with follow=1 is answered with frames")
out, err, events = p.all()
ok((out, err, events[-1]["event"], events[-1]["exit_code"]) == (b"out\n", b"err\n", "exit", 3), "both streams and the exit event", events)
s, out, err, end = put("one", shell="echo out; echo err >&2; exit 3")
equal((s, out, err, end["exit_code"]), (200, b"out\n", b"err\n", 3), "the same again: 200, and all of it from the beginning")
for query in ("", "follow=0", "forget=5"):
    p = Put("one", query, shell="echo out; echo err >&2; exit 3")
    equal((p.status, p.type, json.loads(p.reply.read())["exit_code"]), (200, JSON, 3), f"?{query}: what it is, as ever")
p = Put("one", shell="another")
equal((p.status, p.type), (409, JSON), "another command under this id is 409")
p = Put("none", argv=["no-such-command"])
equal((p.status, p.type, json.loads(p.reply.read())["step"]), (404, JSON, "exec"), "what cannot be started is told as without it")
equal(state("none"), 404, "and leaves no record")
p = Put("silent", argv=["sleep", "100"])
p.conn.sock.settimeout(10)  # the first one of a GET comes after 15 s
equal(json.loads(p.frame()[1])["event"], "alive", "a silent command says at once that it runs")
p.close()
a.request("DELETE", "/v1/execs/silent?kill=1")
equal(put("piece", "follow=1&max=4", shell="printf abcdef")[1:], (b"abcd", b"", None), "max=4: a piece")
equal(a.output("piece", 4)[0], b"ef", "and the rest from its offset")
p = Put("sse", headers={"Accept": "text/event-stream"}, shell="printf abc")
ok(p.type == "text/event-stream" and b"data: YWJj" in p.reply.read(), "server-sent events", p.type)
mark = os.path.join(a.dir, "marks")
for bad in ("follow=2", "follow=", "max=0&follow=1", "forget=0", "forget=x", "forget=-1", "forget=86401", "format=x"):
    s, b, _ = a.request("PUT", f"/v1/execs/bad?{bad}", json.dumps({"shell": f"echo x >> {mark}"}))
    ok(s == 400 and b"must be numbers" in b and state("bad") == 404, f"?{bad} is 400 and starts nothing", (s, b))
ok(not os.path.exists(mark), "really nothing")

# --- an answer that is lost: the same again
for n in range(20):
    spec = {"shell": f"echo x >> {mark}; echo here; sleep 0.02; exit 9"}
    p = Put(f"cut{n}", "follow=1&max=524288&forget=60", **spec)
    time.sleep(0.005 * n)
    p.cut()
    s, out, err, end = put(f"cut{n}", "follow=1&max=524288&forget=60", **spec)
    if (s, out, end and end["exit_code"]) != (200, b"here\n", 9):
        break
equal((n, s, out), (19, 200, b"here\n"), "cut at any moment, the same again tells all")
equal(open(mark).read().count("x"), 20, "and each ran once")

# --- forgotten by itself
s, out, err, end = put("brief", "follow=1&forget=4", shell="(sleep 30.%d & ); echo hi" % os.getpid())
equal((s, out), (201, b"hi\n"), "forget=4")
ok(not listed("brief"), "one whose end was told is not in the list")
equal((state("brief"), a.output("brief")[0]), (200, b"hi\n"), "but there, for an answer that was lost")
ok(until(lambda: state("brief") == 404, 20), "and then forgotten", state("brief"))
left = processes(f"sleep\0{30}.{os.getpid()}".encode())
equal(len(left), 1, "what it left in the background lives on")
for pid in left:
    os.kill(pid, signal.SIGKILL)
a.json("PUT", "/v1/execs/untold?forget=1", {"argv": ["true"]})
p = Put("unread", "follow=1&forget=1", shell="sleep 0.5; echo late")
p.cut()
time.sleep(3)
equal((state("untold"), listed("untold")), (200, True), "one whose end nobody was told stays")
equal((state("unread"), a.output("unread")[0]), (200, b"late\n"), "nor is it told to who has gone")
ok(until(lambda: state("unread") == 404, 20), "told by another answer, it is forgotten")
a.output("untold", follow=False)
time.sleep(2)
equal(state("untold"), 200, "a look that does not follow counts for nothing")
equal(put("kept", argv=["true"])[0], 201, "without forget")
time.sleep(2)
equal(state("kept"), 200, "it stays")
put("gone", "follow=1&forget=60", argv=["true"])
equal((a.request("DELETE", "/v1/execs/gone")[0], state("gone")), (200, 404), "DELETE forgets it before that")
p = Put("slow", "follow=1&forget=1", rcvbuf=65536, shell="head -c 20000000 /dev/zero")
equal(len(a.output("slow")[0]), 20000000, "a reader that stands still, and another one that is told the end")
time.sleep(3)
out, err, events = p.all()
ok(len(out) > 1000000 and events[-1]["event"] == "exit", "the first one still gets what there is, and the end", (len(out), events))
ok(until(lambda: state("slow") == 404, 20), "then it is forgotten")
put("stood", "follow=1&forget=4", argv=["true"])
a.proc.send_signal(signal.SIGSTOP)
time.sleep(6)
a.proc.send_signal(signal.SIGCONT)
equal(state("stood"), 200, "after a standstill of longer than that it is kept for half of it")
ok(until(lambda: state("stood") == 404, 20), "and then forgotten")

# --- all of the input with it
def b64(data):
    return base64.b64encode(data).decode()


big = bytes(range(256)) * 4096
for name, data in (("in0", b""), ("in1", b"a\0b\n"), ("in2", big)):
    s, out, err, end = put(name, argv=["cat"], input=b64(data))
    ok((s, out == data, end["exit_code"]) == (201, True, 0), f"{len(data)} bytes of input, then its end", (s, len(out)))
s, out, err, end = put("in3", argv=["true"], input=b64(big))
equal((s, end["exit_code"]), (201, 0), "a command that reads none of it")
a.put("in4", argv=["sleep", "100"], input=b64(big))
for query in ("", "?offset=0", "?eof=1"):
    s, b = a.json("POST", f"/v1/execs/in4/stdin{query}", None)
    equal(s, 409, f"POST stdin{query} while it is being written")
a.request("DELETE", "/v1/execs/in4")
for bad, word in (({"input": 5}, "input"), ({"input": "abcde"}, "base64"), ({"input": "", "pty": {}}, "pty"), ({"input": ["x"]}, "input")):
    s, b = a.put("bad", argv=["cat"], **bad)
    ok(s == 400 and word in b["detail"] and state("bad") == 404, f"{bad} is 400", (s, b))
a.json("PUT", "/v1/execs/untold", {"argv": ["true"]})
slots = a.json("GET", "/v1/info")[1]["caps"]["execs"]
for n in range(slots + 10):
    put(f"more{n}", "follow=1&forget=3600", argv=["true"])
equal((state("untold"), state("more0")), (200, 404), "where there is no room those go first whose end was told")
for n in range(slots + 10):
    a.request("DELETE", f"/v1/execs/more{n}")
fds = a.fds()
for n in range(100):
    put(f"many{n}", "follow=1&forget=1", argv=["cat"], input=b64(b"x"))
ok(until(lambda: a.json("GET", "/v1/info")[1]["slots"] < 60, 20), "a hundred leave nothing behind", a.json("GET", "/v1/info")[1]["slots"])
ok(a.fds() <= fds + 2, "no descriptor either", (fds, a.fds()))
equal(a.stop(), 0, "agentd ends well")
done()
