#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 200
# VARIANTS: sanitized
"""Commands of other users, by passwd and group files of a stranger (A23, B50)."""
import os
import shutil
import subprocess
import tempfile

from _agentd import *

if os.getuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode:
    print("1..0 # SKIP wants root and a mount namespace")
    raise SystemExit

files = tempfile.mkdtemp(prefix="agentd-user-")
os.chmod(files, 0o755)
PASSWD = files + "/passwd"
GROUP = files + "/group"
for name in ("open", "shut"):
    os.mkdir(f"{files}/{name}")
os.chown(files + "/open", 1234, 1234)
os.chmod(files + "/open", 0o700)
os.chmod(files + "/shut", 0o700)
ROWS = f"""\
root:x:0:0:root:/root:/bin/bash

:x:77:77:no name:/:/bin/sh
short:x:78
negative:x:-1:0::/:/bin/sh
huge:x:99999999999999999999:0::/:/bin/sh
all:x:4294967295:0::/:/bin/sh
space:x: 79:0::/:/bin/sh
hex:x:0x50:0::/:/bin/sh
{'long' * 500}:x:80:80::/:/bin/sh
dev:x:1234:1234:A Developer:{files}/open:/bin/dash
dev:x:1:1:the second of that name:/:/bin/sh
locked:x:1235:1234::{files}/shut:/bin/sh
relative:x:1236:1234::here:
555:x:1237:1237::/:/bin/sh
many:x:1238:1238::/:/bin/sh
crowd:x:1239:1239::/:/bin/sh
last:x:1240:1240::/tmp:/bin/sh"""
LINES = """\
root:x:0:
dev:x:1234:
docker:x:900:other,dev
bad:x:nine:dev
short:x
prefix:x:901:developer,de
twice:x:902:dev
again:x:902:dev
own:x:1234:dev
777:x:903:
tail:x:904:x,dev
""" + "".join(f"m{i}:x:{2000 + i}:many\n" for i in range(1000)) + "".join(f"c{i}:x:{4000 + i}:crowd\n" for i in range(1100))


def write(passwd=ROWS, group=LINES):
    for path, text in ((PASSWD, passwd), (GROUP, group)):
        with open(path, "w") as f:
            f.write(text)


write()
mounted = ["unshare", "--mount", "sh", "-c",
           f'mount --bind {PASSWD} /etc/passwd && mount --bind {GROUP} /etc/group && exec "$@"', "sh"]
a = Agentd(prefix=mounted)
names = (f"u{i}" for i in range(10**6))


def run(script, user, **spec):
    """(stdout, stderr, exit event), or (status, body) of a refusal"""
    name = next(names)
    s, b = a.put(name, shell=script, user=user, **spec)
    if s != 201:
        return s, b
    out, err, events = a.output(name)
    return out.decode(), err.decode(), events[-1]


IDS = "id -u; id -g; id -G; grep -E '^(Uid|Gid):' /proc/self/status | tr '\\n' ' '"


def is_user(user, uid, gid, groups):
    out, err, end = run(IDS, user)
    u, g, all_, status = out.split("\n")
    want = f"Uid: {' '.join([str(uid)] * 4)} Gid: {' '.join([str(gid)] * 4)}"
    ok((u, g) == (str(uid), str(gid)) and sorted(map(int, all_.split())) == sorted(groups) and
       " ".join(status.split()) == want, f"{user!r} is {uid}:{gid} with {str(groups)[:60]}", (out, err))


# --- who it is
is_user("dev", 1234, 1234, [1234, 900, 902, 904])
is_user("1234", 1234, 1234, [1234, 900, 902, 904])
is_user(1234, 1234, 1234, [1234, 900, 902, 904])
is_user("dev:docker", 1234, 900, [900])
is_user("dev:5", 1234, 5, [5])
is_user("1234:docker", 1234, 900, [900])
is_user("4321:docker", 4321, 900, [900])
is_user("4321:1", 4321, 1, [1])
is_user(4321, 4321, 0, [0])
is_user("555", 1237, 1237, [1237])
is_user("dev:777", 1234, 903, [903])
is_user("root", 0, 0, [0])
is_user("last", 1240, 1240, [1240])
is_user("many", 1238, 1238, [1238, *range(2000, 3000)])
is_user("4294967294:4294967294", 4294967294, 4294967294, [4294967294])
s, b = run("true", "crowd")
ok(s == 400 and "too many groups" in b["detail"], "more groups than it keeps is an error, not fewer groups", b)
for user in ("nobody-here", "dev:nogroup", "dev:", ":docker", ":", "", "negative", "huge", "all", "space", "hex", "short", "-1",
             "4294967295", "1e3", " 5", "dev ", "long" * 500, "a" * 255, "a" * 5000, "dev:" + "g" * 5000, "dev\n", 4294967295, -1, 0.5, True, [], {}):
    s, b = a.put("bad", shell="true", user=user)
    ok(s == 400 and "user" in b["detail"], f"user {str(user)[:20]!r} is 400", (s, b))
equal(a.json("GET", "/v1/execs/bad")[0], 404, "and leaves no record")
s, b = a.put("asked", shell="true", user="dev:docker")
equal((b["user"], b["shell"], b["args_cut"]), ("dev:docker", "true", False), "the record tells what was asked")
b = a.put("asked2", argv=["true", "x" * 5000], user=1234)[1]
equal((b["user"], b["argv"][0], len(b["argv"][1]), b["args_cut"]), (1234, "true", 4092, True), "  cut")
b = a.put("asked3", argv=["true", *["y"] * 100])[1]
equal((b["user"], len(b["argv"]), b["args_cut"]), (None, 64, True), "  to 64 words")

