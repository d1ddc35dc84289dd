/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One event. Its keys may come in any order; what they say is collected in a struct on the stack
 * and handed to the builder when the object is whole, so an event that is cut short leaves no
 * trace. Times are exact decimals; what is wrong with them is counted, and the value nearest to
 * what was written is kept. Categories, origins and tracks of the last events are at hand without
 * asking the builder.
 *
 * Keys of Chrome's format that the model has no place for (cname, tts, tdur, sf, stack frames)
 * are passed over.
 */
#include "base/decimal.h"
#include "formats/chrome/chrome.h"

#define WEEK_NS INT64_C(604800000000000)

#define WORD2(a, b)       ((uint32_t)(a) | (uint32_t)(b) << 8)
#define WORD3(a, b, c)    (WORD2(a, b) | (uint32_t)(c) << 16)
#define WORD4(a, b, c, d) (WORD3(a, b, c) | (uint32_t)(d) << 24)

static enum rp_chrome_field field_of(const struct rp_json_token *key)
{
    const unsigned char *s = (const unsigned char *)key->text;

    switch (key->len) {
    case 1:
        return s[0] == 's' ? RP_CHROME_SCOPE : RP_CHROME_OTHER;
    case 2:
        switch (WORD2(s[0], s[1])) {
        case WORD2('p', 'h'):
            return RP_CHROME_PH;
        case WORD2('t', 's'):
            return RP_CHROME_TS;
        case WORD2('i', 'd'):
            return RP_CHROME_ID;
        case WORD2('b', 'p'):
            return RP_CHROME_BP;
        default:
            return RP_CHROME_OTHER;
        }
    case 3:
        switch (WORD3(s[0], s[1], s[2])) {
        case WORD3('c', 'a', 't'):
            return RP_CHROME_CAT;
        case WORD3('p', 'i', 'd'):
            return RP_CHROME_PID;
        case WORD3('t', 'i', 'd'):
            return RP_CHROME_TID;
        case WORD3('d', 'u', 'r'):
            return RP_CHROME_DUR;
        case WORD3('i', 'd', '2'):
            return RP_CHROME_ID;
        default:
            return RP_CHROME_OTHER;
        }
    case 4:
        switch (WORD4(s[0], s[1], s[2], s[3])) {
        case WORD4('n', 'a', 'm', 'e'):
            return RP_CHROME_NAME;
        case WORD4('a', 'r', 'g', 's'):
            return RP_CHROME_ARGS;
        default:
            return RP_CHROME_OTHER;
        }
    default:
        return RP_CHROME_OTHER;
    }
}

/* -------------------------------------------------------------------------- times */

/* Reads a time and notes what is wrong with it. Returns the flags of rp_decimal_parse, with
   RP_DECIMAL_INVALID if it is not a number. */
static unsigned read_time(struct rp_chrome_event *e, const struct rp_json_token *v, int64_t *out)
{
    unsigned flags = RP_DECIMAL_INVALID;
    int64_t ns = 0;

    if (v->kind == RP_JSON_NUMBER || v->kind == RP_JSON_STRING)
        flags = rp_decimal_parse(v->text, v->len, 3, &ns);
    if (ns > RP_TIME_MAX_NS || ns < -RP_TIME_MAX_NS) {
        flags |= RP_DECIMAL_RANGE;
        ns = ns < 0 ? -RP_TIME_MAX_NS : RP_TIME_MAX_NS;
    }
    e->bad_times += (flags & RP_DECIMAL_INVALID) && v->kind != RP_JSON_NULL;
    e->huge_times += (flags & RP_DECIMAL_RANGE) != 0;
    e->rounded += (flags & RP_DECIMAL_ROUNDED) != 0;
    if (flags & RP_DECIMAL_ROUNDED)
        e->flags |= RP_EVENT_ROUNDED;
    *out = ns;
    return flags;
}

static void set_ts(struct rp_chrome_event *e, const struct rp_json_token *v)
{
    unsigned flags = read_time(e, v, &e->ts_ns);

    if (flags & RP_DECIMAL_INVALID) {
        e->ts_ns = RP_NO_TS;
        if (v->kind == RP_JSON_NULL)
            e->seen &= ~(1u << RP_CHROME_TS);
    }
    e->fraction = (flags & RP_DECIMAL_FRACTION) && v->kind == RP_JSON_NUMBER;
}

