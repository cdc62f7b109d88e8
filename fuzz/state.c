/* SPDX-License-Identifier: Apache-2.0 */
/* LINK: host/local/images.c host/local/share.c host/local/vmdir.c host/local/vmfile.c host/local/saved.c
 * host/local/template.c host/local/tree.c host/local/collect.c host/local/expiry.c host/state/?*.c host/backend.c */
/*
 * The small JSON files of the local backend, which a disk or another program may have damaged: image.json of an installed and of a
 * user's image, vm.json, status.json, state.json of a suspended sandbox, about.json of a template. The first byte says which. What is
 * accepted has texts that end within their arrays.
 */
#include <sys/mount.h>
#include <sys/stat.h>

#include "fuzz/confined.h"
#include "fuzz/fuzz.h"
#include "host/backend.h"
#include "host/local/images.h"
#include "host/local/saved.h"
#include "host/local/template.h"
#include "host/local/vmdir.h"
#include "lib/fd.h"
#include "lib/str.h"

const struct backend backend_local = { .name = "local" };

#define HOME  "build/fuzz/state.d"
#define BASE  HOME "/share/images/base"
#define MINE  HOME "/local/images/mine/1"
#define KEY   "0123456789abcdef0123456789abcdef"
#define ABOUT HOME "/local/templates/" KEY

#define FITS(s)                                    \
	do {                                       \
		if (!memchr((s), '\0', sizeof(s))) \
			abort();                   \
	} while (0)

static void put(const char *path, const uint8_t *p, size_t n)
{
	if (fd_rewrite_file(path, n ? (const void *)p : "", n, 0600) < 0)
		abort();
}

static int on_image(void *arg, const struct image *i)
{
	(void)arg;
	FITS(i->name);
	FITS(i->dir);
	FITS(i->rootfs);
	FITS(i->sha256);
	FITS(i->created);
	FITS(i->source);
	FITS(i->broken);
	if (!i->broken[0] && (!i->rootfs[0] || !i->version))
		abort();
	return 0;
}

static int on_template(void *arg, const struct template_info *t)
{
	(void)arg;
	FITS(t->key);
	FITS(t->rootfs);
	return 0;
}

static void images(const char *path, const uint8_t *p, size_t n)
{
	const struct image_ref base = { "base", 0 }, mine = { "mine", 1 };
	struct err e = ERR_INIT;
	struct image i;

	put(path, p, n);
	if (images_each(on_image, NULL, &e) < 0)
		abort();
	if (images_find(&base, &i, &e) < 0 && !e.msg[0])
		abort();
	e = (struct err)ERR_INIT;
	if (images_find(&mine, &i, &e) < 0 && !e.msg[0])
		abort();
	(void)images_newest("base");
}

static void vm(int dir)
{
	struct vm_config c;
	struct vm_status s;
	struct saved saved;
	struct err e = ERR_INIT;

	if (vmdir_read_config(dir, &c, &e) == 0) {
		FITS(c.id);
		FITS(c.name);
		FITS(c.image);
		vm_config_done(&c);
	} else if (!e.msg[0]) {
		abort();
	}
	vmdir_read_status(dir, &s);
	FITS(s.accel);
	FITS(s.reason);
	if (s.state < 0 || s.state >= SANDBOX_STATE_COUNT)
		abort();
	e = (struct err)ERR_INIT;
	if (saved_read(dir, "fit", &saved, &e) < 0 && !e.msg[0])
		abort();
}

static bool start(void)
{
	char state[4096], share[4096];

	if (!fuzz_confine("build/fuzz"))
		return false;
	(void)mkdir(HOME, 0755);
	if (mount("none", HOME, "tmpfs", 0, "size=16m") < 0 || fd_mkdirs(BASE, 0755) < 0 ||
	    fd_mkdirs(MINE, 0755) < 0 || fd_mkdirs(ABOUT, 0755) < 0 ||
	    fd_mkdirs(HOME "/saved", 0755) < 0 || !realpath(HOME, state) ||
	    str_format(share, sizeof(share), "%s/share", state) < 0 ||
	    strlen(state) + sizeof("/state.json") > sizeof(state))
		abort();
	memcpy(state + strlen(state), "/state.json", sizeof("/state.json"));
	put(BASE "/rootfs.erofs", (const uint8_t *)"x", 1);
	if (setenv("AGENT_SANDBOX_STATE", state, 1) < 0 || setenv("ASB_SHARE", share, 1) < 0)
		abort();
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	int dir;

	if (!fuzz_started(start) || n < 1 || n > 100000)
		return 0;
	switch (*p++ % 6) {
	case 0:
		images(BASE "/image.json", p, n - 1);
		return 0;
	case 1:
		images(MINE "/image.json", p, n - 1);
		return 0;
	case 2:
		put(ABOUT "/about.json", p, n - 1);
		if (template_each(on_template, NULL) < 0)
			abort();
		return 0;
	case 3:
		put(HOME "/vm.json", p, n - 1);
		break;
	case 4:
		put(HOME "/status.json", p, n - 1);
		break;
	default:
		put(HOME "/saved/state.json", p, n - 1);
	}
	dir = open(HOME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	vm(dir);
	(void)close(dir);
	return 0;
}
