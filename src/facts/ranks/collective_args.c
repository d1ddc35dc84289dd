/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The innermost source counts: the kernel's own arguments, then those of the ancestors of its
 * launch, then those of the collective that was recorded right after the launch. Names are compared
 * without case and underscores, because every layer spells them differently (AllReduce, allreduce,
 * all_reduce).
 */
#include "facts/ranks/collective_args.h"

#include "base/hash.h"
#include "facts/torch_names.h"
#include "trace/device_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

const char *const rp_coll_kind_names[RP_COLL_KINDS] = {
#define KIND_TEXT(name, text, factor) text,
    RP_COLL_MAP(KIND_TEXT)
#undef KIND_TEXT
};

/* The first match decides, so longer names come first. */
static const struct {
    const char *part;
    enum rp_coll_kind kind;
} kinds[] = {
    {"allreduce", RP_COLL_ALL_REDUCE},
    {"allgather", RP_COLL_ALL_GATHER},
    {"reducescatter", RP_COLL_REDUCE_SCATTER},
    {"alltoall", RP_COLL_ALL_TO_ALL},
    {"broadcast", RP_COLL_BROADCAST},
    {"bcast", RP_COLL_BROADCAST},
    {"sendrecv", RP_COLL_SEND_RECV},
    {"barrier", RP_COLL_BARRIER},
    {"winfence", RP_COLL_BARRIER},
    {"crossdevicereduce", RP_COLL_ALL_REDUCE},
    {"quickreduce", RP_COLL_ALL_REDUCE},
    {"customar", RP_COLL_ALL_REDUCE},
    {"oneshot", RP_COLL_ALL_REDUCE},
    {"twoshot", RP_COLL_ALL_REDUCE},
    {"dispatch", RP_COLL_ALL_TO_ALL}, /* expert parallelism */
    {"combine", RP_COLL_ALL_TO_ALL},
    {"gather", RP_COLL_GATHER},
    {"scatter", RP_COLL_SCATTER},
    {"send", RP_COLL_SEND_RECV},
    {"recv", RP_COLL_SEND_RECV},
    {"reduce", RP_COLL_REDUCE},
};

enum rp_coll_kind rp_coll_kind_of(const char *name)
{
    char plain[128];
    size_t n = 0, i;

    for (; *name && *name != '(' && n + 1 < sizeof plain; name++)
        if (*name != '_')
            plain[n++] = (char)(*name >= 'A' && *name <= 'Z' ? *name | 32 : *name);
    plain[n] = '\0';
    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strstr(plain, kinds[i].part))
            return kinds[i].kind;
    return RP_COLL_OTHER;
}

const char *const rp_dimension_names[RP_DIMENSIONS] = {NULL,
#define DIMENSION_TEXT(name, text) text,
                                                       RP_DIMENSION_MAP(DIMENSION_TEXT)
#undef DIMENSION_TEXT
};

/* Words in names of groups: of DeviceMesh ("mesh_dp_shard"), Megatron and DeepSpeed. The first in
   this order decides: replicas of an expert are EXPERT_DATA_PARALLEL. */
static const struct {
    const char *word;
    enum rp_dimension dimension;
} dimension_words[] = {
    {"tp", RP_DIMENSION_TENSOR},       {"tensor", RP_DIMENSION_TENSOR},
    {"pp", RP_DIMENSION_PIPELINE},     {"pipeline", RP_DIMENSION_PIPELINE},
    {"pipe", RP_DIMENSION_PIPELINE},   {"dp", RP_DIMENSION_DATA},
    {"data", RP_DIMENSION_DATA},       {"ddp", RP_DIMENSION_DATA},
    {"fsdp", RP_DIMENSION_DATA},       {"hsdp", RP_DIMENSION_DATA},
    {"shard", RP_DIMENSION_DATA},      {"replicate", RP_DIMENSION_DATA},
    {"cp", RP_DIMENSION_CONTEXT},      {"sp", RP_DIMENSION_CONTEXT},
    {"context", RP_DIMENSION_CONTEXT}, {"sequence", RP_DIMENSION_CONTEXT},
    {"ep", RP_DIMENSION_EXPERT},       {"expert", RP_DIMENSION_EXPERT},
};

