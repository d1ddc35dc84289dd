/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans the four lists side by side. They come from files: an unexpected value is "not recorded",
 * and numbers are doubles, which cannot overflow.
 */
#include "cost/inputs.h"

#include "base/decides.h"
#include "cost/category.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST_PARTS 65536
RP_LIMIT(MOST_PARTS, "tensors",
         "of one list of an operator; the rest of a longer one is not counted");
#define MOST_VALUE 1e18
RP_LIMIT(MOST_VALUE, "of a size",
         "an argument that is larger is not a size: the operator has no model");

/* ------------------------------------------------------------------ number formats */

static const struct {
    const char *type;
    uint8_t number;
    uint8_t code; /* of c10::ScalarType */
    float size;
} types[] = {{"float", RP_NUMBER_FP32, 6, 4},
             {"c10::BFloat16", RP_NUMBER_BF16, 15, 2},
             {"c10::Half", RP_NUMBER_FP16, 5, 2},
             {"double", RP_NUMBER_FP64, 7, 8},
             {"long int", RP_NUMBER_INT, 4, 8},
             {"long", RP_NUMBER_INT, 4, 8},
             {"int", RP_NUMBER_INT, 3, 4},
             {"short int", RP_NUMBER_INT, 2, 2},
             {"short", RP_NUMBER_INT, 2, 2},
             {"bool", RP_NUMBER_INT, 11, 1},
             {"unsigned char", RP_NUMBER_INT8, 0, 1},
             {"signed char", RP_NUMBER_INT8, 1, 1},
             {"c10::Float8_e4m3fn", RP_NUMBER_FP8, 24, 1},
             {"c10::Float8_e5m2", RP_NUMBER_FP8, 23, 1},
             {"c10::Float8_e4m3fnuz", RP_NUMBER_FP8, 26, 1},
             {"c10::Float8_e5m2fnuz", RP_NUMBER_FP8, 25, 1},
             {"c10::Float8_e8m0fnu", RP_NUMBER_FP8, 44, 1},
             {"c10::Float4_e2m1fn_x2", RP_NUMBER_FP4, 45, 1},
             {"c10::complex<float>", RP_NUMBER_FP32, 9, 8},
             {"c10::complex<double>", RP_NUMBER_FP64, 10, 16},
             {"unsigned int", RP_NUMBER_INT, 28, 4},
             {"unsigned short", RP_NUMBER_INT, 27, 2},
             {"unsigned long", RP_NUMBER_INT, 29, 8},
             {"c10::qint8", RP_NUMBER_INT8, 12, 1},
             {"c10::quint8", RP_NUMBER_INT8, 13, 1}};

#define NTYPES (sizeof types / sizeof types[0])

enum rp_number rp_number_of_type(const char *type, size_t len, float *size)
{
    for (size_t i = 0; i < NTYPES; i++)
        if (strlen(types[i].type) == len && !strncasecmp(types[i].type, type, len)) {
            *size = types[i].size;
            return (enum rp_number)types[i].number;
        }
    *size = 0;
    return RP_NUMBER_NONE;
}

enum rp_number rp_number_of_code(int64_t code, float *size)
{
    for (size_t i = 0; i < NTYPES; i++)
        if (types[i].code == code) {
            *size = types[i].size;
            return (enum rp_number)types[i].number;
        }
    *size = 0;
    return RP_NUMBER_NONE;
}

/* Looks for parts of names of kernels, the most telling first: "s1688" is a product of tf32 if
   nothing tells another format; OpaqueType is what concatenation calls the type of its elements. */
