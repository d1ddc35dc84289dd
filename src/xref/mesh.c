/* SPDX-License-Identifier: Apache-2.0 */
/* Finds meshes of devices, and along which of their axes a collective runs. */
#include "xref/mesh.h"

#include <ctype.h>
#include <string.h>

#define DEVICES_MOST (1 << 20)
#define MESHES_MOST  16

/* ---- reading ---- */

struct scan {
    const char *at, *end;
};

static void skip_space(struct scan *s)
{
    while (s->at < s->end && (isspace((unsigned char)*s->at) || *s->at == '\\'))
        s->at++;
}

/* Also accepts escaped quotes: \"data\". */
static bool take(struct scan *s, char c)
{
    skip_space(s);
    if (s->at == s->end || *s->at != c)
        return false;
    s->at++;
    return true;
}

static bool take_number(struct scan *s, int64_t *out)
{
    skip_space(s);
    const char *begin = s->at;
    for (*out = 0; s->at < s->end && isdigit((unsigned char)*s->at) && *out <= DEVICES_MOST;)
        *out = *out * 10 + (*s->at++ - '0');
    return s->at > begin && *out <= DEVICES_MOST;
}

/* Reads "data"=4; axes of size 1 are left out, because nothing runs along them. */
static bool take_axis(struct scan *s, struct rp_mesh *mesh, struct rp_arena *arena)
{
    const char *name;
    int64_t size;

    if (!take(s, '"'))
        return false;
    for (name = s->at; s->at < s->end && *s->at != '"' && *s->at != '\\';)
        s->at++;
    size_t n = (size_t)(s->at - name);
    if (!take(s, '"') || !take(s, '=') || !take_number(s, &size) || size < 1)
        return false;
    if (size == 1)
        return true;
    if (mesh->naxes == RP_MESH_AXES || mesh->ndevices > DEVICES_MOST / size)
        return false;
    mesh->names[mesh->naxes] = rp_arena_textf(arena, "%.*s", (int)n, name);
    mesh->sizes[mesh->naxes++] = size;
    mesh->ndevices *= size;
    return true;
}

/* Reads the text behind "sdy.mesh": [" @name = "]<["data"=4, "model"=2], device_ids=[…]> */
static bool take_mesh(struct scan *s, struct rp_mesh *mesh, struct rp_arena *arena)
{
    static const char word[] = "device_ids";

    *mesh = (struct rp_mesh){.ndevices = 1};
    skip_space(s);
    if (s->at < s->end && *s->at == '@')
        while (s->at < s->end && *s->at != '<' && *s->at != '\n')
            s->at++;
    if (!take(s, '<') || !take(s, '['))
        return false;
    do
        if (!take_axis(s, mesh, arena))
            return false;
    while (take(s, ','));
    if (!take(s, ']') || !mesh->naxes)
        return false;
    if (!take(s, ','))
        return true;
    skip_space(s);
    if ((size_t)(s->end - s->at) < sizeof word || memcmp(s->at, word, sizeof word - 1) != 0)
        return false;
    s->at += sizeof word - 1;

    /* Reads device_ids=[0, 2, 1, 3], each once. */
    size_t n = (size_t)mesh->ndevices;
    int64_t *devices = RP_ARENA_NEW(arena, int64_t, n);
    mesh->positions = RP_ARENA_NEW(arena, int64_t, n);
    if (!devices || !mesh->positions || !take(s, '='))
        return false;
    memset(mesh->positions, 0xff, n * sizeof *mesh->positions);
    for (size_t i = 0; i < n; i++) {
        if (!take(s, i ? ',' : '[') || !take_number(s, &devices[i]) || devices[i] >= (int64_t)n ||
            mesh->positions[devices[i]] >= 0)
            return false;
        mesh->positions[devices[i]] = (int64_t)i;
    }
    mesh->devices = devices;
    return take(s, ']');
}

