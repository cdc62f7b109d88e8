/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/local/images.c host/local/imagestore.c host/local/imageuse.c host/local/tree.c host/local/share.c
 * host/local/template.c host/local/vmdir.c host/local/vmfile.c  host/local/collect.c host/local/saved.c
 * host/local/expiry.c host/state/?*.c host/backend.c */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../host/local/images.h"
#include "../../host/local/imagestore.h"
#include "../../host/local/imageuse.h"
#include "../../host/local/share.h"
#include "../../host/local/vmdir.h"
#include "../../host/local/vmfile.h"
#include "../../lib/fd.h"
#include "../../lib/str.h"
#include "../lib/tap.h"

const struct backend backend_local = { .name = "local" };

static char home[] = "/tmp/asb-images.XXXXXX", root[128];

static void put(const char *path, const char *text)
{
	char full[512];

	ignore_result(str_format(full, sizeof(full), "%s/%s", home, path));
	ok(fd_replace_file_lazy(full, text, strlen(text), 0600) == 0, "%s", path);
}

static bool there(const char *path)
{
	char full[512];

	ignore_result(str_format(full, sizeof(full), "%s/%s", root, path));
	return access(full, F_OK) == 0;
}

static void test_refs(void)
{
	static const char *const bad[] = { "",	       ":",	"a:",	":1",		"a:0",
					   "a:01x",    "a:-1",	"A",	"a/b",		"../a",
					   ".a",       "-a",	"a..b", "a:1:2",	"a b",
					   "a\n",      "blobs", "lock", "a:4294967296", "@0123",
					   "a\xc3\xa4" };
	char name[IMAGE_NAME_LEN + 2];
	struct image_ref ref;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ok_int(image_ref_parse(bad[i], &ref, NULL), -EINVAL, "no image's name");
	ok(image_ref_parse("base", &ref, NULL) == 0 && ref.version == 0, "a name");
	ok(image_ref_parse("a.b_c-1:4294967295", &ref, NULL) == 0 && ref.version == UINT32_MAX,
	   "a name and a version");
	ok_str(ref.name, "a.b_c-1", "the name");
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	ok_int(image_ref_parse(name, &ref, NULL), -EINVAL, "a name that is too long");
	name[IMAGE_NAME_LEN] = '\0';
	ok_int(image_ref_parse(name, &ref, NULL), 0, "the longest name");
}

/* A build whose root file system is TEXT. */
static void begin(struct image_work *w, const char *text)
{
	struct err e = ERR_INIT;
	int fd;

	*w = (struct image_work)IMAGE_WORK_INIT;
	ok(imagestore_begin(w, &e) == 0, "a build begins: %s", e.msg);
	fd = openat(w->dirfd, IMAGE_ROOTFS, O_WRONLY | O_CREAT, 0600);
	ok(fd_write_all(fd, text, strlen(text)) == 0, "its root file system");
	fd_close(&fd);
	ok(imagestore_add(w, NULL, &e) == 0, "it is added: %s", e.msg);
}

static void test_cancelled(void)
{
	const volatile sig_atomic_t yes = 1;
	struct image_work w = IMAGE_WORK_INIT;
	struct err e = ERR_INIT;
	int fd;

	ok(imagestore_begin(&w, &e) == 0, "a build begins: %s", e.msg);
	fd = openat(w.dirfd, IMAGE_ROOTFS, O_WRONLY | O_CREAT, 0600);
	ok(fd_write_all(fd, "x", 1) == 0, "its root file system");
	fd_close(&fd);
	ok_int(imagestore_add(&w, &yes, &e), -EINTR, "Ctrl-C ends the hashing");
	ok(!w.sha256[0], "and it has no name");
	imagestore_abort(&w);
}

