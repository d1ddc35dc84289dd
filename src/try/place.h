/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The folders of a session (place.c). */
#include "try/child.h"

/* Finds the folders to which the program may write: the one where it is started, the user's home,
   those that its arguments name, and file systems mounted inside of them. */
void rp_try_place_folders(struct rp_try_folders *out, char *const *words, size_t n,
                          const char *cwd);

/* Adds a folder, unless it is already there, is not a folder, or belongs to the system. */
void rp_try_place_add(struct rp_try_folders *folders, const char *name);

/* Lets programs write to a path, or into its folder if it does not exist. */
void rp_try_place_allow(struct rp_try_folders *writes, const char *path);

bool rp_try_place_covers(const struct rp_try_folders *folders, const char *path);

/* Makes a folder outside of these that contains the hook. */
enum rp_code rp_try_place_make(char *out, size_t cap, const struct rp_try_folders *folders,
                               struct rp_err *err);
void rp_try_place_remove(const char *path); /* removes it with its content */
/* Removes what the program of a run that has ended wrote: hundreds of runs would fill the disk. */
void rp_try_place_clear(const char *run);

/* Gives the memory of this machine; 0 if not known. */
void rp_try_place_memory(int64_t *free_bytes, int64_t *total_bytes);
