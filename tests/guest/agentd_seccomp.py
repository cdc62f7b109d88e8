#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 600
# VARIANTS: sanitized
"""Confinement: every line of agentd/seccomp/rules.h, in the filters of both architectures and in the kernel; what must go on
working under `default`; what `restricted` takes away; what happens where the kernel cannot."""
import errno
import os
import platform
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

from _agentd import TOP, Agentd, done, equal, ok, skip, until

GEN = os.path.join(TOP, "build", "gen")
NATIVE = platform.machine()
tmp = tempfile.mkdtemp(prefix="agentd-seccomp-")
os.chmod(tmp, 0o755)


# --- the table ---
class Rule:
    def __init__(self, words):
        self.profile, self.call = words[:2]
        self.nr = dict(zip(("x86_64", "i386", "aarch64", "arm"), map(int, words[2:6])))
        if self.profile != "worker":
            self.when, self.arg, self.mask, self.value, self.errno, self.quiet = words[6], *map(int, words[7:12])

    def inside(self, profile):
        return self.profile == "both" or self.profile == profile

    def matches(self, args):
        if self.when == "always":
            return True
        if self.when == "bits":
            return args[self.arg] & self.mask == self.value
        return args[self.arg] > self.value

    def arguments(self):
        """Arguments that the rule denies, and with which the call fails or does nothing where it is allowed."""
        args = [2**64 - 1] * 6
        if self.when != "always":
            args[self.arg] = self.value + (self.when == "above")
        if self.call == "clone":
            args[0] |= 0x10000  # CLONE_THREAD without CLONE_SIGHAND is EINVAL
        if self.call == "unshare" and self.when != "always":
            args[0] |= 1
        return args


lines = [Rule(l.split()) for l in subprocess.check_output([GEN + "/seccomp-gen", "rules"], text=True).splitlines()]
rules = [r for r in lines if r.profile != "worker"]
worker = [r for r in lines if r.profile == "worker"]


# --- the filters, by a model of the kernel's machine (linux/filter.h) ---
AUDIT = {"x86_64": 0xC000003E, "i386": 0x40000003, "aarch64": 0xC00000B7, "arm": 0x40000028}
ALLOW, KILL, COUNTED = 0x7FFF0000, 0x80000000, 0x800  # COUNTED: see agentd/seccomp/gen.c


def error(number):
    return 0x50000 | number


def filters(arch):
    text = open(f"{GEN}/seccomp_{arch}.h", encoding="ascii").read()
    return {name: [tuple(int(v, 0) for v in line.split(",")) for line in re.findall(r"\{ (0x.*?) \}", body)]
            for name, body in re.findall(r"struct sock_filter (\w+)\[\d+\] = \{(.*?)\n\};", text, re.S)}


def run_bpf(code, abi, nr, args):
    data = struct.pack("<IIQ6Q", nr, AUDIT[abi], 0, *args)
    at = acc = 0
    while True:
        op, jt, jf, k = code[at]
        at += 1
        if op == 0x20:
            acc = struct.unpack_from("<I", data, k)[0]
        elif op == 0x54:
            acc &= k
        elif op == 0x05:
            at += k
        elif op == 0x06:
            return k
        else:
            at += jt if {0x15: acc == k, 0x25: acc > k, 0x35: acc >= k, 0x45: acc & k != 0}[op] else jf


def expected(profile, abi, nr, args):
    answers = {error(r.errno | (0 if r.quiet else COUNTED))
               for r in rules if r.inside(profile) and r.nr[abi] == nr and r.matches(args)}
    assert len(answers) < 2, (abi, nr, answers)
    return answers.pop() if answers else ALLOW


def argument_sets():
    """What each rule looks for, and what stands beside it."""
    sets = {(0,) * 6, (2**64 - 1,) * 6}
    for r in rules:
        if r.when != "always":
            for v in (r.value, r.value + 1, r.value - 1, r.value | 1 << 32, r.value << 32):
                sets.add(tuple(v if i == r.arg else 0 for i in range(6)))
    return sets


