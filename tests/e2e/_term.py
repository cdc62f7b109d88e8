# SPDX-License-Identifier: Apache-2.0
"""A terminal for a program under test: what a person types and sees."""
import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

LIMIT = 60


class Term:
    def __init__(self, argv, env, rows=30, cols=100):
        self.seen, self.status = b"", None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                self.size(rows, cols, 0)
                for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
                    signal.signal(number, signal.SIG_DFL)
                os.execve(argv[0], argv, {**env, "TERM": "xterm"})
            finally:
                os._exit(99)

    def size(self, rows, cols, fd=None):
        fcntl.ioctl(self.fd if fd is None else fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        os.write(self.fd, text if isinstance(text, bytes) else text.encode())

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            p = os.read(self.fd, 65536)
        except OSError:
            return None
        self.seen += p
        return p or None

    def wait(self, text, limit=LIMIT):
        """Until text has been seen; what came before it is forgotten. False at the end or the deadline."""
        text = text.encode() if isinstance(text, str) else text
        until = time.monotonic() + limit
        while text not in self.seen:
            if time.monotonic() > until or self.read(0.2) is None:
                return False
        self.seen = self.seen.split(text, 1)[1]
        return True

    def canonical(self):
        return bool(termios.tcgetattr(self.fd)[3] & termios.ICANON)

    def end(self, limit=LIMIT, close=True):
        """All that comes until the program has ended; its wait status is in status."""
        until = time.monotonic() + limit
        while time.monotonic() < until:
            if self.read(0.05) is None:
                break
        while self.status is None and time.monotonic() < until:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            else:
                time.sleep(0.05)
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.status = "hangs"
        if close:
            os.close(self.fd)
        return self.seen

    def hang_up(self, limit=LIMIT):
        """Closes the terminal and waits for the program."""
        os.close(self.fd)
        until = time.monotonic() + limit
        while time.monotonic() < until:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return "hangs"
