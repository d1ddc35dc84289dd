/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t rp_mix_fn(uint64_t hash, uint64_t value);

/* The hash of a JSON object by its content, without members that have their default value; 0 where
   none is left. false: the text is no JSON object. */
bool rp_config_hash(const char *at, size_t n, rp_mix_fn *mix, uint64_t *hash);
