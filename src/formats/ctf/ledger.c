/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger of a recording: what its processes could not record, and why. A recording that was
 * moved without it still has the sums in the headers of its packets.
 */
#include "formats/ctf/ctf.h"

#include "formats/ctf/ledger.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const reasons[RP_CTF_LOSS_COUNT] = {
    [RP_CTF_LOSS_DISK] = "the disk was full",
    [RP_CTF_LOSS_LIMIT] = "the limit of the recording was reached (record --limit)",
    [RP_CTF_LOSS_FILE_SIZE] = "the program limits the size of files (ulimit -f)",
    [RP_CTF_LOSS_DENIED] = "the program had no permission to write to the folder",
    [RP_CTF_LOSS_FILES] = "the program had no file descriptor left",
    [RP_CTF_LOSS_MEMORY] = "there was no memory left",
    [RP_CTF_LOSS_SANDBOX] = "the program was in a sandbox",
    [RP_CTF_LOSS_SOURCE] = "the profiling library of the device dropped them",
    [RP_CTF_LOSS_OTHER] = "the folder could not be written",
    [RP_CTF_LOSS_OVERWRITTEN] = "newer ones replaced them",
};

const char *rp_ctf_loss_text(enum rp_ctf_loss why)
{
    return reasons[why];
}

static void add_up(uint64_t *to, uint64_t n)
{
    uint64_t most = (uint64_t)INT64_MAX;

    *to = n > most - *to ? most : *to + n;
}

bool rp_ctf_ledger_add(const char *path, const int32_t *rank, struct rp_ctf_account *to)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct rp_ctf_ledger *ledger = fd >= 0 ? malloc(sizeof *ledger) : NULL;
    bool valid = ledger && read(fd, ledger, sizeof *ledger) == (ssize_t)sizeof *ledger &&
                 ledger->magic == RP_CTF_LEDGER_MAGIC;

    for (size_t i = 0; valid && i < RP_CTF_LEDGER_ROWS; i++) {
        uint64_t who = ledger->rows[i].who, why = who & 255;

        if (who && why < RP_CTF_LOSS_COUNT &&
            (!rank || who == rp_ctf_ledger_who(*rank, (enum rp_ctf_loss)why)))
            add_up(&to->events[why], ledger->rows[i].events);
    }
    if (valid) {
        add_up(&to->commands, ledger->commands);
        add_up(&to->marks, ledger->marks);
        add_up(&to->setup_ns, ledger->setup_ns);
        add_up(&to->cpu_ns, ledger->cpu_ns);
        add_up(&to->recorded_ns, ledger->recorded_ns);
        add_up(&to->unrecorded_ns, ledger->unrecorded_ns);
        add_up(&to->unrecorded_least_ns, ledger->unrecorded_least_ns);
        add_up(&to->unrecorded_most_ns, ledger->unrecorded_most_ns);
        add_up(&to->loaded, ledger->loaded);
    }
    free(ledger);
    if (fd >= 0)
        close(fd);
    return valid;
}

uint64_t rp_ctf_account_lost(const struct rp_ctf_account *account)
{
    uint64_t sum = 0;

    for (int why = 0; why < RP_CTF_LOSS_OVERWRITTEN; why++)
        add_up(&sum, account->events[why]);
    return sum;
}

/* -------------------------------------------------------------------------- of one trace */

/* The value of hostname = "..." in the metadata, if it is one. */
static bool host_of(const struct rp_ctf_reader *r, char *to, size_t size)
{
    static const char key[] = "hostname = \"";
    const char *text = (const char *)r->t.bytes;
    const char *at = memmem(text, r->t.n, key, sizeof key - 1);
    const char *end =
        at ? memchr(at + sizeof key - 1, '"', r->t.n - (size_t)(at - text) - (sizeof key - 1))
           : NULL;
    size_t n = end ? (size_t)(end - at) - (sizeof key - 1) : 0;

    if (!n || n >= size || memchr(at + sizeof key - 1, '/', n))
        return false;
    memcpy(to, at + sizeof key - 1, n);
    to[n] = '\0';
    return true;
}

static enum rp_code add_fact(struct rp_ctf_reader *r, const char *name, uint64_t n,
                             struct rp_err *err)
{
    char text[32];
    rp_str key, value;

    snprintf(text, sizeof text, "%llu", (unsigned long long)n);
    RP_TRY(rp_proto_trace_text(&r->t, name, &key, err));
    RP_TRY(rp_proto_trace_text(&r->t, text, &value, err));
    return rp_builder_add_meta(r->t.builder, key, value, false, err);
}

static enum rp_code report_account(struct rp_ctf_reader *r, const struct rp_ctf_account *account,
                                   struct rp_err *err)
{
    uint64_t lost = rp_ctf_account_lost(account),
             overwritten = account->events[RP_CTF_LOSS_OVERWRITTEN];

    if (lost > (uint64_t)r->t.health->lost_events)
        r->t.health->lost_events = (int64_t)lost;
    for (int why = 0; why < RP_CTF_LOSS_OVERWRITTEN; why++)
        if (account->events[why])
            RP_TRY(rp_builder_warn(r->t.builder, err, "%llu events were lost: %s",
                                   (unsigned long long)account->events[why], reasons[why]));
    if (account->cpu_ns) { /* `record` has seen the end of the program */
        RP_TRY(add_fact(r, "record.spent_ns", account->setup_ns, err));
        RP_TRY(add_fact(r, "record.cpu_ns", account->cpu_ns, err));
    }
    if (!overwritten)
        return RP_OK;
    r->is_ring = true;
    RP_TRY(add_fact(r, "record.overwritten_events", overwritten, err));
    return rp_builder_warn(
        r->t.builder, err,
        "the recording is a ring that kept the end of the run: %llu older events were overwritten",
        (unsigned long long)overwritten);
}

enum rp_code rp_ctf_ledger_read(struct rp_ctf_reader *r, const char *folder, struct rp_err *err)
{
    struct rp_ctf_account account = {0};
    char host[256], *path = NULL;

    if (!folder || !host_of(r, host, sizeof host))
        return RP_OK;
    if (asprintf(&path, "%s/../" RP_CTF_LEDGER_NAME "%s", folder, host) < 0)
        return rp_err_nomem(err, "reading a recording");
    bool found = rp_ctf_ledger_add(path, &r->t.trace->rank, &account);
    free(path);
    return found ? report_account(r, &account, err) : RP_OK;
}
