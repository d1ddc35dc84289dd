/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Plans in the terms of frameworks. Each exporter is a row of one table: it writes a file, and says
 * with what software that works. Only those that fit the framework of the recording, and have
 * something to say, are offered.
 *
 * To add one: write a file here with `const struct rp_exporter rp_exporter_<name>` (pattern:
 * optimizer.c), and add X(<name>) to list.h.
 */
#include "io/escaped.h"
#include "opt/export/list.h"
#include "opt/plan.h"
#include "result/result.h"

struct rp_exporter {
    const char *name;       /* "ddp", as '--export' takes it */
    const char *file;       /* its name in a folder: "ddp_buckets.py" */
    bool stock;             /* works with released software, else it is for compatibility only */
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
    int64_t *buckets; /* bytes of each, in the order in which they are sent */
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
    struct rp_opt_file *files; /* those that are offered */
};

extern const struct rp_type rp_opt_exports_type, rp_opt_file_type;

/* All that are offered, in the arena. */
enum rp_code rp_opt_exports_fill(const struct rp_opt_plan *plan, struct rp_arena *arena,
                                 struct rp_opt_exports *out, struct rp_err *err);

/* As '--export' gives it: "DIR" for all files, which is made, or "NAME=FILE" for one. NULL writes
   nothing. */
enum rp_code rp_opt_exports_write(const struct rp_opt_exports *exports, const char *where,
                                  struct rp_err *err);
/* Whether the text can be one: NAME is an exporter. Before anything is searched. */
enum rp_code rp_opt_exports_check(const char *where, struct rp_err *err);

/* ------------------------------------------------------------------ what exporters share */

/* "5+6": ids ascending. */
const char *rp_opt_group_ids(const struct rp_opt_plan *plan, const struct rp_opt_group *group,
                             struct rp_arena *arena);
/* The size up to which gradients are joined that comes closest to the groups: that of the largest
   of them, in bytes; 0: not known. */
int64_t rp_opt_threshold(const struct rp_opt_plan *plan);
/* TensorFlow, with or without Horovod or BytePS around it. */
bool rp_opt_is_tensorflow(const struct rp_opt_plan *plan);
/* '# a step is predicted to take 57.7 ms with the plan, 63.5 without it' */
void rp_opt_write_times(const struct rp_opt_plan *plan, struct rp_out *to, const char *comment);
/* Names of the recording: rp_out_escaped (io/output.h), in the language of the file. */

#define RP_EXPORTER_DECLARE(name) extern const struct rp_exporter rp_exporter_##name;
RP_EXPORTER_ROWS(RP_EXPORTER_DECLARE)
#undef RP_EXPORTER_DECLARE
