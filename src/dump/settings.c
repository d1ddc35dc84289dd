/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges our flags and variables with the user's. XLA and TensorFlow end the process at an unknown
 * flag or an unreadable value, so such flags are left out, and named.
 */
#include "dump/settings.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLAG_FILE_MOST (1 << 20)

void rp_dump_environment_release(struct rp_dump_environment *e)
{
    rp_vec_release(&e->variables);
    rp_vec_release(&e->dropped);
    rp_vec_release(&e->warnings);
}

enum rp_code rp_dump_warn(struct rp_dump_environment *e, struct rp_err *err, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return rp_vec_push(&e->warnings, rp_arena_text(e->arena, text), err);
}

/* ---- variables ---- */

static enum rp_code put_variable(struct rp_dump_environment *e, const char *name, const char *value,
                                 const char *why, struct rp_err *err)
{
    const char *was = getenv(name);
    struct rp_dump_variable v = {.name = name,
                                 .value = rp_arena_text(e->arena, value),
                                 .was = was && *was ? rp_arena_text(e->arena, was) : NULL,
                                 .why = why};

    return rp_vec_push(&e->variables, v, err);
}

enum rp_code rp_dump_set(struct rp_dump_environment *e, const char *name, const char *value,
                         const char *why, struct rp_err *err)
{
    const char *was = getenv(name);

    if (was && *was && strcmp(was, value) != 0)
        RP_TRY(rp_dump_warn(e, err, "%s: '%s' instead of your '%s'", name, value, was));
    return put_variable(e, name, value, why, err);
}

enum rp_code rp_dump_offer(struct rp_dump_environment *e, const char *name, const char *value,
                           const char *why, struct rp_err *err)
{
    const char *was = getenv(name);

    return was && *was ? RP_OK : put_variable(e, name, value, why, err);
}

/* ---- reading the user's flags ---- */

typedef RP_VEC(const char *) flag_list;

/* Divides text at blanks; quotes, single or double, hold a part together and are dropped. */
static enum rp_code split_flags(const char *text, struct rp_arena *arena, flag_list *out,
                                struct rp_err *err)
{
    while (*text) {
        char quote = 0;
        size_t n = 0;

        text += strspn(text, " \t\r\n");
        if (!*text)
            break;
        char *flag = rp_arena_copy(arena, text, strlen(text));
        RP_TRY(rp_err_need(flag, err, "reading flags"));
        for (; *text && (quote || !isspace((unsigned char)*text)); text++) {
            if (quote ? *text == quote : *text == '"' || *text == '\'')
                quote = quote ? 0 : *text;
            else
                flag[n++] = *text;
        }
        flag[n] = '\0';
        RP_TRY(rp_vec_push(out, flag, err));
    }
    return RP_OK;
}

/* A value that does not begin with a dash is the name of a file of flags. */
static enum rp_code read_flag_file(struct rp_dump_environment *e, const char *variable,
                                   const char *path, flag_list *out, struct rp_err *err)
{
    FILE *f = fopen(path, "re");
    char *text = f ? calloc(1, FLAG_FILE_MOST + 1) : NULL;
    enum rp_code code = RP_OK;

    if (!text) {
        code = rp_dump_warn(e, err,
                            "%s names the file '%s', which cannot be read: its flags are left out",
                            variable, path);
    } else {
        (void)!fread(text, 1, FLAG_FILE_MOST, f);
        code = split_flags(text, e->arena, out, err);
    }
    free(text);
    if (f)
        fclose(f);
    return code;
}

static enum rp_code users_flags(struct rp_dump_environment *e, const char *variable, flag_list *out,
                                struct rp_err *err)
{
    const char *text = getenv(variable);

    text = text ? text + strspn(text, " \t\r\n") : "";
    if (!*text)
        return RP_OK;
    return *text == '-' ? split_flags(text, e->arena, out, err)
                        : read_flag_file(e, variable, text, out, err);
}

/* ---- judging a flag ---- */

/* Whether every XLA that was found accepts it. If the table cannot tell, their libraries are
   searched for the name; if there is no library, `unsure` is set. */
static bool is_accepted(const struct rp_dump_environment *e, const struct rp_flag *flag,
                        const char *name, bool unsure)
{
    const struct rp_frameworks *f = e->frameworks;
    bool any = false, accepted = true;

    for (size_t i = 0; i < RP_USES_COUNT && accepted; i++) {
        const struct rp_framework_found *of = &f->of[i];

        if (!of->present || (i != RP_USES_JAX && i != RP_USES_TENSORFLOW && i != RP_USES_TORCH_XLA))
            continue;
        any = true;
        enum rp_flag_known known = flag ? rp_flag_known_to(flag, of->xla) : RP_FLAG_UNSURE;
        if (known == RP_FLAG_UNSURE)
            accepted = of->library ? rp_file_has_name(of->library, name) : flag ? unsure : false;
        else
            accepted = known == RP_FLAG_KNOWN;
    }
    if (any)
        return accepted;
    if (!flag)
        return false;
    return rp_flag_known_to(flag, 0) == RP_FLAG_KNOWN || unsure;
}

static const char *why_unknown(const struct rp_dump_environment *e, const struct rp_flag *flag,
                               enum rp_flag_kind kind, const char *name)
{
    if (flag && flag->caution && strstr(flag->caution, "removed"))
        return flag->caution;
    if (flag && flag->kind == kind)
        return "this version does not know it";
    if (kind == RP_FLAG_XLA && !strncmp(name, "xla_tpu_", 8))
        return "flags of the TPU compiler belong in LIBTPU_INIT_ARGS";
    if (flag)
        return rp_arena_textf(e->arena, "it is a flag of %s",
                              flag->kind == RP_FLAG_TF ? "TF_XLA_FLAGS" : "XLA_FLAGS");
    const char *nearest = rp_flag_nearest(kind, name);
    return *nearest ? rp_arena_textf(e->arena, "unknown; did you mean '--%s'?", nearest)
                    : "unknown";
}

