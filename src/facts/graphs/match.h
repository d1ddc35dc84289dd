/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds which node of a captured graph an executed kernel is. Both are sequences of tokens, one for
 * each node: the hash of the kernel's name, or the kind of node.
 */
#include "base/decides.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum {
    RP_TOKEN_ANY,  /* captured: a kernel without a recorded name */
    RP_TOKEN_COPY, /* copies and memsets have no names in a capture */
    RP_TOKEN_SET,
    RP_TOKEN_NAMES /* hashes of names begin here */
};

/* The token of a kernel's name; for kernels with which ROCm copies and sets memory, that of their
   kind. */
uint64_t rp_graph_token(const char *kernel, size_t len);

/* Number of comparisons left for matching. Hostile sequences exceed it, real ones do not. */
#define RP_MATCH_WORK (UINT64_C(1) << 28)
RP_LIMIT(RP_MATCH_WORK, "comparisons of a trace",
         "graphs that are left stay without a match, which the coverage says");

/*
 * Fills node_of[e], by executed node, with the index of its captured node, or UINT32_MAX; *matched
 * is their number. If the two differ in a few hundred places, uses the longest common subsequence;
 * then matches the rest by name, the i-th of a name with the i-th (graphs of several streams
 * execute in another order). If names were not recorded, only sequences of the same kinds match.
 */
enum rp_code rp_graph_match(const uint64_t *captured, uint32_t ncaptured, const uint64_t *executed,
                            uint32_t nexecuted, uint32_t *node_of, uint32_t *matched,
                            uint64_t *work, struct rp_err *err);
