/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads Python stacks of CPython 3.9 to 3.15 from the interpreter's memory, without running any
 * code of it. Up to 3.12, tables give the offsets of its fields; from 3.13 on, the interpreter
 * states them (_Py_DebugOffsets).
 *
 * The evaluation loop of C runs one or several Python frames. An address on the C stack tells which
 * of them belong to one loop: that of its _PyCFrame in 3.11, that of its first, empty frame from
 * 3.12 on. Before 3.11, each frame has a loop of its own.
 */
#include "capture/sample/sample.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODES   (1u << 15) /* number of texts that are kept, by code object and instruction */
#define CHECK   INT64_C(1000000000) /* ns after which a code object is checked again */
#define LINES   (16 << 10)          /* most bytes of a table of lines that are read */
#define THREADS 4096
#define ABSENT  UINT16_MAX
#define C_STACK 3   /* value of `owner` in the first frame of a loop */
#define FRAME   112 /* most bytes of a frame that are read */
#define TAGS    7   /* bits of a reference that do not belong to its address, from 3.14 on */

struct layout {
    uint16_t interpreters, interpreter_next, threads; /* _PyRuntime, PyInterpreterState */
    uint16_t next, tid, thread, frame;                /* PyThreadState; frame: or cframe */
    uint16_t cframe_frame, cframe_previous;           /* _PyCFrame; ABSENT if there is none */
    uint16_t code, instr, previous, entry, owner;     /* a frame */
    uint16_t file, name, lines, first, bytecode;      /* PyCodeObject */
    uint16_t ascii, compact;                          /* sizes of the heads of texts */
    uint16_t gil; /* offset in _PyRuntime, or of a pointer in the interpreter */
    bool gil_by_pointer;
};

static const struct layout layouts[] = {
    [9] = {32, 0, 8,   8,   ABSENT, 176, 24, ABSENT, 0,  32,  104,  24,
           0,  0, 104, 112, 120,    40,  0,  48,     72, 360, false},
    [10] = {32, 0, 8,   8,   ABSENT, 176, 24, ABSENT, 0,  32,  96,   24,
            0,  0, 104, 112, 120,    40,  0,  48,     72, 360, false},
    [11] = {40, 0,  16,  8,   160, 152, 56,  8,  16, 32,  56,   48,
            68, 69, 112, 128, 136, 72,  184, 48, 72, 368, false},
    [12] = {40, 0,  72,  8,   144, 136, 56,  0,  0,  0,   56,  8,
            0,  70, 112, 128, 136, 68,  192, 40, 56, 384, true},
};

static struct layout at;
static unsigned minor;   /* minor version; 0: no interpreter was found */
static uint64_t runtime; /* address of _PyRuntime */
static uint64_t code_type,
    text_type;                       /* addresses of PyCode_Type and PyUnicode_Type; 0: not found */
static uint64_t loop;                /* address of the evaluation loop */
static const char *interpreter_path; /* of its file */
static uint64_t lock;                /* address of the holder of the global lock; 0: not known */
static uint64_t held_by;             /* the last holder, and the id of its thread */
static uint32_t held_tid;
static struct rp_sample_window names_window;

/* -------------------------------------------------------------------------- finding it */

/* From 3.13 on: the words of _Py_DebugOffsets for the fields, in the order of `fields` below. */
#define FIELDS 17
static const uint8_t words[][FIELDS] = {
    [13] = {5, 8, 9, 14, 21, 23, 24, 25, 29, 30, 31, 33, 35, 37, 38, 39, 43},
    [14] = {5, 8, 9, 15, 24, 26, 27, 28, 32, 33, 34, 36, 40, 42, 43, 44, 48},
    [15] = {5, 8, 9, 15, 24, 26, 30, 31, 40, 41, 42, 44, 48, 50, 51, 52, 56},
};
#define NEWEST (sizeof words / sizeof *words - 1)

