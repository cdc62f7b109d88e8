#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The compatible routes: requests, and what the Python original answers, less what it calls by a wrong name or gets wrong."""
import base64
import json
import os
import socket
import stat
import threading
import time

from _agentd import *

a = Agentd()
equal(a.notified, b"1", "one byte to ASB_NOTIFY_FD says that it listens")


def b64(s):
    return base64.b64encode(s if isinstance(s, bytes) else s.encode()).decode()


def post(path, body, name, want_status, want_body, ctype="application/json"):
    raw = body if isinstance(body, (bytes, str)) else json.dumps(body)
    headers = {} if ctype is None else {"Content-Type": ctype}
    s, b, h = a.request("POST", path, raw, headers)
    try:
        got = json.loads(b)
    except ValueError:
        got = b
    passed = s == want_status and (want_body(got) if callable(want_body) else got == want_body)
    ok(passed, name, (s, got))
    return got


def invalid(*errors):
    return {"detail": list(errors)}


def error(kind, msg, loc, value):
    return {"type": kind, "loc": ["body", *loc], "msg": msg, "input": value}


MISSING, STRING = "Field required", "Input should be a valid string"
OBJECT = "Input should be a valid dictionary or object to extract fields from"

# --- health and routing
s, b, h = a.request("GET", "/healthz")
ok(s == 200 and json.loads(b)["status"] == "ok" and "version" in json.loads(b) and
   h["Content-Type"] == "application/json", "GET /healthz", (s, b))
for method, path, want in (("HEAD", "/healthz", 405), ("POST", "/healthz", 405), ("GET", "/v1/exec", 405),
                           ("DELETE", "/v1/fs/read", 405), ("GET", "/", 404), ("GET", "/nothing", 404),
                           ("GET", "/docs", 404), ("GET", "/openapi.json", 404), ("POST", "/v1/execs", 405)):
    s, b, h = a.request(method, path)
    ok(s == want, f"{method} {path} is {want}", (s, b))
    if method != "HEAD":
        equal(json.loads(b), {"detail": "Not Found" if want == 404 else "Method Not Allowed"}, "  in the original's words")
    if want == 405:
        ok(h["Allow"], "  and Allow names what works")

# --- exec: validation
X = "/v1/exec"
for body, errors in (
    ({}, [error("missing", MISSING, ["command"], {})]),
    ({"args": []}, [error("missing", MISSING, ["command"], {"args": []})]),
    ({"command": None}, [error("string_type", STRING, ["command"], None)]),
    ({"command": 1}, [error("string_type", STRING, ["command"], 1)]),
    ({"command": "true", "args": None}, [error("list_type", "Input should be a valid list", ["args"], None)]),
    ({"command": "true", "args": "x"}, [error("list_type", "Input should be a valid list", ["args"], "x")]),
    ({"command": "true", "args": ["a", 2, None]}, [error("string_type", STRING, ["args", 1], 2),
                                                     error("string_type", STRING, ["args", 2], None)]),
    ({"command": "true", "cwd": 1}, [error("string_type", STRING, ["cwd"], 1)]),
    ({"command": "true", "env": []}, [error("dict_type", "Input should be a valid dictionary", ["env"], [])]),
    ({"command": "true", "env": {"A": 1}}, [error("string_type", STRING, ["env", "A"], 1)]),
    ({"command": "true", "env": {"A": None}}, [error("string_type", STRING, ["env", "A"], None)]),
    ({"command": "true", "timeout": "x"}, [error(
        "float_parsing", "Input should be a valid number, unable to parse string as a number", ["timeout"], "x")]),
    ({"command": "true", "timeout": []}, [error("float_type", "Input should be a valid number", ["timeout"], [])]),
    ({"command": 1, "args": 2}, [error("string_type", STRING, ["command"], 1),
                                 error("list_type", "Input should be a valid list", ["args"], 2)]),
    ([], [error("model_attributes_type", OBJECT, [], [])]),
    ("\"x\"", [error("model_attributes_type", OBJECT, [], "x")]),
    ("17", [error("model_attributes_type", OBJECT, [], 17)]),
    ("null", [error("missing", MISSING, [], None)]),
    ("", [error("missing", MISSING, [], None)]),
):
    post(X, body, f"exec {json.dumps(body)[:60]}", 422, invalid(*errors))
for body in ('{"command":', "{'command':'x'}", '{"command":"true"} x', '{"command":"a\\u0000b"}', '{"command":"\\ud800"}',
             '{"command":"a\nb"}', "[" * 5000):
    post(X, body, f"exec {body[:40]!r} is no JSON", 422, lambda g: g["detail"][0]["type"] == "json_invalid" and
         g["detail"][0]["msg"] == "JSON decode error" and g["detail"][0]["loc"][0] == "body" and
         isinstance(g["detail"][0]["loc"][1], int) and g["detail"][0]["input"] == {} and "error" in g["detail"][0]["ctx"])
