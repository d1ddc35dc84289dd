/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel's name is a C++ declaration: [type] scope::…::name<arguments>(parameters). The short
 * name is what precedes the first '<' or '(' at depth zero, without its scopes, with the argument
 * that says what the kernel applies. Names that are not declarations (Triton's, copies, operators
 * of a framework, ranges of the user) are kept as they are: they are recognised because a
 * declaration has only qualifiers after its parameters.
 */
#include "explain/short_name.h"

#include "explain/demangle.h"
#include "facts/xla_names.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define ELLIPSIS "\xe2\x80\xa6"

struct piece {
    const char *at;
    size_t len;
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static bool piece_is(struct piece piece, const char *text)
{
    return piece.len == strlen(text) && !memcmp(piece.at, text, piece.len);
}

static bool ends_in(struct piece piece, const char *end)
{
    size_t n = strlen(end);

    return piece.len > n && !memcmp(piece.at + piece.len - n, end, n);
}

static bool starts_with(struct piece piece, const char *start)
{
    size_t n = strlen(start);

    return piece.len > n && !memcmp(piece.at, start, n);
}

/* The first character after the bracket that closes the one at p, or the end of the text. */
static const char *after_bracket(const char *p)
{
    int depth = 0;

    for (; *p; p++) {
        if (*p == '<' || *p == '(')
            depth++;
        else if ((*p == '>' && p[-1] != '-') || *p == ')')
            depth--;
        if (depth == 0)
            return p + 1;
    }
    return p;
}

/* Start of the last component of [begin, end): after "::", a blank, '*' or '&'. */
static const char *last_component(const char *begin, const char *end)
{
    const char *p = end;

    while (p > begin && is_word(p[-1]))
        p--;
    return p;
}

/* Whether what precedes a component is possible in a declaration, unlike in "f.py(3): g". */
static bool is_scoped(const char *name, const char *component)
{
    return component == name || strchr(": *&", component[-1]);
}

/* The end of a word of a declaration: at '<' or '(' that follows a letter. */
static const char *end_of_name(const char *name)
{
    const char *p;

    for (p = name; *p; p++) {
        if (!strncmp(p, "(anonymous namespace)", 21)) {
            p += 20;
            continue;
        }
        if ((*p == '<' || *p == '(') && p > name && is_word(p[-1])) {
            /* in "a<b>::name(", what follows the template belongs to the name */
            const char *after = *p == '<' ? after_bracket(p) : p;

            if (*p == '<' && after[0] == ':' && after[1] == ':') {
                p = after;
                continue;
            }
            return p;
        }
    }
    return p;
}

/* Whether only arguments, parameters and qualifiers follow a name, unlike in the range
   "execute_3(8)_generation_2(5)". A part that was cut off counts as such. */
static bool is_declaration(const char *end)
{
    const char *p = end;

    if (*p == '<')
        p = after_bracket(p);
    if (*p == '(')
        p = after_bracket(p);
    return !*p || !strncmp(p, " [", 2) || !strncmp(p, " const", 6) || !strcmp(p, ".kd");
}

/* -------------------------------------------------------------- what a kernel applies */

/* Whether the word applies a function that is one of its own arguments. */
static bool is_wrapper(struct piece word)
{
    static const char *const wrappers[] = {
        "BinaryFunctor",       "UnaryFunctor",       "AUnaryFunctor",
        "BUnaryFunctor",       "ReduceOp",           "gpu_kernel_impl",
        "gpu_index_kernel",    "TensorAssignOp",     "TensorCwiseUnaryOp",
        "TensorCwiseBinaryOp", "TensorConversionOp", "TensorBroadcastingOp",
        "TensorCwiseNullaryOp"};

    for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0]; i++)
        if (piece_is(word, wrappers[i]))
            return true;
    return false;
}

/* Makes "CUDAFunctor_add", "MulFunctor", "GeluCUDAKernelImpl", "exp_kernel_cuda" to "add", "Mul",
   "Gelu", "exp"; false if the word is not the name of a function. */