static void set_dur(struct rp_chrome_event *e, const struct rp_json_token *v)
{
    unsigned flags = read_time(e, v, &e->dur_ns);

    if (flags & RP_DECIMAL_INVALID) { /* treated like a time that is not there */
        e->dur_ns = RP_OPEN_NS;
        e->seen &= ~(1u << RP_CHROME_DUR);
    }
}

/* -------------------------------------------------------------------------- fields */

/* Whether a text is a whole number as a writer of numbers would write it. */
static bool is_plain_number(const struct rp_json_token *v)
{
    return v->len && (v->text[0] != '0' || v->len == 1) && (v->text[0] != '-');
}

enum rp_code rp_chrome_set_ident(struct rp_chrome *r, struct rp_chrome_ident *to,
                                 struct rp_json_token *v, bool numeric, struct rp_err *err)
{
    *to = (struct rp_chrome_ident){.given = true};
    if (v->kind == RP_JSON_NULL) {
        to->given = false;
        return RP_OK;
    }
    if ((v->kind == RP_JSON_NUMBER ? v->is_integer : numeric && is_plain_number(v)) &&
        rp_chrome_parse_int(v->text, v->len, &to->number))
        return RP_OK;
    if (v->kind != RP_JSON_STRING)
        v->has_escapes = false;
    if (!v->len)
        to->number = RP_ID_EMPTY;
    return rp_chrome_intern_name(r, v, &to->text, err);
}

/* "id2": {"local": "0x1f"} */
static enum rp_code read_id2(struct rp_chrome *r, struct rp_chrome_event *e, struct rp_err *err)
{
    uint32_t depth = rp_json_depth(r->json);
    struct rp_json_token key, v;

    if (rp_json_value(r->json, &v) != RP_JSON_OBJECT) {
        rp_chrome_pass(r->json, depth);
        return RP_OK;
    }
    while (rp_json_field(r->json, &key)) {
        if (rp_chrome_at_container(r->json))
            rp_json_skip(r->json);
        else if (rp_json_value(r->json, &v) != RP_JSON_NONE) {
            RP_TRY(rp_chrome_set_ident(r, &e->id, &v, false, err));
            e->id.local = e->id.given && rp_json_key_is(&key, "local");
        }
    }
    return RP_OK;
}

static enum rp_code read_args_field(struct rp_chrome *r, struct rp_chrome_event *e,
                                    struct rp_err *err)
{
    struct rp_json_token v;
    uint32_t depth = rp_json_depth(r->json);

    e->args = (struct rp_chrome_args){0};
    if (rp_json_value(r->json, &v) == RP_JSON_OBJECT)
        return rp_chrome_read_args(r, r->categories.at[e->category].root, &e->args, err);
    rp_chrome_pass(r->json, depth);
    return RP_OK;
}

static uint8_t scope_of(const struct rp_json_token *v)
{
    if (v->kind != RP_JSON_STRING || v->len != 1)
        return 0;
    return v->text[0] == 'g'   ? RP_ORIGIN_SCOPE_GLOBAL
           : v->text[0] == 'p' ? RP_ORIGIN_SCOPE_PROCESS
           : v->text[0] == 't' ? RP_ORIGIN_SCOPE_THREAD
                               : 0;
}

/* Whether a value may differ in other events of the same template. */
static bool is_variable(enum rp_chrome_field field, const struct rp_json_token *v)
{
    switch (field) {
    case RP_CHROME_NAME:
        return v->kind == RP_JSON_STRING;
    case RP_CHROME_PID:
    case RP_CHROME_TID:
    case RP_CHROME_ID:
        return v->kind == RP_JSON_STRING || v->is_integer;
    case RP_CHROME_TS:
    case RP_CHROME_DUR:
        return v->kind == RP_JSON_NUMBER && (unsigned char)(v->text[v->len - 1] - '0') < 10;
    default:
        return false;
    }
}

static enum rp_code read_field(struct rp_chrome *r, struct rp_chrome_event *e,
                               struct rp_json_token *key, struct rp_err *err)
{
    struct rp_json_token v;