static bool is_same(const struct rp_mesh *a, const struct rp_mesh *b)
{
    if (a->naxes != b->naxes || !a->devices != !b->devices || a->ndevices != b->ndevices)
        return false;
    for (size_t i = 0; i < a->naxes; i++)
        if (a->sizes[i] != b->sizes[i] || strcmp(a->names[i], b->names[i]) != 0)
            return false;
    return !a->devices || !memcmp(a->devices, b->devices, (size_t)a->ndevices * sizeof *a->devices);
}

void rp_meshes_find(struct rp_meshes *meshes, const char *text, size_t n, struct rp_arena *arena)
{
    static const char word[] = "sdy.mesh";
    struct scan s = {text, text + n};

    if (!meshes->at)
        meshes->at = RP_ARENA_NEW(arena, struct rp_mesh, MESHES_MOST);
    while (meshes->at && meshes->n < MESHES_MOST &&
           (s.at = memmem(s.at, (size_t)(s.end - s.at), word, sizeof word - 1))) {
        struct rp_mesh mesh;
        bool known = false;

        s.at += sizeof word - 1;
        if (!take_mesh(&s, &mesh, arena))
            continue;
        for (size_t i = 0; i < meshes->n; i++)
            known |= is_same(&meshes->at[i], &mesh);
        if (!known)
            meshes->at[meshes->n++] = mesh;
    }
}

void rp_meshes_of_program(struct rp_meshes *meshes, const struct rp_program *p,
                          struct rp_arena *arena)
{
    for (size_t i = 0; i < p->module_attrs.n; i++)
        if (p->module_attrs.at[i].key == RP_ATTR_FRONTEND_ATTRIBUTES) {
            const char *text = rp_attr_text(p, &p->module_attrs.at[i], arena);

            rp_meshes_find(meshes, text, strlen(text), arena);
        }
}

/* ---- groups ---- */

/* Returns device i of an iota: 0, 1, … as an array of dims, transposed by perm. */
static int64_t iota_device(const struct rp_replica_groups *g, int64_t i)
{
    int64_t device = 0, strides[16];

    if (!g->dims.n || g->dims.n > 16)
        return i;
    strides[g->dims.n - 1] = 1;
    for (size_t d = g->dims.n - 1; d > 0; d--)
        if (__builtin_mul_overflow(strides[d], g->dims.at[d], &strides[d - 1]))
            return i;
    for (size_t d = g->dims.n; d-- > 0;) {
        size_t from =
            g->perm.n == g->dims.n && g->perm.at[d] >= 0 && g->perm.at[d] < (int64_t)g->dims.n
                ? (size_t)g->perm.at[d]
                : d;
        int64_t size = g->dims.at[from] > 0 ? g->dims.at[from] : 1;

        device += i % size * strides[from];
        i /= size;
    }
    return device;
}

struct expanded {
    int64_t n;      /* number of devices */
    int64_t *group; /* by device: the number of its group; -1 if it is in none */
};

static bool expand_new(struct expanded *e, int64_t n, struct rp_arena *arena)
{
    e->n = n;
    e->group = n > 0 && n <= DEVICES_MOST ? RP_ARENA_NEW(arena, int64_t, (size_t)n) : NULL;
    if (e->group)
        memset(e->group, 0xff, (size_t)n * sizeof *e->group);
    return e->group;
}

static bool expand_put(struct expanded *e, int64_t device, int64_t group)
{
    if (device < 0 || device >= e->n)
        return false;
    e->group[device] = group;
    return true;
}

static bool expand_listed(const struct rp_replica_groups *g, struct rp_arena *arena,
                          struct expanded *e, struct rp_device_groups *out)
{
    int64_t most = -1;

    for (size_t i = 0; i < g->ids.n; i++)
        most = g->ids.at[i] > most ? g->ids.at[i] : most;
    out->groups = (int64_t)g->ngroups;
    out->size = g->ngroups ? (int64_t)g->begin[1] - (int64_t)g->begin[0] : 0;
    if (most >= DEVICES_MOST || !expand_new(e, most + 1, arena))
        return false;
    for (size_t i = 0; i < g->ngroups; i++)
        for (uint32_t k = g->begin[i]; k < g->begin[i + 1]; k++)
            if (!expand_put(e, g->ids.at[k], (int64_t)i))
                return false;
    return true;
}

