/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MPI has no common binary interface: handles are pointers in Open MPI and numbers in MPICH and
 * its relatives (Intel MPI, MVAPICH, Cray MPICH). So there is a table of functions for each, and
 * the symbol ompi_mpi_comm_world tells which library it is.
 */
#include "team/mpi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK           ((size_t)1 << 30) /* counts in MPI are ints */
#define TAG             7
#define FUNNELED        1 /* MPI_THREAD_FUNNELED in both */
#define MPICH_WORLD     0x44000000
#define MPICH_BYTE      0x4c00010d
#define MPICH_NO_STATUS ((void *)1)

struct mpi_pointers {
    int (*send)(const void *, int, void *, int, int, void *);
    int (*receive)(void *, int, void *, int, int, void *, void *);
    int (*rank)(void *, int *);
    int (*size)(void *, int *);
};

struct mpi_numbers {
    int (*send)(const void *, int, int, int, int, int);
    int (*receive)(void *, int, int, int, int, int, void *);
    int (*rank)(int, int *);
    int (*size)(int, int *);
};

struct rp_mpi {
    void *library, *world, *byte; /* the handles of Open MPI; world is NULL for those of MPICH */
    struct mpi_pointers pointers;
    struct mpi_numbers numbers;
    int (*init)(int *, char ***, int, int *);
    int (*finalize)(void);
};

static bool is_several(const char *variable)
{
    const char *text = getenv(variable);

    return text && strtol(text, NULL, 10) > 1;
}

bool rp_mpi_is_started(void)
{
    const char *wanted = getenv("REPRISE_MPI");

    if (wanted && !strcmp(wanted, "none"))
        return false;
    /* The variables of Open MPI; of hydra, Slurm's PMI2 and relatives; and of PMIx. SLURM_NTASKS
       alone is not enough, because a batch script has it, too. */
    return is_several("OMPI_COMM_WORLD_SIZE") || is_several("PMI_SIZE") ||
           (getenv("PMIX_RANK") && is_several("SLURM_STEP_NUM_TASKS"));
}

static enum rp_code load_library(struct rp_mpi *mpi, struct rp_err *err)
{
    static const char *const open_mpi[] = {"libmpi.so.40", "libmpi.so", "libmpich.so.12",
                                           "libmpi.so.12"};
    static const char *const mpich[] = {"libmpich.so.12", "libmpi.so.12", "libmpich.so",
                                        "libmpi.so.40"};
    const char *wanted = getenv("REPRISE_MPI");
    const char *const *names = is_several("PMI_SIZE") && !getenv("PMIX_RANK") ? mpich : open_mpi;

    if (wanted && *wanted)
        mpi->library = dlopen(wanted, RTLD_NOW | RTLD_GLOBAL);
    for (size_t i = 0; i < 4 && !mpi->library && !(wanted && *wanted); i++)
        mpi->library = dlopen(names[i], RTLD_NOW | RTLD_GLOBAL);
    if (mpi->library)
        return RP_OK;
    return rp_err_set(err, RP_UNSUPPORTED,
                      "this process was started beside others, but MPI cannot be loaded (%s): name "
                      "its library with REPRISE_MPI, or set REPRISE_MPI=none to let each process "
                      "work alone",
                      dlerror());
}

static bool find(const struct rp_mpi *mpi, const char *name, void *function)
{
    void *found = dlsym(mpi->library, name);

    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static enum rp_code find_functions(struct rp_mpi *mpi, struct rp_err *err)
{
    mpi->world = dlsym(mpi->library, "ompi_mpi_comm_world");
    mpi->byte = dlsym(mpi->library, "ompi_mpi_byte");
    bool numbers = !mpi->world;
    if (find(mpi, "MPI_Init_thread", &mpi->init) && find(mpi, "MPI_Finalize", &mpi->finalize) &&
        find(mpi, "MPI_Send", numbers ? (void *)&mpi->numbers.send : (void *)&mpi->pointers.send) &&
        find(mpi, "MPI_Recv",
             numbers ? (void *)&mpi->numbers.receive : (void *)&mpi->pointers.receive) &&
        find(mpi, "MPI_Comm_rank",
             numbers ? (void *)&mpi->numbers.rank : (void *)&mpi->pointers.rank) &&
        find(mpi, "MPI_Comm_size",
             numbers ? (void *)&mpi->numbers.size : (void *)&mpi->pointers.size))
        return RP_OK;
    return rp_err_set(err, RP_UNSUPPORTED, "the library of MPI lacks functions (REPRISE_MPI)");
}

enum rp_code rp_mpi_open(struct rp_mpi **out, size_t *rank, size_t *size, struct rp_err *err)
{
    struct rp_mpi *mpi = calloc(1, sizeof *mpi);
    int level = 0, r = 0, n = 1;

    *out = NULL;
    RP_TRY(rp_err_need(mpi, err, "starting MPI"));
    enum rp_code code = load_library(mpi, err);
    if (code == RP_OK)
        code = find_functions(mpi, err);
    if (code == RP_OK &&
        (mpi->init(NULL, NULL, FUNNELED, &level) ||
         (mpi->world ? mpi->pointers.rank(mpi->world, &r) || mpi->pointers.size(mpi->world, &n)
                     : mpi->numbers.rank(MPICH_WORLD, &r) || mpi->numbers.size(MPICH_WORLD, &n))))
        code = rp_err_set(err, RP_IO, "MPI does not start");
    if (code != RP_OK) {
        free(mpi);
        return code;
    }
    *rank = (size_t)r;
    *size = (size_t)n;
    *out = mpi;
    return RP_OK;
}

void rp_mpi_close(struct rp_mpi *mpi)
{
    if (!mpi)
        return;
    mpi->finalize(); /* the library stays loaded, because it may have threads */
    free(mpi);
}

enum rp_code rp_mpi_send(struct rp_mpi *mpi, const void *bytes, size_t n, size_t to,
                         struct rp_err *err)
{
    const char *at = bytes;
    int failed = 0;

    while (n && !failed) {
        int count = (int)(n < CHUNK ? n : CHUNK);

        failed = mpi->world ? mpi->pointers.send(at, count, mpi->byte, (int)to, TAG, mpi->world)
                            : mpi->numbers.send(at, count, MPICH_BYTE, (int)to, TAG, MPICH_WORLD);
        at += count;
        n -= (size_t)count;
    }
    return failed ? rp_err_set(err, RP_IO, "sending to process %zu failed", to) : RP_OK;
}

enum rp_code rp_mpi_receive(struct rp_mpi *mpi, void *bytes, size_t n, size_t from,
                            struct rp_err *err)
{
    char *at = bytes;
    int failed = 0;

    while (n && !failed) {
        int count = (int)(n < CHUNK ? n : CHUNK);

        failed = mpi->world
                     ? mpi->pointers.receive(at, count, mpi->byte, (int)from, TAG, mpi->world, NULL)
                     : mpi->numbers.receive(at, count, MPICH_BYTE, (int)from, TAG, MPICH_WORLD,
                                            MPICH_NO_STATUS);
        at += count;
        n -= (size_t)count;
    }
    return failed ? rp_err_set(err, RP_IO, "receiving from process %zu failed", from) : RP_OK;
}