    if (key->has_escapes && !rp_json_decode(r->json, key))
        return RP_OK;
    enum rp_chrome_field field = field_of(key);
    e->duplicates += field != RP_CHROME_OTHER && (e->seen >> field & 1);
    e->seen |= 1u << field;
    if (field == RP_CHROME_ARGS)
        return read_args_field(r, e, err);
    if (field == RP_CHROME_ID && rp_chrome_at_container(r->json))
        return read_id2(r, e, err);
    if (field == RP_CHROME_OTHER || rp_chrome_at_container(r->json)) {
        rp_json_skip(r->json);
        return RP_OK;
    }
    rp_chrome_learn_begin(r);
    if (rp_json_value(r->json, &v) == RP_JSON_NONE)
        return RP_OK;
    if (is_variable(field, &v))
        RP_TRY(rp_chrome_learn_value(r, field, &v, 0, 0, err));

    switch (field) {
    case RP_CHROME_PH:
        e->phase = v.kind == RP_JSON_STRING && v.len == 1 ? v.text[0] : 0;
        return RP_OK;
    case RP_CHROME_CAT:
        return rp_chrome_category(r, &v, &e->category, err);
    case RP_CHROME_NAME:
        if (v.kind == RP_JSON_NULL)
            return RP_OK;
        return rp_chrome_intern_name(r, &v, &e->name, err);
    case RP_CHROME_PID:
        return rp_chrome_set_ident(r, &e->pid, &v, false, err);
    case RP_CHROME_TID:
        return rp_chrome_set_ident(r, &e->tid, &v, false, err);
    case RP_CHROME_TS:
        set_ts(e, &v);
        return RP_OK;
    case RP_CHROME_DUR:
        set_dur(e, &v);
        return RP_OK;
    case RP_CHROME_ID:
        return rp_chrome_set_ident(r, &e->id, &v, true, err);
    case RP_CHROME_BP:
        e->flow_flags = v.len == 1 && v.text[0] == 'e' ? RP_FLOW_BIND_ENCLOSING : 0;
        return RP_OK;
    case RP_CHROME_SCOPE:
        e->scope = scope_of(&v);
        return RP_OK;
    default:
        return RP_OK;
    }
}

/* -------------------------------------------------------------------------- category, origin */

static enum rp_code new_category(struct rp_chrome *r, struct rp_json_token *token, uint32_t *out,
                                 struct rp_err *err)
{
    struct rp_chrome_category fresh = {.text = token->text, .len = token->len};

    RP_TRY(rp_chrome_intern_token(r, token, &fresh.str, err));
    *out = rp_map_get(&r->category_of, fresh.str);
    if (*out != RP_MAP_NONE)
        return RP_OK;
    *out = (uint32_t)r->categories.n;
    fresh.text = rp_arena_copy(&r->arena, fresh.text, fresh.len);
    RP_TRY(rp_err_need(fresh.text, err, "reading categories"));
    struct rp_chrome_kind is = rp_chrome_category_kind(token->text, token->len);
    fresh.kind = is.kind;
    fresh.flags = is.flags;
    r->facts.signs |= is.signs;
    RP_TRY(rp_chrome_new_root(r, &fresh.root, err));
    RP_TRY(rp_map_put(&r->category_of, fresh.str, *out, err));
    return rp_vec_push(&r->categories, fresh, err);
}

/* The category of a token; a NULL token gives category 0, which is that of events without one. */
enum rp_code rp_chrome_category(struct rp_chrome *r, struct rp_json_token *token, uint32_t *out,
                                struct rp_err *err)
{
    uint32_t n = (uint32_t)r->categories.n;

    if (!token || token->kind == RP_JSON_NULL) {
        struct rp_chrome_category none = {0};

        *out = 0;
        if (n)
            return RP_OK;
        RP_TRY(rp_chrome_new_root(r, &none.root, err));
        return rp_vec_push(&r->categories, none, err);
    }
    for (uint32_t i = r->last_category, k = 0; k < n && k < 32; k++, i = i + 1 < n ? i + 1 : 0) {
        const struct rp_chrome_category *c = &r->categories.at[i];

        if (c->text && c->len == token->len && memcmp(c->text, token->text, token->len) == 0) {
            *out = r->last_category = i;
            return RP_OK;
        }
    }
    return new_category(r, token, out, err);
}

