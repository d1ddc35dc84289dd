/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `doctor` tells whether this machine is ready. Each check is a function that fills one row: what
 * was found, whether that is sufficient, and what to do if it is not. Nothing is changed or
 * started; shared libraries are loaded to see whether they can be. With `--test` the rows are tests
 * (selftest.c).
 */
#include "machine/doctor.h"
#include "abi/elf_symbols.h"
#include "base/threads.h"
#include "dataset/question.h"
#include "exec/plugin/plugin.h"
#include "io/mapped.h"
#include "machine/features.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <link.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

struct doctor_root {
    size_t nchecks;
    struct rp_doctor_row *checks;
    size_t nadvice;
    const char **advice;
};

/* The states, from good to bad. */
static const char ready[] = "ready", limited[] = "limited", absent[] = "absent";

typedef void check_fn(struct rp_arena *arena, struct rp_doctor_row *row);

static void check_processor(struct rp_arena *arena, struct rp_doctor_row *row)
{
    struct utsname name;
    const char *simd = "scalar code";

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        simd = "AVX2";
#elif defined(__aarch64__)
    simd = "NEON";
#endif
    uname(&name);
    row->state = ready;
    row->finding = rp_arena_textf(arena, "%u cores, %s, %s, Linux %s", rp_cpu_count(), name.machine,
                                  simd, name.release);
}

static void check_memory(struct rp_arena *arena, struct rp_doctor_row *row)
{
    struct sysinfo info;

    if (sysinfo(&info)) {
        row->state = limited;
        row->finding = rp_arena_textf(arena, "unknown: %s", strerror(errno));
        return;
    }
    double total = (double)info.totalram * info.mem_unit / 1e9;
    row->state = total >= 2 ? ready : limited;
    row->finding = rp_arena_textf(arena, "%.1f GB", total);
    if (total < 2)
        row->advice = "a 2 GB trace needs about 0.5 GB: read one rank at a time with --threads 1";
}

static void check_files(struct rp_arena *arena, struct rp_doctor_row *row)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        limit.rlim_cur = 0;
    row->state = limit.rlim_cur >= 1024 ? ready : limited;
    row->finding = rp_arena_textf(arena, "at most %llu", (unsigned long long)limit.rlim_cur);
    if (limit.rlim_cur < 1024)
        row->advice = "raise the limit for runs of many ranks: ulimit -n 4096";
}

static void check_scratch(struct rp_arena *arena, struct rp_doctor_row *row)
{
    const char *dir = getenv("TMPDIR");
    struct statvfs fs;

    if (!dir || !*dir)
        dir = "/tmp";
    if (statvfs(dir, &fs)) {
        row->state = limited;
        row->finding = rp_arena_textf(arena, "'%s': %s", dir, strerror(errno));
        row->advice = "set TMPDIR to a writable folder";
        return;
    }
    double free_gb = (double)fs.f_bavail * (double)fs.f_frsize / 1e9;
    row->state = free_gb >= 1 ? ready : limited;
    row->finding = rp_arena_textf(arena, "%.1f GB free in %s", free_gb, dir);
    if (free_gb < 1)
        row->advice = "free some space, or set TMPDIR to another folder";
}

static void check_libraries(struct rp_arena *arena, struct rp_doctor_row *row)
{
    size_t n, missing = 0;
    const struct rp_feature *feature = rp_feature_list(&n);
    const char *names = "";

    for (size_t i = 0; i < n; i++) {
        if (!feature[i].present && ++missing)
            names =
                rp_arena_textf(arena, "%s%s%s", names, missing > 1 ? ", " : "", feature[i].name);
    }
    row->state = missing ? limited : ready;
    row->finding = missing ? rp_arena_textf(arena, "built without %s", names)
                           : "all optional libraries are compiled in";
    if (missing)
        row->advice = "'reprise version' lists what to install";
}

/* Whether the kernel lets this process sample, which is tried rather than concluded from settings,
   because a container may forbid it anyway. cpu -1 means this process on any CPU; otherwise it
   means all processes on that one. */
static bool can_sample(bool kernel, int cpu)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof attr,
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .sample_period = 10000000,
                                   .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN,
                                   .disabled = 1,
                                   .exclude_kernel = !kernel,
                                   .exclude_hv = 1};
    long fd = syscall(SYS_perf_event_open, &attr, cpu < 0 ? 0 : -1, cpu, -1,
                      (unsigned long)PERF_FLAG_FD_CLOEXEC);

    if (fd >= 0)
        close((int)fd);
    return fd >= 0;
}

