# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: TAP, a private HOME, and calling asb."""
import os
import shutil
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ASB = os.environ.get("ASB", os.path.join(TOP, "build/bin/asb"))
LIMIT = 120  # seconds that any one call may take: a generous deadline, not a measurement

count = failed = 0


def ok(good, name, *notes):
    global count, failed
    count += 1
    print(f"{'ok' if good else 'not ok'} {count} - {name}", flush=True)
    if not good:
        failed += 1
        for note in notes:
            for line in str(note).splitlines()[:20]:
                print("#   " + line, flush=True)
    return good


def same(got, want, name):
    return ok(got == want, name, f"got  {got!r:.500}", f"want {want!r:.500}")


def until(what, limit=30, step=0.1):
    """What WHAT() says at last: something true, or whatever it says after LIMIT seconds."""
    end = time.monotonic() + limit
    while not what() and time.monotonic() < end:
        time.sleep(step)
    return what()


def skip(name, why):
    global count
    count += 1
    print(f"ok {count} - {name} # SKIP {why}", flush=True)


def done():
    print(f"1..{count}")
    sys.exit(1 if failed or not count else 0)


def skip_all(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


def need_asb():
    if not os.access(ASB, os.X_OK):
        skip_all(f"{os.path.relpath(ASB, TOP)} is missing (make host sanitized)")


def need_vm():
    need_asb()
    share = os.environ.get("ASB_SHARE", os.path.join(os.path.dirname(ASB), "../share/asb"))
    for name in ("vmlinux", "guest.cpio", "images/base/rootfs.erofs"):
        if not os.path.exists(os.path.join(share, name)):
            skip_all(f"{name} is missing in build/share/asb (make image)")
    if not shutil.which("qemu-system-" + os.uname().machine):
        skip_all("QEMU is not installed")


class Home:
    """A HOME of its own, removed at the end; with what is left of sandboxes in it."""

    def __init__(self, suffix=""):
        self.top = tempfile.mkdtemp(prefix="asb-e2e.")
        self.path = os.path.join(self.top, "home" + suffix)
        os.mkdir(self.path)
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("AGENT_SANDBOX_", "ASB_")) or k == "ASB_SHARE"}
        self.env["HOME"] = self.path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.call("rm", "-f", *self.call("ls", "-q").stdout.decode().split() or ["none"])
        shutil.rmtree(self.top, ignore_errors=True)

    def call(self, *args, limit=LIMIT, env=None, **kw):
        """Runs asb; stdin is /dev/null unless given. The result has stdout, stderr (bytes) and returncode."""
        if "input" not in kw:
            kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.PIPE)
        return subprocess.run([ASB, *args], env={**self.env, **(env or {})}, timeout=limit, check=False, **kw)

    def start(self, *args, **kw):
        """The same without waiting."""
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([ASB, *args], env=self.env, **kw)

    def left(self):
        """Every path of a sandbox below HOME, and names in the state file: [] when all is as it was."""
        vms = os.path.join(self.path, ".agent_sandbox/local/vms")
        left = sorted(os.listdir(vms)) if os.path.isdir(vms) else []
        return left + self.call("ls", "-q").stdout.decode().split()


def one_line(stderr):
    """The error lines of asb, without the hint."""
    lines = stderr.decode("utf-8", "replace").splitlines()
    return [x for x in lines if not x.startswith("hint: ")]