static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);

    while (*text) {
        size_t n = 0;

        while ((text[n] | 32) >= 'a' && (text[n] | 32) <= 'z')
            n++;
        if (n == len && !strncasecmp(text, word, n))
            return true;
        text += n + !n;
    }
    return false;
}

enum rp_dimension rp_dimension_of(const char *description)
{
    for (size_t i = 0; i < sizeof dimension_words / sizeof dimension_words[0]; i++)
        if (has_word(description, dimension_words[i].word))
            return dimension_words[i].dimension;
    return RP_DIMENSION_UNKNOWN;
}

enum { PROTOCOLS = 3 };
static const char *const protocols[PROTOCOLS] = {"LL128", "LL", "SIMPLE"};

/* Longer names come before their endings; each has its protocols. */
#define ALGORITHM(name)                               \
    {                                                 \
        name,                                         \
        {                                             \
            name " LL128", name " LL", name " SIMPLE" \
        }                                             \
    }
static const struct {
    const char *name, *with[PROTOCOLS];
} algorithms[] = {ALGORITHM("COLLNET_DIRECT"),
                  ALGORITHM("COLLNET_CHAIN"),
                  ALGORITHM("NVLS_TREE"),
                  ALGORITHM("NVLS"),
                  ALGORITHM("RING"),
                  ALGORITHM("TREE"),
                  ALGORITHM("PAT")};

uint8_t rp_coll_algorithm_of(const char *name)
{
    const char *at;

    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
        size_t len = strlen(algorithms[i].name);

        at = strstr(name, algorithms[i].name);
        if (!at || (at > name && at[-1] != '_') || at[len] != '_')
            continue;
        for (size_t k = 0; k < PROTOCOLS; k++)
            if (!strncmp(at + len + 1, protocols[k], strlen(protocols[k])))
                return (uint8_t)(i * PROTOCOLS + k + 1);
    }
    return 0;
}

const char *rp_coll_algorithm_name(uint8_t algorithm)
{
    size_t i = algorithm ? (size_t)(algorithm - 1) / PROTOCOLS : SIZE_MAX;

    return i < sizeof algorithms / sizeof algorithms[0]
               ? algorithms[i].with[(algorithm - 1) % PROTOCOLS]
               : NULL;
}

double rp_coll_bus_factor(enum rp_coll_kind kind, int64_t n)
{
    enum { NONE, ONE, PART, TWICE };
    static const uint8_t factors[RP_COLL_KINDS] = {
#define KIND_FACTOR(name, text, factor) factor,
        RP_COLL_MAP(KIND_FACTOR)
#undef KIND_FACTOR
    };

    if (n < 2 || factors[kind] == NONE)
        return 0;
    if (factors[kind] == ONE)
        return 1;
    return (factors[kind] == TWICE ? 2.0 : 1.0) * (double)(n - 1) / (double)n;
}

const char *rp_coll_dtype(const char *text, size_t len, int64_t *bytes)
{
    static const struct {
        const char *spelled, *name;
        int64_t bytes;
    } types[] = {
        {"Half", "f16", 2},
        {"BFloat16", "bf16", 2},
        {"float", "f32", 4},
        {"Float", "f32", 4},
        {"double", "f64", 8},
        {"Double", "f64", 8},
        {"int", "i32", 4},
        {"Int", "i32", 4},
        {"long", "i64", 8},
        {"Long", "i64", 8},
        {"long int", "i64", 8},
        {"short int", "i16", 2},
        {"Short", "i16", 2},
        {"signed char", "i8", 1},
        {"Char", "i8", 1},
        {"Byte", "u8", 1},
        {"unsigned char", "u8", 1},
        {"bool", "bool", 1},
        {"Bool", "bool", 1},
        {"Float8_e4m3fn", "f8e4m3", 1},
        {"Float8_e5m2", "f8e5m2", 1},
        {"complex<float>", "c64", 8},
        {"ComplexFloat", "c64", 8},
    };

    if (len > 5 && !memcmp(text, "c10::", 5)) {
        text += 5;
        len -= 5;
    }
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strlen(types[i].spelled) == len && !memcmp(types[i].spelled, text, len)) {
            *bytes = types[i].bytes;
            return types[i].name;
        }
    return NULL;
}