static enum rp_code find_origin(struct rp_chrome *r, const struct rp_chrome_event *e, uint8_t kind,
                                uint16_t *out, struct rp_err *err)
{
    struct rp_chrome_category *c = &r->categories.at[e->category];
    char phase = e->phase;
    size_t i;

    for (i = 0; i < sizeof c->recent / sizeof *c->recent; i++)
        if (c->recent[i].phase == phase && c->recent[i].kind == kind &&
            c->recent[i].scope == e->scope) {
            *out = c->recent[i].origin;
            return RP_OK;
        }
    struct rp_origin origin = {.category = c->str,
                               .phase = phase,
                               .kind = rp_chrome_phase_kind(phase, kind),
                               .flags = (uint8_t)((phase == 'X' ? c->flags : 0) | e->scope),
                               .has_category = c->text != NULL};
    RP_TRY(rp_builder_origin(r->builder, &origin, out, err));
    i = c->next++ % (sizeof c->recent / sizeof *c->recent);
    c->recent[i].phase = phase;
    c->recent[i].kind = kind;
    c->recent[i].scope = e->scope;
    c->recent[i].origin = *out;
    return RP_OK;
}

/* -------------------------------------------------------------------------- tracks */

static bool same_ident(const struct rp_chrome_ident *a, int64_t number, rp_str text)
{
    return a->number == number && a->text == text;
}

enum rp_code rp_chrome_find_track(struct rp_chrome *r, const struct rp_chrome_ident *pid,
                                  const struct rp_chrome_ident *tid, rp_track *out,
                                  struct rp_err *err)
{
    uint64_t h = rp_hash_mix(
        (uint64_t)pid->number ^ (uint64_t)pid->text << 32 ^ UINT64_C(0x9e3779b97f4a7c15),
        (uint64_t)tid->number ^ (uint64_t)tid->text << 32 ^ UINT64_C(0xd6e8feb86659fd93));
    struct rp_chrome_track *t = &r->tracks[h % RP_CHROME_TRACKS];
    uint32_t process;

    if (t->used && same_ident(pid, t->pid, t->pid_text) && same_ident(tid, t->tid, t->tid_text) &&
        t->has_tid == tid->given) {
        *out = t->track;
        return RP_OK;
    }
    RP_TRY(rp_builder_process(r->builder, pid->number, pid->text, &process, err));
    RP_TRY(rp_builder_track(r->builder, process, tid->number, tid->text, tid->given, out, err));
    *t = (struct rp_chrome_track){.pid = pid->number,
                                  .tid = tid->number,
                                  .pid_text = pid->text,
                                  .tid_text = tid->text,
                                  .track = *out,
                                  .has_tid = tid->given,
                                  .used = true};
    return RP_OK;
}

static uint8_t get(const uint8_t *at, size_t n, uint32_t i)
{
    return i < n ? at[i] : 0;
}

#define SET_AT(vec, i, value, err) set_at(&(vec)->at, &(vec)->n, &(vec)->cap, i, value, err)

static enum rp_code set_at(uint8_t **at, size_t *n, size_t *cap, uint32_t i, uint8_t value,
                           struct rp_err *err)
{
    if (i >= *cap)
        RP_TRY(rp_vec_grow((void **)at, cap, *n, i + 1 - *n, 1, err));
    for (; *n <= i; ++*n)
        (*at)[*n] = 0;
    (*at)[i] = value;
    return RP_OK;
}

static bool begins_with(const char *s, size_t len, const char *word)
{
    return len >= strlen(word) && memcmp(s, word, strlen(word)) == 0;
}

/* The names of processes tell who wrote the file, and which tracks of XProf are streams, because
   its events have no category. These names come before the events for which they are needed. */
static enum rp_code read_metadata(struct rp_chrome *r, const struct rp_chrome_event *e,
                                  rp_track track, struct rp_err *err)
{
    size_t len;
    uint32_t process;

    if (!e->args.n || r->args.at[0].type != RP_ARG_STR)
        return RP_OK;
    rp_str name = r->args.at[0].v.s;
    const char *s = rp_builder_borrow_str(r->builder, e->name, &len);
    RP_TRY(rp_builder_process(r->builder, e->pid.number, e->pid.text, &process, err));
    if (len == 12 && memcmp(s, "process_name", 12) == 0) {
        s = rp_builder_borrow_str(r->builder, name, &len);
        if (begins_with(s, len, "/job:"))
            r->facts.signs |= RP_CHROME_TF_TIMELINE;
        if (begins_with(s, len, "/host:CPU") || begins_with(s, len, "/device:"))
            r->facts.signs |= RP_CHROME_XPROF;
        if (begins_with(s, len, "horovod"))
            r->facts.signs |= RP_CHROME_HOROVOD;
        rp_chrome_note_rocprof(r, &e->pid, s, len);
        if (begins_with(s, len, "/device:GPU"))
            return SET_AT(&r->is_device, process, 1, err);
    } else if (len == 11 && memcmp(s, "thread_name", 11) == 0) {
        s = rp_builder_borrow_str(r->builder, name, &len);
        if (begins_with(s, len, "Stream #") && get(r->is_device.at, r->is_device.n, process))
            return SET_AT(&r->track_kind, track, RP_KIND_KERNEL, err);
    }
    return RP_OK;
}

