#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 900
"""Images: what a build takes and keeps, that it fails without a trace, and that what is used is not removed. The images
are of one static program, so that they boot fast; most builds here make no template and boot nothing."""
import glob
import gzip
import hashlib
import io
import json
import os
import shutil
import signal
import stat
import subprocess
import tarfile
import time

from _asb import Home, done, need_vm, ok, one_line, same
from _say import compile_program, tree

need_vm()
if not shutil.which("mkfs.erofs"):
    print("1..0 # SKIP mkfs.erofs is not installed")
    raise SystemExit(0)

def images(h):
    return os.path.join(h.path, ".agent_sandbox/local/images")


def half(h):
    return [os.path.basename(x) for x in glob.glob(images(h) + "/.*") if os.path.basename(x).startswith((".new-", ".gone-"))]


def blobs(h):
    return sorted(glob.glob(images(h) + "/blobs/*"))


def listed(h):
    return {(x["name"], x["version"]): x for x in json.loads(h.call("image", "ls", "--json").stdout)["images"]}


def cold(h, source, name, **kw):
    return h.call("image", "build", source, "--name", name, "--no-template", **kw)


def tar_of(members, mode="w"):
    b = io.BytesIO()
    with tarfile.open(fileobj=b, mode=mode) as t:
        for name, content, more in members:
            i = tarfile.TarInfo(name)
            i.size = len(content)
            for k, v in more.items():
                setattr(i, k, v)
            t.addfile(i, io.BytesIO(content))
    return b.getvalue()


def refused(h):
    source = os.path.join(h.top, "tree")
    for words, what in ((["image", "build", source], "no name"), (["image", "build", "--name", "x"], "no source"),
                        (["image"], "no command"), (["image", "nope"], "an unknown one")):
        r = h.call(*words)
        ok(r.returncode == 2 and not r.stdout and len(one_line(r.stderr)) == 1, f"{what}: a usage error", r)
    for name in ("A", "a/b", "../x", "x:1", "blobs", "-x", "a..b"):
        r = h.call("image", "build", source, f"--name={name}")
        ok(r.returncode == 1 and not r.stdout, f"the name {name!r} is refused", r)
    bad = {"an absolute name": tar_of([("/etc/x", b"", {})]), "a way out": tar_of([("a/../../x", b"", {})]),
           "a way through a link": tar_of([("a", b"", {"type": tarfile.SYMTYPE, "linkname": "/etc"}), ("a/x", b"", {})]),
           "a cut one": tar_of([("a", b"x" * 2000, {})])[:1024], "nothing of the kind": b"foo", "no bytes": b""}
    for what, data in bad.items():
        r = cold(h, "-", "bad", input=data)
        ok(r.returncode == 1 and b"error: unpack: " in r.stderr and not r.stdout, f"a tar with {what} fails at unpack", r)
    same(cold(h, os.path.join(h.top, "nope"), "bad").returncode, 1, "a source that is not there")
    r = cold(h, h.top, "bad")
    ok(r.returncode == 1 and b"folder of asb" in r.stderr, "a directory that has the store in it", r)
    same((half(h), blobs(h), sorted(listed(h))), ([], [], [("base", 1)]), "nothing is left of any")
    r = h.call("image", "build", source, "--name", "x", "--no-template", "--json", env={"PATH": "/nonexistent"})
    doc = json.loads(r.stdout)
    ok(r.returncode == 1 and doc["step"] == "mkfs" and "erofs-utils" in doc["error"]["message"], "without mkfs.erofs", doc)
    recipe = os.path.join(h.top, "recipe")
    os.makedirs(recipe, exist_ok=True)
    with open(os.path.join(recipe, "Dockerfile"), "w", encoding="utf-8") as f:
        f.write("FROM scratch\nCOPY say /bin/say\n")
    r = cold(h, recipe, "x", env={"PATH": "/nonexistent"})
    ok(r.returncode == 1 and b"buildah, podman or docker" in r.stderr, "a Dockerfile without a builder names them", r)
    r = cold(h, recipe, "x", env={"ASB_BUILDER": "false"})
    ok(r.returncode == 1 and b"unpack: false failed with status 1" in r.stderr, "a builder that fails is told", r)
    same(half(h), [], "nothing is left of these")


def differing(h):
    """Where two contents are not the same: their lengths, (offset, one, other); and the trees they are from."""
    data = [open(b, "rb").read() for b in sorted(blobs(h))[:2]]
    if len(data) < 2:
        return []
    places = [(i, a, b) for i, (a, b) in enumerate(zip(*data)) if a != b]
    return [f"{[len(d) for d in data]} {len(places)} bytes differ: {places[:8]} {places[-3:]}",
            *(listing(os.path.join(h.top, name)) for name in ("tree", "other"))]


