/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths and counts have 8 bytes. A record is preceded by its length and its place, so that those
   of other runs or questions are passed over without being read. */
#include "dataset/digest_file.h"

#include "base/decides.h"
#include "base/order.h"
#include "base/sha256.h"
#include "formats/digest/digest.h"
#include "result/part.h"

#include "rp_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PROGRAM_BYTES 24
RP_FACT(PROGRAM_BYTES, "bytes", "of the version in the head of a digest");
#define SUM_BYTES 64
RP_FACT(SUM_BYTES, "bytes", "of SHA-256 in hexadecimal, at the end of a digest");

/* The first bytes are the same in all versions, so that another version can be named. */
struct file_start {
    char magic[8];
    uint32_t version;
    uint32_t order; /* 1, in the byte order of the writer */
    char program[PROGRAM_BYTES];
};

struct record_start {
    uint64_t bytes, run, source;
    uint32_t in_source;
    uint8_t files, beside, unused[2];
};

/* ------------------------------------------------------------------ the head */

#define RUN(member) RP_PART_PLAIN(struct rp_digest_run, member)
static const struct rp_field run_fields[] = {
    RP_PART_TEXT(struct rp_digest_run, id),
    RP_PART_TEXT(struct rp_digest_run, given),
    RUN(ngiven),
    RUN(nsources),
    RUN(nholes),
    RUN(nothers),
    RUN(ntraces),
    RUN(nsnapshots),
    RUN(source),
    RUN(ndigests),
    RUN(nparts),
    RP_PART_BOOL(struct rp_digest_run, steps_named),
    RP_PART_PLAIN_LIST(struct rp_digest_run, shards, uint32_t),
    RP_PART_END};
static const struct rp_type run_type = {"run", sizeof(struct rp_digest_run), run_fields, NULL};

static const struct rp_field unread_fields[] = {
    RP_PART_PLAIN(struct rp_digest_unread, run),   RP_PART_PLAIN(struct rp_digest_unread, source),
    RP_PART_PLAIN(struct rp_digest_unread, why),   RP_PART_TEXT(struct rp_digest_unread, path),
    RP_PART_TEXT(struct rp_digest_unread, reason), RP_PART_END};
static const struct rp_type unread_type = {"unread", sizeof(struct rp_digest_unread), unread_fields,
                                           NULL};

static const struct rp_field head_fields[] = {
    RP_PART_TEXT(struct rp_digest_head, step_name),
    RP_PART_TEXT(struct rp_digest_head, tables),
    RP_PART_BOOL(struct rp_digest_head, salvage),
    RP_PART_LIST(struct rp_digest_head, runs, &run_type),
    RP_PART_LIST(struct rp_digest_head, unread, &unread_type),
    RP_PART_END};
static const struct rp_type head_type = {"digest_head", sizeof(struct rp_digest_head), head_fields,
                                         NULL};

/* Hashes the names and sizes of all inputs. If the digest is sent, also their numbers on disk,
   because the files of two nodes differ at least by these. */
static void name_run(const struct rp_dataset *dataset, bool sent, char id[RP_SHA256_TEXT])
{
    size_t i, n = rp_sources_count(dataset->sources);
    struct rp_sha256 sum;

    rp_sha256_begin(&sum);
    for (i = 0; i < n; i++) {
        const struct rp_source *source = rp_sources_borrow(dataset->sources, i);
        struct stat st = {0};
        int64_t size = !stat(source->path, &st) && S_ISREG(st.st_mode) ? st.st_size : -1;
        uint64_t number = st.st_ino;

        rp_sha256_add(&sum, source->name, strlen(source->name) + 1);
        rp_sha256_add(&sum, &size, sizeof size);
        if (sent)
            rp_sha256_add(&sum, &number, sizeof number);
    }
    rp_sha256_text(&sum, id);
}

/* Adds the file that an environment variable names. */
static void add_table(struct rp_sha256 *sum, const char *variable, bool *any)
{
    const char *path = getenv(variable);
    FILE *file = path && *path ? fopen(path, "rb") : NULL;
    char buffer[4096];
    size_t n;

    rp_sha256_add(sum, variable, strlen(variable));
    while (file && (n = fread(buffer, 1, sizeof buffer, file)) > 0)
        rp_sha256_add(sum, buffer, n);
    *any = *any || file;
    if (file)
        fclose(file);
}

