/* SPDX-License-Identifier: Apache-2.0 */
#include "watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fsop.h"
#include "lib/buf.h"
#include "lib/fd.h"
#include "limits.h"

/*
 * inotify watches single directories. So each directory below gets a watch first and is then read:
 * what appeared before the watch is found by reading, what appears after it is an event, and what
 * appears in between may be both. That is how nothing is lost when somebody makes a/b/c at once.
 * Reading is done in steps of LIMIT_WATCH_STEP entries from a timer; until the first round is
 * through, the kernel keeps the events.
 *
 * A rename within the tree is two events with one cookie, next to each other if no other writer is
 * between them. The first waits for the second for LIMIT_WATCH_PAIR_NS; alone it is a removal, as
 * the second alone is a creation.
 *
 * After an overflow of the kernel's queue, directories may have been made that we know nothing of:
 * all are read again, silently, for the client has to look for itself anyway.
 */

#define EVENTS                                                                         \
	(IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | \
	 IN_DELETE_SELF | IN_MOVE_SELF | IN_EXCL_UNLINK)

enum scan { SCAN_NONE, SCAN_QUIET, SCAN_TELL };

struct node {
	int wd;
	enum scan scan;
	char *path; /* owned */
};

struct watch {
	struct loop *loop;
	const struct watch_ops *ops;
	void *arg;
	int fd; /* owned */
	struct loop_watch in;
	struct loop_timer scan, pair;
	bool recursive, ready, paused, over;
	struct node *nodes; /* owned; by ascending wd */
	size_t count, room;
	int root;	/* its wd */
	size_t pending; /* nodes to be read */
	DIR *dir;	/* owned; the one that is being read */
	int dir_wd;
	bool dir_told; /* what is found in it is told */
	char *moved;   /* owned; the first half of a rename, or NULL */
	uint32_t cookie;
	bool moved_dir;
	size_t cursor; /* where the search for a directory to read goes on */
	size_t buf_at, buf_len;
	_Alignas(struct inotify_event) char buf[4096]; /* events that were read */
};

static size_t bytes; /* of the paths of all watches */

static void tell(struct watch *w, enum watch_event ev, const char *path, const char *to,
		 const char *type)
{
	if (!w->over)
		w->ops->event(w->arg, ev, path, to, type);
}

static void finish(struct watch *w, const char *path)
{
	tell(w, WATCH_END, path, NULL, NULL);
	w->over = true;
	loop_del(&w->in);
	loop_disarm(&w->scan);
	loop_disarm(&w->pair);
}

