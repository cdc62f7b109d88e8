# SPDX-License-Identifier: Apache-2.0
"""Local ports that the kernel chooses for connections: unlike those of bind(2) they are no random numbers, but a hash and small
steps, so that two clones with one secret have ports beside each other rather than the same ones."""

# Python for the guest: connected() is a list of ports, one a destination; agentd listens at all of them.
CONNECTED = """
import socket
def connected():
    all = [socket.create_connection((f"127.0.0.{i}", 8080)) for i in range(1, 5)]
    ports = [s.getsockname()[1] for s in all]
    for s in all:
        s.close()
    return ports
"""
STEP = 64  # that each destination may be ahead, in one of two


def are_apart(lists):
    """Whether no two of LISTS (texts, as print() makes them) go on from one number."""
    try:
        lists = [[int(x) for x in s.strip("[]").split(",")] for s in lists]
    except ValueError:
        return False
    return all(any(abs(x - y) > STEP for x, y in zip(a, b)) for i, a in enumerate(lists) for b in lists[:i])
