/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files are grouped by their names (formats/dump/folder.h). Files with other names are opened: a
 * program is a module of its own, everything else is left to the word.
 */
#include "dump/folder.h"
#include "base/text.h"

#include "formats/formats.h"
#include "program/structure.h"
#include "result/print_units.h"

#include <math.h>
#include <string.h>

/* What a source is by its first bytes: a program, a buffer assignment, or something else, also if
   it cannot be opened. */
static enum rp_dump_role role_of(const struct rp_dataset *dataset, size_t i)
{
    enum rp_dump_role role = RP_DUMP_OTHER;
    const struct rp_format *format;
    struct rp_input *in;

    if (rp_source_open(dataset->sources, i, &in, NULL) != RP_OK)
        return role;
    if (rp_format_sniff(in, &format, NULL) == RP_OK)
        role = format->kind == RP_FORMAT_KIND_PROGRAM   ? RP_DUMP_PROGRAM
               : format->kind == RP_FORMAT_KIND_BUFFERS ? RP_DUMP_BUFFERS
                                                        : RP_DUMP_OTHER;
    rp_source_return(dataset->sources, i, in);
    return role;
}

/* Adds files that belong to no module: programs are modules of their own. */
static enum rp_code add_others(struct rp_dump_folder *folder, struct rp_arena *arena,
                               struct rp_err *err)
{
    size_t n = rp_sources_count(folder->dataset->sources), known = folder->dump.nmodules;
    struct rp_dump_module *modules = RP_ARENA_NEW(arena, struct rp_dump_module, n + known + 1);
    bool *taken = RP_ARENA_NEW(arena, bool, n + 1);

    folder->others = RP_ARENA_NEW(arena, size_t, n + 1);
    RP_TRY(rp_err_need(modules && taken && folder->others, err, "listing modules"));
    for (size_t i = 0; i < known; i++) {
        modules[i] = folder->dump.modules[i];
        for (size_t k = 0; k < modules[i].nfiles; k++)
            taken[modules[i].files[k].source] = true;
    }
    folder->dump.modules = modules;
    for (size_t i = 0; i < n; i++) {
        enum rp_dump_role role = taken[i] ? RP_DUMP_OTHER : role_of(folder->dataset, i);

        if (role != RP_DUMP_OTHER) {
            /* Each other file with a role is a module of its own. */
            struct rp_dump_module *module = &folder->dump.modules[folder->dump.nmodules];
            const char *name = rp_sources_borrow(folder->dataset->sources, i)->name;
            *module = (struct rp_dump_module){.root = "", .name = rp_text_file(name), .id = -1};
            module->files = RP_ARENA_NEW(arena, struct rp_dump_file, 1);
            module->stages = RP_ARENA_NEW(arena, struct rp_dump_stage, 1);
            RP_TRY(rp_err_need(module->files && module->stages, err, "listing modules"));
            module->files[module->nfiles++] = (struct rp_dump_file){
                .source = i, .role = role, .point = RP_DUMP_AT_NAMED, .stage = "program"};
            if (role == RP_DUMP_PROGRAM)
                module->stages[module->nstages++] =
                    (struct rp_dump_stage){"program", RP_DUMP_AT_NAMED, 0, i, 1};
            folder->dump.nmodules++;
        } else if (!taken[i])
            folder->others[folder->nothers++] = i;
    }
    return RP_OK;
}

enum rp_code rp_dump_folder_open(const struct rp_dump_call *call, struct rp_arena *arena,
                                 struct rp_dump_folder *out, struct rp_err *err)
{
    const char *module = rp_settings_text(call->settings, "module");

    *out = (struct rp_dump_folder){.dataset = call->dataset};
    size_t n = rp_sources_count(call->dataset->sources);
    const char **names = RP_ARENA_NEW(arena, const char *, n + 1);
    RP_TRY(rp_err_need(names, err, "listing modules"));
    for (size_t i = 0; i < n; i++)
        names[i] = rp_sources_borrow(call->dataset->sources, i)->name;
    RP_TRY(rp_dump_index(names, n, arena, &out->dump, err));
    RP_TRY(add_others(out, arena, err));
    out->wanted = RP_ARENA_NEW(arena, bool, out->dump.nmodules + 1);
    RP_TRY(rp_err_need(out->wanted, err, "listing modules"));
    if (!out->dump.nmodules)
        return rp_err_set(err, RP_FORMAT, "'%s': no program and no file of a compiler's dump",
                          call->dataset->given ? call->dataset->given : "");
    RP_TRY(rp_dump_find_modules(&out->dump, module, out->wanted, err));
    for (size_t i = 0; i < out->dump.nmodules; i++)
        out->nwanted += out->wanted[i];
    return RP_OK;
}

const char *rp_dump_label(const struct rp_dump_module *module, struct rp_arena *arena)
{
    if (module->id >= 0)
        return rp_arena_textf(arena, "module %lld%s%s", (long long)module->id,
                              *module->name ? " " : "", module->name);
    return rp_arena_text(arena, *module->name ? module->name : module->root);
}

const char *rp_dump_one_of(const struct rp_dump_folder *folder, struct rp_arena *arena)
{
    return folder->nwanted < 2
               ? NULL
               : rp_arena_textf(arena, "one of %zu modules: '--module' selects another",
                                folder->nwanted);
}

size_t rp_dump_file_of(const struct rp_dump_module *module, enum rp_dump_role role)
{
    for (size_t i = module->nfiles; i-- > 0;)
        if (module->files[i].role == role)
            return module->files[i].source;
    return SIZE_MAX;
}

