/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads perf.data, the file of `perf record`, also in its form for pipes: samples with their call
 * chains, record by record. Compressed records (zstd) form one stream, so a record of perf may
 * begin in one piece and end in the next. The mappings, commands and forks before a sample say
 * which file was mapped at an address. If that file is on this machine (symbols.h), its symbols
 * name the address; otherwise the file and the place in it do.
 *
 *     file   "PERFILE2", 104, where the attributes and the records are, ...
 *     pipe   "PERFILE2", 16, then records, the attributes among them
 *     record u32 type, u16 misc, u16 size, then what the type says
 */
#include "base/each.h"
#include "formats/sampled/sampled.h"
#include "formats/sampled/symbols.h"
#include "io/inflate.h"
#include "trace/secrets.h"

enum record_type {
    RECORD_MMAP = 1,
    RECORD_COMM = 3,
    RECORD_FORK = 7,
    RECORD_SAMPLE = 9,
    RECORD_MMAP2 = 10,
    RECORD_ATTR = 64,
    RECORD_TRACING_DATA = 66,
    RECORD_BUILD_ID = 67,
    RECORD_AUXTRACE = 71,
    RECORD_FEATURE = 80,
    RECORD_COMPRESSED = 81,
    RECORD_COMPRESSED2 = 83,
    RECORD_TYPES = 128 /* no version so far has records above */
};

enum { /* bits that say what a sample contains */
       SAMPLE_IP = 1 << 0,
       SAMPLE_TID = 1 << 1,
       SAMPLE_TIME = 1 << 2,
       SAMPLE_ADDR = 1 << 3,
       SAMPLE_READ = 1 << 4,
       SAMPLE_CALLCHAIN = 1 << 5,
       SAMPLE_ID = 1 << 6,
       SAMPLE_CPU = 1 << 7,
       SAMPLE_PERIOD = 1 << 8,
       SAMPLE_STREAM = 1 << 9,
       SAMPLE_IDENTIFIER = 1 << 16
};

#define HEADER_FILE  104
#define FEATURES_AT  72 /* place of the features in the header, a bit each */
#define BUILD_IDS    2  /* the features */
#define HOSTNAME     3
#define COMMAND_LINE 11
#define HAS_BUILD_ID (1u << 14) /* the mapping has a build id instead of an inode */
#define HAS_ID_SIZE  (1u << 15) /* the build id states its length */
#define HEADER_PIPE  16
#define ATTR_LEAST   48
#define ATTRS_MOST   1024
#define IS_FREQUENCY (UINT64_C(1) << 10)
#define CPU_MODE     7
#define MODE_KERNEL  1
#define CONTEXT      ((uint64_t)-4095) /* values of a call chain from here on are not addresses */
#define IN_KERNEL    ((uint64_t)-128)
#define FORKS_DEEP   64
#define KERNEL_PID   INT64_C(-1)

struct perf_attr {
    uint32_t type;
    uint64_t config, period, sample_type, read_format, flags;
};

struct mapped {
    uint64_t from, to, offset;
    struct rp_bytes path;
    uint32_t id;
    struct rp_symbols_file file;
    uint32_t symbols; /* its table of symbols; RP_NONE: none */
    bool has_symbols; /* it was looked for */
};

struct build_id {
    struct rp_bytes path;
    uint8_t bytes[RP_BUILD_ID];
    size_t n;
};

struct process {
    int64_t parent; /* pid, or -1 */
    RP_VEC(struct mapped) maps;
};

struct perf_data {
    struct rp_profile p;
    struct rp_arena texts;
    RP_VEC(struct perf_attr) attrs;
    RP_VEC(struct process) processes;
    struct rp_map process_of; /* pid -> index */
    struct rp_map attr_of,
        thread_of; /* from the id of an event to its attribute; from pid and tid to a comm */
    RP_VEC(struct rp_bytes) comms;
    RP_VEC(struct rp_profile_frame) frames;
    struct rp_map frame_of; /* from mapping and place to a frame */
    struct rp_symbols symbols;
    RP_VEC(struct build_id) build_ids;
    RP_VEC(uint8_t) plain; /* decompressed, but not read yet */
    void *zstd;
    uint32_t nmapped, chosen; /* chosen: the attribute whose samples are taken */
    bool has_chosen, is_pipe;
    uint64_t others, end_at;
};

