/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `doctor`: is this machine ready? Each check is a function that fills one row: what was found,
 * whether that is sufficient, and what to do where it is not. Nothing is changed or started; shared
 * libraries are loaded to see whether they can be.
 */
#include "base/threads.h"
#include "dataset/question.h"
#include "machine/features.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

struct check_row {
    const char *check, *state, *purpose, *finding, *advice;
};

struct doctor_root {
    size_t nchecks;
    struct check_row *checks;
    size_t nadvice;
    const char **advice;
};

/* The states, from good to bad. */
static const char ready[] = "ready", limited[] = "limited", absent[] = "absent";

typedef void check_fn(struct rp_arena *arena, struct check_row *row);

static void check_processor(struct rp_arena *arena, struct check_row *row)
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

static void check_memory(struct rp_arena *arena, struct check_row *row)
{
    struct sysinfo info;
    double total;

    if (sysinfo(&info)) {
        row->state = limited;
        row->finding = rp_arena_textf(arena, "unknown: %s", strerror(errno));
        return;
    }
    total = (double)info.totalram * info.mem_unit / 1e9;
    row->state = total >= 2 ? ready : limited;
    row->finding = rp_arena_textf(arena, "%.1f GB", total);
    if (total < 2)
        row->advice = "a 2 GB trace needs about 0.5 GB: read one rank at a time with --threads 1";
}

static void check_files(struct rp_arena *arena, struct check_row *row)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit))
        limit.rlim_cur = 0;
    row->state = limit.rlim_cur >= 1024 ? ready : limited;
    row->finding = rp_arena_textf(arena, "at most %llu", (unsigned long long)limit.rlim_cur);
    if (limit.rlim_cur < 1024)
        row->advice = "raise the limit for runs of many ranks: ulimit -n 4096";
}

static void check_scratch(struct rp_arena *arena, struct check_row *row)
{
    const char *dir = getenv("TMPDIR");
    struct statvfs fs;
    double free_gb;

    if (!dir || !*dir)
        dir = "/tmp";
    if (statvfs(dir, &fs)) {
        row->state = limited;
        row->finding = rp_arena_textf(arena, "'%s': %s", dir, strerror(errno));
        row->advice = "set TMPDIR to a writable folder";
        return;
    }
    free_gb = (double)fs.f_bavail * (double)fs.f_frsize / 1e9;
    row->state = free_gb >= 1 ? ready : limited;
    row->finding = rp_arena_textf(arena, "%.1f GB free in %s", free_gb, dir);
    if (free_gb < 1)
        row->advice = "free some space, or set TMPDIR to another folder";
}

