#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 28800
"""Every step of create, stop, start, branch, snapshot, rm and image build fails once: killed, all killed, no space, an error of the disk."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from _walk import Home, World, done, need_trace, walks

need_trace()
only = os.environ.get("WALK", "")  # part of a walk's name

with Home() as home:
    world = World(home)
    for make, some in walks(world):
        if any(only in w.name for w in some):
            make(world)
        for walk in some:
            if only in walk.name:
                walk.all()
    world.end()
done()
