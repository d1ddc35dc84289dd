/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Turns the events of a file into a trace by passes over the builder's columns, in the order of a
 * table (finish.c). For debugging, the state after any pass can be written as text.
 */
#include "io/output.h"
#include "trace/build/build.h"

/*
 * As rp_builder_finish, and writes the state after the named pass to `to`: one line for each
 * process, track, event, arrow, link and step. pass NULL: nothing is written; an unknown pass is
 * RP_USAGE.
 */
enum rp_code rp_builder_finish_dump(struct rp_builder *b, const char *pass, struct rp_out *to,
                                    struct rp_trace **out, struct rp_err *err);

/* The passes. */
enum rp_code rp_pass_args(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_ids(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_metadata(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_counts(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_pairs(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_order(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_samples(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_tracks(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_parents(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_flows(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_links(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_input(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_names(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_steps(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_health(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_totals(struct rp_builder *b, struct rp_err *err);
enum rp_code rp_pass_freeze(struct rp_builder *b, struct rp_err *err);

/* dump.c */
void rp_build_dump(const struct rp_builder *b, struct rp_out *to);