static void check_libraries(struct rp_arena *arena, struct check_row *row)
{
    size_t i, n, missing = 0;
    const struct rp_feature *feature = rp_feature_list(&n);
    const char *names = "";

    for (i = 0; i < n; i++) {
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

static void check_perf(struct rp_arena *arena, struct check_row *row)
{
    FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
    int level = 99;

    if (f) {
        if (fscanf(f, "%d", &level) != 1)
            level = 99;
        fclose(f);
    }
    if (level == 99) {
        row->state = absent;
        row->finding = "the kernel has no perf events";
        return;
    }
    row->state = level <= 2 ? ready : limited;
    row->finding = rp_arena_textf(arena, "perf_event_paranoid is %d", level);
    if (level > 2)
        row->advice = "as root: sysctl kernel.perf_event_paranoid=2";
}

/* The first line of a file, without its newline, or NULL. */
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

static void check_nvidia(struct rp_arena *arena, struct check_row *row)
{
    const char *line = first_line(arena, "/proc/driver/nvidia/version");
    const char *module = line ? strstr(line, "Module") : NULL;

    row->state = line ? ready : absent;
    row->finding = module ? module : line ? line : "no NVIDIA driver is loaded";
}

static void check_amd(struct rp_arena *arena, struct check_row *row)
{
    const char *version = first_line(arena, "/sys/module/amdgpu/version");
    FILE *kfd = fopen("/dev/kfd", "re");

    if (kfd)
        fclose(kfd);
    row->state = kfd ? ready : absent;
    row->finding = kfd ? rp_arena_textf(arena, "amdgpu %s", version ? version : "of the kernel")
                       : "no AMD compute device (/dev/kfd)";
}

/* The first path that matches, or NULL. */
static const char *first_match(struct rp_arena *arena, const char *pattern)
{
    const char *found = NULL;
    glob_t paths;

    if (!glob(pattern, 0, NULL, &paths))
        found = rp_arena_strdup(arena, paths.gl_pathv[0]);
    globfree(&paths);
    return found;
}

/* Python packages contain libraries: searches those of each python3 on the PATH. */
static const char *find_in_python(struct rp_arena *arena, const char *pattern)
{
    const char *dir = getenv("PATH"), *found = NULL;

    while (dir && *dir && !found) {
        int len = (int)strcspn(dir, ":");
        const char *python = rp_arena_textf(arena, "%.*s/python3", len, dir);
        const char *path =
            rp_arena_textf(arena, "%.*s/../lib/python3*/site-packages/%s", len, dir, pattern);

        if (python && path && !access(python, X_OK))
            found = first_match(arena, path);
        dir += len + (dir[len] == ':');
    }
    return found;
}

/* The first name that can be loaded (or, with a '/', that exists), or NULL. */
static const char *find_library(struct rp_arena *arena, const char *const *names)
{
    const char *found = NULL;

    for (; *names && !found; names++) {
        void *handle;

        if (!strncmp(*names, "python:", 7)) {
            found = find_in_python(arena, *names + 7);
        } else if (strchr(*names, '/')) {
            found = first_match(arena, *names);
        } else if ((handle = dlopen(*names, RTLD_LAZY | RTLD_LOCAL))) {
            found = *names;
            dlclose(handle);
        }
    }
    return found;
}

static void library_row(struct rp_arena *arena, struct check_row *row, const char *const *names,
                        const char *advice)
{
    const char *found = find_library(arena, names);

    row->state = found ? ready : absent;
    row->finding = found ? found : "not found";
    row->advice = found ? NULL : advice;
}

/* The injected library of a source: in REPRISE_CAPTURE_DIR, beside the program, or installed. */
static const char *find_capture(struct rp_arena *arena, const char *source)
{
    static const char *const places[] = {"capture", "../lib/reprise", "../lib64/reprise",
                                         "../lib/*/reprise"};
    const char *named = getenv("REPRISE_CAPTURE_DIR"), *found = NULL;
    char self[1024], *slash;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (named && *named)
        found = first_match(arena, rp_arena_textf(arena, "%s/reprise-%s.so", named, source));
    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; !found && i < sizeof places / sizeof places[0]; i++)
        found = first_match(arena,
                            rp_arena_textf(arena, "%s/%s/reprise-%s.so", self, places[i], source));
    return found;
}

/* A source of `record`: its own library, the libraries it observes, the variable that loads it. */
struct capture_source {
    const char *name, *needs;
    const char *const *libraries; /* one of these is needed; NULL: none */
    const char *advice, *variable;
};

static void source_row(struct rp_arena *arena, struct check_row *row,
                       const struct capture_source *source)
{
    const char *library = find_capture(arena, source->name);
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
    }
}

static const char *const cuda_driver[] = {"libcuda.so.1", NULL};
static const char *const cupti[] = {"libcupti.so.13", "libcupti.so.12",
                                    "/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*",
                                    "python:nvidia/*/lib/libcupti.so*", NULL};
static const char *const nccl[] = {"libnccl.so.2", "python:nvidia/nccl/lib/libnccl.so*", NULL};
static const char *const opencl[] = {"libOpenCL.so.1", NULL};

/* LD_PRELOAD cannot contain a path with a space. */
static void check_record_host(struct rp_arena *arena, struct check_row *row)
{
    source_row(arena, row, &(struct capture_source){.name = "host"});
    if (row->state == ready && strpbrk(row->finding, " :")) {
        row->state = limited;
        row->advice =
            "LD_PRELOAD cannot contain a space or a colon: make a symbolic link to the folder, "
            "and set REPRISE_CAPTURE_DIR to it";
    }
}