# --- what it may
out, err, end = run("grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status", "dev")
ok(set(x.split()[1] for x in out.splitlines()) == {"0" * 16}, "B50: no capability", out)
out, err, end = run("cat /etc/shadow; kill -9 " + str(a.pid), "dev")
ok("denied" in err and end["exit_code"] != 0 and a.proc.poll() is None, "nothing of root's", (out, err))
out, err, end = run("cat /proc/self/oom_score_adj; ulimit -Sn", "dev")
equal(out.split()[0], "0", "agentd's OOM score is undone all the same")
out, err, end = run("tty=$(tty); stat -c %u $tty; echo x >$tty", "dev", pty={})
equal(out, "1234\r\nx\r\n", "the terminal is the user's")

# --- where it is
out, err, end = run("pwd; echo $HOME $USER $LOGNAME $SHELL", "dev")
equal(out, f"{files}/open\n{files}/open dev dev /bin/dash\n", "home and variables follow the user")
out, err, end = run("pwd; echo $HOME", "locked")
equal(out, f"/\n{files}/shut\n", "a home that the user cannot enter: the root, though agentd could")
out, err, end = run("pwd; echo $HOME $SHELL", "relative")
equal(out, "/\n/ /bin/sh\n", "a relative home is none")
out, err, end = run("pwd; echo $HOME $USER $SHELL", 4321)
equal(out, "/\n/ 4321 /bin/sh\n", "a bare number")
out, err, end = run("pwd; echo $HOME $USER", "dev", env={"HOME": "/usr"})
equal(out, "/usr\n/usr dev\n", "the caller's HOME wins")
out, err, end = run("env | sort", "dev", clear_env=True)
ok(not any(x.startswith(("HOME=", "USER=")) for x in out.splitlines()), "clear_env is empty", out)
s, b = run("true", "locked", cwd=files + "/shut")
ok(s == 400 and b["step"] == "cwd", "a cwd that the user cannot enter is an error", (s, b))
out, err, end = run("pwd", "dev", cwd="..")
equal(out, files + "\n", "a relative cwd is relative to the user's home")
with open(files + "/open/tool", "w") as f:
    f.write("#!/bin/sh\nid -u\n")
os.chmod(files + "/open/tool", 0o700)
os.chown(files + "/open/tool", 0, 0)
s, b = a.put("x", argv=[files + "/open/tool"], user="dev")
ok(s == 403 and b["step"] == "exec", "a program that only root may run is 403", (s, b))

# --- files of a stranger
write(passwd="a:x:1:1::/:/bin/sh\n" * 100000)
s, b = run("true", "dev")
ok(s == 400 and "user" in b["detail"], "a passwd of more than 1 MiB is refused", b)
write(passwd="dev:x:1234:1234::/:/bin/sh", group="g" * 900000 + "\n" + "docker:x:900:" + "a," * 50000 + "dev")
is_user("dev", 1234, 1234, [1234, 900])
write(passwd="dev:x:1234:1234::/:/bin/sh\0dev2:x:1:1::/:/bin/sh\n", group="\0\0\0")
ok(run("true", "dev2")[0] == 400, "a NUL ends what is read")
write(passwd="", group="")
is_user("5:6", 5, 6, [6])
ok(run("true", "dev")[0] == 400, "an empty file has nobody")
a.stop()
os.mkfifo(files + "/fifo")
a = Agentd(prefix=["unshare", "--mount", "sh", "-c", f'mount --bind {files}/fifo /etc/passwd && exec "$@"', "sh"])
s, b = run("true", "dev")
ok(s == 400 and "passwd" in b["detail"], "a FIFO for a passwd is refused at once", (s, b))
equal(a.sh("echo fine")[1]["stdout"], b"fine\n", "  and agentd goes on")
a.stop()

# --- an agentd that is not root
write()
for p in (files, PASSWD, GROUP):
    os.chmod(p, 0o755)
a = Agentd(env={"AGENTD_SOCKET": files + "/open/agentd.sock"}, prefix=[*mounted, "setpriv", "--reuid=1234", "--regid=1234", "--clear-groups"])
s, b = run("true", "root")
ok(s == 403 and b["step"] == "user", "only root changes users", (s, b))
out, err, end = run("id -u", "dev")
equal(out, "1234\n", "its own user is fine")
equal(run("id -u", None)[0], "1234\n", "and none")
a.stop()
a = Agentd(env={"AGENTD_SOCKET": files + "/open/agentd.sock"}, prefix=[*mounted, "sh", "-c", 'echo 100 >/proc/self/oom_score_adj; exec "$@"', "sh",
                                                                      "setpriv", "--reuid=1234", "--regid=1234", "--clear-groups"])
for i in range(2):
    equal(run("cat /proc/self/oom_score_adj", "dev")[0], "0\n", "an OOM score is undone without root")
    r = subprocess.run(["setpriv", "--reuid=1234", "--regid=1234", "--clear-groups", "cat", f"/proc/{a.pid}/environ"], capture_output=True)
    ok(r.returncode != 0, "a workload of the same user cannot read agentd", r.stdout[:100])
a.stop()
shutil.rmtree(files)
done()
