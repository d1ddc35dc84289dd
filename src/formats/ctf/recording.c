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
#include "formats/ctf/ledger.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct scan {
    struct rp_recording *out;
    struct rp_map streams, processes, threads; /* streams: to the index of what they lost so far */
    RP_VEC(uint64_t) lost;
    double cost_ns, costed, thread_ns; /* costed: events whose cost is known */
    uint64_t frequency;                /* of the trace at hand */
    struct rp_ctf_account account;
};

/* The number after "freq = " of a description, else 1 GHz. */
static uint64_t read_frequency(const char *folder)
{
    char path[4096], text[2048], *at;
    uint64_t value = 0;

    if (snprintf(path, sizeof path, "%s/metadata", folder) >= (int)sizeof path)
        return 0;
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
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

/* All packets up to `size`: each header says where the next one stands. */
static enum rp_code scan_packets(struct scan *s, int fd, uint64_t at, uint64_t size,
                                 struct rp_err *err)
{
    struct rp_ctf_packet packet;

    while (at < size) {
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

static enum rp_code scan_slots(struct scan *s, int fd, uint64_t size, struct rp_err *err)
{
    uint32_t magic;

    for (uint64_t at = 0; at + RP_CTF_SLOT_BYTES <= size; at += RP_CTF_SLOT_BYTES)
        if (pread(fd, &magic, sizeof magic, (off_t)at) == (ssize_t)sizeof magic && magic)
            RP_TRY(scan_packets(s, fd, at, at + RP_CTF_SLOT_BYTES, err));
    return RP_OK;
}

static enum rp_code scan_file(struct scan *s, const char *path, bool slots, struct rp_err *err)
{
    struct stat st;
    enum rp_code code = RP_OK;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return RP_OK;
    if (!fstat(fd, &st)) {
        s->out->bytes += (uint64_t)st.st_size;
        code = slots ? scan_slots(s, fd, (uint64_t)st.st_size, err)
                     : scan_packets(s, fd, 0, (uint64_t)st.st_size, err);
    }
    close(fd);
    return code;
}

static enum rp_code scan_trace(struct scan *s, const char *folder, struct rp_err *err)
{
    struct dirent *entry;
    enum rp_code code = RP_OK;
    char path[4096];

    s->frequency = read_frequency(folder);
    DIR *dir = s->frequency ? opendir(folder) : NULL;
    if (!dir)
        return RP_OK; /* not a trace of ours */
    s->out->traces++;
    while (code == RP_OK && (entry = readdir(dir))) {
        bool slots = !strncmp(entry->d_name, RP_CTF_SLOTS_NAME, strlen(RP_CTF_SLOTS_NAME));

        if ((slots || !strncmp(entry->d_name, "s_", 2)) &&
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path)
            code = scan_file(s, path, slots, err);
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
        if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path)
            continue;
        if (entry->d_name[0] != '.')
            code = scan_trace(&s, path, err);
        else if (!strncmp(entry->d_name, RP_CTF_LEDGER_NAME, strlen(RP_CTF_LEDGER_NAME)))
            rp_ctf_ledger_add(path, NULL, &s.account);
    }
    closedir(dir);
    for (size_t i = 0; i < s.lost.n; i++)
        known.lost += s.lost.at[i];
    if (s.costed > 0) /* the first packets of a process are older than its measurement */
        known.cost_ns = (int64_t)(s.cost_ns / s.costed * (double)known.events);
    known.thread_ns = (int64_t)s.thread_ns;

    /* The account says what was lost, and what the recording cost. */
    uint64_t lost = rp_ctf_account_lost(&s.account);
    size_t n = 0;
    known.lost = lost > known.lost ? lost : known.lost;
    known.overwritten = s.account.events[RP_CTF_LOSS_OVERWRITTEN];
    known.setup_ns = (int64_t)s.account.setup_ns;
    known.cpu_ns = (int64_t)s.account.cpu_ns;
    known.recorded_step_ns = (int64_t)s.account.recorded_ns;
    known.unrecorded_step_ns = (int64_t)s.account.unrecorded_ns;
    known.unrecorded_least_ns = (int64_t)s.account.unrecorded_least_ns;
    known.unrecorded_most_ns = (int64_t)s.account.unrecorded_most_ns;
    known.loaded = s.account.loaded;
    known.commands = s.account.commands;
    known.marks = s.account.marks;
    known.cost_ns += known.setup_ns;
    for (int why = 0; why < RP_CTF_LOSS_OVERWRITTEN; why++)
        if (s.account.events[why] && n < sizeof known.lost_because)
            n += (size_t)snprintf(known.lost_because + n, sizeof known.lost_because - n, "%s%s",
                                  n ? "; " : "", rp_ctf_loss_text((enum rp_ctf_loss)why));
    memcpy(out, &known, out->struct_size < sizeof known ? out->struct_size : sizeof known);
    rp_map_release(&s.streams);
    rp_map_release(&s.processes);
    rp_map_release(&s.threads);
    rp_vec_release(&s.lost);
    return code;
}

/* As the recorder names it: letters, digits, '-' and '_' up to the first '.'. */
static void ledger_path(const char *folder, char *to, size_t size)
{
    char host[256] = "", plain[80];
    size_t n = 0;

    gethostname(host, sizeof host - 1);
    for (const char *p = host; *p && *p != '.' && n + 1 < sizeof plain; p++)
        if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
            *p == '-' || *p == '_')
            plain[n++] = *p;
    plain[n] = '\0';
    snprintf(to, size, "%s/" RP_CTF_LEDGER_NAME "%s", folder, n ? plain : "host");
}

/* Another user's folder is used only if it was made for a group of this process, because its owner
   could put links in it that lead our files elsewhere. The owner of a file made here tells who we
   are, since servers of network file systems may map users. */
static enum rp_code check_owner(const char *folder, int dir, int file, const struct stat *is,
                                struct rp_err *err)
{
    struct stat made;

    if (fstat(file, &made))
        return rp_err_set_os(err, errno, "cannot use folder '%s'", folder);
    if (made.st_uid == is->st_uid ||
        ((is->st_mode & S_ISGID) && (is->st_mode & S_IWGRP) && !(is->st_mode & S_IWOTH) &&
         made.st_gid == is->st_gid && !faccessat(dir, ".", W_OK, AT_EACCESS)))
        return RP_OK;
    return rp_err_set(err, RP_IO,
                      "folder '%s' belongs to another user (%u): choose another folder with '-o'",
                      folder, (unsigned)is->st_uid);
}

/* Makes the folder the owner's, or its group's too, and leaves one empty file in it. */
static enum rp_code own(const char *folder, int dir, const char *group, struct rp_err *err)
{
    struct stat is;
    gid_t gid = (gid_t)-1;

    if (group) {
        /* The group that is to have the folder too. */
        const struct group *found = getgrnam(group); /* `record` has one thread yet */
        char *end;
        long number = strtol(group, &end, 10);
        if (!found && (*end || end == group || number < 0))
            return rp_err_set(err, RP_USAGE, "there is no group '%s'", group);
        gid = found ? found->gr_gid : (gid_t)number;
    }
    int file = openat(dir, RP_CTF_CONTROL_NAME,
                      O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (file < 0 || fstat(dir, &is)) {
        int why = errno;

        if (file >= 0)
            close(file);
        return rp_err_set_os(err, why, "cannot use folder '%s'", folder);
    }
    enum rp_code code = check_owner(folder, dir, file, &is, err);
    if (code == RP_OK && is.st_uid == geteuid()) {
        mode_t wanted = group ? 02770 : 0700;

        if ((group && fchown(dir, (uid_t)-1, gid)) || (fchmod(dir, wanted) && group))
            code =
                rp_err_set_os(err, errno, "cannot give folder '%s' to group '%s'", folder, group);
        else if (group && fchown(file, (uid_t)-1, gid))
            code = rp_err_set_os(err, errno, "cannot give '%s' to group '%s'", RP_CTF_CONTROL_NAME,
                                 group);
        is.st_mode = wanted;
    }
    (void)!fchmod(file, RP_CTF_FILE_MODE(is.st_mode));
    close(file);
    return code;
}

enum rp_code rp_recording_own(const char *folder, const char *group, struct rp_err *err)
{
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (dir < 0)
        return rp_err_set_os(err, errno, "cannot use folder '%s'", folder);
    enum rp_code code = own(folder, dir, group, err);
    close(dir);
    return code;
}

enum rp_code rp_recording_prepare(const char *folder, struct rp_err *err)
{
    static const struct rp_ctf_ledger empty = {.magic = RP_CTF_LEDGER_MAGIC};
    char path[4096], fresh[4096 + 32];
    struct stat is;

    if (stat(folder, &is))
        return rp_err_set_os(err, errno, "cannot use folder '%s'", folder);
    ledger_path(folder, path, sizeof path);
    if (!access(path, F_OK))
        return RP_OK; /* of another `record` of the same run */
    snprintf(fresh, sizeof fresh, "%s.%ld", path, (long)getpid());
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return rp_err_set_os(err, errno, "cannot create '%s'", fresh);
    bool written = write(fd, &empty, sizeof empty) == (ssize_t)sizeof empty &&
                   !fchmod(fd, RP_CTF_FILE_MODE(is.st_mode));
    written = !close(fd) && written;
    if (written && link(fresh, path) && errno != EEXIST)
        written = !rename(fresh, path); /* a file system without hard links */
    unlink(fresh);
    return written ? RP_OK : rp_err_set(err, RP_IO, "cannot write '%s'", path);
}

void rp_recording_answers(const char *folder, uint64_t *commands, uint64_t *marks)
{
    struct rp_ctf_account account = {0};
    DIR *dir = opendir(folder);
    struct dirent *entry;
    char path[4096];

    while (dir && (entry = readdir(dir)))
        if (!strncmp(entry->d_name, RP_CTF_LEDGER_NAME, strlen(RP_CTF_LEDGER_NAME)) &&
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) < (int)sizeof path)
            rp_ctf_ledger_add(path, NULL, &account);
    if (dir)
        closedir(dir);
    *commands = account.commands;
    *marks = account.marks;
}

void rp_recording_spent(const char *folder, int64_t cpu_ns)
{
    struct rp_ctf_ledger *ledger = MAP_FAILED;
    struct stat st;
    char path[4096];

    ledger_path(folder, path, sizeof path);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    if (!fstat(fd, &st) && st.st_size >= (off_t)sizeof *ledger)
        ledger = mmap(NULL, sizeof *ledger, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (ledger == MAP_FAILED)
        return;
    if (cpu_ns > 0 && ledger->magic == RP_CTF_LEDGER_MAGIC)
        __atomic_fetch_add(&ledger->cpu_ns, (uint64_t)cpu_ns, __ATOMIC_SEQ_CST);
    munmap(ledger, sizeof *ledger);
}

int32_t rp_recording_rank(int32_t *restarts)
{
    static const char *const ranks[] = RP_LAUNCHER_RANKS, *const again[] = RP_LAUNCHER_RESTARTS;

    if (restarts)
        *restarts = rp_launcher_number(again);
    return rp_launcher_number(ranks);
}
