/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the folders of the ranks first; then their traces are read, several at a time, each into
 * the rank of its folder, and the texts after them. A missing file is replaced by another one with
 * the same information, with a note; otherwise it is an error that names the folder.
 */
#include "base/each.h"
#include "base/text.h"
#include "job/job.h"

#include "base/order.h"
#include "job/records.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum file { NO_FILE, OPS, TIMELINE, TRANSFERS, GRAPH, RINGS, METADATA, TOP_GRAPH, KEYS };

/* Recognises a file of a job by the last part of its path. */
static enum file file_of(const char *name)
{
    static const struct {
        const char *name;
        enum file file;
    } files[] = {{"trace.json", OPS},
                 {"comm.json", TIMELINE},
                 {"comm_detail.json", TRANSFERS},
                 {"dag.gml", GRAPH},
                 {"nccl_rank_graph.json", RINGS},
                 {"metadata.json", METADATA},
                 {"graphdef_dag.gml", TOP_GRAPH},
                 {"key_dict.txt", KEYS}};
    const char *last = rp_text_file(name);
    size_t i, n = strlen(last);

    n -= rp_text_ends(last, ".gz") ? 3 : 0;
    for (i = 0; i < sizeof files / sizeof files[0]; i++)
        if (strlen(files[i].name) == n && !memcmp(last, files[i].name, n))
            return files[i].file;
    return NO_FILE;
}

static size_t folder_length(const char *name)
{
    const char *slash = name ? strrchr(name, '/') : NULL;

    return slash ? (size_t)(slash - name) : 0;
}

static bool same_folder(const char *a, const char *b)
{
    size_t n = folder_length(a);

    return a && b && n == folder_length(b) && !memcmp(a, b, n);
}

static const char *name_at(const struct rp_dataset *dataset, size_t i)
{
    return rp_sources_borrow(dataset->sources, i)->name;
}

/* Whether another file of a rank is in the folder of this one. */
static bool in_rank_folder(const struct rp_dataset *dataset, size_t source)
{
    const char *name = name_at(dataset, source);

    for (size_t k = 0; k < rp_dataset_count(dataset); k++) {
        enum file other = file_of(name_at(dataset, k));

        if (k != source && other >= OPS && other <= METADATA &&
            same_folder(name, name_at(dataset, k)))
            return true;
    }
    return false;
}

bool rp_dataset_is_job(const struct rp_dataset *dataset)
{
    bool keys = false, ops = false;

    for (size_t i = 0; i < rp_dataset_count(dataset); i++) {
        enum file file = file_of(name_at(dataset, i));

        if ((file == TRANSFERS || file == TIMELINE) && in_rank_folder(dataset, i))
            return true;
        keys |= file == KEYS;
        ops |= file == OPS;
    }
    return keys && ops;
}

/* ------------------------------------------------------------------ folders */

struct load_ctx {
    const struct rp_dataset *dataset;
    struct rp_job *job;
    const char **folder; /* by rank: the name of a source in its folder */
    uint16_t *has,
        *seen; /* by rank: bits of enum file for files that exist, and for those that were read */
};

static enum rp_code remark(struct load_ctx *l, const char *text, struct rp_err *err)
{
    return text ? rp_vec_push(&l->job->remarks, text, err) : rp_err_nomem(err, "reading a job");
}

/* "host1/3" */
static const char *rank_name(const struct rp_job *job, size_t rank, struct rp_arena *arena)
{
    return rp_arena_printf(arena, "%s/%lld", job->ranks[rank].host,
                           (long long)job->ranks[rank].local);
}

static size_t rank_of(const struct load_ctx *l, const char *name)
{
    for (size_t i = 0; i < l->job->nranks; i++)
        if (same_folder(l->folder[i], name))
            return i;
    return SIZE_MAX;
}

static enum rp_code list_ranks(struct load_ctx *l, struct rp_err *err)
{
    size_t i, rank, n = rp_dataset_count(l->dataset);

