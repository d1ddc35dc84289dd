/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_EXPLAIN_GRAPH_FOLDER_H
#define RP_EXPLAIN_GRAPH_FOLDER_H
/* `graph` of several files: which programs of a folder are meant, and the tables of them. */
#include "dataset/load_program.h"
#include "explain/graph/graph.h"

struct rp_graph_pick {                   /* a program to read, and where it stands in the dump */
    const struct rp_dump_module *module; /* NULL: a file that is no part of a dump */
    const struct rp_dump_stage *stage;
};

struct rp_graph_folder {
    struct rp_dump dump;
    bool *wanted;    /* modules, one mark each */
    size_t *sources; /* of the programs to read */
    struct rp_graph_pick *picks;
    size_t n;
};

/*
 * Joins the files into modules and picks what is to be read: of the modules that fit `module` the
 * stage that is asked for; without a stage all of them, but passes and later executions only where
 * a module was named. Both may be NULL. In the arena.
 */
enum rp_code rp_graph_folder_open(const struct rp_dataset *dataset, const char *module,
                                  const char *stage, struct rp_arena *arena,
                                  struct rp_graph_folder *out, struct rp_err *err);

/* Reads all picks and fills the result's modules and programs. */
enum rp_code rp_graph_folder_list(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                                  const struct rp_graph_folder *folder, struct rp_result *result,
                                  struct rp_err *err);

#endif
