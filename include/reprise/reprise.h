/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPRISE_REPRISE_H
#define REPRISE_REPRISE_H
/* The whole public API. */
#include <reprise/context.h>
#include <reprise/dataset.h>
#include <reprise/dump.h>
#include <reprise/error.h>
#include <reprise/mcp.h>
#include <reprise/metrics_calls.h>
#include <reprise/question.h>
#include <reprise/recording.h>
#include <reprise/result.h>
#include <reprise/tables.h>
#include <reprise/timeline.h>
#include <reprise/view.h>

#endif