enum rp_number rp_number_of_kernel(const char *kernel, float *size)
{
    static const struct {
        const char *part;
        uint8_t number;
        float size;
    } signs[] = {
        {"e4m3", RP_NUMBER_FP8, 1},
        {"e5m2", RP_NUMBER_FP8, 1},
        {"fp8", RP_NUMBER_FP8, 1},
        {"bf16", RP_NUMBER_BF16, 2},
        {"BFloat16", RP_NUMBER_BF16, 2},
        {"fp16", RP_NUMBER_FP16, 2},
        {"f16", RP_NUMBER_FP16, 2},
        {"c10::Half", RP_NUMBER_FP16, 2},
        {"half", RP_NUMBER_FP16, 2},
        {"hgemm", RP_NUMBER_FP16, 2},
        {"h1688gemm", RP_NUMBER_FP16, 2},
        {"s16816gemm_f", RP_NUMBER_FP16, 2},
        {"tf32", RP_NUMBER_TF32, 4},
        {"s1688", RP_NUMBER_TF32, 4},
        {"OpaqueType<2u>", RP_NUMBER_NONE, 2},
        {"OpaqueType<4u>", RP_NUMBER_NONE, 4},
        {"OpaqueType<8u>", RP_NUMBER_NONE, 8},
        {"OpaqueType<1u>", RP_NUMBER_NONE, 1},
        {"d884gemm", RP_NUMBER_FP64, 8},
        {"f64", RP_NUMBER_FP64, 8},
        {"sgemm", RP_NUMBER_FP32, 4},
        {"f32", RP_NUMBER_FP32, 4},
        {"float", RP_NUMBER_FP32, 4}, /* if there is a double beside it, that is a parameter */
        {"double", RP_NUMBER_FP64, 8}};
    struct rp_name_pairs pairs;

    if (kernel)
        rp_name_pairs_init(&pairs, kernel);
    for (size_t i = 0; kernel && i < sizeof signs / sizeof signs[0]; i++)
        if (rp_name_pairs_may_fit(&pairs, signs[i].part) && strcasestr(kernel, signs[i].part)) {
            *size = signs[i].size;
            return (enum rp_number)signs[i].number;
        }
    *size = 0;
    return RP_NUMBER_NONE;
}

/* ------------------------------------------------------------------ lists */

static const char *skip_space(const char *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')
        at++;
    return at;
}

/* Returns the next element of a list; `at` is behind '[' or an element. NULL at the end. */
static const char *next_element(const char *at)
{
    at = skip_space(at);
    if (*at == ',')
        at = skip_space(at + 1);
    return *at && *at != ']' ? at : NULL;
}

/* Returns the place behind the value that begins at `at`. */
static const char *skip_value(const char *at)
{
    int depth = 0;
    bool quoted = false;

    for (; *at; at++) {
        if (quoted) {
            if (*at == '\\' && at[1])
                at++;
            else if (*at == '"')
                quoted = false;
        } else if (*at == '"') {
            quoted = true;
        } else if (*at == '[' || *at == '{') {
            depth++;
        } else if (*at == ']' || *at == '}') {
            if (--depth < 0)
                return at;
            if (!depth)
                return at + 1;
        } else if (*at == ',' && !depth) {
            return at;
        }
    }
    return at;
}

/* Reads "[4, 8]" as dimensions; false if it is something else. */
static bool read_dims(const char *at, struct rp_input_tensor *t)
{
    char *end;

    if (*at != '[')
        return false;
    *t = (struct rp_input_tensor){.known = true, .n = 1};
    for (const char *next = next_element(at + 1); next; next = next_element(end)) {
        double value = strtod(next, &end);

        if (end == next || value < 0)
            return false;
        if (t->ndims ==
            RP_TENSOR_DIMS) { /* further dimensions, which nobody uses, are combined into one */
            t->dim[RP_TENSOR_DIMS - 1] *= value;
        } else {
            t->dim[t->ndims++] = value;
        }
        t->n *= value;
    }
    t->stored = t->n;
    return true;
}

/* Dimensions with stride 0 repeat what is stored once. */
static void apply_strides(const char *at, struct rp_input_tensor *t)
{
    char *end;
    uint32_t i = 0;

    if (!at || *at != '[')
        return;
    for (const char *next = next_element(at + 1); next && i < t->ndims;
         next = next_element(end), i++) {
        double stride = strtod(next, &end);

        if (end == next)
            return;
        if (stride == 0 && t->dim[i] > 1)
            t->stored /= t->dim[i];
    }
}

/* ------------------------------------------------------------------ inputs */

/* One of the four lists while it is walked. */
struct list_walk {
    const char *at; /* the element, or NULL */
};

static struct list_walk list_begin(const char *text)
{
    struct list_walk w = {NULL};

    if (text) {
        text = skip_space(text);
        if (*text == '[')
            w.at = next_element(text + 1);
    }
    return w;
}

static void list_next(struct list_walk *w)
{
    if (w->at)
        w->at = next_element(skip_value(w->at));
}