static bool read_offsets(unsigned version)
{
    uint64_t v[57];
    struct layout l = {.ascii = 40, .compact = 56, .cframe_frame = ABSENT, .gil_by_pointer = true};
    uint16_t *const fields[FIELDS] = {&l.interpreters, &l.interpreter_next,
                                      &l.threads,      &l.gil,
                                      &l.next,         &l.frame,
                                      &l.thread,       &l.tid,
                                      &l.previous,     &l.code,
                                      &l.instr,        &l.owner,
                                      &l.file,         &l.name,
                                      &l.lines,        &l.first,
                                      &l.bytecode};

    if (rp_sample_read(runtime, v, sizeof v) != sizeof v || memcmp(v, "xdebugpy", 8) != 0 ||
        v[1] >> 16 != (0x0300 | version) ||
        v[2]) /* v[2]: the build has no global lock, so lists differ */
        return false;
    for (size_t i = 0; i < FIELDS; i++) {
        if (v[words[version][i]] >= ABSENT)
            return false;
        *fields[i] = (uint16_t)v[words[version][i]];
    }
    at = l;
    return l.owner < FRAME;
}

static bool find_layout(unsigned version)
{
    if (version >= 13)
        return version <= NEWEST && read_offsets(version);
    if (version >= 9)
        at = layouts[version];
    return version >= 9;
}

/* The version is in the file's name: "python3.11", "libpython3.11.so.1.0". */
static unsigned version_of(struct rp_sample_module *m)
{
    uint64_t address = rp_sample_module_symbol(m, "Py_Version"); /* from 3.11 on */
    const char *name = strrchr(m->path, '/');
    uint32_t version = 0;

    if (address && rp_sample_read(address, &version, 4) == 4 && version >> 24 == 3)
        return version >> 16 & 255;
    name = name ? strstr(name, "python3.") : NULL;
    return name ? (unsigned)strtoul(name + 8, NULL, 10) : 0;
}

unsigned rp_sample_python_find(void)
{
    struct rp_sample_module *list;
    size_t n = rp_sample_modules(&list);

    for (size_t i = 0; i < n && !minor; i++) {
        const char *name = strrchr(list[i].path, '/');

        /* an executable may hold the interpreter under any name; libraries are named after it, and
           extensions have an ABI in their names */
        if (!name ||
            (strstr(name, ".so") && (!strstr(name, "python") || strstr(name, ".cpython-"))))
            continue;
        runtime = rp_sample_module_symbol(&list[i], "_PyRuntime");
        unsigned version = runtime ? version_of(&list[i]) : 0;
        if (!find_layout(version))
            continue;
        interpreter_path = list[i].path;
        loop = rp_sample_module_symbol(&list[i], "_PyEval_EvalFrameDefault");
        code_type = rp_sample_module_symbol(&list[i], "PyCode_Type");
        text_type = rp_sample_module_symbol(&list[i], "PyUnicode_Type");
        minor = version;
    }
    return minor;
}

const char *rp_sample_python_path(void)
{
    return interpreter_path;
}

bool rp_sample_python_is_loop(uint64_t start)
{
    return loop && start == loop;
}

/* -------------------------------------------------------------------------- threads */

/* Before 3.11, only the C library's handle is known, which contains the number. */
static uint32_t tid_of(uint64_t state)
{
#if defined(__x86_64__)
    enum { TID_IN_THREAD = 720 };
#else
    enum { TID_IN_THREAD = 208 };
#endif
    uint64_t v = 0;
    uint32_t tid = 0;

    if (at.tid != ABSENT)
        return rp_sample_peek8(&names_window, state + at.tid, &v) ? (uint32_t)v : 0;
    if (!rp_sample_peek8(&names_window, state + at.thread, &v) ||
        rp_sample_read(v + TID_IN_THREAD, &tid, 4) != 4)
        return 0;
    return tid;
}

/* struct _gil_runtime_state has the interval, the last holder, and whether it is locked. Up to 3.11
   the offset is that of the holder. */
static void find_lock(void)
{
    uint64_t gil = runtime + at.gil;

    lock = held_by = 0;
    if (at.gil_by_pointer) {
        if (!rp_sample_peek8(&names_window, runtime + at.interpreters, &gil) || !gil ||
            !rp_sample_peek8(&names_window, gil + at.gil, &gil) || !gil)
            return;
        gil += 8;
    }
    lock = gil;
}

