/* SPDX-License-Identifier: Apache-2.0 */
/* dag.gml and nccl_rank_graph.json: what they say, and what is refused. */
#include "unit.h"

#include "job/records.h"

static void release(struct rp_job_rank *r)
{
    rp_vec_release(&r->edges);
    rp_vec_release(&r->links);
    rp_arena_release(&r->arena);
}

static enum rp_code read_graph(const char *text, struct rp_job_rank *out, struct rp_err *err)
{
    memset(out, 0, sizeof *out);
    rp_arena_init(&out->arena);
    return rp_job_read_graph(text, strlen(text), out, err);
}

static void a_graph_is_its_edges(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_job_rank r;

    UNUSED_STATE(state);
    assert_ok(read_graph("graph [\n directed 1\n node [ id 0 label \"BW.conv\" ]\n"
                         " node [ id 2 label \"Comm.DistributedHorovodAllreduce_7_0\" ]\n"
                         " node [ label \"UPD. ] 1\" id 1 ]\n"
                         " edge [ source 0 target 2 ] edge [ source 2 target 1 ]\n]",
                         &r, &err),
              &err);
    assert_int_equal(r.edges.n, 2);
    assert_string_equal(r.edges.at[0].from, "BW.conv");
    assert_int_equal(r.edges.at[0].from_tensor, -1);
    assert_int_equal(r.edges.at[0].to_tensor, 7);
    assert_string_equal(r.edges.at[1].to, "UPD. ] 1");
    assert_int_equal(r.edges.at[1].from_tensor, 7);
    release(&r);
}

static void a_damaged_graph_is_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "begins with"},
        {"digraph [ ]", "begins with"},
        {"graph [ node [ id 0 ", "ends inside"},
        {"graph [ node [ id 0 label", "without a value"},
        {"graph [ node id 0 ]", "'[' is expected"},
        {"graph [ node [ id -1 ] ]", "id of 0 or more"},
        {"graph [ node [ label \"x\" ] ]", "id of 0 or more"},
        {"graph [ node [ id 16000000 ] ]", "not more than there are nodes"},
        {"graph [ node [ id 99999999999999999999 ] ]", "id of 0 or more"},
        {"graph [ node [ id 0 ] edge [ source 0 target 1 ] ]", "two nodes defined before"},
        {"graph [ node [ id 2 ] edge [ source 0 target 2 ] ]", "two nodes defined before"},
    };
    size_t i;

    UNUSED_STATE(state);
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rp_err err = RP_ERR_INIT;
        struct rp_job_rank r;

        if (read_graph(cases[i].text, &r, &err) != RP_FORMAT || !strstr(err.text, cases[i].says))
            fail_msg("'%s': %s", cases[i].text, err.text);
        release(&r);
    }
}

static enum rp_code read_rings(const char *text, struct rp_job_rank *out, struct rp_err *err)
{
    memset(out, 0, sizeof *out);
    rp_arena_init(&out->arena);
    return rp_job_read_rings(text, strlen(text), out, err);
}

static void rings_name_the_rank_and_its_neighbours(void **state)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_job_rank r;

    UNUSED_STATE(state);
    assert_ok(
        read_rings("{\"Tree\": {}, \"Ring\": {\"0\": \"3[3000] -> 0[2000] [receive] via "
                   "NET/Socket/0,0[2000] -> 1[3000] via P2P\", \"1\": \"1[3000] -> 0[2000] "
                   "[receive],0[2000] -> 3[3000] [send]\"}, \"x\": {\"9\": \"7[1] -> 8[1]\"}}",
                   &r, &err),
        &err);
    assert_int_equal(r.number, 0);
    assert_int_equal(r.links.n, 2);
    assert_int_equal(r.links.at[0].channel, 0);
    assert_int_equal(r.links.at[0].to, 1);
    assert_int_equal(r.links.at[1].channel, 1);
    assert_int_equal(r.links.at[1].to, 3);
    release(&r);
    assert_ok(read_rings("{\"Ring\": {}}", &r, &err), &err);
    assert_int_equal(r.number, -1);
    release(&r);
    assert_ok(read_rings("{\"Ring\": {\"0\": \"0[1] -> 1[2],2[1] -> 3[3]\"}}", &r, &err), &err);
    assert_int_equal(r.number, -1); /* no rank is in both */
    release(&r);
    assert_code(read_rings("{\"Tree\": {}}", &r, &err), RP_FORMAT);
    assert_contains(err.text, "Ring");
    release(&r);
}

/* The number behind the last sign of a transfer. */
static void labels_name_their_tensor(void **state)
{
    static const struct {
        const char *label;
        int64_t tensor;
    } rows[] = {{"Comm.PushPull_3", 3},         {"Comm.PushPull.14.weight", 14},
                {"Comm.Allreduce_5", 5},        {"DistributedAdam_Allreduce.6", 6},
                {"Comm.allreduce_70.x", 70},    {"Comm.allreduce.8", 8},
                {"allreduce.1.allreduce.2", 2}, {"Comm.allreduce.weight", -1},
                {"Comm.PushPull_", -1},         {"BW.conv1", -1}};

    UNUSED_STATE(state);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        assert_int_equal(rp_job_tensor_of(rows[k].label), rows[k].tensor);
}

int test_texts(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_is_its_edges),
        cmocka_unit_test(labels_name_their_tensor),
        cmocka_unit_test(a_damaged_graph_is_refused),
        cmocka_unit_test(rings_name_the_rank_and_its_neighbours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
