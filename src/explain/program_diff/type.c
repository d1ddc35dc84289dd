/* SPDX-License-Identifier: Apache-2.0 */
/* The record that `diff` of programs prints. */
#include "explain/program_diff/diff.h"

static const struct rp_field change_fields[] = {
    RP_FIELD(
        struct rp_diff_change, kind, STR, NONE, "change",
        "added, removed, opcode, shape, constant, attribute, operands, sharding; follows: only "
        "because of the others",
        0),
    RP_FIELD(struct rp_diff_change, count, I64, COUNT, "times", "operations changed in this way",
             0),
    RP_FIELD(struct rp_diff_change, what, STR, NONE, NULL, "the operation, before and after",
             RP_SHORTEN),
    RP_FIELD(struct rp_diff_change, where, STR, NONE, NULL,
             "scope that the user named, or which of several alike", RP_SHORTEN),
    RP_FIELD(struct rp_diff_change, place, STR, NONE, NULL, "of the user's program", RP_SHORTEN),
    RP_FIELD(struct rp_diff_change, example, STR, NONE, NULL, "the first of them", RP_SHORTEN),
    RP_FIELD(struct rp_diff_change, text, STR, NONE, "what, where", "all of it", RP_SCREEN),
    RP_FIELD_END};
static const struct rp_type change_type = {"change", sizeof(struct rp_diff_change), change_fields,
                                           NULL};

static const struct rp_field side_fields[] = {
    RP_FIELD(struct rp_diff_program, name, STR, NONE, "name", "of the program", RP_SHORTEN),
    RP_FIELD(struct rp_diff_program, hash, STR, NONE, "hash", "structural", 0),
    RP_FIELD(struct rp_diff_program, instructions, I64, COUNT, "operations", "in all computations",
             0),
    RP_FIELD_END};
static const struct rp_type side_type = {"program", sizeof(struct rp_diff_program), side_fields,
                                         NULL};

static const struct rp_field step_fields[] = {
    RP_FIELD(struct rp_diff_step, label, STR, NONE, "graph", "number and name", RP_SCREEN),
    RP_FIELD(struct rp_diff_step, graph, I64, NONE, NULL, "which of the dump, from 1", 0),
    RP_FIELD(struct rp_diff_step, name, STR, NONE, NULL, "of the graph or its file", RP_SHORTEN),
    RP_FIELD(struct rp_diff_step, runs, I64, COUNT, "runs", "graphs of the dump that are the same",
             0),
    RP_FIELD(struct rp_diff_step, cause, STR, NONE, "cause",
             "first, same, shape, constant, sharding or structure", 0),
    RP_FIELD(struct rp_diff_step, against, I64, NONE, NULL, "the graph that it is compared with",
             RP_NULLABLE),
    RP_FIELD(struct rp_diff_step, what, STR, NONE, NULL, "the change that counts most", RP_SHORTEN),
    RP_FIELD(struct rp_diff_step, where, STR, NONE, NULL, "scope or repeat", RP_SHORTEN),
    RP_FIELD(struct rp_diff_step, place, STR, NONE, NULL, "of the user's program", RP_SHORTEN),
    RP_FIELD(struct rp_diff_step, changes, I64, COUNT, NULL, "how many there are", RP_WIDE),
    RP_FIELD(struct rp_diff_step, text, STR, NONE, "why", "all of it", RP_SCREEN),
    RP_FIELD_END};
static const struct rp_type step_type = {"step", sizeof(struct rp_diff_step), step_fields, NULL};

