/* SPDX-License-Identifier: Apache-2.0 */
/* Uses only the driver that the program has loaded; if there is none, none is loaded. */
#include "capture/cuda/cuda.h"

#include <dlfcn.h>
#include <pthread.h>

static struct rp_cuda_driver driver;
static bool complete;

static void find(void)
{
    static const char *const names[] = {"cuCtxGetCurrent",     "cuThreadExchangeStreamCaptureMode",
                                        "cuStreamIsCapturing", "cuCtxSynchronize",
                                        "cuEventCreate",       "cuEventRecord",
                                        "cuEventQuery",        "cuEventElapsedTime"};
    void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void **to = (void **)(void *)&driver;

    _Static_assert(sizeof driver == sizeof names, "a name for each function");
    complete = handle != NULL;
    for (size_t i = 0; handle && i < sizeof names / sizeof names[0]; i++) {
        to[i] = dlsym(handle, names[i]);
        complete = complete && to[i];
    }
}

const struct rp_cuda_driver *rp_cuda_driver(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find);
    return complete ? &driver : NULL;
}
