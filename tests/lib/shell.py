# SPDX-License-Identifier: Apache-2.0
"""One bash that runs the commands of a document one after the other: variables and the working directory stay."""
import subprocess
import threading

MARK = "--end-of-command--"


class Shell:
    def __init__(self, work, env, limit=60):
        self.limit = limit  # seconds that a command may take
        self.p = subprocess.Popen(["bash"], cwd=work, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command):
        """(exit status, output); the status is None for a shell that has ended or hangs"""
        guard = threading.Timer(self.limit, self.p.kill)
        guard.start()
        try:
            self.p.stdin.write(f"{command}\nstatus=$?; echo; echo {MARK} $status\n".encode())
            self.p.stdin.flush()
            out = b""
            for line in self.p.stdout:
                if line.startswith(MARK.encode()):
                    return int(line.split()[1]), out[:-1].decode("utf-8", "backslashreplace")
                out += line
            return None, out.decode("utf-8", "backslashreplace")
        except OSError as e:
            return None, str(e)
        finally:
            guard.cancel()

    def end(self):
        self.p.stdin.close()
        self.p.wait(20)
        self.p.stdout.close()
