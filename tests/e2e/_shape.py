# SPDX-License-Identifier: Apache-2.0
"""What a folder of asb holds: whether all that is in it is whole, and its shape.

Whole: every file that has its final name has all that it must have, by its own format: a list of pages ends where its
head says, a template and a snapshot are what their manifests say, sums included, a disk passes `qemu-img check`, a
record has its folder and the other way round. The shape is what then remains to tell two folders apart: which files
there are, what the small ones say, and which names are links to one file. Ids, times and lengths of memory differ from run to
run and mean nothing, so they are not in it.
"""
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess

IDS = re.compile(r"\b(?:local-[0-9a-f]{16}|[0-9a-f]{16,64})\b")
PASSING = ("created_at", "created", "created_s", "started", "begun", "ended", "ends", "pid", "changed", "bytes", "sum", "ram", "disk",
           "devices", "key", "sha256", "reason")
BESIDE = ("lock", "making", ".lock", "console.log", "supervisor.log", "accel.json")  # what nobody's work depends on
PAGE_HEAD = struct.Struct("<8s4Q")
BLOCK = 65536

known = {}  # of files that were read before: (inode, length, time of change) to what was found


def data_blocks(fd, size):
    """(offset, block) of what is not a hole."""
    at = 0
    while at < size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA) // BLOCK * BLOCK
            end = os.lseek(fd, at, os.SEEK_HOLE) if os.pread(fd, 1, at) else size
        except OSError:  # no more data
            return
        end = max(end, at + 1)
        while at < min(end, size):
            yield at, os.pread(fd, BLOCK, at)
            at += BLOCK


def once(path, what, fn):
    st = os.stat(path)
    key = what, st.st_ino, st.st_dev, st.st_size, st.st_mtime_ns
    if key not in known:
        known[key] = fn(path)
    return known[key]


def digest(path):
    """docs/snapshots.md, snapshot.json."""
    d, size = hashlib.sha256(), os.path.getsize(path)
    fd = os.open(path, os.O_RDONLY)
    try:
        for at, block in data_blocks(fd, size):
            if block.strip(b"\0"):
                d.update(at.to_bytes(8, "little") + block)
    finally:
        os.close(fd)
    d.update(size.to_bytes(8, "little"))
    return d.hexdigest()


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def pages(path):
    """None, or why it is no whole list of pages (host/local/ram.c)."""
    with open(path, "rb") as f:
        head = f.read(PAGE_HEAD.size)
        if len(head) != PAGE_HEAD.size:
            return "it has no head"
        magic, page, total, stored, batches = PAGE_HEAD.unpack(head)
        if magic != b"ASBRAM1\n" or page != 4096:
            return "it has no head"
        for _ in range(batches):
            n, = struct.unpack("<Q", f.read(8).ljust(8, b"\xff"))
            if n > stored or n > total:
                return "it is cut"
            f.seek(n * (8 + page), os.SEEK_CUR)
            stored -= n
        return None if stored == 0 and f.tell() == os.fstat(f.fileno()).st_size else "it is not as long as it says"


def disk(path):
    if not shutil.which("qemu-img"):
        return None
    r = subprocess.run(["qemu-img", "check", "-U", "-q", "-f", "qcow2", path], capture_output=True, check=False)
    return None if r.returncode in (0, 3) else f"qemu-img check: {r.stdout + r.stderr}"  # 3: clusters that nobody uses


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def stamp(path):
    st = os.stat(path)
    return f"{st.st_size} {st.st_mtime_ns // 10**9}.{st.st_mtime_ns % 10**9:09d}"


# --- whole
def memory(folder, base):
    """saved/ and a snapshot's memory; BASE: the memory below it."""
    for name in ("ram", "devices"):
        if not os.path.exists(os.path.join(folder, name)) or not os.path.getsize(os.path.join(folder, name)):
            return f"{folder}/{name} is missing or empty"
    why = once(os.path.join(folder, "ram"), "pages", pages)
    state = os.path.join(folder, "state.json")
    if not why and os.path.exists(state) and load(state)["based"] and not os.path.exists(base):
        why = f"{base} is missing"
    return why and f"{folder}/ram: {why}"


