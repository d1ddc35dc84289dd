/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_DATASET_H
#define REPRISE_DATASET_H
/*
 * A dataset is what a user names on the command line: files, folders, archives or "-". Opening it
 * finds the inputs; questions read them when they need them.
 */
#include <reprise/context.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rp_dataset;

struct rp_open_options {
    size_t struct_size; /* sizeof(struct rp_open_options) */
    int salvage;        /* load what stands before damage instead of failing */
};

/* options may be NULL. The context must outlive the dataset. */
RP_API enum rp_code rp_open(struct rp_ctx *ctx, const char *const *paths, size_t npaths,
                            const struct rp_open_options *options, struct rp_dataset **out,
                            struct rp_err *err);
RP_API void rp_dataset_free(struct rp_dataset *dataset); /* NULL is fine */

/* How many inputs were found, and their names ("run.tar.gz!rank0.json"). Borrowed. */
RP_API size_t rp_dataset_count(const struct rp_dataset *dataset);
RP_API const char *rp_dataset_borrow_name(const struct rp_dataset *dataset, size_t i);

#ifdef __cplusplus
}
#endif
#endif