/* ------------------------------------------------------------------ bytes */

struct cut {
    const uint8_t *at, *end;
    bool short_of; /* set when more was to be read than there is */
};

static uint64_t cut_u64(struct cut *c)
{
    uint64_t v = 0;

    if (c->end - c->at < 8) {
        c->short_of = true;
        c->at = c->end;
        return 0;
    }
    memcpy(&v, c->at, 8);
    c->at += 8;
    return v;
}

static uint32_t cut_u32(struct cut *c)
{
    uint32_t v = 0;

    if (c->end - c->at < 4) {
        c->short_of = true;
        c->at = c->end;
        return 0;
    }
    memcpy(&v, c->at, 4);
    c->at += 4;
    return v;
}

static void cut_skip(struct cut *c, uint64_t n)
{
    c->short_of |= n > (uint64_t)(c->end - c->at);
    c->at += c->short_of ? c->end - c->at : (ptrdiff_t)n;
}

/* The text up to its NUL. */
static struct rp_bytes cut_text(const struct cut *c)
{
    return (struct rp_bytes){c->at, strnlen((const char *)c->at, (size_t)(c->end - c->at))};
}

static enum rp_code bad_record(struct perf_data *r, const uint8_t *at, const char *what)
{
    return rp_err_set(r->p.err, RP_FORMAT, "byte %llu: %s",
                      (unsigned long long)(at >= r->p.t.bytes && at <= r->p.t.bytes + r->p.t.n
                                               ? (size_t)(at - r->p.t.bytes)
                                               : r->end_at),
                      what);
}

/* ------------------------------------------------------------------ attributes */

static enum rp_code add_attr(struct perf_data *r, struct cut c)
{
    struct perf_attr a;

    a.type = cut_u32(&c);
    uint32_t size = cut_u32(&c);
    a.config = cut_u64(&c);
    a.period = cut_u64(&c);
    a.sample_type = cut_u64(&c);
    a.read_format = cut_u64(&c);
    a.flags = cut_u64(&c);
    if (c.short_of || size < ATTR_LEAST || r->attrs.n == ATTRS_MOST)
        return bad_record(r, c.end, "an event has no valid attributes");
    return rp_vec_push(&r->attrs, a, r->p.err);
}

static enum rp_code add_ids(struct perf_data *r, struct cut c)
{
    while (c.end - c.at >= 8)
        RP_TRY(rp_map_put(&r->attr_of, cut_u64(&c), (uint32_t)r->attrs.n - 1, r->p.err));
    return RP_OK;
}

/* The name of one of the kernel's own events (type 1). A dummy event counts nothing; it only notes
   mappings. */
static const char *event_name(const struct perf_attr *a)
{
    static const char *const hardware[] = {"cycles",       "instructions", "cache-references",
                                           "cache-misses", "branches",     "branch-misses"};
    static const char *const software[] = {"cpu-clock", "task-clock", "page-faults",
                                           "context-switches", "cpu-migrations"};
    uint64_t config = a->config & UINT32_MAX; /* the bits above tell the kind of processor */

    if (a->type == 0 && config < sizeof hardware / sizeof *hardware)
        return hardware[config];
    if (a->type == 1 && config < sizeof software / sizeof *software)
        return software[config];
    return a->type == 1 && config == 9 ? "dummy" : "samples";
}

static bool has_weight(const struct perf_attr *a)
{
    return a->sample_type & SAMPLE_PERIOD || !(a->flags & IS_FREQUENCY);
}

/* ------------------------------------------------------------------ processes */

static enum rp_code process_at(struct perf_data *r, int64_t pid, struct process **out)
{
    uint32_t at, fresh = (uint32_t)r->processes.n;
    struct process none = {.parent = -1};

