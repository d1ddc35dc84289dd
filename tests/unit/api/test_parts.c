/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of every question about ranks can travel: the answer is the same to the byte where each
 * part is written, forgotten and read back before the parts are joined.
 */
#include "unit.h"

#include "dataset/dataset.h"
#include "dataset/question.h"

#include <reprise/reprise.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXAMPLES RP_SOURCE_DIR "/examples/"
#define ONE_STEP RP_SOURCE_DIR "/tests/data/ddp_step" /* three ranks */

/* The answer as JSON, in memory of the heap. */
static char *answer(struct rp_ctx *ctx, const char *const *paths, size_t npaths,
                    const char *question, const struct rp_setting *settings, size_t nsettings)
{
    struct rp_print_options options = {.struct_size = sizeof options, .format = RP_PRINT_JSON};
    struct rp_dataset *dataset = NULL;
    struct rp_result *result = NULL;
    struct rp_err err = RP_ERR_INIT;
    FILE *file = tmpfile();
    char *text;
    long n;

    assert_non_null(file);
    assert_ok(rp_open(ctx, paths, npaths, NULL, &dataset, &err), &err);
    assert_ok(rp_ask(ctx, dataset, question, settings, nsettings, &result, &err), &err);
    rp_dataset_free(dataset); /* what the result shows is its own */
    assert_ok(rp_result_print(result, &options, fileno(file), &err), &err);
    rp_result_free(result);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    n = ftell(file);
    rewind(file);
    text = calloc(1, (size_t)n + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)n, file), (size_t)n);
    fclose(file);
    return text;
}

static void compare(const char *question, const char *const *paths, size_t npaths,
                    const struct rp_setting *settings, size_t nsettings)
{
    struct rp_ctx *ctx = NULL;
    struct rp_err err = RP_ERR_INIT;
    char *direct, *resent;

    assert_ok(rp_ctx_new(NULL, &ctx, &err), &err);
    direct = answer(ctx, paths, npaths, question, settings, nsettings);
    ctx->resend_parts = true;
    resent = answer(ctx, paths, npaths, question, settings, nsettings);
    assert_true(strlen(direct) > 100);
    assert_string_equal(direct, resent);
    free(direct);
    free(resent);
    rp_ctx_free(ctx);
}

static bool is_about(const struct rp_setting *setting, const char *question)
{
    size_t len = strlen(question);

    return !strncmp(setting->name, question, len) && setting->name[len] == ' ';
}

/* Options that put more into a part, or other things: {"question option", value}. */
static void compare_with_options(const char *question, const char *const *paths, size_t npaths)
{
    static const struct rp_setting options[] = {
        {"report step", "4"},    {"top by", "op"},          {"top by", "module"},
        {"top by", "python"},    {"idle limit", "0"},       {"critpath step", "4"},
        {"stalls least", "9us"}, {"launches by", "stream"}, {"simulate collective", "ring"},
        {"diff step", "3"},      {"top by", "stream"},      {"simulate what-if", "cuda-graphs"},
    };

    compare(question, paths, npaths, NULL, 0);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (is_about(&options[i], question))
            compare(question, paths, npaths,
                    &(struct rp_setting){options[i].name + strlen(question) + 1, options[i].value},
                    1);
}

