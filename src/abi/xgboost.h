/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_ABI_XGBOOST_H
#define RP_ABI_XGBOOST_H
/*
 * The part of XGBoost's C interface (c_api.h, since 1.0) that trains a booster and writes its trees
 * as text. All return 0, or -1 and then XGBGetLastError says why. Loaded with dlopen.
 */
#include <stdint.h>

typedef const char *xgb_last_error_fn(void);
typedef int xgb_matrix_create_fn(const float *data, uint64_t rows, uint64_t columns, float missing,
                                 void **out);
typedef int xgb_matrix_set_fn(void *matrix, const char *field, const float *values, uint64_t n);
typedef int xgb_matrix_free_fn(void *matrix);
typedef int xgb_booster_create_fn(void *const matrices[], uint64_t n, void **out);
typedef int xgb_booster_param_fn(void *booster, const char *name, const char *value);
typedef int xgb_booster_update_fn(void *booster, int iteration, void *matrix);
typedef int xgb_booster_dump_fn(void *booster, const char *names, int with_stats, uint64_t *n,
                                const char ***texts);
typedef int xgb_booster_free_fn(void *booster);

#endif
