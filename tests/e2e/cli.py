#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line where it needs no VM: help, manual, completions, manifest, and what it refuses."""
import json
import os
import re
import shutil
import subprocess

from _asb import ASB, Home, need_asb, ok, one_line, same, done, TOP

need_asb()


def text_of(home):
    r = home.call("manifest")
    doc = json.loads(r.stdout)
    same(r.returncode, 0, "manifest")
    same(doc["schema"], 1, "the manifest has a schema")
    r = home.call("help")
    for c in doc["commands"]:
        name = c["name"]
        ok(f"  {name} " in r.stdout.decode(), f"help lists {name}")
        h = home.call("help", *name.split())
        same((h.returncode, h.stderr), (0, b""), f"help {name}")
        same(home.call(*name.split(), "--help").stdout, h.stdout, f"{name} --help is the same")
        ok(h.stdout.decode().startswith(f"usage: {c['usage']}\n"), f"help {name} begins with the usage")
        for o in c["options"]:
            ok(f"--{o['name']}" in h.stdout.decode(), f"help {name} has --{o['name']}")
        man = home.call("manifest", "--man", *name.split()).stdout.decode()
        name = name.replace(" ", "-")
        line = re.search(r'^\.Sh SYNOPSIS\n\.Li "(.*)"$', man, re.M)
        ok(line and line.group(1).replace("\\-", "-") == c["usage"], f"the synopsis of asb-{name}(1) is the usage", man[:400])
        page = os.path.join(TOP, "man", f"asb-{name}.1")
        ok(os.path.exists(page) and open(page, encoding="utf-8").read() == man, f"man/asb-{name}.1 is the table's",
           "make man writes it anew")
    man = home.call("manifest", "--man").stdout.decode()
    same(open(os.path.join(TOP, "man/asb.1"), encoding="utf-8").read(), man, "man/asb.1 is the table's")
    wide = [x for x in r.stdout.decode().splitlines() if len(x) > 80]
    same(wide, [], "help fits 80 columns")
    return doc


def man_reads():
    if not shutil.which("man"):
        ok(True, "man reads the pages # SKIP man is not installed")
        return
    bad = []
    for page in sorted(os.listdir(os.path.join(TOP, "man"))):
        if not page.startswith("asb") or not page.endswith(".1"):
            continue
        r = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", os.path.join(TOP, "man", page)],
                           capture_output=True, check=False, stdin=subprocess.DEVNULL)
        if r.returncode or r.stderr.strip():
            bad.append((page, r.stderr.decode()[:300]))
    same(bad, [], "man reads every page without a warning")


