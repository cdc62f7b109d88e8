#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""asb cp against agentd without a VM between them: a link.sock of ours stands for the supervisor. Then against an agent that
lies. The same in a VM is tests/e2e/cp.py."""
import io
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tarfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from _agentd import TOP, Agentd, done, equal, ok, skip, until  # noqa: E402

ASB = os.environ.get("ASB", os.path.join(TOP, "build/bin/asb"))
if not os.access(ASB, os.X_OK):
    print("1..0 # SKIP build/bin/asb is missing (make host)")
    sys.exit(0)

agent = Agentd()
home = os.path.join(agent.dir, "home")
vm = os.path.join(home, ".agent_sandbox/local/vms/local-0123456789abcdef")
os.makedirs(vm, mode=0o700)
with open(os.path.join(home, ".agent_sandbox/state.json"), "w") as f:
    json.dump({"sandboxes": {"app": {"name": "app", "microvm_id": os.path.basename(vm), "endpoint": None, "image_arn": "base",
                                     "region": None}}}, f)


class Link:
    """link.sock: connections go to agentd, or to a function while there is one."""

    def __init__(self):
        self.serve = None
        self.listener = socket.socket(socket.AF_UNIX)
        os.chdir(vm)
        self.listener.bind("link.sock")
        self.listener.listen(64)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            c, _ = self.listener.accept()
            threading.Thread(target=self.connection, args=(c,), daemon=True).start()

    def connection(self, c):
        line = b""
        while not line.endswith(b"\n"):
            line += c.recv(1)
        c.sendall(b"OK\n")
        try:
            if self.serve:
                self.serve(c)
                c.close()
                return
            a = socket.create_connection(("127.0.0.1", agent.port))
            back = threading.Thread(target=self.pump, args=(a, c), daemon=True)
            back.start()
            self.pump(c, a)
            back.join()
        except OSError:
            pass

    @staticmethod
    def pump(a, b):
        try:
            while data := a.recv(1 << 18):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            try:
                b.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


link = Link()
here = os.path.join(agent.dir, "here")   # our side
there = os.path.join(agent.dir, "there")  # what the sandbox is
ENV = {"PATH": os.environ["PATH"], "HOME": home}


def fresh():
    for d in (here, there):
        if os.path.isdir(d):
            subprocess.run(["chmod", "-R", "u+rwx", d], check=True)
        shutil.rmtree(d, ignore_errors=True)
        os.mkdir(d)


def cp(*words, cwd=here, **kw):
    kw.setdefault("stdin", subprocess.DEVNULL if "input" not in kw else None)
    if kw["stdin"] is None:
        del kw["stdin"]
    return subprocess.run([ASB, "cp", *words], env=ENV, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                          check=False, **kw)


def write(top, name, data=b"x", mode=0o644):
    path = os.path.join(os.fsencode(top), os.fsencode(name))
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, mode)


def tree(top):
    """Every path below, and the bytes of the files."""
    found = {}
    for d, dirs, names in os.walk(os.fsencode(top)):
        for n in dirs + names:
            p = os.path.join(d, n)
            key = os.fsdecode(os.path.relpath(p, os.fsencode(top)))
            if os.path.islink(p):
                found[key] = "-> " + os.fsdecode(os.readlink(p))
            elif os.path.isdir(p):
                found[key] = None
            else:
                with open(p, "rb") as f:
                    found[key] = f.read()
    return found


# --- the table, in both directions: what is in the source, what in the target before, SRC, DST, what is in the target then (None: refused)
D = {"d": None, "d/f": b"new", "d/sub": None, "d/sub/.g": b"dot"}
TABLE = [
    ("a file to a new name", {"f": b"new"}, {}, "f", "g", {"g": b"new"}),
    ("a file into a directory", {"f": b"new"}, {"t": None}, "f", "t", {"t": None, "t/f": b"new"}),
    ("a file into a directory with a slash", {"f": b"new"}, {"t": None}, "f", "t/", {"t": None, "t/f": b"new"}),
    ("a file over a file", {"f": b"new"}, {"t": b"old"}, "f", "t", {"t": b"new"}),
    ("a file to a directory that is missing", {"f": b"new"}, {}, "f", "t/", None),
    ("a file where the parent is missing", {"f": b"new"}, {}, "f", "no/t", None),
    ("a file below a file", {"f": b"new"}, {"t": b"old"}, "f", "t/", None),
    ("an empty file", {"f": b""}, {}, "f", "g", {"g": b""}),
    ("a directory to a new name", D, {}, "d", "t", {"t": None, "t/f": b"new", "t/sub": None, "t/sub/.g": b"dot"}),
    ("a directory to a new name with a slash", D, {}, "d", "t/", {"t": None, "t/f": b"new", "t/sub": None, "t/sub/.g": b"dot"}),
    ("a directory into a directory", D, {"t": None}, "d", "t", {"t": None, **{"t/" + k: v for k, v in D.items()}}),
    ("a directory with a slash into one", D, {"t": None}, "d/", "t", {"t": None, **{"t/" + k: v for k, v in D.items()}}),
    ("a directory over a file", D, {"t": b"old"}, "d", "t", None),
    ("what is in a directory to a new name", D, {}, "d/.", "t", {"t": None, "t/f": b"new", "t/sub": None, "t/sub/.g": b"dot"}),
    ("what is in a directory into one", D, {"t": None, "t/f": b"old", "t/k": b"kept"}, "d/.", "t",
     {"t": None, "t/f": b"new", "t/k": b"kept", "t/sub": None, "t/sub/.g": b"dot"}),
    ("a directory is merged", D, {"t": None, "t/d": None, "t/d/k": b"kept"}, "d", "t",
     {"t": None, "t/d/k": b"kept", **{"t/" + k: v for k, v in D.items()}}),
    ("what is missing", {}, {}, "none", "t", None),
    ("a file taken for a directory", {"f": b"new"}, {}, "f/.", "t", None),
    ("a file over a directory in one", {"d/f": b"new"}, {"t/d/f/x": b"old"}, "d", "t", None),
    ("a link is copied as it is", {"l": "-> f"}, {}, "l", "m", {"m": "-> f"}),
    ("a link of the target to a directory", {"f": b"new"}, {"t": None, "l": "-> t"}, "f", "l", {"t": None, "l": "-> t", "t/f": b"new"}),
    ("a link of the target to a file", {"f": b"new"}, {"t": b"old", "l": "-> t"}, "f", "l", {"t": b"new", "l": "-> t"}),
    ("names that are no text", {"d/\udcff\udcfe": b"raw", "d/\u00fc \"'\n%": b"odd"}, {}, "d/.", "t",
     {"t": None, "t/\udcff\udcfe": b"raw", "t/\u00fc \"'\n%": b"odd"}),
    ("a name with much in it", {"a b%+&#?": b"new"}, {}, "a b%+&#?", "c d%+&#?", {"c d%+&#?": b"new"}),
]


def fill(top, entries):
    for name, what in entries.items():
        path = os.path.join(top, name)
        if what is None:
            os.makedirs(path, exist_ok=True)
        elif isinstance(what, str):
            os.symlink(what[3:], path)
        else:
            write(top, name, what)


for way in ("in", "out"):
    for what, source, target, src, dst, want in TABLE:
        fresh()
        a, b = (here, there) if way == "in" else (there, here)
        fill(a, source)
        fill(b, target)
        before = tree(b)
        words = (f"{a}/{src}", f"app:{b}/{dst}") if way == "in" else (f"app:{a}/{src}", f"{b}/{dst}")
        r = cp(*words)
        good = (r.returncode, tree(b)) == ((0, want) if want is not None else (1, before))
        ok(good and (r.returncode == 0 or b"error: " in r.stderr) and r.stdout == b"", f"{way}: {what}", (r, tree(b)))

# --- the command line
fresh()
write(here, "f")
for words in ((), ("x",), ("a", "b"), ("app:/a", "app:/b"), ("app:", "x"), ("app:/a", "b", "c"), ("-x:/a", "b"), ("", "app:/x")):
    r = cp(*words)
    ok(r.returncode == 2 and r.stdout == b"", f"{words} is a wrong command line", r)
r = cp("f", "nobody:/x")
ok(r.returncode == 1 and b"nobody" in r.stderr, "a sandbox that is not there", r)
write(here, "a:b", b"colon")
equal(cp("./a:b", f"app:{there}/c").returncode, 0, "a file with a colon in its name, behind ./")
equal(tree(there), {"c": b"colon"}, "is a file")
r = cp("f", f"app:{there[1:]}/rel")
equal((r.returncode, tree(there).get("rel")), (0, b"x"), "a path of the sandbox is seen from its root")
ok(b"copied 1 B in 1 file to app:" in r.stderr, "a line on stderr tells", r.stderr)
equal(cp("-q", "f", f"app:{there}/q").stderr, b"", "not with -q")
r = cp("--json", "f", f"app:{there}/j")
doc = json.loads(r.stdout)
equal((doc["members"], doc["bytes"]), (1, 1), "--json")
fresh()
write(here, "d/f")
equal(cp(".", f"app:{there}/t", cwd=here + "/d").returncode, 0, "SRC .")
equal(tree(there), {"t": None, "t/f": b"x"}, "is what is in it")
equal(cp("..", f"app:{there}/t", cwd=here + "/d").returncode, 0, "SRC ..")
ok("t/here/d/f" in tree(there), "goes by its name", tree(there))
os.chdir(here)
equal(cp(f"app:{there}/t", ".", cwd=here + "/d").returncode, 0, "DST .")
ok("d/t/f" in tree(here), "is a directory", tree(here))

# --- attributes
for way in ("in", "out"):
    fresh()
    a, b = (here, there) if way == "in" else (there, here)
    write(a, "d/f", b"f", 0o4711)
    write(a, "d/ro/g", b"g")
    os.link(a + "/d/f", a + "/d/h")
    os.symlink("/no/where", a + "/d/l")
    with open(a + "/d/s", "wb") as f:
        f.seek(5 << 20)
        f.write(b"s")
    os.chmod(a + "/d/ro", 0o555)
    os.utime(a + "/d/f", (1e9, 1e9))
    if os.getuid() == 0:
        os.chown(a + "/d/ro/g", 123, 456)
    words = (a + "/d", f"app:{b}/e") if way == "in" else (f"app:{a}/d", b + "/e")
    equal(cp(*words).returncode, 0, f"{way}: a tree")
    st = os.lstat(b + "/e/f")
    equal((stat.S_IMODE(st.st_mode), st.st_mtime), (0o4711 if way == "in" else 0o711, 1e9), "mode (set-id bits only in), time")
    equal(stat.S_IMODE(os.lstat(b + "/e/ro").st_mode), 0o555, "of a directory")
    equal((os.lstat(b + "/e/h").st_ino, os.readlink(b + "/e/l")), (st.st_ino, "/no/where"), "links")
    ok(os.stat(b + "/e/s").st_blocks * 512 < 1 << 20, "holes")
    equal(os.lstat(b + "/e/ro/g").st_uid, os.getuid(), "the owner is who extracts")
    if os.getuid() == 0:
        equal(cp("-a", *words).returncode, 0, "with -a")
        e = b + "/e/d/ro/g"
        equal((os.lstat(e).st_uid, os.lstat(e).st_gid), (123, 456), "it is kept")
    else:
        skip("with -a", "not root")
    fresh()
    write(a, "f", b"f")
    os.symlink("f", a + "/l")
    words = (a + "/l", f"app:{b}/m") if way == "in" else (f"app:{a}/l", b + "/m")
    equal((cp("-L", *words).returncode, tree(b)), (0, {"m": b"f"}), f"{way}: -L follows SRC")

# --- tar on stdio
fresh()
write(there, "d/f", b"stdio")
r = cp(f"app:{there}/d", "-")
t = tarfile.open(fileobj=io.BytesIO(r.stdout))
equal((r.returncode, t.getnames(), t.extractfile("d/f").read()), (0, ["d", "d/f"], b"stdio"), "a tar to standard output")
os.mkdir(there + "/e")
equal(cp("-", f"app:{there}/e", input=r.stdout).returncode, 0, "a tar from standard input")
equal(tree(there + "/e"), {"d": None, "d/f": b"stdio"}, "is extracted")
p = subprocess.Popen([ASB, "cp", "-", f"app:{there}/e"], env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
p.stdin.write(r.stdout[:1100])
p.stdin.flush()
ok(until(lambda: not os.path.exists(there + "/e/d/f") and any(n.startswith(".asb") for n in os.listdir(there + "/e/d"))
         or tree(there + "/e").get("d/f") == b"stdio", 20), "a slow input is sent as it comes")
p.stdin.write(r.stdout[1100:])
p.stdin.close()
equal(p.wait(60), 0, "and is fine when it is whole")
p = subprocess.Popen([ASB, "cp", "-", f"app:{there}/e"], env=ENV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
time.sleep(0.5)
p.send_signal(signal.SIGINT)
equal(p.wait(60), -signal.SIGINT, "an interruption while nothing comes")
for data in (b"", b"no tar at all" * 100, r.stdout[:700]):
    ok(cp("-", f"app:{there}/e", input=data).returncode == 1, "what is none is an error")
equal(cp("-", f"app:{there}/none", input=r.stdout).returncode, 1, "a directory that is missing too")
equal(cp(f"app:{there}/none", "-").returncode, 1, "and a source")
equal(cp("--json", f"app:{there}/d", "-").returncode, 2, "no document beside a tar")

# --- much
fresh()
big = os.urandom(1 << 20) * 24
write(here, "big", big)
r = cp("big", f"app:{there}/big")
ok(r.returncode == 0 and tree(there) == {"big": big}, "24 MiB in", r)
r = cp(f"app:{there}/big", "back")
ok(r.returncode == 0 and tree(here)["back"] == big, "and out", r)
for i in range(2000):
    write(here, f"many/{i % 10}/{i}", str(i).encode())
equal(cp("many", f"app:{there}/many").returncode, 0, "2000 files in")
equal(cp(f"app:{there}/many", "again").returncode, 0, "and out")
equal(tree(here + "/again"), tree(here + "/many"), "all of them")


# --- an agent that lies
def tar(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as t:
        for name, data, *more in entries:
            m = tarfile.TarInfo(name)
            m.mode = 0o755
            for k, v in (more[0] if more else {}).items():
                setattr(m, k, v)
            if data is not None:
                m.size = len(data)
            t.addfile(m, io.BytesIO(data) if data is not None else None)
    return out.getvalue()


def hostile(body, type_="dir", cut=None, hang=None):
    """Answers every stat with type_, every GET with body."""
    def serve(c):
        while True:
            head = b""
            while b"\r\n\r\n" not in head:
                k = c.recv(65536)
                if not k:
                    return
                head += k
            if head.startswith(b"POST"):
                b = json.dumps({"type": type_, "name": "d"}).encode()
                c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(b) + b)
                continue
            c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            sent = body if cut is None else body[:cut]
            c.sendall(b"%x\r\n" % len(sent) + sent + b"\r\n")
            if hang:
                hang()
            if cut is None:
                c.sendall(b"0\r\n\r\n")
            return
    return serve


SYM, LNK, CHR = {"type": tarfile.SYMTYPE}, {"type": tarfile.LNKTYPE}, {"type": tarfile.CHRTYPE}
good = ("d/good", b"good")
for what, body in (
        ("..", tar(("d", None, {"type": tarfile.DIRTYPE}), good, ("d/../../evil", b"e"))),
        ("an absolute name", tar(good, (agent.dir + "/evil", b"e"))),
        ("another name", tar(good, ("evil", b"e"))),
        ("a file through a link", tar(good, ("d/l", None, {**SYM, "linkname": ".."}), ("d/l/evil", b"e"))),
        ("a hard link outside", tar(good, ("d/evil", None, {**LNK, "linkname": "/etc/passwd"}))),
        ("a hard link to our own files", tar(good, ("d/evil", None, {**LNK, "linkname": "d/../../secret"}))),
        ("a device", tar(good, ("d/evil", None, CHR))),
        ("no tar", b"x" * 3000), ("nothing", b"")):
    fresh()
    write(here, "secret", b"secret")
    link.serve = hostile(body)
    r = cp("app:/d", here + "/t")
    got = tree(here)
    ok(r.returncode == 1 and r.stderr.startswith((b"error: ", b"asb: ")) and got.pop("secret") == b"secret", f"{what}: refused", r)
    ok(set(got) <= {"t", "t/good", "t/l"} and not os.path.exists(agent.dir + "/evil"), "nothing but what came before", got)
fresh()
whole = tar(good, ("d/second", b"s" * 3000))
for cut in (0, 300, 700, 1300, 3000, len(whole) - 1500 if len(whole) > 5000 else 4000):
    link.serve = hostile(whole, cut=cut)
    r = cp("app:/d", here + f"/cut{cut}")
    ok(r.returncode == 1 and b"error: " in r.stderr, f"an answer that is cut after {cut} bytes is an error", r)
link.serve = hostile(tar(("d", b"set-id", {"mode": 0o6755})), "file")
equal(cp("app:/d", here + "/setid").returncode, 0, "a set-id file")
equal(stat.S_IMODE(os.lstat(here + "/setid").st_mode), 0o755, "is none here")
link.serve = hostile(b"", "file")
for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnull",
               b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n", b"nonsense\r\n\r\n", b""):
    link.serve = lambda c, a=answer: (c.recv(65536), c.sendall(a))
    r = cp("app:/d", here + "/t")
    ok(r.returncode == 1 and b"error: " in r.stderr, f"{answer[:40]}: an error", r)

# what it says goes to a terminal
ESC = "\x1b]0;evil\x07\x9b2J"
link.serve = hostile(tar(good, ("evil" + ESC, b"e")))
r = cp("app:/d", here + "/t")
ok(r.returncode == 1 and b"evil?]0;evil" in r.stderr and not set(r.stderr) & {7, 27}, "no control of a member's name reaches the terminal", r)


def says(status, body):
    def serve(c):
        c.recv(65536)
        b = json.dumps(body).encode()
        c.sendall(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n" % (status, len(b)) + b)
    return serve


def asb(*words):
    return subprocess.run([ASB, *words], env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)


link.serve = says(500, {"detail": "evil" + ESC})
r = asb("execs", "app")
ok(r.returncode == 1 and b"evil?]0;evil" in r.stderr and not set(r.stderr) & {7, 27}, "nor one of its messages", r)
link.serve = says(200, {"execs": [{"id": "evil" + ESC}, {"id": "fine"}]})
r = asb("execs", "app", "-q")
equal((r.returncode, r.stdout), (0, b"fine\n"), "an id that is none is not printed")
link.serve = says(200, {"execs": [{"id": f"id{i}", "shell": "\x01" * 4000} for i in range(256)]})
equal(asb("execs", "app", "-q").stdout.count(b"\n"), 256, "the longest list that agentd can give")
link.serve = None
equal(cp(f"app:{there}/..", here + "/up").returncode, 0, "SRC .. of the sandbox")

# --- interrupted
fresh()
write(here, "t", b"old")
reached, go = threading.Event(), threading.Event()
body = tar(("d", os.urandom(4 << 20)))
link.serve = hostile(body, "file", cut=2 << 20, hang=lambda: (reached.set(), go.wait(60)))
p = subprocess.Popen([ASB, "cp", "app:/d", here + "/t"], env=ENV, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
ok(reached.wait(30) and until(lambda: len(os.listdir(here)) == 2), "while it is copied, another name", os.listdir(here))
p.send_signal(signal.SIGINT)
_, err = p.communicate(timeout=30)
go.set()
equal((p.returncode, tree(here)), (-signal.SIGINT, {"t": b"old"}), "an interruption leaves the old file and nothing else")
link.serve = None
ok(until(lambda: agent.json("GET", "/healthz")[0] == 200), "the agent is well")
equal(agent.stop(), 0, "and ends")
done()