/* Why a flag cannot be passed on; NULL if it can. */
static const char *refusal_of(const struct rp_dump_environment *e, enum rp_flag_kind kind,
                              const char *text)
{
    const char *name = text + strspn(text, "-");
    size_t len = strcspn(name, "=");
    const char *bare = rp_arena_textf(e->arena, "%.*s", (int)len, name);
    const struct rp_flag *flag = rp_flag_find(name, len);

    if (*text != '-')
        return "not a flag: flags begin with '--'";
    if (kind == RP_FLAG_TF
            ? !flag || flag->kind != RP_FLAG_TF
            : !is_accepted(e, flag && flag->kind == RP_FLAG_XLA ? flag : NULL, bare, true))
        return why_unknown(e, flag, kind, bare);
    if (flag && !name[len] && flag->type != RP_FLAG_BOOL)
        return "it needs a value";
    if (flag && name[len] && !rp_flag_takes(flag, name + len + 1, strlen(name + len + 1)))
        return flag->type == RP_FLAG_BOOL ? "its value must be true or false"
                                          : "its value must be a number";
    return NULL;
}

/* ---- merging ---- */

static const struct rp_dump_flag *same_of(const struct rp_dump_flag *ours, size_t n,
                                          const char *text)
{
    const char *name = text + strspn(text, "-");
    size_t len = strcspn(name, "=");

    for (size_t i = 0; i < n; i++)
        if (strlen(ours[i].name) == len && !memcmp(ours[i].name, name, len))
            return &ours[i];
    return NULL;
}

/* Warns of flags of the user's that hide from the dump what `dump run` promises, or that crash. */
static enum rp_code warn_of_harm(struct rp_dump_environment *e, const char *variable,
                                 const char *text, struct rp_err *err)
{
    static const char *const names[] = {"xla_dump_hlo_unoptimized_snapshots",
                                        "xla_dump_hlo_snapshots",
                                        "xla_dump_disable_metadata",
                                        "xla_dump_max_hlo_modules",
                                        "xla_hlo_profile",
                                        "xla_disable_all_hlo_passes"};
    const char *name = text + strspn(text, "-");
    size_t len = strcspn(name, "=");
    const struct rp_flag *flag = rp_flag_find(name, len);

    if (!flag || !flag->caution || !strcmp(name + len, "=false") || !strcmp(name + len, "=0"))
        return RP_OK;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(flag->name, names[i]))
            return rp_dump_warn(e, err, "%s: your '%s' is kept: %s", variable, text, flag->caution);
    return RP_OK;
}

static enum rp_code judge_users(struct rp_dump_environment *e, const char *variable,
                                enum rp_flag_kind kind, const flag_list *users,
                                const struct rp_dump_flag *ours, size_t n, bool *beaten,
                                flag_list *out, struct rp_err *err)
{
    for (size_t i = 0; i < users->n; i++) {
        const char *text = users->at[i], *refusal = refusal_of(e, kind, text);
        const struct rp_dump_flag *same = same_of(ours, n, text);

        if (refusal) {
            struct rp_dump_dropped d = {variable, text, refusal};

            RP_TRY(rp_vec_push(&e->dropped, d, err));
            if (!e->keep)
                continue;
        }
        if (same && same->wins) {
            RP_TRY(rp_dump_warn(e, err, "%s: '--%s=%s' instead of your '%s'", variable, same->name,
                                same->value, text));
            continue;
        }
        if (same)
            beaten[same - ours] = true;
        RP_TRY(warn_of_harm(e, variable, text, err));
        RP_TRY(rp_vec_push(out, text, err));
    }
    return RP_OK;
}

/* Flags are quoted if they contain blanks. */
static const char *join_flags(struct rp_arena *arena, const flag_list *list)
{
    const char *all = "";

    for (size_t i = 0; i < list->n; i++) {
        const char *quote = !strpbrk(list->at[i], " \t") ? ""
                            : strchr(list->at[i], '"')   ? "'"
                                                         : "\"";

        all = rp_arena_textf(arena, "%s%s%s%s%s", all, i ? " " : "", quote, list->at[i], quote);
    }
    return all;
}

static void flags_release(flag_list *list)
{
    rp_vec_release(list);
}

enum rp_code rp_dump_flags_merge(struct rp_dump_environment *e, const char *variable,
                                 enum rp_flag_kind kind, const struct rp_dump_flag *ours, size_t n,
                                 const char *why, struct rp_err *err)
{
    bool *beaten = RP_ARENA_NEW(e->arena, bool, n + 1);
    RP_SCOPED(flags_release) flag_list users = {0}, all = {0};

    RP_TRY(rp_err_need(beaten, err, "merging flags"));
    RP_TRY(users_flags(e, variable, &users, err));
    RP_TRY(judge_users(e, variable, kind, &users, ours, n, beaten, &all, err));
    for (size_t i = 0; i < n; i++) {
        const struct rp_flag *flag = rp_flag_find(ours[i].name, strlen(ours[i].name));

        if (beaten[i])
            continue;
        if (kind == RP_FLAG_XLA && !is_accepted(e, flag, ours[i].name, false))
            RP_TRY(rp_dump_warn(e, err, "this XLA does not know '--%s': it is left out",
                                ours[i].name));
        else
            RP_TRY(rp_vec_push(
                &all, rp_arena_textf(e->arena, "--%s=%s", ours[i].name, ours[i].value), err));
    }
    return put_variable(e, variable, join_flags(e->arena, &all), why, err);
}