static void set_type(struct rp_input_tensor *t, const char *type, size_t len)
{
    t->type = (uint8_t)rp_number_of_type(type, len, &t->size);
    if (t->type == RP_NUMBER_FP4 &&
        t->ndims) { /* one byte holds two, so the last dimension is halved */
        t->dim[t->ndims - 1] *= 2;
        t->n *= 2;
        t->stored *= 2;
        t->size = 0.5F;
    }
}

/* Finds the text of an element: the text in its quotes, or all of it. */
static void unquote(const char *at, const char **text, uint32_t *len)
{
    const char *end = skip_value(at);
    bool quoted = *at == '"';

    while (end > at && isspace((unsigned char)end[-1]))
        end--;
    at += quoted;
    end -= quoted && end > at && end[-1] == '"';
    *text = at;
    *len = (uint32_t)(end - at);
}

static enum rp_code read_value(struct rp_inputs *in, struct rp_input_value *v, const char *dims,
                               const char *strides, const char *type, const char *concrete,
                               struct rp_err *err)
{
    const char *name = "";
    uint32_t len = 0;

    *v = (struct rp_input_value){0};
    if (type)
        unquote(type, &name, &len);
    if (concrete)
        unquote(concrete, &v->text, &v->len);
    bool list = (len == 10 && !memcmp(name, "TensorList", 10)) || (*dims == '[' && dims[1] == '[');
    if (list) {
        v->is_list = true;

        /* Read a list of tensors: "[[4], [8, 2]]", or "[]" if it was too long to be recorded. */
        struct list_walk d = list_begin(dims), s = list_begin(strides);
        v->first = (uint32_t)in->parts.n;
        for (; d.at && in->parts.n < MOST_PARTS; list_next(&d), list_next(&s)) {
            struct rp_input_tensor t;

            if (!read_dims(d.at, &t))
                break;
            apply_strides(s.at, &t);
            RP_TRY(rp_vec_push(&in->parts, t, err));
            v->count++;
        }
        return RP_OK;
    }
    if (!read_dims(dims, &v->tensor))
        return RP_OK;
    if (type)
        set_type(&v->tensor, name, len);
    /* "[]" is a number, nothing, or a tensor of one element, which the type tells */
    if (type ? v->tensor.size <= 0 : !v->tensor.ndims)
        v->tensor.known = false;
    apply_strides(strides, &v->tensor);
    return RP_OK;
}

enum rp_code rp_inputs_parse(struct rp_inputs *in, const char *name, const char *dims,
                             const char *strides, const char *types_, const char *concrete,
                             struct rp_err *err)
{
    struct list_walk d = list_begin(dims), s = list_begin(strides), t = list_begin(types_),
                     c = list_begin(concrete);
    size_t len = strlen(name);

    in->name = name;
    in->in_place = len && name[len - 1] == '_';
    in->count = 0;
    in->parts.n = 0;
    for (; d.at && in->count < RP_INPUTS_MAX; in->count++) {
        RP_TRY(read_value(in, &in->at[in->count], d.at, s.at, t.at, c.at, err));
        list_next(&d);
        list_next(&s);
        list_next(&t);
        list_next(&c);
    }
    return RP_OK;
}

void rp_inputs_release(struct rp_inputs *in)
{
    rp_vec_release(&in->parts);
}

const struct rp_input_tensor *rp_inputs_tensor(const struct rp_inputs *in, uint32_t i)
{
    return i < in->count && in->at[i].tensor.known ? &in->at[i].tensor : NULL;
}

static const char *value_text(const struct rp_inputs *in, uint32_t i, char *out, size_t cap)
{
    if (i >= in->count || !in->at[i].text)
        return NULL;
    uint32_t n = in->at[i].len < cap - 1 ? in->at[i].len : (uint32_t)cap - 1;
    memcpy(out, in->at[i].text, n);
    out[n] = '\0';
    return n ? out : NULL;
}

bool rp_inputs_int(const struct rp_inputs *in, uint32_t i, double *out)
{
    char text[64], *end;

    if (!value_text(in, i, text, sizeof text))
        return false;
    *out = strtod(text, &end);
    return end != text && !*end && fabs(*out) < MOST_VALUE;
}