/* --- nodes --- */
static size_t position(const struct watch *w, int wd)
{
	size_t lo = 0, hi = w->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (w->nodes[mid].wd < wd)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct node *find(struct watch *w, int wd)
{
	size_t i = position(w, wd);

	return i < w->count && w->nodes[i].wd == wd ? &w->nodes[i] : NULL;
}

static void set_scan(struct watch *w, struct node *n, enum scan scan)
{
	w->pending += (n->scan == SCAN_NONE) && scan != SCAN_NONE;
	w->pending -= n->scan != SCAN_NONE && scan == SCAN_NONE;
	n->scan = scan;
}

static void drop(struct watch *w, struct node *n)
{
	size_t i = (size_t)(n - w->nodes);

	set_scan(w, n, SCAN_NONE);
	bytes -= strlen(n->path) + 1;
	free(n->path);
	memmove(n, n + 1, (w->count - i - 1) * sizeof(*n));
	w->count--;
}

static int grow(struct watch *w)
{
	size_t room = w->room ? 2 * w->room : 16;
	struct node *p;

	if (w->count < w->room)
		return 0;
	p = realloc(w->nodes, room * sizeof(*p));
	if (!p)
		return -ENOMEM;
	w->nodes = p;
	w->room = room;
	return 0;
}

static int insert(struct watch *w, int wd, const char *path)
{
	size_t i = position(w, wd);
	char *copy = strdup(path);

	if (!copy || grow(w) < 0) {
		free(copy);
		return -ENOMEM;
	}
	memmove(&w->nodes[i + 1], &w->nodes[i], (w->count - i) * sizeof(*w->nodes));
	w->nodes[i].wd = wd;
	w->nodes[i].scan = SCAN_NONE;
	w->nodes[i].path = copy;
	w->count++;
	bytes += strlen(path) + 1;
	return 0;
}

/* Watches PATH and has it read later. 1 when it is new, 0 when it is known, a negative errno, -EOVERFLOW above our limit. */
static int add(struct watch *w, const char *path, enum scan scan, bool root)
{
	uint32_t mask = EVENTS | (root ? 0 : IN_ONLYDIR | IN_DONT_FOLLOW);
	struct node *n;
	int wd, r;

	if (w->count >= LIMIT_WATCH_DIRS || bytes + strlen(path) >= LIMIT_WATCH_BYTES)
		return -EOVERFLOW;
	wd = inotify_add_watch(w->fd, path, mask);
	if (wd < 0)
		return -errno;
	n = find(w, wd);
	if (n && !strcmp(n->path, path))
		return 0;
	if (n) /* it was moved, and we have not heard of it yet */
		drop(w, n);
	r = insert(w, wd, path);
	if (r < 0) {
		(void)inotify_rm_watch(w->fd, wd);
		return r;
	}
	if (root)
		w->root = wd;
	n = find(w, wd);
	if (n && (w->recursive || root))
		set_scan(w, n, scan);
	if (w->pending && !w->paused)
		loop_arm(w->loop, &w->scan, 0);
	return 1;
}

static bool is_below(const char *path, const char *top)
{
	size_t n = strlen(top);

	return !strncmp(path, top, n) && (path[n] == '/' || path[n] == '\0');
}

/* FROM and all below it is now TO; a NULL TO: has left the tree. */
static void move(struct watch *w, const char *from, const char *to)
{
	for (size_t i = w->count; i-- > 0;) {
		struct node *n = &w->nodes[i];
		AUTO_BUF b = { .cap = 1UL << 20 };
		char *path = NULL;

		if (!is_below(n->path, from))
			continue;
		if (to && buf_adds(&b, to) == 0 && buf_adds(&b, n->path + strlen(from)) == 0)
			path = buf_take(&b);
		if (path) {
			bytes += strlen(path);
			bytes -= strlen(n->path);
			free(n->path);
			n->path = path;
		} else {
			(void)inotify_rm_watch(w->fd, n->wd);
			drop(w, n);
		}
	}
}

/* --- reading directories --- */
/* A directory that appeared; false when it was known. */
static bool enter(struct watch *w, const char *path, enum scan scan)
{
	int r = w->recursive ? add(w, path, scan, false) : 1;

	if (r >= 0 || r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		return r != 0; /* gone again, or a link now: the events tell */
	if (w->ready || r == -EACCES) {
		tell(w, WATCH_OVERFLOW, path, NULL, NULL);
		return true;
	}
	w->over = true;
	w->ops->failed(w->arg, r == -EOVERFLOW ? -1 : -r);
	return true;
}

static const char *type_of(const char *path, bool dir)
{
	struct stat st;

	return lstat(path, &st) == 0 ? fsop_type(st.st_mode) : dir ? "dir" : "file";
}

static void found(struct watch *w, const char *top, const struct dirent *e)
{
	AUTO_BUF b = { .cap = FSOP_PATH_MAX };
	bool dir = e->d_type == DT_DIR;
	size_t old;

	if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
	    (!dir && e->d_type != DT_UNKNOWN && !w->dir_told))
		return;
	if (buf_adds(&b, top) < 0 || fsop_push(&b, e->d_name, &old) < 0) {
		tell(w, WATCH_OVERFLOW, top, NULL, NULL); /* longer than paths can be */
		return;
	}
	if (e->d_type == DT_UNKNOWN)
		dir = !strcmp(type_of(b.p, false), "dir");
	/* an unknown directory is told before what is in it, which is read later */
	if ((!dir || enter(w, b.p, w->dir_told ? SCAN_TELL : SCAN_QUIET)) && w->dir_told)
		tell(w, WATCH_CREATE, b.p, NULL, type_of(b.p, dir));
}

static void next_dir(struct watch *w)
{
	for (size_t i = 0; i < w->count; i++, w->cursor++) {
		struct node *n = &w->nodes[w->cursor % w->count];
		int fd;

		if (n->scan == SCAN_NONE)
			continue;
		w->cursor %= w->count;
		w->dir_wd = n->wd;
		w->dir_told = n->scan == SCAN_TELL;
		set_scan(w, n, SCAN_NONE);
		fd = open(n->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC |
					   (n->wd == w->root ? 0 : O_NOFOLLOW));
		w->dir = fd < 0 ? NULL : fdopendir(fd);
		if (!w->dir)
			fd_close(&fd); /* gone again, or the root is a file */
		return;
	}
}

/* --- events --- */
/* The second half of a rename has not come. */
static void flush_moved(struct watch *w)
{
	char *from = w->moved;

	loop_disarm(&w->pair);
	if (!from)
		return;
	w->moved = NULL;
	tell(w, WATCH_DELETE, from, NULL, w->moved_dir ? "dir" : "file");
	if (w->moved_dir)
		move(w, from, NULL);
	free(from);
}

static void on_pair(struct loop_timer *t)
{
	flush_moved(t->arg);
}

static void appeared(struct watch *w, const char *path, bool dir)
{
	if (!dir || enter(w, path, SCAN_TELL))
		tell(w, WATCH_CREATE, path, NULL, type_of(path, dir));
}

static void on_child(struct watch *w, const struct inotify_event *e, const char *path)
{
	bool dir = e->mask & IN_ISDIR;

	if (e->mask & IN_MOVED_FROM) {
		w->moved = strdup(path);
		w->moved_dir = dir;
		w->cookie = e->cookie;
		loop_arm(w->loop, &w->pair, LIMIT_WATCH_PAIR_NS);
	} else if ((e->mask & IN_MOVED_TO) && w->moved) {
		loop_disarm(&w->pair);
		tell(w, WATCH_RENAME, w->moved, path, type_of(path, dir));
		if (dir)
			move(w, w->moved, path);
		free(w->moved);
		w->moved = NULL;
	} else if (e->mask & (IN_MOVED_TO | IN_CREATE)) {
		appeared(w, path, dir);
	} else if (e->mask & IN_DELETE) {
		tell(w, WATCH_DELETE, path, NULL, dir ? "dir" : "file");
	} else if (e->mask & IN_MODIFY) {
		tell(w, WATCH_MODIFY, path, NULL, type_of(path, dir));
	} else if (e->mask & IN_ATTRIB) {
		tell(w, WATCH_ATTRIB, path, NULL, type_of(path, dir));
	}
}

/* What a watched file says of itself. A directory below has said it already, by its parent. */
static void on_self(struct watch *w, const struct inotify_event *e, struct node *n)
{
	bool root = e->wd == w->root;

	if (root && (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED)))
		finish(w, n->path);
	else if (e->mask & IN_IGNORED)
		drop(w, n);
	else if (root && (e->mask & (IN_MODIFY | IN_ATTRIB)))
		tell(w, e->mask & IN_MODIFY ? WATCH_MODIFY : WATCH_ATTRIB, n->path, NULL,
		     type_of(n->path, e->mask & IN_ISDIR));
}