static void every_part_travels(void **state)
{
    static const char *const run[] = {ONE_STEP}, *const gpt[] = {EXAMPLES "gpt_bf16.json.gz"};
    static const char *const timeline[] = {EXAMPLES "tf_timeline.json.gz"};
    static const char *const pair[] = {EXAMPLES "gpt_bf16.json.gz", EXAMPLES "gpt_foreach.json.gz"};
    const struct rp_question *const *list;
    size_t i, n, asked = 0;

    UNUSED_STATE(state);
    list = rp_question_list(&n);
    for (i = 0; i < n; i++) {
        const struct rp_question_row *row = (const struct rp_question_row *)(const void *)list[i];

        if (!row->ranks.rank)
            continue;
        assert_non_null(row->ranks.part);
        asked++;
        if (!strcmp(list[i]->name, "diff")) {
            compare_with_options("diff", pair, 2);
            continue;
        }
        if (list[i]->anytime) { /* what it finds in a time depends on the machine */
            static const struct rp_setting enough[] = {{"budget", "3600"}, {"moves", "graphs"}};

            compare(list[i]->name, run, 1, enough, 2);
            compare(list[i]->name, gpt, 1, enough, 2);
            continue;
        }
        compare(list[i]->name, run, 1, NULL, 0);
        compare_with_options(list[i]->name, gpt, 1);
        compare(list[i]->name, timeline, 1, NULL, 0);
    }
    assert_true(asked >= 10);
}

/* ------------------------------------------------------------------ members */

static size_t bytes_of(const struct rp_field *f)
{
    switch (f->type) {
    case RP_T_PLAIN:
        return f->count_offset;
    case RP_T_BOOL:
        return sizeof(bool);
    case RP_T_RECORD:
        return f->item->size * (f->count_offset ? f->count_offset : 1);
    default:
        return 8;
    }
}

/* Whether all of a record is described, but what the compiler leaves free before a larger member.
   What is not described would be lost between two processes. */
static void check_members(const struct rp_type *type, unsigned depth)
{
    /* scope.judged of the critical path is not kept: its with_detail replaces it */
    bool has_gap = !strcmp(type->name, "critpath_part");
    uint8_t *known = calloc(1, type->size + 8);
    size_t i, from;

    assert_non_null(known);
    for (const struct rp_field *f = type->fields; f->doc && depth < 16; f++) {
        memset(known + f->offset, 1, bytes_of(f));
        if (f->type == RP_T_LIST || f->type == RP_T_MAP)
            memset(known + f->count_offset, 1, sizeof(size_t));
        if (f->type == RP_T_VEC) /* and how many it has room for */
            memset(known + f->count_offset, 1, 2 * sizeof(size_t));
        if (f->item && f->item != type && f->item->fields->type != RP_T_PLAIN)
            check_members(f->item, depth + 1);
    }
    for (i = from = 0; i < type->size; i++) {
        from = known[i] ? i + 1 : from;
        if (i + 1 - from >= 8 && !has_gap)
            fail_msg("'%s': its member at byte %zu of %zu is not described", type->name, from,
                     type->size);
    }
    free(known);
}

static void every_member_of_a_part_is_described(void **state)
{
    const struct rp_question *const *list;
    size_t i, n;

    UNUSED_STATE(state);
    list = rp_question_list(&n);
    for (i = 0; i < n; i++) {
        const struct rp_question_row *row = (const struct rp_question_row *)(const void *)list[i];

        if (row->ranks.part)
            check_members(row->ranks.part, 0);
    }
}

/* ------------------------------------------------------------------ digests */

#define SHARDS 3

struct digests {
    char folder[40], whole[64], parts[64], merged[64], part[SHARDS][80];
};

static void write_digest(struct rp_ctx *ctx, const char *const *paths, size_t npaths,
                         const char *output, const char *shard, const char *wanted)
{
    struct rp_setting settings[3] = {{"output", output}};
    size_t n = 1;

    if (shard)
        settings[n++] = (struct rp_setting){"shard", shard};
    if (wanted)
        settings[n++] = (struct rp_setting){"for", wanted};
    free(answer(ctx, paths, npaths, "digest", settings, n));
}