post(X, b'{"command":"\xff"}', "exec with a body that is not UTF-8", 400, {"detail": "There was an error parsing the body"})
post(X, '{"command":"true"}', "exec as text/plain", 422,
     invalid(error("model_attributes_type", OBJECT, [], '{"command":"true"}')), "text/plain")
post(X, '{"command":"true"}', "exec without a content type", 200, lambda g: g["exit_code"] == 0, None)
post(X, '{"command":"true"}', "exec as application/x+json", 200, lambda g: g["exit_code"] == 0, "application/x+json; charset=utf-8")

# --- exec: results
RESULT = ["exit_code", "stdout", "stderr", "encoding", "signal", "timed_out", "oom", "truncated", "duration_ms"]
got = post(X, {"command": "sh", "args": ["-c", "printf 'a\\nb'; echo e >&2; exit 7"]}, "exec: outputs and status", 200,
           lambda g: g["exit_code"] == 7 and g["stdout"] == b64("a\nb") and g["stderr"] == b64("e\n") and
           g["encoding"] == "base64" and g["signal"] is None and g["timed_out"] is False)
equal(list(got), RESULT, "the original's members come first")
for body, name, want in (
    ({"command": "true", "args": [], "cwd": None, "env": None, "timeout": None, "stdin": None}, "nulls", {"exit_code": 0}),
    ({"command": "true", "unknown": 1}, "unknown members are ignored", {"exit_code": 0}),
    ({"command": "true", "timeout": "5"}, "a number as a string", {"exit_code": 0}),
    ({"command": "true", "timeout": " 5.5 "}, "with spaces", {"exit_code": 0}),
    ({"command": "true", "timeout": 1e300}, "a very long timeout", {"exit_code": 0}),
    ({"command": "true", "timeout": True}, "a bool is a number", {"exit_code": 0}),
    ({"command": "sh", "args": ["-c", "kill -9 $$"]}, "killed by a signal", {"exit_code": -9, "signal": 9}),
    ({"command": "sh", "args": ["-c", "exit 255"]}, "status 255", {"exit_code": 255, "signal": None}),
    ({"command": "sh", "args": ["-c", "exit 126"]}, "status 126 of the command itself", {"exit_code": 126}),
    ({"command": "printf", "args": ["%s|", "", "a b", "c'd"]}, "arguments are kept", {"stdout": b64("|a b|c'd|")}),
    ({"command": "cat"}, "stdin is empty", {"exit_code": 0, "stdout": ""}),
    ({"command": "cat", "stdin": b64(b"\0\xff\n")}, "stdin is given", {"stdout": b64(b"\0\xff\n")}),
    ({"command": "true", "stdin": b64("x" * 1000000)}, "stdin that nobody reads", {"exit_code": 0}),
    ({"command": "pwd", "cwd": "/usr"}, "cwd", {"stdout": b64("/usr\n")}),
    ({"command": "pwd"}, "cwd is HOME", {"stdout": b64(os.path.realpath(a.dir) + "\n")}),
    ({"command": "sh", "args": ["-c", "echo $A:$B"], "env": {"A": "1", "B": "x=y z"}}, "env", {"stdout": b64("1:x=y z\n")}),
    ({"command": "sh", "args": ["-c", "echo $HOME"], "env": {"HOME": "/x"}}, "the caller's HOME wins", {"stdout": b64("/x\n")}),
    ({"command": "sh", "args": ["-c", "printf %s \"$V\""], "env": {"V": "\\n\"\\\\\u00e9\n"}}, "escapes are decoded once",
     {"stdout": b64("\\n\"\\\\\u00e9\n")}),
):
    post(X, body, "exec: " + name, 200, lambda g, w=want: all(g[k] == v for k, v in w.items()))

# --- exec: what cannot be started
os.mkdir(a.dir + "/d")
with open(a.dir + "/plain", "w") as f:
    f.write("text\n")
with open(a.dir + "/noformat", "w") as f:
    f.write("\x01\x02 not a program\n")
