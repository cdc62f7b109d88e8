#!/bin/bash
# Runs the same program on each input file and compares with the file beside it: tests/1.in, tests/1.out, …
# One sandbox for all of them, so that each run costs milliseconds.
#     examples/grade.sh PROGRAM.py FOLDER
set -eu
box=grade-$$
asb create -q "$box" >/dev/null
trap 'asb rm -q "$box" >/dev/null' EXIT
asb exec "$box" -- sh -c 'cat > /tmp/program.py' <"$1"
for input in "$2"/*.in; do
	want=${input%.in}.out
	if asb exec --timeout 5 "$box" -- python3 /tmp/program.py <"$input" 2>/dev/null | cmp -s - "$want"; then
		echo "pass $(basename "$input")"
	else
		echo "FAIL $(basename "$input")"
	fi
done
