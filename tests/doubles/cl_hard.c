/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An OpenCL program that is difficult to record: an out-of-order queue, commands that wait for a
 * user event, events released at once, callbacks, a name of 180 letters, thousands of kernels
 * created and released, shared virtual memory, images, deprecated calls, several threads, and, with
 * an argument, a command that never runs. Exits with 77 if there is no platform. The expected
 * counts are in check_opencl.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1024, KERNELS = 5000, THREADS = 4, EACH = 50 };

#define CHECK(call)                                    \
    do {                                               \
        int code_ = (call);                            \
        if (code_) {                                   \
            fprintf(stderr, "%s: %d\n", #call, code_); \
            exit(1);                                   \
        }                                              \
    } while (0)

static cl_context context;
static cl_device_id device;
static cl_program program;
static cl_mem buffer;
static char long_name[181];
static _Atomic int called;

static void CL_CALLBACK on_event(cl_event event, cl_int status, void *user)
{
    (void)event;
    (void)user;
    if (status == CL_COMPLETE)
        called++;
}

static cl_kernel make_kernel(const char *name)
{
    cl_int code;
    cl_kernel kernel = clCreateKernel(program, name, &code);

    CHECK(code);
    CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
    return kernel;
}

static void build(void)
{
    char source[1024];
    const char *text = source;
    cl_int code;

    memset(long_name, 'k', 180);
    snprintf(source, sizeof source,
             "kernel void twice(global float *a) { a[get_global_id(0)] *= 2; }"
             "kernel void %s(global float *a) { a[get_global_id(0)] += 1; }",
             long_name);
    program = clCreateProgramWithSource(context, 1, &text, NULL, &code);
    CHECK(code);
    CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL));
}

/* A user event delays everything; all other events are released at once. */
static void gate(cl_command_queue queue)
{
    cl_kernel kernel = make_kernel(long_name);
    size_t size = COUNT;
    cl_event open, one, all[10];
    cl_int code;

    open = clCreateUserEvent(context, &code);
    CHECK(code);
    for (int i = 0; i < 10; i++) {
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 1, &open, &all[i]));
        CHECK(clSetEventCallback(all[i], CL_COMPLETE, on_event, NULL));
    }
    CHECK(clEnqueueMarkerWithWaitList(queue, 10, all, &one));
    for (int i = 0; i < 10; i++)
        CHECK(clReleaseEvent(all[i]));
    CHECK(clReleaseEvent(one));
    CHECK(clReleaseKernel(kernel)); /* the queue holds it */
    CHECK(clFlush(queue));
    usleep(20000);
    CHECK(clSetUserEventStatus(open, CL_COMPLETE));
    CHECK(clReleaseEvent(open));
    CHECK(clFinish(queue));
}

static void *enqueue(void *unused)
{
    cl_int code;
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, &code);
    cl_kernel kernel = make_kernel("twice");
    size_t size = 16;

    CHECK(code);
    for (int i = 0; i < EACH; i++)
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
    CHECK(clFinish(queue));
    CHECK(clReleaseKernel(kernel));
    CHECK(clReleaseCommandQueue(queue));
    return unused;
}

static void images(cl_command_queue queue)
{
    cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 8, .image_height = 8};
    size_t zero[3] = {0, 0, 0}, all[3] = {8, 8, 1}, row;
    cl_uint color[4] = {1, 2, 3, 4};
    cl_mem image;
    cl_int code;
    void *at;

    image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &code);
    CHECK(code);
    CHECK(clEnqueueFillImage(queue, image, color, zero, all, 0, NULL, NULL));
    CHECK(clFinish(queue));
    at = clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_READ, zero, all, &row, NULL, 0, NULL, NULL,
                           &code);
    CHECK(code);
    printf("pixel %d\n", ((unsigned char *)at)[2]);
    CHECK(clEnqueueUnmapMemObject(queue, image, at, 0, NULL, NULL));
    CHECK(clFinish(queue));
    CHECK(clReleaseMemObject(image));
}

static void shared(cl_command_queue queue)
{
    float *memory = clSVMAlloc(context, CL_MEM_READ_WRITE, 4096, 0), one = 1;
    cl_kernel kernel = make_kernel("twice");
    size_t size = COUNT;

    if (!memory)
        exit(1);
    CHECK(clEnqueueSVMMemFill(queue, memory, &one, sizeof one, 4096, 0, NULL, NULL));
    CHECK(clFinish(queue));
    CHECK(clSetKernelArgSVMPointer(kernel, 0, memory));
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL));
    CHECK(clFinish(queue));
    CHECK(clEnqueueSVMMap(queue, CL_TRUE, CL_MAP_READ, memory, 4096, 0, NULL, NULL));
    printf("shared %g\n", (double)memory[7]);
    CHECK(clEnqueueSVMUnmap(queue, memory, 0, NULL, NULL));
    CHECK(clFinish(queue));
    CHECK(clReleaseKernel(kernel));
    clSVMFree(context, memory);
}

static void never(cl_command_queue queue)
{
    cl_kernel kernel = make_kernel("twice");
    size_t size = COUNT;
    cl_event open;
    cl_int code;

    open = clCreateUserEvent(context, &code);
    CHECK(code);
    CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 1, &open, NULL));
    CHECK(clFlush(queue));
}

int main(int argc, char **argv)
{
    cl_queue_properties unordered[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
                                       0};
    cl_platform_id platform;
    cl_command_queue queue;
    pthread_t threads[THREADS];
    float value = 1;
    cl_int code;

    if (clGetPlatformIDs(1, &platform, NULL) ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
        return 77;
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
    CHECK(code);
    queue = clCreateCommandQueueWithProperties(context, device, unordered, &code);
    CHECK(code);
    build();
    buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, COUNT * sizeof value, NULL, &code);
    CHECK(code);
    gate(queue);
    for (int i = 0; i < KERNELS; i++)
        CHECK(clReleaseKernel(make_kernel("twice")));
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, enqueue, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    images(queue);
    shared(queue);
    CHECK(clEnqueueBarrier(queue));
    CHECK(clFinish(queue));
    printf("callbacks %d\n", called);
    fflush(stdout);
    if (argc > 1 && argv[1][0])
        never(queue);
    return 3;
}
