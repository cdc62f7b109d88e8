#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The curl lines of docs/agent-api.md, run as they stand.

Every fenced block marked "curl" is read in the order of the page and run in one shell against one agentd, in an empty
directory; $AGENTD is its address. A line (or several that end in a backslash) is a command. "# => PATTERN" behind it is
a regular expression that its output has; without one, an output with {"detail" fails. Its exit status must be 0: one that
is meant to be cut off ends in "|| true". Each route of agentd/app.c must have such a line.
"""
import os
import re
import shlex
import sys

from _agentd import *

sys.path.insert(0, os.path.join(TOP, "tests/lib"))
from shell import Shell

PAGE = os.path.join(TOP, "docs", "agent-api.md")


def commands(text):
    """[(line number, command, [pattern])]"""
    found, inside, more = [], False, False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside, more = line.strip() == "```curl", False
        elif inside and more:
            at, command, patterns = found[-1]
            found[-1] = (at, command + "\n" + line, patterns)
            more = line.endswith("\\")
        elif inside and line.startswith("# => "):
            found[-1][2].append(line[5:].strip())
        elif inside and line.strip() and not line.startswith("#"):
            found.append((number, line, []))
            more = line.endswith("\\")
    return found


def routes():
    with open(os.path.join(TOP, "agentd", "app.c"), encoding="utf-8") as f:
        return re.findall(r'^\t\{ "([A-Z]+)", "(/[^"]*)"', f.read(), re.M)


def request(command):
    """(method, path) of a curl command, or None"""
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    if "curl" not in words:
        return None
    words = words[words.index("curl") + 1:]
    method, url, i = None, None, 0
    while i < len(words) and words[i] not in ("|", "||", "&&", ";", ">"):
        word = words[i]
        if word in ("-X", "--request"):
            i += 1
            method = words[i]
        elif word in ("-T", "--upload-file"):
            method = method or "PUT"
            i += 1
        elif word in ("-I", "--head"):
            method = "HEAD"
        elif word in ("-d", "--data", "--data-binary", "--data-raw", "--json"):
            method = method or "POST"
            i += 1
        elif word.startswith("$AGENTD/") and url is None:
            url = word[len("$AGENTD"):]
        i += 1
    return (method or "GET", url.split("?")[0]) if url else None


def is_for(got, method, pattern):
    return got and got[0] == method and re.fullmatch(re.escape(pattern).replace(r"\{\}", "[^/]+"), got[1])


with open(PAGE, encoding="utf-8") as page:
    todo = commands(page.read())
a = Agentd()
work = os.path.join(a.dir, "curl")
os.mkdir(work)
shell = Shell(work, {"PATH": os.environ["PATH"], "HOME": work, "AGENTD": f"http://127.0.0.1:{a.port}", "LC_ALL": "C.UTF-8"})
seen = []
for number, command, patterns in todo:
    status, out = shell.run(command)
    missing = [p for p in patterns if not re.search(p, out, re.S)]
    refused = not patterns and '{"detail"' in out
    ok(status == 0 and not missing and not refused, f"line {number}: {command.splitlines()[0][:90]}",
       (f"exit status {status}", "without " + ", ".join(missing) if missing else "", out))
    seen.append(request(command))
for method, pattern in routes():
    ok(any(is_for(got, method, pattern) for got in seen), f"{method} {pattern} has a curl line")
ok(len(routes()) >= 12, "the table of routes was found")
ok(a.proc.poll() is None, "agentd is alive")
shell.end()
done()
