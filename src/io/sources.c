/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing sources. Each path is walked (sources_walk.c) to a list of files; each file is opened
 * once to look at its first block, and a tar is gone through to list its members. Regular files are
 * closed again, so a folder of ten thousand files does not need as many descriptors; inputs that
 * can be read only once (pipes, standard input) stay open and are handed to the first caller who
 * opens them.
 */
#include "io/sources.h"

#include "base/arena.h"
#include "base/order.h"
#include "base/vec.h"
#include "io/sources_walk.h"
#include "io/tar.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* How a source is opened: by path (if all others are NULL), once, bytes or failure. */
struct entry {
    struct rp_source source;
    _Atomic(struct rp_input *) *once; /* an open input that is to be handed out */
    const uint8_t *bytes;             /* a member of a tar */
    size_t n;
    size_t place;                   /* its number in the order of adding */
    uint8_t *held;                  /* the bytes, if they are to be freed */
    const struct rp_err *failure;   /* why a tar could not be read to its end */
    const struct rp_beside *beside; /* for a CTF trace: the files of its folder */
    size_t nbeside;
    bool folded;  /* it is one of these */
    bool excerpt; /* an excerpt of a profile that is there too, and so not listed */
};

struct rp_sources {
    struct rp_limits limits;
    struct rp_arena arena; /* names, failures */
    RP_VEC(struct entry) list;
    RP_VEC(struct rp_hole) holes;
    RP_VEC(struct rp_input *) mapped; /* plain tars whose members are slices */
    RP_VEC(uint8_t *) aside;          /* bytes held for the files of folded folders */
};

/* ---- natural order ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Compares two runs of digits by value and steps over them. */
static int compare_runs(const char **a, const char **b)
{
    size_t na, nb;

    while (**a == '0')
        ++*a;
    while (**b == '0')
        ++*b;
    for (na = 0; is_digit((*a)[na]);)
        na++;
    for (nb = 0; is_digit((*b)[nb]);)
        nb++;
    int order = na != nb ? (na < nb ? -1 : 1) : memcmp(*a, *b, na);
    *a += na;
    *b += nb;
    return order;
}

/* '/' comes first, so that a folder's files stay together. */
static int rank_of(char c)
{
    return c == '\0' ? 0 : c == '/' ? 1 : 2 + (unsigned char)c;
}

int rp_natural_compare(const char *a, const char *b)
{
    const char *x = a, *y = b;

    while (*x || *y) {
        int order;

        if (is_digit(*x) && is_digit(*y)) {
            order = compare_runs(&x, &y);
        } else {
            order = rank_of(*x) - rank_of(*y);
            x += *x != '\0';
            y += *y != '\0';
        }
        if (order)
            return order;
    }
    return strcmp(a, b); /* "07" and "7" */
}

/* ---- adding to the list ---- */

static enum rp_code sources_nomem(struct rp_err *err)
{
    return rp_err_nomem(err, "listing the inputs");
}

/* Adds an entry with its names; member may be NULL. It is valid until the next one is added. */
static enum rp_code add_source(struct rp_sources *s, const struct rp_source *like,
                               const char *member, struct entry **out, struct rp_err *err)
{
    struct entry e = {.source = *like, .place = s->list.n};
    bool standard = strcmp(like->path, "-") == 0;
    const char *shown = standard ? "(standard input)" : like->path;

    if (s->list.n >= s->limits.members)
        return rp_err_set(err, RP_LIMIT, "more than %llu files to read (limit members), at '%s'",
                          (unsigned long long)s->limits.members, shown);
    if (like->is_folder && strrchr(shown, '/'))
        shown = rp_arena_copy(&s->arena, shown, (size_t)(strrchr(shown, '/') - shown));
    if (!shown)
        return sources_nomem(err);
    e.source.path = rp_arena_strdup(&s->arena, like->path);
    e.source.name = member ? rp_arena_printf(&s->arena, "%s!%s", shown, member)
                           : rp_arena_strdup(&s->arena, shown);
    e.source.member = member && e.source.name ? e.source.name + strlen(shown) + 1 : NULL;
    if (!e.source.path || !e.source.name)
        return sources_nomem(err);
    RP_TRY(rp_vec_push(&s->list, e, err));
    *out = &s->list.at[s->list.n - 1];
    return RP_OK;
}

/* Adds an entry for the end of a tar that failed: it gives the error when it is its turn. */
static enum rp_code add_failure(struct rp_sources *s, const struct rp_source *like,
                                const struct rp_err *failure, struct rp_err *err)
{
    struct rp_err *kept = RP_ARENA_NEW(&s->arena, struct rp_err, 1);
    struct entry *e;

    if (!kept)
        return sources_nomem(err);
    *kept = *failure;
    RP_TRY(add_source(s, like, NULL, &e, err));
    e->failure = kept;
    return RP_OK;
}

