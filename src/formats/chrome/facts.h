/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the categories and the metadata of PyTorch, JAX and others mean, both in JSON and in other
 * containers of their events (formats/perfetto/).
 */
#include "trace/build/build.h"

/* Evidence of who wrote the file; the strongest decides at the end. */
enum {
    RP_CHROME_KINETO = 1,
    RP_CHROME_XPROF = 2,
    RP_CHROME_JAX = 4,
    RP_CHROME_TF_TIMELINE = 8,
    RP_CHROME_HOROVOD = 16,
    RP_CHROME_VIZTRACER = 32,
    RP_CHROME_RAY = 64,
    RP_CHROME_ROCPROF = 128 /* version 1 */
};

struct rp_chrome_kind {
    uint8_t kind, flags; /* enum rp_kind and RP_ORIGIN_* of a complete event */
    uint8_t signs;
};

struct rp_chrome_kind rp_chrome_category_kind(const char *text, size_t len);
/* The kind of an origin: that of the category, or else one chosen by the phase. */
uint8_t rp_chrome_phase_kind(char phase, uint8_t kind);

/* Says what the weights of samples are, for which neither format has a place:
   {"unit":"ns","name":"cpu"}. The unit is one of rp_word_weight_unit, the name may be missing. */
#define RP_CHROME_WEIGHTS "repriseSamples"

struct rp_chrome_facts {
    struct rp_builder *builder;
    unsigned signs;   /* RP_CHROME_* */
    rp_str version;   /* version of the framework, if a key has it */
    bool has_weights; /* RP_CHROME_WEIGHTS says what the weights of samples are */
};

/* Reads one key of the metadata and its JSON value; sets what it says in the builder's trace. */
enum rp_code rp_chrome_read_fact(struct rp_chrome_facts *f, const char *key, size_t len,
                                 const char *json, size_t n, struct rp_err *err);
/* Sets the framework when everything has been read. */
enum rp_code rp_chrome_end_facts(struct rp_chrome_facts *f, struct rp_err *err);