bool rp_coll_count_elements(const char *dims, int64_t *sum, int64_t *tensors)
{
    int64_t product = 1;
    bool any = false;

    *sum = *tensors = 0;
    for (; *dims; dims++) {
        if (*dims == '[') {
            product = 1;
            any = false;
        } else if (*dims >= '0' && *dims <= '9') {
            int64_t v = 0;

            for (; *dims >= '0' && *dims <= '9'; dims++)
                if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *dims - '0', &v))
                    return false;
            if (__builtin_mul_overflow(product, v, &product))
                return false;
            any = true;
            dims--;
        } else if (*dims == ']') {
            if (any && __builtin_add_overflow(*sum, product, sum))
                return false;
            *tensors += any;
            any = false;
        }
    }
    return true;
}

int64_t rp_coll_elements(const char *dims)
{
    int64_t sum, tensors;

    return rp_coll_count_elements(dims, &sum, &tensors) && tensors ? sum : -1;
}

/* The common element type of a list such as ["float", "float"]; NULL if they differ. */
static const char *type_of_list(const char *list, int64_t *bytes)
{
    const char *found = NULL, *begin, *end;

    while ((begin = strchr(list, '"')) && (end = strchr(begin + 1, '"'))) {
        const char *type = rp_coll_dtype(begin + 1, (size_t)(end - begin - 1), bytes);

        if (!type || (found && type != found))
            return NULL;
        found = type;
        list = end + 1;
    }
    return found;
}

enum rp_code rp_coll_reader_init(struct rp_coll_reader *r, const struct rp_trace *trace,
                                 struct rp_err *err)
{
    struct {
        struct rp_arg_key *key;
        const char *text;
    } keys[] = {
        {&r->name, "Collective name"},
        {&r->dtype, "dtype"},
        {&r->in, "In msg nelems"},
        {&r->out, "Out msg nelems"},
        {&r->group, "Process Group Name"},
        {&r->seq, "Seq"},
        {&r->size, "Group size"},
        {&r->types, "Input type"},
        {&r->members, "Process Group Ranks"},
        {&r->bytes, "Message size [bytes]"},
        {&r->algorithm, "algorithm"},
        {&r->protocol, "protocol"},
        {&r->description, "Process Group Description"},
    };

    *r = (struct rp_coll_reader){.trace = trace};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        RP_TRY(rp_arg_key_init(keys[i].key, trace, keys[i].text, err));
    return rp_arg_key_init_dims(&r->dims, trace, err);
}

void rp_coll_reader_release(struct rp_coll_reader *r)
{
    struct rp_arg_key *keys[] = {
        &r->name, &r->dtype, &r->in,      &r->out,   &r->group,     &r->seq,      &r->size,
        &r->dims, &r->types, &r->members, &r->bytes, &r->algorithm, &r->protocol, &r->description};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        rp_arg_key_release(keys[i]);
}

static void read_sizes(const struct rp_coll_reader *r, rp_event e, struct rp_coll_facts *f)
{
    rp_str text;

    if (f->in_elements < 0 && !rp_arg_key_int(&r->in, e, &f->in_elements))
        f->in_elements = -1;
    if (f->out_elements < 0 && !rp_arg_key_int(&r->out, e, &f->out_elements))
        f->out_elements = -1;
    if (!f->dtype && rp_arg_key_text(&r->dtype, e, &text))
        f->dtype = rp_coll_dtype(rp_trace_str(r->trace, text), rp_trace_str_len(r->trace, text),
                                 &f->item_bytes);
    /* NCCL's own ranges state the bytes, but not the type. */
    if (f->in_elements < 0 && !f->dtype && rp_arg_key_int(&r->bytes, e, &f->in_elements))
        f->item_bytes = 1;
}

static void read_inputs(const struct rp_coll_reader *r, rp_event e, struct rp_coll_facts *f)
{
    rp_str dims, types;
    int64_t bytes;

    if (!rp_arg_key_text(&r->dims, e, &dims) || !rp_arg_key_text(&r->types, e, &types))
        return;
    const char *type = type_of_list(rp_trace_str(r->trace, types), &bytes);
    if (!type)
        return;
    f->dtype = type;
    f->item_bytes = bytes;
    f->in_elements = rp_coll_elements(rp_trace_str(r->trace, dims));
}