def vm(folder, name, runs):
    config = load(os.path.join(folder, "vm.json"))
    base = os.path.join(folder, "base.ram")
    if config["id"] != os.path.basename(folder) or config["name"] != name or not os.path.exists(os.path.join(folder, "kept")):
        return f"{folder}: vm.json is of {config['id']} {config['name']}, recorded as {name}; kept: {os.listdir(folder)}"
    if os.path.exists(base) and os.path.getsize(base) != config["memory_mib"] << 20:
        return f"{base} is {os.path.getsize(base)} long"
    saved = os.path.join(folder, "saved")
    if os.path.isdir(saved):
        why = f"{folder} is saved and runs" if runs else memory(saved, base)
        if why:
            return why
    path = os.path.join(folder, "disk.qcow2")
    why = None if runs else once(path, "disk", disk)
    return why and f"{path}: {why}"


def template(folder):
    m = load(os.path.join(folder, "template.json"))
    good = m["key"] == os.path.basename(folder) and m["ram"] == stamp(os.path.join(folder, "ram")) and \
        m["disk"] == stamp(os.path.join(folder, "disk.qcow2")) and m["devices"] == once(os.path.join(folder, "devices"), "sha256", sha256)
    return None if good else f"{folder} is not what template.json says"


def snapshot(folder):
    m = load(os.path.join(folder, "snapshot.json"))
    for name, part in m["files"].items():
        path = os.path.join(folder, name)
        if part["bytes"] != os.path.getsize(path) or part["sum"] != once(path, "digest", digest):
            return f"{path} is not what snapshot.json says"
    return memory(folder, "") if m["memory"] else None


def image(folder):
    m, path = load(os.path.join(folder, "image.json")), os.path.join(folder, "rootfs.erofs")
    good = m["sha256"] == once(path, "sha256", sha256) and os.stat(path).st_nlink >= 2
    return None if good else f"{path} is damaged, or its content is not linked"


def each(folder, fn):
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not name.startswith("."):
            why = fn(path)
            if why:
                return why
    return None


def whole(state, running):
    """None, or what is not so. RUNNING: names of sandboxes with a machine."""
    local, names = os.path.join(state, "local"), named(state)
    vms = os.path.join(local, "vms")
    there = set(os.listdir(vms)) if os.path.isdir(vms) else set()
    if there != set(names):
        return f"recorded are {names}, and there are {there}"
    try:
        return each(vms, lambda f: vm(f, names[os.path.basename(f)], names[os.path.basename(f)] in running)) or \
            each(os.path.join(local, "templates"), template) or each(os.path.join(local, "snapshots"), snapshot) or \
            each(os.path.join(local, "images"), lambda f: None if os.path.basename(f) == "blobs" else each(f, image))
    except (OSError, ValueError, KeyError) as e:
        return f"{type(e).__name__}: {e}"


# --- shape
def plain(value, key=""):
    """What a small file says, without what differs from run to run."""
    if isinstance(value, dict):
        return {k: plain(v, k) for k, v in value.items() if k not in PASSING or isinstance(v, (dict, list))}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value if isinstance(value, (bool, str)) or key in ("cpus", "memory_mib", "version", "format") else bool(value)


def what(path, st):
    if path.endswith(".json"):
        try:
            return json.dumps(plain(load(path)), sort_keys=True)
        except ValueError:
            return "no JSON"
    return "empty" if st.st_size == 0 else "data"


def named(state):
    """{id: name} of what is recorded."""
    path = os.path.join(state, "state.json")
    return {r["microvm_id"]: name for name, r in load(path)["sandboxes"].items()} if os.path.exists(path) else {}


def shape(state):
    """Two states whose shapes are the same differ in nothing that asb looks at, when both are whole."""
    found, ids = [], named(state)
    for top, dirs, files in os.walk(state):
        for name in dirs + files:
            path = os.path.join(top, name)
            if name not in BESIDE and not name.endswith(".sock"):
                found.append((os.path.relpath(path, state), path, os.lstat(path)))
    inodes = [st.st_ino for _, _, st in found]
    lines = []
    for where, path, st in found:
        links = sorted(w for w, _, other in found if other.st_ino == st.st_ino) if inodes.count(st.st_ino) > 1 else ""
        lines.append(f"{where} {st.st_mode:o} {links} {'' if os.path.isdir(path) else what(path, st)}")
    lines = sorted(IDS.sub(lambda m: ids.get(m.group(), m.group()), line) for line in lines)
    rest = {}
    return IDS.sub(lambda m: rest.setdefault(m.group(), f"id{len(rest)}"), "\n".join(lines))
