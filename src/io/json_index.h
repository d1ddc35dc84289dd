/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The structural index of JSON text: the positions of both quotes of every string, and of the bytes
 * { } [ ] , outside strings. The parser of json_pull.h jumps from position to position, so the
 * length of a string is known without scanning it.
 *
 *     {"name": "a,\"b", "ts": 12}
 *     ^^    ^  ^      ^ ^   ^    ^          (with the comma after the second string)
 *
 * Text comes in pieces of any size; what crosses a boundary (inside a string, after a backslash) is
 * carried in the state. The rules, which every variant follows exactly:
 *
 *   - a backslash that is not itself escaped escapes the next byte, inside strings and outside;
 *   - a quote that is not escaped begins or ends a string;
 *   - { } [ ] , count where they are outside strings, escaped or not.
 *
 * Cost: about 0.4 ns per byte with AVX2 or NEON, 2 ns in plain C.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_json_index_state {
    uint64_t in_string;     /* all ones between the quotes of a string, otherwise 0 */
    uint64_t escaped;       /* 1 if the next byte follows a backslash */
    uint64_t control_bytes; /* bytes below 0x20 inside strings */
    uint64_t backslash;     /* not 0 if a backslash was seen */
};

/* Variants may write up to this many entries more than they return. */
#define RP_JSON_INDEX_SLACK 64

/*
 * Appends the positions of text[0..n), each plus `base`, to out, which has room for n +
 * RP_JSON_INDEX_SLACK entries, and returns how many there are. Reads nothing outside the text.
 */
typedef size_t rp_json_index_fn(struct rp_json_index_state *state, const char *text, size_t n,
                                uint32_t base, uint32_t *out);

rp_json_index_fn rp_json_index_scalar;
#if defined(__x86_64__)
rp_json_index_fn rp_json_index_avx2; /* only if the processor has AVX2, BMI and PCLMUL */
#elif defined(__aarch64__)
rp_json_index_fn rp_json_index_neon;
#endif

struct rp_json_indexer {
    const char *name;
    rp_json_index_fn *run;
};

/* Returns the i-th variant that this processor can run, fastest first, or NULL; the last is
   "scalar". */
const struct rp_json_indexer *rp_json_indexer_at(size_t i);