/* -------------------------------------------------------------------------- the event */

/* An event without a category gets its kind by the stream it runs on, or by its name. All of
   TensorFlow's have the category "Op". */
static uint8_t guess_kind(struct rp_chrome *r, const struct rp_chrome_event *e, rp_track track)
{
    uint8_t on = get(r->track_kind.at, r->track_kind.n, track);
    size_t len;
    const char *s = rp_builder_borrow_str(r->builder, e->name, &len);

    if (e->category)
        return len == 10 && !memcmp(s, "RecvTensor", 10) ? RP_KIND_TRANSFER : RP_KIND_CPU_OP;
    if (on == RP_KIND_KERNEL && e->phase == 'X') {
        if (begins_with(s, len, "Memcpy"))
            return RP_KIND_MEMCPY;
        return begins_with(s, len, "Memset") ? RP_KIND_MEMSET : RP_KIND_KERNEL;
    }
    return rp_chrome_name_kind(s, len, e->phase, &r->facts.signs);
}

static enum rp_code put_ident(struct rp_chrome *r, const struct rp_chrome_ident *id,
                              struct rp_err *err)
{
    char number[24];
    const char *s = number;
    size_t len;

    if (id->text)
        s = rp_builder_borrow_str(r->builder, id->text, &len);
    else
        len = id->number == RP_ID_EMPTY ? 0 : rp_decimal_format(id->number, 0, number);
    RP_TRY(rp_vec_reserve(&r->scratch, len + 1, err));
    memcpy(r->scratch.at + r->scratch.n, s, len);
    r->scratch.at[r->scratch.n + len] = ':';
    r->scratch.n += len + 1;
    return RP_OK;
}

static enum rp_code add_flow(struct rp_chrome *r, const struct rp_chrome_event *e, rp_track track,
                             uint16_t origin, struct rp_err *err)
{
    struct rp_raw_flow flow = {.ts_ns = e->ts_ns,
                               .id = e->id.text ? (int64_t)e->id.text : e->id.number,
                               .name = e->name,
                               .track = track,
                               .origin = origin,
                               .shape = e->args.shape,
                               .flags = e->flow_flags,
                               .args = r->args.at,
                               .nargs = e->args.n};

    if (!e->id.given)
        flow.flags |= RP_FLOW_NO_ID;
    else if (e->id.text || e->id.number == RP_ID_EMPTY)
        flow.flags |= RP_FLOW_ID_TEXT;
    if (flow.id == RP_ID_EMPTY)
        flow.id = 0;
    return rp_builder_add_flow(r->builder, &flow, err);
}

/* Whether the id belongs to the event, as in chains, objects, and counters that have one. */
static bool has_async_id(const struct rp_chrome_event *e)
{
    return e->id.given && e->phase != 'X' && strchr("bneSTpFNODC", e->phase);
}

static enum rp_code add_event(struct rp_chrome *r, const struct rp_chrome_event *e, rp_track track,
                              uint16_t origin, struct rp_err *err)
{
    struct rp_raw raw = {.ts_ns = e->ts_ns,
                         .dur_ns = e->phase == 'X' ? e->dur_ns : RP_OPEN_NS,
                         .name = e->name,
                         .track = track,
                         .origin = origin,
                         .shape = e->args.shape,
                         .flags = e->flags,
                         .has_link = e->args.has_correlation,
                         .link = e->args.correlation,
                         .args = r->args.at,
                         .nargs = e->args.n};

    if (e->phase == 'X' && !(e->seen >> RP_CHROME_DUR & 1))
        raw.flags |= RP_EVENT_NO_DUR;
    if (has_async_id(e)) {
        bool text = e->id.text || e->id.number == RP_ID_EMPTY;

        raw.flags |= (uint8_t)(RP_EVENT_ASYNC | (text ? RP_EVENT_ID_TEXT : 0));
        raw.has_link = true;
        raw.link = text ? (int64_t)e->id.text : e->id.number;
    } else if (e->args.has_correlation && e->args.correlation_is_text) {
        raw.flags |= RP_EVENT_ID_TEXT;
    }
    if (e->phase == 'M')
        RP_TRY(read_metadata(r, e, track, err));
    return rp_builder_add(r->builder, &raw, err);
}