int64_t rp_coll_input_bytes(const struct rp_coll_reader *r, rp_event e)
{
    struct rp_coll_facts f = {.in_elements = -1};
    int64_t bytes;

    read_inputs(r, e, &f);
    return f.in_elements < 0 || __builtin_mul_overflow(f.in_elements, f.item_bytes, &bytes) ? -1
                                                                                            : bytes;
}

int64_t rp_coll_input_elements(const struct rp_coll_reader *r, rp_event e)
{
    rp_str dims;

    return rp_arg_key_text(&r->dims, e, &dims) ? rp_coll_elements(rp_trace_str(r->trace, dims))
                                               : -1;
}

/* The shapes of operators include all inputs; those of annotations only what is sent. */
static void read_shapes(const struct rp_coll_reader *r, rp_event e, struct rp_coll_facts *f)
{
    const struct rp_trace *t = r->trace;
    const char *name = rp_trace_str(t, t->ev.name[e]);

    if (t->ev.kind[e] != RP_KIND_ANNOTATION || !strchr(name, ':'))
        return;
    if (!f->named && rp_coll_kind_of(name) != RP_COLL_OTHER) {
        f->kind = rp_coll_kind_of(name);
        f->named = true;
    }
    if (f->in_elements < 0)
        read_inputs(r, e, f);
}

/* Finds the elements and type of the first tensor among the inputs of an operator, as in dims "[[8,
   4096], [], []]" with types ["c10::BFloat16", "Scalar", ""]. */
static bool first_tensor(const char *dims, const char *types, int64_t *elements, const char **dtype,
                         int64_t *item_bytes)
{
    int depth = 0;

    for (; *dims && *types; dims++) {
        int64_t n;

        depth += *dims == '[' ? 1 : *dims == ']' ? -1 : 0;
        if (*dims != '[' || depth != 2)
            continue;
        const char *quote = strchr(types, '"');
        const char *close = quote ? strchr(quote + 1, '"') : NULL;
        const char *end = strchr(dims, ']');
        if (!close || !end)
            return false;
        *dtype = rp_coll_dtype(quote + 1, (size_t)(close - quote - 1), item_bytes);
        if (*dtype && dims[1] != ']' && dims[1] != '[') {
            for (n = 1, dims++; dims < end; dims++) {
                char *after;
                long long v = strtoll(dims, &after, 10);

                if (after == dims)
                    continue; /* a comma or a space */
                if (v < 0 || __builtin_mul_overflow(n, v, &n))
                    return false;
                dims = after - 1;
            }
            *elements = n;
            return true;
        }
        types = close + 1;
    }
    return false;
}

/* Reads an operator that is a collective, such as symm_mem::multimem_all_reduce_ or
   vllm::all_reduce; it works on its first tensor. */
static void read_operator(const struct rp_coll_reader *r, rp_event e, struct rp_coll_facts *f)
{
    const struct rp_trace *t = r->trace;
    const char *name = rp_trace_str(t, t->ev.name[e]), *dtype = NULL;
    int64_t elements, bytes;
    rp_str dims, types;

    if (t->ev.kind[e] != RP_KIND_CPU_OP || f->in_elements >= 0 || f->out_elements >= 0 ||
        rp_torch_op(name) != name || rp_torch_means(name, RP_TORCH_SENDS))
        return;
    enum rp_coll_kind kind = rp_coll_kind_of(name);
    if (kind == RP_COLL_OTHER || !rp_arg_key_text(&r->dims, e, &dims) ||
        !rp_arg_key_text(&r->types, e, &types) ||
        !first_tensor(rp_trace_str(t, dims), rp_trace_str(t, types), &elements, &dtype, &bytes))
        return;
    f->in_elements = elements;
    f->dtype = dtype;
    f->item_bytes = bytes;
    if (!f->named) {
        f->kind = kind;
        f->named = true;
    }
}

