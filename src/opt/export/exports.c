/* SPDX-License-Identifier: Apache-2.0 */
/* The table of exporters, the record of what they offer, and how their files are written. */
#include "opt/export/exports.h"

#include "base/line.h"
#include "base/order.h"
#include "base/scope.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const struct rp_exporter *const rp_exporters[] = {
#define EXPORTER_ADDRESS(name) &rp_exporter_##name,
    RP_EXPORTER_ROWS(EXPORTER_ADDRESS)
#undef EXPORTER_ADDRESS
        NULL};

/* ------------------------------------------------------------------ the record */

static const struct rp_field ddp_fields[] = {
    RP_FIELD(struct rp_opt_ddp, stock, BOOL, NONE, NULL, "whether it works with released software",
             0),
    RP_FIELD(struct rp_opt_ddp, bucket_cap_mb, F64, NONE, NULL,
             "bucket_cap_mb of DistributedDataParallel, or null", 0),
    RP_FIELD_LIST(struct rp_opt_ddp, buckets, &rp_type_int, NULL,
                  "bytes of the buckets of the plan, in the order in which they are sent", 0),
    RP_FIELD_END};
static const struct rp_type ddp_type = {"ddp", sizeof(struct rp_opt_ddp), ddp_fields, NULL};

static const struct rp_field dpro_fields[] = {
    RP_FIELD(struct rp_opt_dpro, stock, BOOL, NONE, NULL,
             "false: it needs dPRO's versions of Horovod, BytePS or TensorFlow", 0),
    RP_FIELD_LIST(struct rp_opt_dpro, tensor_groups, &rp_type_string, NULL,
                  "tensor ids joined with '+', in the order in which the groups are sent", 0),
    RP_FIELD_END};
static const struct rp_type dpro_type = {"dpro", sizeof(struct rp_opt_dpro), dpro_fields, NULL};

#define FILE_FIELD(member, type, title, doc) \
    RP_FIELD(struct rp_opt_file, member, type, NONE, title, doc, 0)

static const struct rp_field file_fields[] = {
    FILE_FIELD(name, STR, "export", "its name, as '--export' takes it"),
    FILE_FIELD(file, STR, "file", "its name in the folder that '--export' writes"),
    FILE_FIELD(stock, BOOL, "stock", "works with released software; false: for compatibility only"),
    FILE_FIELD(works_with, STR, "works with", "software that takes it"),
    FILE_FIELD(summary, STR, "what it is", "what the file holds"),
    FILE_FIELD(text, STR, NULL, "the file"),
    RP_FIELD_END};
const struct rp_type rp_opt_file_type = {"file", sizeof(struct rp_opt_file), file_fields, NULL};

static const struct rp_field exports_fields[] = {
    RP_FIELD_RECORD(struct rp_opt_exports, ddp, &ddp_type, NULL, "DistributedDataParallel", 0),
    RP_FIELD_RECORD(struct rp_opt_exports, dpro, &dpro_type, NULL, "dPRO", 0),
    RP_FIELD_LIST(struct rp_opt_exports, files, &rp_opt_file_type, NULL,
                  "files for the framework of the recording; '--export DIR' writes them", 0),
    RP_FIELD_END};

const struct rp_type rp_opt_exports_type = {"exports", sizeof(struct rp_opt_exports),
                                            exports_fields, NULL};

/* ------------------------------------------------------------------ what exporters share */

RP_ORDER(by_id, int64_t, RP_COMPARE(*a, *b))

const char *rp_opt_group_ids(const struct rp_opt_plan *plan, const struct rp_opt_group *group,
                             struct rp_arena *arena)
{
    int64_t *ids = RP_ARENA_NEW(arena, int64_t, group->ntensors);
    struct rp_arena_line line = {.arena = arena};

    for (size_t i = 0; ids && i < group->ntensors; i++)
        ids[i] = plan->tensors[group->tensors[i]].id;
    if (ids)
        qsort(ids, group->ntensors, sizeof *ids, by_id);
    for (size_t i = 0; ids && i < group->ntensors; i++)
        rp_arena_addf(&line, "%s%lld", i ? "+" : "", (long long)ids[i]);
    return line.text ? line.text : "";
}

int64_t rp_opt_threshold(const struct rp_opt_plan *plan)
{
    int64_t most = 0;

    for (size_t i = 0; i < plan->ngroups; i++)
        most = plan->groups[i].bytes > most ? plan->groups[i].bytes : most;
    return most;
}

bool rp_opt_is_tensorflow(const struct rp_opt_plan *plan)
{
    return plan->source == RP_OPT_TENSORFLOW || plan->source == RP_OPT_HOROVOD ||
           plan->source == RP_OPT_BYTEPS;
}

void rp_opt_write_times(const struct rp_opt_plan *plan, struct rp_out *to, const char *comment)
{
    rp_out_printf(to,
                  "%sa step is predicted to take %.3f ms with the whole plan, %.3f ms without it\n",
                  comment, (double)plan->best_ns / 1e6, (double)plan->baseline_ns / 1e6);
}

/* ------------------------------------------------------------------ what is offered */

