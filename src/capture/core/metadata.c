/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of a rank, and its metadata file, which describes the recording to any reader of CTF
 * 1.8. All processes of a rank on a host share the folder and the clock, so the first process's
 * metadata is valid for all. It is written under a hidden name and linked into place before any
 * stream, so that it is complete whenever it exists. If the folder was made before the last boot
 * (or by another machine of the same name), a numbered one is used instead.
 */
#include "capture/core/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char layout[] =
    "typealias integer { size = 8; align = 8; signed = false; } := u8;\n"
    "typealias integer { size = 32; align = 8; signed = false; } := u32;\n"
    "typealias integer { size = 32; align = 8; signed = true; } := i32;\n"
    "typealias integer { size = 64; align = 8; signed = false; } := u64;\n"
    "typealias integer { size = 64; align = 8; signed = true; } := i64;\n"
    "typealias integer { size = 64; align = 8; signed = false; base = 16; } := x64;\n"
    "typealias integer { size = 64; align = 8; signed = false; map = clock.counter.value; } := "
    "stamp;\n"
    "typealias floating_point { exp_dig = 11; mant_dig = 53; align = 8; } := f64;\n"
    "struct argument { u32 key; u8 type; i64 value; };\n"
    "trace {\n"
    "    major = 1; minor = 8; byte_order = le;\n"
    "    packet.header := struct { u32 magic; u32 stream_id; u64 stream_instance_id; };\n"
    "};\n"
    "stream {\n"
    "    id = 0;\n"
    "    packet.context := struct {\n"
    "        stamp timestamp_begin; stamp timestamp_end; u64 content_size; u64 packet_size;\n"
    "        u64 packet_seq_num; u64 events_discarded; u64 events; u32 pid; u32 tid; u32 image;\n"
    "        u32 cost_ps; u32 clocks; u32 flags;\n"
    "    };\n"
    "    event.header := struct {\n"
    "        u8 id;\n"
    "        integer { size = 56; align = 1; signed = false; map = clock.counter.value; } "
    "timestamp;\n"
    "    };\n"
    "};\n";

static const struct {
    const char *name, *fields;
} events[RP_CTF_EVENT_COUNT] = {
    [RP_CTF_STRING] = {"string", "u32 number; string text;"},
    [RP_CTF_RANGE_BEGIN] = {"range_entry", "u32 name;"},
    [RP_CTF_RANGE_END] = {"range_exit", ""},
    [RP_CTF_MARK] = {"mark", "u32 name;"},
    [RP_CTF_COUNTER] = {"counter", "u32 name; f64 value;"},
    [RP_CTF_ENTER] = {"call_entry", "u8 kind; u32 lane; u32 name; u32 category; u64 link;"},
    [RP_CTF_LEAVE] = {"call_exit", "u32 lane; i64 result;"},
    [RP_CTF_ASYNC_BEGIN] = {"async_begin", "u32 name; u32 category; x64 id;"},
    [RP_CTF_ASYNC_END] = {"async_end", "u32 name; u32 category; x64 id;"},
    [RP_CTF_SPAN] = {"span", "u8 kind; u8 timebase; u64 begin; u64 end; u32 name; u32 category; "
                             "i32 device; u64 track; u64 link; u8 nargs; struct argument "
                             "args[nargs];"},
    [RP_CTF_THREAD_NAME] = {"thread_name", "u32 tid; u32 name;"},
    [RP_CTF_PROCESS] = {"process", "u32 pid; u32 parent; i32 rank; i32 world_size; i32 local_rank; "
                                   "u32 host; u32 program; u32 command;"},
    [RP_CTF_FORK] = {"fork", "u32 pid;"},
    [RP_CTF_EXEC] = {"exec", "u32 path;"},
    [RP_CTF_LIBRARY] = {"library", "u32 path;"},
    [RP_CTF_CLOCK] = {"clock", "u64 ticks; i64 monotonic_ns; i64 realtime_ns; u32 width;"},
    [RP_CTF_FACT] = {"fact", "u32 key; u32 value;"},
    [RP_CTF_RESUME] = {"resume", ""},
    [RP_CTF_PAUSE] = {"pause", "u64 ticks;"},
    [RP_CTF_SAMPLE] = {"sample",
                       "u32 tid; u64 ticks; u64 weight_ns; u32 gil_tid; u8 state; u8 flags; "
                       "u8 nframes; u32 frames[nframes];"},
};

struct buffer {
    char *to;
    size_t size, n;
};

__attribute__((format(printf, 2, 3))) static void metadata_add(struct buffer *t, const char *fmt,
                                                               ...)
{
    va_list list;

    va_start(list, fmt);
    int n = vsnprintf(t->to + t->n, t->size - t->n, fmt, list);
    va_end(list);
    if (n > 0 && (size_t)n < t->size - t->n)
        t->n += (size_t)n;
}

