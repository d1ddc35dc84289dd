/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the blocks of devices, and copies them. */
#include "exec/data/tile.h"

#include <stdlib.h>
#include <string.h>

#define MAX_AXES    16
#define MAX_TEXT    4096
#define MAX_DEVICES 65536

/* ---- shardings of HLO ---- */

/* The place of a device in an array of all devices, which are listed, or 0, 1, .. transposed. */
static bool device_place(const struct rp_sharding *s, unsigned device, int64_t total, int64_t *out)
{
    int64_t index[MAX_AXES] = {0}, dims[MAX_AXES], stride[MAX_AXES];

    for (size_t i = 0; i < s->devices.n; i++)
        if (s->devices.at[i] == (int64_t)device) {
            *out = (int64_t)i;
            return (int64_t)s->devices.n == total;
        }
    if (s->devices.n || !s->dims.n || s->dims.n > MAX_AXES || (s->perm.n && s->perm.n != s->dims.n))
        return false;
    rp_strides(s->dims.at, s->dims.n, stride);
    for (size_t i = 0; i < s->dims.n; i++) {
        int64_t from = s->perm.n ? s->perm.at[i] : (int64_t)i;

        if (from < 0 || from >= (int64_t)s->dims.n)
            return false;
        dims[i] = s->dims.at[from];
    }
    for (int64_t k = 0; k < total; k++) {
        int64_t id = 0;

        for (size_t i = 0; i < s->dims.n; i++)
            id += index[i] * stride[s->perm.n ? s->perm.at[i] : (int64_t)i];
        if (id == (int64_t)device) {
            *out = k;
            return true;
        }
        rp_index_next(index, dims, s->dims.n);
    }
    return false;
}

bool rp_tile_of(const struct rp_sharding *s, size_t rank, unsigned device, struct rp_tile *out)
{
    int64_t total = 1, place;

    out->rank = rank;
    for (size_t i = 0; i < rank; i++) {
        out->blocks[i] = 1;
        out->at[i] = 0;
    }
    if (s->type == RP_SHARDING_REPLICATED || s->type == RP_SHARDING_MAXIMAL)
        return true;
    if (s->type != RP_SHARDING_OTHER || s->tiles.n < rank || s->tiles.n > rank + MAX_AXES)
        return false;
    for (size_t i = 0; i < s->tiles.n; i++)
        if (s->tiles.at[i] < 1 || __builtin_mul_overflow(total, s->tiles.at[i], &total) ||
            total > MAX_DEVICES)
            return false;
    if (!device_place(s, device, total, &place))
        return false;
    for (size_t i = s->tiles.n; i-- > 0; place /= s->tiles.at[i])
        if (i < rank) {
            out->blocks[i] = s->tiles.at[i];
            out->at[i] = place % s->tiles.at[i];
        }
    return true;
}

/* ---- shardings of Shardy ---- */

struct mesh {
    size_t n;
    struct rp_slice name[MAX_AXES];
    int64_t size[MAX_AXES], at[MAX_AXES]; /* coordinates of the device */
    int64_t devices;
};

/* Copies the text without the backslashes of escaped quotes. */
static size_t clean(struct rp_slice text, char *out)
{
    size_t n = 0;

    for (uint32_t i = 0; i < text.n && n + 1 < MAX_TEXT; i++)
        if (text.at[i] != '\\')
            out[n++] = text.at[i];
    out[n] = '\0';
    return n;
}