/* Of the whole run, of its shards in a folder, and the union of the shards. */
static void make_digests(struct rp_ctx *ctx, const char *const *paths, size_t npaths,
                         const char *wanted, struct digests *d)
{
    const char *parts[SHARDS];
    char shard[16];

    snprintf(d->folder, sizeof d->folder, "/tmp/reprise-digest-XXXXXX");
    assert_non_null(mkdtemp(d->folder));
    snprintf(d->whole, sizeof d->whole, "%s/whole.rpd", d->folder);
    snprintf(d->merged, sizeof d->merged, "%s/merged.rpd", d->folder);
    snprintf(d->parts, sizeof d->parts, "%s/parts", d->folder);
    assert_int_equal(mkdir(d->parts, 0700), 0);
    write_digest(ctx, paths, npaths, d->whole, NULL, wanted);
    for (int i = 0; i < SHARDS; i++) {
        /* names whose order is not that of the shards */
        snprintf(d->part[i], sizeof d->part[i], "%s/%c.rpd", d->parts, 'z' - i);
        snprintf(shard, sizeof shard, "%d/%d", i, SHARDS);
        write_digest(ctx, paths, npaths, d->part[i], shard, wanted);
        parts[SHARDS - 1 - i] = d->part[i];
    }
    write_digest(ctx, parts, SHARDS, d->merged, NULL, NULL);
}

static void remove_digests(const struct digests *d)
{
    for (int i = 0; i < SHARDS; i++)
        unlink(d->part[i]);
    unlink(d->whole);
    unlink(d->merged);
    rmdir(d->parts);
    assert_int_equal(rmdir(d->folder), 0);
}

/* The answer from digests is that from traces, to the byte. */
static void compare_digests(const char *const *paths, size_t npaths, const char *question,
                            const char *wanted, const struct rp_setting *settings, size_t n)
{
    struct rp_ctx *ctx = NULL;
    struct rp_err err = RP_ERR_INIT;
    char *direct, *other;
    struct digests d;

    assert_ok(rp_ctx_new(NULL, &ctx, &err), &err);
    make_digests(ctx, paths, npaths, wanted, &d);
    direct = answer(ctx, paths, npaths, question, settings, n);
    for (int i = 0; i < 3; i++) {
        const char *from[] = {i == 0 ? d.whole : i == 1 ? d.parts : d.merged};

        other = answer(ctx, from, 1, question, settings, n);
        assert_string_equal(direct, other);
        free(other);
    }
    free(direct);
    remove_digests(&d);
    rp_ctx_free(ctx);
}

static void every_question_takes_digests(void **state)
{
    static const char *const run[] = {ONE_STEP};
    static const struct rp_setting enough[] = {{"budget", "3600"}, {"moves", "graphs"}};
    const struct rp_question *const *list;
    size_t i, n, asked = 0;

    UNUSED_STATE(state);
    SKIP_WITHOUT_THREADS(); /* every_part_travels asks the same of threads */
    list = rp_question_list(&n);
    for (i = 0; i < n; i++) {
        const struct rp_question_row *row = (const struct rp_question_row *)(const void *)list[i];

        if (!row->ranks.rank || row->ranks.memory || row->ranks.join_two)
            continue;
        asked++;
        compare_digests(run, 1, list[i]->name, list[i]->name, enough, list[i]->anytime ? 2 : 0);
    }
    assert_true(asked >= 10);
}

/* Options that a part depends on are those of --for; others may be given when the question is. */
static void options_are_kept(void **state)
{
    static const char *const run[] = {ONE_STEP}, *const gpt[] = {EXAMPLES "gpt_bf16.json.gz"};
    static const struct rp_setting by[] = {{"by", "op"}, {"limit", "3"}};
    static const struct rp_setting step[] = {{"step", "4"}};
    static const struct rp_setting one[] = {{"rank", "1"}, {"limit", "2"}};

    UNUSED_STATE(state);
    compare_digests(gpt, 1, "top", "top --by op", by, 2);
    compare_digests(gpt, 1, "report", "report --step=4", step, 1);
    compare_digests(run, 1, "idle", "idle", one, 2);
}