def listing(top):
    """Everything of a tree that an image has, but for names of owners."""
    found = []
    for path in sorted(glob.glob(top + "/**", recursive=True)):
        st = os.lstat(path)
        digest = hashlib.sha256(open(path, "rb").read()).hexdigest()[:6] if stat.S_ISREG(st.st_mode) else ""
        found.append((path[len(top):], oct(st.st_mode), st.st_uid, st.st_gid, st.st_size, st.st_nlink, digest))
    return found


def sources(h):
    source = os.path.join(h.top, "tree")
    r = cold(h, source, "t")
    same((r.returncode, r.stdout), (0, b"t:1\n"), "a directory")
    ok(b"warning: left out: 1 " in r.stderr, "with what was in its /proc left out", r)
    r = cold(h, source, "t")
    ok(r.stdout == b"t:1\n" and b"already" in r.stderr, "the same again is the same version", r)
    other = tree(h, "other", "hello\n")
    os.utime(other + "/etc/text", (1, 1))
    r = cold(h, other, "t")
    ok(r.stdout == b"t:1\n", "other times make no other content", *differing(h), r)
    r = cold(h, other, "t", env={"SOURCE_DATE_EPOCH": "1000000000"})
    ok(r.stdout == b"t:1\n", "nor does SOURCE_DATE_EPOCH", *differing(h), r)
    tar = os.path.join(h.top, "t.tar")
    with tarfile.open(tar, "w") as t:
        for name in sorted(os.listdir(source), reverse=True):
            t.add(os.path.join(source, name), name)
        for name, kind in (("dev/null", tarfile.CHRTYPE), ("block", tarfile.BLKTYPE)):
            i = tarfile.TarInfo(name)
            i.type = kind
            t.addfile(i)
    r = cold(h, tar, "t")
    ok(r.stdout == b"t:1\n" and b"left out" in r.stderr, "a tar of the same, with devices that are left out", r)
    with open(tar, "rb") as f:
        data = f.read()
    same(cold(h, "-", "t", input=gzip.compress(data)).stdout, b"t:1\n", "with gzip, on standard input")
    if shutil.which("zstd"):
        r = subprocess.run(["zstd", "-qc", tar], stdout=subprocess.PIPE, check=True)
        same(cold(h, "-", "t", input=r.stdout).stdout, b"t:1\n", "with zstd")
    same(cold(h, source, "u").stdout, b"u:1\n", "another name")
    same((len(blobs(h)), os.stat(blobs(h)[0]).st_nlink), (1, 3), "and one copy of the content")
    same(cold(h, source, "base").stdout, b"base:2\n", "an installed image's name goes on behind it")
    ok(b"installed one is base:1" in h.call("image", "ls").stderr, "which ls says")
    doc = json.loads(h.call("image", "inspect", "t").stdout)
    same((doc["name"], doc["version"], doc["newest"], doc["unique_bytes"], doc["used_by"]), ("t", 1, True, 0, []), "inspect")
    same(h.call("image", "inspect", "t:2").returncode, 1, "one that is not there")
    same(h.call("image", "ls", "-q").stdout, b"base:2\nbase:1\nt:1\nu:1\n", "ls -q")
    r = h.call("image", "rm", "u", "base:2", "base", "nope", "t:9")
    same((r.returncode, r.stdout), (1, b"removed u:1\nremoved base:2\n"), "rm goes on after what it cannot")
    same(sorted(listed(h)), [("base", 1), ("t", 1)], "only those are gone")


def content(h):
    """What is in the file system, as fsck.erofs gives it back."""
    r = cold(h, "-", "owners", input=tar_of([("a", b"x", {"uid": 1234, "gid": 99, "mode": 0o4755}),
                                              ("d", b"", {"type": tarfile.DIRTYPE, "mode": 0o500, "uid": 7}),
                                              ("tmp/x", b"y", {}), ("d/f", b"z", {"mode": 0o400}),
                                              ("d/lost+found.txt", b"", {}), ("lost+found/x", b"", {})]))
    same(r.stdout, b"owners:1\n", "owners and modes")
    ok(b"warning: left out: 3 " in r.stderr, "what mkfs.erofs would drop is told", r)
    out = os.path.join(h.top, "extracted")
    if not shutil.which("fsck.erofs"):
        ok(True, "what is in it # SKIP fsck.erofs is not installed")
        return
    path = os.path.join(images(h), "owners/1/rootfs.erofs")
    for what in ("owner", "perms"):  # it gives the owner last, which takes set-id bits away
        other = "perms" if what == "owner" else "owner"
        subprocess.run(["fsck.erofs", "--extract=" + out, "--overwrite", "--preserve-" + what, "--no-preserve-" + other, path],
                       stdout=subprocess.DEVNULL, check=True)
        st = os.stat(os.path.join(out, "a"))
        if what == "perms":
            same(st.st_mode & 0o7777, 0o4755, "modes are kept")
        elif os.geteuid() == 0:
            same((st.st_uid, st.st_gid), (1234, 99), "owners are kept")
    same(sorted(os.listdir(out)), ["a", "d", "dev", "proc", "run", "sys", "tmp"], "the folders that are missing are added")
    same((os.listdir(out + "/tmp"), os.stat(out + "/tmp").st_mode & 0o7777), ([], 0o1777), "and what is mounted over is empty")
    subprocess.run(["chmod", "-R", "u+rwx", out], check=True)
    same(h.call("image", "rm", "owners").returncode, 0, "it can be removed")


