/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "formats/activity/texts.h"
#include "formats/sqlite/database.h"

/* Adds the texts of a table. */
enum rp_code rp_texts_load(struct rp_texts *t, struct rp_database *db, const char *table,
                           const char *number, const char *text, struct rp_err *err);
