/* SPDX-License-Identifier: Apache-2.0 */
/* main() of a fuzz target that is built without libFuzzer: runs it once for each file that is named, or is in a folder that is. */
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"

static int one(const char *path)
{
	FILE *f = fopen(path, "rbe");
	struct stat st;
	uint8_t *p;
	size_t n;

	if (!f || fstat(fileno(f), &st) < 0 || !(p = malloc((size_t)st.st_size + 1))) {
		perror(path);
		return 1;
	}
	n = fread(p, 1, (size_t)st.st_size, f);
	(void)fclose(f);
	fprintf(stderr, "%s\n", path); /* the last one before a report is the guilty one */
	(void)LLVMFuzzerTestOneInput(p, n);
	free(p);
	return 0;
}

int main(int argc, char **argv)
{
	int bad = argc < 2, n = 0;

	for (int i = 1; i < argc; i++) {
		DIR *d = opendir(argv[i]);
		struct dirent *e;
		char path[4096];

		if (!d) {
			bad |= one(argv[i]);
			n++;
			continue;
		}
		while ((e = readdir(d))) {
			if (e->d_name[0] == '.')
				continue;
			(void)snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
			bad |= one(path);
			n++;
		}
		(void)closedir(d);
	}
	printf("%d inputs\n", n);
	return bad || n == 0;
}
