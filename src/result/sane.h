/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What no answer may say, whatever was recorded: a time that something took is not below zero, and
 * a part is not longer than the whole that it is a part of. Tables in sane.c name the keys.
 */
#include <reprise/result.h>
#include <stddef.h>

/* How many values of a record, and of the records inside it, cannot be; `why` says where the first
   is: "ranks.wait_ns is -5". O(values). */
size_t rp_record_impossible(const struct rp_type *type, const void *record, char *why, size_t cap);
