/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile_exports NAMES FOLDER: every export of `optimize`, of plans whose names are those of the
 * file NAMES (each ended by a NUL), as FOLDER/<framework>-<file>. Whatever is in the table of
 * exporters is written; fails where one fits none of the plans.
 */
#include "opt/export/exports.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 200

static const char *names[MOST];
static size_t nnames;

static void read_names(const char *path)
{
    FILE *in = fopen(path, "rb");
    char *line = NULL;
    size_t cap = 0;

    while (in && nnames < MOST && getdelim(&line, &cap, '\0', in) > 0) {
        names[nnames++] = line;
        line = NULL;
        cap = 0;
    }
    if (!in || !nnames) {
        fprintf(stderr, "no names in '%s'\n", path);
        exit(2);
    }
    fclose(in);
}

/* Every text of a plan is a name; all families of moves are in it. */
static struct rp_opt_plan hostile_plan(enum rp_opt_source source)
{
    static struct rp_opt_tensor tensors[MOST];
    static uint32_t members[MOST], first[] = {0};
    static struct rp_opt_group groups[2];
    static struct rp_opt_cluster clusters[MOST + 1];
    static struct rp_opt_region regions[MOST + 1];
    static struct rp_opt_cast casts[MOST];
    static struct rp_opt_move moves[RP_OPT_FAMILIES];

    for (size_t i = 0; i < nnames; i++) {
        tensors[i] = (struct rp_opt_tensor){.id = (int64_t)i, .name = names[i], .bytes = 1 << 20};
        tensors[i].ready_ns = (int64_t)i * 1000000;
        members[i] = (uint32_t)i;
        clusters[i] = (struct rp_opt_cluster){.nops = 1, .ops = &names[i], .kind = names[i]};
        regions[i].name = names[i];
        casts[i] = (struct rp_opt_cast){.op = names[i], .dtype = names[i], .count = 1};
    }
    for (size_t i = 0; i < RP_OPT_FAMILIES; i++)
        moves[i] = (struct rp_opt_move){.family = (enum rp_opt_family)i,
                                        .move = names[i % nnames],
                                        .what = names[i % nnames],
                                        .apply = names[i % nnames],
                                        .what_if = names[i % nnames],
                                        .assumes = names[i % nnames]};
    clusters[nnames] = (struct rp_opt_cluster){.nops = nnames, .ops = names, .kind = ""};
    regions[nnames].name = "step";
    groups[0] = (struct rp_opt_group){1, first, 1 << 20, 1 << 10};
    groups[1] = (struct rp_opt_group){nnames, members, 1 << 20, 0};
    return (struct rp_opt_plan){.source = source,
                                .ranks = 4,
                                .baseline_ns = 20000000,
                                .best_ns = 15000000,
                                .nmoves = RP_OPT_FAMILIES,
                                .moves = moves,
                                .ntensors = nnames,
                                .tensors = tensors,
                                .ngroups = 2,
                                .groups = groups,
                                .bucket_cap_mb = 3.5,
                                .nclusters = nnames + 1,
                                .clusters = clusters,
                                .fused_optimizer = true,
                                .optimizer = names[0],
                                .nregions = nnames + 1,
                                .regions = regions,
                                .ncasts = nnames,
                                .casts = casts};
}

static void write_export(const struct rp_exporter *row, const struct rp_opt_plan *plan,
                         const char *path)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_out *to;

    if (rp_out_open(path, &to, &err) == RP_OK) {
        row->write(plan, to);
        if (rp_out_close(to, &err) == RP_OK)
            return;
    }
    fprintf(stderr, "%s\n", err.text);
    exit(1);
}

int main(int argc, char **argv)
{
    char path[4096];
    int missing = 0;

    if (argc != 3)
        return 2;
    read_names(argv[1]);
    for (size_t i = 0; rp_exporters[i]; i++) {
        size_t written = 0;

        for (int source = RP_OPT_OTHER; source <= RP_OPT_BYTEPS; source++) {
            struct rp_opt_plan plan = hostile_plan((enum rp_opt_source)source);

            if (!rp_exporters[i]->fits(&plan))
                continue;
            snprintf(path, sizeof path, "%s/%d-%s", argv[2], source, rp_exporters[i]->file);
            write_export(rp_exporters[i], &plan, path);
            written++;
        }
        if (!written)
            fprintf(stderr, "the export '%s' fits no plan of this test\n", rp_exporters[i]->name);
        missing += !written;
    }
    return missing ? 1 : 0;
}
