/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Aggregate functions that SQLite does not have: median(x), quantile(x, p), stddev(x) and
 * histogram(x [, n]). NULL and texts do not count; without values the answer is NULL.
 */
#include "rp_config.h"

#if RP_HAVE_SQLITE
#include <sqlite3.h>

int rp_query_functions(sqlite3 *db);
#endif