/* Reads "["x"=4, "y"=2], device_ids=[1, 0]>". */
static bool read_mesh(const char *s, unsigned device, struct mesh *m)
{
    const char *end = strchr(s, '>');
    int64_t place = device, k = 0;

    m->n = 0;
    m->devices = 1;
    while (end && (s = strchr(s, '"')) && s < end && m->n < MAX_AXES) {
        const char *close = strchr(s + 1, '"');

        if (!close || close[1] != '=')
            return false;
        m->name[m->n] = (struct rp_slice){s + 1, (uint32_t)(close - s - 1), 0};
        m->size[m->n] = strtoll(close + 2, NULL, 10);
        if (m->size[m->n] < 1 || m->size[m->n] > MAX_DEVICES ||
            m->devices * m->size[m->n] > MAX_DEVICES)
            return false;
        m->devices *= m->size[m->n++];
        s = close + 1;
    }
    const char *ids = strstr(m->n ? m->name[m->n - 1].at : "", "device_ids=[");
    if (ids && end && ids < end)
        for (ids += 12; *ids && *ids != ']'; k++) {
            char *to;
            int64_t id = strtoll(ids, &to, 10);

            if (to == ids)
                return false;
            if (id == (int64_t)device)
                place = k;
            for (ids = to; *ids == ',' || *ids == ' '; ids++)
                ;
        }
    for (size_t i = m->n; i-- > 0; place /= m->size[i])
        m->at[i] = place % m->size[i];
    return end != NULL;
}

unsigned rp_sdy_devices(struct rp_slice meshes)
{
    char text[MAX_TEXT];
    struct mesh m;
    int64_t most = 1;

    clean(meshes, text);
    for (const char *s = text; (s = strstr(s, "mesh<")); s += 5)
        if (read_mesh(s + 5, 0, &m) && m.devices > most)
            most = m.devices;
    return (unsigned)most;
}

/* Finds "@mesh" among the meshes, or one that is written in place. */
static bool find_mesh(const char *meshes, const char *sharding, unsigned device, struct mesh *m)
{
    const char *at = strchr(sharding, '@'), *own = strstr(sharding, "mesh<"), *list = meshes;

    if (own && (!at || own < at))
        return read_mesh(own + 5, device, m);
    if (!at)
        return false;
    at += 1 + (at[1] == '"');
    size_t n = strcspn(at, ",\" >");
    while ((list = strstr(list, "mesh<"))) { /* "name = #sdy.mesh<" */
        const char *name = list;

        while (name > meshes && *name != '=')
            name--;
        while (name > meshes && (*name == '=' || *name == ' ' || *name == '"'))
            name--;
        if ((size_t)(name + 1 - meshes) >= n && memcmp(name + 1 - n, at, n) == 0 &&
            (name + 1 - n == meshes || strchr("{ ,\"", name[-(ptrdiff_t)n])))
            return read_mesh(list + 5, device, m);
        list += 5;
    }
    return false;
}

/* One axis of a dimension, "x" or "x":(1)2, multiplies the blocks. */
static bool apply_axis(const struct mesh *m, const char *axes, const char *s, const char **next,
                       int64_t *blocks, int64_t *at)
{
    const char *close = strchr(s + 1, '"');
    size_t n = close ? (size_t)(close - s - 1) : 0;
    char quoted[128];

    if (!close || n + 3 > sizeof quoted)
        return false;
    memcpy(quoted, s, n + 2);
    quoted[n + 2] = '\0';
    *next = close + 1;
    for (size_t i = 0; i < m->n; i++) {
        int64_t size = m->size[i], place = m->at[i];

        if (m->name[i].n != n || memcmp(m->name[i].at, s + 1, n) != 0)
            continue;
        if (close[1] == ':' && close[2] == '(') {
            char *to;
            int64_t before = strtoll(close + 3, &to, 10);

            size = *to == ')' ? strtoll(to + 1, &to, 10) : 0;
            if (before < 1 || size < 1 || before > m->size[i] || size > m->size[i] ||
                m->size[i] % (before * size))
                return false;
            place = place / (m->size[i] / before / size) % size;
            *next = to;
        }
        if (*axes && !strstr(axes, quoted))
            return true;
        *blocks *= size;
        *at = *at * size + place;
        return true;
    }
    return false;
}

/* The i-th "<...>" inside of the outer list, or the text itself if it is one sharding. */
static const char *pick_sharding(char *text, size_t i)
{
    char *list = strstr(text, "per_value<["), *s;
    int depth = 0;

    if (!list)
        return i ? NULL : text;
    for (s = list + 11; *s; s++) {
        if (*s == '<' && depth++ == 0 && i-- == 0)
            break;
        depth -= *s == '>' && s[-1] != '-';
        if (depth < 0)
            return NULL;
    }
    if (!*s)
        return NULL;
    for (list = s, depth = 0; *list; list++) {
        depth += (*list == '<') - (*list == '>');
        if (!depth) {
            list[1] = '\0';
            break;
        }
    }
    return s;
}

