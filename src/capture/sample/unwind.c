/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinds native stacks from registers and a copy of the stack: by the unwind tables (.eh_frame)
 * that every program for x86_64 and aarch64 has, else, in code without them, by frame pointers. The
 * rules of an address are found once and kept, so a frame takes some ten nanoseconds. Unlike
 * libraries for unwinding, nothing here allocates from the heap, takes a lock or calls the loader.
 */
#include "capture/sample/sample.h"

#include <string.h>

#define RULES    (1u << 11) /* rules kept by address; few enough for a processor's cache */
#define PLACES   18         /* registers that a rule may describe: all of a signal's frame */
#define ENTRY    4096       /* most bytes of an entry of the tables that are read */
#define STATES   8          /* depth of DW_CFA_remember_state */
#define OPERANDS 16

enum { SAME, AT_OFFSET, VALUE_OFFSET, IN_REGISTER, AT_EXPRESSION, VALUE_EXPRESSION, UNDEFINED };

struct place { /* struct place: where the caller's value of a register is */
    uint8_t how;
    int64_t v;      /* an offset, a register, or the address of an expression */
    uint32_t bytes; /* of the expression */
};

struct rules {
    uint64_t start;
    bool is_signal; /* the frame of a handler, whose caller made no call */
    uint8_t return_register;
    struct place cfa; /* if IN_REGISTER, `bytes` is the register and `v` the offset */
    struct place at[RP_SAMPLE_REGS];
};

struct kept_place {
    uint8_t reg, how;
    uint16_t bytes;
    int32_t v; /* for an expression: its address relative to `pc` */
};

/* The rules of an address; for most functions they fit two lines of the cache. */
struct kept {
    uint64_t pc, start;
    unsigned generation;
    bool valid, is_signal, returns; /* returns: the function has a caller */
    uint8_t return_register, n;
    struct kept_place cfa, at[PLACES];
};

static struct rp_sample_window table_window, stack_window;

/* -------------------------------------------------------------------------- bytes */

struct bytes {
    const uint8_t *at, *end;
    uint64_t address; /* address of `at` in the process */
};

static uint64_t take(struct bytes *b, size_t n)
{
    uint64_t v = 0;

    if ((size_t)(b->end - b->at) < n) {
        b->at = b->end;
        return 0;
    }
    memcpy(&v, b->at, n);
    b->at += n;
    b->address += n;
    return v;
}

static uint64_t take_uleb(struct bytes *b)
{
    uint64_t v = 0, byte = 0x80;

    for (unsigned shift = 0; byte & 0x80 && b->at < b->end; shift += 7) {
        byte = take(b, 1);
        v |= shift < 64 ? (byte & 0x7f) << shift : 0;
    }
    return v;
}

static int64_t take_sleb(struct bytes *b)
{
    uint64_t v = 0, byte = 0x80;
    unsigned shift = 0;

    for (; byte & 0x80 && b->at < b->end; shift += 7) {
        byte = take(b, 1);
        v |= shift < 64 ? (byte & 0x7f) << shift : 0;
    }
    if (shift < 64 && byte & 0x40)
        v |= ~UINT64_C(0) << shift;
    return (int64_t)v;
}

/* Takes a pointer in one of DWARF's encodings; offsets of the header are relative to `data`. */
static uint64_t take_pointer(struct bytes *b, uint8_t encoding, uint64_t data)
{
    static const uint8_t sizes[16] = {8, 0, 2, 4, 8, 0, 0, 0, 8, 0, 2, 4, 8, 0, 0, 0};
    uint64_t base = 0;
    unsigned form = encoding & 15;

    if (encoding == 0xff)
        return 0;
    if ((encoding & 0x70) == 0x10)
        base = b->address;
    else if ((encoding & 0x70) == 0x30)
        base = data;
    if (form == 1 || form == 9)
        return base + (form == 1 ? take_uleb(b) : (uint64_t)take_sleb(b));
    uint64_t v = take(b, sizes[form]);
    if (form == 10)
        v = (uint64_t)(int16_t)v;
    else if (form == 11)
        v = (uint64_t)(int32_t)v;
    return base + v;
}

/* -------------------------------------------------------------------------- finding the entry */

/* Reads bytes of the tables from the file, or else from memory. */
static bool table_read(struct rp_sample_module *m, uint64_t at, void *to, size_t n)
{
    return rp_sample_module_table(m, at, to, n) || rp_sample_peek(&table_window, at, to, n);
}