static void check_perf(struct rp_arena *arena, struct rp_doctor_row *row)
{
    (void)arena;
    row->state = can_sample(false, -1) ? ready : absent;
    row->finding = can_sample(true, 0)     ? "all processes, with frames of the kernel"
                   : can_sample(true, -1)  ? "own processes, with frames of the kernel"
                   : can_sample(false, -1) ? "own processes, without frames of the kernel"
                                           : "perf_event_open is not permitted";
    if (row->state == absent)
        row->advice = "as root: sysctl kernel.perf_event_paranoid=1; in a container also "
                      "--cap-add PERFMON; without it, 'reprise sample' tells that a thread runs "
                      "in the kernel, but not in which functions, and costs more";
}

/* Loads the smallest program, "return 0", of the kind that bpftrace attaches to a clock. */
static void check_bpf(struct rp_arena *arena, struct rp_doctor_row *row)
{
    const uint64_t program[] = {UINT64_C(0x00000000000000b7), UINT64_C(0x0000000000000095)};
    union bpf_attr attr;

    (void)arena;
    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_PERF_EVENT;
    attr.insns = (uint64_t)(uintptr_t)program;
    attr.insn_cnt = 2;
    attr.license = (uint64_t)(uintptr_t) "GPL";
    long fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof attr);
    row->state = fd >= 0 ? ready : absent;
    row->finding = fd >= 0 ? "programs may be loaded" : "the kernel lets no program be loaded";
    if (fd < 0)
        row->advice = "run as root, or with CAP_BPF and CAP_PERFMON; 'reprise sample' does not "
                      "need it";
    else
        close((int)fd);
}

/* Returns the first line of a file, without its newline, or NULL. */
static const char *first_line(struct rp_arena *arena, const char *path)
{
    char line[256];
    FILE *f = fopen(path, "re");
    const char *copy = NULL;

    if (!f)
        return NULL;
    if (fgets(line, sizeof line, f))
        copy = rp_arena_copy(arena, line, strcspn(line, "\n"));
    fclose(f);
    return copy;
}

static void check_nvidia(struct rp_arena *arena, struct rp_doctor_row *row)
{
    const char *line = first_line(arena, "/proc/driver/nvidia/version");
    const char *module = line ? strstr(line, "Module") : NULL;

    row->state = line ? ready : absent;
    row->finding = module ? module : line ? line : "no NVIDIA driver is loaded";
}

static void check_amd(struct rp_arena *arena, struct rp_doctor_row *row)
{
    const char *version = first_line(arena, "/sys/module/amdgpu/version");
    FILE *kfd = fopen("/dev/kfd", "re");

    if (kfd)
        fclose(kfd);
    row->state = kfd ? ready : absent;
    row->finding = kfd ? rp_arena_textf(arena, "amdgpu %s", version ? version : "of the kernel")
                       : "no AMD compute device (/dev/kfd)";
}

/* Returns the first path that matches, or NULL. */
static const char *first_match(struct rp_arena *arena, const char *pattern)
{
    const char *found = NULL;
    glob_t paths;

    if (!glob(pattern, 0, NULL, &paths))
        found = rp_arena_strdup(arena, paths.gl_pathv[0]);
    globfree(&paths);
    return found;
}

/* Searches the Python packages of each python3 on the PATH, which may contain the library, and
   tells which python3 it was. */
static const char *find_in_python(struct rp_arena *arena, const char *pattern, const char **python)
{
    const char *dir = getenv("PATH"), *found = NULL;

    while (dir && *dir && !found) {
        int len = (int)strcspn(dir, ":");
        const char *path =
            rp_arena_textf(arena, "%.*s/../lib/python3*/site-packages/%s", len, dir, pattern);

        *python = rp_arena_textf(arena, "%.*s/python3", len, dir);
        if (!access(*python, X_OK))
            found = first_match(arena, path);
        dir += len + (dir[len] == ':');
    }
    return found;
}

const char *rp_doctor_python(struct rp_arena *arena, const char *package)
{
    const char *pattern = rp_arena_textf(arena, "%s/__init__.py", package), *python = NULL;

    return find_in_python(arena, pattern, &python) ? python : NULL;
}

