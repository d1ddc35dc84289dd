/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds impossible answers, whatever was recorded: a length of time must not be below zero, and a
 * part must not be longer than its whole. Tables in sane.c name the keys.
 */
#include <reprise/result.h>
#include <stddef.h>

/* Counts the impossible values of a record and of the records inside it; `why` says where the first
   is: "ranks.wait_ns is -5". O(values). */
size_t rp_record_impossible(const struct rp_type *type, const void *record, char *why, size_t cap);
