#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the fuzz targets have found before (fuzz/corpus), once more, under the address and undefined-behaviour sanitizers."""
import glob
import os
import subprocess

from _agentd import TOP, done, ok

os.chdir(TOP)
os.makedirs("build/fuzz", exist_ok=True)
for source in sorted(glob.glob("fuzz/*.c")):
    name = os.path.basename(source)[:-2]
    corpus = f"fuzz/corpus/{name}"
    if not ok(os.path.isdir(corpus) and os.listdir(corpus), f"{name} has a corpus"):
        continue
    try:
        r = subprocess.run([f"build/asan/fuzz/{name}", corpus], stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        ok(r.returncode == 0, f"{name}: {r.stdout.decode().strip()}", r.stderr[-3000:].decode("utf-8", "replace"))
    except (OSError, subprocess.TimeoutExpired) as e:
        ok(False, f"{name} runs to its end", e)
done()