static bool expand_iota(const struct rp_replica_groups *g, struct rp_arena *arena,
                        struct expanded *e, struct rp_device_groups *out)
{
    int64_t n;

    out->groups = (int64_t)g->ngroups;
    out->size = g->group_size;
    if (__builtin_mul_overflow(out->groups, out->size, &n) || !expand_new(e, n, arena))
        return false;
    for (int64_t i = 0; i < n; i++)
        if (!expand_put(e, iota_device(g, i), i / out->size))
            return false;
    return true;
}

/* Moves a position of a mesh to the first of its group, whose digits of the parts are 0. */
static int64_t group_begin(const struct rp_replica_groups *g, int64_t position)
{
    int64_t stride = 1, begin = position;

    for (size_t axis = g->naxes; axis-- > 0; stride *= g->axes[axis].size)
        for (size_t i = 0; i < g->nparts; i++) {
            const struct rp_mesh_part *part = &g->parts[i];
            int64_t all = g->axes[axis].size, size = part->size ? part->size : all;
            int64_t before = part->size && part->before > 0 ? part->before : 1;

            if (part->axis != axis || size < 1 || before > all / size)
                continue;
            int64_t rest = all / (before * size);
            begin -= position / stride % all / rest % size * rest * stride;
        }
    return begin;
}

static bool expand_mesh(const struct rp_replica_groups *g, struct rp_arena *arena,
                        struct expanded *e, struct rp_device_groups *out)
{
    int64_t n = 1;

    out->size = 1;
    for (size_t i = 0; i < g->nparts; i++) {
        const struct rp_mesh_part *part = &g->parts[i];
        int64_t size = part->size              ? part->size
                       : part->axis < g->naxes ? g->axes[part->axis].size
                                               : 1;

        if (__builtin_mul_overflow(out->size, size, &out->size))
            out->size = INT64_MAX;
    }
    for (size_t i = 0; i < g->naxes; i++)
        if (g->axes[i].size < 1 || __builtin_mul_overflow(n, g->axes[i].size, &n))
            return false;
    out->groups = out->size > 0 ? n / out->size : 0;
    if (!expand_new(e, n, arena))
        return false;
    for (int64_t i = 0; i < n; i++)
        if (!expand_put(e, g->ids.n == (size_t)n ? g->ids.at[i] : iota_device(g, i),
                        group_begin(g, i)))
            return false;
    return true;
}

/* Returns that of the group of the lowest device. */
static int64_t stride_of(const struct expanded *e)
{
    int64_t first = -1, last = -1, stride = -1;

    for (int64_t d = 0; d < e->n; d++) {
        if (e->group[d] < 0 || (first >= 0 && e->group[d] != e->group[first]))
            continue;
        if (first < 0)
            first = d;
        else if (stride < 0)
            stride = d - last;
        else if (d - last != stride)
            return 0;
        last = d;
    }
    return stride < 0 ? 1 : stride;
}

/* ---- axes ---- */

static int64_t device_at(const struct rp_mesh *mesh, int64_t position)
{
    return mesh->devices ? mesh->devices[position] : position;
}

/* Returns the position with the coordinates along the axes of the mask set to 0. */
static int64_t without_axes(const struct rp_mesh *mesh, int64_t position, unsigned mask)
{
    int64_t out = 0, stride = 1;

    for (size_t axis = mesh->naxes; axis-- > 0; stride *= mesh->sizes[axis])
        if (!(mask >> axis & 1))
            out += position / stride % mesh->sizes[axis] * stride;
    return out;
}

