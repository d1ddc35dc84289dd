/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch writes the rank into the first kilobytes of a trace ("distributedInfo"), so peeking at a
 * file costs a fraction of a millisecond. If there are few inputs, all are read, because one may be
 * a recording of captures (captures.h).
 */
#include "dataset/selection.h"

#include "base/hash.h"
#include "dataset/captures.h"
#include "formats/formats.h"
#include "result/settings.h"
#include "trace/merged.h"
#include "trace/run.h"

#include <stdlib.h>
#include <string.h>

bool rp_rank_wanted(const char *list, int32_t n)
{
    while (*list) {
        char *end;
        long low = strtol(list, &end, 10), high = low;

        if (*end == '-')
            high = strtol(end + 1, &end, 10);
        if (n >= low && n <= high)
            return true;
        list = *end == ',' ? end + 1 : "";
    }
    return false;
}

enum rp_code rp_ranks_check(const char *list, struct rp_err *err)
{
    const char *p = list;

    while (p && *p) {
        size_t digits = strspn(p, "0123456789");

        p += digits;
        if (digits && *p == '-') {
            digits = strspn(p + 1, "0123456789");
            p += 1 + digits;
        }
        if (!digits || (*p && *p != ',') || (*p == ',' && !p[1]))
            return rp_err_set(
                err, RP_USAGE,
                "invalid list of ranks '%s': write numbers and ranges, such as '0,3' or '8-15'",
                list);
        p += *p == ',';
    }
    return RP_OK;
}

/* Finds the rank in the first bytes of a trace of PyTorch, or RP_NO_RANK. A merged trace has
   several ranks. */
static int32_t rank_in_head(const char *head, size_t n)
{
    static const char info[] = "\"distributedInfo\"", key[] = "\"rank\"";
    const char *at = memmem(head, n, info, sizeof info - 1), *end = head + n;
    long number = 0;

    if (!at || memmem(head, n, "\"" RP_MERGED_KEY "\"", strlen(RP_MERGED_KEY) + 2))
        return RP_NO_RANK;
    at = memmem(at, (size_t)(end - at), key, sizeof key - 1);
    for (at = at ? at + sizeof key - 1 : end; at < end && (*at == ' ' || *at == ':');)
        at++;
    if (at == end || *at < '0' || *at > '9')
        return RP_NO_RANK;
    for (; at < end && *at >= '0' && *at <= '9' && number < 1000000; at++)
        number = 10 * number + (*at - '0');
    return at < end && number < 1000000 ? (int32_t)number : RP_NO_RANK;
}

/* Reads the number that a source itself states; a source that cannot be read states none. */
static void look_at_head(const struct rp_dataset *dataset, size_t i, struct rp_selection *s)
{
    struct rp_input *in;
    const uint8_t *head;
    size_t n;

    if (rp_source_open(dataset->sources, i, &in, NULL) != RP_OK)
        return;
    if (rp_input_peek(in, RP_SNIFF_BYTES, &head, &n, NULL) == RP_OK) {
        s->number = rank_in_head((const char *)head, n);
        s->by = s->number == RP_NO_RANK ? RP_KNOWN_NOT : RP_KNOWN_BY_HEAD;
    }
    rp_source_return(dataset->sources, i, in);
}

static uint64_t name_key(const struct rp_source *source, int32_t number)
{
    return (uint64_t)source->given << 32 | (uint32_t)number;
}

/* Uses the numbers in names that are different, for sources that state none themselves. */
static enum rp_code look_at_names(const struct rp_dataset *dataset, struct rp_selection *s,
                                  struct rp_err *err)
{
    size_t i, n = rp_sources_count(dataset->sources);
    RP_SCOPED(rp_map_release) struct rp_map seen = {0};
    uint32_t first;

    for (i = 0; i < n; i++) {
        const struct rp_source *source = rp_sources_borrow(dataset->sources, i);

        if (s[i].by == RP_KNOWN_BY_HEAD)
            continue;
        s[i].number = rp_rank_in_name(source->name);
        if (s[i].number == RP_NO_RANK)
            continue;
        s[i].by = RP_KNOWN_BY_NAME;
        RP_TRY(rp_map_intern(&seen, name_key(source, s[i].number), (uint32_t)i, &first, err));
        if (first != i)
            s[i].by = s[first].by = RP_KNOWN_NOT;
    }
    return RP_OK;
}

enum rp_code rp_selection_make(struct rp_dataset *dataset, const char *list, struct rp_arena *arena,
                               struct rp_err *err)
{
    size_t i, n = rp_sources_count(dataset->sources), skipped = 0;

    RP_TRY(rp_ranks_check(list, err));
    if (!list || n <= RP_CAPTURE_SEARCH)
        return RP_OK;
    struct rp_selection *s = RP_ARENA_NEW(arena, struct rp_selection, n);
    RP_TRY(rp_err_need(s, err, "selecting ranks"));
    for (i = 0; i < n; i++)
        if (!rp_is_named_capture(rp_sources_borrow(dataset->sources, i)->name))
            look_at_head(dataset, i, &s[i]);
    RP_TRY(look_at_names(dataset, s, err));
    for (i = 0; i < n; i++) {
        s[i].skip = s[i].by != RP_KNOWN_NOT && !rp_rank_wanted(list, s[i].number) &&
                    !rp_is_named_capture(rp_sources_borrow(dataset->sources, i)->name);
        skipped += s[i].skip;
    }
    if (!skipped || skipped == n)
        return RP_OK; /* if none is wanted, the error must list those that are there */
    dataset->selection = s;
    dataset->nskipped = skipped;
    return RP_OK;
}

/* Whether a time other than 0 is a number without a unit, since nobody means nanoseconds. */
static bool lacks_unit(const char *text, size_t len)
{
    return len && strspn(text, "+-.0123456789") >= len && strspn(text, "+-.0") < len;
}

enum rp_code rp_time_window_parse(const char *text, int64_t *from_ns, int64_t *to_ns,
                                  struct rp_err *err)
{
    static const struct rp_option ends[] = {{"begin", 0, RP_OPT_DURATION, "A", "0", "begin", 0},
                                            {"end", 0, RP_OPT_DURATION, "B", NULL, "end", 0},
                                            RP_OPTION_END};
    const char *dots = strstr(text, "..");
    struct rp_setting given[2];
    struct rp_settings checked;
    char begin[40];
    size_t n = 0, len = dots ? (size_t)(dots - text) : 0;

    if (!dots || len >= sizeof begin)
        return rp_err_set(err, RP_USAGE,
                          "invalid window '%s': write two times, such as '10ms..25ms'", text);
    if (lacks_unit(text, len) || lacks_unit(dots + 2, strlen(dots + 2)))
        return rp_err_set(err, RP_USAGE,
                          "invalid window '%s': a time needs its unit, as in '10ms..25ms'", text);
    memcpy(begin, text, len);
    begin[len] = '\0';
    if (len)
        given[n++] = (struct rp_setting){"begin", begin};
    if (dots[2])
        given[n++] = (struct rp_setting){"end", dots + 2};
    RP_TRY(rp_settings_init(&checked, ends, given, n, err));
    *from_ns = rp_settings_int(&checked, "begin");
    *to_ns = dots[2] ? rp_settings_int(&checked, "end") : INT64_MAX / 2;
    return RP_OK;
}
