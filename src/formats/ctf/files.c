/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packets of a recording, from its files. A file contains one packet, or several in sequence:
 * those of threads that used the stream one after another. The recording may still be running: a
 * file that is deleted meanwhile (the oldest ones of a ring) is skipped, and a packet is used as
 * its header describes it when it is read.
 */
#include "base/text.h"
#include "formats/ctf/ctf.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum rp_code bad_head(const struct rp_ctf_bytes *p, struct rp_err *err, const char *what,
                             uint64_t value)
{
    return rp_err_set_at(err, RP_FORMAT, p->offset, "'%s': invalid packet at byte %llu: %s %llu",
                         p->name, (unsigned long long)p->offset, what, (unsigned long long)value);
}

enum rp_code rp_ctf_packet_check(struct rp_ctf_bytes *p, bool salvage, uint64_t *cut,
                                 struct rp_err *err)
{
    struct rp_ctf_packet *h = &p->head;

    *cut = 0;
    if (p->n < sizeof *h)
        return rp_err_set_at(err, RP_FORMAT, p->offset + p->n,
                             "'%s' ends after %zu of the %zu bytes of a packet header", p->name,
                             p->n, sizeof *h);
    memcpy(h, p->at, sizeof *h);
    if (h->magic != RP_CTF_MAGIC || h->stream_id)
        return rp_err_set_at(err, RP_FORMAT, p->offset,
                             "'%s' has no packet at byte %llu (first word %08x)", p->name,
                             (unsigned long long)p->offset, (unsigned)h->magic);
    p->content = h->content_bits / 8 < p->n ? (size_t)(h->content_bits / 8) : p->n;
    if (h->content_bits % 8 || p->content < sizeof *h)
        return bad_head(p, err, "content bits", h->content_bits);
    if (h->packet_bits && (h->packet_bits % 8 || h->packet_bits < h->content_bits))
        return bad_head(p, err, "packet bits", h->packet_bits);
    if (h->content_bits / 8 > p->n) {
        *cut = h->content_bits / 8 - p->n;
        if (!salvage)
            return rp_err_set_at(err, RP_FORMAT, p->offset + p->n,
                                 "'%s' is cut short: %llu bytes are missing (--salvage reads what "
                                 "is there)",
                                 p->name, (unsigned long long)*cut);
    }
    return RP_OK;
}

static enum rp_code add_packet(struct rp_ctf_reader *r, struct rp_ctf_bytes *p, bool *more,
                               struct rp_err *err)
{
    bool salvage = r->t.options->salvage;
    uint64_t cut, size;
    enum rp_code code = rp_ctf_packet_check(p, salvage, &cut, err);

    *more = false;
    if (code == RP_FORMAT && salvage) {
        r->t.health->salvaged = 1;
        return rp_builder_warn(r->t.builder, err, "%s: left out", err ? err->text : p->name);
    }
    RP_TRY(code);
    if (cut) {
        r->t.health->truncated = 1;
        RP_TRY(rp_builder_warn(r->t.builder, err, "'%s' is cut short by %llu bytes", p->name,
                               (unsigned long long)cut));
    }
    size = p->head.packet_bits / 8;
    *more = size && size < p->n;
    if (*more)
        p->n = (size_t)size;
    return rp_vec_push(&r->packets, *p, err);
}

enum rp_code rp_ctf_files_split(struct rp_ctf_reader *r, const char *name, const uint8_t *at,
                                size_t n, struct rp_err *err)
{
    struct rp_ctf_bytes p = {.name = name, .at = at, .n = n};
    bool more = true;

    while (more) {
        RP_TRY(add_packet(r, &p, &more, err));
        p.at += p.n;
        p.offset += p.n;
        p.n = n - (size_t)p.offset;
    }
    return RP_OK;
}

/* Each slot has the packets of one stream, or nothing any more. */
static enum rp_code split_slots(struct rp_ctf_reader *r, const char *name, const uint8_t *at,
                                size_t n, struct rp_err *err)
{
    uint32_t magic;

    for (size_t from = 0; from + RP_CTF_SLOT_BYTES <= n; from += RP_CTF_SLOT_BYTES) {
        memcpy(&magic, at + from, sizeof magic);
        if (magic)
            RP_TRY(rp_ctf_files_split(r, name, at + from, RP_CTF_SLOT_BYTES, err));
    }
    return RP_OK;
}

static bool has_packets(const char *name)
{
    return !strncmp(name, "s_", 2) || !strncmp(name, RP_CTF_SLOTS_NAME, strlen(RP_CTF_SLOTS_NAME));
}