static void check_record_cuda(struct rp_arena *arena, struct check_row *row)
{
    source_row(arena, row,
               &(struct capture_source){.name = "cuda",
                                        .needs = "the CUDA driver",
                                        .libraries = cuda_driver,
                                        .variable = "CUDA_INJECTION64_PATH"});
    if (row->state == ready && !find_library(arena, cupti) && !getenv("CUPTI_PATH")) {
        row->state = limited;
        row->finding = "found the driver, but not CUPTI";
        row->advice = "if the program does not contain CUPTI: pip install nvidia-cuda-cupti, or "
                      "set CUPTI_PATH to its folder";
    }
}

static void check_record_nvtx(struct rp_arena *arena, struct check_row *row)
{
    source_row(arena, row,
               &(struct capture_source){.name = "nvtx", .variable = "NVTX_INJECTION64_PATH"});
}

static void check_record_frameworks(struct rp_arena *arena, struct check_row *row)
{
    source_row(arena, row,
               &(struct capture_source){.name = "frameworks", .variable = "INTEL_LIBITTNOTIFY64"});
}

static void check_record_sycl(struct rp_arena *arena, struct check_row *row)
{
    source_row(arena, row,
               &(struct capture_source){.name = "sycl", .variable = "XPTI_SUBSCRIBERS"});
}

static void check_record_hip(struct rp_arena *arena, struct check_row *row)
{
    static const char *const names[] = {"libhsa-runtime64.so.1", NULL};

    source_row(arena, row,
               &(struct capture_source){.name = "hip",
                                        .needs = "AMD's HSA runtime",
                                        .libraries = names,
                                        .variable = "HSA_TOOLS_LIB"});
}

static void check_record_nccl(struct rp_arena *arena, struct check_row *row)
{
    source_row(arena, row,
               &(struct capture_source){.name = "nccl",
                                        .needs = "NCCL",
                                        .libraries = nccl,
                                        .variable = "NCCL_PROFILER_PLUGIN"});
}

static void check_record_opencl(struct rp_arena *arena, struct check_row *row)
{
    static const char advice[] = "for OpenCL on the CPU: install pocl-opencl-icd";
    const char *vendors = getenv("OCL_ICD_VENDORS"), *files = getenv("OCL_ICD_FILENAMES");

    source_row(
        arena, row,
        &(struct capture_source){
            .name = "opencl", .needs = "an OpenCL loader", .libraries = opencl, .advice = advice});
    if (row->state != ready || (files && *files) || (vendors && strstr(vendors, ".icd")) ||
        first_match(arena, rp_arena_textf(arena, "%s/*.icd",
                                          vendors && *vendors ? vendors : "/etc/OpenCL/vendors")))
        return;
    row->state = limited;
    row->finding = "found the OpenCL loader, but no platform";
    row->advice = advice;
}

static void check_record_mpi(struct rp_arena *arena, struct check_row *row)
{
    source_row(arena, row, &(struct capture_source){.name = "mpi"});
}

static void check_record_gloo(struct rp_arena *arena, struct check_row *row)
{
    source_row(arena, row, &(struct capture_source){.name = "gloo"});
}

static void check_record_blocking(struct rp_arena *arena, struct check_row *row)
{
    source_row(arena, row, &(struct capture_source){.name = "blocking"});
}

static void check_record_malloc(struct rp_arena *arena, struct check_row *row)
{
    source_row(arena, row, &(struct capture_source){.name = "malloc"});
}

static void check_cupti(struct rp_arena *arena, struct check_row *row)
{
    library_row(arena, row, cupti, NULL);
}

static void check_nccl(struct rp_arena *arena, struct check_row *row)
{
    library_row(arena, row, nccl, NULL);
}

static void check_opencl(struct rp_arena *arena, struct check_row *row)
{
    library_row(arena, row, opencl, NULL);
}

static void check_blas(struct rp_arena *arena, struct check_row *row)
{
    static const char *const names[] = {"libopenblas.so.0", NULL};

    library_row(arena, row, names, NULL);
}

/* OpenBLAS contains it. */
static void check_lapack(struct rp_arena *arena, struct check_row *row)
{
    static const char *const names[] = {"libopenblas.so.0", "liblapack.so.3", NULL};

    library_row(arena, row, names,
                "programs with singular values, eigenvalues or Schur forms: install liblapack3");
}