/* Finds the address of the entry that covers pc, in the sorted table of the module; 0: none. */
static uint64_t find_entry(struct rp_sample_module *m, uint64_t pc, uint64_t *start)
{
    uint8_t head[32];
    struct bytes b = {head + 4, head + sizeof head, m->table + 4};
    uint64_t low = 0;
    int32_t pair[2];

    if (!m->table || !table_read(m, m->table, head, sizeof head) || head[0] != 1 ||
        head[3] != 0x3b) /* requires pairs of 32 bits relative to the header, which linkers write */
        return 0;
    take_pointer(&b, head[1], m->table);
    uint64_t high = take_pointer(&b, head[2], m->table);
    while (low < high) {
        uint64_t mid = (low + high) / 2;

        if (!table_read(m, b.address + mid * 8, pair, 8))
            return 0;
        if (m->table + (uint64_t)(int64_t)pair[0] <= pc)
            low = mid + 1;
        else
            high = mid;
    }
    if (!low || !table_read(m, b.address + (low - 1) * 8, pair, 8))
        return 0;
    *start = m->table + (uint64_t)(int64_t)pair[0];
    return m->table + (uint64_t)(int64_t)pair[1];
}

static bool read_record(struct rp_sample_module *m, uint64_t address, uint8_t *to, struct bytes *b)
{
    uint32_t n;

    if (!table_read(m, address, &n, 4) || !n || n == UINT32_MAX || n > ENTRY ||
        !table_read(m, address + 4, to, n))
        return false;
    *b = (struct bytes){to, to + n, address + 4};
    return true;
}

struct common { /* common: what the entries of a compiled file share */
    uint64_t code_align;
    int64_t data_align;
    uint8_t return_register, pointer;
    bool is_signal, has_extra;
    struct bytes program;
};

static bool read_common(struct rp_sample_module *m, uint64_t address, uint8_t *to, struct common *c)
{
    char words[16] = "";
    size_t n = 0;
    struct bytes *b = &c->program;

    if (!read_record(m, address, to, b) || take(b, 4) != 0)
        return false;
    take(b, 1); /* the version */
    do {
        words[n < sizeof words - 1 ? n : sizeof words - 1] = (char)take(b, 1);
    } while (words[n] && ++n < sizeof words - 1);
    c->code_align = take_uleb(b);
    c->data_align = take_sleb(b);
    c->return_register = (uint8_t)take_uleb(b);
    c->pointer = 0;
    if (words[0] != 'z')
        return words[0] == '\0';
    c->has_extra = true;
    uint64_t extra = take_uleb(b);
    if (extra > (uint64_t)(b->end - b->at))
        return false;
    struct bytes x = {b->at, b->at + extra, b->address};
    for (const char *w = words + 1; *w; w++) {
        if (*w == 'R')
            c->pointer = (uint8_t)take(&x, 1);
        else if (*w == 'L')
            take(&x, 1);
        else if (*w == 'P')
            take_pointer(&x, (uint8_t)take(&x, 1), 0);
        else if (*w == 'S')
            c->is_signal = true;
    }
    b->at += extra;
    b->address += extra;
    return true;
}

/* -------------------------------------------------------------------------- the rules */

struct machine {
    struct rules *r;
    const struct rules *first; /* after the common part */
    const struct common *c;
    uint64_t at, pc; /* the address that the rules are for, and the wanted address */
    struct rules states[STATES];
    unsigned nstates;
};

static void set_place(struct machine *m, uint64_t reg, uint8_t how, int64_t v, uint32_t bytes)
{
    if (reg < RP_SAMPLE_REGS)
        m->r->at[reg] = (struct place){how, v, bytes};
}

static void take_expression(struct machine *m, struct bytes *b, struct place *to, uint8_t how)
{
    uint64_t n = take_uleb(b);

    (void)m;
    *to = (struct place){how, (int64_t)b->address, (uint32_t)n};
    n = n < (uint64_t)(b->end - b->at) ? n : (uint64_t)(b->end - b->at);
    b->at += n;
    b->address += n;
}

static void restore(struct machine *m, uint64_t reg)
{
    if (reg < RP_SAMPLE_REGS)
        m->r->at[reg] = m->first ? m->first->at[reg] : (struct place){SAME, 0, 0};
}

