/* SPDX-License-Identifier: Apache-2.0 */
/* What the name of a host call says about it. */
#include "facts/host/signs.h"
#include "unit.h"

static void names_tell_what_a_call_does(void **state)
{
    static const struct {
        const char *name;
        unsigned signs;
    } rows[] = {
        {"BufferSequencingEvent::WaitForEventOnExternalStream", RP_SIGN_BLOCKS},

        {"aten::mm", 0},
        {"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", RP_SIGN_DATA},
        {"IteratorGetNext", RP_SIGN_DATA},
        {"cudaStreamSynchronize", RP_SIGN_BLOCKS},
        {"cudaMemcpy", RP_SIGN_BLOCKS}, /* returns when the copy is done */
        {"cudaMemcpyAsync", 0},
        {"hipMemcpyWithStream", RP_SIGN_BLOCKS},
        {"clFinish", RP_SIGN_BLOCKS},
        {"clWaitForEvents", RP_SIGN_BLOCKS},
        {"clFlush", 0},
        {"gloo:all_reduce", RP_SIGN_RANKS},
        {"MPI_Allreduce", RP_SIGN_RANKS},
        {"MPI_Init", 0}, /* others are not there yet */
        {"MPI_Init_thread", 0},
        {"PMPI_Allreduce", 0},
        {"cudaMalloc", RP_SIGN_ALLOCATES},
        {"hipFree", RP_SIGN_ALLOCATES},
        {"ProfilerStep#4", RP_SIGN_STEP},
        {"block_until_ready", RP_SIGN_BLOCKS | RP_SIGN_HANDS_OVER},
        {"<built-in method run_backward of torch._C._EngineBase object>", RP_SIGN_HANDS_OVER},
        {"<built-in method collect of module object>", RP_SIGN_GARBAGE},
        {"cuModuleLoadData", RP_SIGN_STARTS_UP},
        {"warm_up", RP_SIGN_WARMS_UP},
    };

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rp_host_signs(rows[i].name) != rows[i].signs)
            fail_msg("'%s': %x, not %x", rows[i].name, rp_host_signs(rows[i].name), rows[i].signs);
}

/* A word begins where no letter is before it. */
static void words_that_prepare_input(void **state)
{
    static const struct {
        const char *text;
        bool prepares;
    } rows[] = {{"train.py(7): load_batch", true},
                {"Load_Data", true},
                {"preload_data", false},
                {"preload_data then load_data", true},
                {"torchvision/transforms.py", true},
                {"spread_read_", true},
                {"thread_pool", false},
                {"aten::mm", false},
                {"", false},
                {NULL, false}};

    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rp_host_prepares_input(rows[i].text) != rows[i].prepares)
            fail_msg("'%s' is taken for %s", rows[i].text, rows[i].prepares ? "other" : "input");
}

int test_host_signs(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_tell_what_a_call_does),
        cmocka_unit_test(words_that_prepare_input),
    };

    return cmocka_run_group_tests_name("host signs", tests, NULL, NULL);
}
