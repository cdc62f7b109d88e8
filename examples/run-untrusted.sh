#!/bin/sh
# Runs a Python file in a sandbox of its own: no network, one CPU, 256 MiB, ten seconds.
#     examples/run-untrusted.sh FILE.py [ARG...]
set -eu
file=$1
shift
exec asb run -m 256 --timeout 10 -- python3 - "$@" <"$file"