static void overflow(struct watch *w)
{
	flush_moved(w);
	tell(w, WATCH_OVERFLOW, NULL, NULL, NULL);
	for (size_t i = 0; w->recursive && i < w->count; i++)
		if (w->nodes[i].scan == SCAN_NONE)
			set_scan(w, &w->nodes[i], SCAN_QUIET);
	if (w->pending && !w->paused)
		loop_arm(w->loop, &w->scan, 0);
}

static void on_event(struct watch *w, const struct inotify_event *e)
{
	AUTO_BUF b = { .cap = FSOP_PATH_MAX };
	struct node *n;
	size_t old;

	if (w->moved && !((e->mask & IN_MOVED_TO) && e->cookie == w->cookie))
		flush_moved(w);
	if (e->mask & IN_Q_OVERFLOW) {
		overflow(w);
		return;
	}
	n = find(w, e->wd); /* flushing may have moved it */
	if (!n)
		return;
	if (e->len == 0)
		on_self(w, e, n);
	else if (buf_adds(&b, n->path) < 0 || fsop_push(&b, e->name, &old) < 0)
		tell(w, WATCH_OVERFLOW, n->path, NULL, NULL);
	else
		on_child(w, e, b.p);
}

/* What has been read, as far as it may be told. */
static void drain(struct watch *w)
{
	while (w->buf_at < w->buf_len && !w->over && !w->paused) {
		const struct inotify_event *e = (const void *)(w->buf + w->buf_at);

		w->buf_at += sizeof(*e) + e->len;
		on_event(w, e);
	}
}

