/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Output formats that hold what is derived from a trace, not the trace: tables, and the graph of
   what waits for what. They write one rank. Inside src/convert only. */
#include "formats/write/writers.h"

extern const struct rp_writer rp_writer_arrow, rp_writer_chakra;
