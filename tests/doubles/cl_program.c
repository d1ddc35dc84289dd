/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenCL program for any loader and platform (PoCL in the tests): writes two buffers, adds them
 * N times, fills, copies, maps, reads, and checks the result. Exits with 77 if there is no
 * platform.
 *
 *   cl_program N
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>

#include <stdio.h>
#include <stdlib.h>

#define COUNT 4096

static const char *source = "kernel void add(global float *a, global const float *b, float f) {"
                            "  size_t i = get_global_id(0); a[i] = a[i] + f * b[i]; }";

#define CHECK(call)                                    \
    do {                                               \
        int code_ = (call);                            \
        if (code_) {                                   \
            fprintf(stderr, "%s: %d\n", #call, code_); \
            exit(1);                                   \
        }                                              \
    } while (0)

int main(int argc, char **argv)
{
    long n = argc > 1 ? strtol(argv[1], NULL, 10) : 10;
    static float a[COUNT], b[COUNT];
    float two = 2, zero = 0, *mapped;
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_program program;
    cl_kernel kernel;
    cl_mem x, y;
    cl_event event;
    size_t size = COUNT;
    cl_int code;

    if (clGetPlatformIDs(1, &platform, NULL) ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
        return 77;
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    CHECK(code);
    queue = clCreateCommandQueueWithProperties(context, device, NULL, &code);
    CHECK(code);
    program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
    CHECK(code);
    CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    kernel = clCreateKernel(program, "add", &code);
    CHECK(code);
    for (int i = 0; i < COUNT; i++)
        b[i] = (float)i;
    x = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof a, NULL, &code);
    CHECK(code);
    y = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof b, NULL, &code);
    CHECK(code);
    CHECK(clEnqueueFillBuffer(queue, x, &zero, sizeof zero, 0, sizeof a, 0, NULL, NULL));
    CHECK(clEnqueueWriteBuffer(queue, y, CL_TRUE, 0, sizeof b, b, 0, NULL, NULL));
    CHECK(clSetKernelArg(kernel, 0, sizeof x, &x));
    CHECK(clSetKernelArg(kernel, 1, sizeof y, &y));
    CHECK(clSetKernelArg(kernel, 2, sizeof two, &two));
    for (long i = 0; i < n; i++) {
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL,
                                     i % 2 ? &event : NULL));
        if (i % 2)
            CHECK(clReleaseEvent(event));
    }
    CHECK(clEnqueueCopyBuffer(queue, x, y, 0, 0, sizeof a, 0, NULL, NULL));
    CHECK(clEnqueueReadBuffer(queue, y, CL_TRUE, 0, sizeof a, a, 0, NULL, NULL));
    mapped = clEnqueueMapBuffer(queue, x, CL_TRUE, CL_MAP_READ, 0, sizeof a, 0, NULL, NULL, &code);
    CHECK(code);
    printf("%.0f %.0f\n", a[100], mapped[100]);
    CHECK(clEnqueueUnmapMemObject(queue, x, mapped, 0, NULL, NULL));
    CHECK(clFinish(queue));
    CHECK(clReleaseKernel(kernel));
    CHECK(clReleaseCommandQueue(queue));
    return 0;
}
