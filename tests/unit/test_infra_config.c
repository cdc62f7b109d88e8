/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/infra/yaml.c host/infra/config.c host/infra/load.c host/infra/template.c */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/infra/config.h"
#include "host/infra/yaml.h"
#include "lib/buf.h"
#include "lib/fd.h"
#include "lib/str.h"
#include "tap.h"

static struct infra_configs got;
static struct err why;

static int parse(const char *text)
{
	infra_configs_done(&got);
	why = (struct err)ERR_INIT;
	return infra_config_parse("f.yaml", text, strlen(text), NULL, &got, &why);
}

static const char *text(size_t i, enum infra_text t)
{
	return i < got.len ? got.all[i].text[t] : NULL;
}

static void refused(const char *yaml, const char *message)
{
	ok(parse(yaml) < 0, "refused: %.*s", (int)strcspn(yaml, "\n"), yaml);
	if (!ok(strstr(why.msg, message), "  says: %s", message))
		printf("# %s\n", why.msg);
}

static void defaults(void)
{
	ok_int(parse("{}"), 0, "an empty mapping");
	ok_str(text(0, INFRA_PROJECT), "agent-sandbox-os", "project");
	ok_str(text(0, INFRA_STACK), "dev", "stack");
	ok_str(text(0, INFRA_REGION), "us-east-1", "region");
	ok_str(text(0, INFRA_GUEST_DIR), "./guest", "guest_dir");
	ok_str(text(0, INFRA_ROLE_NAME), "agent-sandbox-exec", "role");
	ok_str(text(0, INFRA_BUILD_ROLE_NAME), "agent-sandbox-build", "the build role is another");
	ok(!got.all[0].egress, "no egress");
	ok_int(got.all[0].expire_days, 30, "artefacts expire");
	ok_int(parse(infra_template), 0, "the template is read");
	for (int i = 0; i < INFRA_TEXT_COUNT; i++) {
		struct infra_configs d = { NULL, 0 };

		ok_int(infra_config_parse("f", "{}", 2, NULL, &d, NULL), 0, "defaults again");
		ok_str(text(0, i), d.all[0].text[i], "the template has the default");
		infra_configs_done(&d);
	}
	ok(!got.all[0].egress && got.all[0].expire_days == 30, "and so it has of the rest");
}

static void python_file(void)
{
	ok_int(parse("project: demo\nstack: prod\nregion: eu-west-1\nimage:\n  name: g\n  guest_dir: ./g\n"
		     "  base_image_version: \"1.0\"\nrole:\n  arn: \"\"\n  name: team-x\n"
		     "  extra_policy_arns: [\"arn:aws:iam::aws:policy/ReadOnlyAccess\"]\nbucket:\nnetwork:\n"
		     "  egress:\n    vpc_id: vpc-1\n    subnet_ids: [subnet-1, private-a]\n"),
	       0, "a file of the Python project");
	ok_str(text(0, INFRA_PROJECT), "demo", "project");
	ok_str(text(0, INFRA_BUILD_ROLE_NAME), "team-x-build", "a build role beside the role");
	ok_str(text(0, INFRA_BASE_VERSION), "1.0", "a quoted number is text");
	ok_int(got.all[0].policies.len, 1, "policies");
	ok_int(got.all[0].subnets.len, 2, "subnets");
	ok_str(got.all[0].subnets.all[1], "private-a", "a subnet by its name");
	ok(got.all[0].egress, "a VPC means egress");
	ok_int(parse("a: &x 1\n"), -EINVAL, "(an unknown key)");
	ok_int(parse("project: &p demo\nstack: *p\n"), 0, "an alias");
	ok_str(text(0, INFRA_STACK), "demo", "is what it stands for");
	ok_int(parse("project: ~\nimage: null\nnetwork: {egress: }\n"), 0, "null is not given");
	ok_int(parse("network: {egress: {name: x}}"), 0, "the name alone");
	ok(!got.all[0].egress, "asks for no egress");
	ok_int(parse("network: {egress: {enabled: true}}"), 0, "egress with all defaults");
	ok(got.all[0].egress, "is possible");
	ok_int(parse("---\nproject: a\n---\n---\nproject: b\n"), 0, "several documents");
	ok_int(got.len, 2, "an empty one is passed over");
	ok_str(text(1, INFRA_PROJECT), "b", "the second");
	ok_int(got.all[1].line, 5, "begins in its line");
}

