/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The rules of result types; a test checks the type of every question. */
#include <reprise/result.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Returns true if the type and all types inside it follow the rules; otherwise `why` says which
 * field breaks which rule ("info.files.total: the key ... must end in '_ns'").
 *
 *   - the key of a number, or that of an enclosing record, list or map, ends in the suffix of its
 *     unit (or is the unit: "bytes"), and no key ends in the suffix of another unit
 *   - only numbers have units
 *   - keys are [A-Za-z0-9_]+ and unique in their record; every field has a doc
 *   - values lie inside the struct, aligned; lists, maps and records have a type of items
 *   - the columns that a list shows are fields of its items, and have a title
 *   - the first field of a map's item is its key, a text; the path of the CSV rows leads to a list
 */
bool rp_type_check(const struct rp_type *type, char *why, size_t cap);