/* Returns the first name that can be loaded (or, with a '/', that exists), or NULL. */
static const char *find_library(struct rp_arena *arena, const char *const *names)
{
    const char *found = NULL, *python;

    for (; *names && !found; names++) {
        void *handle;

        if (!strncmp(*names, "python:", 7)) {
            found = find_in_python(arena, *names + 7, &python);
        } else if (strchr(*names, '/')) {
            found = first_match(arena, *names);
        } else if ((handle = dlopen(*names, RTLD_LAZY | RTLD_LOCAL))) {
            found = *names;
            dlclose(handle);
        }
    }
    return found;
}

static void library_row(struct rp_arena *arena, struct rp_doctor_row *row, const char *const *names,
                        const char *advice)
{
    const char *found = find_library(arena, names);

    row->state = found ? ready : absent;
    row->finding = found ? found : "not found";
    row->advice = found ? NULL : advice;
}

/* Leaves the folder of a file in *path; "." if it has none. */
static void folder_of(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash)
        *slash = '\0';
    else
        strcpy(path, ".");
}

/* The folders of this program and of the file that contains this code: libreprise.so, or the
   program. */
struct own_folders {
    char program[1024], library[1024];
};

static void own_folders(struct own_folders *own)
{
    ssize_t n = readlink("/proc/self/exe", own->program, sizeof own->program - 1);
    Dl_info info;

    own->program[n > 0 ? n : 0] = '\0';
    own->library[0] = '\0';
    if (dladdr(ready, &info) && info.dli_fname)
        snprintf(own->library, sizeof own->library, "%s", info.dli_fname);
    folder_of(own->program);
    folder_of(own->library);
}

/* Finds the injected library of a source: in REPRISE_CAPTURE_DIR, beside the program, or installed.
   If another program has loaded libreprise.so, it is searched in the same places beside that. */
const char *rp_doctor_capture(struct rp_arena *arena, const char *source)
{
    static const char *const places[] = {"capture", "../lib/reprise", "../lib64/reprise",
                                         "../lib/*/reprise", "reprise"};
    const char *named = getenv("REPRISE_CAPTURE_DIR"), *found = NULL;
    struct own_folders own;

    if (named && *named)
        found = first_match(arena, rp_arena_textf(arena, "%s/reprise-%s.so", named, source));
    own_folders(&own);
    for (size_t i = 0; !found && i < 2 * sizeof places / sizeof places[0]; i++)
        found = first_match(arena, rp_arena_textf(arena, "%s/%s/reprise-%s.so",
                                                  i % 2 ? own.library : own.program, places[i / 2],
                                                  source));
    return found;
}

const char *rp_doctor_program(struct rp_arena *arena)
{
    static const char *const places[] = {"reprise", "../bin/reprise", "../../bin/reprise"};
    const char *dir = getenv("PATH"), *found = NULL;
    struct own_folders own;

    own_folders(&own);
    for (size_t i = 0; !found && i < 2 * sizeof places / sizeof places[0]; i++) {
        found = rp_arena_textf(arena, "%s/%s", i % 2 ? own.library : own.program, places[i / 2]);
        found = access(found, X_OK) ? NULL : found;
    }
    while (!found && dir && *dir) {
        int len = (int)strcspn(dir, ":");

        found = rp_arena_textf(arena, "%.*s/reprise", len, dir);
        found = access(found, X_OK) ? NULL : found;
        dir += len + (dir[len] == ':');
    }
    return found;
}

/* A source of `record`: its own library, the libraries that it observes, and the variable that
   loads it. */
struct capture_source {
    const char *row, *name, *needs;
    const char *const *libraries; /* one of these is needed; NULL if none is */
    const char *advice, *variable;
    check_fn *more; /* what else to check if it is ready, or NULL */
};