    RP_TRY(rp_map_intern(&r->process_of, (uint64_t)pid, fresh, &at, r->p.err));
    if (at == fresh)
        RP_TRY(rp_vec_push(&r->processes, none, r->p.err));
    *out = &r->processes.at[at];
    return RP_OK;
}

static enum rp_code keep_text(struct perf_data *r, struct rp_bytes text, struct rp_bytes *out)
{
    const char *copy = rp_arena_textf(&r->texts, "%.*s", (int)text.n, (const char *)text.at);

    RP_TRY(rp_arena_check(&r->texts, "reading names", r->p.err));
    *out = rp_bytes_of(copy);
    return RP_OK;
}

/* The length of a build id; one of all zeros has none. */
static size_t length_of_id(const uint8_t *id, size_t n)
{
    static const uint8_t none[RP_BUILD_ID];

    return n > RP_BUILD_ID || !memcmp(id, none, n) ? 0 : n;
}

static enum rp_code read_build_id(struct perf_data *r, struct cut c, uint16_t misc)
{
    struct build_id id = {.n = RP_BUILD_ID};

    if (c.end - c.at < 28)
        return RP_OK;
    memcpy(id.bytes, c.at + 4, RP_BUILD_ID);
    if (misc & HAS_ID_SIZE)
        id.n = c.at[24];
    cut_skip(&c, 28);
    id.n = length_of_id(id.bytes, id.n);
    RP_TRY(keep_text(r, cut_text(&c), &id.path));
    return id.n ? rp_vec_push(&r->build_ids, id, r->p.err) : RP_OK;
}

/* Reads how a mapping identifies its file: device, inode and generation, or its build id. */
static void read_file_id(struct mapped *m, struct cut c, uint16_t misc)
{
    cut_skip(&c, 8);
    if (c.end - c.at < 16)
        return;
    if (!(misc & HAS_BUILD_ID)) {
        m->file.inode = cut_u64(&c);
        return;
    }
    m->file.nbuild_id = length_of_id(c.at - 4, c.at[-8]);
    memcpy(m->file.build_id, c.at - 4, m->file.nbuild_id);
}

static enum rp_code read_comm(struct perf_data *r, struct cut c)
{
    uint32_t pid = cut_u32(&c), tid = cut_u32(&c);
    struct rp_bytes name;

    if (c.short_of)
        return bad_record(r, c.end, "a name of a thread is too short");
    RP_TRY(keep_text(r, cut_text(&c), &name));
    uint32_t index = (uint32_t)r->comms.n;
    RP_TRY(rp_vec_push(&r->comms, name, r->p.err));
    return rp_map_put(&r->thread_of, (uint64_t)pid << 32 | tid, index, r->p.err);
}

/* The newest mapping of an address in the process, or in those that it was forked from. */
static struct mapped *find_mapping(const struct perf_data *r, int64_t pid, uint64_t ip)
{
    for (int deep = 0; deep < FORKS_DEEP && (pid >= 0 || pid == KERNEL_PID); deep++) {
        uint32_t at = rp_map_get(&r->process_of, (uint64_t)pid);

        if (at == RP_MAP_NONE)
            return NULL;
        const struct process *process = &r->processes.at[at];
        for (size_t i = process->maps.n; i-- > 0;)
            if (ip >= process->maps.at[i].from && ip < process->maps.at[i].to)
                return &process->maps.at[i];
        if (pid == KERNEL_PID || process->parent == pid)
            return NULL;
        pid = process->parent;
    }
    return NULL;
}

/* ------------------------------------------------------------------ frames */