static uint64_t make(const char *name, const char *text, bool *ret_unchanged)
{
	struct image_work w;
	AUTO_JSN *meta = cJSON_CreateObject();
	struct err e = ERR_INIT;
	uint64_t version = 0;

	begin(&w, text);
	ok(imagestore_commit(&w, name, meta, &version, ret_unchanged, &e) == 0, "it has a name: %s",
	   e.msg);
	imagestore_abort(&w);
	return version;
}

static struct image *find(const char *name)
{
	static struct image i;
	struct image_ref ref;
	struct err e = ERR_INIT;

	if (image_ref_parse(name, &ref, &e) < 0 || images_find(&ref, &i, &e) < 0)
		return NULL;
	return &i;
}

static unsigned links(const struct image *i)
{
	struct stat st;

	return stat(i->rootfs, &st) < 0 ? 0 : (unsigned)st.st_nlink;
}

static void test_versions(void)
{
	bool same;
	struct image *i;

	put("share/images/base/image.json", "{\"name\":\"base\"}");
	i = find("base");
	ok(i && i->installed && i->version == 1, "the installed image, which needs no version");
	put("share/images/base/image.json", "{\"name\":\"base\",\"version\":1}");
	i = find("base");
	ok(i && i->installed && i->version == 1, "nor another one");
	ok_int((long long)make("base", "one", &same), 2,
	       "a name of the installation goes on behind it");
	i = find("base");
	ok(i && !i->installed && i->version == 2, "and takes its place");
	i = find("base:1");
	ok(i && i->installed, "which keeps its number");
	ok_int((long long)make("t", "one", &same), 1, "the first version");
	ok(!same, "is new");
	ok_int((long long)make("t", "one", &same), 1, "the same content is the same version");
	ok(same, "and is told so");
	ok_int((long long)make("t", "two", &same), 2, "another content is the next");
	i = find("t:1");
	ok(i && links(i) == 3, "two versions of one content share it");
	i = find("t");
	ok(i && i->version == 2 && links(i) == 2, "the newest has its own");
	ok(find("t:3") == NULL && find("u") == NULL, "others are not there");
	ok_int((long long)make("t", "one", &same), 3, "an older content again is a new version");
	ok(imagestore_remove(find("t:3"), NULL) == 0 && find("t")->version == 2,
	   "the newest can go");
	ok(imagestore_remove(find("t:2"), NULL) == 0 && find("t:2") == NULL, "its content with it");
	ok(find("t:1") != NULL, "the others stay");
	ok(imagestore_remove(find("t"), NULL) == 0 && !there("t"),
	   "with the last its name is free");
	ok(find("base:2") && links(find("base:2")) == 2, "a content that another has stays");
}

/* What a killed process leaves at each step. */
static void test_dead(void)
{
	struct image_work w, other;
	char sha[IMAGE_SHA_LEN + 1], blob[128], name[64];
	bool same;

	begin(&other, "alive");
	begin(&w, "dead");
	memcpy(sha, w.sha256, sizeof(sha));
	ignore_result(str_format(blob, sizeof(blob), "blobs/%s.erofs", sha));
	ignore_result(str_format(name, sizeof(name), "%s", strrchr(w.dir, '/') + 1));
	fd_close(&w.lock); /* as the end of its process does */
	fd_close(&w.dirfd);
	ok(there(blob) && there(name), "a build died");
	ok(imagestore_collect(PRUNE_DRY, NULL, NULL, NULL) == 0 && there(name),
	   "a dry run only looks");
	ok(imagestore_collect(0, NULL, NULL, NULL) == 0, "collecting");
	ok(!there(blob) && !there(name), "it is gone, and its content");
	ok(access(other.dir, F_OK) == 0, "one that lives stays");
	ok_int((long long)make("d", "dead", &same), 1, "the name is free");
	imagestore_abort(&other);
	ok(access(other.dir, F_OK) < 0, "an aborted one is gone");
	ignore_result(str_format(blob, sizeof(blob), "%s/empty", root));
	ok(mkdir(blob, 0700) == 0, "a name without a version");
	ok(imagestore_collect(0, NULL, NULL, NULL) == 0 && !there("empty"), "goes, too");
	ok(there("d/1") && find("d"), "what is whole stays");
}