static void source_row(struct rp_arena *arena, struct rp_doctor_row *row,
                       const struct capture_source *source)
{
    const char *library = rp_doctor_capture(arena, source->name);
    const char *found = source->libraries ? find_library(arena, source->libraries) : "";
    const char *taken = source->variable ? getenv(source->variable) : NULL;

    row->state = library && found ? ready : absent;
    if (!library) {
        row->finding = rp_arena_textf(arena, "reprise-%s.so is not in this build", source->name);
        row->advice = "install the whole package, or set REPRISE_CAPTURE_DIR to the folder of "
                      "its libraries";
    } else if (!found) {
        row->finding = rp_arena_textf(arena, "%s was not found", source->needs);
        row->advice = source->advice;
    } else if (taken && *taken) {
        row->state = limited;
        row->finding = rp_arena_textf(arena, "%s is set to %s", source->variable, taken);
        row->advice =
            rp_arena_textf(arena, "unset it, or replace it: record --with host,%s", source->name);
    } else {
        row->finding = *found ? rp_arena_textf(arena, "%s, %s", library, found) : library;
        if (source->more)
            source->more(arena, row);
    }
}

static const char *const cuda_driver[] = {"libcuda.so.1", NULL};
static const char *const cupti[] = {"libcupti.so.13", "libcupti.so.12",
                                    "/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*",
                                    "python:nvidia/*/lib/libcupti.so*", NULL};
static const char *const nccl[] = {"libnccl.so.2", "python:nvidia/nccl/lib/libnccl.so*", NULL};
static const char *const opencl[] = {"libOpenCL.so.1", NULL};

static const char *const hsa[] = {"libhsa-runtime64.so.1", NULL};
static const char opencl_advice[] = "for OpenCL on the CPU: install pocl-opencl-icd";

/* LD_PRELOAD cannot contain a path with a space. */
static void check_preload(struct rp_arena *arena, struct rp_doctor_row *row)
{
    (void)arena;
    if (!strpbrk(row->finding, " :"))
        return;
    row->state = limited;
    row->advice = "LD_PRELOAD cannot contain a space or a colon: make a symbolic link to the "
                  "folder, and set REPRISE_CAPTURE_DIR to it";
}

static void check_for_cupti(struct rp_arena *arena, struct rp_doctor_row *row)
{
    if (find_library(arena, cupti) || getenv("CUPTI_PATH"))
        return;
    row->state = limited;
    row->finding = "found the driver, but not CUPTI";
    row->advice = "if the program does not contain CUPTI: pip install nvidia-cuda-cupti, or "
                  "set CUPTI_PATH to its folder";
}

static void check_platforms(struct rp_arena *arena, struct rp_doctor_row *row)
{
    const char *vendors = getenv("OCL_ICD_VENDORS"), *files = getenv("OCL_ICD_FILENAMES");

    if ((files && *files) || (vendors && strstr(vendors, ".icd")) ||
        first_match(arena, rp_arena_textf(arena, "%s/*.icd",
                                          vendors && *vendors ? vendors : "/etc/OpenCL/vendors")))
        return;
    row->state = limited;
    row->finding = "found the OpenCL loader, but no platform";
    row->advice = opencl_advice;
}

/* Stacks are read by process_vm_readv, which sandboxes may forbid; those of waiting threads are
   found by a file of the kernel, and another file gives root the kernel's own functions. */
static void check_stacks(struct rp_arena *arena, struct rp_doctor_row *row)
{
    long word = 1, copy = 0;
    struct iovec to = {&copy, sizeof copy}, from = {&word, sizeof word};

    if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != (ssize_t)sizeof copy || copy != word) {
        row->state = absent;
        row->finding = "process_vm_readv is not permitted";
        row->advice =
            "allow it in the sandbox or container (seccomp): docker run --cap-add SYS_PTRACE";
    } else if (!first_line(arena, "/proc/self/syscall")) {
        row->state = limited;
        row->finding =
            "/proc/self/syscall cannot be read: threads that wait have Python frames only";
        row->advice = "use a kernel with CONFIG_HAVE_ARCH_TRACEHOOK, and mount /proc";
    } else {
        row->finding = rp_arena_textf(arena, "%s, process_vm_readv, /proc/self/%s", row->finding,
                                      first_line(arena, "/proc/self/stack") ? "stack" : "syscall");
    }
}