static void count_times(struct rp_health *h, const struct rp_chrome_event *e)
{
    h->non_int_ts += e->fraction;
    if (e->bad_times | e->huge_times | e->rounded) {
        h->bad_time += e->bad_times;
        h->huge_time += e->huge_times;
        h->rounded_time += e->rounded;
    }
    h->duplicate_keys += (int64_t)e->duplicates + e->args.duplicates;
    h->missing_ts += e->phase != 'M' && !(e->seen >> RP_CHROME_TS & 1);
    if (e->phase != 'X')
        return;
    h->missing_dur += !(e->seen >> RP_CHROME_DUR & 1);
    h->negative_dur += (e->seen >> RP_CHROME_DUR & 1) && e->dur_ns < 0;
    h->absurd_dur += e->dur_ns > WEEK_NS;
}

enum rp_code rp_chrome_add(struct rp_chrome *r, const struct rp_chrome_event *e, struct rp_err *err)
{
    uint8_t kind = r->categories.at[e->category].kind;
    struct rp_chrome_event scoped, unfused, placed;
    uint16_t origin;
    rp_track track;
    bool rocprof = !e->category && r->facts.signs & RP_CHROME_ROCPROF;
    uint8_t known = RP_KIND_OTHER;

    if (!e->phase) {
        /* XProf ends the list with {} */
        *(e->seen ? &r->health->skipped_events : &r->health->empty_events) += 1;
        return RP_OK;
    }
    count_times(r->health, e);
    if (r->fused.pid_raw) {
        unfused = *e;
        RP_TRY(rp_chrome_unfuse(r, &unfused, err));
        e = &unfused;
    }
    if (rocprof) {
        placed = *e;
        RP_TRY(rp_chrome_place_rocprof(r, &placed, &known, err));
        e = &placed;
    }
    RP_TRY(rp_chrome_find_track(r, &e->pid, &e->tid, &track, err));
    if (known != RP_KIND_OTHER)
        kind = known;
    else if (!e->category || (kind == RP_KIND_CPU_OP && r->facts.signs & RP_CHROME_TF_TIMELINE))
        kind = guess_kind(r, e, track);
    RP_TRY(find_origin(r, e, kind, &origin, err));
    r->nevents++;
    if (e->id.local) {
        scoped = *e;

        /* Makes one text of a local id and its process, "local:PID:ID", so that equal ids of two
           processes stay apart, also after the trace is written and read again. The pid may come
           after the id. */
        static const char word[] = "local:";
        r->scratch.n = 0;
        RP_TRY(rp_vec_reserve(&r->scratch, sizeof word, err));
        memcpy(r->scratch.at, word, sizeof word - 1);
        r->scratch.n = sizeof word - 1;
        RP_TRY(put_ident(r, &scoped.pid, err));
        RP_TRY(put_ident(r, &scoped.id, err));
        scoped.id = (struct rp_chrome_ident){.given = true};
        RP_TRY(rp_chrome_intern(r, r->scratch.at, r->scratch.n - 1, &scoped.id.text, err));
        e = &scoped;
    }
    if (e->phase == 's' || e->phase == 't' || e->phase == 'f')
        return add_flow(r, e, track, origin, err);
    return add_event(r, e, track, origin, err);
}

enum rp_code rp_chrome_read_event(struct rp_chrome *r, struct rp_err *err)
{
    struct rp_chrome_event e = {.ts_ns = RP_NO_TS, .dur_ns = RP_OPEN_NS};
    struct rp_json_token key;

    while (rp_json_field(r->json, &key))
        RP_TRY(read_field(r, &e, &key, err));
    if (rp_json_failed(r->json))
        return RP_OK;
    if (e.phase && e.phase != 'M')
        RP_TRY(rp_chrome_learn_end(r, &e, err));
    return rp_chrome_add(r, &e, err);
}
