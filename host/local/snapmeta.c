/* SPDX-License-Identifier: Apache-2.0 */
#include "host/local/snapmeta.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "host/local/vmfile.h"
#include "host/state/state.h"
#include "lib/jsn.h"
#include "lib/pretty.h"
#include "lib/str.h"
#include "version.h"

#define DEVICES_MAX (64ULL << 20)
#define DISK_MAX    (1ULL << 44)

const char *const snap_part_names[] = {
	[SNAP_DEVICES] = "devices",
	[SNAP_RAM] = "ram",
	[SNAP_BASE] = "base.ram",
	[SNAP_DISK] = "disk.qcow2",
};
static_assert(ARRAY_LEN(snap_part_names) == SNAP_PARTS, "every part has a name");

void snap_meta_done(struct snap_meta *m)
{
	vm_config_done(&m->config);
}

/* --- writing --- */
static bool add_fit(cJSON *o, const struct fit *f)
{
	cJSON *j = cJSON_AddObjectToObject(o, "fit");

	return j && jsn_add_str(j, "qemu", f->qemu) && jsn_add_str(j, "accel", f->accel) &&
	       jsn_add_str(j, "cpu", f->cpu) && jsn_add_str(j, "cpu_key", f->cpu_key) &&
	       jsn_add_str(j, "machine", f->machine);
}

static bool add_parts(cJSON *o, const struct snap_meta *m, bool here)
{
	cJSON *all = cJSON_AddObjectToObject(o, "files"), *j;

	for (int i = 0; all && i < SNAP_PARTS; i++) {
		const struct snap_part_meta *p = &m->part[i];

		if (!p->there)
			continue;
		j = cJSON_AddObjectToObject(all, snap_part_names[i]);
		if (!j || !jsn_add_u64(j, "bytes", p->bytes) || !jsn_add_str(j, "sum", p->sum) ||
		    (here && !jsn_add_str(j, "changed", p->changed)))
			return false;
	}
	return all != NULL;
}

cJSON *snap_meta_json(const struct snap_meta *m, bool here)
{
	AUTO_JSN *j = cJSON_CreateObject();
	cJSON *config = vm_config_json(&m->config), *ret = j;

	if (!config || !j || !cJSON_AddItemToObject(j, "sandbox", config)) {
		cJSON_Delete(config);
		return NULL;
	}
	if (!jsn_add_u64(j, "format", SNAP_FORMAT) || !jsn_add_str(j, "asb", ASB_VERSION) ||
	    !jsn_add_str(j, "name", m->name) || !jsn_add_i64(j, "created", m->created_s) ||
	    !jsn_add_bool(j, "memory", m->memory) || !jsn_add_bool(j, "based", m->based) ||
	    !jsn_add_bool(j, "balloon", m->balloon) || !jsn_add_str(j, "image", m->config.image) ||
	    !jsn_add_str(j, "rootfs_sha256", m->rootfs) || (m->memory && !add_fit(j, &m->fit)) ||
	    !add_parts(j, m, here))
		return NULL;
	j = NULL;
	return ret;
}

int snap_meta_print(const struct snap_meta *m, bool here, struct buf *out)
{
	AUTO_JSN *j = snap_meta_json(m, here);

	return j ? pretty_json(j, out) : -ENOMEM;
}

/* --- reading --- */
static int wrong(struct err *e, const char *what)
{
	(void)err_set(e, ERR_INVALID, 0, "\"%s\" of " SNAP_META " is missing or wrong", what);
	return -EINVAL;
}

/* A string of at most SIZE - 1 bytes, which must be there. */
static int take(const cJSON *j, const char *name, char *out, size_t size, struct err *e)
{
	const char *s = NULL;
	int r = jsn_str(j, name, &s, e);

	if (r == 1 && str_format(out, size, "%s", s) == 0)
		return 0;
	return r < 0 ? r : wrong(e, name);
}

static int take_hex(const cJSON *j, const char *name, char *out, size_t size, struct err *e)
{
	int r = take(j, name, out, size, e);

	if (r == 0 && (strlen(out) != size - 1 || strspn(out, "0123456789abcdef") != size - 1))
		r = wrong(e, name);
	return r;
}

static int take_fit(const cJSON *j, struct fit *f, struct err *e)
{
	const cJSON *o = NULL;
	int r = jsn_object(j, "fit", &o, e);

	if (r <= 0)
		return r < 0 ? r : wrong(e, "fit");
	r = take(o, "qemu", f->qemu, sizeof(f->qemu), e);
	if (r == 0)
		r = take(o, "accel", f->accel, sizeof(f->accel), e);
	if (r == 0)
		r = take(o, "cpu", f->cpu, sizeof(f->cpu), e);
	if (r == 0)
		r = take_hex(o, "cpu_key", f->cpu_key, sizeof(f->cpu_key), e);
	if (r == 0)
		r = take_hex(o, "machine", f->machine, sizeof(f->machine), e);
	if (r == 0 && strcmp(f->accel, "kvm") != 0 && strcmp(f->accel, "tcg") != 0)
		r = wrong(e, "accel");
	return r;
}