def test_filters(arch, compat):
    table = filters(arch)
    sets = argument_sets()
    for profile in ("default", "restricted"):
        code = table["filter_" + profile]
        abis = [arch, compat] if profile == "default" else [arch]
        wrong = [(abi, nr, args) for abi in abis for nr in range(700) for args in sets
                 if run_bpf(code, abi, nr, args) != expected(profile, abi, nr, args)]
        equal(wrong[:3], [], f"{arch}: {profile} is what the table says")
        foreign = {run_bpf(code, abi, nr, (0,) * 6) for abi in AUDIT if abi not in abis for nr in range(700)}
        if arch == "x86_64":
            foreign |= {run_bpf(code, arch, 1 << 30 | nr, (0,) * 6) for nr in range(700)}
        equal(foreign, {error(1 | COUNTED)}, f"{arch}: {profile}: no other ABI, x32 neither")
    allowed = {r.nr[arch] for r in worker}
    code = table["filter_worker"]
    wrong = [nr for nr in range(700) if run_bpf(code, arch, nr, (0,) * 6) != (ALLOW if nr in allowed else error(1))]
    equal(wrong, [], f"{arch}: worker is what the table says")
    equal(run_bpf(code, compat, 1, (0,) * 6), KILL, f"{arch}: a worker that calls another ABI is killed")


test_filters("x86_64", "i386")
test_filters("aarch64", "arm")
manual = open(os.path.join(TOP, "docs", "security-model.md"), encoding="utf-8").read()
lists = subprocess.check_output([GEN + "/seccomp-gen", "doc"], text=True)
ok(lists in manual, "docs/security-model.md holds what build/gen/seccomp-gen doc prints")


# --- the kernel ---
def run(a, argv, profile=None, **more):
    """(exit code, stdout, stderr) of a native exec"""
    run.n += 1
    name = f"c{run.n}"
    if profile:
        more["seccomp"] = profile
    if isinstance(argv, str):
        argv = ["sh", "-c", argv]
    status, body = a.put(name, argv=argv, **more)
    if status != 201:
        return status, b"", body["detail"].encode()
    out, err, events = a.output(name)
    return events[-1]["exit_code"], out, err


run.n = 0


def denials(a):
    """{(profile, call): n}"""
    return {(d["profile"], d["call"]): d["count"] for d in a.json("GET", "/v1/metrics")[1]["seccomp_denials"]}


def word(abi, nr, args):
    return {"x86_64": "n", "aarch64": "n", "i386": "i", "x32": "x"}[abi] + ",".join(hex(v) for v in (nr, *args))


def results(a, profile, words, **more):
    code, out, err = run(a, [calls, *words], profile, **more)
    return [int(l) for l in out.split()] if code == 0 else [code, err]


calls = os.path.join(tmp, "calls")
built = subprocess.run([f"{TOP}/build/deps/bin/{NATIVE}-musl-cc", "-O1", "-fPIE", "-static-pie",
                        os.path.join(TOP, "tests/guest/_calls.c"), "-o", calls])
a = Agentd()
info = a.json("GET", "/v1/info")[1]["seccomp"]
if not info["default"] or built.returncode:
    skip("the kernel's side", f"{info}, compiler: {built.returncode}")
    a.stop()
    shutil.rmtree(tmp)
    done()


