/* SPDX-License-Identifier: Apache-2.0 */
/* Reads programs beside a trace one after the other; each is in memory only while it is needed. */
#include "explain/xla_programs.h"
#include "base/decides.h"

#include "dataset/load_program.h"
#include "facts/arg_keys.h"
#include "facts/xla_names.h"
#include "formats/programs.h"
#include "formats/xprof/programs.h"
#include "io/sources.h"

#include <ctype.h>
#include <string.h>

#define MOST_PROGRAMS 256
RP_LIMIT(MOST_PROGRAMS, "programs of a profile", "instructions of further programs have no scope");

struct walk {
    const struct rp_loaded *loaded;
    rp_xla_program_fn *fn;
    void *user;
    struct rp_strtab done; /* modules */
    size_t programs;
};

/* Whether this is the first program of a module. */
static enum rp_code is_new(struct walk *w, const char *module, size_t len, bool *fresh,
                           struct rp_err *err)
{
    size_t before = w->done.n;
    uint32_t id;

    RP_TRY(rp_strtab_intern(&w->done, module, len, &id, err));
    *fresh = w->done.n > before && w->programs++ < MOST_PROGRAMS;
    return RP_OK;
}

/* Takes a program of a profile, "jit_step(7)". */
static enum rp_code take_program(void *user, struct rp_bytes name, struct rp_bytes hlo,
                                 struct rp_err *err)
{
    struct walk *w = user;
    const char *text = (const char *)name.at, *number = memchr(text, '(', name.n);
    size_t len = number ? (size_t)(number - text) : name.n;
    struct rp_program *p = NULL;
    struct rp_err why = RP_ERR_INIT;
    enum rp_code code = RP_OK;
    bool fresh;

    RP_TRY(is_new(w, text, len, &fresh, err));
    if (!fresh)
        return RP_OK;
    if (rp_hlo_proto_parse(hlo.at, hlo.n, NULL, &p, &why) == RP_OK)
        code = w->fn(w->user, rp_strtab_borrow(&w->done, w->done.n - 1), p, err);
    rp_program_free(p);
    return code;
}

/* The profile has to be read a second time. */
static enum rp_code walk_profile(struct walk *w, struct rp_err *err)
{
    struct rp_err why = RP_ERR_INIT;
    enum rp_code code = RP_OK;
    struct rp_bytes space;
    struct rp_input *in;

    if (!w->loaded->format || strcmp(w->loaded->format, "xplane") != 0 ||
        rp_source_open(w->loaded->dataset->sources, w->loaded->index, &in, &why) != RP_OK)
        return RP_OK;
    if (rp_input_slurp(in, &space.at, &space.n, &why) == RP_OK)
        code = rp_xplane_each_program(space, take_program, w, err);
    rp_input_close(in);
    return code;
}

static enum rp_code take_stage(struct walk *w, const struct rp_dump_module *module, size_t source,
                               struct rp_err *err)
{
    RP_SCOPED(rp_import_release) struct rp_import import = {0};
    struct rp_err why = RP_ERR_INIT;
    bool fresh;

    RP_TRY(is_new(w, module->name, strlen(module->name), &fresh, err));
    if (!fresh)
        return RP_OK;
    if (rp_load_program(w->loaded->dataset, source, &import, &why) == RP_OK && import.program)
        RP_TRY(w->fn(w->user, module->name, import.program, err));
    return RP_OK;
}

static enum rp_code walk_dump(struct walk *w, struct rp_err *err)
{
    RP_SCOPED(rp_arena_release) struct rp_arena scratch = RP_ARENA_INIT;
    struct rp_dump dump = {0};

    RP_TRY(rp_dataset_dump(w->loaded->dataset, &scratch, &dump, err));
    for (size_t i = 0; i < dump.nmodules; i++)
        for (size_t k = 0; k < dump.modules[i].nstages; k++)
            if (dump.modules[i].stages[k].point == RP_DUMP_AT_AFTER)
                RP_TRY(take_stage(w, &dump.modules[i], dump.modules[i].stages[k].source, err));
    return RP_OK;
}

enum rp_code rp_xla_each_program(const struct rp_loaded *loaded, rp_xla_program_fn *fn, void *user,
                                 struct rp_err *err)
{
    struct walk w = {.loaded = loaded, .fn = fn, .user = user};

    if (!loaded->dataset)
        return RP_OK;
    enum rp_code code = rp_strtab_init(&w.done, err);
    if (code == RP_OK)
        code = walk_profile(&w, err);
    if (code == RP_OK)
        code = walk_dump(&w, err);
    rp_strtab_release(&w.done);
    return code;
}

/* ------------------------------------------------------------------ names */

uint64_t rp_xla_name_hash_after(uint64_t module, const char *name)
{
    size_t len = rp_kernel_name_len(name, strlen(name));

    for (size_t i = 0; i < len; i++)
        module =
            rp_hash_join(module, isalnum((unsigned char)name[i]) ? (unsigned char)name[i] : '_');
    return module;
}

uint64_t rp_xla_name_hash(const char *module, const char *name)
{
    return rp_xla_name_hash_after(rp_hash_bytes(module, strlen(module)), name);
}

static enum rp_code add_name(struct rp_xla_names *n, const char *module, const char *name,
                             const char *path, struct rp_err *err)
{
    uint32_t id, at;

    RP_TRY(rp_strtab_intern(&n->paths, path, strlen(path), &id, err));
    return rp_map_intern(&n->known, rp_xla_name_hash(module, name), id, &at, err);
}

static enum rp_code add_names(void *user, const char *module, const struct rp_program *p,
                              struct rp_err *err)
{
    struct rp_xla_names *n = user;

    for (uint32_t op = 0; op < p->nops; op++) {
        const struct rp_op_meta *meta = &p->metas.at[p->meta.at[op]];
        const char *path = rp_program_text(p, meta->op_name);

        if (!*path || p->computations.at[p->computation.at[op]].fused)
            continue;
        RP_TRY(add_name(n, module, rp_program_text(p, p->op_name.at[op]), path, err));
        if (meta->deduplicated_name) /* identical instructions share one kernel */
            RP_TRY(add_name(n, module, rp_program_text(p, meta->deduplicated_name), path, err));
    }
    return RP_OK;
}

enum rp_code rp_xla_names_init(struct rp_xla_names *n, const struct rp_loaded *loaded,
                               struct rp_err *err)
{
    RP_SCOPED(rp_arg_key_release) struct rp_arg_key module = {0};

    *n = (struct rp_xla_names){0};
    RP_TRY(rp_strtab_init(&n->paths, err));
    RP_TRY(rp_arg_key_init(&module, loaded->trace, "hlo_module", err));
    if (module.key != RP_NONE)
        RP_TRY(rp_xla_each_program(loaded, add_names, n, err));
    return RP_OK;
}

void rp_xla_names_release(struct rp_xla_names *n)
{
    rp_map_release(&n->known);
    rp_strtab_release(&n->paths);
}

const char *rp_xla_name_of(const struct rp_xla_names *n, const char *module, const char *name)
{
    uint32_t id = rp_map_get(&n->known, rp_xla_name_hash(module, name));

    return id == RP_MAP_NONE ? NULL : rp_strtab_borrow(&n->paths, id);
}