/* Of two runs each may be a digest. */
static void runs_are_compared_by_digests(void **state)
{
    static const char *const a[] = {EXAMPLES "gpt_bf16.json.gz"};
    static const char *const b[] = {EXAMPLES "gpt_foreach.json.gz"};
    const char *paths[2] = {a[0], b[0]};
    struct rp_ctx *ctx = NULL;
    struct rp_err err = RP_ERR_INIT;
    char *direct, *other;
    struct digests d[2];

    UNUSED_STATE(state);
    assert_ok(rp_ctx_new(NULL, &ctx, &err), &err);
    make_digests(ctx, a, 1, "diff", &d[0]);
    make_digests(ctx, b, 1, "diff", &d[1]);
    direct = answer(ctx, paths, 2, "diff", NULL, 0);
    for (int i = 0; i < 3; i++) {
        const char *from[2] = {i & 1 ? a[0] : d[0].whole, i & 2 ? b[0] : d[1].whole};

        other = answer(ctx, from, 2, "diff", NULL, 0);
        assert_string_equal(direct, other);
        free(other);
    }
    free(direct);
    remove_digests(&d[0]);
    remove_digests(&d[1]);
    rp_ctx_free(ctx);
}

static char *read_file(const char *path, size_t *n)
{
    FILE *file = fopen(path, "rb");
    char *bytes = malloc(64 << 20);

    assert_non_null(file);
    assert_non_null(bytes);
    *n = fread(bytes, 1, 64 << 20, file);
    fclose(file);
    return bytes;
}

/* The same bytes, however many threads made them. */
static void digests_are_deterministic(void **state)
{
    static const char *const run[] = {ONE_STEP};
    struct rp_err err = RP_ERR_INIT;
    char *bytes[2], path[] = "/tmp/reprise-digest-XXXXXX";
    int fd = mkstemp(path);
    size_t n[2];

    UNUSED_STATE(state);
    assert_true(fd >= 0);
    close(fd);
    for (unsigned i = 0; i < 2; i++) {
        struct rp_ctx_options options = {.struct_size = sizeof options, .threads = 1 + 3 * i};
        struct rp_ctx *ctx = NULL;

        assert_ok(rp_ctx_new(&options, &ctx, &err), &err);
        unlink(path);
        write_digest(ctx, run, 1, path, NULL, NULL);
        bytes[i] = read_file(path, &n[i]);
        rp_ctx_free(ctx);
    }
    unlink(path);
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(bytes[0], bytes[1], n[0]);
    free(bytes[0]);
    free(bytes[1]);
}

/* ------------------------------------------------------------------ too many ranks */

#define MANY 40
#define LATE 13 /* arrives last at every collective */

#define CALL(ts, correlation)                                                                 \
    fprintf(f,                                                                                \
            "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1," \
            "\"tid\":1,\"ts\":%d,\"dur\":5,\"args\":{\"correlation\":%d}},\n",                \
            ts, correlation)

/* A kernel and an all-reduce; the second half of the ranks runs another kernel. */
static void write_step(FILE *f, int rank, int step)
{
    int t = 1000 * (step + 1), c = 2 * step + 1, begin = rank == LATE ? t + 800 : t + 500 + rank;

    fprintf(f,
            "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\",\"pid\":1,"
            "\"tid\":1,\"ts\":%d,\"dur\":990,\"args\":{}},\n",
            step, t);
    CALL(t + 10, c);
    fprintf(f,
            "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"%s\",\"pid\":0,\"tid\":7,\"ts\":%d,"
            "\"dur\":%d,\"args\":{\"correlation\":%d,\"stream\":7,\"device\":0}},\n",
            rank < MANY / 2 ? "first_half" : "second_half", t + 20, begin - t - 30, c);
    CALL(t + 30, c + 1);
    fprintf(f,
            "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"ncclDevKernel_AllReduce_Sum_f32\","
            "\"pid\":0,\"tid\":20,\"ts\":%d,\"dur\":%d,\"args\":{\"correlation\":%d,"
            "\"stream\":20,\"device\":0,\"Collective name\":\"allreduce\",\"In msg nelems\":1024,"
            "\"Out msg nelems\":1024,\"Group size\":%d,\"dtype\":\"Float\","
            "\"Process Group Name\":\"0\",\"Seq\":%d}}%s\n",
            begin, t + 900 - begin, c + 1, MANY, step, step < 3 ? "," : "");
}

