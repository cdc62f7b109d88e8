# SPDX-License-Identifier: Apache-2.0
"""An image of one static program: it is packed and boots as fast as any can."""
import os
import shutil
import subprocess

from _asb import TOP, skip_all

# Prints a file of the image; as the readiness check it fails when the image says so.
PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char line[200];
	FILE *f = fopen(argc > 1 ? argv[1] : "/etc/text", "r");

	if (strstr(argv[0], "ready"))
		return access("/etc/not-ready", F_OK) == 0;
	while (f && fgets(line, sizeof(line), f))
		fputs(line, stdout);
	return f ? 0 : 3;
}
"""


def compile_program(h):
    source, program = os.path.join(h.top, "say.c"), os.path.join(h.top, "say")
    with open(source, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    for cc in (os.path.join(TOP, "build/deps/bin/x86_64-musl-cc"), "gcc"):
        words = [cc, "-O1", "-static", "-o", program, source]
        if shutil.which(cc) and subprocess.run(words, capture_output=True, check=False).returncode == 0:
            return program
    return skip_all("there is no compiler for a static program")


def tree(h, name, text, **files):
    """A directory with the program, and its text."""
    top = os.path.join(h.top, name)
    for d in ("bin", "etc/asb", "proc"):
        os.makedirs(os.path.join(top, d), exist_ok=True)
    shutil.copy(os.path.join(h.top, "say"), os.path.join(top, "bin/say"))
    if not os.path.exists(os.path.join(top, "bin/link")):
        os.symlink("say", os.path.join(top, "bin/link"))
    for path, content in {"etc/text": text, "proc/hidden": "x", **files}.items():
        with open(os.path.join(top, path), "w", encoding="utf-8") as f:
            f.write(content)
    return top
