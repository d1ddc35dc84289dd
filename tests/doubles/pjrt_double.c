/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A PJRT plugin for tests. Its one program has an output an argument, with the argument's bytes.
 * The variable PJRT_DOUBLE says how it misbehaves (words, several are possible):
 *
 *   exact        wants structs of exactly its own size, as some vendors' plugins do
 *   old, newer   a version and a table of functions that are older, newer
 *   major, short another major version; a table that is too short
 *   print        prints on standard output and standard error wherever it is called
 *   abort-create, abort-compile, abort-run, exit-run     ends the process there
 *   hang-create, hang-compile, hang-run        never comes back from there
 *   fail-create, fail-compile, fail-run, fail-event, custom-call      an error there
 *   few          has one device and is not a CPU
 *   wide         wants more bytes for an output than it has elements
 *   own-buffer   its profiler answers with memory of its own, as XLA's does
 *
 * The structs are written out here once more, field by field, so that a wrong word in abi/pjrt.h
 * does not agree with itself.
 */
#include "pjrt_double_words.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct error {
    int code;
    char text[256];
};
struct buffer {
    int type;
    size_t ndims;
    int64_t dims[8];
    unsigned char *data;
    size_t n;
    bool donated;
};
struct event {
    bool bad;
};
struct executable {
    size_t noutputs, ndevices;
    int launches;
};

static void *fail(int code, const char *text)
{
    struct error *e = calloc(1, sizeof *e);

    e->code = code;
    snprintf(e->text, sizeof e->text, "%s", text);
    return e;
}

/* What every function does first: prints, and looks at the size of its arguments. */
static void *enter(const char *name, size_t got, size_t want)
{
    char text[256];

    if (is("print")) {
        printf("double: %s on standard output\n", name);
        fprintf(stderr, "double: %s on standard error\n", name);
    }
    if (is("exact") ? got == want : got >= want)
        return NULL;
    snprintf(text, sizeof text,
             "Unexpected %s size: expected %zu, got %zu. Check installed software versions.", name,
             want, got);
    return fail(3, text);
}