os.chmod(a.dir + "/noformat", 0o755)
for body, name, detail in (
    ({"command": "nonesuch"}, "unknown command", "command not found: nonesuch"),
    ({"command": "/no/such"}, "unknown path", "command not found: /no/such"),
    ({"command": "true", "cwd": "/no/dir"}, "unknown cwd", "working directory not found: /no/dir"),
    ({"command": "true", "cwd": a.dir + "/plain"}, "cwd is a file", f"working directory is not a directory: {a.dir}/plain"),
    ({"command": a.dir + "/plain"}, "not executable", f"cannot execute {a.dir}/plain: Permission denied"),
    ({"command": a.dir + "/d"}, "a directory", f"cannot execute {a.dir}/d: Permission denied"),
    ({"command": a.dir + "/noformat"}, "no program", f"cannot execute {a.dir}/noformat: Exec format error"),
    ({"command": "true", "args": ["x" * 3000000]}, "an argument of 3 MB", "cannot execute true: Argument list too long"),
    ({"command": ""}, "empty command", "the command is empty"),
    ({"command": "true", "env": {"A=B": "1"}}, "= in a name", "\"A=B\" cannot be the name of a variable"),
    ({"command": "true", "env": {"": "1"}}, "empty name", "\"\" cannot be the name of a variable"),
    ({"command": "cat", "stdin": "a"}, "bad base64", "invalid base64 stdin"),
):
    post(X, body, "exec: " + name, 400, {"detail": detail})

# --- exec: timeouts
for limit in (0, -1, 0.3):
    start = time.monotonic()
    got = post(X, {"command": "sh", "args": ["-c", f"echo early; sleep 100.{os.getpid()}"], "timeout": limit}, f"timeout {limit}", 504,
               lambda g: g["detail"] == "command timed out" and g["timed_out"] and g["exit_code"] == -9 and g["signal"] == 9)
    ok(time.monotonic() - start < 10, "  is kept")
equal(got["stdout"], b64("early\n"), "with the output so far")
ok(not processes(f"sleep\x00100.{os.getpid()}".encode()), "and the whole tree is gone")

# --- fs
W, R = "/v1/fs/write", "/v1/fs/read"
d = a.dir + "/w"
post(W, {"path": d + "/x/y/f", "content": b64("hello")}, "write makes parents", 200, {"bytes_written": 5})
post(R, {"path": d + "/x/y/f"}, "read", 200, {"content": b64("hello"), "encoding": "base64"})
post(W, {"path": d + "/t", "content": "h\u00e9\n", "encoding": "utf-8"}, "write text", 200, {"bytes_written": 4})
post(R, {"path": d + "/t"}, "read it back", 200, {"content": b64("h\u00e9\n"), "encoding": "base64"})
post(W, {"path": d + "/e", "content": ""}, "an empty file", 200, {"bytes_written": 0})
post(R, {"path": d + "/e"}, "reads as empty", 200, {"content": "", "encoding": "base64"})
for content, n in (("!!!!", 0), ("Y Q = =", 1), ("YQ==YQ==", 1), ("YWI=\n", 2)):
    post(W, {"path": d + "/l", "content": content}, f"lenient base64 {content!r}", 200, {"bytes_written": n})
for content in ("a", "YQ=", "YWJjZA", "\u00e9"):
    post(W, {"path": d + "/l", "content": content}, f"bad base64 {content!r}", 400, {"detail": "invalid base64 content"})
post(R, {"path": "w/x/y/f"}, "relative paths start at HOME", 200, {"content": b64("hello"), "encoding": "base64"})
post(R, {"path": d + "/no"}, "read of a missing file", 404, {"detail": f"no such file: {d}/no"})
post(R, {"path": "/tmp"}, "read of a directory", 400, {"detail": "[Errno 21] Is a directory: '/tmp'"})
post(R, {"path": d + "/t/x"}, "read below a file", 400, {"detail": f"[Errno 20] Not a directory: '{d}/t/x'"})
post(R, {"path": "/" + "n" * 300}, "read of a long name", 400, {"detail": f"[Errno 36] File name too long: '/{'n' * 300}'"})
os.symlink("loop", d + "/loop")
post(R, {"path": d + "/loop"}, "read of a loop", 400, {"detail": f"[Errno 40] Too many levels of symbolic links: '{d}/loop'"})
post(W, {"path": "/tmp", "content": ""}, "write to a directory", 400, {"detail": "[Errno 21] Is a directory: '/tmp'"})
post(W, {"path": d + "/t/x/y", "content": ""}, "parents below a file", 400, {"detail": f"[Errno 20] Not a directory: '{d}/t/x/y'"})
post(W, {}, "write {}", 422, invalid(error("missing", MISSING, ["path"], {}), error("missing", MISSING, ["content"], {})))
post(W, {"path": d + "/t", "content": 1, "encoding": None}, "write of wrong types", 422,
     invalid(error("string_type", STRING, ["content"], 1), error("string_type", STRING, ["encoding"], None)))