static int count_broken(void *arg, const struct image *i)
{
	unsigned *n = arg;

	n[i->broken[0] != '\0']++;
	return 0;
}

static void test_damage(void)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{\"version\":2,\"sha256\":\"x\"}",
		"{\"version\":1}",
		"{\"version\":1,\"sha256\":\"../../../../etc/passwd\"}",
		"{\"version\":1,\"sha256\":5}"
	};
	unsigned n[2] = { 0, 0 };
	struct err e = ERR_INIT;

	for (size_t k = 0; k < ARRAY_LEN(texts); k++) {
		put("local/images/d/1/image.json", texts[k]);
		ok(find("d") == NULL, "a damaged image.json is refused");
	}
	ok(images_each(count_broken, n, &e) == 0 && n[1] == 1 && n[0] == 2,
	   "it is listed as damaged, beside the others");
}

static void add_sandbox(const char *id, const char *name, const char *image)
{
	struct vm_config c = { .cpus = 1, .memory_mib = 64 };
	char path[LOCAL_PATH_MAX];
	AUTO_FD fd = -1;

	snprintf(c.id, sizeof(c.id), "%s", id);
	snprintf(c.name, sizeof(c.name), "%s", name);
	snprintf(c.image, sizeof(c.image), "%s", image);
	ok(vmdir_part(VMDIR_ROOT, path, NULL) == 0 && vmdir_path(id, path, NULL) == 0 &&
		   mkdir(path, 0700) == 0,
	   "a sandbox of %s", image);
	fd = open(path, O_RDONLY | O_DIRECTORY);
	ok(vmfile_write_config(fd, &c) == 0, "its vm.json");
}

static void test_uses(void)
{
	struct image_uses u;
	size_t one = 0, two = 0;
	char path[256];

	add_sandbox("local-0000000000000001", "a", "d:1");
	add_sandbox("local-0000000000000002", "b", "d");
	add_sandbox("local-0000000000000003", "c", "@0123");
	ignore_result(str_format(path, sizeof(path), "%s/local/snapshots", home));
	ok(fd_mkdirs(path, 0700) == 0, "snapshots");
	ignore_result(str_format(path, sizeof(path), "%s/local/snapshots/s", home));
	ok(mkdir(path, 0700) == 0, "a snapshot");
	put("local/snapshots/s/snapshot.json", "{\"image\":\"d:2\"}");
	ok(image_uses_find(&u, NULL) == 0 && u.len == 3, "who uses an image");
	for (size_t i = 0; i < u.len; i++) {
		one += image_use_means(&u.all[i], "d", 1, false);
		two += image_use_means(&u.all[i], "d", 2, true);
	}
	ok(one == 1 && two == 2, "a name alone means the newest");
	image_uses_done(&u);
}

int main(void)
{
	char path[256];

	if (!mkdtemp(home))
		return 1;
	snprintf(path, sizeof(path), "%s/state.json", home);
	(void)setenv("AGENT_SANDBOX_STATE", path, 1);
	snprintf(path, sizeof(path), "%s/share", home);
	(void)setenv("ASB_SHARE", path, 1);
	snprintf(root, sizeof(root), "%s/local/images", home);
	snprintf(path, sizeof(path), "%s/share/images/base", home);
	ok(fd_mkdirs(path, 0700) == 0, "a share");
	put("share/images/base/image.json", "{\"name\":\"base\",\"version\":1}");
	put("share/images/base/rootfs.erofs", "installed");
	test_refs();
	test_cancelled();
	test_versions();
	test_dead();
	test_damage();
	test_uses();
	ok(fd_remove_tree(home) == 0, "cleaned up");
	return tap_done();
}