def test_rules():
    abis = [NATIVE]
    if NATIVE == "x86_64" and results(a, "none", [word("i386", 20, [])]) == [0]:
        abis.append("i386")
    else:
        skip("32-bit calls", "this kernel has none")
    for profile in ("default", "restricted"):
        for abi in abis if profile == "default" else abis[:1]:
            mine = [r for r in rules if r.inside(profile) and r.nr[abi] >= 0]
            before = denials(a)
            got = results(a, profile, [word(abi, r.nr[abi], r.arguments()) for r in mine])
            wrong = [(r.call, r.value, g) for r, g in zip(mine, got) if g != r.errno]
            ok(len(got) == len(mine) and not wrong, f"{profile}: {len(mine)} calls are denied ({abi})", wrong or got)
            after = denials(a)
            want = {}
            for r in mine:
                if not r.quiet:
                    want[(profile, r.call)] = want.get((profile, r.call), 0) + 1
            equal({k: v - before.get(k, 0) for k, v in after.items() if v != before.get(k, 0)}, want,
                  f"{profile}: each is counted once under its name ({abi})")
    text = a.request("GET", "/v1/metrics?format=prometheus")[1].decode()
    ok(f'asb_seccomp_denials_total{{profile="default",call="keyctl"}} {denials(a)["default", "keyctl"]}\n' in text,
       "Prometheus is told, too", text[-500:])
    mine = [r for r in rules if r.nr[NATIVE] >= 0]
    got = results(a, "none", [word(NATIVE, r.nr[NATIVE], r.arguments()) for r in mine])
    got = [-1 if r.call == "modify_ldt" else g for r, g in zip(mine, got)]  # its ENOSYS is no error to a C library
    same = {r.call for r, g in zip(mine, got) if g == r.errno}
    ok(len(got) == len(mine) and 0 not in got and len(same) < len(mine) / 4,
       f"none: the kernel answers otherwise (the same only: {' '.join(sorted(same))})", got)
    if NATIVE == "x86_64":
        getpid = [word("x32", 39, []), word("i386", 20, [])]
        equal(results(a, "default", getpid[:1]), [1], "default: x32 is denied")
        equal(denials(a).get(("default", "foreign-abi")), 1, "and counted")
        equal(results(a, "restricted", getpid[:len(abis)]), [1] * len(abis), "restricted: x32 is denied, i386 too")


def test_interface():
    equal(info["restricted"], True, "info: restricted")
    for profile in ("default", "restricted", "none"):
        name = "p-" + profile
        status, body = a.put(name, argv=["true"], seccomp=profile)
        equal((status, body.get("seccomp")), (201, profile), f"{profile} is reported by the start")
        equal(a.json("GET", f"/v1/execs/{name}")[1]["seccomp"], profile, "and later")
    equal(a.put("p-absent", argv=["true"])[1]["seccomp"], "default", "without the member it is default")
    for bad in ("Default", "", "strict", 1, True, [], {}):
        status, body = a.put("p-bad", argv=["true"], seccomp=bad)
        ok(status == 400 and "seccomp" in body["detail"], f"{bad!r} is 400 and names the member", (status, body))
    status, body = a.exec(calls, [word(NATIVE, r.nr[NATIVE], r.arguments()) for r in rules if r.call == "keyctl"])
    equal((status, body["stdout"]), (200, b"38\n"), "compatible: default, too")
    code, out, _ = run(a, "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status | tr -d '\\n'")
    equal(out, b"NoNewPrivs:\t0Seccomp:\t2", "default: a filter, and no no_new_privs")
    code, out, _ = run(a, "grep -E '^(Seccomp|NoNewPrivs):' /proc/self/status | tr -d '\\n'", "none")
    equal(out, b"NoNewPrivs:\t0Seccomp:\t0", "none: no filter")
    code, out, _ = run(a, "ls /proc/self/fd", "default")
    equal(out, b"0\n1\n2\n3\n", "no descriptor of the listener stays with the command")
    code, out, err = run(a, ["/nonexistent"], "default")
    equal(code, 404, "what cannot be started is told as ever")


# --- default: what must go on working ---
GCC = r"""cd "$D" && printf '#include <pthread.h>\n#include <stdio.h>\nvoid *f(void *p) { return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_join(t, 0); puts("compiled"); }\n' >a.c &&
gcc -pthread -O2 a.c -o a.out && ./a.out"""
GIT = """cd "$D" && git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one &&
git clone -q . ../s && git -C ../s log --oneline | wc -l"""
PYTHON = ["python3", "-c", """
import threading, subprocess, multiprocessing, socket, tempfile
n = []
ts = [threading.Thread(target=n.append, args=(i,)) for i in range(50)]
[t.start() for t in ts]; [t.join() for t in ts]
p = multiprocessing.get_context('fork').Pool(2); assert p.map(abs, [-1, -2]) == [1, 2]; p.close(); p.join()
assert subprocess.check_output(['echo', 'x']) == b'x\\n'
socket.create_server(('127.0.0.1', 0)).close()
print(len(n))"""]
NODE = ["node", "-e", """
const { Worker } = require('worker_threads'), cp = require('child_process'), fs = require('fs'), net = require('net');
fs.promises.readFile('/proc/self/status').then(() => new Worker('require("worker_threads").parentPort.postMessage(42)',
  { eval: true }).on('message', m => net.createServer().listen(0, '127.0.0.1', function () {
  this.close(); console.log(m, cp.execFileSync('echo', ['x']).toString().trim()); })));"""]