post(R, {"path": 1}, "read of a number", 422, invalid(error("string_type", STRING, ["path"], 1)))
post(R, "{\"path\":\"a\\u0000b\"}", "a NUL in a path", 422, lambda g: g["detail"][0]["type"] == "json_invalid")
os.mkfifo(d + "/fifo")
post(R, {"path": d + "/fifo"}, "read of a FIFO does not block", 400, {"detail": f"not a regular file: {d}/fifo"})
post(W, {"path": d + "/fifo", "content": ""}, "nor does writing one", 400, {"detail": f"not a regular file: {d}/fifo"})
post(R, {"path": "/dev/zero"}, "read of /dev/zero", 400, {"detail": "not a regular file: /dev/zero"})
with open(d + "/huge", "wb") as f:
    f.truncate(1 << 40)
post(R, {"path": d + "/huge"}, "read of 1 TiB", 413, lambda g: g["detail"].startswith("file too large: "))
post(R, {"path": "/proc/self/status"}, "read of a file in /proc", 200, lambda g: b"Name:\tagentd" in base64.b64decode(g["content"]))
post(R, {"path": "/proc/1/nothing"}, "a missing one", 404, lambda g: True)

# --- fs: an existing file stays what it is
with open(d + "/keep", "w") as f:
    f.write("a long old content\n")
os.chmod(d + "/keep", 0o640)
os.link(d + "/keep", d + "/hard")
os.symlink("keep", d + "/soft")
before = os.stat(d + "/keep")
post(W, {"path": d + "/soft", "content": b64("new")}, "write through a symbolic link", 200, {"bytes_written": 3})
after = os.stat(d + "/keep")
ok(os.path.islink(d + "/soft") and open(d + "/hard").read() == "new" and before.st_ino == after.st_ino and
   stat.S_IMODE(after.st_mode) == 0o640, "keeps link, inode, mode and hard link")
os.umask(0)
mode = stat.S_IMODE(os.stat(d + "/t").st_mode)
ok(mode in (0o644, 0o664, 0o640, 0o600), "a new file's mode follows the umask", oct(mode))

# --- fs: big files, and others are served meanwhile
big = os.urandom(40 << 20)
post(W, {"path": d + "/big", "content": b64(big)}, "write 40 MiB", 200, {"bytes_written": len(big)})
ok(open(d + "/big", "rb").read() == big, "byte-exact")
result = {}


def read_big():
    result["big"] = a.json("POST", R, {"path": d + "/big"})


t = threading.Thread(target=read_big)
t.start()
slow = 0
while t.is_alive():
    start = time.monotonic()
    a.request("GET", "/healthz")
    slow = max(slow, time.monotonic() - start)
t.join()
ok(result["big"][0] == 200 and base64.b64decode(result["big"][1]["content"]) == big, "read 40 MiB back")
ok(slow < 5, f"while healthz answers within {slow:.3f} s")
s, b, h = a.request("POST", W, b'{"path":"' + d.encode() + b'/big2","content":"' + b"A" * (65 << 20) + b'"}',
                    {"Content-Type": "application/json"})
equal(s, 413, "a body above 64 MiB is refused")

# --- a full disk does not cost the old content
small = a.dir + "/small"
os.mkdir(small)
if os.system(f"mount -t tmpfs -o size=1m none {small} 2>/dev/null") == 0:
    post(W, {"path": small + "/f", "content": b64("precious")}, "write on a small disk", 200, {"bytes_written": 8})
    post(W, {"path": small + "/f", "content": b64("x" * (2 << 20))}, "a content that does not fit", 400,
         lambda g: g["detail"] == f"[Errno 28] No space left on device: '{small}/f'")
    post(R, {"path": small + "/f"}, "leaves the old one", 200, {"content": b64("precious"), "encoding": "base64"})
    os.system(f"umount -l {small}")
else:
    skip("a full disk", "cannot mount a tmpfs here")

# --- a client that goes away cancels nothing
with socket.create_connection(("127.0.0.1", a.port)) as c:
    body = json.dumps({"command": "sh", "args": ["-c", f"sleep 0.5; echo x > {a.dir}/after"]}).encode()
    c.sendall(b"POST /v1/exec HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    time.sleep(0.2)
ok(until(lambda: os.path.exists(a.dir + "/after")), "a command outlives its client")

# --- a background server lives on, and is not killed by a closed pipe
s, b = a.sh("(i=0; while [ $i -lt 40 ]; do echo line; i=$((i+1)); sleep 0.05; done; echo alive > " + a.dir + "/bg) & exit 3")
ok(s == 200 and b["exit_code"] == 3, "a background child that holds the pipe delays nothing", (s, b))
ok(until(lambda: os.path.exists(a.dir + "/bg")), "and lives on although it writes")

ok(a.proc.poll() is None, "agentd is alive")
equal(a.stop(), 0, "SIGTERM ends it with 0")
done()