/* Handles the instructions of the extended set that set a rule. */
static bool set_rule(struct machine *m, uint8_t op, struct bytes *b)
{
    struct place *cfa = &m->r->cfa, place = {0};
    uint64_t reg = take_uleb(b);

    switch (op) {
    case 0x05: /* offset_extended */
        set_place(m, reg, AT_OFFSET, (int64_t)take_uleb(b) * m->c->data_align, 0);
        return true;
    case 0x06: /* restore_extended */
        restore(m, reg);
        return true;
    case 0x07: /* undefined */
        set_place(m, reg, UNDEFINED, 0, 0);
        return true;
    case 0x08: /* same_value */
        set_place(m, reg, SAME, 0, 0);
        return true;
    case 0x09: /* register */
        set_place(m, reg, IN_REGISTER, (int64_t)take_uleb(b), 0);
        return true;
    case 0x0c: /* def_cfa */
        *cfa = (struct place){IN_REGISTER, (int64_t)take_uleb(b), (uint32_t)reg};
        return true;
    case 0x12: /* def_cfa_sf */
        *cfa = (struct place){IN_REGISTER, take_sleb(b) * m->c->data_align, (uint32_t)reg};
        return true;
    case 0x0d: /* def_cfa_register */
        cfa->bytes = (uint32_t)reg;
        return true;
    case 0x0e: /* def_cfa_offset */
        cfa->v = (int64_t)reg;
        return true;
    case 0x10: /* expression */
    case 0x16: /* val_expression */
        take_expression(m, b, &place, op == 0x10 ? AT_EXPRESSION : VALUE_EXPRESSION);
        set_place(m, reg, place.how, place.v, place.bytes);
        return true;
    case 0x11: /* offset_extended_sf */
        set_place(m, reg, AT_OFFSET, take_sleb(b) * m->c->data_align, 0);
        return true;
    case 0x14: /* val_offset */
        set_place(m, reg, VALUE_OFFSET, (int64_t)take_uleb(b) * m->c->data_align, 0);
        return true;
    case 0x2e: /* GNU_args_size */
        return true;
    default:
        return false;
    }
}

static bool extended(struct machine *m, uint8_t op, struct bytes *b)
{
    switch (op) {
    case 0x00: /* nop */
    case 0x2d: /* AArch64_negate_ra_state needs nothing, because the bits of the signature are
                  always removed */
        return true;
    case 0x01: /* set_loc */
        m->at = take_pointer(b, m->c->pointer, 0);
        return true;
    case 0x02:
    case 0x03:
    case 0x04: /* advance_loc1, 2, 4 */
        m->at += take(b, (size_t)1 << (op - 2)) * m->c->code_align;
        return true;
    case 0x0a: /* remember_state */
        if (m->nstates < STATES)
            m->states[m->nstates++] = *m->r;
        return true;
    case 0x0b: {
        if (m->nstates) {
            struct rules *s = &m->states[--m->nstates];
            m->r->cfa = s->cfa;
            memcpy(m->r->at, s->at, sizeof s->at);
        }
    }
        return true;
    case 0x0f: /* def_cfa_expression */
        take_expression(m, b, &m->r->cfa, AT_EXPRESSION);
        return true;
    case 0x13: /* def_cfa_offset_sf */
        m->r->cfa.v = take_sleb(b) * m->c->data_align;
        return true;
    default:
        return set_rule(m, op, b);
    }
}

/* Applies the instructions up to the wanted address. */
static bool run_program(struct machine *m, struct bytes b)
{
    while (b.at < b.end && m->at <= m->pc) {
        uint8_t op = (uint8_t)take(&b, 1), low = op & 0x3f;

        if (op >> 6 == 1)
            m->at += low * m->c->code_align;
        else if (op >> 6 == 2)
            set_place(m, low, AT_OFFSET, (int64_t)take_uleb(&b) * m->c->data_align, 0);
        else if (op >> 6 == 3)
            restore(m, low);
        else if (!extended(m, op, &b))
            return false;
    }
    return true;
}

static bool make_rules(uint64_t pc, struct rules *out)
{
    static uint8_t own[ENTRY], shared[ENTRY];
    static struct machine m;
    static struct rules first;
    struct rp_sample_module *module = rp_sample_module_find(pc);
    uint64_t start = 0, entry = module ? find_entry(module, pc, &start) : 0;
    struct common c = {0};
    struct bytes b;

    *out = (struct rules){0};
    if (!entry || !read_record(module, entry, own, &b))
        return false;
    uint64_t back = take(&b, 4);
    if (!back || !read_common(module, entry + 4 - back, shared, &c))
        return false;
    start = take_pointer(&b, c.pointer, 0);
    uint64_t size = take_pointer(&b, c.pointer & 15, 0);
    if (pc < start || pc - start >= size)
        return false;
    if (c.has_extra) {
        uint64_t n = take_uleb(&b);

        n = n < (uint64_t)(b.end - b.at) ? n : (uint64_t)(b.end - b.at);
        b.at += n;
        b.address += n;
    }
    m = (struct machine){.r = out, .c = &c, .at = 0, .pc = UINT64_MAX};
    if (!run_program(&m, c.program))
        return false;
    first = *out;
    m.first = &first;
    m.at = start;
    m.pc = pc;
    out->start = start;
    out->is_signal = c.is_signal;
    out->return_register = c.return_register;
    return run_program(&m, b);
}

