/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_RESULT_CHECK_H
#define RP_RESULT_CHECK_H
/* The rules of result types, for the tests: every question's type must pass. */
#include <reprise/result.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * True where the type and all types inside it keep the rules; otherwise `why` says which field
 * breaks which one ("info.files.total: unit is ns, so the key must end in '_ns'").
 *
 *   - a number's key, or that of a record, list or map around it, ends in its unit's suffix (or is
 *     the bare word: "bytes"), and no key ends in the suffix of another unit
 *   - only numbers have units
 *   - keys are [A-Za-z0-9_]+ and unique in their record; every field has a doc
 *   - values lie inside the struct, aligned; lists, maps and records say what is inside
 *   - a map's item begins with its key, a text; the rows path of CSV leads to a list
 */
bool rp_type_check(const struct rp_type *type, char *why, size_t cap);

#endif