def dockerfile(h):
    if not shutil.which("buildah"):
        ok(True, "a Dockerfile is built # SKIP buildah is not installed")
        return
    recipe = os.path.join(h.top, "recipe")
    os.makedirs(recipe, exist_ok=True)
    with open(os.path.join(recipe, "Dockerfile"), "w", encoding="utf-8") as f:
        f.write("FROM scratch\nCOPY say /bin/say\n")
    shutil.copy(os.path.join(h.top, "say"), recipe)
    env = {"ASB_BUILDER": "buildah", "BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs",
           "XDG_DATA_HOME": h.top + "/xdg", "XDG_RUNTIME_DIR": h.top + "/run"}
    r = cold(h, recipe, "docker", env=env)
    if r.returncode and b"buildah failed" in r.stderr:
        ok(True, "a Dockerfile is built # SKIP buildah does not work here: " + r.stderr.decode()[-200:].replace("\n", " "))
        return
    same((r.returncode, r.stdout), (0, b"docker:1\n"), "a Dockerfile is built")
    doc = json.loads(h.call("image", "inspect", "docker").stdout)
    same(doc["source"], "dockerfile", "and says so")
    with open(os.path.join(recipe, "Dockerfile"), "a", encoding="utf-8") as f:
        f.write("COPY missing /\n")
    r = cold(h, recipe, "docker", env=env)
    ok(r.returncode == 1 and b"missing" in r.stderr and b"unpack: buildah failed" in r.stderr, "one that fails tells why", r)
    same(h.call("image", "ls", "-q").stdout.count(b"docker"), 1, "and the version before it stays")
    h.call("image", "rm", "docker")


def stages(r):
    return [x.split()[1] for x in r.stderr.decode().splitlines() if x.startswith("asb: ") and x.endswith(" ms")]


def built(h):
    source = tree(h, "tree", "two\n")
    r = h.call("image", "build", source, "--name", "t", "-m", "128", "-v")
    same((r.returncode, r.stdout), (0, b"t:2\n"), "a build with a template")
    want = ["unpack", "mkfs", "boot", "ready", "validate", "template", "validate", "commit"]
    got = [x for i, x in enumerate(stages(r)) if i == 0 or stages(r)[i - 1] != x]
    same(got, want, "its steps")
    i = listed(h)["t", 2]
    ok(i["newest"] and i["templates"] == 1 and i["template_bytes"] > 0, "it has a template", i)
    same((half(h), h.left()), ([], []), "nothing else is left")
    r = h.call("run", "-v", "-m", "128", "t", "say")
    ok(r.stdout == b"two\n" and "init" not in stages(r), "run starts from it", r, stages(r))
    r = h.call("create", "box", "--image", "t", "-m", "128")
    same(r.returncode, 0, "create, too")
    vm = glob.glob(os.path.join(h.path, ".agent_sandbox/local/vms/local-*/vm.json"))
    with open(vm[0], encoding="utf-8") as f:
        same(json.load(f)["image"], "t:2", "and keeps the version")
    same(listed(h)["t", 2]["used_by"], ["box"], "which is used now")
    same([(x["name"], x["image"]) for x in json.loads(h.call("ls", "--json").stdout)["sandboxes"]], [("box", "t:2")], "and ls tells it")
    r = h.call("image", "rm", "t:2")
    ok(r.returncode == 1 and b"used by box" in r.stderr, "and is not removed", r)
    for name in ("b2", "b3", "b4", "b5", "b6", "b7"):
        h.call("snapshot", "create", "box", name, "--disk-only")
    r = h.call("image", "rm", "t:2")
    told = one_line(r.stderr)[0].partition("used by ")[2]
    ok(len(set(told.split(" and ")[0].split(", "))) == 5 and told.endswith(" and 2 more"), "its users are told, five by name", r)
    h.call("snapshot", "rm", "b3", "b4", "b5", "b6", "b7")
    told = one_line(h.call("image", "rm", "t:2").stderr)[0].partition("used by ")[2]
    same(sorted(told.split(", ")), ["box", "snapshot b2"], "fewer are all told")
    h.call("snapshot", "rm", "b2")
    r = h.call("image", "rm", "t")
    ok(r.returncode == 1 and ("t", 1) in listed(h), "nor is any with it", r)