/* Finds the name of an address by a symbol; empty if there is none. */
static enum rp_code find_name(struct perf_data *r, struct mapped *m, int64_t pid, uint64_t ip,
                              struct rp_bytes *out)
{
    *out = (struct rp_bytes){0};
    if (m) {
        /* The symbols of a file are read when an address in it is first named. */
        if (!m->has_symbols && m->path.n && m->path.at[0] == '/' &&
            !rp_bytes_begin(m->path, "//")) {
            m->has_symbols = true;
            m->file.path = (const char *)m->path.at;
            for (size_t i = 0; i < r->build_ids.n && !m->file.nbuild_id; i++)
                if (r->build_ids.at[i].path.n == m->path.n &&
                    !memcmp(r->build_ids.at[i].path.at, m->path.at, m->path.n)) {
                    m->file.nbuild_id = r->build_ids.at[i].n;
                    memcpy(m->file.build_id, r->build_ids.at[i].bytes, RP_BUILD_ID);
                }
            RP_TRY(rp_symbols_open(&r->symbols, &m->file, &m->symbols, r->p.err));
        }
    }
    if (m && m->symbols != RP_NONE)
        *out = rp_symbols_at(&r->symbols, m->symbols, ip - m->from + m->offset);
    else if (!m || !m->has_symbols) /* the memory does not belong to a file */
        RP_TRY(rp_symbols_made(&r->symbols, pid, ip, out, r->p.err));
    return out->n ? keep_text(r, *out, out) : RP_OK;
}

static enum rp_code name_address(struct perf_data *r, struct mapped *m, int64_t pid, uint64_t ip,
                                 bool kernel, struct rp_profile_frame *out)
{
    struct rp_bytes name = {0};

    if (!kernel)
        RP_TRY(find_name(r, m, pid, ip, &name));
    if (!m && name.n) {
        *out = rp_profile_parse_frame(name); /* names of Python's trampolines contain the file */
        out->kind = out->kind == RP_FRAME_PYTHON ? RP_FRAME_PYTHON : RP_FRAME_NATIVE;
        return RP_OK;
    }
    if (!name.n)
        name = rp_bytes_of(rp_profile_place(&r->texts, m ? m->path : rp_bytes_of(""),
                                            m ? ip - m->from + m->offset : ip));
    RP_TRY(rp_arena_check(&r->texts, "naming addresses", r->p.err));
    *out = (struct rp_profile_frame){.name = name,
                                     .file = m ? m->path : rp_bytes_of(kernel ? "[kernel]" : ""),
                                     .kind = kernel ? RP_FRAME_KERNEL : RP_FRAME_NATIVE};
    return RP_OK;
}

static enum rp_code keep_address(struct perf_data *r, int64_t pid, uint64_t ip, bool kernel)
{
    struct mapped *m = find_mapping(r, kernel ? KERNEL_PID : pid, ip);
    uint64_t place = m ? ip - m->from + m->offset : ip;
    uint64_t owner =
        m || kernel ? 0 : (uint64_t)pid << 32; /* two processes have different code here */
    uint64_t key = rp_hash_u64(place) ^ rp_hash_u64(m ? 2 + (uint64_t)m->id : kernel | owner);
    uint32_t at, fresh = (uint32_t)r->frames.n;
    struct rp_profile_frame f;

    RP_TRY(rp_map_intern(&r->frame_of, key, fresh, &at, r->p.err));
    if (at == fresh) {
        RP_TRY(name_address(r, m, pid, ip, kernel, &f));
        RP_TRY(rp_vec_push(&r->frames, f, r->p.err));
    }
    return rp_profile_keep(&r->p, &r->frames.at[at]);
}

static enum rp_code keep_chain(struct perf_data *r, struct cut *c, int64_t pid, bool kernel)
{
    uint64_t n = cut_u64(c);
    bool first = true;

    if (n > (uint64_t)(c->end - c->at) / 8)
        return bad_record(r, c->at, "a call chain is longer than its sample");
    for (; n; n--) {
        uint64_t ip = cut_u64(c);

        if (ip >= CONTEXT) {
            kernel = ip == IN_KERNEL;
            continue;
        }
        /* all but the first are return addresses, so the call is before them */
        RP_TRY(keep_address(r, pid, first ? ip : ip - 1, kernel));
        first = false;
    }
    return RP_OK;
}

/* ------------------------------------------------------------------ samples */

static const struct perf_attr *attr_of_sample(const struct perf_data *r, struct cut c,
                                              uint32_t *index)
{
    *index = r->chosen;
    if (r->attrs.n > 1 && r->attrs.at[0].sample_type & SAMPLE_IDENTIFIER) {
        uint32_t at = rp_map_get(&r->attr_of, cut_u64(&c));

        *index = at == RP_MAP_NONE ? r->chosen : at;
    }
    return &r->attrs.at[*index];
}

