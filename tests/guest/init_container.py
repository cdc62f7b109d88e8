#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 600
"""asb-init as the entry point of a container: as PID 1 of a namespace and as a plain process."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

from _agentd import TOP, done, equal, free_port, ok, skip, until

SOURCE = os.environ.get("ASB_BIN_DIR") or os.path.join(TOP, "build", "x86_64", "bin")
BIN = tempfile.mkdtemp(prefix="init-test-bin-")  # a copy: the build may go on meanwhile
for program in ("asb-init", "agentd", "asb-hooks"):
    shutil.copy(os.path.join(SOURCE, program), BIN)
INIT = os.path.join(BIN, "asb-init")
PID1 = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "--uts"]
dirs = [BIN]


def env(**more):
    d = tempfile.mkdtemp(prefix="init-test-")
    dirs.append(d)
    return {"PATH": "/usr/bin:/bin", "AGENTD_PORT": str(free_port()), "AGENTD_HOOK_PORT": str(free_port()),
            "AGENTD_BIND": "127.0.0.1", "AGENTD_SOCKET": d + "/agentd.sock", "AGENTD_IDENTITY_PATH": d + "/identity", "ASB_ETC": d,
            **more}


def run(argv, prefix=(), timeout=60, **kw):
    e = kw.pop("env", None) or env()
    return subprocess.run([*prefix, INIT, *argv], env=e, stdin=kw.pop("stdin", subprocess.DEVNULL), capture_output=True,
                          timeout=timeout, **kw)


def start(argv, prefix=(), e=None, **kw):
    return subprocess.Popen([*prefix, INIT, *argv], env=e or env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **kw)


def healthz(e):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{e['AGENTD_PORT']}/healthz", timeout=2) as r:
            return r.status == 200
    except OSError:
        return False


def hook(e, which):
    req = urllib.request.Request(f"http://127.0.0.1:{e['AGENTD_HOOK_PORT']}/aws/lambda-microvms/runtime/v1/{which}", b"")
    try:
        with urllib.request.urlopen(req, timeout=15) as r:
            return r.status
    except OSError:
        return 0


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def name(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return re.search(r"\((.*)\)", f.read()).group(1)
    except OSError:
        return ""


def state(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def child_named(pid, want):
    return next((c for c in children(pid) if name(c) == want), 0)


def alive(marker):
    """Processes, zombies aside, that have MARKER in their command line."""
    found = []
    for p in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{p}/cmdline", "rb") as f:
                if marker.encode() in f.read() and int(p) != os.getpid() and state(p) not in ("Z", ""):
                    found.append(int(p))
        except OSError:
            pass
    return found


def test_usage():
    r = run(["--version"])
    ok(r.returncode == 0 and r.stdout.startswith(b"asb-init "), "--version", r)
    r = run(["--help"])
    ok(r.returncode == 0 and b"usage:" in r.stdout, "--help", r)
    r = run(["sh"])
    ok(r.returncode == 125 and b"usage:" in r.stderr, "a command without -- is a usage error", r)


def test_codes(prefix, kind):
    e = env()
    bad = []
    for n in range(256):
        r = run(["--", "sh", "-c", f"exit {n}"], prefix, env=e)
        if r.returncode != n:
            bad.append((n, r.returncode, r.stderr))
    equal(bad, [], f"{kind}: all 256 exit codes")
    bad = []
    quiet = {signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN,
             signal.SIGTTOU}
    for n in range(1, 32):
        if n in quiet:
            continue
        r = run(["--", "sh", "-c", f"ulimit -c 0; kill -{n} $$"], prefix, env=e)
        if r.returncode != 128 + n:
            bad.append((n, r.returncode))
    equal(bad, [], f"{kind}: a death by each signal is 128 + n")


def test_start(prefix, kind):
    r = run(["--", "/nonesuch"], prefix)
    ok(r.returncode == 127 and b"/nonesuch" in r.stderr, f"{kind}: not found is 127 and named", r)
    r = run(["--", "/etc/passwd"], prefix)
    ok(r.returncode == 126 and b"/etc/passwd" in r.stderr, f"{kind}: not executable is 126 and named", r)
    r = run(["--", "cat"], prefix, stdin=None, input=b"a\n\nb")
    equal((r.returncode, r.stdout), (0, b"a\n\nb"), f"{kind}: stdin and stdout are the command's")
    r = run(["--", "sh", "-c", "echo $FOO$ASB_NOTIFY_FD$ASB_INIT_ID"], prefix, env=env(FOO="bar"))
    equal(r.stdout, b"bar\n", f"{kind}: the command has the container's environment, and nothing of ours")
    r = run(["--", "sh", "-c", "ls /proc/self/fd | wc -l"], prefix)
    equal(r.stdout.strip(), b"4", f"{kind}: the command inherits no descriptor of ours (0, 1, 2 and ls's own)")
    r = run(["--", "sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status"], prefix)
    ok(len(re.findall(rb"\t0000000000000000", r.stdout)) == 2, f"{kind}: and no blocked or ignored signal", r.stdout)


def init_pid(p, prefix):
    """The process id of asb-init seen from here: with unshare --fork, it is unshare's child."""
    if not prefix:
        return p.pid
    until(lambda: children(p.pid) and name(children(p.pid)[0]) == "asb-init")
    return children(p.pid)[0]