def completions(home):
    for shell, check in (("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "-n"])):
        script = os.path.join(home.top, "completion." + shell)
        r = home.call("completion", shell)
        ok(r.returncode == 0 and b"asb" in r.stdout, f"completion {shell}")
        with open(script, "wb") as f:
            f.write(r.stdout)
        if not shutil.which(shell):
            ok(True, f"{shell} reads it # SKIP {shell} is not installed")
            continue
        r = subprocess.run(check + [script], capture_output=True, check=False)
        same((r.returncode, r.stderr), (0, b""), f"{shell} reads it")
    bash = f'PATH="{os.path.dirname(ASB)}:$PATH"; . {home.top}/completion.bash; '
    for words, want in (("asb ru", "run"), ("asb run --net ", "none user"), ("asb help insp", "inspect"),
                        ("asb completion z", "zsh"), ("asb run -- --he", "")):
        line = (f'COMP_LINE="{words}"; COMP_WORDS=({words}); [[ $COMP_LINE == *" " ]] && COMP_WORDS+=(""); '
                'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _asb; echo ${COMPREPLY[*]}')
        r = subprocess.run(["bash", "-c", bash + line], capture_output=True, check=False, env=home.env)
        same(r.stdout.decode().strip(), want, f"bash completes '{words}'")


USAGE = [
    ["nope"], ["run"], ["run", "base"], ["exec", "app"], ["create"], ["create", "a/b"], ["create", "x" * 200],
    ["create", "a\nb"], ["create", "\x1b[31m"], ["create", ""], ["create", "a", "b"], ["run", "--nope", "--", "x"],
    ["run", "--memory", "1", "--", "x"], ["run", "--memory", "17592186044416", "--", "x"],
    ["run", "--memory", "99999999999999999999999", "--", "x"], ["run", "--cpus", "0", "--", "x"],
    ["run", "--cpus", "1000", "--", "x"], ["run", "--timeout", "-1", "--", "x"], ["run", "--net", "host", "--", "x"],
    ["run", "--env-file", "/nonexistent", "--", "x"], ["run", "-e", "=x", "--", "x"], ["completion", "tcsh"],
    ["help", "nope"], ["help", "--json"], ["completion", "bash", "--json"], ["rm"], ["run", "../../etc", "x"], ["run", "--name", "a b", "--", "x"],
    ["run", "\udcff\udc9b", "x"],
]


def refusals(home):
    for words in USAGE:
        r = home.call(*words)
        shown = " ".join(words)[:40].encode("unicode_escape").decode()
        ok(r.returncode == 2 and r.stdout == b"" and len(one_line(r.stderr)) == 1 and r.stderr.startswith(b"error: ")
           and b"\x1b" not in r.stderr, f"asb {shown}: one line and 2", r.returncode, r.stderr.decode("utf-8", "replace"))
    r = home.call("run", "--backend", "aws", "--", "true")
    same((r.returncode, len(one_line(r.stderr))), (2, 1), "the aws backend wants an image")
    r = home.call("run", "arn:aws:x", "true", "--json")
    same(r.returncode, 125, "an ARN is for aws")
    same(home.left(), [], "nothing was begun for any of them")
    r = home.call("rnu")
    ok(b"asb run" in r.stderr, "a misspelt command gets a suggestion")
    r = home.call("cp", "a:/b", "c:/d")
    ok(r.returncode == 2 and b"| asb cp -" in r.stderr, "a copy between sandboxes gets one too", r)
    file = os.path.join(home.top, "blank.env")
    with open(file, "w", encoding="utf-8") as f:
        f.write("A=1\nexport B=2\n")
    r = home.call("run", "--env-file", file, "--", "x")
    ok(r.returncode == 2 and b"line 2 has a blank in its name" in r.stderr, "a shell's word in --env-file", r)


def state(home):
    folder = os.path.join(home.path, ".agent_sandbox")
    os.makedirs(folder, exist_ok=True)
    file = os.path.join(folder, "state.json")
    for text in ("{", "[]", '{"sandboxes": []}', "\0"):
        with open(file, "w", encoding="utf-8") as f:
            f.write(text)
        for words, want in ((["ls"], 1), (["ps", "a"], 1), (["rm", "a"], 1), (["create", "a"], 1),
                            (["run", "--", "true"], 125), (["exec", "a", "true"], 125)):
            r = home.call(*words)
            ok(r.returncode == want and file.encode() in r.stderr and len(one_line(r.stderr)) == 1,
               f"asb {words[0]} on a damaged state file ({text[:8]!r}): {want} and its path", r.returncode, r.stderr)
        same(open(file, encoding="utf-8").read(), text, "it is left as it was")
    record = {"name": "cloud", "microvm_id": "microvm-1", "endpoint": "e", "image_arn": "arn:x", "region": "eu"}
    gone = {"name": "gone", "microvm_id": "local-0123456789abcdef", "endpoint": None, "image_arn": "base", "region": None}
    with open(file, "w", encoding="utf-8") as f:
        json.dump({"sandboxes": {"cloud": record, "gone": gone, "lost": {**gone, "name": "lost"}}, "kept": 1}, f)
    same(home.call("exec", "gone", "true").returncode, 125, "exec in a machine that is gone")
    same(home.call("rm", "gone").returncode, 0, "rm forgets a machine that is gone")
    same(home.call("rm", "gone").returncode, 1, "and then does not know it")
    r = home.call("ls", "--json")
    ok(b"disk not mounted" in r.stderr and [(x["name"], x["state"]) for x in json.loads(r.stdout)["sandboxes"]] ==
       [("cloud", "UNKNOWN"), ("lost", "MISSING")], "ls forgets none when the folder of all is missing", r)
    os.makedirs(os.path.join(folder, "local/vms"))
    doc = json.loads(home.call("ls", "--json").stdout)
    same([(x["name"], x["state"], x["backend"]) for x in doc["sandboxes"]], [("cloud", "UNKNOWN", "aws")],
         "ls tells what it cannot know, and forgets names whose machine is gone")
    same(home.call("exec", "cloud", "true").returncode, 125, "exec on a backend that is not there")
    same(home.call("rm", "cloud").returncode, 1, "rm does not forget what may still be billed")
    same(home.call("rm", "--force", "cloud").returncode, 0, "unless forced")
    same(json.load(open(file, encoding="utf-8")), {"sandboxes": {}, "kept": 1}, "unknown keys stay")
    same(os.stat(file).st_mode & 0o777, 0o600, "the state file is 0600")


def odd_homes(home):
    for value, what in ((None, "no HOME"), ("", "an empty HOME"), ("x", "a relative HOME"), ("/proc", "an unwritable HOME")):
        env = dict(home.env)
        env.pop("HOME")
        if value is not None:
            env["HOME"] = value
        for words, want in ((["create", "a"], 1), (["run", "--", "true"], 125)):
            r = subprocess.run([ASB, *words], env=env, capture_output=True, check=False, stdin=subprocess.DEVNULL,
                               timeout=60)
            ok(r.returncode == want and len(one_line(r.stderr)) == 1, f"{what}: asb {words[0]} gives {want} and one line",
               r.returncode, r.stderr)


def streams(home):
    with open("/dev/full", "wb") as full:
        r = home.call("help", stdout=full)
        ok(r.returncode == 1 and b"standard output" in r.stderr, "a full disk behind stdout is told", r.stderr)
    p = subprocess.run(["bash", "-c", f"trap '' PIPE; '{ASB}' manifest | true; echo ${{PIPESTATUS[0]}}"],
                       capture_output=True, check=False, env=home.env)
    ok(p.stdout.strip() in (b"141", b"0"), "a reader that has gone ends asb quietly", p.stdout, p.stderr)
    same(p.stderr, b"", "without a word")
    for fd in (0, 1, 2):
        r = subprocess.run(["bash", "-c", f"'{ASB}' version {fd}>&-"], capture_output=True, check=False, env=home.env)
        ok(r.returncode in (0, 1), f"a closed descriptor {fd} is no crash", r.returncode)
    r = home.call("nope", "--json")
    same(r.returncode, 2, "usage errors with --json too")


with Home() as h:
    text_of(h)
    man_reads()
    completions(h)
    refusals(h)
    state(h)
    odd_homes(h)
    streams(h)
done()