static bool strip_function(struct piece *word)
{
    static const char *const starts[] = {"CUDAFunctorOnSelf_", "CUDAFunctor_", "launch_"};
    static const char *const ends[] = {"KernelImplInternal",
                                       "CUDAKernelImpl",
                                       "KernelImpl",
                                       "_kernel_cuda",
                                       "_cuda_kernel",
                                       "_kernel_impl",
                                       "_kernel",
                                       "_cuda_out",
                                       "_gpu",
                                       "Functor",
                                       "_functor",
                                       "Ops",
                                       "_op",
                                       "Op"};

    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (starts_with(*word, starts[i])) {
            word->at += strlen(starts[i]);
            word->len -= strlen(starts[i]);
            return true;
        }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (ends_in(*word, ends[i])) {
            word->len -= strlen(ends[i]);
            return true;
        }
    return piece_is(*word, "copy_device_to_device");
}

/* The first function among template arguments, or else the first wrapper of one. */
static struct piece function_in(const char *args)
{
    const char *p = args, *stop = after_bracket(args);
    struct piece wrapper = {0};

    while (p < stop) {
        struct piece word;

        while (p < stop && !is_word(*p))
            p++;
        for (word.at = p; p < stop && is_word(*p); p++)
            ;
        word.len = (size_t)(p - word.at);
        if (is_wrapper(word))
            wrapper = wrapper.at ? wrapper : word;
        else if (strip_function(&word))
            return word;
    }
    return wrapper;
}

/* -------------------------------------------------------------- kernels that only call another */

/* Whether people know the kernel by its argument instead of its own name. */
static bool is_shell(struct piece name)
{
    return piece_is(name, "Kernel") || piece_is(name, "Kernel2") || piece_is(name, "kentry") ||
           piece_is(name, "device_kernel") || piece_is(name, "trampoline_kernel");
}

static const char *end_of_argument(const char *p, const char *stop)
{
    while (p < stop && *p != ',') {
        if ((*p == '<' || *p == '(') && after_bracket(p) <= stop)
            p = after_bracket(p);
        else
            p++;
    }
    return p < stop ? p : stop;
}

/* The name of an argument: FmhaFwdKernel for "ck_tile::FmhaFwdKernel<…>"; a number has none. */
static struct piece argument_name(const char *p, const char *end)
{
    const char *stop = p, *begin;

    while (stop < end && (is_word(*stop) || *stop == ':'))
        stop++;
    begin = last_component(p, stop);
    if (stop == begin || isdigit((unsigned char)*begin))
        return (struct piece){0};
    return (struct piece){begin, (size_t)(stop - begin)};
}

/* The kernel inside a shell: the argument that is an implementation, else the first one that has
   arguments itself, else the first class. */
static struct piece inner_kernel(const char *args)
{
    const char *stop = after_bracket(args), *p = args + 1;
    struct piece best = {0};
    int rank = 0;

    while (p < stop) {
        const char *end = end_of_argument(p, stop);

        p += strspn(p, " ");
        struct piece name = argument_name(p, end);
        int now = !name.at                               ? 0
                  : ends_in(name, "_impl")               ? 4
                  : strstr(name.at, "config") == name.at ? 1
                  : ends_in(name, "_config") || ends_in(name, "_selector") || ends_in(name, "_t")
                      ? 1
                  : name.at[name.len] == '<' ? 3
                                             : 2;
        if (now > rank) {
            best = name;
            rank = now;
        }
        p = end + 1;
    }
    return best;
}

/* -------------------------------------------------------------- names of libraries */

/* The length of a name of Tensile or xmma up to its tile, because only its authors read the
   rest. */
static size_t library_name_len(const char *name)
{
    const char *tile = strstr(name, "_MT"), *end = NULL;

    if (name[0] == 'C' && tile && strstr(tile, "_MI")) {
        end = strstr(tile, "_MI") + 1;
        end += strcspn(end, "_");
    } else if (strstr(name, "_xmma_")) {
        end = strstr(name, "_warpgroupsize");
        end = end ? end : strstr(name, "_warpsize");
    }
    return end ? (size_t)(end - name) : strlen(name);
}

