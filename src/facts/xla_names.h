/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names of XLA's instructions and kernels in traces, and of JAX's scopes; this is the one place to
   add one. */
#include "facts/arg_keys.h"

/* Whether an instruction is a graph of many, so that its kernels say more. */
bool rp_xla_is_graph(const char *instruction);

/* The instruction to which an event belongs, by its argument "hlo_op"; if that is absent, or a
   graph, its own name. */
rp_str rp_xla_instruction(const struct rp_arg_key *hlo_op, rp_event e);

/* Whether a scope, "jit(f)/transpose(jvp(g))/mul", belongs to a backward pass; to the forward pass
   of a gradient. */
bool rp_xla_is_backward(const char *scope);
bool rp_xla_is_forward(const char *scope);

/* The length of a kernel's name without the ending of AMD's kernel descriptors, which some ROCm
   tools leave. */
size_t rp_kernel_name_len(const char *name, size_t len);
