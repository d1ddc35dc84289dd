/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The modules that the words of `dump` work on: those of dump folders, by the names of their files,
 * and every other program or buffer assignment as a module of its own.
 */
#include "dataset/load_program.h"
#include "dump/words.h"
#include "formats/dump/folder.h"
#include "formats/dump/logs.h"

struct rp_dump_folder {
    const struct rp_dataset *dataset;
    struct rp_dump dump; /* modules; single files come last, programs with the stage "program" */
    bool *wanted;        /* one mark each */
    size_t nwanted;
    size_t *others; /* sources that belong to no module and are not programs */
    size_t nothers;
};

/*
 * All modules of the call; `wanted` are those that the setting "module" matches. In the arena.
 * RP_FORMAT where there is no module at all.
 */
enum rp_code rp_dump_folder_open(const struct rp_dump_call *call, struct rp_arena *arena,
                                 struct rp_dump_folder *out, struct rp_err *err);

/* Writes "module 3976 jit_train_step", or the name of a file. In the arena, which keeps a
   failure. */
const char *rp_dump_label(const struct rp_dump_module *module, struct rp_arena *arena);

/* A note about the other modules that match, or NULL. */
const char *rp_dump_one_of(const struct rp_dump_folder *folder, struct rp_arena *arena);

/* The source of the module's (last) file of a role, or SIZE_MAX. */
size_t rp_dump_file_of(const struct rp_dump_module *module, enum rp_dump_role role);

/* The program to analyse: the optimised one, else the last before execution; or NULL. */
const struct rp_dump_stage *rp_dump_final(const struct rp_dump_module *module);
/* The first stage at a point, or NULL. */
const struct rp_dump_stage *rp_dump_stage_at(const struct rp_dump_module *module,
                                             enum rp_dump_point point);

/* Of the wanted modules, the one with most instructions in its final program; one that cannot be
   read has none. */
enum rp_code rp_dump_largest(const struct rp_dump_folder *folder, const struct rp_dump_module **out,
                             struct rp_err *err);

/* Loads the final program of a module. RP_FORMAT if it has none, or if it is not HLO; `what_for` is
   part of that message ("kernels"), and NULL accepts any language. */
enum rp_code rp_dump_load(const struct rp_dump_folder *folder, const struct rp_dump_module *module,
                          const char *what, struct rp_import *out, struct rp_err *err);

/* A file of the folder in memory. Messages name the file; close it with the code of what was done
   with it, which is returned. */
struct rp_dump_content {
    const struct rp_dump_folder *folder;
    size_t source;
    struct rp_input *in;
    const uint8_t *bytes;
    size_t n;
};
enum rp_code rp_dump_open(struct rp_dump_content *content, const struct rp_dump_folder *folder,
                          size_t source, struct rp_err *err);
enum rp_code rp_dump_close(struct rp_dump_content *content, enum rp_code code, struct rp_err *err);

enum rp_code rp_dump_pass_times(const struct rp_dump_folder *folder, size_t source,
                                struct rp_arena *arena, struct rp_pass_times *out,
                                struct rp_err *err);

/* Puts the name of a source before a message. */
enum rp_code rp_dump_in_file(const struct rp_dump_folder *folder, size_t source, enum rp_code code,
                             struct rp_err *err);

/* Writes bytes with a sign, "+1.2 MB", because "-42 B" is not a size. In the arena. */
const char *rp_dump_signed(struct rp_arena *arena, double value, enum rp_unit unit);