/* Clocks, cycles and instructions count while a thread runs; a page fault or a switch says nothing
   about that. */
static bool counts_while_running(const struct perf_data *r)
{
    const struct perf_attr *a = &r->attrs.at[r->chosen];

    return (a->type == 0 && (a->config & UINT32_MAX) < 2) || (a->type == 1 && a->config < 2);
}

static enum rp_code read_sample(struct perf_data *r, struct cut c, uint16_t misc)
{
    uint64_t ip = 0, time = UINT64_MAX;
    uint32_t index, pid = 0, tid = 0;
    bool kernel = (misc & CPU_MODE) == MODE_KERNEL;

    if (!r->attrs.n)
        return bad_record(r, c.at, "a sample precedes the attributes of its event");
    if (!r->has_chosen) {
        /* Chooses the first event that is not a dummy, because a trace has one unit. */
        r->has_chosen = true;
        for (r->chosen = 0; r->chosen + 1 < r->attrs.n; r->chosen++)
            if (strcmp(event_name(&r->attrs.at[r->chosen]), "dummy") != 0)
                break;
        const struct perf_attr *a = &r->attrs.at[r->chosen];
        const char *name = event_name(a);
        bool is_time = a->type == 1 && a->config < 2 && has_weight(a);
        RP_TRY(rp_profile_unit(&r->p, is_time ? RP_WEIGHT_NS : RP_WEIGHT_COUNT,
                               has_weight(a) ? name : "samples"));
    }
    const struct perf_attr *a = attr_of_sample(r, c, &index);
    uint64_t type = a->sample_type;
    if (index != r->chosen) {
        r->others++;
        return RP_OK;
    }
    cut_skip(&c, type & SAMPLE_IDENTIFIER ? 8 : 0);
    ip = type & SAMPLE_IP ? cut_u64(&c) : 0;
    if (type & SAMPLE_TID) {
        pid = cut_u32(&c);
        tid = cut_u32(&c);
    }
    time = type & SAMPLE_TIME ? cut_u64(&c) : UINT64_MAX;
    for (const int *bit = (const int[]){SAMPLE_ADDR, SAMPLE_ID, SAMPLE_STREAM, SAMPLE_CPU, 0}; *bit;
         bit++)
        cut_skip(&c, type & (uint64_t)*bit ? 8 : 0);
    uint64_t period = type & SAMPLE_PERIOD ? cut_u64(&c) : has_weight(a) ? a->period : 1;
    if (type & SAMPLE_READ) {
        uint64_t each = 1 + (a->read_format >> 2 & 1) + (a->read_format >> 4 & 1);
        uint64_t times = (a->read_format & 1) + (a->read_format >> 1 & 1), n = 1;
        if (a->read_format & 8)
            n = cut_u64(&c);
        if (n > UINT16_MAX)
            n = UINT16_MAX; /* no record is as long */
        cut_skip(&c, 8 * (times + n * each));
    }
    if (type & SAMPLE_CALLCHAIN)
        RP_TRY(keep_chain(r, &c, (int32_t)pid, kernel));
    if (c.short_of)
        return bad_record(r, c.end, "a sample is too short");
    if (!r->p.kept.n && type & SAMPLE_IP)
        RP_TRY(keep_address(r, (int32_t)pid, ip, kernel));
    uint32_t at = rp_map_get(&r->thread_of, (uint64_t)pid << 32 | tid);
    struct rp_bytes name = at == RP_MAP_NONE ? rp_bytes_of("") : r->comms.at[at];
    rp_track track;
    RP_TRY(rp_profile_thread(&r->p, (int32_t)pid, (int32_t)tid, name, &track));
    RP_TRY(rp_profile_push_kept(&r->p));
    return rp_profile_sample(
        &r->p, track, time < (uint64_t)RP_TIME_MAX_NS ? (int64_t)time : RP_NO_TS,
        period < INT64_MAX / 4 ? (int64_t)period : 0, counts_while_running(r) ? RP_SAMPLE_RAN : 0);
}