const struct rp_dump_stage *rp_dump_stage_at(const struct rp_dump_module *module,
                                             enum rp_dump_point point)
{
    for (size_t i = 0; i < module->nstages; i++)
        if (module->stages[i].point == point)
            return &module->stages[i];
    return NULL;
}

const struct rp_dump_stage *rp_dump_final(const struct rp_dump_module *module)
{
    const struct rp_dump_stage *last = rp_dump_stage_at(module, RP_DUMP_AT_AFTER);

    for (size_t i = 0; !last && i < module->nstages; i++)
        if (module->stages[i].point < RP_DUMP_AT_AFTER &&
            (i + 1 == module->nstages || module->stages[i + 1].point >= RP_DUMP_AT_AFTER))
            last = &module->stages[i];
    return last || !module->nstages ? last : &module->stages[0];
}

/* Weighs the final program by the operations and bytes of one execution; 0 if it cannot be read. */
static enum rp_code weigh_module(const struct rp_dump_folder *folder,
                                 const struct rp_dump_module *module, double *out,
                                 struct rp_err *err)
{
    const struct rp_dump_stage *final = rp_dump_final(module);
    struct rp_import import = RP_IMPORT_INIT;
    struct rp_arena scratch = RP_ARENA_INIT;
    struct rp_costs costs;

    *out = 0;
    if (!final)
        return RP_OK;
    enum rp_code code = rp_load_program(folder->dataset, final->source, &import, NULL);
    if (code == RP_OK)
        code = rp_program_count(import.program, &scratch, &costs, NULL);
    if (code == RP_OK)
        *out = costs.program.flops + costs.program.bytes + (double)import.program->nops;
    rp_arena_release(&scratch);
    rp_import_release(&import);
    return code == RP_NOMEM ? rp_err_nomem(err, "reading a program") : RP_OK;
}

enum rp_code rp_dump_largest(const struct rp_dump_folder *folder, const struct rp_dump_module **out,
                             struct rp_err *err)
{
    double most = -1, weight = 0;
    bool any = false;

    *out = NULL;
    for (size_t i = 0; i < folder->dump.nmodules; i++) {
        if (!folder->wanted[i])
            continue;
        if (folder->nwanted > 1)
            RP_TRY(weigh_module(folder, &folder->dump.modules[i], &weight, err));
        bool compiled = rp_dump_stage_at(&folder->dump.modules[i], RP_DUMP_AT_AFTER) != NULL;
        if (compiled > any || (compiled == any && weight > most)) {
            any = compiled; /* what was compiled comes before what was only traced */
            most = weight;
            *out = &folder->dump.modules[i];
        }
    }
    return *out ? RP_OK : rp_err_set(err, RP_FORMAT, "no module found");
}

enum rp_code rp_dump_load(const struct rp_dump_folder *folder, const struct rp_dump_module *module,
                          const char *what, struct rp_import *out, struct rp_err *err)
{
    const struct rp_dump_stage *final = rp_dump_final(module);

    if (!final)
        return rp_err_set(err, RP_FORMAT, "module '%s' has no program in this dump", module->name);
    RP_TRY(rp_load_program(folder->dataset, final->source, out, err));
    if (!what || !strcmp(out->program->language, "hlo"))
        return RP_OK;
    return rp_err_set(err, RP_FORMAT,
                      "no HLO of this module in the dump, which %s need ('%s' is %s): compile with "
                      "--xla_dump_to and --xla_dump_hlo_as_text",
                      what, rp_sources_borrow(folder->dataset->sources, final->source)->name,
                      out->program->language);
}

enum rp_code rp_dump_in_file(const struct rp_dump_folder *folder, size_t source, enum rp_code code,
                             struct rp_err *err)
{
    if (code != RP_OK)
        rp_err_prefix(err, code, "'%s'", rp_sources_borrow(folder->dataset->sources, source)->name);
    return code;
}

enum rp_code rp_dump_open(struct rp_dump_content *content, const struct rp_dump_folder *folder,
                          size_t source, struct rp_err *err)
{
    *content = (struct rp_dump_content){.folder = folder, .source = source};
    RP_TRY(rp_source_open(folder->dataset->sources, source, &content->in, err));
    enum rp_code code = rp_input_slurp(content->in, &content->bytes, &content->n, err);
    return code == RP_OK ? RP_OK : rp_dump_close(content, code, err);
}

enum rp_code rp_dump_close(struct rp_dump_content *content, enum rp_code code, struct rp_err *err)
{
    rp_input_close(content->in);
    return rp_dump_in_file(content->folder, content->source, code, err);
}

enum rp_code rp_dump_pass_times(const struct rp_dump_folder *folder, size_t source,
                                struct rp_arena *arena, struct rp_pass_times *out,
                                struct rp_err *err)
{
    struct rp_dump_content file;

    RP_TRY(rp_dump_open(&file, folder, source, err));
    enum rp_code code =
        rp_pass_times_read(file.bytes, file.n, &folder->dataset->limits, arena, out, err);
    return rp_dump_close(&file, code, err);
}

const char *rp_dump_signed(struct rp_arena *arena, double value, enum rp_unit unit)
{
    if (value == 0)
        return "0";
    return rp_arena_textf(arena, "%s%s", value < 0 ? "-" : "+",
                          rp_units_text(arena, fabs(value), unit));
}