#define ENTER(type)                                                      \
    do {                                                                 \
        void *wrong_ = enter("PJRT_" #type "_Args", a->size, sizeof *a); \
        if (wrong_)                                                      \
            return wrong_;                                               \
    } while (0)

/* ---- errors and events ---- */

struct of_error {
    size_t size;
    void *extensions;
    struct error *error;
    const char *text;
    size_t n;
};
static void *error_destroy(struct of_error *a)
{
    free(a->error);
    return NULL;
}
static void *error_message(struct of_error *a)
{
    a->text = a->error->text;
    a->n = strlen(a->error->text);
    return NULL;
}
struct of_code {
    size_t size;
    void *extensions;
    struct error *error;
    int code;
};
static void *error_code(struct of_code *a)
{
    a->code = a->error->code;
    return NULL;
}
struct only {
    size_t size;
    void *extensions;
    void *object;
};
struct nothing {
    size_t size;
    void *extensions;
};
static void *initialize(struct nothing *a)
{
    ENTER(Plugin_Initialize);
    return NULL;
}
static void *event_destroy(struct only *a)
{
    ENTER(Event_Destroy);
    free(a->object);
    return NULL;
}
struct on_ready {
    size_t size;
    void *extensions, *event;
    void (*callback)(void *, void *);
    void *user;
};
static void *event_await(struct only *a)
{
    ENTER(Event_Await);
    return ((struct event *)a->object)->bad ? fail(13, "the device was lost") : NULL;
}
static void *event_on_ready(struct on_ready *a)
{
    ENTER(Event_OnReady);
    a->callback(NULL, a->user);
    return NULL;
}
static struct event *new_event(bool bad)
{
    struct event *e = calloc(1, sizeof *e);

    e->bad = bad;
    return e;
}

/* ---- the client ---- */

struct named {
    size_t size;
    void *extensions;
    const char *name;
    size_t nname;
    int type;
    int64_t value;
    size_t nvalue;
};
struct create {
    size_t size;
    void *extensions;
    const struct named *options;
    size_t noptions;
    void *get, *get_user, *put, *put_user;
    void *client;
    void *try_get, *try_get_user;
};
static char client_object, device_objects[16];
static size_t ndevices = 4;

static void *client_create(struct create *a)
{
    ENTER(Client_Create);
    if (is("abort-create"))
        crash();
    hang(is("hang-create"));
    if (is("fail-create"))
        return fail(5, "no device is here");
    ndevices = is("few") ? 1 : 4;
    for (size_t i = 0; i < a->noptions; i++) {
        const struct named *o = &a->options[i];

        if (o->size != sizeof *o)
            return fail(3, "an option of a wrong size");
        if (o->nname == 16 && !memcmp(o->name, "cpu_device_count", 16) && o->type == 1)
            ndevices = (size_t)o->value;
        else if (o->nname == 4 && !memcmp(o->name, "fail", 4))
            return fail(3, "an option said fail");
    }
    a->client = &client_object;
    return NULL;
}
static void *client_destroy(struct only *a)
{
    ENTER(Client_Destroy);
    return NULL;
}
struct text_of {
    size_t size;
    void *extensions;
    void *of;
    const char *text;
    size_t n;
};
static void *platform_name(struct text_of *a)
{
    ENTER(Client_PlatformName);
    a->text = is("few") ? "double" : "cpu";
    a->n = strlen(a->text);
    return NULL;
}
static void *platform_version(struct text_of *a)
{
    ENTER(Client_PlatformVersion);
    a->text = "double\n1";
    a->n = 8;
    return NULL;
}
static void *device_kind(struct text_of *a)
{
    ENTER(DeviceDescription_Kind);
    a->text = "double device";
    a->n = 13;
    return NULL;
}
struct list_of {
    size_t size;
    void *extensions;
    void *of;
    void *const *list;
    size_t n;
};
static void *devices_list[16];
static void *client_devices(struct list_of *a)
{
    ENTER(Client_AddressableDevices);
    for (size_t i = 0; i < 16; i++)
        devices_list[i] = &device_objects[i];
    a->list = devices_list;
    a->n = ndevices;
    return NULL;
}
static void *loaded_devices(struct list_of *a)
{
    ENTER(LoadedExecutable_AddressableDevices);
    a->list = devices_list;
    a->n = ((struct executable *)a->of)->ndevices;
    return NULL;
}
struct one_of {
    size_t size;
    void *extensions;
    void *of;
    void *result;
};
static void *description(struct one_of *a)
{
    ENTER(Device_GetDescription);
    a->result = a->of;
    return NULL;
}

/* ---- programs ---- */

struct program {
    size_t size;
    void *extensions;
    const char *code;
    size_t ncode;
    const char *format;
    size_t nformat;
};
struct compile {
    size_t size;
    void *extensions;
    void *client;
    const struct program *program;
    const unsigned char *options;
    size_t noptions;
    void *executable;
};
static void *client_compile(struct compile *a)
{
    struct executable *x;
    void *wrong;

    ENTER(Client_Compile);
    wrong = enter("PJRT_Program", a->program->size, sizeof *a->program);
    if (wrong)
        return wrong;
    if (is("abort-compile") || !a->noptions)
        crash();
    hang(is("hang-compile"));
    if (is("fail-compile"))
        return fail(13, "INTERNAL: the double does not compile");
    if (is("custom-call"))
        return fail(5, "No registered implementation for custom call to tripler for Host");
    if (a->program->nformat != 3 && a->program->nformat != 4)
        return fail(3, "no such format");
    x = calloc(1, sizeof *x);
    x->ndevices = 1;
    /* executable_build_options {4: replicas, 5: partitions}, as rp_pjrt_put_options begins */
    if (a->noptions >= 6 && a->options[0] == 0x1a && a->options[4] == 0x28)
        x->ndevices = (size_t)a->options[3] * a->options[5];
    x->noutputs = strtoul(a->program->nformat == 3 ? "1" : "2", NULL, 10);
    a->executable = x;
    return NULL;
}
static void *loaded_destroy(struct only *a)
{
    ENTER(LoadedExecutable_Destroy);
    free(a->object);
    return NULL;
}
static void *loaded_executable(struct one_of *a)
{
    ENTER(LoadedExecutable_GetExecutable);
    a->result = a->of;
    return NULL;
}
static void *executable_destroy(struct only *a)
{
    ENTER(Executable_Destroy);
    return NULL;
}
struct count_of {
    size_t size;
    void *extensions;
    void *of;
    size_t n;
};
static void *num_outputs(struct count_of *a)
{
    ENTER(Executable_NumOutputs);
    a->n = ((struct executable *)a->of)->noutputs;
    return NULL;
}

static void *executable_name(struct text_of *a)
{
    ENTER(Executable_Name);
    a->text = "jit_double";
    a->n = 10;
    return NULL;
}

/* ---- buffers ---- */

static size_t unit_of(int type)
{
    static const unsigned char units[] = {0,  1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 2, 8,
                                          16, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1};

    return type >= 0 && (size_t)type < sizeof units ? units[type] : 0;
}
static struct buffer *new_buffer(int type, const int64_t *dims, size_t ndims, const void *data)
{
    struct buffer *b = calloc(1, sizeof *b);

    b->type = type;
    b->ndims = ndims;
    b->n = unit_of(type);
    for (size_t i = 0; i < ndims; i++) {
        b->dims[i] = dims[i];
        b->n *= (size_t)dims[i];
    }
    b->data = malloc(b->n + 1);
    if (data)
        memcpy(b->data, data, b->n);
    return b;
}
struct from_host {
    size_t size;
    void *extensions;
    void *client;
    const void *data;
    int type;
    const int64_t *dims;
    size_t ndims;
    const int64_t *strides;
    size_t nstrides;
    int semantics;
    void *device, *memory, *layout;
    void *done;
    void *buffer;
};
static void *from_host(struct from_host *a)
{
    ENTER(Client_BufferFromHostBuffer);
    if (!unit_of(a->type) || a->ndims > 8)
        return fail(12, "no buffers of that type");
    a->buffer = new_buffer(a->type, a->dims, a->ndims, a->data);
    a->done = new_event(false);
    return NULL;
}
static void *buffer_destroy(struct only *a)
{
    struct buffer *b = a->object;

    ENTER(Buffer_Destroy);
    free(b->data);
    free(b);
    return NULL;
}
struct type_of {
    size_t size;
    void *extensions;
    const struct buffer *of;
    int type;
};
static void *buffer_type(struct type_of *a)
{
    ENTER(Buffer_ElementType);
    a->type = a->of->type;
    return NULL;
}
struct dims_of {
    size_t size;
    void *extensions;
    const struct buffer *of;
    const int64_t *dims;
    size_t n;
};
static void *buffer_dims(struct dims_of *a)
{
    ENTER(Buffer_Dimensions);
    a->dims = a->of->dims;
    a->n = a->of->ndims;
    return NULL;
}
static void *buffer_ready(struct one_of *a)
{
    ENTER(Buffer_ReadyEvent);
    a->result = new_event(false);
    return NULL;
}
struct layout {
    size_t size;
    void *extensions;
    struct {
        size_t size;
        void *extensions;
        const int64_t *minor_to_major;
        size_t n;
        const int64_t *tile_dims;
        const size_t *tile_sizes;
        size_t ntiles;
    } tiled;
    int type;
};
struct to_host {
    size_t size;
    void *extensions;
    const struct buffer *of;
    const struct layout *layout;
    void *data;
    size_t n;
    void *event;
};
static void *to_host(struct to_host *a)
{
    const struct layout *l = a->layout;

    ENTER(Buffer_ToHostBuffer);
    if (!l || l->type != 0 || l->tiled.n != a->of->ndims)
        return fail(3, "outputs are to be asked for in row-major order");
    for (size_t i = 0; i < l->tiled.n; i++)
        if (l->tiled.minor_to_major[i] != (int64_t)(l->tiled.n - 1 - i))
            return fail(3, "outputs are to be asked for in row-major order");
    if (!a->data) {
        a->n = a->of->n + (is("wide") ? 8 : 0);
        return NULL;
    }
    if (a->n < a->of->n)
        return fail(3, "too little room");
    memcpy(a->data, a->of->data, a->of->n);
    a->event = new_event(false);
    return NULL;
}
/* ---- running ---- */

struct run_options {
    size_t size;
    void *extensions;
    void *send, *receive;
    size_t nsend, nreceive;
    int launch;
    const int64_t *kept;
    size_t nkept;
    void *context;
    const char *call_location;
    size_t ntasks;
    int *tasks;
    int64_t *incarnations;
};
struct execute {
    size_t size;
    void *extensions;
    struct executable *executable;
    const struct run_options *options;
    struct buffer *const *const *arguments;
    size_t ndevices, narguments;
    struct buffer **const *outputs;
    void **events;
    void *device;
};
static bool is_kept(const struct run_options *o, size_t i)
{
    for (size_t k = 0; k < o->nkept; k++)
        if (o->kept[k] == (int64_t)i)
            return true;
    return false;
}
static void *execute(struct execute *a)
{
    void *wrong;

    ENTER(LoadedExecutable_Execute);
    wrong = enter("PJRT_ExecuteOptions", a->options->size, sizeof *a->options);
    if (wrong)
        return wrong;
    if (is("abort-run") && ++a->executable->launches == 2)
        crash();
    hang(is("hang-run"));
    if (is("exit-run"))
        exit(0);
    if (is("fail-run"))
        return fail(8, "out of memory on the device");
    if (a->ndevices != a->executable->ndevices || a->narguments < a->executable->noutputs)
        return fail(3, "wrong lists");
    for (size_t d = 0; d < a->ndevices; d++) {
        for (size_t i = 0; i < a->narguments; i++) {
            if (a->arguments[d][i]->donated)
                return fail(3, "an argument was donated before");
            if (!is_kept(a->options, i))
                a->arguments[d][i]->donated = true;
        }
        for (size_t i = 0; i < a->executable->noutputs; i++) {
            const struct buffer *b = a->arguments[d][i];

            a->outputs[d][i] = new_buffer(b->type, b->dims, b->ndims, b->data);
        }
        a->events[d] = new_event(is("fail-event"));
    }
    return NULL;
}

#include "pjrt_double_profiler.h"

/* ---- the table ---- */

static struct {
    size_t size;
    void *extensions;
    size_t version_size;
    void *version_extensions;
    int major, minor;
    const void *functions[128];
} api;

__attribute__((visibility("default"))) const void *GetPjrtApi(void)
{
    static const struct {
        int at;
        const void *function;
    } functions[] = {{0, error_destroy},       {1, error_message},
                     {2, error_code},          {3, initialize},
                     {5, event_destroy},       {8, event_await},
                     {9, event_on_ready},      {41, executable_name},
                     {10, client_create},      {11, client_destroy},
                     {12, platform_name},      {14, platform_version},
                     {16, client_devices},     {20, client_compile},
                     {22, from_host},          {26, device_kind},
                     {29, description},        {34, memory_stats},
                     {40, executable_destroy}, {44, num_outputs},
                     {50, loaded_destroy},     {51, loaded_executable},
                     {52, loaded_devices},     {55, execute},
                     {58, buffer_destroy},     {59, buffer_type},
                     {60, buffer_dims},        {70, to_host},
                     {72, buffer_ready}};

    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        api.functions[functions[i].at] = functions[i].function;
    profiler_table[0] = (const void *)sizeof profiler_table;
    profiler_table[2] = error_destroy;
    profiler_table[3] = error_message;
    profiler_table[5] = profiler_create;
    profiler_table[6] = profiler_destroy;
    profiler_table[7] = profiler_start;
    profiler_table[8] = profiler_stop;
    profiler_table[9] = profiler_collect;
    api.size = 40 + 8 * (is("old") ? 98 : is("short") ? 40 : is("newer") ? 128 : 118);
    api.extensions = is("old") ? NULL : (void *)&first;
    api.version_size = 24;
    api.major = is("major");
    api.minor = is("old") ? 54 : is("newer") ? 250 : 81;
    enter("GetPjrtApi", 1, is("exact") ? 1 : 0);
    return &api;
}
