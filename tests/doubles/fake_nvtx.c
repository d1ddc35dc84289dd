/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that "uses" NVTX: it loads the library named by NVTX_INJECTION64_PATH and passes it the
 * tables, as the first call of NVTX does, then makes ranges, marks and domains. Without a tool push
 * and pop return -2, like NVTX's own functions.
 *
 *   fake_nvtx N [frameworks]     the same N times; or ranges as frameworks make them
 */
#include "abi/nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

static rp_nvtx_function core_functions[16], core2_functions[16];
static rp_nvtx_function *core_table[16], *core2_table[16];
static intptr_t payload_slots[16];

static int module_table(uint32_t module, rp_nvtx_function ***table, unsigned *size)
{
    *table = module == RP_NVTX_CORE ? core_table : module == RP_NVTX_CORE2 ? core2_table : NULL;
    *size = 16;
    return *table != NULL;
}

static const void *get_table(uint32_t id)
{
    static const struct rp_nvtx_callbacks callbacks = {sizeof callbacks, module_table};

    return id == RP_NVTX_TABLE_CALLBACKS ? &callbacks : NULL;
}

/* Does what the header of the extension does; other extensions than payloads are rejected. */
static void initialise_payload(void *library)
{
    struct rp_nvtx_segment segment = {0, 16, payload_slots};
    struct rp_nvtx_extension extension = {.version = 3,
                                          .size = sizeof extension,
                                          .module = RP_NVTX_EXTENSION_PAYLOAD + 1,
                                          .compatible = 0x0103,
                                          .nsegments = 1,
                                          .segments = &segment};
    int (*call)(struct rp_nvtx_extension *) = NULL;

    if (library)
        *(void **)&call = dlsym(library, "InitializeInjectionNvtxExtension");
    if (!call)
        return;
    if (call(&extension) != 0)
        exit(3);
    extension.module = RP_NVTX_EXTENSION_PAYLOAD;
    if (call(&extension) != 1)
        exit(3);
}

static void initialise(void)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*call)(rp_nvtx_get_table *) = NULL;

    for (int i = 0; i < 16; i++) {
        core_table[i] = &core_functions[i];
        core2_table[i] = &core2_functions[i];
    }
    if (library)
        *(void **)&call = dlsym(library, "InitializeInjectionNvtx2");
    if (call && call(get_table) != 1)
        exit(3);
    initialise_payload(library);
}

#define CALL(table, id, type, otherwise, ...) \
    (table[id] ? ((type)(void *)table[id])(__VA_ARGS__) : (otherwise))
typedef int push_a(const char *);
typedef int push_w(const wchar_t *);
typedef int pop(void);
typedef uint64_t start_a(const char *);
typedef void end(uint64_t);
typedef void *create_a(const char *);
typedef void *register_a(void *, const char *);
typedef int domain_push(void *, const struct rp_nvtx_event *);
typedef int domain_pop(void *);
typedef int payload_pop(void *, const void *, size_t);

static void *end_elsewhere(void *id)
{
    if (core_functions[RP_NVTX_END])
        ((end *)(void *)core_functions[RP_NVTX_END])(*(uint64_t *)id);
    return NULL;
}

/* Ranges as PyTorch (emit_nvtx) and XLA name them; op_id differs in each call. */
static void frameworks(long n)
{
    void *xla = CALL(core2_functions, RP_NVTX_DOMAIN_CREATE_A, create_a *, NULL, "TSL");
    struct rp_nvtx_event event = {
        .version = 3, .size = sizeof event, .message_type = RP_NVTX_MESSAGE_ASCII};
    char name[160];

    for (long i = 0; i < n; i++) {
        snprintf(name, sizeof name, "Optimizer.step#AdamW.step, op_id = %ld", 3 * i + 1);
        CALL(core_functions, RP_NVTX_PUSH_A, push_a *, -2, name);
        snprintf(name, sizeof name,
                 "aten::mm, seq = %ld, op_id = %ld, sizes = [[64, 32], [32, 8]], input_op_ids = "
                 "[(0,-1), (0,-1)]",
                 i, 3 * i + 2);
        CALL(core_functions, RP_NVTX_PUSH_A, push_a *, -2, name);
        event.message = "XlaModule:#hlo_module=jit_f,program_id=7#";
        CALL(core2_functions, RP_NVTX_DOMAIN_PUSH_EX, domain_push *, -2, xla, &event);
        event.message = "Thunk:#name=jit(f)/dot[a=1,b=2],hlo_op=fusion.3,unique_hlo_op_id=42#";
        CALL(core2_functions, RP_NVTX_DOMAIN_PUSH_EX, domain_push *, -2, xla, &event);
        CALL(core2_functions, RP_NVTX_DOMAIN_POP, domain_pop *, -2, xla);
        CALL(core2_functions, RP_NVTX_DOMAIN_POP, domain_pop *, -2, xla);
        CALL(core_functions, RP_NVTX_POP, pop *, -2);
        CALL(core_functions, RP_NVTX_POP, pop *, -2);
    }
}

int main(int argc, char **argv)
{
    long n = argc > 1 ? strtol(argv[1], NULL, 10) : 1, levels = 0;
    struct rp_nvtx_event event = {
        .version = 3, .size = sizeof event, .message_type = RP_NVTX_MESSAGE_REGISTERED};
    void *domain, *other;
    pthread_t thread;
    uint64_t id;

    initialise();
    if (argc > 2) {
        frameworks(n);
        return 0;
    }
    domain = CALL(core2_functions, RP_NVTX_DOMAIN_CREATE_A, create_a *, NULL, "library");
    other = CALL(core2_functions, RP_NVTX_DOMAIN_CREATE_A, create_a *, NULL, "other");
    event.message =
        CALL(core2_functions, RP_NVTX_REGISTER_STRING_A, register_a *, NULL, domain, "registered");
    for (long i = 0; i < n; i++) {
        levels += CALL(core_functions, RP_NVTX_PUSH_A, push_a *, -2, "outer");
        levels += CALL(core2_functions, RP_NVTX_DOMAIN_PUSH_EX, domain_push *, -2, domain, &event);
        levels += CALL(core_functions, RP_NVTX_PUSH_W, push_w *, -2, L"w\u00eddth");
        levels += CALL(core2_functions, RP_NVTX_DOMAIN_POP, domain_pop *, -2, domain);
        levels += CALL(core_functions, RP_NVTX_POP, pop *, -2);
        levels += CALL(core_functions, RP_NVTX_POP, pop *, -2);
    }
    event.message_type = RP_NVTX_MESSAGE_ASCII;
    event.message = "ncclCommInitRank"; /* begun here, ended by the extension, as in NCCL */
    CALL(core2_functions, RP_NVTX_DOMAIN_PUSH_EX, domain_push *, -2, domain, &event);
    CALL(payload_slots, RP_NVTX_PAYLOAD_POP, payload_pop *, -1, domain, NULL, 0);
    CALL(core2_functions, RP_NVTX_DOMAIN_POP, domain_pop *, -2, other); /* never pushed */
    id = CALL(core_functions, RP_NVTX_START_A, start_a *, 0, "elsewhere");
    if (!pthread_create(&thread, NULL, end_elsewhere, &id))
        pthread_join(thread, NULL);
    printf("levels %ld\n", levels);
    return 0;
}
