/* SPDX-License-Identifier: Apache-2.0 */
/* Loads TensorFlow's C library: one table of functions, looked up by name. */
#include "exec/tf/api.h"

#include "program/program.h"

#include <dlfcn.h>
#include <string.h>

enum rp_code rp_tf_load(const char *path, struct rp_tf *out, struct rp_err *err)
{
    static const char *const names[] = {
#define TF_NAME(member, symbol, result, arguments) symbol,
        RP_TF_FUNCTIONS(TF_NAME)
#undef TF_NAME
    };
    void *symbols[sizeof names / sizeof *names];

    memset(out, 0, sizeof *out);
    out->library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!out->library)
        return rp_err_set(err, RP_MISSING, "cannot load TensorFlow: %s", dlerror());
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        symbols[i] = dlsym(out->library, names[i]);
        if (!symbols[i])
            return rp_err_set(err, RP_MISSING,
                              "'%s' is not a usable TensorFlow library: it has no %s", path,
                              names[i]);
    }
    /* the members after `library` are the functions in the same order */
    _Static_assert(sizeof *out == sizeof(void *) + sizeof symbols, "one pointer per function");
    memcpy((char *)out + sizeof(void *), symbols, sizeof symbols);
    return RP_OK;
}

enum rp_code rp_tf_check(const struct rp_tf *tf, const void *status, enum rp_code other,
                         struct rp_err *err)
{
    enum { OK, INVALID_ARGUMENT = 3, NOT_FOUND = 5, RESOURCE_EXHAUSTED = 8, UNIMPLEMENTED = 12 };
    enum rp_code code = other;

    switch (tf->status_code(status)) {
    case OK:
        return RP_OK;
    case INVALID_ARGUMENT:
        code = RP_FORMAT;
        break;
    case NOT_FOUND: /* "Op type not registered 'X'" */
    case UNIMPLEMENTED:
        code = RP_UNSUPPORTED;
        break;
    case RESOURCE_EXHAUSTED:
        code = RP_NOMEM;
        break;
    default:
        break;
    }
    return rp_err_set(err, code, "error from TensorFlow: %.700s", tf->status_text(status));
}

unsigned rp_tf_elem(int type)
{
    switch (type) {
#define ELEM_CASE(id, number) \
    case number:              \
        return RP_ELEM_##id;
        RP_TF_TYPES(ELEM_CASE)
#undef ELEM_CASE
    default:
        return RP_ELEM_INVALID;
    }
}

int rp_tf_type(unsigned elem)
{
    switch (elem) {
#define TYPE_CASE(id, number) \
    case RP_ELEM_##id:        \
        return number;
        RP_TF_TYPES(TYPE_CASE)
#undef TYPE_CASE
    default:
        return 0;
    }
}
