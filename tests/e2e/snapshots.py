#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 900
"""Named snapshots: kept, restored, carried to a file and back, and refused where they do not fit."""
import glob
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
import time

from _asb import Home, done, need_vm, ok, one_line, same

need_vm()

COUNT = "i=0; while [ $i -lt 30 ]; do echo $i; i=$((i + 1)); sleep 0.2; done; exit 7"
SETUP = ("echo memory > /dev/shm/marker; echo disk > /root/file; "
         "echo 0 > /dev/shm/count; setsid sh -c 'i=1; while :; do echo $i >> /dev/shm/count; i=$((i + 1)); sleep 0.1; done' > /dev/null 2>&1 < /dev/null &")
LOOK = "hostname; cat /etc/machine-id /run/agentd/identity; echo; head -c 16 /dev/urandom | od -An -tx1; cat /root/file; cat /dev/shm/marker; tail -n 1 /dev/shm/count"


def store(h, *below):
    return os.path.join(h.path, ".agent_sandbox/local/snapshots", *below)


def kept(h):
    """Every name in the folder of snapshots, half made ones too."""
    return sorted(os.listdir(store(h))) if os.path.isdir(store(h)) else []


def snapshots(h):
    return json.loads(h.call("snapshot", "ls", "--json").stdout)["snapshots"]


def look(h, name):
    return h.call("exec", name, "--", "sh", "-c", LOOK).stdout.decode().splitlines()


def goes_on(h, name, before):
    """The process that counted in the source counts here."""
    first = int(h.call("exec", name, "tail", "-n", "1", "/dev/shm/count").stdout or -1)
    time.sleep(1)
    second = int(h.call("exec", name, "tail", "-n", "1", "/dev/shm/count").stdout or -1)
    return ok(before <= first < second, f"{name}: the process that ran goes on", before, first, second)


def create(h):
    h.call("create", "box", "-m", "256")
    until = time.monotonic() + 60
    while not glob.glob(os.path.join(h.path, ".agent_sandbox/local/templates/[0-9a-f]*")) and time.monotonic() < until:
        time.sleep(0.1)
    same(h.call("create", "src", "-m", "256").returncode, 0, "a sandbox from a template")
    h.call("exec", "src", "--", "sh", "-c", SETUP)
    p = h.start("exec", "src", "--", "sh", "-c", COUNT)
    first = p.stdout.readline()
    r = h.call("snapshot", "create", "src", "one")
    same((r.returncode, r.stdout), (0, b"created one\n"), "snapshot create")
    out = p.communicate(timeout=120)[0]
    same((first + out, p.returncode), ("".join(f"{i}\n" for i in range(30)).encode(), 7),
         "an attached command goes on, and none of its output is lost")
    doc = json.loads(h.call("snapshot", "inspect", "one").stdout)
    same((doc["format"], doc["memory"], doc["based"], sorted(doc["files"])),
         (1, True, True, ["base.ram", "devices", "disk.qcow2", "ram"]), "inspect tells what is in it")
    for name, file in doc["files"].items():
        same((os.path.getsize(store(h, "one", name)), checksum(store(h, "one", name))), (file["bytes"], file["sum"]),
             f"length and checksum of {name}")
    r = h.call("snapshot", "create", "src", "one")
    ok(r.returncode == 1 and b"already" in r.stderr and b"snapshot rm one" in r.stderr, "a name that is taken is refused", r)
    log = glob.glob(os.path.join(h.path, ".agent_sandbox/local/vms/*", "supervisor.log"))
    quiet = sum(open(x, encoding="utf-8").read().count("quiesced") for x in log)
    r = h.call("snapshot", "create", "src", "files", "--disk-only", "--json")
    same(sum(open(x, encoding="utf-8").read().count("quiesced") for x in log), quiet, "for the disk alone nobody's connection is cut")
    info = json.loads(r.stdout)
    same((info["name"], info["memory"], info["sandbox"], info["image"]), ("files", False, "src", "base:1"), "create --disk-only --json")
    r = h.call("snapshot", "create", "src", "--disk-only")
    named = r.stdout.decode().split()[-1]
    ok(named.startswith("src-20"), "without a name it gets one", named)
    same(h.call("snapshot", "ls", "-q").stdout.decode().split(), kept(h), "ls -q")
    ok(all(0 < s["disk_bytes"] < 200 << 20 and s["bytes"] for s in snapshots(h)), "sizes", snapshots(h))
    same(h.call("snapshot", "rm", named).stdout.decode(), f"removed {named}\n", "rm")
    same(kept(h), ["files", "one"], "nothing half made is left")