/* ------------------------------------------------------------------ records */

/* Notes a feature that is not read, and that should not be shared. */
static void note_feature(struct perf_data *r, uint64_t feature)
{
    r->p.unread |= feature == HOSTNAME       ? RP_SECRET_BIT(HOST)
                   : feature == COMMAND_LINE ? RP_SECRET_BIT(COMMAND)
                                             : 0;
}

static enum rp_code read_record(struct perf_data *r, uint32_t type, uint16_t misc, struct cut c)
{
    uint32_t size = 0;

    switch (type) {
    case RECORD_MMAP:
    case RECORD_MMAP2: {
        /* A mapping of a file into memory, in either form of the record. */
        int64_t pid = (int32_t)cut_u32(&c);
        struct mapped m = {.id = r->nmapped, .symbols = RP_NONE};
        struct process *process;
        cut_u32(&c);
        m.from = cut_u64(&c);
        m.to = m.from + cut_u64(&c);
        m.offset = cut_u64(&c);
        if (type == RECORD_MMAP2) {
            read_file_id(&m, c, misc);
            cut_skip(&c, 32);
        }
        if (c.short_of)
            return bad_record(r, c.end, "a mapping is too short");
        if ((misc & CPU_MODE) == MODE_KERNEL)
            pid = KERNEL_PID;
        r->nmapped++;
        RP_TRY(keep_text(r, cut_text(&c), &m.path));
        RP_TRY(process_at(r, pid, &process));
        return rp_vec_push(&process->maps, m, r->p.err);
    }
    case RECORD_COMM:
        return read_comm(r, c);
    case RECORD_FORK: {
        uint32_t pid = cut_u32(&c), parent = cut_u32(&c);
        struct process *child;
        if (c.short_of || pid == parent)
            return RP_OK;
        RP_TRY(process_at(r, pid, &child));
        child->parent = parent;
        return RP_OK;
    }
    case RECORD_SAMPLE:
        return read_sample(r, c, misc);
    case RECORD_BUILD_ID:
        return read_build_id(r, c, misc);
    case RECORD_FEATURE: /* in a pipe */
        note_feature(r, cut_u64(&c));
        return RP_OK;
    case RECORD_ATTR:
        RP_TRY(add_attr(r, c));
        memcpy(&size, c.at + 4, 4);
        cut_skip(&c, size);
        return add_ids(r, c);
    default:
        return RP_OK;
    }
}

/* The size of what follows a record beyond its own size. */
static uint64_t size_after(uint32_t type, struct cut c)
{
    if (type == RECORD_TRACING_DATA)
        return ((uint64_t)cut_u32(&c) + 7) & ~UINT64_C(7);
    return type == RECORD_AUXTRACE ? cut_u64(&c) : 0;
}

struct record {
    uint32_t type;
    uint16_t misc;
    struct cut body;
    const uint8_t *next; /* what follows it */
    bool is_whole;       /* set if it ends before the bytes do */
};

static enum rp_code take_record(struct perf_data *r, const uint8_t *at, const uint8_t *end,
                                struct record *out)
{
    struct cut head = {at, end, false};

    *out = (struct record){.type = cut_u32(&head)};
    uint32_t both = cut_u32(&head);
    if (head.short_of)
        return RP_OK;
    out->misc = (uint16_t)both;
    uint16_t size = (uint16_t)(both >> 16);
    if (size < 8 || out->type >= RECORD_TYPES)
        return r->is_pipe && r->p.samples ? RP_OK /* the rest is what perf printed after the file */
                                          : bad_record(r, at, "this is not a record of perf");
    if (size > end - at)
        return RP_OK;
    out->is_whole = true;
    out->body = (struct cut){at + 8, at + size, false};
    uint64_t after = size_after(out->type, out->body);
    at += size;
    out->next = after < (uint64_t)(end - at) ? at + after : end;
    return RP_OK;
}

