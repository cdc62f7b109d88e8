#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# DEADLINE: 600
"""Two asb at once that want the same, once each. tests/slow/races.py does so at many distances."""
from _asb import Home, done, need_vm
from _races import all_races

need_vm()
with Home() as home:
    all_races(home, [0.02])
done()
