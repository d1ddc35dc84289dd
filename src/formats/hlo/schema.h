/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_FORMATS_HLO_SCHEMA_H
#define RP_FORMATS_HLO_SCHEMA_H
/* Messages of XLA that hold an HLO module. */
#include "formats/textproto.h"

extern const struct rp_schema *const rp_schema_hlo_module;   /* HloModuleProto */
extern const struct rp_schema *const rp_schema_hlo_proto;    /* it is the field hlo_module */
extern const struct rp_schema *const rp_schema_hlo_snapshot; /* ... of the field hlo */

#endif