UNSHARE = """unshare --user --map-root-user --mount --pid --uts --ipc --net --cgroup --fork --mount-proc sh -c '
mount -t tmpfs none /mnt && hostname inside && echo $$ && hostname'"""
PIVOT = """unshare --mount --fork sh -c 'mount -t tmpfs none /mnt && mkdir /mnt/old /mnt/bin /mnt/proc && mount -t proc proc /mnt/proc &&
umount /mnt/proc && cp "$CALLS" /mnt/bin/calls && cd /mnt && pivot_root . old && exec /bin/calls n39'"""
DEB = """cd "$D" && mkdir -p pkg/DEBIAN pkg/usr/share/asb-test repo root/var/lib/dpkg/info root/var/lib/dpkg/updates st/lists/partial \
ca/archives/partial etc && echo hello >pkg/usr/share/asb-test/file && touch root/var/lib/dpkg/status root/var/lib/dpkg/available &&
printf 'Package: asb-test\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@b>\\nDescription: test\\n' >pkg/DEBIAN/control &&
dpkg-deb --build pkg repo/asb-test_1_all.deb >/dev/null && cd repo && { cat ../pkg/DEBIAN/control
echo Filename: ./asb-test_1_all.deb; echo Size: $(stat -c %s *.deb); echo SHA256: $(sha256sum <asb-test_1_all.deb | cut -d' ' -f1); } \
>Packages && cd .. && echo "deb [trusted=yes] file:$D/repo ./" >etc/sources.list &&
{ id _apt >/dev/null 2>&1 && chown -R _apt st ca; chmod 755 . repo; } &&
apt() { apt-get -qq -o Dir::State="$D/st" -o Dir::State::status="$D/root/var/lib/dpkg/status" -o Dir::Cache="$D/ca" \
-o Dir::Etc::sourcelist="$D/etc/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Debug::NoLocking=1 "$@"; } &&
apt update && apt -s install asb-test | grep -c '^Inst asb-test' &&
apt -y -o Dpkg::Options::=--root="$D/root" -o Dpkg::Use-Pty=0 install asb-test >/dev/null && cat root/usr/share/asb-test/file"""
TOOLS = [
    ("gcc", ["gcc"], GCC, b"compiled\n"),
    ("git", ["git"], GIT, b"1\n"),
    ("python3 with threads", ["python3"], PYTHON, b"50\n"),
    ("node", ["node"], NODE, b"42 x\n"),
    ("unshare", ["unshare"], UNSHARE, b"1\ninside\n"),
    ("a container by hand: mount, pivot_root, umount", ["unshare", "pivot_root"], PIVOT, b"0\n"),
    ("apt-get and dpkg", ["apt-get", "dpkg-deb"], DEB, b"1\nhello\n"),
    ("su", ["su"], "su -s /bin/sh nobody -c 'id -un'", b"nobody\n"),
    ("strace", ["strace"], "strace -f -e trace=none sh -c 'true; echo traced'", b"traced\n"),
    ("gdb", ["gdb"], "gdb -q -batch -ex run -ex bt /bin/true 2>&1 | grep -c 'exited normally'", b"1\n"),
    ("bwrap", ["bwrap"], "bwrap --dev-bind / / --unshare-all echo inside", b"inside\n"),
    ("setarch", ["setarch"], "setarch -R echo personality", b"personality\n"),
]


