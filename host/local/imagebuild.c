/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/imagebuild.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/local/imagesource.h"
#include "host/local/imagestore.h"
#include "host/local/program.h"
#include "host/local/share.h"
#include "host/local/start.h"
#include "host/local/template.h"
#include "host/local/tree.h"
#include "host/local/vmdir.h"
#include "lib/fd.h"
#include "lib/loop.h"
#include "lib/str.h"
#include "version.h"

/*
 * One build: unpack, mkfs, boot, ready, template, validate, and only then a name. Until the name is given nothing refers
 * to what is made, so a build that fails or dies changes nothing for anybody.
 *
 * The root file system goes into the store before it is booted: QEMU opens it there under the name of its content, now
 * and later, so the template that this boot leaves is the one that sandboxes will start from. Two images with one content
 * share it.
 *
 * The sandbox that boots is one of `asb run`'s kind: it ends with this process, however that ends. It has no record, for
 * nobody can want to name it.
 */

#define UNPACK_NS 7200000000000LL
#define MKFS_NS	  3600000000000LL
#define WAIT_NS	  600000000000LL /* for a template to be on the disk */
#define LOG_TAIL  4096
#define STARTS	  3 /* a boot, and a clone; once more if somebody removed the template between them */

/* All files get one time and the file system one identity, so that the same files give the same bytes. */
#define MKFS_TIME "-T1767225600" /* 2026-01-01, as in the base image */
#define MKFS_UUID "-Ua5b00000-0000-4000-8000-000000000001"

struct build {
	const struct image_spec *spec;
	const struct progress *p;
	struct image_built *ret;
	struct image_work w;
	struct imagesource source;
	int log;     /* file of what programs say */
	int console; /* of the last guest */
	char id[SANDBOX_ID_MAX + 1];
	bool booted; /* it did not start from a template */
	int64_t started;
};

static void step(struct build *b, const char *name)
{
	b->ret->step = name;
	if (b->p && b->p->fn)
		b->p->fn(b->p->arg, name, (loop_now() - b->started) / 1000000);
}

static void note(struct build *b, const char *text)
{
	struct image_built *ret = b->ret;

	if (ret->notes_len < IMAGE_NOTES_MAX &&
	    str_format(ret->notes[ret->notes_len], sizeof(ret->notes[0]), "%s", text) == 0)
		ret->notes_len++;
}

/* --- the root file system --- */
static int unpack(struct build *b, struct err *e)
{
	char text[200];
	int r;

	step(b, "unpack");
	r = imagesource_unpack(b->spec->source, &b->w, b->log, b->p, loop_now() + UNPACK_NS,
			       &b->source, e);
	if (r < 0)
		return r;
	if (geteuid() != 0)
		note(b, "all files of the image belong to root: only root can keep other owners");
	if (b->source.left_out) {
		(void)snprintf(
			text, sizeof(text),
			"left out: %llu (devices, what is in /dev, /proc, /sys, /run and /tmp, "
			"names that begin with lost+found)",
			(unsigned long long)b->source.left_out);
		note(b, text);
	}
	return 0;
}

static char *path_variable(void)
{
	for (char **v = environ; v && *v; v++)
		if (str_starts(*v, "PATH="))
			return *v;
	return NULL;
}

/*
 * The same tree is the same content, whoever builds it: of the environment the program gets PATH alone. It would take
 * SOURCE_DATE_EPOCH for another time stamp than -T, and then keep what is older.
 */
static int mkfs(struct build *b, struct err *e)
{
	char name[] = "mkfs.erofs", quiet[] = "--quiet", when[] = MKFS_TIME, uuid[] = MKFS_UUID,
	     no_xattrs[] = "-x-1", all_root[] = "--all-root", file[LOCAL_PATH_MAX],
	     tree[LOCAL_PATH_MAX];
	char *as_root[] = { name, quiet, when, uuid, no_xattrs, file, tree, NULL };
	char *as_user[] = { name, quiet, when, uuid, no_xattrs, all_root, file, tree, NULL };
	char *envp[] = { path_variable(), NULL };
	struct program p = { .argv = geteuid() == 0 ? as_root : as_user,
			     .envp = envp,
			     .log = b->log,
			     .out = -1,
			     .deadline_ns = loop_now() + MKFS_NS,
			     .cancel = b->p ? b->p->cancel : NULL };
	int r = str_format(file, sizeof(file), "%s/" IMAGE_ROOTFS, b->w.dir);

	step(b, "mkfs");
	if (r == 0)
		r = str_format(tree, sizeof(tree), "%s/" IMAGE_TREE, b->w.dir);
	if (r < 0)
		return err_set(e, ERR_INVALID, -r, "%s", b->w.dir);
	if (!program_is_there(name)) {
		(void)err_set(e, ERR_NOT_FOUND, 0,
			      "there is no mkfs.erofs on this machine: install erofs-utils");
		return -ENOENT;
	}
	r = program_run(&p, e);
	if (r == 0)
		r = tree_remove(tree);
	if (r == 0)
		r = imagestore_add(&b->w, p.cancel, e);
	return r;
}

/* --- the guest --- */
static void open_console(struct build *b)
{
	char path[LOCAL_PATH_MAX];

	if (b->console >= 0 || vmdir_path(b->id, path, NULL) < 0)
		return;
	if (strlen(path) + sizeof("/console.log") <= sizeof(path)) {
		memcpy(path + strlen(path), "/console.log", sizeof("/console.log"));
		b->console = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	}
}

/* The supervisor's stages tell which step it has come to (make.c). */
static void on_stage(void *arg, const char *stage, int64_t ms)
{
	static const struct {
		const char *stage, *step;
	} known[] = { { "template", "ready" },
		      { "validate", "validate" },
		      { "snapshot", "template" } };
	struct build *b = arg;

	(void)ms;
	open_console(
		b); /* while it has a name: the guest's last words are wanted when it is gone */
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(stage, known[i].stage)) {
			b->booted = true;
			step(b, known[i].step);
		}
}