/* For NCCL: both its profiler and names of kernels tell algorithm and protocol. */
static void read_algorithm(const struct rp_coll_reader *r, rp_event e, struct rp_coll_facts *f)
{
    const struct rp_trace *t = r->trace;
    rp_str algorithm, protocol;
    char text[48];

    if (f->algorithm)
        return;
    f->algorithm = rp_coll_algorithm_of(rp_trace_str(t, t->ev.name[e]));
    if (f->algorithm || !rp_arg_key_text(&r->algorithm, e, &algorithm) ||
        !rp_arg_key_text(&r->protocol, e, &protocol))
        return;
    snprintf(text, sizeof text, "%.20s_%.20s", rp_trace_str(t, algorithm),
             rp_trace_str(t, protocol));
    f->algorithm = rp_coll_algorithm_of(text);
}

static void read_one(const struct rp_coll_reader *r, rp_event e, struct rp_coll_facts *f)
{
    rp_str text;

    read_algorithm(r, e, f);
    read_sizes(r, e, f);
    read_shapes(r, e, f);
    read_operator(r, e, f);
    if (rp_arg_key_text(&r->name, e, &text) && !f->named) {
        const char *name = rp_trace_str(r->trace, text);

        f->kind = rp_coll_kind_of(name);
        f->awaited = name[0] == 'I' && name[1] >= 'a' && name[1] <= 'z'; /* Iallreduce */
        f->named = f->kind != RP_COLL_OTHER; /* for "coalesced", the kernel tells more */
    }
    if (f->group == RP_NONE && f->group_number < 0 && !rp_arg_key_text(&r->group, e, &f->group))
        rp_arg_key_int(&r->group, e, &f->group_number);
    if (f->members == RP_NONE)
        rp_arg_key_text(&r->members, e, &f->members);
    if (!f->dimension && rp_arg_key_text(&r->description, e, &text))
        f->dimension = (uint8_t)rp_dimension_of(rp_trace_str(r->trace, text));
    if (f->seq < 0)
        rp_arg_key_int(&r->seq, e, &f->seq);
    if (!f->group_size)
        rp_arg_key_int(&r->size, e, &f->group_size);
}

/* The collective that was recorded right after the launch of its kernel, on the same thread, as
 * NCCL before 2.28 reports them to its plugins. If another launch comes in between, it belongs to
 * that. */
static rp_event collective_behind(const struct rp_trace *t, rp_event launch)
{
    int64_t end_ns = rp_event_end_ns(t, launch);
    rp_event last = t->tracks[t->ev.track[launch]].end, e;

    for (e = launch + 1; e < last && e < launch + RP_NEARBY_EVENTS; e++) {
        if (t->ev.ts_ns[e] < end_ns)
            continue; /* inside the call */
        if (t->ev.kind[e] == RP_KIND_COMM_OP)
            return e;
        if (t->ev.link[e] != RP_NONE &&
            (rp_device_call_does(rp_trace_str(t, t->ev.name[e])) & RP_DOES_LAUNCH))
            return RP_NONE;
    }
    return RP_NONE;
}

struct rp_coll_facts rp_coll_read(const struct rp_coll_reader *r, rp_event e, rp_event launch)
{
    struct rp_coll_facts f = {.in_elements = -1,
                              .out_elements = -1,
                              .group = RP_NONE,
                              .members = RP_NONE,
                              .group_number = -1,
                              .seq = -1};
    rp_event call = launch;

    read_one(r, e, &f);
    for (; launch != RP_NONE; launch = r->trace->ev.parent[launch])
        read_one(r, launch, &f);
    if (!f.named && call != RP_NONE && (call = collective_behind(r->trace, call)) != RP_NONE)
        read_one(r, call, &f);
    if (!f.named)
        f.kind = rp_coll_kind_of(rp_trace_str(r->trace, r->trace->ev.name[e]));
    return f;
}

uint64_t rp_coll_group_hash(const struct rp_trace *t, const struct rp_coll_facts *f)
{
    char number[24];
    uint64_t hash;

    if (f->group != RP_NONE)
        hash = rp_hash_bytes(rp_trace_str(t, f->group), rp_trace_str_len(t, f->group)) | 1;
    else if (f->group_number >= 0)
        hash = rp_hash_bytes(number, (size_t)snprintf(number, sizeof number, "%lld",
                                                      (long long)f->group_number)) |
               1;
    else
        return 0;
    if (f->members != RP_NONE)
        hash ^= rp_hash_bytes(rp_trace_str(t, f->members), rp_trace_str_len(t, f->members)) << 1;
    return hash;
}