static void check_xgboost(struct rp_arena *arena, struct check_row *row)
{
    static const char *const names[] = {"libxgboost.so.0", "libxgboost.so", NULL};

    library_row(arena, row, names, "'model train --method trees': install libxgboost0");
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
    {"sampling", check_perf, "host samples"},
    {"NVIDIA driver", check_nvidia, "CUDA"},
    {"AMD driver", check_amd, "HIP"},
    {"CUPTI", check_cupti, "CUDA capture"},
    {"NCCL", check_nccl, "NCCL capture"},
    {"OpenCL", check_opencl, "OpenCL capture"},
    {"OpenBLAS", check_blas, "fast replay"},
    {"LAPACK", check_lapack, "replay"},
    {"XGBoost", check_xgboost, "cost models"},
    {"record host", check_record_host, "record"},
    {"record cuda", check_record_cuda, "record"},
    {"record nvtx", check_record_nvtx, "record"},
    {"record frameworks", check_record_frameworks, "record"},
    {"record sycl", check_record_sycl, "record"},
    {"record hip", check_record_hip, "record"},
    {"record nccl", check_record_nccl, "record"},
    {"record opencl", check_record_opencl, "record"},
    {"record mpi", check_record_mpi, "record"},
    {"record gloo", check_record_gloo, "record"},
    {"record blocking", check_record_blocking, "record"},
    {"record malloc", check_record_malloc, "record"},
};

#define NCHECKS (sizeof checks / sizeof checks[0])

static const struct rp_field check_fields[] = {
    RP_FIELD(struct check_row, check, STR, NONE, "check", "the check", 0),
    RP_FIELD(struct check_row, state, STR, NONE, "state", "ready, limited or absent", 0),
    RP_FIELD(struct check_row, purpose, STR, NONE, "for", "what it is needed for", 0),
    RP_FIELD(struct check_row, finding, STR, NONE, "found", "what was found", RP_SHORTEN),
    RP_FIELD(struct check_row, advice, STR, NONE, NULL, "what to do, or null", 0),
    RP_FIELD_END};
static const struct rp_type check_type = {"check", sizeof(struct check_row), check_fields, NULL};

static const struct rp_field doctor_fields[] = {
    RP_FIELD_LIST(struct doctor_root, checks, &check_type, "this machine", "one row per check", 0),
    RP_FIELD_LIST(struct doctor_root, advice, &rp_type_string, "what to do",
                  "the advice of all checks", 0),
    RP_FIELD_END};
static const struct rp_type doctor_type = {"doctor", sizeof(struct doctor_root), doctor_fields,
                                           "checks"};

static enum rp_code doctor_run(struct rp_ctx *ctx, const struct rp_dataset *dataset,
                               const struct rp_settings *settings, struct rp_result *result,
                               struct rp_err *err)
{
    struct doctor_root *root = result->root;
    size_t i;

    (void)ctx;
    (void)dataset;
    (void)settings;
    root->checks = RP_ARENA_NEW(&result->arena, struct check_row, NCHECKS);
    root->advice = RP_ARENA_NEW(&result->arena, const char *, NCHECKS);
    if (!root->checks || !root->advice)
        return rp_err_nomem(err, "checking this machine");
    root->nchecks = NCHECKS;
    for (i = 0; i < NCHECKS; i++) {
        struct check_row *row = &root->checks[i];

        row->check = checks[i].name;
        row->purpose = checks[i].purpose;
        checks[i].run(&result->arena, row);
        if (row->advice)
            root->advice[root->nadvice++] =
                rp_arena_textf(&result->arena, "%s: %s", row->check, row->advice);
    }
    return rp_arena_check(&result->arena, "checking this machine", err);
}

static const struct rp_option doctor_options[] = {RP_OPTION_END};

const struct rp_question_row rp_ask_doctor = {
    .question = {.name = "doctor",
                 .group = "other",
                 .summary = "check whether this machine is ready",
                 .details = "Checks the processor, memory, limits, drivers and libraries, and "
                            "gives advice where something is limited. An absent driver or library "
                            "matters only for its purpose.",
                 .examples = "reprise doctor\tone line per check\n",
                 .accepts = RP_ACCEPTS_NOTHING,
                 .options = doctor_options,
                 .type = &doctor_type},
    .run = doctor_run};