def checksum(path):
    """The rule of docs/snapshots.md."""
    d = hashlib.sha256()
    with open(path, "rb") as f:
        at = 0
        while block := f.read(65536):
            if block.strip(b"\0"):
                d.update(at.to_bytes(8, "little") + block)
            at += len(block)
    d.update(at.to_bytes(8, "little"))
    return d.hexdigest()


def restore(h):
    source = look(h, "src")
    count = int(source[-1])
    shutil.rmtree(os.path.join(h.path, ".agent_sandbox/local/templates"))
    h.call("rm", "src")
    for name in ("a", "b"):
        r = h.call("snapshot", "restore", "one", name)
        ok(r.returncode == 0 and r.stdout.startswith(f"created {name} (local-".encode()),
           f"restore {name}: without the sandbox and the template", r)
    seen = [source, look(h, "a"), look(h, "b")]
    same([s[0] for s in seen], ["src", "a", "b"], "each has its own host name")
    for i, what in ((1, "machine-id"), (2, "generation"), (3, "/dev/urandom")):
        same(len({s[i] for s in seen}), 3, f"{what} differs in the source and two restores")
    same([s[4:6] for s in seen], [["disk", "memory"]] * 3, "disk and memory are the source's")
    ok(abs(time.time() - float(h.call("exec", "a", "date", "+%s.%N").stdout or 0)) < 2, "the clock is right")
    goes_on(h, "a", 0)
    same(h.call("snapshot", "restore", "one", "a").returncode, 1, "a sandbox's name that is taken")
    same(h.call("snapshot", "restore", "none", "x").returncode, 1, "a snapshot that is not there")
    h.call("rm", "b")
    return count


def disk_only(h):
    path = store(h, "one", "snapshot.json")
    good = open(path, encoding="utf-8").read()
    other = json.loads(good)
    other["fit"].update(qemu="QEMU emulator version 1.0", cpu_key="0" * 32, accel="kvm")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(other, f)
    r = h.call("snapshot", "restore", "one", "cold", "--disk-only")
    ok(r.returncode == 0, "restore --disk-only, of another QEMU, CPU and accelerator", r)
    with open(path, "w", encoding="utf-8") as f:
        f.write(good)
    seen = look(h, "cold")
    same((seen[0], seen[4:]), ("cold", ["disk"]), "boots: the file on the disk is there, what was in memory is not")
    h.call("rm", "cold")


def there_and_back(h):
    file = os.path.join(h.top, "one.snap")
    with open(file, "w", encoding="utf-8") as f:
        f.write("old")
    r = h.call("snapshot", "save", "one", file)
    same((r.returncode, r.stdout, os.stat(file).st_mode & 0o777), (0, b"", 0o600), "save")
    ok(os.path.getsize(file) < 60 << 20, "the file is compressed", os.path.getsize(file))
    same(h.call("snapshot", "rm", "one").returncode, 0, "rm while a sandbox of it runs")
    goes_on(h, "a", 0)
    with open(file, "rb") as f:
        r = h.call("snapshot", "load", "-", "two", stdin=f)
    same((r.returncode, r.stdout), (0, b"loaded two\n"), "load from a pipe, under another name")
    same(h.call("snapshot", "restore", "two", "c").returncode, 0, "restore of what was loaded")
    same(look(h, "c")[4:6], ["disk", "memory"], "with disk and memory")
    goes_on(h, "c", 0)
    h.call("rm", "c")
    saved = h.call("snapshot", "save", "two", "-")
    same(saved.returncode, 0, "save to a pipe")
    r = h.call("snapshot", "load", "-", input=saved.stdout)
    same((r.returncode, r.stdout), (1, b""), "its own name is taken")
    r = h.call("snapshot", "load", file, "three", "--disk-only", "--json")
    same((r.returncode, json.loads(r.stdout)["memory"], sorted(os.listdir(store(h, "three")))),
         (0, False, ["disk.qcow2", "snapshot.json"]), "load --disk-only")
    h.call("snapshot", "rm", "three")
    return file


