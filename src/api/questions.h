/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The list of questions, in the order of the help: one line adds a command, its help, its
 * completion, its manual page and its library call. The row rp_ask_<name> is defined beside the
 * functions that answer the question, as in src/explain/top/.
 */
#define RP_QUESTION_ROWS(X) \
    X(info)                 \
    X(report)               \
    X(top)                  \
    X(roofline)             \
    X(fusions)              \
    X(idle)                 \
    X(comm)                 \
    X(critpath)             \
    X(stalls)               \
    X(launches)             \
    X(memory)               \
    X(merge)                \
    X(digest)               \
    X(simulate)             \
    X(optimize)             \
    X(try)                  \
    X(model)                \
    X(query)                \
    X(convert)              \
    X(scrub)                \
    X(graph)                \
    X(dump)                 \
    X(replay)               \
    X(diff)                 \
    X(metrics)              \
    X(version)              \
    X(doctor)