static enum rp_code split_file(struct rp_ctf_reader *r, const char *name, const uint8_t *at,
                               size_t n, struct rp_err *err)
{
    bool has_slots = *rp_text_file(name) == '.';

    if (n)
        return has_slots ? split_slots(r, name, at, n, err)
                         : rp_ctf_files_split(r, name, at, n, err);
    if (has_slots)
        return RP_OK;
    /* the recorder writes a header before it does anything else with a file */
    r->t.health->truncated = 1;
    return rp_builder_warn(r->t.builder, err, "'%s' is empty: the recording is cut short", name);
}

static enum rp_code open_file(struct rp_ctf_reader *r, struct rp_ctf_file *file, struct rp_err *err)
{
    bool missing;
    enum rp_code code =
        rp_mapped_open(file->path, r->t.limits.input_bytes, &file->bytes, &missing, err);

    if (missing)
        return RP_OK;
    RP_TRY(code);
    return split_file(r, file->path, file->bytes.at, file->bytes.n, err);
}

/* The files with packets; other hidden ones are not complete yet. */
static enum rp_code list_files(struct rp_ctf_reader *r, DIR *dir, const char *folder,
                               struct rp_err *err)
{
    struct dirent *entry;

    while ((entry = readdir(dir))) {
        struct rp_ctf_file file = {0};

        if (!has_packets(entry->d_name))
            continue;
        if (r->files.n >= r->t.limits.members)
            return rp_err_set(err, RP_LIMIT, "'%s' holds more than %llu files (limit members)",
                              folder, (unsigned long long)r->t.limits.members);
        RP_TRY(rp_vec_reserve(&r->files, 1, err));
        if (asprintf(&file.path, "%s/%s", folder, entry->d_name) < 0)
            return rp_err_nomem(err, "listing a recording");
        r->files.at[r->files.n++] = file;
    }
    return RP_OK;
}

enum rp_code rp_ctf_files_open(struct rp_ctf_reader *r, const char *folder, struct rp_err *err)
{
    DIR *dir = opendir(folder);

    if (!dir)
        return rp_err_set_os(err, errno, "cannot read the folder '%s'", folder);
    enum rp_code code = list_files(r, dir, folder, err);
    closedir(dir);
    for (size_t i = 0; code == RP_OK && i < r->files.n; i++)
        code = open_file(r, &r->files.at[i], err);
    return code;
}

enum rp_code rp_ctf_files_beside(struct rp_ctf_reader *r, const struct rp_input *in,
                                 struct rp_err *err)
{
    size_t n;
    const struct rp_beside *files = rp_input_borrow_beside(in, &n);

    for (size_t i = 0; i < n; i++)
        if (has_packets(files[i].name))
            RP_TRY(split_file(r, files[i].name, files[i].bytes, files[i].n, err));
    return RP_OK;
}

void rp_ctf_files_close(struct rp_ctf_reader *r)
{
    for (size_t i = 0; i < r->files.n; i++) {
        rp_mapped_close(&r->files.at[i].bytes);
        free(r->files.at[i].path);
    }
    rp_vec_release(&r->files);
}

/* -------------------------------------------------------------------------- out of a tar */

static enum rp_code write_file(const char *folder, const char *name, const uint8_t *bytes, size_t n,
                               struct rp_err *err)
{
    char path[RP_CTF_UNPACKED_MAX + 256];

    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return rp_err_set(err, RP_LIMIT, "the name '%.100s' is too long", name);
    FILE *f = fopen(path, "wxe");
    bool done = f && fwrite(bytes, 1, n, f) == n;
    if (f)
        done = !fclose(f) && done;
    return done ? RP_OK : rp_err_set_os(err, errno, "cannot unpack the trace into '%s'", path);
}

enum rp_code rp_ctf_files_unpack(struct rp_input *in, char folder[RP_CTF_UNPACKED_MAX],
                                 struct rp_err *err)
{
    const char *place = getenv("TMPDIR");
    const uint8_t *bytes;
    size_t n;

    RP_TRY(rp_input_slurp(in, &bytes, &n, err));
    snprintf(folder, RP_CTF_UNPACKED_MAX, "%.400s/reprise-ctf-XXXXXX",
             place && *place ? place : "/tmp");
    if (!mkdtemp(folder))
        return rp_err_set_os(err, errno, "cannot unpack the trace into '%s'", folder);
    enum rp_code code = write_file(folder, "metadata", bytes, n, err);
    const struct rp_beside *files = rp_input_borrow_beside(in, &n);
    for (size_t i = 0; code == RP_OK && i < n; i++)
        if (files[i].name[0] != '.' && !strchr(files[i].name, '/'))
            code = write_file(folder, files[i].name, files[i].bytes, files[i].n, err);
    if (code != RP_OK)
        rp_ctf_files_remove(folder);
    return code;
}

void rp_ctf_files_remove(const char *folder)
{
    char path[RP_CTF_UNPACKED_MAX + 258];
    DIR *dir = opendir(folder);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path); /* not "." and ".." */
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}