static bool keep_place(struct kept_place *to, const struct place *p, unsigned reg, uint64_t pc)
{
    bool is_expression = p->how == AT_EXPRESSION || p->how == VALUE_EXPRESSION;
    int64_t v = is_expression ? (int64_t)((uint64_t)p->v - pc) : p->v;

    *to = (struct kept_place){(uint8_t)reg, p->how, (uint16_t)p->bytes, (int32_t)v};
    return p->bytes <= UINT16_MAX && v >= INT32_MIN && v <= INT32_MAX;
}

/* Returns false for rules that no function has. */
static bool keep_rules(struct kept *to, const struct rules *r)
{
    to->start = r->start;
    to->is_signal = r->is_signal;
    to->return_register = r->return_register;
    if (r->return_register >= RP_SAMPLE_REGS)
        return false;
    to->returns = r->at[r->return_register].how != UNDEFINED;
    for (unsigned i = 0; i < RP_SAMPLE_REGS; i++)
        if (r->at[i].how != SAME &&
            (to->n == PLACES || !keep_place(&to->at[to->n++], &r->at[i], i, to->pc)))
            return false;
    return keep_place(&to->cfa, &r->cfa, 0, to->pc);
}

static const struct kept *rules_of(uint64_t pc)
{
    static struct kept *known;
    static struct rules made;

    if (!known && !(known = rp_sample_pages(RULES * sizeof *known)))
        return NULL;
    struct kept *r = &known[(pc * UINT64_C(0x9e3779b97f4a7c15) >> 40) % RULES];
    if (r->pc != pc || r->generation != rp_sample_generation) {
        *r = (struct kept){.pc = pc, .generation = rp_sample_generation};
        r->valid = make_rules(pc, &made) && keep_rules(r, &made);
    }
    if (!r->valid && !rp_sample_module_find(pc))
        rp_sample_modules_stale = true;
    return r;
}

/* -------------------------------------------------------------------------- values */

struct frame {
    uint64_t pc; /* the address for which the rules are */
    struct rp_sample_regs *regs;
    const struct rp_sample_copy *copy;
};

/* Outer frames beyond the copy are read in their current state, which seldom changes. */
static bool load_word(const struct rp_sample_copy *copy, uint64_t at, uint64_t *to)
{
    if (at >= copy->at && at - copy->at + 8 <= copy->n) {
        memcpy(to, copy->bytes + (at - copy->at), 8);
        return true;
    }
    return rp_sample_peek8(&stack_window, at, to);
}

static bool is_known(const struct rp_sample_regs *regs, uint64_t reg)
{
    return reg < RP_SAMPLE_REGS && regs->known >> reg & 1;
}

static bool binary(uint8_t op, uint64_t *stack, unsigned *n)
{
    if (*n < 2)
        return false;
    uint64_t b = stack[--*n];
    uint64_t *a = &stack[*n - 1];
    switch (op) {
    case 0x1a:
        *a &= b;
        return true;
    case 0x1c:
        *a -= b;
        return true;
    case 0x22:
        *a += b;
        return true;
    case 0x24:
        *a = b < 64 ? *a << b : 0;
        return true;
    case 0x2a:
        *a = (int64_t)*a >= (int64_t)b;
        return true;
    default:
        return false;
    }
}

/* Evaluates the expressions that occur in tables: for the linkage table, signal frames and
   realigned stacks. `cfa` is their first operand, except for the CFA itself. */