static enum rp_code add_member(struct rp_sources *s, const struct rp_source *like,
                               struct rp_tar *tar, const struct rp_tar_member *m,
                               struct rp_err *err)
{
    struct rp_source from = *like;
    struct entry *e;

    from.found = true;
    from.truncated = m->truncated;
    RP_TRY(add_source(s, &from, m->name, &e, err));
    e->bytes = m->bytes;
    e->n = m->n;
    e->held = m->held ? rp_tar_keep(tar) : NULL;
    return RP_OK;
}

/* Equal names are ordered by their place in the tar, because the last one is valid. */
RP_ORDER(by_member, struct entry, rp_natural_compare(a->source.member, b->source.member),
         RP_UP(place))

static bool has_member(const struct rp_sources *s, size_t first, const char *name)
{
    size_t n = s->list.n - first, i;

    RP_LOWER_BOUND(i, n, rp_natural_compare(s->list.at[first + i].source.member, name) < 0);
    return i < n && !strcmp(s->list.at[first + i].source.member, name);
}

/* Drops excerpts of profiles that are there too. The members are in order, and stay so. */
static void drop_excerpts(struct rp_sources *s, size_t first)
{
    size_t kept = first;
    char whole[512];

    for (size_t i = first; i < s->list.n; i++)
        s->list.at[i].excerpt = rp_excerpt_of(s->list.at[i].source.member, whole, sizeof whole) &&
                                has_member(s, first, whole);
    for (size_t i = first; i < s->list.n; i++) {
        if (s->list.at[i].excerpt)
            free(s->list.at[i].held);
        else
            s->list.at[kept++] = s->list.at[i];
    }
    s->list.n = kept;
}

/* ---- CTF traces in a tar: the description stands for its folder ---- */

static bool describes(const struct entry *e, size_t *folder_n)
{
    const char *slash = strrchr(e->source.member, '/');
    const char *base = slash ? slash + 1 : e->source.member;

    *folder_n = (size_t)(base - e->source.member);
    return strcmp(base, "metadata") == 0 && rp_describes_ctf(e->bytes, e->n);
}

/* Returns the name within the folder of a file right in it or in its index; otherwise NULL. */
static const char *name_within(const struct entry *e, const char *folder, size_t n)
{
    const char *name = e->source.member + n;

    if (strncmp(e->source.member, folder, n) != 0)
        return NULL;
    return !strchr(name, '/') || strncmp(name, "index/", 6) == 0 ? name : NULL;
}

/* Folds the neighbours of entry i; members are in order, so those of its folder are too. */
static enum rp_code fold_folder(struct rp_sources *s, size_t first, size_t i, size_t n,
                                struct rp_err *err)
{
    struct entry *at = s->list.at, *e = &at[i];
    const char *folder = e->source.member;
    size_t from = i, to = i;

    while (from > first && strncmp(at[from - 1].source.member, folder, n) == 0)
        from--;
    while (to < s->list.n && strncmp(at[to].source.member, folder, n) == 0)
        to++;
    struct rp_beside *files = RP_ARENA_NEW(&s->arena, struct rp_beside, to - from);
    e->source.name = rp_arena_copy(&s->arena, e->source.name, strlen(e->source.name) - 9);
    if (!files || !e->source.name)
        return sources_nomem(err);
    e->beside = files;
    for (size_t k = from; k < to; k++) {
        const char *name = k == i ? NULL : name_within(&at[k], folder, n);

        if (!name)
            continue;
        files[e->nbeside++] = (struct rp_beside){name, at[k].bytes, at[k].n};
        at[k].folded = true;
        e->source.truncated |= at[k].source.truncated;
    }
    return RP_OK;
}

static enum rp_code fold_traces(struct rp_sources *s, size_t first, struct rp_err *err)
{
    size_t kept = first, n;

    for (size_t i = first; i < s->list.n; i++)
        if (describes(&s->list.at[i], &n))
            RP_TRY(fold_folder(s, first, i, n, err));
    for (size_t i = first; i < s->list.n; i++) {
        if (!s->list.at[i].folded)
            s->list.at[kept++] = s->list.at[i];
        else if (s->list.at[i].held)
            RP_TRY(rp_vec_push(&s->aside, s->list.at[i].held, err));
    }
    s->list.n = kept;
    return RP_OK;
}

/*
 * Lists a tar's members. `in` is kept if they are slices of it. If it fails on the way, the members
 * so far are kept, and the failure becomes the last entry.
 */
