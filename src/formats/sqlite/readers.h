/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The readers of recordings in SQLite files; formats.c chooses one by the tables of the file. */
#include "formats/activity/activity.h"
#include "formats/sqlite/database.h"

enum rp_code rp_nsys_read(struct rp_activity *a, struct rp_database *db, struct rp_err *err);
enum rp_code rp_rocpd_read(struct rp_activity *a, struct rp_database *db, struct rp_err *err);
enum rp_code rp_rpd_read(struct rp_activity *a, struct rp_database *db, struct rp_err *err);