def test_term(prefix, kind):
    p = start(["--", "sh", "-c", "trap 'echo got it; exit 3' TERM; echo up; while :; do sleep 0.05; done"], prefix)
    p.stdout.readline()
    os.kill(init_pid(p, prefix), signal.SIGTERM)
    out, _ = p.communicate(timeout=30)
    equal((p.returncode, out), (3, b"got it\n"), f"{kind}: TERM reaches the command, whose status counts")
    p = start(["--", "sh", "-c", "trap 'exit 4' INT; echo up; while :; do sleep 0.05; done"], prefix)
    p.stdout.readline()
    os.kill(init_pid(p, prefix), signal.SIGINT)
    p.communicate(timeout=30)
    equal(p.returncode, 4, f"{kind}: so does INT")
    p = start(["--", "sh", "-c", "trap 'echo one' USR1; echo up; while :; do sleep 0.05; done"], prefix)
    p.stdout.readline()
    pid = init_pid(p, prefix)
    os.kill(pid, signal.SIGUSR1)
    equal(p.stdout.readline(), b"one\n", f"{kind}: USR1 is passed on and ends nothing")
    os.kill(pid, signal.SIGTERM)
    p.communicate(timeout=30)
    equal(p.returncode, 143, f"{kind}: and TERM without a trap is 143")


def test_stubborn(prefix, kind):
    mark = f"stubborn-{os.getpid()}-{kind.replace(' ', '')}"
    p = start(["--", "sh", "-c", f"trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' {mark} & "
               f"echo up; while :; do sleep 0.05; done", mark], prefix)
    p.stdout.readline()
    ok(len(alive(mark)) >= 2, f"{kind}: a command and its daemon that ignore TERM")
    os.kill(init_pid(p, prefix), signal.SIGTERM)
    p.communicate(timeout=60)
    equal(p.returncode, 137, f"{kind}: are killed when the grace is over")
    equal(alive(mark), [], f"{kind}: and nothing is left")


def test_orphans(prefix, kind):
    script = r"""
        i=0; while [ $i -lt 100 ]; do
            sh -c 'for j in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do (sleep 0.01 &) ; done'
            i=$((i + 1))
        done
        sleep 2
        grep -hs '^State:' /proc/[0-9]*/status | grep -c Z
        exit 0"""
    r = run(["--", "sh", "-c", script], prefix, timeout=200)
    zombies = r.stdout.strip()
    if prefix:
        equal(zombies, b"0", f"{kind}: 2000 orphans leave no zombie")
    else:
        equal(r.returncode, 0, f"{kind}: 2000 orphans")


