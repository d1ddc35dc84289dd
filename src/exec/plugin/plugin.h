/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds third-party libraries that run programs: PJRT plugins (the real XLA) and TensorFlow; and
 * the LAPACK that comes with SciPy, which JAX calls. No library is loaded to find them, and no
 * Python runs. Places, in this order:
 *
 *   PJRT_NAMES_AND_LIBRARY_PATHS     "name:path,name:path", as JAX reads it
 *   reprise's own folder             what `reprise replay engines --install` installed
 *   site-packages                    of the active environment ($VIRTUAL_ENV, $CONDA_PREFIX), of
 *                                    $PYTHONPATH, of the python3 in $PATH, of the user, of the
 * system
 */
#include "base/arena.h"
#include "base/vec.h"

#include <stdbool.h>

enum rp_plugin_kind { RP_PLUGIN_PJRT, RP_PLUGIN_TF, RP_PLUGIN_LAPACK };

struct rp_plugin {
    enum rp_plugin_kind kind;
    const char *path;
    const char *name;  /* "xla_cuda13", "xla_cpu_pjrt": the name that the user may give */
    const char *found; /* where it was found: "PJRT_NAMES_AND_LIBRARY_PATHS",
                          "/usr/lib/python3/dist-packages" */
};

struct rp_plugins {
    struct rp_arena arena;
    RP_VEC(struct rp_plugin) list; /* each file once, the preferred ones first */
    RP_VEC(const char *) looked;   /* folders that were searched */
};

/* Finds all libraries of every kind. Call rp_plugins_release in every case. */
enum rp_code rp_plugins_find(struct rp_plugins *out, struct rp_err *err);
void rp_plugins_release(struct rp_plugins *plugins);

/*
 * The file for `where`: a path, the name of a library that was found, or, if NULL, the best one
 * found: for a GPU if the machine has one, else for the CPU. If there is none, returns RP_MISSING
 * and says how to install one. The caller frees *path.
 */
enum rp_code rp_plugin_resolve(enum rp_plugin_kind kind, const char *where, char **path,
                               struct rp_err *err);

/* Reprise's own folder: $REPRISE_ENGINES, else in $XDG_DATA_HOME, else in the home folder. In the
   arena; NULL without a home. */
const char *rp_plugin_folder(struct rp_arena *arena);

/* Installs a package into reprise's own folder with pip, without its dependencies. */
enum rp_code rp_plugin_install(const char *package, struct rp_err *err);

/* Whether a shared library (64-bit ELF, this machine's byte order) has a dynamic symbol of that
   name. Reads only the pages of the symbol table; false for other files. */
bool rp_elf_has_symbol(const char *path, const char *symbol);