static int start_once(struct build *b, const struct sandbox_spec *s, struct err *e)
{
	const struct progress watch = { .fn = on_stage,
					.arg = b,
					.cancel = b->p ? b->p->cancel : NULL };
	struct backend_owner *owner;
	int r = vmdir_new_id(b->id, e);

	b->booted = false;
	fd_close(&b->console);
	vmdir_making();
	if (r == 0)
		r = start_create(s, b->id, &watch, loop_now() + b->spec->start_ns, &owner, e);
	if (r == 0)
		start_drop(owner);
	return r;
}

static int wait_template(struct build *b, const struct sandbox_spec *s, struct err *e)
{
	char key[TEMPLATE_KEY_LEN + 1];
	int r = start_template_key(s, key, e);

	if (r < 0)
		return r;
	r = template_wait(key, loop_now() + WAIT_NS, b->p ? b->p->cancel : NULL);
	if (r == -EINTR)
		return err_set(e, ERR_UNAVAILABLE, EINTR, "the template");
	return r < 0 ? err_set(e, ERR_IO, -r, "it could not be written to the disk") : 0;
}

/* Boots it, unless this content has a template already, and then starts a clone that is validated. */
static int boot(struct build *b, struct err *e)
{
	char image[sizeof(SHARE_BLOB) + IMAGE_SHA_LEN], name[] = "asb-build";
	const struct sandbox_spec s = { .name = name,
					.image = image,
					.cpus = b->spec->cpus,
					.memory_mib = b->spec->memory_mib,
					.ephemeral = true,
					.build = true };
	int r = str_format(image, sizeof(image), SHARE_BLOB "%s", b->w.sha256);

	for (int i = 0; i < STARTS && r == 0; i++) {
		step(b, i == 0 ? "boot" : "validate");
		r = start_once(b, &s, e);
		if (r == 0 && !b->booted)
			return 0;
		if (r == 0) {
			step(b, "template");
			r = wait_template(b, &s, e);
		}
	}
	return r < 0 ? r
		     : err_set(e, ERR_UNAVAILABLE, EAGAIN, "its template was removed meanwhile");
}

/* --- the whole --- */
static int publish(struct build *b, const char *name, struct err *e)
{
	AUTO_JSN *meta = cJSON_CreateObject();
	uint64_t version;
	int r;

	step(b, "commit");
	if (!meta || !jsn_add_str(meta, "source", b->source.kind) ||
	    !jsn_add_u64(meta, "files", b->source.count.members) ||
	    !jsn_add_u64(meta, "bytes", b->source.count.bytes) ||
	    !jsn_add_str(meta, "built_with", "asb " ASB_VERSION) ||
	    (*b->source.builder && !jsn_add_str(meta, "builder", b->source.builder)))
		return err_set(e, ERR_INTERNAL, ENOMEM, "image.json");
	r = imagestore_commit(&b->w, name, meta, &version, &b->ret->unchanged, e);
	if (r == 0)
		r = str_format(b->ret->image, sizeof(b->ret->image), "%s:%llu", name,
			       (unsigned long long)version);
	return r;
}

static int build(struct build *b, const char *name, struct err *e)
{
	uint64_t same;
	int r;

	vmdir_collect(); /* as before every sandbox: what killed ones have left */
	r = imagestore_begin(&b->w, e);
	if (r == 0) {
		b->log = openat(b->w.dirfd, "log", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		r = b->log < 0 ? err_set(e, ERR_IO, errno, "%s", b->w.dir) : 0;
	}
	if (r == 0)
		r = unpack(b, e);
	if (r == 0)
		r = mkfs(b, e);
	if (r < 0)
		return r;
	(void)unlinkat(b->w.dirfd, "log", 0);
	same = imagestore_same(&b->w, name);
	if (same) {
		b->ret->unchanged = true;
		return str_format(b->ret->image, sizeof(b->ret->image), "%s:%llu", name,
				  (unsigned long long)same);
	}
	r = b->spec->cold ? 0 : boot(b, e);
	return r < 0 ? r : publish(b, name, e);
}

static void keep_log(struct build *b)
{
	AUTO_BUF text;
	int fd = b->console >= 0 ? b->console : b->log;

	buf_init(&text, LOG_TAIL + 1);
	if (fd >= 0 && program_tail(fd, LOG_TAIL, &text) == 0 && text.len)
		b->ret->log = buf_take(&text);
}

int imagebuild(const struct image_spec *spec, const struct progress *p, struct image_built *ret,
	       struct err *e)
{
	struct image_ref ref;
	struct build *b = calloc(1, sizeof(*b));
	int r = b ? image_ref_parse(spec->name, &ref, e)
		  : err_set(e, ERR_INTERNAL, ENOMEM, "the build");

	*ret = (struct image_built){ .step = NULL };
	if (r == 0 && ref.version) {
		(void)err_set(e, ERR_INVALID, 0,
			      "'%s': a build makes the next version by itself, give the name alone",
			      spec->name);
		r = -EINVAL;
	}
	if (r < 0) {
		free(b);
		return r;
	}
	*b = (struct build){ .spec = spec,
			     .p = p,
			     .ret = ret,
			     .w = IMAGE_WORK_INIT,
			     .log = -1,
			     .console = -1,
			     .started = loop_now() };
	r = build(b, ref.name, e);
	if (r < 0)
		keep_log(b);
	else
		ret->step = NULL;
	imagestore_abort(&b->w);
	fd_close(&b->log);
	fd_close(&b->console);
	free(b);
	return r;
}
