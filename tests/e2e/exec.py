#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 1200
"""asb exec, execs, kill and shell in one VM: detached commands, users, limits, terminals, and cut connections."""
import hashlib
import json
import os
import signal
import subprocess
import time

from _asb import ASB, Home, done, need_vm, ok, one_line, same, until
from _link import Cutter
from _term import Term

need_vm()


def states(h):
    return {x["id"]: x for x in json.loads(h.call("execs", "app", "--json").stdout)["execs"]}


def detached(h):
    r = h.call("exec", "app", "-d", "--", "sh", "-c", "echo out; echo err >&2; sleep 1; exit 5")
    exec_id = r.stdout.decode().strip()
    ok(r.returncode == 0 and len(exec_id) == 32 and r.stderr == b"", "-d prints the id and nothing else", r)
    same(states(h)[exec_id]["state"], "running", "execs has it")
    r = h.call("exec", "app", "--attach", exec_id[:10])
    same((r.returncode, r.stdout, r.stderr), (5, b"out\n", b"err\n"), "--attach: what was said before, then its status")
    r = h.call("exec", "app", "--attach", exec_id)
    same((r.returncode, r.stdout), (5, b"out\n"), "and once more when it has ended")
    same(h.call("exec", "app", "--attach", exec_id, "--offset", "2").stdout, b"t\n", "from an offset")
    r = h.call("exec", "app", "--attach", exec_id, "--offset", "999")
    ok(r.returncode == 125 and b"999" in r.stderr, "an offset that is not reached is an error", r)
    table = h.call("execs", "app").stdout.decode()
    ok("exited 5" in table and table.startswith("ID ") and exec_id[:12] in table, "the table", table)
    ok("sh -c 'echo out; echo err >&2; " in table, "shows the command", table)
    ok(exec_id in h.call("execs", "app", "-q").stdout.decode().split(), "execs -q")
    for word in ("0123", "zzz"):
        r = h.call("exec", "app", "--attach", word)
        ok(r.returncode == 125 and b"asb execs app" in r.stderr and word.encode() in r.stderr, f"an id that is not there: {word}", r)
    r = h.call("exec", "app", "-d", "--", "nonesuch")
    same((r.returncode, r.stdout), (127, b""), "-d of no command")
    doc = json.loads(h.call("exec", "app", "-d", "--json", "true").stdout)
    same(doc["name"], "app", "-d --json")
    r = h.call("exec", "app", "-di", "--", "cat")
    exec_id = r.stdout.decode().strip()
    r = h.call("exec", "app", "--attach", exec_id, "-i", input=b"typed\n")
    same((r.returncode, r.stdout), (0, b"typed\n"), "-d -i keeps stdin for --attach -i")
    for words in (("--attach", "x", "true"), ("--offset", "1", "true"), ("--attach", "x", "-u", "root"), ("-tT", "true"),
                  ("--detach-keys", "ctrl-", "true"), ("--cpus", "0", "true"), ("--seccomp", "some", "true")):
        same(h.call("exec", "app", *words).returncode, 2, "usage: exec app " + " ".join(words))


def killing(h):
    for words, want in (((), 137), (("TERM",), 143), (("sigint",), 130), (("-s", "15", "--to", "leader"), 143), (("10",), 138)):
        p = h.start("exec", "app", "--", "sh", "-c", "sleep 300 & echo $$; wait")
        p.stdout.readline()
        (exec_id,) = [k for k, v in states(h).items() if v["state"] == "running"]
        r = h.call("kill", "app", exec_id[:8], *words)
        same((r.returncode, r.stdout.decode().strip()), (0, exec_id), f"kill {words} prints the id")
        same(p.wait(60), want, f"asb exec tells the signal: {want}")
        p.stdout.close()
        p.stderr.close()
    r = h.call("kill", "app", "nonesuch")
    ok(r.returncode == 1 and b"asb execs app" in r.stderr, "kill of an unknown id", r)
    same(h.call("kill", "app", "x", "NOSIGNAL").returncode, 2, "kill with no signal's name")
    p = h.start("exec", "app", "--", "sh", "-c", "echo up; sleep 2; echo late; exec sleep 300")
    p.stdout.readline()
    p.kill()
    p.communicate()
    (exec_id,) = [k for k, v in states(h).items() if v["state"] == "running"]
    ok(True, "after kill -9 of asb exec the command is in the list")
    p = h.start("exec", "app", "--attach", exec_id)
    same((p.stdout.readline(), p.stdout.readline()), (b"up\n", b"late\n"), "and it can be attached to")
    p.send_signal(signal.SIGINT)
    same(p.wait(60), 130, "an attached asb passes the first SIGINT on")
    p.communicate()