enum rp_code rp_digest_describe(const struct rp_dataset *dataset, bool sent, struct rp_arena *arena,
                                struct rp_digest_head *head, struct rp_digest_run *run,
                                struct rp_err *err)
{
    struct rp_sha256 sum;
    char id[RP_SHA256_TEXT], tables[RP_SHA256_TEXT];
    bool any = false;
    size_t holes;

    name_run(dataset, sent, id);
    rp_sha256_begin(&sum);
    add_table(&sum, "REPRISE_STEPS", &any);
    add_table(&sum, "REPRISE_CATEGORIES", &any);
    rp_sha256_text(&sum, tables);
    rp_sources_borrow_holes(dataset->sources, &holes);
    *head = (struct rp_digest_head){.step_name = rp_arena_text(arena, dataset->step_name),
                                    .tables = rp_arena_text(arena, any ? tables : ""),
                                    .salvage = dataset->salvage};
    *run = (struct rp_digest_run){.id = rp_arena_text(arena, id),
                                  .given = rp_arena_text(arena, dataset->given),
                                  .ngiven = dataset->ngiven,
                                  .nsources = rp_sources_count(dataset->sources),
                                  .nholes = holes,
                                  .nothers = dataset->nskipped};
    return rp_arena_check(arena, "describing inputs", err);
}

/* ------------------------------------------------------------------ writing */

RP_ORDER(by_place, struct rp_digest_record, RP_UP(run), RP_UP(source), RP_UP(in_source),
         RP_COMPARE(a->files, b->files))

/* What is written is also hashed if anybody asks for the sum. */
struct summed {
    struct rp_out *to;
    bool wanted;
    struct rp_sha256 sum;
};

static void write_summed(struct summed *s, const void *bytes, size_t n)
{
    rp_out_write(s->to, bytes, n);
    if (s->wanted)
        rp_sha256_add(&s->sum, bytes, n);
}

static enum rp_code write_head(struct summed *s, const struct rp_digest_head *head,
                               struct rp_err *err)
{
    struct file_start start = {.version = RP_DIGEST_VERSION, .order = 1};
    struct rp_out *block = NULL;
    enum rp_code code = rp_out_open_memory(&block, err);
    size_t n;

    memcpy(start.magic, RP_DIGEST_MAGIC, sizeof start.magic);
    snprintf(start.program, sizeof start.program, "%s", RP_VERSION);
    if (code == RP_OK) {
        rp_part_write(&head_type, head, block);
        code = rp_out_flush(block, err);
    }
    if (code == RP_OK) {
        const char *bytes = rp_out_borrow_memory(block, &n);
        uint64_t length = n;
        write_summed(s, &start, sizeof start);
        write_summed(s, &length, sizeof length);
        write_summed(s, bytes, n);
    }
    rp_out_abandon(block);
    return code;
}

enum rp_code rp_digest_write(const struct rp_digest_head *head, struct rp_digest_record *records,
                             size_t n, struct rp_out *to, char *id, struct rp_err *err)
{
    struct summed s = {.to = to, .wanted = id != NULL};
    char sum[RP_SHA256_TEXT];
    uint64_t count = n;

    rp_sha256_begin(&s.sum);
    RP_TRY(write_head(&s, head, err));
    write_summed(&s, &count, sizeof count);
    rp_sort(records, n, sizeof *records, by_place);
    for (size_t i = 0; i < n; i++) {
        struct record_start start = {.bytes = records[i].n,
                                     .run = records[i].run,
                                     .source = records[i].source,
                                     .in_source = records[i].in_source,
                                     .files = records[i].files,
                                     .beside = records[i].beside};

        write_summed(&s, &start, sizeof start);
        write_summed(&s, records[i].bytes, records[i].n);
    }
    rp_sha256_text(&s.sum, sum);
    rp_out_write(to, sum, SUM_BYTES);
    if (id)
        memcpy(id, sum, sizeof sum);
    return rp_out_flush(to, err);
}

/* ------------------------------------------------------------------ reading */

/* Makes messages such as "'part.rpd' is a digest that …" and "'part.rpd': the record …". */
enum rp_code rp_digest_name(const char *name, enum rp_code code, struct rp_err *err)
{
    char text[sizeof err->text];

    if (code == RP_OK || !err || code == RP_NOMEM)
        return code;
    if (strncmp(err->text, "is ", 3) != 0 && strncmp(err->text, "was ", 4) != 0)
        return rp_err_prefix(err, code, "'%s'", name);
    memcpy(text, err->text, sizeof text);
    return rp_err_set(err, code, "'%s' %s", name, text);
}