static enum rp_code add_tar(struct rp_sources *s, const struct rp_source *like, struct rp_input *in,
                            bool *keep_in, struct rp_err *err)
{
    size_t first = s->list.n, whole_n;
    struct rp_tar_member m = {0};
    struct rp_err failure;
    struct rp_tar *tar;
    enum rp_code code, added = RP_OK;

    RP_TRY(rp_tar_open(in, &s->limits, &tar, err));
    do {
        code = rp_tar_next(tar, &m, &failure);
        if (code == RP_OK && m.name)
            added = add_member(s, like, tar, &m, err);
    } while (code == RP_OK && m.name && added == RP_OK);
    if (rp_tar_truncated(tar) && s->list.n > first)
        s->list.at[s->list.n - 1].source.truncated = true;
    rp_tar_close(tar);

    /* Sorts the members from `first` on; of several with one name the last counts, as in tar
     * itself. */
    struct entry *at = s->list.at + first;
    size_t n = s->list.n - first, kept = 0;
    if (n != 0) {
        qsort(at, n, sizeof *at, by_member);
        for (size_t i = 1; i < n; i++) {
            if (strcmp(at[kept].source.member, at[i].source.member) == 0)
                free(at[kept].held);
            else
                kept++;
            at[kept] = at[i];
        }
        s->list.n = first + kept + 1;
    }
    drop_excerpts(s, first);
    if (added == RP_OK)
        added = fold_traces(s, first, err);
    *keep_in = rp_input_borrow_mapped(in, &whole_n) != NULL;
    if (added != RP_OK)
        return added;
    return code == RP_OK ? RP_OK : add_failure(s, like, &failure, err);
}

/* ---- parts that somebody else found ---- */

enum rp_code rp_sources_add_part(struct rp_sources *sources, size_t i, const char *member,
                                 uint8_t *bytes, size_t n, struct rp_err *err)
{
    struct rp_source like = sources->list.at[i].source;
    struct entry *e;

    like.found = true;
    if (like.member) /* of a tar */
        member = rp_arena_printf(&sources->arena, "%s!%s", like.member, member);
    enum rp_code code = member ? add_source(sources, &like, member, &e, err) : sources_nomem(err);
    if (code != RP_OK) {
        free(bytes);
        return code;
    }
    e->bytes = e->held = bytes;
    e->n = n;
    return RP_OK;
}

RP_ORDER(by_given, struct entry, RP_UP(source.given), RP_UP(place))

void rp_sources_settle(struct rp_sources *sources, const bool *remove, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < sources->list.n; i++) {
        struct entry *e = &sources->list.at[i];

        if (i >= n || !remove[i]) {
            e->place = kept;
            sources->list.at[kept++] = *e;
            continue;
        }
        free(e->held);
        if (e->once)
            rp_input_close(atomic_load(e->once));
    }
    sources->list.n = kept;
    rp_sort(sources->list.at, kept, sizeof *sources->list.at, by_given);
}

/* ---- one file ---- */

/* An input that can be read once waits in its entry until somebody opens it. */
static enum rp_code add_once(struct rp_sources *s, const struct rp_source *like,
                             struct rp_input *in, struct rp_err *err)
{
    struct entry *e;
    _Atomic(struct rp_input *) *slot =
        rp_arena_alloc(&s->arena, sizeof *slot, _Alignof(_Atomic(struct rp_input *)));

    if (!slot)
        return sources_nomem(err);
    RP_TRY(add_source(s, like, NULL, &e, err));
    atomic_init(slot, in);
    e->once = slot;
    return RP_OK;
}

/* Takes the open input, which is kept or closed. */
static enum rp_code add_opened(struct rp_sources *s, const struct rp_source *like,
                               struct rp_input *in, bool again, struct rp_err *err)
{
    const uint8_t *head = NULL;
    struct entry *e;
    bool keep = false;
    size_t n = 0;
    enum rp_code code = rp_input_peek(in, RP_TAR_BLOCK, &head, &n, err);

    if (code == RP_OK && rp_tar_matches(head, n)) {
        code = rp_vec_reserve(&s->mapped, 1, err);
        if (code == RP_OK)
            code = add_tar(s, like, in, &keep, err);
        if (keep)
            s->mapped.at[s->mapped.n++] = in;
    } else if (code == RP_OK && !again) {
        code = add_once(s, like, in, err);
        keep = code == RP_OK;
    } else if (code == RP_OK) {
        code = add_source(s, like, NULL, &e, err);
    }
    if (!keep)
        rp_input_close(in);
    return code;
}

static enum rp_code add_file(struct rp_sources *s, const struct rp_source *like, bool again,
                             struct rp_err *err)
{
    struct rp_err failure = RP_ERR_INIT;
    struct rp_input *in;
    enum rp_code code = rp_input_open(like->path, &s->limits, &in, &failure);