static bool runs_along(const struct rp_mesh *mesh, unsigned mask, const struct expanded *e,
                       int64_t group_size)
{
    int64_t size = 1;

    for (size_t axis = 0; axis < mesh->naxes; axis++)
        size *= mask >> axis & 1 ? mesh->sizes[axis] : 1;
    if (size != group_size)
        return false;
    for (int64_t i = 0; i < mesh->ndevices; i++) {
        int64_t group = e->group[device_at(mesh, i)];

        if (group < 0 || group != e->group[device_at(mesh, without_axes(mesh, i, mask))])
            return false;
    }
    return true;
}

static const char *axes_text(const struct rp_mesh *mesh, unsigned mask, struct rp_arena *arena)
{
    const char *text = "";

    for (size_t axis = 0; axis < mesh->naxes; axis++)
        if (mask >> axis & 1)
            text = rp_arena_textf(arena, "%s%s%s", text, *text ? "," : "", mesh->names[axis]);
    return *text ? text : NULL;
}

static const char *find_axis(const struct rp_meshes *meshes, const struct expanded *e,
                             int64_t group_size, struct rp_arena *arena)
{
    for (size_t i = 0; i < meshes->n; i++) {
        const struct rp_mesh *mesh = &meshes->at[i];

        for (unsigned mask = 1; mesh->ndevices == e->n && mask < 1U << mesh->naxes; mask++)
            if (runs_along(mesh, mask, e, group_size))
                return axes_text(mesh, mask, arena);
    }
    return NULL;
}

/* Returns the axis of groups that name axes. XLA invents names, "axis_0", for groups that it
   computes itself. */
static const char *own_axis(const struct rp_replica_groups *g, struct rp_arena *arena)
{
    const char *text = "";

    for (size_t i = 0; i < g->nparts; i++) {
        const struct rp_mesh_axis *axis =
            g->parts[i].axis < g->naxes ? &g->axes[g->parts[i].axis] : NULL;

        if (!axis || (axis->name.n > 5 && !memcmp(axis->name.at, "axis_", 5)))
            return NULL;
        if (axis->size > 1)
            text = rp_arena_textf(arena, "%s%s%.*s", text, *text ? "," : "", (int)axis->name.n,
                                  axis->name.at);
    }
    return *text ? text : NULL;
}

void rp_meshes_groups(const struct rp_meshes *meshes, const struct rp_replica_groups *groups,
                      struct rp_arena *arena, struct rp_device_groups *out)
{
    struct expanded e = {0};
    struct rp_arena scratch;

    *out = (struct rp_device_groups){0};
    rp_arena_init(&scratch);
    bool ok = groups->form == RP_GROUPS_MESH   ? expand_mesh(groups, &scratch, &e, out)
              : groups->form == RP_GROUPS_IOTA ? expand_iota(groups, &scratch, &e, out)
                                               : expand_listed(groups, &scratch, &e, out);
    if (ok) {
        out->stride = stride_of(&e);
        out->axis = find_axis(meshes, &e, out->size, arena);
    }
    if (!out->axis && groups->form == RP_GROUPS_MESH)
        out->axis = own_axis(groups, arena);
    rp_arena_release(&scratch);
}

const char *rp_meshes_pairs(const struct rp_meshes *meshes, const int64_t *pairs, size_t npairs,
                            struct rp_arena *arena)
{
    for (size_t m = 0; m < meshes->n; m++) {
        const struct rp_mesh *mesh = &meshes->at[m];
        unsigned mask = 0;
        bool fits = true;

        for (size_t i = 0; i < 2 * npairs; i++)
            fits &= pairs[i] >= 0 && pairs[i] < mesh->ndevices;
        for (size_t i = 0; fits && i < npairs; i++) {
            int64_t from = pairs[2 * i], to = pairs[2 * i + 1];

            from = mesh->positions ? mesh->positions[from] : from;
            to = mesh->positions ? mesh->positions[to] : to;
            for (unsigned axis = 0; axis < mesh->naxes; axis++)
                if (without_axes(mesh, from, ~(1U << axis)) !=
                    without_axes(mesh, to, ~(1U << axis)))
                    mask |= 1U << axis;
        }
        if (fits && mask)
            return axes_text(mesh, mask, arena);
    }
    return NULL;
}