/* -------------------------------------------------------------- writing */

struct writer {
    char *out;
    size_t at, cap;
};

static void append_text(struct writer *w, const char *text, size_t len)
{
    if (w->at + 1 >= w->cap)
        return;
    if (len > w->cap - 1 - w->at)
        len = w->cap - 1 - w->at;
    memcpy(w->out + w->at, text, len);
    w->at += len;
}

/* Writes a function of one word as in Python: "Mul" becomes mul, "MaxNan" stays. */
static void append_function(struct writer *w, struct piece word)
{
    size_t begin = w->at, i;
    bool one = true;

    while (word.len > 1 && *word.at == '_') {
        word.at++;
        word.len--;
    }
    for (i = 1; i < word.len; i++)
        one = one && !isupper((unsigned char)word.at[i]);
    append_text(w, word.at, word.len);
    if (one && w->at > begin)
        w->out[begin] = (char)tolower((unsigned char)w->out[begin]);
}

/* Cuts a text in its middle, at whole characters. */
static void append_cut(struct writer *w, const char *text, size_t len)
{
    size_t room = w->cap - 1 - w->at, head, tail;

    if (len <= room || room < 16) {
        append_text(w, text, len);
        return;
    }
    head = (room - 3) / 2;
    tail = room - 3 - head;
    while (head && ((unsigned char)text[head] & 0xc0) == 0x80)
        head--;
    while (tail && ((unsigned char)text[len - tail] & 0xc0) == 0x80)
        tail--;
    append_text(w, text, head);
    append_text(w, ELLIPSIS, 3);
    append_text(w, text + len - tail, tail);
}

/* Includes the scope if the name alone says nothing, as in "gemvx::kernel". */
static const char *telling_begin(const char *name, const char *begin, const char *end)
{
    struct piece word = {begin, (size_t)(end - begin)};

    if ((piece_is(word, "kernel") || piece_is(word, "globalKernel")) && begin - name > 2 &&
        begin[-1] == ':' && is_word(begin[-3]))
        return last_component(name, begin - 2);
    return begin;
}

static void write_declaration(struct writer *w, const char *name, const char *begin,
                              const char *end)
{
    struct piece word = {begin, (size_t)(end - begin)}, inner = {0};

    if (*end == '<' && is_shell(word))
        inner = inner_kernel(end);
    if (inner.at) {
        append_cut(w, inner.at, inner.len);
        return;
    }
    begin = telling_begin(name, begin, end);
    append_cut(w, begin, (size_t)(end - begin));
    inner = *end == '<' ? function_in(end) : inner;
    if (inner.at) {
        append_text(w, "<", 1);
        append_function(w, inner);
        append_text(w, ">", 1);
    }
}

size_t rp_short_name(const char *name, char *out, size_t cap)
{
    struct writer w = {out, 0, cap};
    char readable[1024];

    if (!cap)
        return 0;
    if (rp_demangle(name, readable, sizeof readable))
        name = readable;
    const char *end = end_of_name(name);
    const char *begin = last_component(name, end);
    if (*end && begin != end && is_scoped(name, begin) && is_declaration(end) &&
        strncmp(name, "Memcpy", 6) != 0 && strncmp(name, "Memset", 6) != 0) {
        write_declaration(&w, name, begin, end);
    } else {
        size_t len = rp_kernel_name_len(name, library_name_len(name));
        append_cut(&w, name, len);
    }
    out[w.at] = '\0';
    return w.at;
}

size_t rp_cut_name(const char *name, char *out, size_t cap)
{
    struct writer w = {out, 0, cap};

    if (!cap)
        return 0;
    append_cut(&w, name, strlen(name));
    out[w.at] = '\0';
    return w.at;
}