/* The most bytes that part P of M can have; of the base also the least. */
static uint64_t most(const struct snap_meta *m, int p)
{
	const uint64_t memory = m->config.memory_mib << 20;

	switch ((enum snap_part)p) {
	case SNAP_DEVICES:
		return DEVICES_MAX;
	case SNAP_RAM: /* with the numbers of its pages, and heads */
		return memory + memory / 128 + (1U << 20);
	case SNAP_BASE:
		return memory;
	case SNAP_DISK:
	case SNAP_PARTS:
		break;
	}
	return DISK_MAX;
}

static bool wanted(const struct snap_meta *m, int p)
{
	return p == SNAP_DISK || (m->memory && (p != SNAP_BASE || m->based));
}

static int take_part(const cJSON *files, struct snap_meta *m, int p, struct err *e)
{
	struct snap_part_meta *out = &m->part[p];
	const char *changed = "";
	const cJSON *o = NULL;
	int r = jsn_object(files, snap_part_names[p], &o, e);

	if (r < 0)
		return r;
	out->there = r == 1;
	if (out->there != wanted(m, p))
		return wrong(e, snap_part_names[p]);
	if (!out->there)
		return 0;
	r = jsn_u64(o, "bytes", 1, most(m, p), &out->bytes, e);
	if (r == 1)
		r = take_hex(o, "sum", out->sum, sizeof(out->sum), e);
	else if (r == 0)
		r = wrong(e, snap_part_names[p]);
	if (r == 0 && p == SNAP_BASE && out->bytes != most(m, p))
		r = wrong(e, snap_part_names[p]);
	if (r == 0)
		r = jsn_str(o, "changed", &changed, e);
	if (r < 0)
		return r;
	return str_format(out->changed, sizeof(out->changed), "%s", changed) < 0
		       ? wrong(e, "changed")
		       : 0;
}

static int take_config(const cJSON *j, struct snap_meta *m, struct err *e)
{
	const cJSON *o = NULL;
	const cJSON *v;
	int r = jsn_object(j, "sandbox", &o, e);

	if (r <= 0)
		return r < 0 ? r : wrong(e, "sandbox");
	r = vm_config_parse(o, &m->config, e);
	if (r == 0 && state_check_name(m->config.name, NULL) < 0)
		r = wrong(e, "name");
	if (r == 0 && !vmdir_is_id(m->config.id))
		r = wrong(e, "id");
	if (r == 0 && m->config.memory_mib == 0)
		r = wrong(e, "memory_mib"); /* it was not there */
	cJSON_ArrayForEach(v, m->config.env) if (r == 0 && !cJSON_IsString(v)) r = wrong(e, "env");
	return r;
}

static int take_all(const cJSON *j, struct snap_meta *m, struct err *e)
{
	const cJSON *files = NULL;
	uint64_t created = 0;
	int r = take(j, "name", m->name, sizeof(m->name), e);

	if (r == 0 && state_check_name(m->name, NULL) < 0)
		r = wrong(e, "name");
	if (r == 0)
		r = jsn_u64(j, "created", 0, INT64_MAX / 2, &created, e);
	if (r < 0 || jsn_bool(j, "memory", &m->memory, e) < 0 ||
	    jsn_bool(j, "based", &m->based, e) < 0 || jsn_bool(j, "balloon", &m->balloon, e) < 0)
		return -EINVAL;
	m->created_s = (int64_t)created;
	r = take_config(j, m, e);
	if (r == 0)
		r = take_hex(j, "rootfs_sha256", m->rootfs, sizeof(m->rootfs), e);
	if (r == 0 && m->memory)
		r = take_fit(j, &m->fit, e);
	if (r == 0 && jsn_object(j, "files", &files, e) != 1)
		r = wrong(e, "files");
	for (int p = 0; p < SNAP_PARTS && r == 0; p++)
		r = take_part(files, m, p, e);
	return r;
}

int snap_meta_parse(const char *p, size_t n, struct snap_meta *ret, struct err *e)
{
	AUTO_JSN *j = n <= SNAP_META_MAX ? jsn_parse(p, n, e) : NULL;
	struct snap_meta m = { .memory = false };
	uint64_t format = 0;
	int r;

	if (!j)
		return n <= SNAP_META_MAX ? -EINVAL : err_set(e, ERR_TOO_BIG, E2BIG, SNAP_META);
	r = jsn_u64(j, "format", 1, UINT32_MAX, &format, e);
	if (r == 1 && format != SNAP_FORMAT)
		return err_set(e, ERR_UNSUPPORTED, EPROTONOSUPPORT,
			       "it has format %llu of snapshots, and this asb knows format %d",
			       (unsigned long long)format, SNAP_FORMAT);
	if (r <= 0)
		return r < 0 ? r : wrong(e, "format");
	r = take_all(j, &m, e);
	if (r < 0) {
		snap_meta_done(&m);
		return r;
	}
	*ret = m;
	return 0;
}
