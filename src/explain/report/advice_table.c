/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of advice. A row is about one kind of finding and one topic; of the rows of a topic
 * that match a program, the one with most keys is used, of several the first. A row without text
 * says that the topic does not apply. To add advice: add a row to a file below; every option or
 * call that it names must exist in that framework, and the unit test walks all kinds of programs
 * and checks the words.
 */
#include "explain/report/advice.h"

#include "facts/ranks/collective_args.h"

#define FW(name)     (1u << RP_FRAMEWORK_##name)
#define BY(name)     (1u << RP_VENDOR_##name)
#define MODE(name)   (1u << RP_MODE_##name)
#define PAR(name)    (1u << RP_PARALLEL_##name)
#define VIA(name)    (1u << RP_TRANSPORT_##name)
#define SERVES(name) (1u << RP_SERVES_##name)
#define COLL(name)   (1u << RP_COLL_##name)

static const struct rp_advice_row rows[] = {
#include "explain/report/advice_device.def"
#include "explain/report/advice_host.def"
#include "explain/report/advice_memory.def"
#include "explain/report/advice_ranks.def"
};

const struct rp_advice_row *rp_advice_rows(size_t *n)
{
    *n = sizeof rows / sizeof rows[0];
    return rows;
}
