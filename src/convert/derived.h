/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Output formats with data derived from a trace instead of the trace: tables, and the graph of
   dependencies. They write one rank. Only for src/convert. */
#include "formats/write/writers.h"

extern const struct rp_writer rp_writer_arrow, rp_writer_chakra;