void rp_sample_python_threads(void (*call)(uint32_t tid, uint64_t state))
{
    uint64_t interpreter = 0, state = 0;
    unsigned n = 0;

    names_window.n = 0;
    if (!minor || !rp_sample_peek8(&names_window, runtime + at.interpreters, &interpreter))
        return;
    find_lock();
    while (interpreter && n < THREADS) {
        if (!rp_sample_peek8(&names_window, interpreter + at.threads, &state))
            return;
        while (state && n++ < THREADS) {
            call(tid_of(state), state);
            if (!rp_sample_peek8(&names_window, state + at.next, &state))
                return;
        }
        if (!rp_sample_peek8(&names_window, interpreter + at.interpreter_next, &interpreter))
            return;
    }
}

uint64_t rp_sample_python_lock(void)
{
    return lock;
}

uint32_t rp_sample_python_holder(const struct rp_sample_lock *l)
{
    if (l->is_held != 1 || !l->holder)
        return 0;
    if (l->holder != held_by) {
        names_window.n = 0;
        held_tid = tid_of(l->holder);
        held_by = l->holder;
    }
    return held_tid;
}

/* -------------------------------------------------------------------------- frames */

static void put(struct rp_sample_raw *raw, uint64_t code, uint64_t instr)
{
    if (raw->npython < RP_SAMPLE_PYTHON)
        raw->python[raw->npython++] = (struct rp_sample_py){code, instr};
}

/* Uses the copy for addresses on the C stack. */
static bool look(struct rp_sample_raw *raw, uint64_t address, void *to, size_t n)
{
    const struct rp_sample_copy *c = &raw->copy;
    unsigned i = 0;

    if (address >= c->at && address - c->at < c->n && n <= c->n - (address - c->at)) {
        memcpy(to, c->bytes + (address - c->at), n);
        return true;
    }
    while (i < RP_SAMPLE_WINDOWS && !rp_sample_window_has(&raw->windows[i], address, n))
        i++;
    if (i == RP_SAMPLE_WINDOWS)
        i = raw->next_window = (raw->next_window + 1) % RP_SAMPLE_WINDOWS;
    raw->is_wanted[i] = true;
    return rp_sample_peek(&raw->windows[i], address, to, n);
}

/* Walks one frame of 3.9 or 3.10, which has a loop of its own. */
static uint64_t walk_old(struct rp_sample_raw *raw, const uint8_t *frame)
{
    uint64_t code, back;
    int32_t lasti;

    memcpy(&code, frame + at.code, 8);
    memcpy(&back, frame + at.previous, 8);
    memcpy(&lasti, frame + at.instr, 4);
    put(raw, code, (uint64_t)(uint32_t)lasti);
    put(raw, 0, 0);
    return back;
}

static uint64_t walk_new(struct rp_sample_raw *raw, const uint8_t *frame, uint64_t address,
                         uint64_t *cframe)
{
    uint64_t code, instr, back;

    memcpy(&code, frame + at.code, 8);
    memcpy(&instr, frame + at.instr, 8);
    memcpy(&back, frame + at.previous, 8);
    if (minor >= 12 && frame[at.owner] >= C_STACK) {
        put(raw, 0, address);
        return back;
    }
    put(raw, code & ~(uint64_t)TAGS, instr);
    if (minor == 11 && frame[at.entry]) {
        put(raw, 0, *cframe);
        if (!look(raw, *cframe + at.cframe_previous, cframe, 8))
            *cframe = 0;
    }
    return back;
}

/* Finds the innermost frame; false if it could not be read. */
static bool first_frame(struct rp_sample_raw *raw, uint64_t state, uint32_t tid, uint64_t *cframe,
                        uint64_t *frame)
{
    uint64_t v = 0;

    /* after a thread has ended, its state may belong to another one */
    if (at.tid != ABSENT && (!look(raw, state + at.tid, &v, 8) || (uint32_t)v != tid))
        return false;
    if (!look(raw, state + at.frame, frame, 8))
        return false;
    *cframe = *frame;
    return at.cframe_frame == ABSENT || (*cframe && look(raw, *cframe + at.cframe_frame, frame, 8));
}

