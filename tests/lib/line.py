# SPDX-License-Identifier: Apache-2.0
"""A program that is spoken with line by line: one that says nothing must not hold up a suite."""
import threading


def next_line(p, limit=60):
    """The next line of P's output, as text. P is killed when none comes in LIMIT seconds; then it is "", or what there was of it."""
    guard = threading.Timer(limit, p.kill)
    guard.start()
    try:
        return p.stdout.readline().decode()
    finally:
        guard.cancel()