static const struct rp_field module_fields[] = {
    RP_FIELD(struct rp_diff_module, name, STR, NONE, "module", "name and stage", 0),
    RP_FIELD(struct rp_diff_module, state, STR, NONE, "state", "same, different, added or removed",
             0),
    RP_FIELD(struct rp_diff_module, cause, STR, NONE, NULL,
             "shape, constant, sharding or structure", 0),
    RP_FIELD(struct rp_diff_module, changes, I64, COUNT, NULL, "how many there are", 0),
    RP_FIELD(struct rp_diff_module, what, STR, NONE, NULL, "the change that counts most",
             RP_SHORTEN),
    RP_FIELD(struct rp_diff_module, where, STR, NONE, NULL, "scope or repeat", RP_SHORTEN),
    RP_FIELD(struct rp_diff_module, place, STR, NONE, NULL, "of the user's program", RP_SHORTEN),
    RP_FIELD(struct rp_diff_module, left, STR, NONE, NULL, "file of the first", 0),
    RP_FIELD(struct rp_diff_module, right, STR, NONE, NULL, "file of the second", 0),
    RP_FIELD(struct rp_diff_module, text, STR, NONE, "why", "all of it", RP_SCREEN),
    RP_FIELD_END};
static const struct rp_type module_type = {"module", sizeof(struct rp_diff_module), module_fields,
                                           NULL};

static const struct rp_field diff_fields[] = {
    RP_FIELD(struct rp_diff, inputs, STR, NONE, NULL, "programs", 0),
    RP_FIELD(struct rp_diff, same, BOOL, NONE, "same", "whether they are the same program", 0),
    RP_FIELD(struct rp_diff, cause, STR, NONE, "cause",
             "what kind of change it is: shape, constant, sharding or structure", 0),
    RP_FIELD_RECORD(struct rp_diff, left, &side_type, "left", "the first program", 0),
    RP_FIELD_RECORD(struct rp_diff, right, &side_type, "right", "the second program", 0),
    RP_FIELD(struct rp_diff, matched, I64, COUNT, "matched", "operations in both", 0),
    RP_FIELD(struct rp_diff, changed, I64, COUNT, "changed", "of these, with a difference", 0),
    RP_FIELD(struct rp_diff, follows, I64, COUNT, "follow",
             "of the changed, those that only follow from others", 0),
    RP_FIELD(struct rp_diff, added, I64, COUNT, "added", "only in the second", 0),
    RP_FIELD(struct rp_diff, removed, I64, COUNT, "removed", "only in the first", 0),
    RP_FIELD_LIST(struct rp_diff, changes, &change_type, "changes",
                  "the same change in many places is one row", 0),
    RP_FIELD_END};
const struct rp_type rp_diff_type = {"diff", sizeof(struct rp_diff), diff_fields, "changes"};

static const struct rp_field steps_fields[] = {
    RP_FIELD(struct rp_diff, inputs, STR, NONE, NULL, "programs", 0),
    RP_FIELD(struct rp_diff, same, BOOL, NONE, "same", "whether nothing was compiled again", 0),
    RP_FIELD_LIST(struct rp_diff, steps, &step_type, "steps",
                  "graphs that had to be compiled, and why", 0),
    RP_FIELD_END};
const struct rp_type rp_diff_steps_type = {"diff", sizeof(struct rp_diff), steps_fields, "steps"};

static const struct rp_field modules_fields[] = {
    RP_FIELD(struct rp_diff, inputs, STR, NONE, NULL, "programs", 0),
    RP_FIELD(struct rp_diff, same, BOOL, NONE, "same", "whether all modules are", 0),
    RP_FIELD(struct rp_diff, matched, I64, COUNT, "matched", "modules in both", 0),
    RP_FIELD(struct rp_diff, changed, I64, COUNT, "changed", "of these, with a difference", 0),
    RP_FIELD(struct rp_diff, added, I64, COUNT, "added", "only in the second", 0),
    RP_FIELD(struct rp_diff, removed, I64, COUNT, "removed", "only in the first", 0),
    RP_FIELD_LIST(struct rp_diff, modules, &module_type, "modules", "one row a pair", 0),
    RP_FIELD_END};
const struct rp_type rp_diff_modules_type = {"diff", sizeof(struct rp_diff), modules_fields,
                                             "modules"};
