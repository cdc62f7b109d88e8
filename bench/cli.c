/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `asb` itself costs: --version, and ls with 200 records, beside posix_spawn + wait of a static true.
 *     bench-cli ASB TRUE EMPTY_DIR
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stats.h"

#define N	300
#define RECORDS 200

extern char **environ;

static struct stats floor_s, s;

static void run(struct stats *into, char **argv)
{
	posix_spawn_file_actions_t fa;
	int64_t t = stats_now();
	int status;
	pid_t pid;

	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_addopen(&fa, 1, "/dev/null", O_WRONLY, 0);
	if (posix_spawn(&pid, argv[0], &fa, NULL, argv, environ) || waitpid(pid, &status, 0) < 0 ||
	    status) {
		fprintf(stderr, "%s %s failed\n", argv[0], argv[1] ? argv[1] : "");
		exit(1);
	}
	stats_add(into, stats_now() - t);
	posix_spawn_file_actions_destroy(&fa);
}

static void write_state(const char *path)
{
	FILE *f = fopen(path, "we");

	if (!f)
		exit(1);
	fprintf(f, "{\n  \"sandboxes\": {");
	for (int i = 0; i < RECORDS; i++)
		fprintf(f,
			"%s\n    \"box%d\": {\"name\": \"box%d\", \"microvm_id\": \"local-%016x\", \"endpoint\": null, "
			"\"image_arn\": \"base\", \"region\": null}",
			i ? "," : "", i, i, i + 1);
	fprintf(f, "\n  }\n}\n");
	if (fclose(f))
		exit(1);
}

int main(int argc, char **argv)
{
	char state[4096];
	char word_version[] = "--version", word_ls[] = "ls";

	if (argc != 4) {
		fprintf(stderr, "usage: bench-cli ASB TRUE EMPTY_DIR\n");
		return 2;
	}
	(void)snprintf(state, sizeof(state), "%s/state.json", argv[3]);
	write_state(state);
	(void)setenv("AGENT_SANDBOX_STATE", state, 1);
	stats_title("asb itself");
	stats_reset(&floor_s, "posix_spawn + wait of a static true");
	stats_reset(&s, "asb --version (goal 2 ms)");
	for (int i = 0; i < N; i++) {
		run(&floor_s, (char *[]){ argv[2], NULL });
		run(&s, (char *[]){ argv[1], word_version, NULL });
	}
	stats_row(&floor_s, NULL);
	stats_row(&s, &floor_s);
	stats_reset(&s, "asb ls, 200 records (goal 10 ms)");
	for (int i = 0; i < N; i++)
		run(&s, (char *[]){ argv[1], word_ls, NULL });
	stats_row(&s, &floor_s);
	return 0;
}
