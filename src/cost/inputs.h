/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The inputs of an operator as PyTorch's profiler records them: shapes ("Input Dims"), strides,
 * types
 * ("Input type") and the values of numbers ("Concrete Inputs"), each a JSON list.
 */
#include "base/err.h"
#include "base/vec.h"
#include "cost/devices.h"

#define RP_TENSOR_DIMS 8
#define RP_INPUTS_MAX  64

struct rp_input_tensor {
    uint8_t ndims;
    uint8_t type; /* enum rp_number */
    float size;   /* bytes of an element; 0: not known. 0.5 for two in a byte */
    bool known;   /* it is a tensor, with a shape */
    double dim[RP_TENSOR_DIMS];
    double n;      /* elements */
    double stored; /* the same without those that an expanded dimension repeats */
};

/* A value of an operator: a tensor, a list of them, or something else. */
struct rp_input_value {
    struct rp_input_tensor tensor;
    uint32_t first, count; /* of a list: into rp_inputs.parts; count 0: it is none */
    const char *text;      /* the value of a number, list or flag, as "[1, 1]"; of len letters */
    uint32_t len;
    bool is_list; /* of tensors, also if none of them was recorded */
};

/* The sequences that a step of a server computes, as its mark says. */
struct rp_batch {
    double requests;     /* sequences; 0: not known */
    bool prefill;        /* all of their tokens are computed */
    double tokens, keys; /* sums over sequences: new tokens, and all; 0: not known */
    double pairs;        /* of a new token and a token that it sees */
};

struct rp_inputs {
    const char *name; /* of the operator */
    bool in_place;    /* its name ends in '_' */
    uint32_t count;
    struct rp_input_value at[RP_INPUTS_MAX];
    RP_VEC(struct rp_input_tensor) parts;
    uint8_t hint;          /* enum rp_number: what the name of its kernel says */
    float hint_size;       /* bytes of an element, from the same; 0: it says nothing */
    struct rp_batch batch; /* of a server, around it */
};

/* Texts may be NULL: not recorded. Everything points into them. Release `in` when done; it may be
   parsed into again. */
enum rp_code rp_inputs_parse(struct rp_inputs *in, const char *name, const char *dims,
                             const char *strides, const char *types, const char *concrete,
                             struct rp_err *err);
void rp_inputs_release(struct rp_inputs *in);

/* The format of a type as PyTorch writes it, "c10::BFloat16", and the bytes of an element (0: it is
   no tensor). */
enum rp_number rp_number_of_type(const char *type, size_t len, float *size);
/* The same for its number, as in out_dtype=15. */
enum rp_number rp_number_of_code(int64_t code, float *size);
/* What the name of a kernel says; NONE: nothing. */
enum rp_number rp_number_of_kernel(const char *kernel, float *size);

/* The i-th input where it is a tensor, else NULL. */
const struct rp_input_tensor *rp_inputs_tensor(const struct rp_inputs *in, uint32_t i);
/* The value of the i-th input: a number, a flag, a list of numbers (how many: at most cap; a single
   number is a list of one). False and 0 where it is none. */
bool rp_inputs_int(const struct rp_inputs *in, uint32_t i, double *out);
bool rp_inputs_flag(const struct rp_inputs *in, uint32_t i);
uint32_t rp_inputs_ints(const struct rp_inputs *in, uint32_t i, double *out, uint32_t cap);
bool rp_inputs_word(const struct rp_inputs *in, uint32_t i, const char *word);

/* Adds the sums that the mark of a server's step names: of vLLM
   "context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)", of
   SGLang "step[EXTEND bs=1 toks=1025 c_sqsq=1050625 c_sqsk=1050625 c_sk=1025]". False: it names
   none. */
bool rp_batch_parse(const char *name, struct rp_batch *out);

static inline double rp_input_bytes(const struct rp_input_tensor *t)
{
    return t->stored * (double)t->size;
}

/* The last dimension but i; 1 where there are fewer. */
static inline double rp_input_last(const struct rp_input_tensor *t, uint32_t i)
{
    return i < t->ndims ? t->dim[t->ndims - 1 - i] : 1;
}