static const struct capture_source sources[] = {
    {"record host", "host", .more = check_preload},
    {"record cuda", "cuda", "the CUDA driver", cuda_driver, .variable = "CUDA_INJECTION64_PATH",
     .more = check_for_cupti},
    {"record nvtx", "nvtx", .variable = "NVTX_INJECTION64_PATH"},
    {"record frameworks", "frameworks", .variable = "INTEL_LIBITTNOTIFY64"},
    {"record sycl", "sycl", .variable = "XPTI_SUBSCRIBERS"},
    {"record hip", "hip", "AMD's HSA runtime", hsa, .variable = "HSA_TOOLS_LIB"},
    {"record nccl", "nccl", "NCCL", nccl, .variable = "NCCL_PROFILER_PLUGIN"},
    {"record opencl", "opencl", "an OpenCL loader", opencl, opencl_advice, .more = check_platforms},
    {"record mpi", "mpi", .more = NULL},
    {"record gloo", "gloo", .more = NULL},
    {"record blocking", "blocking", .more = NULL},
    {"record malloc", "malloc", .more = NULL},
    {"record sample", "sample", .more = check_stacks},
};

#define NSOURCES (sizeof sources / sizeof sources[0])

/* A process that already runs is observed by ptrace and process_vm_readv. Yama may forbid that, in
   addition to the rules for users and capabilities. */
static void check_sample_pid(struct rp_arena *arena, struct rp_doctor_row *row)
{
    const char *text = first_line(arena, "/proc/sys/kernel/yama/ptrace_scope");
    int scope = text ? atoi(text) : 0;
    bool root = geteuid() == 0;

    if (!scope || (root && scope < 3)) {
        row->state = ready;
        row->finding = root ? "processes of all users" : "processes of this user";
        return;
    }
    row->state = scope == 1 ? limited : absent;
    row->finding =
        rp_arena_textf(arena, "kernel.yama.ptrace_scope is %d: %s", scope,
                       scope == 1 ? "children of this process only" : "not permitted to this user");
    row->advice =
        "run as root, or 'sysctl kernel.yama.ptrace_scope=0'; 'reprise sample -- PROGRAM' "
        "needs neither";
}

static void check_cupti(struct rp_arena *arena, struct rp_doctor_row *row)
{
    library_row(arena, row, cupti, NULL);
}

static void check_nccl(struct rp_arena *arena, struct rp_doctor_row *row)
{
    library_row(arena, row, nccl, NULL);
}

static void check_opencl(struct rp_arena *arena, struct rp_doctor_row *row)
{
    library_row(arena, row, opencl, NULL);
}

static void check_blas(struct rp_arena *arena, struct rp_doctor_row *row)
{
    static const char *const names[] = {"libopenblas.so.0", NULL};

    library_row(arena, row, names, NULL);
}

/* OpenBLAS contains it, and so does the OpenBLAS of SciPy's wheel. */
static void check_lapack(struct rp_arena *arena, struct rp_doctor_row *row)
{
    static const char *const names[] = {"libopenblas.so.0", "liblapack.so.3", NULL};
    struct rp_err ignored = RP_ERR_INIT;
    char *path = NULL;

    library_row(arena, row, names,
                "programs with singular values, eigenvalues or Schur forms: install liblapack3");
    if (row->state == absent &&
        rp_plugin_resolve(RP_PLUGIN_LAPACK, NULL, &path, &ignored) == RP_OK) {
        row->state = ready;
        row->finding = rp_arena_text(arena, path);
        row->advice = NULL;
    }
    free(path);
}

/* A library of this process, by its name in the loader. */
struct library {
    const char *name;
    char path[512];
    char id[2 * 32 + 2]; /* "ab/cdef…", from its build id; "" if it has none */
};

static int find_loaded(struct dl_phdr_info *info, size_t size, void *user)
{
    struct library *found = user;

    (void)size;
    if (!strstr(info->dlpi_name, found->name))
        return 0;
    snprintf(found->path, sizeof found->path, "%s", info->dlpi_name);
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const ElfW(Nhdr) *note = (const void *)(info->dlpi_addr + p->p_vaddr);
        const uint8_t *id = (const uint8_t *)(note + 1) + 4; /* behind "GNU" */

        if (p->p_type != PT_NOTE || p->p_filesz < sizeof *note + 4 || note->n_namesz != 4 ||
            note->n_type != NT_GNU_BUILD_ID || note->n_descsz > 32)
            continue;
        for (unsigned k = 0, n = 0; k < note->n_descsz; k++)
            n += (unsigned)snprintf(found->id + n, sizeof found->id - n, "%02x%s", id[k],
                                    k ? "" : "/");
    }
    return 1;
}

