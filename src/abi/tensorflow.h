/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The part of TensorFlow's C API that runs a graph: functions that libtensorflow_cc.so.2 exports
 * (2.x, a stable API), handles, and two plain structs.
 */
#include "abi/proto/tensorflow.h"

#include <stddef.h>
#include <stdint.h>

/* Bytes with their deallocator, which may be NULL. */
struct rp_tf_buffer {
    const void *data;
    size_t n;
    void (*drop)(void *data, size_t n);
};

/* An output of an operation of a graph. */
struct rp_tf_port {
    void *operation;
    int index;
};

/* X(member, symbol, result, arguments): functions that are looked up; all are required. */
#define RP_TF_FUNCTIONS(X)                                                                        \
    X(version, "TF_Version", const char *, (void))                                                \
    X(status_new, "TF_NewStatus", void *, (void))                                                 \
    X(status_free, "TF_DeleteStatus", void, (void *status))                                       \
    X(status_code, "TF_GetCode", int, (const void *status))                                       \
    X(status_text, "TF_Message", const char *, (const void *status))                              \
    X(buffer_new, "TF_NewBuffer", struct rp_tf_buffer *, (void))                                  \
    X(buffer_free, "TF_DeleteBuffer", void, (struct rp_tf_buffer *))                              \
    X(graph_new, "TF_NewGraph", void *, (void))                                                   \
    X(graph_free, "TF_DeleteGraph", void, (void *graph))                                          \
    X(import_new, "TF_NewImportGraphDefOptions", void *, (void))                                  \
    X(import_free, "TF_DeleteImportGraphDefOptions", void, (void *options))                       \
    X(graph_import, "TF_GraphImportGraphDef", void,                                               \
      (void *graph, const struct rp_tf_buffer *, const void *options, void *status))              \
    X(graph_find, "TF_GraphOperationByName", void *, (void *graph, const char *name))             \
    X(operation_outputs, "TF_OperationNumOutputs", int, (void *operation))                        \
    X(operation_type, "TF_OperationOutputType", int, (struct rp_tf_port))                         \
    X(options_new, "TF_NewSessionOptions", void *, (void))                                        \
    X(options_free, "TF_DeleteSessionOptions", void, (void *options))                             \
    X(session_new, "TF_NewSession", void *, (void *graph, const void *options, void *status))     \
    X(session_load, "TF_LoadSessionFromSavedModel", void *,                                       \
      (const void *options, const struct rp_tf_buffer *run_options, const char *folder,           \
       const char *const *tags, int ntags, void *graph, struct rp_tf_buffer *meta, void *status)) \
    X(session_close, "TF_CloseSession", void, (void *session, void *status))                      \
    X(session_free, "TF_DeleteSession", void, (void *session, void *status))                      \
    X(session_run, "TF_SessionRun", void,                                                         \
      (void *session, const struct rp_tf_buffer *run_options, const struct rp_tf_port *inputs,    \
       void *const *input_values, int ninputs, const struct rp_tf_port *outputs,                  \
       void **output_values, int noutputs, const void *const *targets, int ntargets,              \
       struct rp_tf_buffer *run_metadata, void *status))                                          \
    X(tensor_new, "TF_AllocateTensor", void *,                                                    \
      (int type, const int64_t *dims, int ndims, size_t bytes))                                   \
    X(tensor_free, "TF_DeleteTensor", void, (void *tensor))                                       \
    X(tensor_type, "TF_TensorType", int, (const void *tensor))                                    \
    X(tensor_ndims, "TF_NumDims", int, (const void *tensor))                                      \
    X(tensor_dim, "TF_Dim", int64_t, (const void *tensor, int i))                                 \
    X(tensor_bytes, "TF_TensorByteSize", size_t, (const void *tensor))                            \
    X(tensor_data, "TF_TensorData", void *, (const void *tensor))

/* Element types: X(element, number). Quantized types are treated as integers. */
#define RP_TF_TYPES(X)                                 \
    X(F32, RP_TF_TYPE_DT_FLOAT)                        \
    X(F64, RP_TF_TYPE_DT_DOUBLE)                       \
    X(S32, RP_TF_TYPE_DT_INT32)                        \
    X(U8, RP_TF_TYPE_DT_UINT8)                         \
    X(S16, RP_TF_TYPE_DT_INT16)                        \
    X(S8, RP_TF_TYPE_DT_INT8)                          \
    X(C64, RP_TF_TYPE_DT_COMPLEX64)                    \
    X(S64, RP_TF_TYPE_DT_INT64)                        \
    X(PRED, RP_TF_TYPE_DT_BOOL)                        \
    X(BF16, RP_TF_TYPE_DT_BFLOAT16)                    \
    X(U16, RP_TF_TYPE_DT_UINT16)                       \
    X(C128, RP_TF_TYPE_DT_COMPLEX128)                  \
    X(F16, RP_TF_TYPE_DT_HALF)                         \
    X(U32, RP_TF_TYPE_DT_UINT32)                       \
    X(U64, RP_TF_TYPE_DT_UINT64)                       \
    X(F8E5M2, RP_TF_TYPE_DT_FLOAT8_E5M2)               \
    X(F8E4M3FN, RP_TF_TYPE_DT_FLOAT8_E4M3FN)           \
    X(F8E4M3FNUZ, RP_TF_TYPE_DT_FLOAT8_E4M3FNUZ)       \
    X(F8E4M3B11FNUZ, RP_TF_TYPE_DT_FLOAT8_E4M3B11FNUZ) \
    X(F8E5M2FNUZ, RP_TF_TYPE_DT_FLOAT8_E5M2FNUZ)       \
    X(S4, RP_TF_TYPE_DT_INT4)                          \
    X(U4, RP_TF_TYPE_DT_UINT4)                         \
    X(S2, RP_TF_TYPE_DT_INT2)                          \
    X(U2, RP_TF_TYPE_DT_UINT2)
