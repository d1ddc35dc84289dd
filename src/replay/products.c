/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's GPUs since Ampere multiply f32 as TF32 unless a program asks for more, and XLA's modules
 * do not say so. What says it is where the module was compiled: an optimised one calls the GPU's
 * libraries or has Triton's fusions; before optimisation the module lies in a dump beside
 *
 *     module_9280.jit_step.sm_9.0a_gpu_after_optimizations.txt
 */
#include "replay/products.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static bool contains(const struct rp_attr *attr, const char *word)
{
    return attr && memmem(attr->at, attr->n, word, strlen(word)) != NULL;
}

static bool calls_a_gpu(const struct rp_program *p)
{
    static const char *const targets[] = {"__cublas$", "__cudnn$", "__cub$", "xla.gpu."};

    for (uint32_t op = 0; op < p->code.n; op++) {
        if (p->code.at[op] == RP_OP_FUSION &&
            contains(rp_op_attr(p, op, RP_ATTR_BACKEND_CONFIG), "__triton"))
            return true;
        if (p->code.at[op] != RP_OP_CUSTOM_CALL)
            continue;
        for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
            if (contains(rp_op_attr(p, op, RP_ATTR_CUSTOM_CALL_TARGET), targets[i]))
                return true;
    }
    return false;
}

/* "sm_9.0a" of "module_1.jit_f.sm_9.0a_gpu_after_optimizations.txt" behind the prefix; NULL: not
   such a name, or of a GPU before Ampere. */
static const char *gpu_of_name(struct rp_arena *arena, const char *name, const char *prefix,
                               size_t n)
{
    const char *end;

    if (strncmp(name, prefix, n) != 0 || strncmp(name + n, "sm_", 3) != 0)
        return NULL;
    end = strstr(name + n, "_gpu_after_optimizations");
    if (!end || strtol(name + n + 3, NULL, 10) < 8)
        return NULL;
    return rp_arena_printf(arena, "%.*s", (int)(end - name - (ptrdiff_t)n), name + n);
}

static const char *gpu_beside(struct rp_arena *arena, const char *file)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file, *found = NULL;
    const char *stage = strstr(name, ".before_optimizations.");
    char *folder;
    struct dirent *entry;
    DIR *dir;

    if (!stage)
        return NULL;
    folder =
        rp_arena_printf(arena, "%.*s", slash ? (int)(slash - file) + 1 : 1, slash ? file : ".");
    dir = folder ? opendir(folder) : NULL;
    while (dir && !found && (entry = readdir(dir)))
        found = gpu_of_name(arena, entry->d_name, name, (size_t)(stage + 1 - name));
    if (dir)
        closedir(dir);
    return found;
}

const char *rp_replay_gpu(struct rp_arena *arena, const struct rp_program *program,
                          const char *file)
{
    if (program && !strcmp(program->language, "hlo") && calls_a_gpu(program))
        return "an NVIDIA GPU";
    return file ? gpu_beside(arena, file) : NULL;
}
