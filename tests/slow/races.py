#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 3600
"""Two asb at once that want the same, at many distances from each other."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

from _asb import Home, done, need_vm
from _races import all_races

need_vm()
with Home() as home:
    all_races(home, [0, 0.005, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.9, 1.3])
done()