    l->job->ranks = calloc(n + 1, sizeof *l->job->ranks);
    l->job->nodes = calloc(n + 1, sizeof *l->job->nodes);
    l->folder = calloc(n + 1, sizeof *l->folder);
    l->has = calloc(n + 1, sizeof *l->has);
    l->seen = calloc(n + 1, sizeof *l->seen);
    RP_TRY(rp_err_need(l->job->ranks && l->job->nodes && l->folder && l->has && l->seen, err,
                       "reading a job"));
    for (i = 0; i < n; i++) {
        const char *name = name_at(l->dataset, i);
        enum file file = file_of(name);
        struct rp_job_rank *r = &l->job->ranks[l->job->nranks];

        if (file < OPS || file > TRANSFERS || rank_of(l, name) != SIZE_MAX)
            continue;
        rp_arena_init(&r->arena);
        l->folder[l->job->nranks++] = name;

        /* Finds in ".../host1/3" the host and the number on it. */
        size_t end = folder_length(name), slash = end, from;
        while (slash > 0 && name[slash - 1] != '/')
            slash--;
        r->local = strtoll(name + slash, NULL, 10);
        end = slash > 0 ? slash - 1 : 0;
        for (from = end; from > 0 && name[from - 1] != '/' && name[from - 1] != '!';)
            from--;
        r->host = rp_arena_copy(&r->arena, name + from, end - from);
        r->number = -1;
        RP_TRY(rp_err_need(r->host, err, "reading a job"));
    }
    for (i = 0; i < n; i++) {
        rank = rank_of(l, name_at(l->dataset, i));
        if (rank != SIZE_MAX)
            l->has[rank] |= (uint16_t)(1u << file_of(name_at(l->dataset, i)));
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ traces */

struct traces {
    struct load_ctx *l;
    pthread_mutex_t lock; /* files of one rank share its arena, so they need a lock */
};

static enum rp_code read_rank_file(struct rp_job_rank *rank, enum file file,
                                   const struct rp_trace *trace, struct rp_err *err)
{
    switch (file) {
    case OPS:
        return rp_job_read_ops(trace, rank, err);
    case TIMELINE:
        return rp_job_read_timeline(trace, rank, err);
    case TRANSFERS:
        return rp_job_read_transfers(trace, rank, err);
    default:
        return RP_OK;
    }
}

static enum rp_code take_log(struct rp_job *job, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct rp_job_node *node = &job->nodes[job->nnodes++];

    node->id = -1;
    RP_TRY(rp_job_read_byteps(loaded->trace, node, err));
    if (node->ops.n && !node->halves.n) {
        /* Only the name of a server's log of its work tells whose it is: "server_1.txt". */
        const char *name = loaded->source->name;
        const char *at = name + strlen(name);

        while (at > name && at[-1] != '_' && at[-1] != '/')
            at--;
        node->id = at > name && at[-1] == '_' && *at >= '0' && *at <= '9'
                       ? (int32_t)(8 + 2 * (strtol(at, NULL, 10) % 100000))
                       : -1;
    }
    return node->id >= 0
               ? RP_OK
               : rp_err_set(
                     err, RP_FORMAT,
                     "'%s': cannot determine which node wrote this log: a log of messages has "
                     "one sender or receiver, a server's log ends in its number",
                     loaded->source->name);
}

static enum rp_code read_trace(void *user, const struct rp_loaded *loaded, struct rp_err *err)
{
    struct traces *t = user;
    enum file file = file_of(loaded->source->name);
    size_t rank = rank_of(t->l, loaded->source->name);
    bool is_log = !strcmp(rp_trace_str(loaded->trace, loaded->trace->format), "byteps-log");
    enum rp_code code = RP_OK;

    if (rank == SIZE_MAX && !is_log)
        return RP_OK;
    RP_TRY(rp_trace_require(loaded->trace, RP_NEED_ARGS, err));
    pthread_mutex_lock(&t->lock);
    if (is_log) {
        code = take_log(t->l->job, loaded, err);
    } else {
        t->l->seen[rank] |= (uint16_t)(1u << file);
        code = read_rank_file(&t->l->job->ranks[rank], file, loaded->trace, err);
    }
    pthread_mutex_unlock(&t->lock);
    return code;
}

/* ------------------------------------------------------------------ texts */

static enum rp_code parse_text(struct rp_input *in, enum file file, struct load_ctx *l, size_t rank,
                               struct rp_err *err)
{
    struct rp_job_rank *r = &l->job->ranks[rank];
    const uint8_t *bytes;
    size_t n;

    if (file == METADATA)
        return rp_job_read_metadata(in, r, err);
    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    if (file == KEYS)
        return rp_job_read_keys((const char *)bytes, n, l->job, err);
    return file == RINGS ? rp_job_read_rings((const char *)bytes, n, r, err)
                         : rp_job_read_graph((const char *)bytes, n, r, err);
}

static enum rp_code read_text(struct load_ctx *l, size_t source, size_t rank, enum file file,
                              struct rp_err *err)
{
    struct rp_input *in;

    RP_TRY(rp_source_open(l->dataset->sources, source, &in, err));
    enum rp_code code = parse_text(in, file, l, rank, err);
    if (code != RP_OK)
        rp_err_prefix(err, code, "%s", name_at(l->dataset, source));
    rp_input_close(in);
    l->seen[rank] |= (uint16_t)(1u << file);
    return code;
}

/* Finds a rank that knows the graph: all ranks run the same. */
static enum rp_code find_graph(struct load_ctx *l, size_t *out, struct rp_err *err)
{
    for (*out = 0; *out < l->job->nranks && !l->job->ranks[*out].edges.n;)
        ++*out;
    for (size_t i = 0; *out == l->job->nranks && i < rp_dataset_count(l->dataset); i++)
        if (file_of(name_at(l->dataset, i)) == TOP_GRAPH) {
            RP_TRY(read_text(l, i, 0, TOP_GRAPH, err));
            *out = 0;
        }
    return *out < l->job->nranks
               ? RP_OK
               : rp_err_set(
                     err, RP_FORMAT,
                     "%.*s has neither 'dag.gml' nor a usable 'metadata.json': cannot determine "
                     "which operator produces which gradient",
                     (int)folder_length(l->folder[0]), l->folder[0]);
}

static enum rp_code share_graph(struct load_ctx *l, struct rp_err *err)
{
    size_t r, i, from, lacking = 0;

    RP_TRY(find_graph(l, &from, err));
    for (r = 0; r < l->job->nranks; r++) {
        if (l->job->ranks[r].edges.n)
            continue;
        lacking++;
        for (i = 0; i < l->job->ranks[from].edges.n; i++)
            RP_TRY(rp_vec_push(&l->job->ranks[r].edges, l->job->ranks[from].edges.at[i], err));
    }
    if (lacking)
        RP_TRY(remark(
            l,
            rp_arena_printf(&l->job->arena,
                            "without a graph of operators: %zu of the ranks; that of %s is used",
                            lacking, rank_name(l->job, from, &l->job->arena)),
            err));
    return RP_OK;
}

/* ------------------------------------------------------------------ all of it */

static enum rp_code lacks(const struct load_ctx *l, size_t rank, const char *what,
                          struct rp_err *err)
{
    return rp_err_set(err, RP_FORMAT, "%.*s has no %s", (int)folder_length(l->folder[rank]),
                      l->folder[rank], what);
}

/* Checks that all ranks have sends and receives, which only then count. */
static enum rp_code check_transfers(struct load_ctx *l, struct rp_err *err)
{
    size_t i, with = 0, without = SIZE_MAX;

    for (i = 0; i < l->job->nranks; i++)
        if (l->job->ranks[i].transfers.n)
            with++;
        else
            without = without == SIZE_MAX ? i : without;
    l->job->has_transfers = with == l->job->nranks;
    for (i = 0; l->job->has_transfers && i < l->job->nranks; i++)
        if (!(l->seen[i] & 1u << RINGS))
            return lacks(
                l, i,
                "'nccl_rank_graph.json': without it the receivers of its messages are unknown",
                err);
    for (i = 0; !l->job->has_transfers && i < l->job->nranks; i++)
        l->job->ranks[i].transfers.n = 0;
    return l->job->has_transfers
               ? RP_OK
               : remark(l,
                        rp_arena_printf(&l->job->arena,
                                        "%s has no sends and receives (comm_detail.json): each "
                                        "reduction is one transfer after the last rank's arrival",
                                        rank_name(l->job, without, &l->job->arena)),
                        err);
}

/* Whether a worker or server wrote a log of its messages. */
static bool has_log(const struct rp_job *job, int32_t id)
{
    for (size_t i = 0; i < job->nnodes; i++)
        if (job->nodes[i].id == id && job->nodes[i].halves.n)
            return true;
    return false;
}

static size_t count_hosts(const struct rp_job *job)
{
    size_t r, k, n = 0;

    for (r = 0; r < job->nranks; r++) {
        for (k = 0; k < r && strcmp(job->ranks[k].host, job->ranks[r].host) != 0;)
            k++;
        n += k == r;
    }
    return n;
}

static enum rp_code check_party(const struct rp_job *job, int32_t id, size_t nworkers,
                                struct rp_err *err)
{
    bool worker = id % 2;
    size_t number = rp_job_party(id);

    if (!rp_job_is_party(id))
        return RP_OK;
    if (worker && number >= nworkers)
        return rp_err_set(err, RP_FORMAT,
                          "the logs mention worker %zu (ps-lite id %d), but there are traces of "
                          "only %zu workers",
                          number, id, nworkers);
    return has_log(job, id)
               ? RP_OK
               : rp_err_set(err, RP_FORMAT, "missing message log of %s %zu (ps-lite id %d)",
                            worker ? "worker" : "server", number, id);
}

static enum rp_code check_servers(struct load_ctx *l, struct rp_err *err)
{
    const struct rp_job *job = l->job;
    size_t i, k, nworkers = count_hosts(job), works = 0;

    if (!job->keys.n)
        return rp_err_set(err, RP_FORMAT,
                          "BytePS logs without the 'key_dict.txt' that names their keys");
    for (i = 0; i < nworkers; i++)
        RP_TRY(check_party(job, (int32_t)(9 + 2 * i), nworkers, err));
    for (i = 0; i < job->nnodes; i++) {
        works += job->nodes[i].ops.n;
        for (k = 0; k < job->nodes[i].halves.n; k++) {
            const struct rp_job_half *h = &job->nodes[i].halves.at[k];

            RP_TRY(check_party(job, h->sender, nworkers, err));
            RP_TRY(check_party(job, h->receiver, nworkers, err));
        }
    }
    return works ? RP_OK
                 : remark(l,
                          "no log of the servers' copies and sums: their time counts as waiting "
                          "before the answers",
                          err);
}

static enum rp_code check_job(struct load_ctx *l, struct rp_err *err)
{
    for (size_t i = 0; i < l->job->nranks; i++) {
        if (!(l->seen[i] & 1u << OPS))
            return lacks(l, i, "'trace.json.gz'", err);
        if (!l->job->has_servers && !(l->seen[i] & 1u << TIMELINE))
            return lacks(l, i, "'comm.json': without it the times of its reductions are unknown",
                         err);
    }
    return l->job->has_servers ? check_servers(l, err) : check_transfers(l, err);
}

/* Returns the number at the end of a text, or -1. */
static int64_t last_number(const char *text)
{
    size_t n = strlen(text);

    while (n > 0 && text[n - 1] >= '0' && text[n - 1] <= '9')
        n--;
    return text[n] ? strtoll(text + n, NULL, 10) : -1;
}

RP_ORDER(by_place, struct rp_job_rank, RP_UP(number),
         RP_COMPARE(last_number(a->host), last_number(b->host)), strcmp(a->host, b->host),
         RP_UP(local))

static enum rp_code load(struct rp_ctx *ctx, struct load_ctx *l, struct rp_err *err)
{
    struct traces traces = {.l = l};

    RP_TRY(list_ranks(l, err));
    pthread_mutex_init(&traces.lock, NULL);
    enum rp_code code = rp_each_trace_of_job(ctx, l->dataset, read_trace, &traces, err);
    pthread_mutex_destroy(&traces.lock);
    RP_TRY(code);

    /* The description of operators contains the same edges as the graph, and is read if there is no
       graph. */
    for (size_t i = 0; i < rp_dataset_count(l->dataset); i++) {
        enum file file = file_of(name_at(l->dataset, i));
        bool graph = file == GRAPH || file == RINGS;
        size_t rank = rank_of(l, name_at(l->dataset, i));
        if (file == KEYS && !l->job->keys.n)
            RP_TRY(read_text(l, i, 0, file, err));
        else if (rank != SIZE_MAX && (graph || (file == METADATA && !(l->has[rank] & 1u << GRAPH))))
            RP_TRY(read_text(l, i, rank, file, err));
    }
    l->job->has_servers = l->job->nnodes > 0;
    RP_TRY(check_job(l, err));
    RP_TRY(share_graph(l, err));

    /* Numbers ranks as in the rings; those without a number by host and number on it. */
    for (size_t i = 0; !l->job->has_transfers && i < l->job->nranks; i++)
        l->job->ranks[i].number = -1;
    qsort(l->job->ranks, l->job->nranks, sizeof *l->job->ranks, by_place);
    for (size_t i = 0; i < l->job->nranks; i++) {
        struct rp_job_rank *r = &l->job->ranks[i];
        if (!l->job->has_transfers)
            r->number = (int32_t)i;
        else if (r->number < 0 || (i && r->number == r[-1].number))
            return rp_err_set(err, RP_FORMAT,
                              r->number < 0 ? "the rings of %s/%lld do not show its rank"
                                            : "%s/%lld has the same rank number as another rank",
                              r->host, (long long)r->local);
    }
    return RP_OK;
}

enum rp_code rp_load_job(struct rp_ctx *ctx, const struct rp_dataset *dataset, struct rp_job *out,
                         struct rp_err *err)
{
    struct load_ctx l = {.dataset = dataset, .job = out};

    memset(out, 0, sizeof *out);
    rp_arena_init(&out->arena);
    enum rp_code code = load(ctx, &l, err);
    RP_EACH(free, (void *)l.folder, l.has, l.seen);
    return code;
}

void rp_job_release(struct rp_job *job)
{
    for (size_t i = 0; i < job->nranks; i++) {
        struct rp_job_rank *r = &job->ranks[i];

        RP_EACH(rp_vec_release, &r->ops, &r->spans, &r->transfers, &r->edges, &r->links);
        rp_arena_release(&r->arena);
    }
    free(job->ranks);
    job->ranks = NULL;
    job->nranks = 0;
    for (size_t i = 0; i < job->nnodes; i++) {
        RP_EACH(rp_vec_release, &job->nodes[i].halves, &job->nodes[i].ops);
    }
    free(job->nodes);
    job->nodes = NULL;
    job->nnodes = 0;
    RP_EACH(rp_vec_release, &job->keys, &job->remarks, &job->tensors, &job->types);
    rp_arena_release(&job->arena);
}

enum rp_code rp_load_job_tensors(const struct rp_dataset *dataset, struct rp_job *job,
                                 struct rp_err *err)
{
    struct rp_input *in;

    for (size_t i = 0; i < rp_dataset_count(dataset) && !job->tensors.n; i++) {
        if (file_of(name_at(dataset, i)) != METADATA)
            continue;
        RP_TRY(rp_source_open(dataset->sources, i, &in, err));
        enum rp_code code = rp_job_read_tensors(in, job, err);
        if (code != RP_OK)
            rp_err_prefix(err, code, "%s", name_at(dataset, i));
        rp_input_close(in);
        RP_TRY(code);
    }
    return RP_OK;
}
