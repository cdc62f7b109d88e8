#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 120
"""GET /v1/execs/{id}/output?max=N: pieces, and that what was sent is kept until the next one is asked for."""
import http.client
import socket

from _agentd import *

a = Agentd()


def piece(name, offset, most, read=None, follow=1):
    """(payload, last event or None) of one answer; with READ only so many bytes of it are taken, then the connection is cut."""
    c = http.client.HTTPConnection("127.0.0.1", a.port, timeout=60)
    c.request("GET", f"/v1/execs/{name}/output?offset={offset}&follow={follow}&max={most}")
    r = c.getresponse()
    body = r.read(read) if read else r.read()
    if read:
        time.sleep(0.2)
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    c.close()
    out, event = b"", None
    while len(body) >= 8:
        n = int.from_bytes(body[4:8], "big")
        if body[0] == 3:
            event = json.loads(body[8:8 + n])
        else:
            out += body[8:8 + n]
        body = body[8 + n:]
    return out, event


want = "".join(f"{i}\n" for i in range(1, 500001)).encode()
a.put("seq", argv=["seq", "500000"])
got, event, cuts = b"", None, 0
while not event:
    if cuts < 40 and len(got) < len(want) - (1 << 19):
        cuts += 1
        p, event = piece("seq", len(got), 1 << 19, read=50000)
    else:
        p, event = piece("seq", len(got), 1 << 19)
    if event and event["event"] == "gap":
        break
    got += p
ok(got == want and event and event["event"] == "exit", f"{len(want)} bytes over {cuts} cut connections are whole", (len(got), event))
equal(event["truncated"], False, "and not truncated")
a.put("small", shell="printf abcdef; exit 3")
equal(piece("small", 0, 4), (b"abcd", None), "a piece has no exit event")
p, event = piece("small", 4, 4)
equal((p, event["exit_code"]), (b"ef", 3), "the last one has")
equal(piece("small", 6, 1)[1]["exit_code"], 3, "at the end only that")
a.put("wait", shell="printf abc; sleep 0.5; printf def; sleep 100")
equal(piece("wait", 0, 5), (b"abcde", None), "a piece waits until it is full")
equal(piece("wait", 1, 100, follow=0), (b"bcdef", None), "without follow it has what there is")
for bad in ("0", "-1", "x", ""):
    equal(a.request("GET", f"/v1/execs/small/output?max={bad}")[0], 400, f"max={bad}")
a.stop()
done()