bool rp_inputs_flag(const struct rp_inputs *in, uint32_t i)
{
    return rp_inputs_word(in, i, "True") || rp_inputs_word(in, i, "1");
}

bool rp_inputs_word(const struct rp_inputs *in, uint32_t i, const char *word)
{
    char text[64];

    return value_text(in, i, text, sizeof text) && !strcasecmp(text, word);
}

uint32_t rp_inputs_ints(const struct rp_inputs *in, uint32_t i, double *out, uint32_t cap)
{
    char text[256], *end;
    const char *at = value_text(in, i, text, sizeof text);
    uint32_t n = 0;

    if (!at)
        return 0;
    at = skip_space(at);
    if (*at != '[')
        return rp_inputs_int(in, i, out) && cap ? 1 : 0;
    for (at = next_element(at + 1); at && n < cap; at = next_element(end)) {
        if (isalpha((unsigned char)*at)) { /* a list of flags */
            out[n++] = *at == 'T' || *at == 't';
            end = text + (skip_value(at) - text);
            continue;
        }
        out[n] = strtod(at, &end);
        if (end == at || !(fabs(out[n]) <= MOST_VALUE))
            return 0;
        n++;
    }
    return n;
}

/* ------------------------------------------------------------------ batches of servers */

/* Sums over the sequences of one part of the batch: new tokens q, all tokens k, q * q, q * k. */
enum { SUM_Q, SUM_K, SUM_QQ, SUM_QK, SUMS };
static const char *const sum_words[SUMS] = {"sq", "sk", "sqsq", "sqsk"};

/* Reads the form of vLLM: "sq10sk14sqsq58sqsk70". */
static bool read_joined_sums(const char *at, double sum[SUMS])
{
    char *end;

    for (int i = 0; i < SUMS; i++) {
        size_t n = strlen(sum_words[i]);

        if (strncmp(at, sum_words[i], n) != 0 || !isdigit((unsigned char)at[n]))
            return false;
        sum[i] = strtod(at + n, &end);
        at = end;
    }
    return true;
}

/* Reads the number of " key=12" in a name. */
static bool read_keyed(const char *name, const char *prefix, const char *word, double *out)
{
    size_t np = strlen(prefix), nw = strlen(word);

    for (const char *at = strchr(name, ' '); at; at = strchr(at + 1, ' '))
        if (!strncmp(at + 1, prefix, np) && !strncmp(at + 1 + np, word, nw) &&
            at[1 + np + nw] == '=' && isdigit((unsigned char)at[2 + np + nw])) {
            *out = strtod(at + 2 + np + nw, NULL);
            return true;
        }
    return false;
}

/* Reads the form of SGLang: " c_sq=10 c_sk=14 c_sqsq=58 c_sqsk=70"; a batch of one part has its new
   tokens before. */
static bool read_keyed_sums(const char *name, const char *prefix, const char *tokens,
                            double sum[SUMS])
{
    for (int i = SUM_K; i < SUMS; i++)
        if (!read_keyed(name, prefix, sum_words[i], &sum[i]))
            return false;
    return read_keyed(name, prefix, sum_words[SUM_Q], &sum[SUM_Q]) ||
           read_keyed(name, "", tokens, &sum[SUM_Q]);
}

bool rp_batch_parse(const char *name, struct rp_batch *out)
{
    static const struct {
        const char *joined, *prefix, *tokens;
    } parts[] = {{"context_", "c_", "toks"}, {"generation_", "g_", "bs"}};
    bool found = false;

    for (size_t i = 0; i < 2; i++) {
        const char *at = strstr(name, parts[i].joined);
        double sum[SUMS];

        at = at ? strchr(at, '(') : NULL;
        if (at ? !read_joined_sums(at + 1, sum)
               : !read_keyed_sums(name, parts[i].prefix, parts[i].tokens, sum))
            continue;

        /* New token i of a sequence sees all tokens except those after it. */
        bool one_each =
            sum[SUM_QK] == sum[SUM_K]; /* in decoding, no token comes after the new one */
        out->tokens += sum[SUM_Q];
        out->keys += sum[SUM_K];
        out->pairs += sum[SUM_QK] - (one_each ? 0 : (sum[SUM_QQ] - sum[SUM_Q]) / 2);

        found = true;
    }
    return found && out->tokens > 0;
}
