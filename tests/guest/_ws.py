# SPDX-License-Identifier: Apache-2.0
"""A WebSocket client (RFC 6455) of the standard library only, that can also misbehave."""
import base64
import hashlib
import json
import os
import socket
import struct

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


class Refused(Exception):
    """The server answered something else than 101: status, and the rest of the answer."""

    def __init__(self, status, head, body):
        super().__init__(f"{status} {body[:200]!r}")
        self.status, self.head, self.body = status, head, body


class WebSocket:
    def __init__(self, port, path, headers=None, timeout=30, host="127.0.0.1", early=b""):
        self.sock = socket.create_connection((host, port), timeout=timeout)
        key = base64.b64encode(os.urandom(16)).decode()
        h = {"Host": f"{host}:{port}", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": key,
             "Sec-WebSocket-Version": "13", **(headers or {})}
        self.sock.sendall(f"GET {path} HTTP/1.1\r\n".encode() + b"".join(f"{k}: {v}\r\n".encode() for k, v in h.items() if v is not None)
                          + b"\r\n" + early)
        self.buf = b""
        while b"\r\n\r\n" not in self.buf:
            self.more()
        head, self.buf = self.buf.split(b"\r\n\r\n", 1)
        status = int(head.split()[1])
        if status != 101:
            fields = dict(x.decode("latin-1").lower().split(": ", 1) for x in head.split(b"\r\n")[1:])
            while len(self.buf) < int(fields.get("content-length", "0")):
                self.more()
            self.sock.close()
            raise Refused(status, head.decode("latin-1"), self.buf)
        fields = dict(x.decode().lower().split(": ", 1) for x in head.split(b"\r\n")[1:])
        want = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode().lower()
        assert fields["sec-websocket-accept"] == want, fields
        assert fields["upgrade"] == "websocket" and fields["connection"].lower() == "upgrade", fields
        self.closed = None  # (code, reason) of the server's close frame
        self.pings = 0

    def more(self):
        data = self.sock.recv(65536)
        if not data:
            raise EOFError
        self.buf += data

    def need(self, n):
        while len(self.buf) < n:
            self.more()
        data, self.buf = self.buf[:n], self.buf[n:]
        return data

    # --- out
    @staticmethod
    def frame(op, data=b"", fin=True, mask=True, rsv=0):
        n = len(data)
        head = bytes([(0x80 if fin else 0) | rsv << 4 | op])
        m = 0x80 if mask else 0
        head += bytes([m | n]) if n < 126 else bytes([m | 126]) + struct.pack(">H", n) if n < 65536 else bytes([m | 127]) + struct.pack(">Q", n)
        if not mask:
            return head + data
        key = os.urandom(4)
        pad = (key * (n // 4 + 1))[:n]
        return head + key + (int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")).to_bytes(n, "big")

    def send(self, data):
        self.sock.sendall(self.frame(BINARY, data))

    def control(self, **message):
        self.sock.sendall(self.frame(TEXT, json.dumps(message).encode()))

    # --- in
    def recv_frame(self):
        """(opcode, bytes) of the next frame, pings answered"""
        while True:
            a, b = self.need(2)
            n = b & 127
            assert not b & 128 and not a & 0x70, (a, b)
            if n == 126:
                n = struct.unpack(">H", self.need(2))[0]
            elif n == 127:
                n = struct.unpack(">Q", self.need(8))[0]
            data = self.need(n)
            op = a & 15
            if op == PING:
                self.pings += 1
                self.sock.sendall(self.frame(PONG, data))
                continue
            if op == CLOSE:
                self.closed = (struct.unpack(">H", data[:2])[0] if len(data) >= 2 else None, data[2:].decode())
            return op, data

    def message(self):
        """bytes, or a dict, or None when the server has closed"""
        op, data = self.recv_frame()
        if op == CLOSE:
            try:
                self.sock.sendall(self.frame(CLOSE, data))
            except OSError:
                pass
            return None
        return json.loads(data) if op == TEXT else data if op == BINARY else self.message()

    def until(self, fn):
        """Collects bytes until fn(bytes so far); (bytes, control messages)"""
        got, events = b"", []
        while not fn(got):
            m = self.message()
            if m is None:
                break
            if isinstance(m, dict):
                events.append(m)
            else:
                got += m
        return got, events

    def all(self):
        return self.until(lambda _: False)

    def close(self):
        self.sock.close()