def test_restart(prefix, kind):
    e = env()
    p = start(["--", "sleep", "1000"], prefix, e)
    pid = init_pid(p, prefix)
    ok(until(lambda: healthz(e)), f"{kind}: agentd answers")
    old = child_named(pid, "agentd")
    hooks = child_named(pid, "asb-hooks")
    os.kill(old, signal.SIGKILL)
    ok(until(lambda: child_named(pid, "agentd") not in (0, old) and healthz(e)), f"{kind}: a killed agentd is started again")
    ok(p.poll() is None and child_named(pid, "sleep") != 0, f"{kind}: and the container goes on")
    equal(child_named(pid, "asb-hooks"), hooks, f"{kind}: the other service is left alone")
    ok(not [c for c in children(pid) if state(c) == "Z"], f"{kind}: no zombie")
    for _ in range(5):  # faster than the back-off: each death still leads to a new start
        until(lambda: child_named(pid, "agentd") != 0)
        try:
            os.kill(child_named(pid, "agentd") or 10**7, signal.SIGKILL)
        except ProcessLookupError:
            pass
    ok(until(lambda: healthz(e), 30), f"{kind}: five more deaths in a row, and it is there again")
    os.kill(pid, signal.SIGTERM)
    out, err = p.communicate(timeout=30)
    ok(p.returncode == 143 and b"agentd ended (signal 9)" in err, f"{kind}: the deaths were told", (p.returncode, err))


def test_no_command(prefix, kind):
    e = env()
    p = start([], prefix, e)
    ok(until(lambda: healthz(e)), f"{kind}: without a command the guest lives")
    ok(until(lambda: hook(e, "ready") == 200) and hook(e, "validate") == 200, f"{kind}: ready and validate say 200")
    time.sleep(0.3)
    ok(p.poll() is None, f"{kind}: and goes on living")
    os.kill(init_pid(p, prefix), signal.SIGTERM)
    _, err = p.communicate(timeout=30)
    equal(p.returncode, 0, f"{kind}: until TERM, with status 0")
    ok(not healthz(e), f"{kind}: agentd is gone with it")


def test_incomplete():
    d = tempfile.mkdtemp(prefix="init-test-")
    dirs.append(d)
    shutil.copy(INIT, d)
    r = subprocess.run([d + "/asb-init", "--", "true"], env={"PATH": d}, capture_output=True, timeout=30)
    ok(r.returncode == 125 and b"cannot find agentd" in r.stderr, "without agentd it says so", r)
    shutil.copy(os.path.join(BIN, "agentd"), d)
    r = subprocess.run([d + "/asb-init", "--", "sh", "-c", "exit 9"], env=env(), capture_output=True, timeout=30)
    ok(r.returncode == 9 and b"asb-hooks" in r.stderr, "without asb-hooks it goes on", r)


def test_aarch64():
    other = os.path.join(TOP, "build", "aarch64", "bin")
    qemu = shutil.which("qemu-aarch64-static")
    if not qemu or not os.path.exists(other + "/asb-init"):
        skip("aarch64 programs under emulation", "no qemu-aarch64-static or no build")
        return
    for prog in ("asb-init", "asb-hooks"):
        r = subprocess.run([qemu, f"{other}/{prog}", "--version"], capture_output=True, timeout=60)
        ok(r.returncode == 0 and r.stdout.startswith(prog.encode()), f"aarch64 {prog} --version", r)


have_ns = subprocess.run([*PID1, "true"], capture_output=True).returncode == 0
modes = [((), "plain")]
if have_ns:
    modes.append((PID1, "pid 1"))
else:
    skip("as PID 1", "no right to make namespaces")
test_usage()
test_incomplete()
test_aarch64()
for mode in modes:
    for test in (test_start, test_term, test_no_command, test_restart, test_orphans, test_stubborn, test_codes):
        test(*mode)
for folder in dirs:
    shutil.rmtree(folder, ignore_errors=True)
done()