static bool evaluate(const struct frame *f, const struct kept_place *p, const uint64_t *cfa,
                     uint64_t *out)
{
    uint8_t text[128];
    struct bytes b = {text, text + p->bytes, f->pc + (uint64_t)(int64_t)p->v};
    uint64_t stack[OPERANDS];
    unsigned n = 0;

    if (p->bytes > sizeof text || rp_sample_read(b.address, text, p->bytes) != p->bytes)
        return false;
    if (cfa)
        stack[n++] = *cfa;
    while (b.at < b.end && n < OPERANDS) {
        uint8_t op = (uint8_t)take(&b, 1);

        if (op >= 0x30 && op <= 0x4f) { /* lit */
            stack[n++] = op - 0x30u;
        } else if (op >= 0x70 && op <= 0x8f) { /* breg */
            if (!is_known(f->regs, op - 0x70u))
                return false;
            stack[n++] = f->regs->at[op - 0x70u] + (uint64_t)take_sleb(&b);
        } else if (op == 0x08 || op == 0x0a || op == 0x0c) { /* const1u, 2u, 4u */
            stack[n++] = take(&b, op == 0x08 ? 1 : op == 0x0a ? 2 : 4);
        } else if (op == 0x06) { /* deref */
            if (!n || !load_word(f->copy, stack[n - 1], &stack[n - 1]))
                return false;
        } else if (op == 0x23) { /* plus_uconst */
            if (!n)
                return false;
            stack[n - 1] += take_uleb(&b);
        } else if (!binary(op, stack, &n)) {
            return false;
        }
    }
    if (!n)
        return false;
    *out = stack[n - 1];
    return true;
}

static bool value_of(const struct frame *f, const struct kept_place *p, uint64_t cfa, uint64_t *out)
{
    uint64_t at, offset = (uint64_t)(int64_t)p->v;

    switch (p->how) {
    case AT_OFFSET:
        return load_word(f->copy, cfa + offset, out);
    case VALUE_OFFSET:
        *out = cfa + offset;
        return true;
    case IN_REGISTER:
        if (!is_known(f->regs, offset))
            return false;
        *out = f->regs->at[p->v];
        return true;
    case AT_EXPRESSION:
        return evaluate(f, p, &cfa, &at) && load_word(f->copy, at, out);
    case VALUE_EXPRESSION:
        return evaluate(f, p, &cfa, out);
    default:
        return false;
    }
}

/* -------------------------------------------------------------------------- steps */

static uint64_t without_signature(uint64_t pc)
{
#if defined(__aarch64__)
    return pc & ((UINT64_C(1) << 48) - 1);
#else
    return pc;
#endif
}

/* Computes the caller's registers. False if there is none, or it cannot be found. */
static bool step_by_table(const struct frame *f, const struct kept *r, uint64_t *cfa)
{
    struct rp_sample_regs next = *f->regs;
    bool has_sp = false;
    uint64_t pc = 0;

    if (r->cfa.how == IN_REGISTER) {
        if (!is_known(f->regs, r->cfa.bytes))
            return false;
        *cfa = f->regs->at[r->cfa.bytes] + (uint64_t)(int64_t)r->cfa.v;
    } else if (r->cfa.how != AT_EXPRESSION || !evaluate(f, &r->cfa, NULL, cfa)) {
        return false;
    }
    for (const struct kept_place *p = r->at; p < r->at + r->n; p++) {
        has_sp |= p->reg == RP_SAMPLE_SP;
        next.known |= UINT64_C(1) << p->reg;
        if (!value_of(f, p, *cfa, &next.at[p->reg]))
            next.known ^= UINT64_C(1) << p->reg;
    }
    if (!is_known(&next, r->return_register))
        return false;
    pc = without_signature(next.at[r->return_register]);
    if (!has_sp) {
        next.at[RP_SAMPLE_SP] = *cfa;
        next.known |= UINT64_C(1) << RP_SAMPLE_SP;
    }
    next.at[RP_SAMPLE_PC] = pc;
    next.known |= UINT64_C(1) << RP_SAMPLE_PC;
    *f->regs = next;
    return pc != 0;
}

/* Steps through code without tables, for instance generated code, which may or may not have the
   usual frame pointer. */
static bool step_by_pointer(const struct frame *f, uint64_t *cfa)
{
    uint64_t fp = f->regs->at[RP_SAMPLE_FP], sp = f->regs->at[RP_SAMPLE_SP], next_fp, pc;

    if (!is_known(f->regs, RP_SAMPLE_FP) || fp < sp || fp - sp > (64 << 20) || fp & 7 ||
        !load_word(f->copy, fp, &next_fp) || !load_word(f->copy, fp + 8, &pc))
        return false;
    pc = without_signature(pc);
    if (!rp_sample_module_find(pc) && next_fp <= fp)
        return false;
    *cfa = fp + 16;
    f->regs->at[RP_SAMPLE_FP] = next_fp;
    f->regs->at[RP_SAMPLE_SP] = *cfa;
    f->regs->at[RP_SAMPLE_PC] = pc;
    f->regs->known =
        UINT64_C(1) << RP_SAMPLE_FP | UINT64_C(1) << RP_SAMPLE_SP | UINT64_C(1) << RP_SAMPLE_PC;
    return pc != 0;
}

