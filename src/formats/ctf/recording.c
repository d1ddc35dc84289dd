/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording by the headers of its packets: one small read each. The estimate of its cost is
 * what the recorder measured for one event on that machine, times the events.
 */
#include <reprise/recording.h>

#include "abi/ctf_wire.h"
#include "abi/launcher_env.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/vec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct scan {
    struct rp_recording *out;
    struct rp_map streams, processes, threads; /* streams: to the index of what they lost so far */
    RP_VEC(uint64_t) lost;
    double cost_ns, costed, thread_ns; /* costed: events whose cost is known */
    uint64_t frequency;                /* of the trace at hand */
};

/* The number after "freq = " of a description, else 1 GHz. */
static uint64_t read_frequency(const char *folder)
{
    char path[4096], text[2048], *at;
    FILE *f;
    size_t n;
    uint64_t value = 0;

    if (snprintf(path, sizeof path, "%s/metadata", folder) >= (int)sizeof path)
        return 0;
    f = fopen(path, "re");
    if (!f)
        return 0;
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    at = strstr(text, "tracer_name = \"reprise\"");
    at = at ? strstr(at, "freq = ") : NULL;
    if (at)
        value = strtoull(at + 7, NULL, 10);
    return at && !value ? 1 : value;
}

static enum rp_code count_packet(struct scan *s, const struct rp_ctf_packet *p, struct rp_err *err)
{
    uint32_t fresh = (uint32_t)s->lost.n, stream, process, thread;
    uint64_t who = (uint64_t)p->image << 32 | p->tid;

    RP_TRY(rp_map_intern(&s->streams, p->instance, fresh, &stream, err));
    if (stream == fresh)
        RP_TRY(rp_vec_push(&s->lost, 0, err));
    if (p->discarded > s->lost.at[stream])
        s->lost.at[stream] = p->discarded;
    fresh = (uint32_t)s->out->processes;
    RP_TRY(rp_map_intern(&s->processes, (uint64_t)p->image << 32 | p->pid, fresh, &process, err));
    s->out->processes += process == fresh;
    if (!(p->flags & RP_CTF_PACKET_HELPER)) {
        fresh = (uint32_t)s->out->threads;
        RP_TRY(rp_map_intern(&s->threads, who, fresh, &thread, err));
        s->out->threads += thread == fresh;
    }
    s->out->packets++;
    s->out->events += p->events;
    if (p->cost_ps) {
        s->cost_ns += (double)p->events * p->cost_ps / 1e3;
        s->costed += (double)p->events;
    }
    if (p->timestamp_end > p->timestamp_begin)
        s->thread_ns +=
            (double)(p->timestamp_end - p->timestamp_begin) * 1e9 / (double)s->frequency;
    return RP_OK;
}

/* All packets of a file: each header says where the next one stands. */
static enum rp_code scan_packets(struct scan *s, int fd, uint64_t size, struct rp_err *err)
{
    struct rp_ctf_packet packet;

    for (uint64_t at = 0; at < size;) {
        if (pread(fd, &packet, sizeof packet, (off_t)at) != (ssize_t)sizeof packet ||
            packet.magic != RP_CTF_MAGIC) {
            s->out->damaged++;
            return RP_OK;
        }
        RP_TRY(count_packet(s, &packet, err));
        if (packet.packet_bits / 8 < sizeof packet)
            return RP_OK;
        at += packet.packet_bits / 8;
    }
    return RP_OK;
}

static enum rp_code scan_file(struct scan *s, const char *path, struct rp_err *err)
{
    struct stat st;
    enum rp_code code = RP_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return RP_OK;
    if (!fstat(fd, &st)) {
        s->out->bytes += (uint64_t)st.st_size;
        s->out->damaged += !st.st_size;
        code = scan_packets(s, fd, (uint64_t)st.st_size, err);
    }
    close(fd);
    return code;
}

static enum rp_code scan_trace(struct scan *s, const char *folder, struct rp_err *err)
{
    struct dirent *entry;
    enum rp_code code = RP_OK;
    char path[4096];
    DIR *dir;

    s->frequency = read_frequency(folder);
    dir = s->frequency ? opendir(folder) : NULL;
    if (!dir)
        return RP_OK; /* not a trace of ours */
    s->out->traces++;
    while (code == RP_OK && (entry = readdir(dir))) {
        if (!strncmp(entry->d_name, "s_", 2) &&
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path)
            code = scan_file(s, path, err);
    }
    closedir(dir);
    return code;
}

enum rp_code rp_recording_scan(const char *folder, struct rp_recording *out, struct rp_err *err)
{
    struct rp_recording known = {.struct_size = out->struct_size};
    struct scan s = {.out = &known};
    struct dirent *entry;
    enum rp_code code = RP_OK;
    char path[4096];
    DIR *dir = opendir(folder);

    if (!dir)
        return rp_err_set_os(err, errno, "cannot read the folder '%s'", folder);
    while (code == RP_OK && (entry = readdir(dir))) {
        if (entry->d_name[0] != '.' &&
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path)
            code = scan_trace(&s, path, err);
    }
    closedir(dir);
    for (size_t i = 0; i < s.lost.n; i++)
        known.lost += s.lost.at[i];
    if (s.costed > 0) /* the first packets of a process are older than its measurement */
        known.cost_ns = (int64_t)(s.cost_ns / s.costed * (double)known.events);
    known.thread_ns = (int64_t)s.thread_ns;
    memcpy(out, &known, out->struct_size < sizeof known ? out->struct_size : sizeof known);
    rp_map_release(&s.streams);
    rp_map_release(&s.processes);
    rp_map_release(&s.threads);
    rp_vec_release(&s.lost);
    return code;
}

int32_t rp_recording_rank(int32_t *restarts)
{
    static const char *const ranks[] = RP_LAUNCHER_RANKS, *const again[] = RP_LAUNCHER_RESTARTS;

    if (restarts)
        *restarts = rp_launcher_number(again);
    return rp_launcher_number(ranks);
}
