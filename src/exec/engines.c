/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/engines.h"

#include <stdio.h>
#include <string.h>

static const struct rp_engine *const engines[] = {
#define ENGINE_ROW(name) &rp_engine_##name,
    RP_ENGINE_ROWS(ENGINE_ROW)
#undef ENGINE_ROW
};

const struct rp_engine *rp_engine_at(size_t i)
{
    return i < sizeof engines / sizeof *engines ? engines[i] : NULL;
}

enum rp_code rp_engine_find(const char *text, const struct rp_engine **engine, const char **where,
                            struct rp_err *err)
{
    size_t len = strcspn(text, ":"), used = 0;
    char names[256];

    *where = text[len] ? text + len + 1 : NULL;
    for (size_t i = 0; (*engine = rp_engine_at(i)) != NULL; i++) {
        if (strlen((*engine)->name) == len && !strncmp((*engine)->name, text, len)) {
            if (*where && !(*engine)->takes_where)
                return rp_err_set(err, RP_USAGE, "engine '%s' takes no ':path'", (*engine)->name);
            return RP_OK;
        }
        if (used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "",
                                     (*engine)->name);
    }
    return rp_err_set(err, RP_USAGE, "unknown engine '%.*s'; known: %s", (int)len, text, names);
}
