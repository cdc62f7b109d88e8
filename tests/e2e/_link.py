# SPDX-License-Identifier: Apache-2.0
"""A cutter in front of a sandbox's link.sock: connections break where a test wants it."""
import os
import socket
import threading


class Cutter:
    """While it lives, every connection to the sandbox goes through it. limit: bytes from the guest after which a
    connection is cut, or None; cut() breaks all that there are; refuse: answer no further ones."""

    def __init__(self, home, sandbox_id, limit=None):
        self.path = os.path.join(home.path, ".agent_sandbox/local/vms", sandbox_id, "link.sock")
        self.real = self.path + ".real"
        os.rename(self.path, self.real)
        self.limit, self.count, self.cuts, self.refuse = limit, 0, 0, False
        self.open, self.lock = set(), threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                a, _ = self.listener.accept()
            except OSError:
                return
            if self.refuse:
                a.close()
                continue
            b = socket.socket(socket.AF_UNIX)
            try:
                b.connect(self.real)
            except OSError:
                a.close()
                continue
            self.count += 1
            with self.lock:
                self.open.add((a, b))
            threading.Thread(target=self._pump, args=(a, b, None, (a, b)), daemon=True).start()
            threading.Thread(target=self._pump, args=(b, a, self.limit, (a, b)), daemon=True).start()

    def _pump(self, src, dst, limit, pair):
        seen = 0
        try:
            while True:
                p = src.recv(4096)
                if not p:
                    dst.shutdown(socket.SHUT_WR)
                    return
                seen += len(p)
                if limit and seen > limit:
                    dst.sendall(p[:len(p) - (seen - limit)])
                    self.cuts += 1
                    self._close(pair)
                    return
                dst.sendall(p)
        except OSError:
            self._close(pair)

    def _close(self, pair):
        with self.lock:
            self.open.discard(pair)
        for s in pair:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def cut(self):
        for pair in list(self.open):
            self.cuts += 1
            self._close(pair)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        os.rename(self.real, self.path)
        self.cut()