def other_states(h):
    h.call("stop", "a")
    same(h.call("snapshot", "create", "a", "still").returncode, 0, "of a suspended one")
    same(h.call("ps", "a").stdout.split()[1], b"SUSPENDED", "which stays so")
    same(h.call("start", "a").returncode, 0, "and goes on")
    goes_on(h, "a", 0)
    for pid in machines(h, "box"):
        os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + 20
    while h.call("ps", "box").stdout.split()[1] != b"TERMINATED" and time.monotonic() < until:
        time.sleep(0.1)
    r = h.call("snapshot", "create", "box", "dead")
    ok(r.returncode == 1 and b"--disk-only" in r.stderr, "of one that has ended: says what can be kept", r)
    same(h.call("snapshot", "create", "box", "dead", "--disk-only").returncode, 0, "and that is kept")
    h.call("snapshot", "rm", "dead", "still")


def machines(h, name):
    vm = json.loads(h.call("ps", name, "--json").stdout)
    ident = vm.get("id") or vm["sandboxes"][0]["id"]
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{pid}/cwd").endswith(ident):
                found.append(int(pid))
        except OSError:
            pass
    return found


def killed(h):
    for delay in (0.02, 0.15, 0.4):
        p = h.start("snapshot", "create", "a", "k")
        time.sleep(delay)
        p.kill()
        p.communicate()
        names = [s["name"] for s in snapshots(h)]
        if "k" in names:
            same(h.call("snapshot", "inspect", "k").returncode, 0, f"killed after {delay} s: it is whole")
            h.call("snapshot", "rm", "k")
        else:
            ok("k" not in kept(h), f"killed after {delay} s: there is none")
    until = time.monotonic() + 60
    while h.call("exec", "a", "true").returncode and time.monotonic() < until:
        time.sleep(0.5)
    same(h.call("exec", "a", "true").returncode, 0, "the sandbox runs on")
    for _ in range(100):  # a copy that nobody waits for is finished first
        r = h.call("snapshot", "create", "a", "k", "--disk-only")
        if r.returncode == 0:
            break
        time.sleep(0.2)
    ok(r.returncode == 0, "and the name is free", r)
    for path in glob.glob(store(h, ".new-*")):
        os.utime(path, (1, 1))
    h.call("snapshot", "create", "a", "k2", "--disk-only")
    same([x for x in kept(h) if x.startswith(".")], [], "what was half made is collected")
    h.call("snapshot", "rm", "k", "k2")


