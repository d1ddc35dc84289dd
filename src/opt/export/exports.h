/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Writes plans as settings of frameworks. Each exporter is a row of one table: it writes a file,
 * and says with which software the file works. Only those that fit the framework of the recording,
 * and have something to say, are offered.
 *
 * To add one: write a file here with `const struct rp_exporter rp_exporter_<name>` (pattern:
 * optimizer.c), and add X(<name>) to list.h.
 */
#include "io/escaped.h"
#include "opt/export/list.h"
#include "opt/plan.h"
#include "result/result.h"

struct rp_exporter {
    const char *name; /* "ddp", the name for '--export' */
    const char *file; /* the name of its file in a folder: "ddp_buckets.py" */
    bool stock; /* it works with released software; otherwise it exists only for compatibility */
    const char *works_with; /* "PyTorch 2.1 or newer" */
    const char *summary;    /* what the file holds */
    bool (*fits)(const struct rp_opt_plan *plan);
    void (*write)(const struct rp_opt_plan *plan, struct rp_out *to);
};

extern const struct rp_exporter *const rp_exporters[]; /* ended by NULL */

/* torch.nn.parallel.DistributedDataParallel */
struct rp_opt_ddp {
    bool stock;
    double bucket_cap_mb; /* NaN: nothing to say */
    size_t nbuckets;
    int64_t *buckets; /* the bytes of each bucket, in the order in which they are sent */
};

/* dPRO's tensor_fusion_grp_mapping.json */
struct rp_opt_dpro {
    bool stock;
    size_t ntensor_groups;
    const char **tensor_groups; /* "5+6", in the order in which they are sent */
};

struct rp_opt_file {
    const char *name, *file, *works_with, *summary, *text;
    bool stock;
};

struct rp_opt_exports {
    struct rp_opt_ddp ddp;
    struct rp_opt_dpro dpro;
    size_t nfiles;
    struct rp_opt_file *files; /* the files that are offered */
};

extern const struct rp_type rp_opt_exports_type, rp_opt_file_type;

/* Lists all files that are offered, in the arena. */
enum rp_code rp_opt_exports_fill(const struct rp_opt_plan *plan, struct rp_arena *arena,
                                 struct rp_opt_exports *out, struct rp_err *err);

/* Writes files as '--export' asks: "DIR" for all files, in a folder that is made, or "NAME=FILE"
   for one. NULL writes nothing. */
enum rp_code rp_opt_exports_write(const struct rp_opt_exports *exports, const char *where,
                                  struct rp_err *err);
/* Checks before anything is searched whether the text is valid: NAME must be an exporter. */
enum rp_code rp_opt_exports_check(const char *where, struct rp_err *err);

/* ------------------------------------------------------------------ what exporters share */

/* Returns "5+6", with the ids in ascending order. */
const char *rp_opt_group_ids(const struct rp_opt_plan *plan, const struct rp_opt_group *group,
                             struct rp_arena *arena);
/* Returns the size up to which gradients should be joined to come closest to the groups: that of
   the largest of them in bytes; 0 if not known. */
int64_t rp_opt_threshold(const struct rp_opt_plan *plan);
/* Whether it is TensorFlow, with or without Horovod or BytePS. */
bool rp_opt_is_tensorflow(const struct rp_opt_plan *plan);
/* Writes '# a step is predicted to take 57.7 ms with the plan, 63.5 without it'. */
void rp_opt_write_times(const struct rp_opt_plan *plan, struct rp_out *to, const char *comment);
/* Exporters write names of the recording by rp_out_escaped (io/output.h), in the language of the
   file. */

#define RP_EXPORTER_DECLARE(name) extern const struct rp_exporter rp_exporter_##name;
RP_EXPORTER_ROWS(RP_EXPORTER_DECLARE)
#undef RP_EXPORTER_DECLARE