static bool has_symbols(const char *path)
{
    struct rp_err err = RP_ERR_INIT;
    struct rp_elf_table table;
    struct rp_mapped file;

    if (rp_mapped_open(path, UINT64_MAX, &file, NULL, &err) != RP_OK)
        return false;
    bool has = rp_elf_table_find((struct rp_elf_file){file.at, file.n}, SHT_SYMTAB, &table);
    rp_mapped_close(&file);
    return has;
}

/* Functions that a library does not export have names only in its symbol table, which packages
   strip: perf and debuggers then look for it by the build id. */
static void check_symbols(struct rp_arena *arena, struct rp_doctor_row *row)
{
    struct library libraries[] = {
        {.name = "/libc.so"}, {.name = "/libm.so"}, {.name = "/ld-linux"}};
    const char *without = "";

    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        struct library *it = &libraries[i];

        if (dl_iterate_phdr(find_loaded, it) &&
            !has_symbols(rp_arena_textf(arena, "/usr/lib/debug/.build-id/%s.debug", it->id)) &&
            !has_symbols(it->path))
            without = rp_arena_textf(arena, "%s%s%s", without, *without ? ", " : "", it->path);
    }
    row->state = *without ? limited : ready;
    row->finding = *without ? rp_arena_textf(arena, "none of %s", without)
                            : "of the C library, its loader and libm";
    if (*without)
        row->advice = "stacks name only the functions that a library exports: install its debug "
                      "symbols (libc6-dbg for the C library)";
}

/* `record` needs nothing else to say which threads were ready and had no processor. */
static void check_run_delay(struct rp_arena *arena, struct rp_doctor_row *row)
{
    bool counted = first_line(arena, "/proc/self/schedstat");

    row->state = counted ? ready : limited;
    row->finding = !counted ? "no /proc/self/schedstat: this kernel does not count it"
                   : first_line(arena, "/proc/pressure/cpu")
                       ? "/proc/self/schedstat, /proc/pressure/cpu"
                       : "/proc/self/schedstat";
    if (!counted)
        row->advice = "threads that wait for a processor are not told from others: a kernel with "
                      "CONFIG_SCHED_INFO (sandboxes such as gVisor have none)";
}

static const struct {
    const char *name;
    check_fn *run;
    const char *purpose;
} checks[] = {
    {"processor", check_processor, "speed"},
    {"memory", check_memory, "big traces"},
    {"open files", check_files, "many ranks"},
    {"scratch space", check_scratch, "output"},
    {"libraries", check_libraries, "inputs"},
    {"perf events", check_perf, "sample, perf"},
    {"run delay", check_run_delay, "record"},
    {"eBPF", check_bpf, "bpftrace"},
    {"debug symbols", check_symbols, "sample, perf"},
    {"NVIDIA driver", check_nvidia, "CUDA"},
    {"AMD driver", check_amd, "HIP"},
    {"CUPTI", check_cupti, "CUDA capture"},
    {"NCCL", check_nccl, "NCCL capture"},
    {"OpenCL", check_opencl, "OpenCL capture"},
    {"OpenBLAS", check_blas, "fast replay"},
    {"LAPACK", check_lapack, "replay"},
    {"sample --pid", check_sample_pid, "record"},
};

#define NCHECKS (sizeof checks / sizeof checks[0])

static const struct rp_field check_fields[] = {
    RP_FIELD(struct rp_doctor_row, check, STR, NONE, "check", "the check", 0),
    RP_FIELD(struct rp_doctor_row, state, STR, NONE, "state",
             "ready, limited or absent; with --test ok, not possible or failed", 0),
    RP_FIELD(struct rp_doctor_row, purpose, STR, NONE, "for", "what it is needed for", 0),
    RP_FIELD(struct rp_doctor_row, finding, STR, NONE, "found", "what was found", RP_SHORTEN),
    RP_FIELD(struct rp_doctor_row, advice, STR, NONE, NULL, "what to do, or null", 0),
    RP_FIELD_END};
static const struct rp_type check_type = {"check", sizeof(struct rp_doctor_row), check_fields,
                                          NULL};

static const struct rp_field doctor_fields[] = {
    RP_FIELD_LIST(struct doctor_root, checks, &check_type, "this machine", "one row per check", 0),
    RP_FIELD_LIST(struct doctor_root, advice, &rp_type_string, "what to do",
                  "the advice of all checks", 0),
    RP_FIELD_END};
static const struct rp_type doctor_type = {"doctor", sizeof(struct doctor_root), doctor_fields,
                                           "checks"};