static void write_rank(const char *folder, int rank)
{
    char path[80];
    FILE *f;

    snprintf(path, sizeof path, "%s/rank%02d.json", folder, rank);
    f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f,
            "{\"schemaVersion\":1,\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":%d,"
            "\"world_size\":%d},\"traceEvents\":[\n",
            rank, MANY);
    for (int step = 0; step < 4; step++)
        write_step(f, rank, step);
    fprintf(f, "]}\n");
    fclose(f);
}

/* The same from traces, in whatever order threads are, and from digests. */
static void compare_few(struct rp_ctx *ctx, const char *const *run, const struct digests *d,
                        const char *question)
{
    static const struct rp_setting enough[] = {{"budget", "3600"}, {"moves", "graphs"}};
    size_t n = strcmp(question, "optimize") ? 0 : 2;
    char *direct = answer(ctx, run, 1, question, enough, n), *other;

    assert_non_null(strstr(direct, "\"kind\": \"modelled\""));
    assert_non_null(strstr(direct, " of 40 ranks, because all are too large"));
    for (int i = 0; i < 3; i++) {
        const char *from[] = {i == 0 ? run[0] : i == 1 ? d->parts : d->merged};

        other = answer(ctx, from, 1, question, enough, n);
        assert_string_equal(direct, other);
        free(other);
    }
    free(direct);
}

static void check_chosen(struct rp_ctx *ctx, const char *const *run)
{
    char *text = answer(ctx, run, 1, "simulate", NULL, 0);

    assert_non_null(strstr(text, "{\"rank\": 0,"));  /* the first kind, and the fastest */
    assert_non_null(strstr(text, "{\"rank\": 13,")); /* the slowest */
    assert_non_null(strstr(text, "{\"rank\": 20,")); /* the second kind */
    assert_null(strstr(text, "{\"rank\": 5,"));
    free(text);
    text = answer(ctx, run, 1, "simulate", &(struct rp_setting){"rank", "3-9"}, 1);
    assert_null(strstr(text, "modelled"));
    assert_non_null(strstr(text, "{\"rank\": 5,"));
    free(text);
}

static void a_few_ranks_stand_for_many(void **state)
{
    static const char *const questions[] = {"report", "critpath", "simulate", "optimize"};
    char folder[] = "/tmp/reprise-many-XXXXXX", path[80];
    const char *const run[] = {folder};
    struct rp_ctx *ctx = NULL;
    struct rp_err err = RP_ERR_INIT;
    struct digests d;
    char *text;

    UNUSED_STATE(state);
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < MANY; i++)
        write_rank(folder, i);
    assert_ok(rp_ctx_new(NULL, &ctx, &err), &err);
    text = answer(ctx, run, 1, "simulate", NULL, 0);
    assert_null(strstr(text, "modelled"));
    assert_non_null(strstr(text, "{\"rank\": 39,"));
    free(text);
    ctx->bulk_events = 200; /* each rank has 20 */
    make_digests(ctx, run, 1, NULL, &d);
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        compare_few(ctx, run, &d, questions[i]);
    check_chosen(ctx, run);
    rp_ctx_free(ctx);
    remove_digests(&d);
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "%s/rank%02d.json", folder, i);
        unlink(path);
    }
    rmdir(folder);
}

int test_parts(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_part_travels),
                                       cmocka_unit_test(every_member_of_a_part_is_described),
                                       cmocka_unit_test(every_question_takes_digests),
                                       cmocka_unit_test(options_are_kept),
                                       cmocka_unit_test(runs_are_compared_by_digests),
                                       cmocka_unit_test(digests_are_deterministic),
                                       cmocka_unit_test(a_few_ranks_stand_for_many)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