static void strict(void)
{
	static const char *const bad[][2] = {
		{ "projet: x\n", "f.yaml:1:1: unknown key 'projet'" },
		{ "image:\n  nam: x\n", "f.yaml:2:3: unknown key 'image.nam'" },
		{ "image: {network.egress: x}\n", "unknown key" },
		{ "\"image.name\": x\n", "unknown key" },
		{ "<<: {project: a}\n", "unknown key '<<'" },
		{ "project: 12\n", "f.yaml:1:10: project: text is wanted; put '12' into quotes" },
		{ "project: yes\n", "put 'yes' into quotes" },
		{ "image: {base_image_version: 1.0}\n", "put '1.0' into quotes" },
		{ "project: \"\"\n", "must not be empty" },
		{ "project: a/b\n", "is not up to 64 letters" },
		{ "project: [a]\n", "text is wanted, not a list" },
		{ "image: x\n", "image: a mapping is wanted, not text" },
		{ "region: US-EAST-1\n", "is not a region" },
		{ "role: {arn: my-role}\n", "is not the ARN of a role" },
		{ "role: {name: \"a b\"}\n", "role.name" },
		{ "role: {name: r}\nbuild_role: {name: r}\n", "are the same" },
		{ "bucket: {name: My_Bucket}\n", "bucket.name" },
		{ "bucket: {expire_days: -1}\n", "a number of days" },
		{ "network: {egress: {subnet_ids: subnet-1}}\n", "a list is wanted, not text" },
		{ "network: {egress: {subnet_ids: [1]}}\n", "put '1' into quotes" },
		{ "network: {egress: {enabled: \"true\"}}\n", "true or false" },
		{ "network: {egress: {enabled: false, vpc_id: vpc-1}}\n", "ask for egress" },
		{ "project: a\nproject: b\n", "f.yaml:2:1: the key is there already" },
		{ "project: !!str a\n", "tags are not supported" },
		{ "project: \"a\\0b\"\n", "NUL byte" },
		{ "- a\n", "a mapping is wanted at the top" },
		{ "project: [a\n", "invalid YAML" },
		{ "", "there is no document in it" },
		{ "---\n", "there is no document in it" },
		{ "project: *x\n", "stands for nothing" },
		{ "project: &x [*x]\n", "stands for nothing" },
		{ "[a]: b\n", "a key is not text" },
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		refused(bad[i][0], bad[i][1]);
}

/* Ten levels of ten aliases stand for 10^10 nodes; nothing of that is made. */
static void bombs(void)
{
	AUTO_BUF b;

	buf_init(&b, 1U << 20);
	ignore_result(buf_adds(&b, "a0: &a0 [x]\n"));
	for (int i = 1; i < 11; i++)
		ignore_result(buf_addf(
			&b, "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i,
			i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1));
	refused(b.p, "unknown key 'a0'");
	buf_clear(&b);
	for (int i = 0; i < 17; i++)
		ignore_result(buf_adds(&b, "["));
	refused(b.p, "nested too deeply");
	buf_clear(&b);
	for (int i = 0; i < 300; i++)
		ignore_result(buf_addf(&b, "k%d: %s\n", i, i ? "*a" : "&a x"));
	refused(b.p, "too many aliases");
	buf_clear(&b);
	for (int i = 0; i < 70; i++)
		ignore_result(buf_addf(&b, "k%d: &a%d x\n", i, i));
	refused(b.p, "too many anchors");
	buf_clear(&b);
	ignore_result(buf_adds(&b, "["));
	for (int i = 0; i < 20000; i++)
		ignore_result(buf_adds(&b, "x,"));
	refused(b.p, "too many values");
	buf_clear(&b);
	for (int i = 0; i < 300; i++)
		ignore_result(buf_addf(&b, "---\nproject: p%d\n", i));
	refused(b.p, "too many documents");
	buf_clear(&b);
	while (b.len <= YAML_FILE_MAX)
		ignore_result(buf_adds(&b, "# comment\n"));
	refused(b.p, "has over");
}

static char dir[64];

static void put(const char *name, const char *content)
{
	char path[128];

	ignore_result(str_format(path, sizeof(path), "%s/%s", dir, name));
	ok_int(fd_replace_file(path, content, strlen(content), 0600), 0, name);
}

static int load(const char *name, const char *stack)
{
	char path[128];
	const char *paths[1] = { path };

	ignore_result(str_format(path, sizeof(path), "%s/%s", dir, name));
	infra_configs_done(&got);
	why = (struct err)ERR_INIT;
	return infra_config_load(paths, name ? 1 : 0, stack, &got, &why);
}

static void files(void)
{
	char *guest = NULL;

	ignore_result(str_format(dir, sizeof(dir), "/tmp/test_infra.XXXXXX"));
	ok(mkdtemp(dir), "a folder");
	put("b.yml", "project: b\n");
	put("a.yaml", "project: a\n---\nproject: a2\n");
	put("c.txt", "nonsense: [");
	ok_int(load("", NULL), 0, "a folder is read");
	ok_int(got.len, 3, "its .yaml and .yml files");
	ok_str(text(0, INFRA_PROJECT), "a", "sorted");
	ok_int(load("a.yaml", "prod"), 0, "with --stack");
	ok_str(text(1, INFRA_STACK), "prod", "which stands for all");
	ok(load("a.yaml", "x/y") < 0 && why.code == ERR_USAGE, "a stack of a wrong name");
	put("d.yaml", "project: b\n");
	ok(load("", NULL) < 0 && strstr(why.msg, "is described in"), "the same stack twice");
	ok(load("none.yaml", NULL) < 0 && why.code == ERR_NOT_FOUND, "a missing file");
	ok_int(chdir(dir), 0, "there");
	ok(infra_config_load(NULL, 0, NULL, &got, &why) < 0 && strstr(why.msg, "sandbox.yaml"),
	   "no file at all names sandbox.yaml");
	put("setup.yaml", "project: old\n");
	infra_configs_done(&got);
	ok_int(infra_config_load(NULL, 0, NULL, &got, &why), 0, "setup.yaml");
	ok_str(text(0, INFRA_PROJECT), "old", "is read when it is the only one");
	put("sandbox.yaml", "project: new\n");
	infra_configs_done(&got);
	ok_int(infra_config_load(NULL, 0, NULL, &got, &why), 0, "sandbox.yaml");
	ok_str(text(0, INFRA_PROJECT), "new", "is preferred");
	ok(infra_guest_dir(&got.all[0], &guest, &why) < 0 && strstr(why.msg, "does not exist") &&
		   strstr(why.msg, "asb image init"),
	   "no guest folder");
	ok_int(mkdir("guest", 0700), 0, "one");
	ok(infra_guest_dir(&got.all[0], &guest, &why) < 0 && strstr(why.msg, "has no Dockerfile"),
	   "without a Dockerfile");
	put("guest/Dockerfile", "FROM scratch\n");
	ok_int(load("sandbox.yaml", NULL), 0, "by its path");
	ok_int(infra_guest_dir(&got.all[0], &guest, &why), 0, "with one");
	ok(guest && str_starts(guest, dir), "it is relative to the file");
	free(guest);
	ok_int(fd_remove_tree(dir), 0, "removed");
}

int main(void)
{
	unsetenv("AGENT_SANDBOX_SETUP");
	defaults();
	python_file();
	strict();
	bombs();
	files();
	infra_configs_done(&got);
	return tap_done();
}
