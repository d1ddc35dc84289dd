/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `scrub` of programs: names, scopes, source files and the texts of attributes are cleaned in the
 * program, which any writer then writes. What it computes stays. What it was read from, and fields
 * that no table knows, may hold anything and are left out.
 */
#include "convert/scrub.h"
#include "io/escaped.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program_scrub {
    struct rp_scrub_file file;
    struct rp_program *p;
    struct rp_secret_words words;
    struct rp_emit clean, made; /* a piece; a whole value */
    struct rp_err *err;
};

/* ---- strings ---- */

/* Where a string is, for the list of --check. */
static const char *place_of(const struct rp_program *p, uint32_t string)
{
    for (uint32_t i = 0; i < p->metas.n; i++) {
        if (p->metas.at[i].op_name == string)
            return "scope path (op_name)";
        if (p->metas.at[i].file == string)
            return "source file";
    }
    for (uint32_t op = 0; op < p->nops; op++)
        if (p->op_name.at[op] == string)
            return "name of an instruction";
    return "name of the program";
}

/* Every string is cleaned, and keeps its id. Names that became the same get a number, because
   instructions are found by their names. */
static enum rp_code clean_strings(struct program_scrub *s)
{
    RP_SCOPED(rp_strtab_release) struct rp_strtab old = s->p->strings;
    struct rp_strtab *new = &s->p->strings;

    RP_TRY(rp_strtab_init(new, s->err));
    for (uint32_t i = 0, id; i < old.n; i++) {
        const char *text = rp_strtab_borrow(&old, i);
        size_t n = rp_strtab_len(&old, i);
        int64_t before[RP_SECRETS];
        char number[16] = "";

        memcpy(before, s->file.counts, sizeof before);
        rp_emit_reset(&s->clean);
        rp_secrets_clean(&s->words, RP_SECRET_IN_NAME, "", text, n, &s->clean, s->file.counts);
        RP_TRY(rp_scrub_note(&s->file, before, place_of(s->p, i), RP_ABSENT_I64, text, n, &s->clean,
                             s->err));
        n = rp_emit_length(&s->clean);
        for (unsigned k = 2;; k++) {
            RP_TRY(rp_strtab_intern(new, s->clean.buffer, rp_emit_length(&s->clean), &id, s->err));
            if (id == i)
                break;
            s->clean.at = s->clean.buffer + n;
            snprintf(number, sizeof number, "_%u", k);
            rp_emit_text(&s->clean, number);
        }
    }
    return RP_OK;
}

/* ---- attributes ---- */

/* The word before "= " or "=", of n bytes of a text; else what the whole text belongs to. */
static void key_before(const char *text, size_t n, const char *whole, char key[64])
{
    size_t end;

    snprintf(key, 64, "%s", whole);
    while (n && strchr(" \t\n", text[n - 1]))
        n--;
    if (!n || !strchr("=:", text[n - 1]))
        return;
    for (n--; n && strchr(" \t\n\"", text[n - 1]); n--)
        ;
    for (end = n; n && text[n - 1] && !strchr(" \t\n\",{[<", text[n - 1]); n--)
        ;
    snprintf(key, 64, "%.*s", (int)(end - n), text + n);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_.-", c));
}

/* Text as a file has it: what is between quotes is cleaned, so that it can be parsed afterwards,
   and words that are tokens. */
static enum rp_code clean_raw(struct program_scrub *s, const char *whole, const char *text,
                              size_t n, struct rp_emit *to)
{
    RP_FREED char *plain = malloc(n + 1);
    char key[64];

    RP_TRY(rp_err_need(plain, s->err, "removing secrets"));
    for (size_t i = 0, end; i < n; i = end) {
        int64_t before[RP_SECRETS];

        end = i + 1;
        if (text[i] == '"') {
            while (end < n && text[end] != '"')
                end += text[end] == '\\' ? 2 : 1;
            end = end < n ? end + 1 : n;
        }
        while (text[i] != '"' && end < n && is_word(text[i]) && is_word(text[end]))
            end++;
        if (text[i] != '"') {
            rp_secrets_clean(&s->words, RP_SECRET_IN_NAME, "", text + i, end - i, to,
                             s->file.counts);
            continue;
        }
        if (end - i > 2) {
            key_before(text, i, whole, key);
            memcpy(before, s->file.counts, sizeof before);
            rp_emit_reset(&s->clean);
            rp_secrets_clean(&s->words, RP_SECRET_IN_VALUE, key, plain,
                             rp_unescape(text + i + 1, end - i - 2, plain), &s->clean,
                             s->file.counts);
        }
        if (end - i > 2 && memcmp(before, s->file.counts, sizeof before) != 0)
            rp_emit_escaped(to, RP_IN_PROTO, s->clean.buffer, rp_emit_length(&s->clean));
        else
            rp_emit_bytes(to, text + i, end - i);
    }
    return RP_OK;
}

