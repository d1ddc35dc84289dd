/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t rp_mix_fn(uint64_t hash, uint64_t value);

/* Hashes a JSON object by its content, without members that have their default value; the hash is 0
   if none is left. Returns false if the text is not a JSON object. */
bool rp_config_hash(const char *at, size_t n, rp_mix_fn *mix, uint64_t *hash);