def test_tools():
    for i, (name, needs, argv, want) in enumerate(TOOLS):
        missing = [n for n in needs if not shutil.which(n)]
        if missing:
            skip(f"default: {name}", f"no {' '.join(missing)} here")
            continue
        folder = os.path.join(tmp, f"tool{i}")
        os.mkdir(folder)
        env = {"D": folder, "HOME": folder, "CALLS": calls}
        if isinstance(argv, str):
            argv = ["bash", "-c", argv]
        bare = run(a, argv, "none", env=env)
        shutil.rmtree(folder)
        os.mkdir(folder)
        if bare[:2] != (0, want):
            skip(f"default: {name}", f"does not work without a filter either: {bare[2][-200:]}")
            continue
        got = run(a, argv, "default", env=env)
        ok(got[:2] == (0, want), f"default: {name}", got)


def test_sudo():
    """What sudo needs: a set-user-ID program gains its owner's rights under default, and not under restricted."""
    suid = os.path.join(tmp, "suid")
    shutil.copy(shutil.which("id"), suid)
    os.chmod(suid, 0o4755)
    equal(run(a, [suid, "-u"], "default", user="65534")[1], b"0\n", "default: a set-user-ID program gains")
    equal(run(a, [suid, "-u"], "restricted", user="65534")[1], b"65534\n", "restricted: it does not")
    os.unlink(suid)


def test_restricted():
    code, out, _ = run(a, "grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status", "restricted")
    status = dict(l.split(":\t") for l in out.decode().splitlines())
    keep = sum(1 << c for c in (0, 1, 3, 4, 5, 6, 7, 10))
    for name in ("CapPrm", "CapEff", "CapBnd"):
        equal(int(status[name], 16) & ~keep, 0, f"restricted: {name} is within the small set")
    equal((int(status["CapInh"], 16), int(status["CapAmb"], 16), status["NoNewPrivs"], status["Seccomp"]), (0, 0, "1", "2"),
          "restricted: nothing to inherit, no_new_privs, a filter")
    code, out, _ = run(a, "grep -E '^Cap' /proc/self/status", "restricted", user="65534:65534")
    equal({int(l.split()[1], 16) & ~keep for l in out.decode().splitlines()}, {0}, "restricted: another user, too")
    code, out, _ = run(a, "grep -E '^Cap(Prm|Eff)' /proc/self/status", "restricted", user="65534")
    equal({int(l.split()[1], 16) for l in out.decode().splitlines()}, {0}, "restricted: who is not root has none")
    for what, script in (("mount", "mount -t tmpfs none /mnt"), ("unshare", "unshare --user true"), ("chroot", "chroot / true"),
                         ("a device", f"mknod {tmp}/dev c 1 3"), ("the host name", "hostname other"),
                         ("the kernel's log", "dmesg"), ("agentd's memory", f"head -c1 /proc/{a.pid}/mem"),
                         ("the environment of agentd", f"cat /proc/{a.pid}/environ")):
        if not shutil.which(script.split()[0]):
            skip(f"restricted: {what}", f"no {script.split()[0]} here")
            continue
        code, out, err = run(a, script, "restricted")
        ok(code not in (0, 126, 127), f"restricted: {what} is refused", (code, out, err))
    code, out, err = run(a, PYTHON, "restricted")
    equal((code, out), (0, b"50\n"), "restricted: python3 with threads works")
    if shutil.which("gcc"):
        folder = os.path.join(tmp, "restricted")
        os.mkdir(folder)
        code, out, err = run(a, GCC, "restricted", env={"D": folder})
        ok((code, out) == (0, b"compiled\n"), "restricted: gcc works", (code, out, err))
    code, out, err = run(a, f"cd {tmp} && touch own && chown 65534 own && chmod 600 own && stat -c %u own", "restricted")
    equal(out, b"65534\n", "restricted: root may give files away")