/* Notes the words that, together with its part of the stack and its frame pointer, determine its
   caller. */
static void note_words(struct rp_sample_native *f, const struct kept *r)
{
    uint64_t return_at = 0;

    if (!r->valid) {
        f->fp_at = f->cfa - 16;
        f->return_at = f->cfa - 8;
        return;
    }
    if (r->is_signal || r->cfa.how != IN_REGISTER ||
        (r->cfa.bytes != RP_SAMPLE_SP && r->cfa.bytes != RP_SAMPLE_FP))
        return;
    for (const struct kept_place *p = r->at; p < r->at + r->n; p++) {
        uint64_t at = f->cfa + (uint64_t)(int64_t)p->v;

        if (p->reg != RP_SAMPLE_SP && p->reg != RP_SAMPLE_FP && p->reg != r->return_register)
            continue;
        if (p->how != AT_OFFSET || p->reg == RP_SAMPLE_SP)
            return;
        *(p->reg == RP_SAMPLE_FP ? &f->fp_at : &return_at) = at;
    }
    f->return_at = return_at;
}

static bool is_word(const struct rp_sample_copy *copy, uint64_t at, uint64_t wanted)
{
    uint64_t word = 0;

    return load_word(copy, at, &word) && without_signature(word) == wanted;
}

/* Whether f is a frame of the last sample, with the same words that led to its callers, so that
   these are the same, too. *at: the first frame there that may be it. */
static bool is_known_frame(const struct rp_sample_chain *last, size_t *at,
                           const struct rp_sample_native *f, const struct rp_sample_copy *copy)
{
    const struct rp_sample_native *end = last->at + last->n;

    while (*at < last->n && last->at[*at].sp < f->sp)
        ++*at;
    const struct rp_sample_native *known = &last->at[*at];
    if (known == end || known->sp != f->sp || known->pc != f->pc || known->fp != f->fp)
        return false;
    for (; known + 1 < end; known++)
        if (!known->return_at || !is_word(copy, known->return_at, known[1].pc + 1) ||
            (known->fp_at && !is_word(copy, known->fp_at, known[1].fp)))
            return false;
    return true;
}

void rp_sample_unwind(struct rp_sample_regs *regs, const struct rp_sample_copy *copy,
                      const struct rp_sample_chain *last, struct rp_sample_chain *out)
{
    struct frame f = {0, regs, copy};
    bool called = false; /* the address is that of a return, after the call */
    bool may_know = last->n && !last->is_cut && last->generation == rp_sample_generation;
    size_t at = 0;

    out->n = 0;
    out->is_cut = true;
    out->generation = rp_sample_generation;
    stack_window.n = 0;
    while (out->n < RP_SAMPLE_NATIVE) {
        uint64_t pc = regs->at[RP_SAMPLE_PC] - (called ? 1 : 0), sp = regs->at[RP_SAMPLE_SP];
        struct rp_sample_native *to = &out->at[out->n];

        *to = (struct rp_sample_native){.pc = pc, .sp = sp, .cfa = sp};
        to->fp = is_known(regs, RP_SAMPLE_FP) ? regs->at[RP_SAMPLE_FP] : 0;
        if (may_know && called && is_known_frame(last, &at, to, copy)) {
            size_t rest = last->n - at, room = RP_SAMPLE_NATIVE - out->n;

            out->is_cut = rest > room;
            rest = rest < room ? rest : room;
            memcpy(to, &last->at[at], rest * sizeof *to);
            out->n += rest;
            return;
        }
        const struct kept *r = rules_of(pc);
        out->n++;
        to->start = r && r->valid ? r->start : 0;
        if (!r || (r->valid && !r->returns)) { /* the outermost frame has no return address */
            out->is_cut = !r;
            return;
        }
        f.pc = pc;
        bool more = r->valid ? step_by_table(&f, r, &to->cfa) : step_by_pointer(&f, &to->cfa);
        if (!more || (to->cfa <= sp && !r->is_signal))
            return;
        note_words(to, r);
        called = !r->is_signal;
    }
}
