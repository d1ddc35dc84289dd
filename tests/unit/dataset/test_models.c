/* SPDX-License-Identifier: Apache-2.0 */
/* Cost models are read once for all ranks and questions of a context, and again when they change.
 */
#include "cost/learn/learned.h"
#include "dataset/dataset.h"
#include "dataset/models.h"
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

static void write_model(const char *path, const struct rp_learned *model, bool cut)
{
    struct rp_out *out = NULL;
    const char *bytes;
    size_t n;
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    assert_int_equal(rp_out_open_memory(&out, NULL), RP_OK);
    rp_learned_write(model, out);
    assert_int_equal(rp_out_flush(out, NULL), RP_OK);
    bytes = rp_out_borrow_memory(out, &n);
    assert_int_equal(fwrite(bytes, 1, cut ? n / 2 : n, f), cut ? n / 2 : n);
    rp_out_abandon(out);
    assert_int_equal(fclose(f), 0);
}

static void models_are_shared_and_follow_their_files(void **state)
{
    const struct rp_learned *first, *again, *file;
    struct rp_err err = RP_ERR_INIT;
    char path[] = "/tmp/reprise_model_XXXXXX";
    struct rp_ctx *ctx;
    int fd = mkstemp(path);

    UNUSED_STATE(state);
    assert_true(fd >= 0);
    close(fd);
    assert_ok(rp_ctx_new(NULL, &ctx, &err), &err);
    assert_ok(rp_ctx_borrow_model(ctx, NULL, &first, &err), &err);
    assert_ok(rp_ctx_borrow_model(ctx, NULL, &again, &err), &err);
    assert_ptr_equal(first, again);
    write_model(path, first, false);
    assert_ok(rp_ctx_borrow_model(ctx, path, &file, &err), &err);
    assert_ptr_not_equal(first, file);
    assert_int_equal(first->samples.rows.n, file->samples.rows.n);
    assert_ok(rp_ctx_borrow_model(ctx, path, &again, &err), &err);
    assert_ptr_equal(file, again);
    write_model(path, first, true);
    assert_code(rp_ctx_borrow_model(ctx, path, &again, &err), RP_FORMAT);
    assert_contains(err.text, path);
    unlink(path);
    assert_code(rp_ctx_borrow_model(ctx, path, &again, &err), RP_IO);
    rp_ctx_free(ctx);
}

int test_models(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(models_are_shared_and_follow_their_files)};

    return cmocka_run_group_tests_name("models", tests, NULL, NULL);
}