def users(h):
    same(h.call("exec", "app", "-u", "nobody", "--", "id", "-un").stdout, b"nobody\n", "-u by name")
    same(h.call("exec", "app", "-u", "7:8", "--", "sh", "-c", "id -u; id -g").stdout, b"7\n8\n", "-u by numbers")
    r = h.call("exec", "app", "-u", "nosuchuser", "true")
    ok(r.returncode == 125 and b"nosuchuser" in r.stderr, "a user that is not there", r)
    r = h.call("exec", "app", "--memory", "24m", "--", "python3", "-c", "x = bytearray(200 << 20)")
    ok(r.returncode == 137 and b"limit of 24 MiB" in r.stderr, "--memory ends what takes more, and says so", r)
    r = h.call("exec", "app", "--pids", "4", "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 5 & done; wait")
    ok(r.returncode != 0 and b"ork" in r.stderr, "--pids", r)
    same(h.call("exec", "app", "--cpus", "0.5", "true").returncode, 0, "--cpus")
    r = h.call("exec", "app", "--seccomp", "restricted", "--", "unshare", "-U", "true")
    ok(r.returncode in (1, 125) and (r.returncode == 1 or b"seccomp" in r.stderr), "--seccomp is in force, or refused by name", r)


def cuts(h, sandbox_id):
    want = "".join(f"{i}\n" for i in range(200000)).encode()
    with Cutter(h, sandbox_id, limit=150000) as c:
        r = h.call("exec", "app", "--", "sh", "-c", "seq 0 199999; exit 7")
        ok(r.returncode == 7 and r.stdout == want, f"output over {c.cuts} cut connections is whole, and its status too",
           r.returncode, len(r.stdout), r.stderr)
        ok(c.cuts >= 5, "connections were cut", c.cuts)
        same(r.stderr, b"", "and nobody notices")
        data = os.urandom(2 << 20)
        p = h.start("exec", "app", "--", "sha256sum", stdin=subprocess.PIPE)
        for at in range(0, len(data), 1 << 18):
            p.stdin.write(data[at:at + (1 << 18)])
            p.stdin.flush()
            time.sleep(0.1)
            c.cut()
        out, err = p.communicate(timeout=120)
        same((p.returncode, out[:64].decode()), (0, hashlib.sha256(data).hexdigest()), "input too")
        p = h.start("exec", "app", "--", "sh", "-c", "echo up; sleep 1; exit 9")
        p.stdout.readline()
        c.refuse = True
        c.cut()
        time.sleep(2)
        c.refuse = False
        same(p.wait(60), 9, "a sandbox that nobody reaches for two seconds: the status is still the command's")
        p.communicate()


def typed(h, sandbox_id):
    t = Term([ASB, "exec", "app", "sh"], h.env)
    ok(t.wait("# "), "a shell's prompt on a terminal", t.seen)
    t.type("stty size; tty; echo $TERM\r")
    ok(t.wait("30 100\r\n") and t.wait("/dev/pts/") and t.wait("xterm\r\n"), "size, terminal, TERM", t.seen)
    t.size(20, 60)
    ok(until(lambda: t.type("stty size\r") or t.wait("20 60\r\n", 2)), "a resized window is told", t.seen)
    t.type("sleep 100\r")
    time.sleep(0.5)
    t.type(b"\x03")
    ok(t.wait("^C"), "Ctrl-C goes to the command", t.seen)
    t.type("exit 6\r")
    t.end()
    same(t.status, 6, "the shell's status")
    t = Term(["/bin/sh", "-c", f"{ASB} exec app -- sh -c 'stty raw; echo ready; sleep 1; exit 3'; echo \"[$?]\"; stty -a"], h.env)
    seen = t.end()
    ok(b"ready" in seen and b"[3]" in seen and b" icanon" in seen, "the terminal is as before", seen)
    for sig, want in ((signal.SIGTERM, -15), (signal.SIGQUIT, -3), (signal.SIGHUP, -1)):
        t = Term([ASB, "exec", "app", "--", "sh", "-c", "echo ready; sleep 100"], h.env)
        t.wait("ready")
        raw = not t.canonical()
        os.kill(t.pid, sig)
        t.end(close=False)
        ok(raw and t.canonical() and t.status in (want, 128 - want, 129), f"{sig.name} ends asb, the terminal is as before",
           raw, t.status)
        os.close(t.fd)
    ok(until(lambda: not [x for x in states(h).values() if x["state"] == "running"]), "and the commands had their HUP",
       h.call("execs", "app").stdout.decode())