static void on_input(struct loop_watch *in, uint32_t events)
{
	struct watch *w = in->arg;

	(void)events;
	if (w->buf_at == w->buf_len) {
		ssize_t n = read(w->fd, w->buf, sizeof(w->buf));

		w->buf_at = 0;
		w->buf_len = n > 0 ? (size_t)n : 0;
	}
	drain(w);
}

static void on_scan(struct loop_timer *t)
{
	struct watch *w = t->arg;

	drain(w);
	for (int i = 0; i < LIMIT_WATCH_STEP && !w->over && !w->paused && (w->dir || w->pending);
	     i++) {
		const struct node *n;
		const struct dirent *e;

		if (!w->dir) {
			next_dir(w);
			continue;
		}
		n = find(w, w->dir_wd);
		e = n ? readdir(w->dir) : NULL;
		if (e) {
			found(w, n->path, e);
		} else {
			(void)closedir(w->dir);
			w->dir = NULL;
		}
	}
	if (w->over || w->paused)
		return;
	if (w->dir || w->pending) {
		loop_arm(w->loop, &w->scan, 0);
	} else if (!w->ready) {
		w->ready = true;
		tell(w, WATCH_READY, NULL, NULL, NULL);
		ignore_result(loop_set(&w->in, EPOLLIN));
	}
}

/* --- start and end --- */
int watch_start(struct loop *l, const char *path, bool recursive, const struct watch_ops *ops,
		void *arg, struct watch **ret)
{
	struct watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	*w = (struct watch){ .loop = l, .ops = ops, .arg = arg, .recursive = recursive };
	w->in = (struct loop_watch)LOOP_WATCH_INIT;
	w->in.fn = on_input;
	w->in.arg = w->scan.arg = w->pair.arg = w;
	w->scan.fn = on_scan;
	w->pair.fn = on_pair;
	w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	r = w->fd < 0 ? -errno : loop_add(l, &w->in, w->fd, 0);
	if (r == 0)
		r = add(w, path, recursive ? SCAN_QUIET : SCAN_NONE, true);
	if (r < 0) {
		watch_free(w);
		return r;
	}
	loop_arm(l, &w->scan, 0); /* without anything to read, it says that it is ready */
	*ret = w;
	return 0;
}

void watch_pause(struct watch *w, bool paused)
{
	if (w->paused == paused || w->over)
		return;
	w->paused = paused;
	if (w->ready)
		ignore_result(loop_set(&w->in, paused ? 0 : EPOLLIN));
	if (!paused)
		loop_arm(w->loop, &w->scan, 0);
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	loop_del(&w->in);
	loop_disarm(&w->scan);
	loop_disarm(&w->pair);
	fd_close(&w->fd);
	if (w->dir)
		(void)closedir(w->dir);
	for (size_t i = 0; i < w->count; i++) {
		bytes -= strlen(w->nodes[i].path) + 1;
		free(w->nodes[i].path);
	}
	free(w->nodes);
	free(w->moved);
	free(w);
}