void rp_sample_python_walk(struct rp_sample_raw *raw, uint64_t state, uint32_t tid)
{
    uint8_t bytes[FRAME];
    uint64_t f = 0, cframe = 0;

    raw->python_is_cut = true;
    if (!first_frame(raw, state, tid, &cframe, &f))
        return;
    while (f && raw->npython + 2 <= RP_SAMPLE_PYTHON) {
        if (!look(raw, f, bytes, minor < 11 ? sizeof bytes : at.owner + 1u))
            return;
        f = minor < 11 ? walk_old(raw, bytes) : walk_new(raw, bytes, f, &cframe);
    }
    raw->python_is_cut = f != 0;
}

/* -------------------------------------------------------------------------- names and lines */

struct code {
    uint64_t file, name, lines;
    uint32_t first;
};

/* Names are read after the thread went on, so the object may have been freed and replaced. Its
   second word is its type. */
static bool is_of_type(const uint8_t *object, uint64_t type)
{
    uint64_t is;

    memcpy(&is, object + 8, 8);
    return !type || is == type;
}

static bool read_code(uint64_t address, struct code *out)
{
    uint8_t bytes[208];

    if (rp_sample_read(address, bytes, sizeof bytes) < (size_t)at.lines + 8)
        return false;
    memcpy(&out->file, bytes + at.file, 8);
    memcpy(&out->name, bytes + at.name, 8);
    memcpy(&out->lines, bytes + at.lines, 8);
    memcpy(&out->first, bytes + at.first, 4);
    return is_of_type(bytes, code_type) && out->file && out->name && !((out->file | out->name) & 7);
}

/* Converts a text of Python to UTF-8; characters have one, two or four bytes. */
static bool read_text(uint64_t address, char *to, size_t size)
{
    uint8_t head[64], wide[1024];
    uint64_t length;
    uint32_t state;
    size_t n = 0;

    if (!address || rp_sample_read(address, head, 40) != 40 || !is_of_type(head, text_type))
        return false;
    memcpy(&length, head + 16, 8);
    memcpy(&state, head + 32, 4);
    uint32_t kind = state >> 2 & 7;
    if ((kind != 1 && kind != 2 && kind != 4) || !(state & 32) || length > 1 << 20)
        return false; /* not compact */
    address += state & 64 ? at.ascii : at.compact;
    size_t got = length * kind < sizeof wide ? (size_t)length * kind : sizeof wide;
    got = rp_sample_read(address, wide, got);
    for (size_t i = 0; i + kind <= got && n + 5 < size; i += kind) {
        uint32_t c = 0;

        memcpy(&c, wide + i, kind);
        if (!c || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || (state & 64 && c >= 0x80))
            return false; /* no text: it was freed */
        if (c < 0x80) {
            to[n++] =
                c < 32 ? ' ' : (char)c; /* because a tab separates the fields of a frame's text */
        } else if (c < 0x800) {
            to[n++] = (char)(0xc0 | c >> 6);
            to[n++] = (char)(0x80 | (c & 63));
        } else if (c < 0x10000) {
            to[n++] = (char)(0xe0 | c >> 12);
            to[n++] = (char)(0x80 | (c >> 6 & 63));
            to[n++] = (char)(0x80 | (c & 63));
        } else {
            to[n++] = (char)(0xf0 | (c >> 18 & 7));
            to[n++] = (char)(0x80 | (c >> 12 & 63));
            to[n++] = (char)(0x80 | (c >> 6 & 63));
            to[n++] = (char)(0x80 | (c & 63));
        }
    }
    to[n] = '\0';
    return true;
}

/* 3.9: pairs of (bytes, lines), both relative. */
static int line_of_pairs(const uint8_t *t, size_t n, int line, int64_t instr)
{
    int64_t address = 0;

    for (size_t i = 0; i + 1 < n; i += 2) {
        address += t[i];
        if (address > instr)
            break;
        line += (int8_t)t[i + 1];
    }
    return line;
}