static enum rp_code read_compressed(struct perf_data *r, struct cut c, bool second)
{
    struct rp_codec_end ended = {0};
    uint64_t n = second ? cut_u64(&c) : (uint64_t)(c.end - c.at);
    struct rp_feed feed = {.at = c.at};
    size_t got;

    if (c.short_of || n > (uint64_t)(c.end - c.at))
        return bad_record(r, c.at, "a compressed record is too short");
    feed.end = c.at + n;
    feed.end_offset = (uint64_t)(feed.end - r->p.t.bytes);
    if (rp_codec_zstd.missing)
        return rp_err_set(r->p.err, RP_UNSUPPORTED,
                          "the recording is compressed with zstd: install %s",
                          rp_codec_zstd.missing);
    if (!r->zstd)
        RP_TRY(rp_codec_zstd.open(&r->zstd, r->p.err));
    do {
        RP_TRY(rp_vec_reserve(&r->plain, r->plain.n + (64 << 10), r->p.err));
        RP_TRY(rp_codec_zstd.read(r->zstd, &feed, r->plain.at + r->plain.n, 64 << 10, &got, &ended,
                                  r->p.err));
        r->plain.n += got;
        r->end_at = feed.end_offset;

        /* Reads what was decompressed so far; a record that does not end there is kept for
           later. */
        const uint8_t *at = r->plain.at, *end = at + r->plain.n;
        struct record record;
        for (;; at = record.next) {
            RP_TRY(take_record(r, at, end, &record));
            if (!record.is_whole)
                break;
            if (record.type == RECORD_COMPRESSED || record.type == RECORD_COMPRESSED2)
                return bad_record(r, at, "a compressed record is inside another one");
            RP_TRY(read_record(r, record.type, record.misc, record.body));
        }
        r->plain.n = (size_t)(end - at);
        memmove(r->plain.at, at, r->plain.n);
    } while (got);
    return RP_OK;
}

static enum rp_code read_records(struct perf_data *r, const uint8_t *at, const uint8_t *end)
{
    struct record record;

    for (;; at = record.next) {
        RP_TRY(take_record(r, at, end, &record));
        if (!record.is_whole)
            return RP_OK;
        if (record.type == RECORD_COMPRESSED || record.type == RECORD_COMPRESSED2)
            RP_TRY(read_compressed(r, record.body, record.type == RECORD_COMPRESSED2));
        else
            RP_TRY(read_record(r, record.type, record.misc, record.body));
        if (r->p.samples % 1024 == 1)
            RP_TRY(rp_proto_trace_progress(&r->p.t, at, r->p.err));
    }
}

/* ------------------------------------------------------------------ the file */

struct section {
    uint64_t at, n;
};

static struct section cut_section(struct cut *c)
{
    struct section s = {cut_u64(c), 0};

    s.n = cut_u64(c);
    return s;
}

static bool is_inside(const struct perf_data *r, struct section s)
{
    return s.at <= r->p.t.n && s.n <= r->p.t.n - s.at;
}

static enum rp_code read_attrs(struct perf_data *r, struct section attrs, uint64_t size)
{
    const uint8_t *bytes = r->p.t.bytes;

    if (!is_inside(r, attrs) || size < ATTR_LEAST + 16)
        return bad_record(r, bytes + 16, "the attributes of events are outside of the file");
    for (uint64_t at = attrs.at; attrs.at + attrs.n - at >= size; at += size) {
        struct cut c = {bytes + at, bytes + at + size, false};
        struct cut ids = {c.end - 16, c.end, false};
        struct section s = cut_section(&ids);

        RP_TRY(add_attr(r, c));
        if (is_inside(r, s))
            RP_TRY(add_ids(r, (struct cut){bytes + s.at, bytes + s.at + s.n, false}));
    }
    return RP_OK;
}

/* The build ids come after the records; sections of features are in the order of their bits. */
static enum rp_code read_features(struct perf_data *r, struct section data)
{
    const uint8_t *bytes = r->p.t.bytes;
    struct section table = {data.at + data.n, 32};
    uint64_t features;
    struct record record;