size_t rp_core_metadata(char *to, size_t size)
{
    struct rp_ctf_clock now = rp_core_clock_triple();
    uint64_t frequency = rp_core_clock_frequency(), s = now.ticks / frequency;
    uint64_t rest_ns = (uint64_t)((__uint128_t)(now.ticks % frequency) * 1000000000 / frequency);
    int64_t start_ns = now.realtime_ns - (int64_t)(s * 1000000000 + rest_ns);
    struct buffer t = {to, size, 0};

    metadata_add(&t, "/* CTF 1.8 */\n");
    metadata_add(
        &t,
        "env {\n    tracer_name = \"reprise\"; reprise_layout = %d;\n    hostname = \"%s\"; "
        "boot = \"%s\"; rank = %d; world_size = %d;\n};\n",
        RP_CTF_LAYOUT, rp_core.host, rp_core.boot, rp_core.rank, rp_core.world_size);
    metadata_add(
        &t,
        "clock {\n    name = \"counter\"; freq = %llu; offset_s = %lld; offset = %llu; absolute = "
        "TRUE;\n};\n",
        (unsigned long long)frequency, (long long)(start_ns / 1000000000),
        (unsigned long long)((__uint128_t)(start_ns % 1000000000) * frequency / 1000000000));
    metadata_add(&t, "%s", layout);
    for (int i = 0; i < RP_CTF_EVENT_COUNT; i++)
        metadata_add(
            &t,
            "event { name = \"reprise:%s\"; id = %d; stream_id = 0; fields := struct { %s }; };\n",
            events[i].name, i, events[i].fields);
    return t.n;
}

void rp_core_access_init(void)
{
    struct stat st;
    bool known = !stat(rp_core.root, &st);

    rp_core.owner = known ? st.st_uid : geteuid();
    rp_core.folder_mode = S_IRWXU | (known ? st.st_mode & (S_IRWXG | S_ISGID) : 0);
    rp_core.file_mode = RP_CTF_FILE_MODE(rp_core.folder_mode);
}

int rp_core_create(const char *path, int flags)
{
    int fd = open(path, flags | O_CREAT | O_EXCL | O_CLOEXEC, rp_core.file_mode);

    if (fd >= 0)
        (void)!fchmod(fd, rp_core.file_mode); /* sets the mode whatever the program's umask is */
    return fd;
}

static bool write_all(const char *path, const char *bytes, size_t n)
{
    if (!rp_core_fits(n)) {
        errno = EFBIG;
        return false;
    }
    int fd = rp_core_create(path, O_WRONLY);
    if (fd < 0)
        return false;
    ssize_t written = write(fd, bytes, n);
    if (written >= 0 && written < (ssize_t)n)
        errno = ENOSPC;
    return !close(fd) && written == (ssize_t)n;
}

/* Whether the existing metadata describes our clock: it was written since the last boot. */
static bool metadata_is_ours(const char *path)
{
    char head[512], wanted[64];
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    ssize_t n = read(fd, head, sizeof head - 1);
    close(fd);
    head[n > 0 ? n : 0] = '\0';
    snprintf(wanted, sizeof wanted, "boot = \"%s\"", rp_core.boot);
    return strstr(head, wanted) != NULL;
}

/* 1: the folder is ready, 0: it belongs to another boot, -1: it cannot be created (see errno) */
static int folder_try(const char *folder)
{
    char path[sizeof rp_core.folder + 16], hidden[sizeof rp_core.folder + 80], name[64];
    char text[8192];
    int result;

    snprintf(path, sizeof path, "%s/metadata", folder);
    if (!access(path, F_OK))
        return metadata_is_ours(path);
    if (mkdir(folder, rp_core.folder_mode)) {
        if (errno != EEXIST)
            return -1;
    } else if (chmod(folder,
                     rp_core.folder_mode)) { /* sets the mode whatever the program's umask is */
        return -1;
    }
    rp_core_hidden_name(name, sizeof name, "metadata");
    snprintf(hidden, sizeof hidden, "%s/%s", folder, name);
    size_t n = rp_core_metadata(text, sizeof text);
    if (!write_all(hidden, text, n)) {
        int why = errno;

        unlink(hidden);
        errno = why;
        return -1;
    }
    if (!link(hidden, path))
        result = 1;
    else if (errno == EEXIST)
        result = metadata_is_ours(path);
    else /* a file system without hard links */
        result = rename(hidden, path) ? -1 : 1;
    unlink(hidden);
    return result;
}

bool rp_core_folder_open(void)
{
    char folder[sizeof rp_core.folder];
    int result = 0;

    for (int i = 1; i < 100 && result == 0; i++) {
        int n = rp_core.rank >= 0
                    ? snprintf(folder, sizeof folder, "%s/rank%d.%s", rp_core.root, rp_core.rank,
                               rp_core.host)
                    : snprintf(folder, sizeof folder, "%s/%s", rp_core.root, rp_core.host);

        if (i > 1)
            snprintf(folder + n, sizeof folder - (size_t)n, ".%d", i);
        result = folder_try(folder);
    }
    if (result == 1)
        memcpy(rp_core.folder, folder,
               sizeof folder); /* safe, because every thread writes the same bytes */
    return result == 1;
}
