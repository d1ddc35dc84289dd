/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads the programs of a dataset, several at a time; each is in memory only while its job runs. */
#include "dataset/dataset.h"
#include "formats/dump/folder.h"
#include "formats/formats.h"

struct rp_loaded_program {
    const struct rp_source *source;
    struct rp_program *program; /* the job may change it */
    const char *format;         /* "hlo-text" */
    size_t index;               /* the index of the source in the dataset */
};

/* Runs on any thread; `loaded` and the program are gone when it returns. */
typedef enum rp_code rp_program_job(void *user, const struct rp_loaded_program *loaded,
                                    struct rp_err *err);

/*
 * Calls the job once for every program. A file that the user named and that is not a program is an
 * error; one that was found in a folder or an archive is skipped. It is an error if there is no
 * program at all.
 */
enum rp_code rp_each_program(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                             rp_program_job *job, void *user, struct rp_err *err);

/* Does the same for some of the sources, given by their indices. */
enum rp_code rp_each_program_of(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                const size_t *sources, size_t n, rp_program_job *job, void *user,
                                struct rp_err *err);

/* Groups the sources that were found in folders and archives by module; indices are those of the
   sources. */
enum rp_code rp_dataset_dump(const struct rp_dataset *dataset, struct rp_arena *arena,
                             struct rp_dump *out, struct rp_err *err);

/* Reads one program, which the import holds until rp_import_release. It is an error if the source
   is not a program. */
enum rp_code rp_load_program(const struct rp_dataset *dataset, size_t i, struct rp_import *out,
                             struct rp_err *err);
