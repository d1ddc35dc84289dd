/* SPDX-License-Identifier: Apache-2.0 */
/* The tables behind schema.h, one expansion of each description. */
#include "formats/schema.h"

#include <stddef.h>

#define RP_SCHEMA_DEF "abi/proto/hlo.def"
#include "formats/schema_tables.def"

#define RP_SCHEMA_DEF "abi/proto/tensorflow.def"
#include "formats/schema_tables.def"