def bare(h):
    """One program, as FROM scratch with a static binary: not even /etc."""
    top = os.path.join(h.top, "bare")
    os.makedirs(os.path.join(top, "bin"))
    shutil.copy(os.path.join(h.top, "say"), os.path.join(top, "bin/say"))
    r = h.call("image", "build", top, "--name", "bare", "-m", "128")
    same((r.returncode, r.stdout), (0, b"bare:1\n"), "an image of one program")
    r = h.call("run", "-m", "128", "--net", "user", "bare", "say", "/etc/resolv.conf")
    ok(r.returncode == 0 and b"nameserver" in r.stdout, "which runs, also with a network", r)
    h.call("image", "rm", "bare")


def fails(h):
    source = tree(h, "tree", "three\n", **{"etc/not-ready": ""})
    os.symlink("/bin/say", os.path.join(source, "etc/asb/ready"))
    r = h.call("image", "build", source, "--name", "t", "-m", "128", "--start-timeout", "60", "--json")
    doc = json.loads(r.stdout)
    ok(r.returncode == 1 and doc["step"] == "ready", "an image that is never ready fails there", r)
    ok("asb-init" in doc["log"] or "Linux version" in doc["log"] or len(doc["log"]) > 100, "with the guest's log", doc)
    same((half(h), len(blobs(h)), sorted(k for k in listed(h) if k[0] == "t")), ([], 2, [("t", 1), ("t", 2)]),
         "and the versions before it stay")


def killed(h):
    source = tree(h, "four", "four\n")
    for step in ("boot", "template"):
        p = h.start("image", "build", source, "--name", "k", "-m", "160", "-v")
        line = b"x"
        while line and not line.startswith(b"asb: " + step.encode()):
            line = p.stderr.readline()
        ok(line, f"a build comes to {step}")
        p.send_signal(signal.SIGKILL)
        p.wait()
        p.stdout.close()
        p.stderr.close()
    same(len(half(h)), 1, "a killed build leaves its folder, and the next removes that")
    until = time.monotonic() + 60
    while len(h.left()) > 2 and time.monotonic() < until:
        h.call("ls")  # collects one that was killed before it had a supervisor
        time.sleep(0.2)
    same(len(h.left()), 2, "its guest ends with it: there is only the other sandbox, and its name")
    same(cold(h, source, "k").stdout, b"k:1\n", "the name is free")
    same(half(h), [], "and what was left is gone")
    p = h.start("image", "build", source, "--name", "k2", "-m", "160", "-v")
    while not p.stderr.readline().startswith(b"asb: boot"):
        pass
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=120)
    same((p.returncode, half(h)), (-signal.SIGINT, []), "an interrupted one undoes all")


def pruned(h):
    same(h.call("rm", "box").returncode, 0, "without its sandbox")
    r = h.call("image", "prune")
    same((r.returncode, len(listed(h))), (2, 4), "prune does not go without being asked")
    r = h.call("image", "prune", "--dry-run")
    ok(b"would remove image t:1" in r.stdout and ("t", 1) in listed(h), "a dry run tells", r)
    r = h.call("image", "prune", "-f", "--json")
    same([x["name"] for x in json.loads(r.stdout)["removed"]], ["t:1"], "the old version that nothing uses goes")
    ok(("t", 2) in listed(h), "the newest stays")
    same(h.call("image", "rm", "t").stdout, b"removed t:2\n", "now it can be removed")
    same(glob.glob(os.path.join(h.path, ".agent_sandbox/local/templates/[0-9a-f]*/about.json")), [], "its template with it")
    os.makedirs(images(h) + "/.new-0123456789abcdef")
    with open(images(h) + "/blobs/" + "0" * 64 + ".erofs", "w", encoding="utf-8") as f:
        f.write("x" * 10000)
    r = h.call("prune", "--dry-run")
    ok(b"would remove build .new-0123456789abcdef" in r.stdout and b"would remove content 000" in r.stdout, "asb prune tells", r)
    r = h.call("prune", "--json")
    same(sorted(x["kind"] for x in json.loads(r.stdout)["removed"]), ["build", "content"], "and removes what is stale")
    same((half(h), len(blobs(h))), ([], 1), "only that")
    ok(b"nothing to remove" in h.call("prune").stderr, "and then there is nothing")


with Home() as home:
    compile_program(home)
    tree(home, "tree", "hello\n")
    refused(home)
    sources(home)
    content(home)
    dockerfile(home)
    built(home)
    bare(home)
    fails(home)
    killed(home)
    pruned(home)
done()