def detaching(h):
    t = Term([ASB, "exec", "app", "bash", "--norc"], h.env)
    t.wait("# ")
    t.type("x=kept; echo a\x10\x10b\r")
    t.wait("\r\n")
    t.type(b"\x10\x11")
    seen = t.end()
    ok(t.status == 0 and b"asb exec app --attach " in seen, "ctrl-p ctrl-q detaches and says how to come back", t.status, seen)
    exec_id = seen.split(b"--attach ")[1].split()[0].decode()
    t = Term([ASB, "exec", "app", "--attach", exec_id], h.env, rows=25, cols=90)
    ok(t.wait("# "), "attached: what was on the screen comes again", t.seen)
    t.type("echo $x $(stty size)\r")
    ok(t.wait("kept 25 90"), "it is the same shell, in the new size", t.seen)
    t.type("exit 4\r")
    t.end()
    same(t.status, 4, "and its status")
    t = Term([ASB, "exec", "app", "--detach-keys", "", "--", "sh", "-c", "stty -ixon; echo ready; cat -v"], h.env)
    t.wait("ready")
    t.type(b"\x10\x11\r")
    ok(t.wait("^P^Q"), "no keys: they go to the command", t.seen)
    t.type(b"\x04")
    t.end()
    same(t.status, 0, "Ctrl-D ends it")
    t = Term([ASB, "exec", "app", "-T", "--", "sh", "-c", "tty; echo e >&2"], h.env)
    seen = t.end()
    ok(b"not a tty" in seen, "-T: no terminal", seen)
    r = h.call("exec", "app", "-t", "--", "sh", "-c", "tty; cat", input=b"typed\n")
    ok(r.returncode == 0 and b"/dev/pts/" in r.stdout and r.stdout.count(b"typed") == 2,
       "-t without a terminal: input is typed, its end is Ctrl-D", r)


def hanging_up(h):
    t = Term([ASB, "exec", "app", "bash", "--norc"], h.env)
    t.wait("# ")
    t.type("sleep 1000 & sleep 2000\r")
    time.sleep(1)
    ok(t.hang_up() != "hangs", "a terminal that is closed ends asb")
    ok(until(lambda: h.call("exec", "app", "--", "sh", "-c", "! grep -qa '[12]000' /proc/[0-9]*/cmdline").returncode == 0), "and what ran on it",
       h.call("execs", "app").stdout.decode())
    t = Term([ASB, "exec", "app", "--", "sh", "-c", "trap '' HUP; echo ready; sleep 500"], h.env)
    t.wait("ready")
    ok(t.hang_up() != "hangs", "closed again")
    left = [k for k, v in states(h).items() if v["state"] == "running"]
    same(len(left), 1, "what ignores HUP lives on")
    for exec_id in left:
        h.call("kill", "app", exec_id)


def typed_cuts(h, sandbox_id):
    with Cutter(h, sandbox_id) as c:
        t = Term([ASB, "exec", "app", "--", "sh", "-c", "stty -echo; echo ready; cat > /tmp/typed"], h.env)
        t.wait("ready")
        want = b""
        for i in range(30):
            line = f"line {i}\n".encode()
            want += line
            t.type(line)
            if i % 3 == 0:
                c.cut()
            time.sleep(0.1)
        t.type(b"\x04")
        t.end()
        same(t.status, 0, f"a terminal over {c.cuts} cuts ends as it should")
    same(h.call("exec", "app", "cat", "/tmp/typed").stdout, want, "and each line was typed once")
    with Cutter(h, sandbox_id, limit=20000) as c:
        t = Term([ASB, "exec", "app", "--", "sh", "-c", "stty -opost; seq 20000; exit 8"], h.env)
        seen = t.end()
        want = b"".join(b"%d\n" % i for i in range(1, 20001))
        ok(t.status == 8 and seen == want, f"the screen over {c.cuts} cuts is whole", t.status, len(seen), len(want))
        ok(c.cuts >= 3, "connections were cut", c.cuts)


def shells(h):
    r = h.call("shell", "app", input=b"echo $0; cd /tmp; pwd; exit 3\n")
    ok(r.returncode == 3 and r.stdout.endswith(b"/tmp\n") and b"bash" in r.stdout, "asb shell in a pipeline", r)
    t = Term([ASB, "shell", "app", "-w", "/usr"], h.env)
    ok(t.wait("/usr# "), "asb shell on a terminal", t.seen)
    t.type("exit\r")
    t.end()
    same(t.status, 0, "and its end")
    same(one_line(h.call("shell", "none").stderr)[:1] != [], True, "no such sandbox is told")


with Home() as home:
    home.call("create", "app")
    sandbox = json.loads(home.call("ls", "--json").stdout)["sandboxes"][0]["id"]
    detached(home)
    killing(home)
    users(home)
    cuts(home, sandbox)
    typed(home, sandbox)
    detaching(home)
    hanging_up(home)
    typed_cuts(home, sandbox)
    shells(home)
done()
