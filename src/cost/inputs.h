/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The inputs of an operator as PyTorch's profiler records them: shapes ("Input Dims"), strides,
 * types ("Input type") and the values of numbers ("Concrete Inputs"), each as a JSON list.
 */
#include "base/err.h"
#include "base/vec.h"
#include "cost/devices.h"

#define RP_TENSOR_DIMS 8
#define RP_INPUTS_MAX  64

struct rp_input_tensor {
    uint8_t ndims;
    uint8_t type; /* enum rp_number */
    float size;   /* bytes of an element; 0 if not known, 0.5 if a byte holds two */
    bool known;   /* it is a tensor with a shape */
    double dim[RP_TENSOR_DIMS];
    double n;      /* elements */
    double stored; /* the same without elements that an expanded dimension repeats */
};

/* The value of an input: a tensor, a list of them, or something else. */
struct rp_input_value {
    struct rp_input_tensor tensor;
    uint32_t first,
        count; /* for a list: its elements in rp_inputs.parts; count is 0 if it is not a list */
    const char *text; /* the value of a number, list or flag, such as "[1, 1]", with len letters */
    uint32_t len;
    bool is_list; /* it is a list of tensors, even if none of them was recorded */
};

/* The sequences that a step of a server computes, according to its mark. */
struct rp_batch {
    double requests;     /* number of sequences; 0 if not known */
    bool prefill;        /* all of their tokens are computed */
    double tokens, keys; /* sums over sequences: of new tokens and of all tokens; 0 if not known */
    double pairs;        /* pairs of a new token and a token that it sees */
};

struct rp_inputs {
    const char *name; /* of the operator */
    bool in_place;    /* its name ends in '_' */
    uint32_t count;
    struct rp_input_value at[RP_INPUTS_MAX];
    RP_VEC(struct rp_input_tensor) parts;
    uint8_t hint;          /* enum rp_number, from the name of its kernel */
    float hint_size;       /* bytes of an element from the same name; 0 if it tells nothing */
    struct rp_batch batch; /* of the server's step around it */
};

/* Parses the texts, to which everything points; they may be NULL if not recorded. `in` must be
   released when done, and may be used again for parsing. */
enum rp_code rp_inputs_parse(struct rp_inputs *in, const char *name, const char *dims,
                             const char *strides, const char *types, const char *concrete,
                             struct rp_err *err);
void rp_inputs_release(struct rp_inputs *in);

/* Finds the format of a type as PyTorch writes it, "c10::BFloat16", and the bytes of an element (0
   if it is not a tensor). */
enum rp_number rp_number_of_type(const char *type, size_t len, float *size);
/* Does the same for the number of a type, as in out_dtype=15. */
enum rp_number rp_number_of_code(int64_t code, float *size);
/* Finds the format that the name of a kernel tells; NONE if it tells nothing. */
enum rp_number rp_number_of_kernel(const char *kernel, float *size);

/* Returns the i-th input if it is a tensor, otherwise NULL. */
const struct rp_input_tensor *rp_inputs_tensor(const struct rp_inputs *in, uint32_t i);
/* Read the value of the i-th input: a number, a flag, or a list of at most cap numbers (a single
   number is a list of one). They return false and 0 if it has another type. */
bool rp_inputs_int(const struct rp_inputs *in, uint32_t i, double *out);
bool rp_inputs_flag(const struct rp_inputs *in, uint32_t i);
uint32_t rp_inputs_ints(const struct rp_inputs *in, uint32_t i, double *out, uint32_t cap);
bool rp_inputs_word(const struct rp_inputs *in, uint32_t i, const char *word);

/* Adds the sums that the mark of a server's step names: for vLLM
   "context_9(sq8155sk8430sqsq7475785sqsk7671310)_generation_37(sq37sk34489sqsq37sqsk34489)", for
   SGLang "step[EXTEND bs=1 toks=1025 c_sqsq=1050625 c_sqsk=1050625 c_sk=1025]". Returns false if it
   names none. */
bool rp_batch_parse(const char *name, struct rp_batch *out);

static inline double rp_input_bytes(const struct rp_input_tensor *t)
{
    return t->stored * (double)t->size;
}

/* Returns the last dimension but i; 1 if there are fewer. */
static inline double rp_input_last(const struct rp_input_tensor *t, uint32_t i)
{
    return i < t->ndims ? t->dim[t->ndims - 1 - i] : 1;
}