/* 3.10: pairs of (bytes that the range has, lines from the one before). */
static int line_of_ranges(const uint8_t *t, size_t n, int line, int64_t instr)
{
    int64_t address = 0;

    for (size_t i = 0; i + 1 < n; i += 2) {
        int8_t more = (int8_t)t[i + 1];

        if (more != -128)
            line += more;
        address += t[i];
        if (address > instr)
            break;
    }
    return line;
}

static int take_signed(const uint8_t *t, size_t n, size_t *i)
{
    uint32_t v = 0, byte = 64;

    for (unsigned shift = 0; byte & 64 && *i < n; shift += 6) {
        byte = t[(*i)++];
        v |= shift < 30 ? (byte & 63) << shift : 0;
    }
    return v & 1 ? -(int)(v >> 1) : (int)(v >> 1);
}

/* From 3.11 on: locations with a form each; the first byte of each has its highest bit set. */
static int line_of_locations(const uint8_t *t, size_t n, int line, int64_t instr)
{
    int64_t address = 0;
    size_t i = 0;

    while (i < n) {
        unsigned form = t[i] >> 3 & 15, units = (t[i] & 7u) + 1;

        i++;
        if (form == 14 || form == 13)
            line += take_signed(t, n, &i);
        else if (form >= 10 && form <= 12)
            line += (int)form - 10;
        while (i < n && !(t[i] & 0x80))
            i++;
        address += units;
        if (address > instr)
            break;
    }
    return line;
}

static int line_of(const struct code *code, const struct rp_sample_py *f)
{
    static uint8_t table[LINES];
    uint64_t size = 0;
    int line;

    if (!code->lines || rp_sample_read(code->lines + 16, &size, 8) != 8)
        return (int)code->first;
    size_t n = rp_sample_read(code->lines + 32, table, size < LINES ? (size_t)size : LINES);
    int64_t instr = ((int64_t)f->instr - (int64_t)(f->code + at.bytecode)) / 2;
    if (minor == 9)
        line = line_of_pairs(table, n, (int)code->first, (int32_t)f->instr);
    else if (minor == 10)
        line = line_of_ranges(table, n, (int)code->first, (int64_t)(int32_t)f->instr * 2);
    else
        line = instr < 0 ? 0 : line_of_locations(table, n, (int)code->first, instr);
    return line > 0 ? line : (int)code->first;
}

struct known {
    struct rp_sample_py frame;
    struct code code;
    int64_t checked_ns;
    const char *text;
};

static bool is_same(const struct code *a, const struct code *b)
{
    return a->file == b->file && a->name == b->name && a->lines == b->lines && a->first == b->first;
}

/* Checks that a code object was not freed and replaced by another one. */
static bool still_valid(struct known *k, int64_t now_ns)
{
    struct code code;

    if (now_ns - k->checked_ns < CHECK)
        return true;
    k->checked_ns = now_ns;
    return read_code(k->frame.code, &code) && is_same(&code, &k->code);
}

const char *rp_sample_python_text(const struct rp_sample_py *frame, int64_t now_ns)
{
    static struct known *known;
    char name[400], file[500], text[1024];
    uint64_t hash = (frame->code ^ frame->instr << 20) * UINT64_C(0x9e3779b97f4a7c15);

    if (!known && !(known = rp_sample_pages(CODES * sizeof *known)))
        return NULL;
    struct known *k = &known[hash >> 40 & (CODES - 1)];
    if (k->text && k->frame.code == frame->code && k->frame.instr == frame->instr &&
        still_valid(k, now_ns))
        return k->text;
    *k = (struct known){.frame = *frame, .checked_ns = now_ns};
    if (!read_code(frame->code, &k->code) || !read_text(k->code.name, name, sizeof name) ||
        !read_text(k->code.file, file, sizeof file))
        return NULL;
    snprintf(text, sizeof text, "python\t%s\t%s\t%d", name, file, line_of(&k->code, frame));
    return k->text = rp_sample_intern(text);
}
