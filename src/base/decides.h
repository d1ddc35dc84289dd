/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Gives numbers an owner. A number that can change the output of a command is declared once, in the
 * file that uses it, by its name and value and by one of these on the next line:
 *
 *     #define THIN_SHARE 0.05
 *     RP_DECISION(THIN_SHARE, "of the span",
 *                 "where thin kernels take less, the gain is below the noise (bench/judge.py)",
 *                 "explain/thin_kernels_have_an_edge");
 *
 *   RP_DECISION  somebody chose it. Why: a measurement with its place in bench/, or a consequence
 *                of the definition. The test fails when the number moves by 20 % up or down.
 *   RP_FACT      a property of a format, a device or other software. Why: where it is written.
 *   RP_LIMIT     bounds time, memory or output, and changes no verdict. Why: what happens
 *                beyond it (the input is refused, the answer says that it was cut, …).
 *
 * Before another decision is added: can the trace say it (its own noise, a median, its resolution),
 * or the model (a cost below its own uncertainty is no cost)? tools/constants writes
 * docs/constants.md from these lines, moves decisions to see their tests fail, and rejects numbers
 * in rules that nobody owns.
 */

#define RP_OWNED_(name, unit, why)                                            \
    _Static_assert(sizeof(name) && sizeof("" unit) > 1 && sizeof("" why) > 1, \
                   "a number needs a unit and a reason")
#define RP_DECISION(name, unit, why, test) \
    RP_OWNED_(name, unit, why);            \
    _Static_assert(sizeof("" test) > 1, "a decision needs a test")
#define RP_FACT(name, unit, why)  RP_OWNED_(name, unit, why)
#define RP_LIMIT(name, unit, why) RP_OWNED_(name, unit, why)