bool rp_tile_of_sdy(const struct rp_sdy *of, struct rp_slice sharding, size_t i, size_t rank,
                    unsigned device, struct rp_tile *out)
{
    char text[MAX_TEXT], meshes[MAX_TEXT], axes[MAX_TEXT];
    struct mesh m;

    if (sharding.n + 1 >= MAX_TEXT || of->meshes.n + 1 >= MAX_TEXT || of->axes.n + 1 >= MAX_TEXT)
        return false;
    clean(sharding, text);
    clean(of->meshes, meshes);
    clean(of->axes, axes);
    const char *s = pick_sharding(text, i);
    if (!s || !find_mesh(meshes, s, device, &m))
        return false;
    s = strstr(s, ", [");
    out->rank = rank;
    for (size_t d = 0; d < rank; d++) {
        out->blocks[d] = 1;
        out->at[d] = 0;
        s = s ? strchr(s, '{') : NULL;
        if (!s)
            return false;
        for (s++; *s && *s != '}';)
            if (*s != '"')
                s++;
            else if (!apply_axis(&m, axes, s, &s, &out->blocks[d], &out->at[d]))
                return false;
    }
    return true;
}

struct rp_slice rp_attr_map_find(const struct rp_attr *attr, const char *key)
{
    for (uint32_t i = 0; attr && attr->type == RP_VALUE_MAP && i + 1 < attr->n; i += 2)
        if (attr->texts[i].n == strlen(key) && !memcmp(attr->texts[i].at, key, attr->texts[i].n))
            return attr->texts[i + 1];
    return (struct rp_slice){"", 0, 0};
}

/* ---- copying ---- */

/* Copies the rows that block and whole share, in either direction. */
static void tile_copy(struct rp_tensor *to, const struct rp_tensor *from,
                      const struct rp_tensor *block, const struct rp_tensor *whole,
                      const struct rp_tile *tile)
{
    int64_t index[RP_TENSOR_RANK] = {0}, dims[RP_TENSOR_RANK], ws[RP_TENSOR_RANK],
            bs[RP_TENSOR_RANK], first = 0;
    size_t rank = whole->rank;

    rp_strides(whole->dims, rank, ws);
    rp_strides(block->dims, rank, bs);
    for (size_t i = 0; i < rank; i++) {
        int64_t begin = tile->at[i] * block->dims[i], left = whole->dims[i] - begin;

        dims[i] = left < block->dims[i] ? left : block->dims[i];
        if (dims[i] <= 0)
            return;
        first += begin * ws[i];
    }
    size_t run = rank ? (size_t)dims[rank - 1] : 1;
    do {
        int64_t w = first, b = 0;

        for (size_t i = 0; i + 1 < rank; i++) {
            w += index[i] * ws[i];
            b += index[i] * bs[i];
        }
        memcpy(to->data + (size_t)(to == whole ? w : b) * to->unit,
               from->data + (size_t)(from == whole ? w : b) * to->unit, run * to->unit);
    } while (rank > 1 && rp_index_next(index, dims, rank - 1));
}

enum rp_code rp_tile_take(const struct rp_tensor *whole, const struct rp_tile *tile,
                          struct rp_tensor **out, struct rp_err *err)
{
    int64_t dims[RP_TENSOR_RANK];

    for (size_t i = 0; i < whole->rank; i++)
        dims[i] = (whole->dims[i] + tile->blocks[i] - 1) / tile->blocks[i];
    RP_TRY(rp_tensor_zeros(whole->elem, dims, whole->rank, out, err));
    tile_copy(*out, whole, *out, whole, tile);
    return RP_OK;
}

void rp_tile_put(const struct rp_tensor *block, const struct rp_tile *tile, struct rp_tensor *whole)
{
    tile_copy(whole, block, block, whole, tile);
}