void rp_doctor_source(struct rp_arena *arena, const char *source, struct rp_doctor_row *row)
{
    for (size_t i = 0; i < NSOURCES; i++)
        if (!strcmp(sources[i].name, source))
            source_row(arena, row, &sources[i]);
}

/* The rows are tests; one that fails makes the answer a no. */
static enum rp_code doctor_test(struct rp_ctx *ctx, struct rp_result *result, struct rp_err *err)
{
    struct doctor_root *root = result->root;
    struct rp_selftest *tests;
    size_t n = rp_selftest_count();
    enum rp_code code = RP_OK;

    root->checks = RP_ARENA_NEW(&result->arena, struct rp_doctor_row, n);
    RP_TRY(rp_err_need(root->checks, err, "testing this machine"));
    RP_TRY(rp_selftest_open(&result->arena, &tests, err));
    while (code == RP_OK && root->nchecks < n) {
        struct rp_doctor_row *row = &root->checks[root->nchecks];

        rp_selftest_run(tests, root->nchecks++, row);
        if (!strcmp(row->state, "failed"))
            result->answer = RP_ANSWER_NO;
        if (ctx->progress && ctx->progress(ctx->progress_user, row->check, root->nchecks, n))
            code = rp_err_set(err, RP_CANCELLED, "cancelled");
    }
    rp_selftest_close(tests);
    return code == RP_OK ? rp_arena_check(&result->arena, "testing this machine", err) : code;
}

static enum rp_code doctor_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                               const struct rp_settings *settings, struct rp_result *result,
                               struct rp_err *err)
{
    struct doctor_root *root = result->root;
    enum rp_code code;

    (void)dataset;
    if (rp_selftest_is_recorded(err, &code))
        return code;
    if (rp_settings_flag(settings, "test"))
        return doctor_test(ctx, result, err);
    root->checks = RP_ARENA_NEW(&result->arena, struct rp_doctor_row, NCHECKS + NSOURCES);
    root->advice = RP_ARENA_NEW(&result->arena, const char *, NCHECKS + NSOURCES);
    RP_TRY(rp_err_need(root->checks && root->advice, err, "checking this machine"));
    if (rp_settings_has(settings, "pid"))
        root->nchecks =
            rp_doctor_running(&result->arena, rp_settings_int(settings, "pid"), root->checks);
    else {
        root->nchecks = NCHECKS + NSOURCES;
        for (size_t i = 0; i < root->nchecks; i++) {
            struct rp_doctor_row *row = &root->checks[i];

            row->check = i < NCHECKS ? checks[i].name : sources[i - NCHECKS].row;
            row->purpose = i < NCHECKS ? checks[i].purpose : "record";
            if (i < NCHECKS)
                checks[i].run(&result->arena, row);
            else
                source_row(&result->arena, row, &sources[i - NCHECKS]);
        }
    }
    for (size_t i = 0; i < root->nchecks; i++) {
        const struct rp_doctor_row *row = &root->checks[i];

        if (row->advice)
            root->advice[root->nadvice++] =
                rp_arena_textf(&result->arena, "%s: %s", row->check, row->advice);
    }
    return rp_arena_check(&result->arena, "checking this machine", err);
}

static const struct rp_option doctor_options[] = {
    {"test", 0, RP_OPT_FLAG, NULL, NULL,
     "run what is installed: readers, writers, engines, sources of 'record'", 0},
    {"pid", 'p', RP_OPT_INT, "1..4194304", NULL,
     "whether this process can be asked for a profile by its framework, instead", 0},
    RP_OPTION_END};

const struct rp_question_row rp_ask_doctor = {
    .question = {.name = "doctor",
                 .group = "other",
                 .summary = "check whether this machine is ready",
                 .details = "Checks the processor, memory, limits, drivers and libraries, and "
                            "gives advice where something is limited. An absent driver or library "
                            "matters only for its purpose. With --test, files in the program are "
                            "read, written, replayed and recorded; exit status 1: a test failed.",
                 .examples = "reprise doctor\tone line per check\n"
                             "reprise doctor --test\tone line per test\n"
                             "reprise doctor --pid 4711\ta program that runs\n",
                 .accepts = RP_ACCEPTS_NOTHING,
                 .options = doctor_options,
                 .type = &doctor_type},
    .run = doctor_run};