    memcpy(&features, bytes + FEATURES_AT, 8);
    for (unsigned bit = 0; bit < 64; bit++)
        if (features >> bit & 1)
            note_feature(r, bit);
    if (!(features >> BUILD_IDS & 1))
        return RP_OK;
    table.at += 16 * (uint64_t)(features & 1) + 16 * (uint64_t)(features >> 1 & 1);
    if (!is_inside(r, table))
        return RP_OK;
    struct section ids = cut_section(&(struct cut){bytes + table.at, bytes + table.at + 16, false});
    if (!is_inside(r, ids))
        return RP_OK;
    for (const uint8_t *at = bytes + ids.at;; at = record.next) {
        uint32_t size = 0;

        if (bytes + ids.at + ids.n - at < 8)
            return RP_OK;
        memcpy(&size, at + 4, 4);
        size >>= 16;
        if (size < 8 || size > bytes + ids.at + ids.n - at)
            return RP_OK;
        memcpy(&record.misc, at + 4, 2);
        RP_TRY(read_build_id(r, (struct cut){at + 8, at + size, false}, record.misc));
        record.next = at + size;
    }
}

static void release_perf(struct perf_data *r)
{
    rp_profile_release(&r->p);
    for (size_t i = 0; i < r->processes.n; i++)
        rp_vec_release(&r->processes.at[i].maps);
    RP_EACH(rp_vec_release, &r->processes, &r->attrs, &r->comms, &r->frames, &r->build_ids);
    rp_symbols_release(&r->symbols);
    rp_vec_release(&r->plain);
    RP_EACH(rp_map_release, &r->process_of, &r->attr_of, &r->thread_of, &r->frame_of);
    rp_arena_release(&r->texts);
    if (r->zstd)
        rp_codec_zstd.close(r->zstd);
}

static enum rp_code read_perf_data(struct rp_input *in, const struct rp_read_options *options,
                                   struct rp_import *to, struct rp_err *err)
{
    RP_SCOPED(release_perf) struct perf_data r = {.texts = RP_ARENA_INIT};

    RP_TRY(rp_profile_begin(&r.p, in, options, "perf-data", err));
    if (r.p.t.n < HEADER_PIPE)
        return rp_err_set(err, RP_FORMAT, "the header of perf is truncated");
    const uint8_t *bytes = r.p.t.bytes;
    struct cut c = {bytes + 8, bytes + r.p.t.n, false};
    uint64_t size = cut_u64(&c);
    struct section data = {HEADER_PIPE, r.p.t.n - HEADER_PIPE};
    r.is_pipe = size == HEADER_PIPE;
    if (!r.is_pipe) {
        uint64_t attr_size = cut_u64(&c);
        struct section attrs = cut_section(&c);
        data = cut_section(&c);
        if (c.short_of || size < HEADER_FILE || r.p.t.n < HEADER_FILE)
            return bad_record(&r, bytes + 8, "the header is not one of perf");
        RP_TRY(read_attrs(&r, attrs, attr_size));
        if (!data.n && data.at < r.p.t.n)
            data.n = r.p.t.n - data.at; /* perf was killed before it wrote the size */
        if (!is_inside(&r, data))
            return bad_record(&r, bytes + 40, "the records end beyond the file: it is truncated");
        RP_TRY(read_features(&r, data));
    }
    RP_TRY(read_records(&r, bytes + data.at, bytes + data.at + data.n));
    if (r.others)
        RP_TRY(rp_builder_warn(r.p.t.builder, r.p.err, "%llu samples of other events were left out",
                               (unsigned long long)r.others));
    return rp_profile_end(&r.p, to);
}

static enum rp_sniff sniff_perf_data(const uint8_t *head, size_t n, const char *file)
{
    (void)file;
    return n >= 16 && !memcmp(head, "PERFILE2", 8) ? RP_SNIFF_CERTAIN : RP_SNIFF_NO;
}

const struct rp_format rp_format_perf_data = {
    .name = "perf-data",
    .summary = "perf.data: samples of call chains",
    .files = "perf.data, *.data",
    .written_by = "perf record, also to a pipe and with -z",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_perf_data,
    .read = read_perf_data,
};
