/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENTD_PASSWD_H
#define AGENTD_PASSWD_H

#include <sys/types.h>

#include "lib/buf.h"
#include "lib/compiler.h"
#include "lib/err.h"

/*
 * Users and groups by the image's own files, as passwd(5) and group(5) describe them, without NSS. The
 * files are a stranger's: regular ones only, of a bounded size, and a line that is not well formed is
 * passed over.
 */
#define PASSWD_FILE	  "/etc/passwd"
#define PASSWD_GROUP_FILE "/etc/group"
#define PASSWD_GROUPS_MAX 1024 /* supplementary ones of a user; further ones are an error */
#define PASSWD_TEXT_MAX	  512 /* of a name, a home, a shell; a longer one counts as not well formed */

struct passwd_user {
	uid_t uid;
	gid_t gid;
	gid_t groups
		[PASSWD_GROUPS_MAX]; /* supplementary, without repetition; the primary one too */
	size_t n_groups;
	char name[PASSWD_TEXT_MAX], home[PASSWD_TEXT_MAX], shell[PASSWD_TEXT_MAX];
};

/*
 * WHO is "name", "uid", "name:group" or "uid:gid" in any mixture; a name that consists of digits wins over
 * a number. As docker does: without a group it is the user's own with all that list the user, with one
 * it is that one alone; a uid without an entry has gid 0 and "/" for a home. An unknown name is
 * ERR_INVALID.
 */
int passwd_resolve(const char *who, const char *passwd, const char *group, struct passwd_user *ret,
		   struct err *e) MUST_CHECK;

/* Reads PATH whole; never waits, whatever is there. 0, -EINVAL when it is no regular file, or a
 * negative errno. */
int passwd_read(const char *path, struct buf *b) MUST_CHECK;

#endif
