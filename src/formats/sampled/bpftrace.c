/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads maps of stacks as bpftrace prints them when it ends, innermost frame first:
 *
 *     @[
 *         do_syscall_64+92
 *         read+17
 *         main+40
 *     , python3]: 12
 *
 * Texts beside the stacks (comm, pid) become the outermost frames. There are no times; the script
 * decides what is counted.
 */
#include "formats/sampled/sampled.h"

/* Finds where "]: 12" ends an entry; gives *count and the text before it. */
static bool cut_count(struct rp_bytes *line, int64_t *count)
{
    const uint8_t *colon = line->n ? memrchr(line->at, ':', line->n) : NULL;

    if (!colon || colon == line->at || colon[-1] != ']' ||
        !rp_bytes_number(
            rp_bytes_trim((struct rp_bytes){colon + 1, (size_t)(line->at + line->n - colon - 1)}),
            count))
        return false;
    line->n = (size_t)(colon - 1 - line->at);
    return true;
}

/* Keeps a line of frames, or of texts between commas. Texts are outside of all frames, so they are
   kept last. */
static enum rp_code keep_part(struct rp_profile *p, struct rp_bytes line, struct rp_bytes *texts)
{
    struct rp_bytes part = rp_bytes_trim(line);

    if (!part.n || rp_bytes_are(part, ","))
        return RP_OK;
    if (part.at[0] == ',') {
        part.at++;
        part.n--;
        *texts = rp_bytes_trim(part);
        return RP_OK;
    }
    if (part.at[part.n - 1] == ',')
        part.n--;

    /* cuts the offset from "name+12" */
    const uint8_t *plus = part.n ? memrchr(part.at, '+', part.n) : NULL;
    struct rp_bytes name = part;
    int64_t offset;
    if (plus && plus > part.at &&
        rp_bytes_number((struct rp_bytes){plus + 1, (size_t)(part.at + part.n - plus - 1)},
                        &offset))
        name.n = (size_t)(plus - part.at);
    struct rp_profile_frame frame = rp_profile_parse_frame(name);
    return rp_profile_keep(p, &frame);
}

/* Reads the lines of one entry; `rest` is what follows its '['. */
static enum rp_code read_entry(struct rp_profile *p, struct rp_bytes rest)
{
    struct rp_bytes line = rest, texts = {0};
    int64_t count;

    do {
        if (cut_count(&line, &count)) {
            RP_TRY(keep_part(p, line, &texts));
            struct rp_profile_frame frame = {.name = texts};
            rp_track track;
            if (texts.n)
                RP_TRY(rp_profile_keep(p, &frame));
            RP_TRY(rp_profile_push_kept(p));
            RP_TRY(rp_profile_thread(p, 0, 0, (struct rp_bytes){0}, &track));
            return rp_profile_sample(p, track, RP_NO_TS, count, 0);
        }
        RP_TRY(keep_part(p, line, &texts));
    } while (rp_profile_line(p, &line));
    return rp_profile_bad_line(p, "the file ends inside a stack");
}

static enum rp_code read_bpftrace(struct rp_input *in, const struct rp_read_options *options,
                                  struct rp_import *to, struct rp_err *err)
{
    RP_SCOPED(rp_profile_release) struct rp_profile p = {0};

    RP_TRY(rp_profile_begin(&p, in, options, "bpftrace", err));
    struct rp_bytes line;
    while (rp_profile_line(&p, &line)) {
        const uint8_t *open = memchr(line.at, '[', line.n);

        if (!line.n || line.at[0] != '@' || !open) {
            p.skipped += rp_bytes_trim(line).n != 0 && !rp_bytes_begin(line, "Attach");
            continue;
        }
        RP_TRY(read_entry(&p, (struct rp_bytes){open + 1, (size_t)(line.at + line.n - open - 1)}));
    }
    RP_TRY(rp_profile_unit(&p, RP_WEIGHT_COUNT, "samples"));
    return rp_profile_end(&p, to);
}

/* Recognises an entry whose first line ends with its '[', which is a map of stacks, not of
   numbers. */
static enum rp_sniff sniff_bpftrace(const uint8_t *head, size_t n, const char *file)
{
    struct rp_profile p = {.t = {.bytes = head, .n = n}, .at = head};
    struct rp_bytes line;
    int lines = 0;

    (void)file;
    while (lines++ < 20 && rp_profile_line(&p, &line)) {
        line = rp_bytes_trim(line);
        if (line.n > 1 && line.at[0] == '@' && line.at[line.n - 1] == '[')
            return RP_SNIFF_CERTAIN;
        if (line.n && !rp_bytes_begin(line, "Attach"))
            return RP_SNIFF_NO;
    }
    return RP_SNIFF_NO;
}

const struct rp_format rp_format_bpftrace = {
    .name = "bpftrace",
    .summary = "maps of stacks of bpftrace: samples without times",
    .files = "*.txt, *.bt.out",
    .written_by = "bpftrace",
    .kind = RP_FORMAT_KIND_TRACE,
    .sniff = sniff_bpftrace,
    .read = read_bpftrace,
};