static void fill_ddp(const struct rp_opt_plan *plan, struct rp_arena *arena, struct rp_opt_ddp *out)
{
    out->stock = true;
    out->bucket_cap_mb = plan->source == RP_OPT_TORCH ? plan->bucket_cap_mb : (double)NAN;
    if (plan->source != RP_OPT_TORCH || !plan->ngroups)
        return;
    out->buckets = RP_ARENA_NEW(arena, int64_t, plan->ngroups);
    for (size_t i = 0; out->buckets && i < plan->ngroups; i++)
        out->buckets[out->nbuckets++] = plan->groups[i].bytes;
}

static void fill_dpro(const struct rp_opt_plan *plan, struct rp_arena *arena,
                      struct rp_opt_dpro *out)
{
    if (plan->source != RP_OPT_HOROVOD && plan->source != RP_OPT_BYTEPS)
        return;
    out->tensor_groups = RP_ARENA_NEW(arena, const char *, plan->ngroups + 1);
    for (size_t i = 0; out->tensor_groups && i < plan->ngroups; i++)
        out->tensor_groups[out->ntensor_groups++] = rp_opt_group_ids(plan, &plan->groups[i], arena);
}

static enum rp_code fill_file(const struct rp_exporter *row, const struct rp_opt_plan *plan,
                              struct rp_arena *arena, struct rp_opt_file *out, struct rp_err *err)
{
    struct rp_out *to;

    RP_TRY(rp_out_open_memory(&to, err));
    row->write(plan, to);
    enum rp_code code = rp_out_flush(to, err);
    *out = (struct rp_opt_file){
        .name = row->name,
        .file = row->file,
        .works_with = row->works_with,
        .summary = row->summary,
        .text = code == RP_OK ? rp_arena_text(arena, rp_out_borrow_memory(to, NULL)) : "",
        .stock = row->stock};
    rp_out_abandon(to);
    return code;
}

enum rp_code rp_opt_exports_fill(const struct rp_opt_plan *plan, struct rp_arena *arena,
                                 struct rp_opt_exports *out, struct rp_err *err)
{
    size_t i, n = sizeof rp_exporters / sizeof rp_exporters[0];

    memset(out, 0, sizeof *out);
    fill_ddp(plan, arena, &out->ddp);
    fill_dpro(plan, arena, &out->dpro);
    out->files = RP_ARENA_NEW(arena, struct rp_opt_file, n);
    RP_TRY(rp_arena_check(arena, "exporting", err));
    for (i = 0; rp_exporters[i]; i++)
        if (rp_exporters[i]->fits(plan))
            RP_TRY(fill_file(rp_exporters[i], plan, arena, &out->files[out->nfiles++], err));
    return rp_arena_check(arena, "exporting", err);
}

/* ------------------------------------------------------------------ writing */

static enum rp_code write_file(const struct rp_opt_file *file, const char *path, struct rp_err *err)
{
    struct rp_out *to;

    RP_TRY(rp_out_open(path, &to, err));
    rp_out_text(to, file->text);
    return rp_out_close(to, err);
}

/* Finds the exporter named before '='; NULL if the text is a folder. */
static const struct rp_exporter *exporter_of(const char *where, size_t *n)
{
    *n = strcspn(where, "=/");
    for (size_t i = 0; where[*n] == '=' && rp_exporters[i]; i++)
        if (!strncmp(where, rp_exporters[i]->name, *n) && !rp_exporters[i]->name[*n])
            return rp_exporters[i];
    return NULL;
}

enum rp_code rp_opt_exports_check(const char *where, struct rp_err *err)
{
    struct rp_arena arena = RP_ARENA_INIT;
    const char *known = "";
    size_t i, n;

    if (!where || exporter_of(where, &n) || where[n] != '=')
        return RP_OK;
    for (i = 0; rp_exporters[i]; i++)
        known = rp_arena_textf(&arena, "%s%s%s", known, i ? ", " : "", rp_exporters[i]->name);
    rp_err_set(err, RP_USAGE, "no export '%.*s': there are %s", (int)n, where, known);
    rp_arena_release(&arena);
    return RP_USAGE;
}

enum rp_code rp_opt_exports_write(const struct rp_opt_exports *exports, const char *where,
                                  struct rp_err *err)
{
    size_t i, n;

    if (!where)
        return RP_OK;
    RP_TRY(rp_opt_exports_check(where, err));
    const struct rp_exporter *row = exporter_of(where, &n);
    if (!row) {
        RP_SCOPED(rp_arena_release) struct rp_arena arena = RP_ARENA_INIT;

        if (mkdir(where, 0777) && errno != EEXIST)
            return rp_err_set_os(err, errno, "cannot make the folder '%s'", where);
        for (size_t k = 0; k < exports->nfiles; k++) {
            const char *path = rp_arena_textf(&arena, "%s/%s", where, exports->files[k].file);

            RP_TRY(rp_arena_check(&arena, "exporting", err));
            RP_TRY(write_file(&exports->files[k], path, err));
        }
        return RP_OK;
    }
    for (i = 0; i < exports->nfiles; i++)
        if (!strcmp(exports->files[i].name, row->name))
            return write_file(&exports->files[i], where + n + 1, err);
    return rp_err_set(err, RP_UNSUPPORTED,
                      "'%s' does not fit this plan: it is for %s, or the plan has nothing for it",
                      row->name, row->works_with);
}
