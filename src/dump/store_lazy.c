/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lazy-tensor backends append the graph of every step to a file, even if it was seen before. Once
 * the program has ended, each graph is kept only once:
 *
 *     ltc.txt         the different graphs, in the order in which they were first seen
 *     ltc.txt.steps   a line a step: the number of its graph, from 1
 *
 * A record ends with the line "## END_GRAPH" and the empty lines after it; what follows the last of
 * them, an incomplete record, is kept unchanged.
 */
#include "dump/store.h"

#include "base/hash.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct graph {
    const char *at;
    size_t n;
};

struct compaction {
    struct rp_map by_hash; /* by hash of the records that are kept */
    RP_VEC(struct graph) kept;
    FILE *graphs, *steps;
    uint64_t repeats, saved;
};

/* The end of the record that begins at `at`; NULL if it has none. */
static const char *record_end(const char *at, const char *end)
{
    static const char mark[] = "## END_GRAPH\n";
    const char *found = memmem(at, (size_t)(end - at), mark, sizeof mark - 1);

    if (!found)
        return NULL;
    found += sizeof mark - 1;
    while (found < end && *found == '\n')
        found++;
    return found;
}

/* Two different records with the same hash are both kept. */
static enum rp_code add_record(struct compaction *c, struct graph record, struct rp_err *err)
{
    uint32_t number;

    RP_TRY(rp_map_intern(&c->by_hash, rp_hash_bytes(record.at, record.n), (uint32_t)c->kept.n,
                         &number, err));
    if (number < c->kept.n && c->kept.at[number].n == record.n &&
        !memcmp(c->kept.at[number].at, record.at, record.n)) {
        c->repeats++;
        c->saved += record.n;
    } else {
        number = (uint32_t)c->kept.n;
        RP_TRY(rp_vec_push(&c->kept, record, err));
        fwrite(record.at, 1, record.n, c->graphs);
    }
    fprintf(c->steps, "%u\n", number + 1);
    return RP_OK;
}

static enum rp_code write_once(struct compaction *c, const char *all, size_t n, struct rp_err *err)
{
    const char *at = all, *end = all + n, *next;

    while ((next = record_end(at, end))) {
        RP_TRY(add_record(c, (struct graph){at, (size_t)(next - at)}, err));
        at = next;
    }
    fwrite(at, 1, (size_t)(end - at), c->graphs);
    return RP_OK;
}

bool rp_dump_is_lazy(const char *path)
{
    const char *name = strstr(path, "/lazy/");

    if (!name)
        return false;
    name += 6;
    return (!strncmp(name, "ltc.txt", 7) || !strncmp(name, "xla.txt", 7)) &&
           !strstr(name, ".steps") && !strchr(name, '/');
}

enum rp_code rp_dump_compact_lazy(const char *path, const char *all, size_t n, uint64_t *saved,
                                  struct rp_err *err)
{
    struct compaction c = {0};
    char graphs[PATH_MAX + 16], steps[PATH_MAX + 16];
    enum rp_code code = RP_OK;

    *saved = 0;
    snprintf(graphs, sizeof graphs, "%s.reprise", path);
    snprintf(steps, sizeof steps, "%s.steps", path);
    c.graphs = fopen(graphs, "we");
    c.steps = fopen(steps, "we");
    bool ok = c.graphs && c.steps;
    if (ok)
        code = write_once(&c, all, n, err);
    if (c.graphs && fclose(c.graphs))
        ok = false;
    if (c.steps && fclose(c.steps))
        ok = false;
    if (ok && code == RP_OK && c.repeats && !rename(graphs, path)) {
        *saved = c.saved;
    } else { /* nothing is gained, or it failed, so the file stays */
        unlink(graphs);
        unlink(steps);
    }
    rp_map_release(&c.by_hash);
    rp_vec_release(&c.kept);
    return code;
}