static enum rp_code clean_bytes(struct program_scrub *s, const char *where, const char *key,
                                bool raw, const char **text, uint32_t *n)
{
    int64_t before[RP_SECRETS];

    memcpy(before, s->file.counts, sizeof before);
    rp_emit_reset(&s->made);
    if (raw)
        RP_TRY(clean_raw(s, key, *text, *n, &s->made));
    else
        rp_secrets_clean(&s->words, RP_SECRET_IN_VALUE, key, *text, *n, &s->made, s->file.counts);
    if (!memcmp(before, s->file.counts, sizeof before))
        return RP_OK;
    RP_TRY(rp_scrub_note(&s->file, before, where, RP_ABSENT_I64, *text, *n, &s->made, s->err));
    *n = (uint32_t)rp_emit_length(&s->made);
    *text = rp_arena_copy(&s->p->arena, s->made.buffer, *n);
    return rp_err_need(*text, s->err, "removing secrets");
}

static enum rp_code clean_attr(struct program_scrub *s, struct rp_attr *attr, const char *of)
{
    const char *key = rp_program_text(s->p, attr->key);
    char where[120];

    snprintf(where, sizeof where, "attribute '%.40s' of '%.50s'", key, of);
    if (attr->type == RP_VALUE_WIRE) {
        attr->n = 0;
    } else if (attr->type == RP_VALUE_MAP) {
        struct rp_slice *texts = RP_ARENA_NEW(&s->p->arena, struct rp_slice, attr->n + 1);

        RP_TRY(rp_err_need(texts, s->err, "removing secrets"));
        memcpy(texts, attr->texts, attr->n * sizeof *texts);
        for (uint32_t i = 1; i < attr->n; i += 2) {
            char name[64];

            snprintf(name, sizeof name, "%.*s", (int)texts[i - 1].n, texts[i - 1].at);
            RP_TRY(clean_bytes(s, where, name, false, &texts[i].at, &texts[i].n));
        }
        attr->texts = texts;
    } else if (rp_attr_is_bytes(attr)) {
        RP_TRY(clean_bytes(s, where, key, attr->type == RP_VALUE_TEXT, &attr->at, &attr->n));
    }
    return RP_OK;
}

static enum rp_code clean_program(struct program_scrub *s)
{
    struct rp_program *p = s->p;

    for (uint32_t i = 0; i < p->strings.n; i++)
        RP_TRY(rp_secrets_learn(&s->words, "", rp_strtab_borrow(&p->strings, i),
                                rp_strtab_len(&p->strings, i), false, s->err));
    if (s->file.is_text) {
        /* A file of text is checked as it is: it may hold more than the program. */
        const char *at = s->file.bytes, *end = at + s->file.n;
        for (const char *next; at < end; at = next) {
            const char *line = memchr(at, '\n', (size_t)(end - at));
            int64_t before[RP_SECRETS];
            next = line ? line + 1 : end;
            memcpy(before, s->file.counts, sizeof before);
            rp_emit_reset(&s->made);
            RP_TRY(clean_raw(s, "", at, (size_t)(next - at), &s->made));
            RP_TRY(rp_scrub_note(&s->file, before, "line of the program", RP_ABSENT_I64, at,
                                 (size_t)(next - at), &s->made, s->err));
        }
        return RP_OK;
    }
    RP_TRY(clean_strings(s));
    for (uint32_t op = 0; op < p->nops; op++)
        for (uint32_t i = p->attr_begin.at[op]; i < p->attr_begin.at[op + 1]; i++)
            RP_TRY(clean_attr(s, &p->attrs.at[i], rp_program_text(p, p->op_name.at[op])));
    for (size_t i = 0; i < p->module_attrs.n; i++)
        RP_TRY(clean_attr(s, &p->module_attrs.at[i], rp_program_text(p, p->name)));
    p->source.at = NULL;
    p->source.n = 0;
    return RP_OK;
}

static void program_scrub_release(struct program_scrub *s)
{
    rp_emit_abandon(&s->clean);
    rp_emit_abandon(&s->made);
    rp_secret_words_release(&s->words);
    rp_scrub_close(&s->file);
}

enum rp_code rp_scrub_program(struct rp_scrub *scrub, const struct rp_loaded_program *loaded,
                              const struct rp_dataset *dataset, struct rp_err *err)
{
    RP_SCOPED(program_scrub_release)
    struct program_scrub s = {.file = {.scrub = scrub},
                              .p = loaded->program,
                              .words = {.arena = RP_ARENA_INIT},
                              .err = err};

    rp_scrub_open(&s.file, dataset, loaded->index);
    if (!scrub->check && !strcmp(loaded->program->language, "graphdef"))
        return rp_err_set(err, RP_UNSUPPORTED,
                          "'%s': graphs of TensorFlow are checked, but not written",
                          loaded->source->name);
    RP_TRY(rp_emit_open_memory(&s.clean, err));
    RP_TRY(rp_emit_open_memory(&s.made, err));
    RP_TRY(clean_program(&s));
    return s.clean.failure.code != RP_OK || s.made.failure.code != RP_OK
               ? rp_err_nomem(err, "removing secrets")
               : RP_OK;
}