static enum rp_code is_damaged(struct rp_err *err)
{
    return rp_err_set(err, RP_FORMAT,
                      "is a digest that is truncated or damaged: make it again with 'reprise "
                      "digest'");
}

static bool sum_fits(const char *bytes, size_t n)
{
    char text[RP_SHA256_TEXT];
    struct rp_sha256 sum;

    rp_sha256_begin(&sum);
    rp_sha256_add(&sum, bytes, n - SUM_BYTES);
    rp_sha256_text(&sum, text);
    return !memcmp(text, bytes + n - SUM_BYTES, SUM_BYTES);
}

/* Checks the texts that every writer sets, and the numbers that count something. */
static bool head_is_whole(const struct rp_digest_head *head)
{
    bool whole = head->tables != NULL;

    for (size_t i = 0; i < head->nruns; i++) {
        const struct rp_digest_run *run = &head->runs[i];

        whole = whole && run->id && strlen(run->id) == SUM_BYTES && run->given &&
                run->nparts <= UINT32_MAX && run->nsources <= UINT32_MAX;
        for (size_t k = 0; k < run->nshards; k++)
            whole = whole && run->shards[k] < run->nparts;
    }
    for (size_t i = 0; i < head->nunread; i++) {
        const struct rp_digest_unread *u = &head->unread[i];

        whole = whole && u->run < head->nruns && u->path && u->reason && u->why <= RP_UNREAD_HOLE;
    }
    return whole;
}

enum rp_code rp_digest_open(const void *bytes, size_t n, bool checked, struct rp_arena *arena,
                            struct rp_digest_reader *out, struct rp_err *err)
{
    const char *at = bytes, *end = at + n - SUM_BYTES;
    struct file_start start;
    uint64_t length;

    *out = (struct rp_digest_reader){0};
    if (n < sizeof start + 2 * sizeof length + SUM_BYTES)
        return is_damaged(err);
    memcpy(&start, at, sizeof start);
    if (memcmp(start.magic, RP_DIGEST_MAGIC, sizeof start.magic) != 0)
        return rp_err_set(err, RP_FORMAT, "is not a digest");
    if (start.version != RP_DIGEST_VERSION || start.order != 1 ||
        strncmp(start.program, RP_VERSION, PROGRAM_BYTES) != 0) {
        return rp_err_set(
            err, RP_UNSUPPORTED,
            "is a digest of version %u, written by reprise %.*s; this is reprise %s, which "
            "reads version %d: make it again with 'reprise digest'",
            start.version, (int)strnlen(start.program, PROGRAM_BYTES), start.program, RP_VERSION,
            RP_DIGEST_VERSION);
    }
    memcpy(&length, at + sizeof start, sizeof length);
    at += sizeof start + sizeof length;
    if ((!checked && !sum_fits(bytes, n)) || length > (size_t)(end - at) - sizeof length)
        return is_damaged(err);
    RP_TRY(rp_part_read(&head_type, at, (size_t)length, arena, &out->head, err));
    if (!head_is_whole(&out->head))
        return is_damaged(err);
    memcpy(&out->left, at + length, sizeof out->left);
    out->at = at + length + sizeof out->left;
    out->end = end;
    return RP_OK;
}

enum rp_code rp_digest_next(struct rp_digest_reader *reader, struct rp_digest_record *out,
                            bool *more, struct rp_err *err)
{
    size_t room = (size_t)(reader->end - reader->at);
    struct record_start start;

    *more = reader->left > 0;
    if (!*more)
        return room ? is_damaged(err) : RP_OK;
    if (room < sizeof start)
        return is_damaged(err);
    memcpy(&start, reader->at, sizeof start);
    if (start.bytes > room - sizeof start || start.run >= reader->head.nruns ||
        start.source > UINT32_MAX || start.files > 1 || start.beside > 1)
        return is_damaged(err);
    *out = (struct rp_digest_record){.run = start.run,
                                     .source = start.source,
                                     .in_source = start.in_source,
                                     .files = start.files,
                                     .beside = start.beside,
                                     .bytes = reader->at + sizeof start,
                                     .n = (size_t)start.bytes};
    reader->at += sizeof start + out->n;
    reader->left--;
    return RP_OK;
}
