#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 600
"""asb cp with a real sandbox. The whole table, and agents that lie, are in tests/guest/asb_cp.py."""
import hashlib
import io
import os
import subprocess
import tarfile

from _asb import Home, done, need_vm, ok, same

need_vm()


def sh(h, script):
    return h.call("exec", "--no-stdin", "app", "--", "sh", "-c", script)


def sums(top):
    found = {}
    for d, _, names in os.walk(top):
        for n in names:
            p = os.path.join(d, n)
            with open(p, "rb") as f:
                found[os.path.relpath(p, top)] = hashlib.sha256(f.read()).hexdigest()
    return found


def trees(h, work):
    src = os.path.join(work, "src")
    for i in range(300):
        os.makedirs(f"{src}/{i % 7}/x", exist_ok=True)
        with open(f"{src}/{i % 7}/x/{i}", "wb") as f:
            f.write(os.urandom(i * 37))
    with open(src + "/big", "wb") as f:
        f.write(os.urandom(8 << 20))
    with open(os.fsencode(src) + b"/\xff", "wb") as f:
        f.write(b"raw")
    with open(src + "/.dot", "wb") as f:
        f.write(b"")
    r = h.call("cp", src, "app:/root/in")
    ok(r.returncode == 0 and b"copied" in r.stderr, "a tree goes in", r.stderr)
    r = sh(h, "cd /root/in && find . -type f | wc -l; sha256sum big; stat -c %u:%g big; ls -a | grep -c '^\\.dot$'")
    want = sums(src)
    same(r.stdout.split()[0::1][:2], [str(len(want)).encode(), want["big"].encode()], "all of it is there")
    ok(b"0:0" in r.stdout and r.stdout.rstrip().endswith(b"1"), "owned by root, dot files too", r.stdout)
    r = h.call("cp", "app:/root/in", work + "/out")
    same((r.returncode, sums(work + "/out")), (0, want), "and comes out again, byte for byte")
    same(h.call("cp", "app:/root/in/.", work + "/out").returncode, 0, "its content over itself")
    r = h.call("cp", "app:/root/in/0", "-")
    names = tarfile.open(fileobj=io.BytesIO(r.stdout)).getnames()
    ok(r.returncode == 0 and names[0] == "0" and len(names) > 40, "a tar to standard output", names[:5])
    tar = subprocess.run(["tar", "t"], input=r.stdout, capture_output=True, check=False)
    ok(tar.returncode == 0 and tar.stderr == b"", "GNU tar reads it and has nothing to warn of", tar.stderr)
    r = h.call("cp", "-", "app:/tmp", input=r.stdout)
    same((r.returncode, sh(h, "ls /tmp/0/x | wc -l").stdout), (0, b"43\n"), "and back from standard input")


def guest(h, work):
    sh(h, "mkdir -p /root/g && cd /root/g && echo one >f && ln -s f l && ln -s /root/g d && ln f h && mkfifo p && touch s; "
          "useradd -m user 2>/dev/null; chown 1234:5678 f; chmod 6755 s")
    same(h.call("cp", "app:/root/g/d/f", work + "/f").returncode, 0, "a path through a link of the guest is the guest's matter")
    same(h.call("cp", "app:/root/g", work).returncode, 0, "links, hard links and a FIFO come out")
    ok(os.path.islink(work + "/g/l") and os.stat(work + "/g/h").st_nlink == 2, "as such")
    same(os.stat(work + "/g/s").st_mode & 0o7777, 0o755, "set-id bits do not")
    for src in ("/proc/self/mem", "/nonexistent", "/root/g/f/x"):
        r = h.call("cp", f"app:{src}", work + "/none")
        ok(r.returncode == 1 and r.stderr.startswith(b"error: ") and not os.path.exists(work + "/none"), f"{src} is an error", r.stderr)
    with open(work + "/zeros", "wb") as f:
        f.truncate(0)
        for _ in range(40):
            f.write(os.urandom(8 << 20))
    r = h.call("cp", work + "/zeros", "app:/dev/shm/zeros")
    ok(r.returncode == 1 and r.stderr.startswith((b"error: ", b"asb: ")), "memory that runs out is an error", r.stderr)
    same(sh(h, "ls -A /dev/shm; echo alive").stdout, b"alive\n", "of that copy only, and nothing is left")
    os.unlink(work + "/zeros")


def workers(h, work):
    """Memory and page cache of a copy are the workload's."""
    r = sh(h, "cat /proc/self/cgroup; ls -d /sys/fs/cgroup/asb/work/x* | wc -l")
    ok(b"/asb/work/" in r.stdout, "commands run below asb/work", r.stdout)
    p = h.start("cp", "-", "app:/tmp", stdin=subprocess.PIPE)
    p.stdin.write(b"x" * 100)
    p.stdin.flush()
    script = (
        "import glob,time\n"
        "for i in range(600):\n"
        " for c in glob.glob('/proc/[0-9]*/cmdline'):\n"
        "  try:\n"
        "   if open(c).read().startswith('agentd-worker'):\n"
        "    d = c.rsplit('/', 1)[0]; print(open(d + '/cgroup').read(), open(d + '/status').read()); raise SystemExit\n"
        "  except OSError: pass\n"
        " time.sleep(0.1)\n")
    r = h.call("exec", "--no-stdin", "app", "--", "python3", "-c", script)
    p.stdin.close()
    p.wait(60)
    ok(b"/asb/work/" in r.stdout and b"NoNewPrivs:\t1" in r.stdout, "so does a worker", r.stdout)
    same(p.returncode, 1, "what was no tar is an error")


with Home() as home:
    work_dir = os.path.join(home.top, "work")
    os.mkdir(work_dir)
    r = home.call("create", "app", "-m", "256")
    ok(r.returncode == 0, "a sandbox", r.stderr)
    trees(home, work_dir)
    guest(home, work_dir)
    workers(home, work_dir)
    r = home.call("rm", "app")
    r = home.call("cp", work_dir + "/f", "app:/x")
    ok(r.returncode == 1 and b"app" in r.stderr, "a sandbox that is gone", r.stderr)
done()