# --- what is refused ---
def tar(members):
    """MEMBERS: (name, bytes), or a TarInfo."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for name, data in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(data) if info.type == tarfile.REGTYPE else 0
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


def sum_of(data):
    d = hashlib.sha256()
    for at in range(0, len(data), 65536):
        if data[at:at + 65536].strip(b"\0"):
            d.update(at.to_bytes(8, "little") + data[at:at + 65536])
    d.update(len(data).to_bytes(8, "little"))
    return d.hexdigest()


def refusal(h, what, data, word, *options):
    before = kept(h)
    r = h.call("snapshot", "load", "-", "bad", *options, input=data)
    ok(r.returncode == 1 and len(one_line(r.stderr)) == 1 and word in r.stderr and r.stdout == b"",
       f"load refuses {what}", r.returncode, r.stderr)
    same(kept(h), before, f"{what}: nothing is left")


def interrupted(h, whole):
    """In the middle of a file, while it waits for more of it."""
    p = h.start("snapshot", "load", "-", "half", stdin=subprocess.PIPE)
    p.stdin.write(whole[:len(whole) // 2])
    p.stdin.flush()
    until = time.monotonic() + 30
    while not glob.glob(store(h, ".new-*", "*am")) and time.monotonic() < until:
        time.sleep(0.05)
    p.send_signal(signal.SIGTERM)
    same(p.wait(timeout=30), -signal.SIGTERM, "a signal ends a load that waits")
    p.stdin.close()
    same(kept(h), ["files", "two"], "and nothing of it is left")


def refused(h, file):
    with open(file, "rb") as f:
        whole = f.read()
    interrupted(h, whole)
    refusal(h, "half a file", whole[:len(whole) // 2], b"snapshot")
    refusal(h, "a file without its last byte", whole[:-1], b"snapshot")
    refusal(h, "nothing", b"", b"snapshot")
    refusal(h, "what is no tar", b"hello" * 1000, b"snapshot")
    refusal(h, "a changed byte", whole[:len(whole) // 2] + bytes([whole[len(whole) // 2] ^ 1]) + whole[len(whole) // 2 + 1:], b"")
    with open(store(h, "files", "disk.qcow2"), "rb") as f:
        disk = f.read()
    meta = json.loads(h.call("snapshot", "inspect", "files").stdout)

    def made(change=None, disk=disk, members=None):
        m = json.loads(json.dumps(meta))
        m["files"]["disk.qcow2"] = {"bytes": len(disk), "sum": sum_of(disk)}
        if change:
            change(m)
        return tar(members or [("snapshot.json", json.dumps(m).encode()), ("disk.qcow2", disk)])

    r = h.call("snapshot", "load", "-", "good", input=made())
    same((r.returncode, r.stdout), (0, b"loaded good\n"), "a plain tar by somebody else's hand is taken")
    h.call("snapshot", "rm", "good")

    def put(*path):
        def f(m):
            for key in path[:-2]:
                m = m[key]
            m[path[-2]] = path[-1]
        return f
    refusal(h, "another format", made(put("format", 2)), b"format 2")
    r = h.call("snapshot", "load", "-", "good", "--json", input=made(put("sandbox", "image", "tools:7")))
    same((r.returncode, json.loads(r.stdout)["image"]), (0, "base:1"), "an image is known by its content, not by its name")
    h.call("snapshot", "rm", "good")
    refusal(h, "another root file system", made(put("rootfs_sha256", "0" * 64)), b"root file system")

    def both(m):
        m["sandbox"]["image"], m["rootfs_sha256"] = "tools:7", "0" * 64
    refusal(h, "an image that is not here", made(both), b"tools:7")
    refusal(h, "a wrong checksum", made(put("files", "disk.qcow2", "sum", "0" * 64)), b"checksum")
    refusal(h, "a wrong length", made(put("files", "disk.qcow2", "bytes", len(disk) + 1)), b"length")
    refusal(h, "a name that is a path", made(put("name", "../x")), b"name")
    refusal(h, "an id that is a path", made(put("sandbox", "id", "../../x")), b"id")
    refusal(h, "a file too many", made(put("files", "ram", {"bytes": 1, "sum": "0" * 64})), b"ram")
    refusal(h, "a manifest of a megabyte", made(put("more", "x" * 1000000)), b"length")
    refusal(h, "no manifest", tar([("disk.qcow2", disk)]), b"snapshot.json")
    text = json.dumps({**meta, "files": {"disk.qcow2": {"bytes": len(disk), "sum": sum_of(disk)}}}).encode()
    refusal(h, "more behind it", tar([("snapshot.json", text), ("disk.qcow2", disk), ("x", b"x")]), b"belong")
    refusal(h, "no disk", tar([("snapshot.json", text)]), b"missing")
    refusal(h, "another name", tar([("snapshot.json", text), ("../../../x", disk)]), b"disk.qcow2")
    link = tarfile.TarInfo("disk.qcow2")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    refusal(h, "a link", tar([("snapshot.json", text), (link, b"")]), b"plain file")
    evil = bytearray(disk)
    evil[8:20] = (len(disk) - 16).to_bytes(8, "big") + (11).to_bytes(4, "big")
    evil[-16:-5] = b"/etc/passwd"
    refusal(h, "a disk with a backing file", made(disk=bytes(evil)), b"backing file")
    evil = bytearray(disk)
    evil[79] |= 4
    refusal(h, "a disk with a data file", made(disk=bytes(evil)), b"features")
    return misfits(h)


def misfits(h):
    """Of another QEMU, accelerator or CPU: known from the manifest, before anything is read."""
    full = json.loads(h.call("snapshot", "inspect", "two").stdout)
    for key, value, word in (("qemu", "QEMU emulator version 1.0", b"version 1.0"), ("accel", "kvm", b"accelerator"),
                             ("cpu_key", "0" * 32, b"CPU"), ("machine", "0" * 32, b"asb")):
        m = json.loads(json.dumps(full))
        if m["fit"][key] == value:
            value = "tcg"
        m["fit"][key] = value
        refusal(h, f"another {key}", tar([("snapshot.json", json.dumps(m).encode())]), word)
        path = store(h, "two", "snapshot.json")
        good = open(path, encoding="utf-8").read()
        with open(path, "w", encoding="utf-8") as f:
            json.dump(m, f)
        r = h.call("snapshot", "restore", "two", "x")
        ok(r.returncode == 1 and word in r.stderr and b"--disk-only" in r.stderr, f"restore refuses another {key}, and says what fits", r)
        with open(path, "w", encoding="utf-8") as f:
            f.write(good)
    same(h.call("ps", "x").returncode, 1, "no sandbox comes of it")


def damaged(h, file):
    """A byte of the memory that is not what it was: with and without a new time of change."""
    path = store(h, "two", "ram")
    st = os.stat(path)
    with open(path, "r+b") as f:
        f.seek(20000)
        byte = f.read(1)
        f.seek(20000)
        f.write(bytes([byte[0] ^ 1]))
    r = h.call("snapshot", "restore", "two", "x")
    ok(r.returncode == 1 and b"not what it was" in r.stderr, "restore refuses a memory that somebody wrote to", r)
    same([s["broken"] != "" for s in snapshots(h) if s["name"] == "two"], [True], "ls tells it")
    os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns))
    r = h.call("snapshot", "save", "two", file + ".bad")
    ok(r.returncode == 1 and b"damaged" in r.stderr and not glob.glob(file + ".bad*"), "save finds what only a checksum tells", r)


def no_space(h, file):
    if os.geteuid() != 0:
        ok(True, "a full disk # SKIP needs root to mount a small file system")
        return
    small = os.path.join(h.top, "small")
    os.makedirs(small)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", small], check=False).returncode:
        ok(True, "a full disk # SKIP cannot mount a small file system here")
        return
    try:
        r = h.call("snapshot", "load", file, env={"HOME": small})
        ok(r.returncode == 1 and b"space" in r.stderr, "load on a full disk fails and says so", r)
        same(glob.glob(os.path.join(small, ".agent_sandbox/local/snapshots/.*")) +
             glob.glob(os.path.join(small, ".agent_sandbox/local/snapshots/*")), [], "and nothing is left")
        r = h.call("snapshot", "save", "two", os.path.join(small, "x"))
        ok(r.returncode in (0, 1), "save there")
        filler = os.path.join(small, "filler")
        with open(filler, "wb") as f:
            try:
                f.write(b"x" * (20 << 20))
            except OSError:
                pass
        r = h.call("snapshot", "save", "two", os.path.join(small, "y"))
        ok(r.returncode == 1 and b"space" in r.stderr and not glob.glob(os.path.join(small, "y*")),
           "save to a full disk fails, and no part of it stays", r)
    finally:
        subprocess.run(["umount", "-l", small], check=False)


def full_store(h):
    """The folder of snapshots on a small file system of its own would need another link for memory: so fill ours."""
    if not os.path.ismount(h.path):
        ok(True, "create on a full disk # SKIP needs root to mount a small file system")
        return
    filler = os.path.join(h.path, "filler")
    st = os.statvfs(h.path)
    with open(filler, "wb") as f:  # the guest's own writes must not fail: then it would not run on
        os.posix_fallocate(f.fileno(), 0, st.f_bavail * st.f_frsize - (4 << 20))
    before = kept(h)
    r = h.call("snapshot", "create", "a", "toobig")
    ok(r.returncode == 1 and b"space" in r.stderr.lower(), "create on a full disk fails and says so", r)
    os.unlink(filler)
    same(kept(h), before, "nothing of it is left")
    same(h.call("exec", "a", "cat", "/dev/shm/marker").stdout, b"memory\n", "and the sandbox runs on")


with Home() as home:
    mounted = os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700m", "tmpfs", home.path],
                                                    check=False, capture_output=True).returncode == 0
    try:
        create(home)
        restore(home)
        disk_only(home)
        saved_file = there_and_back(home)
        other_states(home)
        killed(home)
        full_store(home)
        refused(home, saved_file)
        no_space(home, saved_file)
        damaged(home, saved_file)
        home.call("snapshot", "rm", "two", "files")
        same(kept(home), [], "no snapshot is left")
        home.call("rm", "a", "box")
        same(home.left(), [], "nothing is left")
    finally:
        if mounted:
            home.call("rm", "-f", *home.call("ls", "-q").stdout.decode().split() or ["none"])
            subprocess.run(["umount", "-l", home.path], check=False)
done()