    if (code == RP_OK)
        return add_opened(s, like, in, again, err);
    if (like->found && code != RP_NOMEM)
        return add_failure(s, like, &failure, err);
    if (err)
        *err = failure;
    return code;
}

/* ---- folders ---- */

static enum rp_code add_holes(struct rp_sources *s, const struct rp_walk *walk, size_t given,
                              struct rp_err *err)
{
    for (size_t i = 0; i < walk->holes.n; i++) {
        const struct rp_walk_hole *hole = &walk->holes.at[i];
        struct rp_hole kept = {rp_arena_strdup(&s->arena, hole->path),
                               hole->error == ENOENT || hole->error == ELOOP
                                   ? RP_HOLE_LINK
                                   : rp_arena_strdup(&s->arena, strerror(hole->error)),
                               given};

        if (!kept.path || !kept.reason)
            return sources_nomem(err);
        RP_TRY(rp_vec_push(&s->holes, kept, err));
    }
    return RP_OK;
}

static enum rp_code add_path(struct rp_sources *s, const char *path, size_t given,
                             struct rp_err *err)
{
    struct rp_source like = {.path = path, .given = given};
    struct rp_walk walk = {0};
    enum rp_code code;

    switch (rp_file_kind(path)) {
    case RP_FILE_FOLDER:
        like.found = true;
        code = rp_walk_folder(path, &s->limits, &walk, err);
        for (size_t i = 0; code == RP_OK && i < walk.files.n; i++) {
            like.path = walk.files.at[i].path;
            like.is_folder = walk.files.at[i].stands_for_folder;
            code = add_file(s, &like, true, err);
        }
        if (code == RP_OK)
            code = add_holes(s, &walk, given, err);
        rp_walk_release(&walk);
        return code;
    case RP_FILE_REGULAR:
        return add_file(s, &like, true, err);
    default: /* it can be read only once, or is missing, which shows when it is opened */
        return add_file(s, &like, false, err);
    }
}

enum rp_code rp_sources_open(const char *const *paths, size_t n, const struct rp_limits *limits,
                             struct rp_sources **out, struct rp_err *err)
{
    struct rp_sources *s = calloc(1, sizeof *s);
    enum rp_code code = RP_OK;

    *out = NULL;
    if (!s)
        return sources_nomem(err);
    s->limits = limits ? *limits : RP_LIMITS_DEFAULT;
    for (size_t i = 0; code == RP_OK && i < n; i++)
        code = add_path(s, paths[i], i, err);
    if (code != RP_OK) {
        rp_sources_close(s);
        return code;
    }
    *out = s;
    return RP_OK;
}

void rp_sources_close(struct rp_sources *sources)
{
    if (!sources)
        return;
    for (size_t i = 0; i < sources->list.n; i++) {
        free(sources->list.at[i].held);
        if (sources->list.at[i].once)
            rp_input_close(atomic_load(sources->list.at[i].once));
    }
    for (size_t i = 0; i < sources->mapped.n; i++)
        rp_input_close(sources->mapped.at[i]);
    rp_vec_release(&sources->list);
    rp_vec_release(&sources->holes);
    for (size_t i = 0; i < sources->aside.n; i++)
        free(sources->aside.at[i]);
    rp_vec_release(&sources->mapped);
    rp_vec_release(&sources->aside);
    rp_arena_release(&sources->arena);
    free(sources);
}

size_t rp_sources_count(const struct rp_sources *sources)
{
    return sources->list.n;
}

const struct rp_source *rp_sources_borrow(const struct rp_sources *sources, size_t i)
{
    return &sources->list.at[i].source;
}

const struct rp_hole *rp_sources_borrow_holes(const struct rp_sources *sources, size_t *n)
{
    *n = sources->holes.n;
    return sources->holes.at;
}

enum rp_code rp_source_open(struct rp_sources *sources, size_t i, struct rp_input **out,
                            struct rp_err *err)
{
    const struct entry *e = &sources->list.at[i];

    *out = NULL;
    if (e->failure) {
        if (err)
            *err = *e->failure;
        return e->failure->code;
    }
    if (e->source.member) {
        RP_TRY(rp_input_open_memory(e->source.name, e->bytes, e->n, &sources->limits, out, err));
        rp_input_set_beside(*out, e->beside, e->nbeside);
        return RP_OK;
    }
    if (!e->once)
        return rp_input_open(e->source.path, &sources->limits, out, err);
    *out = atomic_exchange(e->once, NULL);
    return *out ? RP_OK : rp_err_set(err, RP_USAGE, "'%s' can be read only once", e->source.name);
}

void rp_source_return(struct rp_sources *sources, size_t i, struct rp_input *in)
{
    const struct entry *e = &sources->list.at[i];

    if (e->once)
        in = atomic_exchange(e->once, in);
    rp_input_close(in);
}
