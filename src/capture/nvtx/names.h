/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_CAPTURE_NVTX_NAMES_H
#define RP_CAPTURE_NVTX_NAMES_H
/*
 * Names that frameworks give their NVTX ranges, taken apart.
 *
 * PyTorch (emit_nvtx)   aten::mm, seq = 1, op_id = 15, sizes = [[4096, 512], [512, 1536]],
 *                       input_op_ids = [(9,0), (5,0)]
 * XLA (domain TSL)      Thunk:#name=jit(f)/jvp()/dot_general,hlo_op=custom-call.0#
 *                       XlaModule:#hlo_module=jit_f,program_id=2651#
 *
 * A name with op_id is different in each call: kept whole, every call would cost a new text.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rp_nvtx_text {
    const char *at; /* not terminated; NULL: none */
    size_t n;
};

struct rp_nvtx_name {
    struct rp_nvtx_text name;
    bool is_operator; /* else a range of the program */
    int64_t sequence; /* PyTorch's, which forward and backward share; -1: none */
    struct rp_nvtx_text sizes;
    struct rp_nvtx_text path; /* XLA: op_name of the instruction */
    struct rp_nvtx_text module;
    int64_t program; /* XLA: its number; -1: none */
};

/* Returns false if the text is not such a name. The result points into the text. */
bool rp_nvtx_name_of_torch(const char *text, struct rp_nvtx_name *out);
bool rp_nvtx_name_of_xla(const char *text, struct rp_nvtx_name *out);

#endif