def test_flood():
    nr = next(r.nr[NATIVE] for r in rules if r.call == "acct")
    loop = f"while :; do {calls} {' '.join([f'n{nr}'] * 500)} >/dev/null; done"
    for i in range(4):
        a.put(f"flood{i}", shell=loop)
    until(lambda: a.json("GET", "/v1/execs/flood3")[1]["state"] == "running", 5)
    time.sleep(0.5)
    begun = time.monotonic()
    for _ in range(20):
        status, body = a.exec(calls, [f"n{nr}"], timeout=20)
        if (status, body.get("stdout")) != (200, b"1\n"):
            break
    ok((status, body.get("stdout")) == (200, b"1\n"), "during a flood another command's denial is answered", (status, body))
    ok(time.monotonic() - begun < 60, "in time")
    equal(a.json("GET", "/healthz")[0], 200, "and so are requests")
    for i in range(4):
        a.json("DELETE", f"/v1/execs/flood{i}?kill=1")
    ok(until(lambda: a.json("GET", "/v1/info")[1]["execs"] == 0), "it can be ended")


def test_left_behind():
    """A background process outlives its exec, and its denials are still answered; then nothing is left."""
    fds = a.fds()
    nr = next(r.nr[NATIVE] for r in rules if r.call == "acct")
    run(a, f"(sleep 1; {calls} n{nr} >{tmp}/late) >/dev/null 2>&1 & exit 0")
    a.json("DELETE", f"/v1/execs/c{run.n}")
    late = os.path.join(tmp, "late")
    ok(until(lambda: os.path.exists(late) and open(late).read() == "1\n"), "a background process is answered later, too")
    for _ in range(30):
        run(a, ["true"])
    ok(until(lambda: a.fds() <= fds), "no descriptor stays", (a.fds(), fds))


def test_death():
    """When agentd dies, what it would have denied stays denied, as ENOSYS."""
    b = Agentd()
    nr = next(r.nr[NATIVE] for r in rules if r.call == "acct")
    go, out = os.path.join(tmp, "go"), os.path.join(tmp, "orphan")
    b.put("x", shell=f"trap '' TERM; while ! [ -e {go} ]; do sleep 0.05; done; {calls} n{nr} n39 >{out}.new; mv {out}.new {out}", cwd="/")
    b.stop(signal.SIGKILL)
    open(go, "w").close()
    ok(until(lambda: os.path.exists(out)) and open(out).read() == "38\n0\n", "after agentd's death denied calls are ENOSYS",
       os.path.exists(out) and open(out).read())


def test_without_rights():
    """Fail closed: explicit wishes are refused where they cannot be met."""
    if not shutil.which("setpriv"):
        skip("agentd without CAP_SYS_ADMIN", "no setpriv here")
        return
    for name, prefix in (("without CAP_SYS_ADMIN", ["setpriv", "--bounding-set=-sys_admin"]),
                         ("as nobody", ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])):
        folder = tempfile.mkdtemp(dir=tmp)
        os.chown(folder, 65534, 65534)
        b = Agentd(prefix=prefix, env={"HOME": "/", "AGENTD_SOCKET": folder + "/socket"}, stderr=subprocess.DEVNULL)
        i = b.json("GET", "/v1/info")[1]["seccomp"]
        equal((i["default"], i["restricted"]), (False, True), f"agentd {name}: info")
        status, body = b.put("d", argv=["true"], seccomp="default")
        ok(status == 400 and "seccomp" in body["detail"] and "CAP_SYS_ADMIN" in body["detail"],
           f"agentd {name}: default is refused with its reason", (status, body))
        equal(b.json("GET", "/v1/execs/d")[0], 404, "and nothing has run")
        equal(b.put("i", argv=["true"])[1]["seccomp"], "none", "what asks for nothing runs, and says that it is not confined")
        nr = next(r.nr[NATIVE] for r in rules if r.call == "setns")
        code, out, err = run(b, [calls, f"n{nr}"], "restricted")
        ok((code, out) == (0, b"1\n"), f"agentd {name}: restricted works", (code, out, err))
        b.stop()
    b = Agentd(prefix=["setpriv", "--no-new-privs"])
    i = b.json("GET", "/v1/info")[1]["seccomp"]
    equal(i["default"], True, "agentd under no_new_privs: default is possible again")
    b.stop()


