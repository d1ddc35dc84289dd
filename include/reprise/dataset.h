/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_DATASET_H
#define REPRISE_DATASET_H
/*
 * A dataset is what a user names on the command line: files, folders, archives or "-". Opening it
 * lists the inputs; they are read by questions (question.h) and by rp_timeline_open (timeline.h).
 */
#include <reprise/context.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rp_dataset;

struct rp_open_options {
    size_t struct_size; /* sizeof(struct rp_open_options) */
    int salvage;        /* of a damaged file, load what precedes the damage instead of failing */
};

/* options may be NULL. The context must outlive the dataset. */
RP_API enum rp_code rp_open(struct rp_ctx *ctx, const char *const *paths, size_t npaths,
                            const struct rp_open_options *options, struct rp_dataset **out,
                            struct rp_err *err);
RP_API void rp_dataset_free(struct rp_dataset *dataset); /* NULL is fine */

/* The number of inputs, and the name of one ("run.tar.gz!rank0.json"; NULL where i is too large).
   Names belong to the dataset. */
RP_API size_t rp_dataset_count(const struct rp_dataset *dataset);
RP_API const char *rp_dataset_borrow_name(const struct rp_dataset *dataset, size_t i);

/* The formats that can be read; `reprise help formats` prints them. */
struct rp_format_view {
    const char *name;       /* "chrome-json" */
    const char *kind;       /* "trace" or "program" */
    const char *summary;    /* what it is, one line */
    const char *files;      /* usual names of such files: "*.json, *.json.gz" */
    const char *written_by; /* programs that write it */
};

/* Fills out[0] to out[n - 1] with the formats from `first` on; returns how many there were. size is
   sizeof(struct rp_format_view), see timeline.h. */
RP_API size_t rp_formats(size_t first, size_t n, struct rp_format_view *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
