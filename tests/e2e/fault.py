#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 900
"""One step of each kind fails, in create, stop, start, branch, rm and image build: killed, all killed, no space, an error of the disk,
and what is made is removed just then. tests/slow/fault.py does so at every step."""
import errno

from _walk import Home, World, done, need_trace, walks

need_trace()

KILL, ALL, FULL, BROKEN, RM = ("kill",), ("kill-all",), ("error", errno.ENOSPC), ("error", errno.EIO), ("meanwhile",)
STEPS = {
    "first create": (["rename /templates/", "pwrite64 /ram", "fsync /state.json"], [KILL, FULL, BROKEN]),
    "create": (["mkdir /.new-local", "rename /state.json", "copy_file_range /disk.qcow2", "openat /kept", "rename /local-", "mkdir /.new-local",
                "last openat /.status.json.new"], [ALL, KILL, FULL, BROKEN, ALL, RM, FULL]),
    "stop": (["fsync /saved.new/ram", "renameat /saved", "write /saved.new/ram", "last fsync /vms/local-"], [BROKEN, KILL, FULL, BROKEN]),
    "start": (["renameat /saved.gone", "unlinkat /saved.gone", "fsync /vms/local-", "last unlinkat /saved.gone"], [KILL, ALL, BROKEN, BROKEN]),
    "branch": (["linkat /base.ram", "mkdir /branch-", "rename /local-", "mkdir /branch-"], [KILL, FULL, ALL, RM]),
    "snapshot restore": (["mkdir /.new-local"], [RM]),
    "rm of a suspended one": (["rename /.old-", "unlinkat /", "rename /state.json"], [KILL, KILL, BROKEN]),
    "image build": (["linkat /blobs/", "rename /templates/", "rename /tool/2"], [KILL, FULL, ALL]),
}

with Home() as home:
    world = World(home)
    for make, some in walks(world):
        make(world)
        for walk in some:
            if walk.name in STEPS:
                walk.some(*STEPS[walk.name])
    world.end()
done()