def test_nested():
    """agentd below agentd: the outer filter has the listener, so the inner denials are not counted, but denied."""
    code, out, err = run(a, ["python3", "-c", f"""
import sys
sys.path.insert(0, {os.path.join(TOP, 'tests/guest')!r})
from _agentd import Agentd
a = Agentd()
print(a.json('GET', '/v1/info')[1]['seccomp'])
print(a.exec({calls!r}, ['n{next(r.nr[NATIVE] for r in rules if r.call == "acct")}'])[1]['stdout'])
a.stop()"""], "default", env={k: v for k, v in os.environ.items() if k == "ASB_BIN_DIR"})
    ok(out.splitlines() == [b"{'default': True, 'restricted': True, 'counted': False}", b"b'1\\n'"],
       "agentd below agentd: denied and not counted", (out, err))


def test_qemu():
    qemu, binary = shutil.which("qemu-aarch64-static"), os.path.join(TOP, "build/aarch64/bin/agentd")
    if NATIVE == "aarch64" or not qemu or not os.path.exists(binary):
        skip("a kernel without seccomp", "no qemu-aarch64-static, or no agentd for it")
        return
    import _agentd
    native, _agentd.BIN = _agentd.BIN, binary
    b = Agentd(prefix=[qemu], stderr=subprocess.DEVNULL)
    _agentd.BIN = native
    equal(b.json("GET", "/v1/info")[1]["seccomp"], {"default": False, "restricted": False, "counted": False},
          "a kernel without seccomp: info")
    for profile in ("default", "restricted"):
        status, body = b.put("d", argv=["true"], seccomp=profile)
        ok(status == 400 and "seccomp" in body["detail"], f"{profile} is refused", (status, body))
    equal(b.put("i", argv=["true"])[1]["seccomp"], "none", "what asks for nothing runs")
    b.stop()


def test_worker():
    """The filter of a worker at work: it sends an archive to a client that does not read."""
    with socket.create_connection(("127.0.0.1", a.port)) as s:
        s.sendall(b"GET /v1/archive?path=/usr HTTP/1.1\r\nHost: x\r\n\r\n")
        found = []

        def look():
            for d in os.listdir("/proc"):
                try:
                    with open(f"/proc/{d}/cmdline", "rb") as f, open(f"/proc/{d}/status", encoding="ascii") as g:
                        status = dict(l.split(":\t") for l in g.read().splitlines() if ":\t" in l)
                        if f.read().startswith(b"agentd-worker") and int(status["PPid"]) == a.pid:
                            found[:] = [status]
                except (OSError, ValueError):
                    pass
            return found and found[0]["Seccomp"] == "2"

        ok(until(look), "a worker has a filter", found)
        files = sum(1 << c for c in (0, 1, 2, 3, 4))
        equal([int(found[0][n], 16) & ~files for n in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb")], [0] * 5,
              "and capabilities for files only")
        equal(found[0]["NoNewPrivs"], "1", "and no_new_privs")


def test_own():
    with open(f"/proc/{a.pid}/status", encoding="ascii") as f:
        caps = dict(l.split(":\t") for l in f.read().splitlines() if l.startswith("Cap"))
    own = sum(1 << c for c in (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 19, 21, 23, 24))
    equal(int(caps["CapEff"], 16) & ~own, 0, "agentd's effective capabilities are what it uses")
    code, out, _ = run(a, "grep CapEff /proc/self/status", "none")
    mine = [l.split()[1] for l in open("/proc/self/status") if l.startswith("CapEff")]
    equal(out.split()[1].decode(), mine[0], "a command has what agentd was given")


test_interface()
test_rules()
test_tools()
test_sudo()
test_restricted()
test_left_behind()
test_flood()
test_death()
test_without_rights()
test_nested()
test_qemu()
test_worker()
test_own()
equal(a.stop(), 0, "agentd ends well")
shutil.rmtree(tmp, ignore_errors=True)
done()
