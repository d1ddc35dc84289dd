/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs custom calls that JAX makes to LAPACK with a library (lapack.h): singular values,
 * eigenvalues, Schur and Hessenberg forms, reduction to three diagonals, QR with pivots. Two forms
 * are known: the typed one, "lapack_sgesdd_ffi", with letters in its configuration, and the older
 * "lapack_sgesdd", with integers as its first operands. What JAX gives to cuSOLVER, hipSOLVER and
 * MAGMA runs here as well ("cusolver_gesvdj_ffi"); signs of vectors may differ from theirs. Arrays
 * here are row-major, LAPACK's are column-major: every matrix of a batch is transposed into a block
 * and back.
 */
#include "exec/ref/custom.h"
#include "exec/ref/lapack.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS    20
#define SCRATCH  6
#define OPERANDS 4

struct call;
typedef void routine_fn(struct call *c);

/*
 * Shapes of operands and results. Each has an entry, in order: a letter by which the routine knows
 * it, its type (T: of the routine, R and C: real or complex of its width, I: s32) and its last
 * dimensions (m, n: of the main operand, k: the lesser one, p: n - 1, *: any). "-" is work memory
 * from the caller.
 */
struct routine {
    const char *name;
    const char *operands;
    const char *results[4]; /* typed real, typed complex, older real, older complex; NULL: none */
    routine_fn *run;
    uint8_t main;           /* the operand from which m and n come */
    const char *fortran[2]; /* names of the calls for GPUs: real, complex */
};

typedef void fortran_fn(void *, void *, void *, void *, void *, void *, void *, void *, void *,
                        void *, void *, void *, void *, void *, void *, void *, void *, void *,
                        void *, void *);

struct lapack {
    const struct routine *routine;
    const char *results;
    fortran_fn *fn;
    bool is_complex, wide, older;
    uint32_t first; /* the first operand after the integers */
    char mode[2];   /* for the typed form: the letters of the routine */
    bool flags[2];
    int64_t low, high;
};

/* One matrix of a batch, column by column. */
struct block {
    void *data;
    int64_t dims[2]; /* of a vector only the first is used */
};

struct call {
    const struct lapack *l;
    struct rp_tensor *const *in; /* all operands */
    struct block operand[OPERANDS], result[26];
    int64_t m, n, k, info;
    void *scratch[SCRATCH];
    size_t nscratch;
    bool no_memory, wrong_shape;
};

/* ---- calling Fortran ---- */

/* In the arguments of call `c`, this stands for the work space, followed by its size. */
#define WORK_HERE ((void *)c)

/* Numbers are passed by address. LAPACK's have 32 bits, in some libraries 64; only the lower half
   of 64 bits is read in either case. The lengths of strings, all 1, follow the arguments. */
static void fortran_call(struct call *c, void *const *words, size_t n, void *work, int64_t *lwork)
{
    void *w[WORDS];
    size_t used = 0;

    for (size_t i = 0; i < n; i++) {
        if (!words[i])
            continue;
        w[used++] = words[i] == WORK_HERE ? work : words[i];
        if (words[i] == WORK_HERE)
            w[used++] = lwork;
    }
    while (used < WORDS)
        w[used++] = (void *)(uintptr_t)1;
    c->l->fn(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13],
             w[14], w[15], w[16], w[17], w[18], w[19]);
}

/* Gives zeroed memory until the call is over. */
static void *scratch(struct call *c, int64_t n, size_t unit)
{
    void *p = c->nscratch < SCRATCH ? calloc((size_t)(n > 0 ? n : 0) + 1, unit) : NULL;

    if (p)
        c->scratch[c->nscratch++] = p;
    else
        c->no_memory = true;
    return p;
}

static size_t real_unit(const struct call *c)
{
    return c->l->wide ? 8 : 4;
}

static size_t unit_of(const struct call *c)
{
    return real_unit(c) * (c->l->is_complex ? 2 : 1);
}

/* Calls the routine, leaving out NULL arguments; with WORK_HERE, it is first asked how much it
   needs. */
static void invoke(struct call *c, void *const *words, size_t n)
{
    bool asks = false;
    double probe[2] = {0, 0};
    int64_t lwork = -1;
    void *work = NULL;
    float narrow;

    if (c->no_memory || c->wrong_shape)
        return;
    for (size_t i = 0; i < n; i++)
        asks |= words[i] == WORK_HERE;
    if (asks) {
        fortran_call(c, words, n, probe, &lwork);
        memcpy(&narrow, probe, sizeof narrow);
        double size = c->l->wide ? probe[0] : (double)narrow;
        lwork = c->info || !(size >= 1) || size > 1e12 ? 1 : (int64_t)(size * (1 + 1e-6)) + 1;
        work = scratch(c, lwork, unit_of(c));
        if (!work || (int32_t)c->info)
            return;
        c->info = 0;
    }
    fortran_call(c, words, n, work, &lwork);
}
#define INVOKE(c, ...) \
    invoke(c, (void *[]){__VA_ARGS__}, sizeof((void *[]){__VA_ARGS__}) / sizeof(void *))

/* ---- the routines ---- */

static struct block *result(struct call *c, char letter)
{
    return &c->result[letter - 'a'];
}

static void *data(struct call *c, char letter)
{
    return result(c, letter)->data;
}

static size_t block_bytes(const struct block *b, size_t unit)
{
    return (size_t)b->dims[0] * (size_t)b->dims[1] * unit;
}

/* A result that begins as a copy of an operand. */
static void take(struct call *c, char letter, size_t operand)
{
    memcpy(data(c, letter), c->operand[operand].data, block_bytes(result(c, letter), unit_of(c)));
}

static int64_t operand_integer(const struct call *c, size_t i)
{
    return i < c->l->first && c->in[i]->n ? rp_tensor_integer(c->in[i], 0) : 0;
}

static int64_t at_least_one(int64_t n)
{
    return n > 0 ? n : 1;
}

/* A: all columns of both sides, S: as many as there are singular values, N: none. */
static char svd_mode(struct call *c)
{
    char mode = c->l->older ? !operand_integer(c, 1)  ? 'N'
                              : operand_integer(c, 0) ? 'A'
                                                      : 'S'
                            : c->l->mode[0];
    int64_t columns = mode == 'A' ? c->m : c->k, rows = mode == 'A' ? c->n : c->k;

    c->wrong_shape |=
        mode != 'N' && (result(c, 'u')->dims[1] != columns || result(c, 'v')->dims[0] != rows);
    return mode;
}

/* The data of a result, or scratch memory if there is no such result. */
static void *data_or_scratch(struct call *c, char letter)
{
    return data(c, letter) ? data(c, letter) : scratch(c, 1, 16);
}

static void gesdd(struct call *c)
{
    int64_t k = c->k, most = c->m > c->n ? c->m : c->n;
    int64_t reals = 5 * k * k + 7 * k > 2 * most * k + 2 * k * k + k ? 5 * k * k + 7 * k
                                                                     : 2 * most * k + 2 * k * k + k;
    int64_t lda = at_least_one(c->m), ldv = at_least_one(result(c, 'v')->dims[0]);
    char mode = svd_mode(c);
    void *integers = scratch(c, 8 * k, 8);
    void *rwork = c->l->is_complex ? scratch(c, reals, real_unit(c)) : NULL;

    take(c, 'a', 0);
    INVOKE(c, &mode, &c->m, &c->n, data(c, 'a'), &lda, data(c, 's'), data_or_scratch(c, 'u'), &lda,
           data_or_scratch(c, 'v'), &ldv, WORK_HERE, rwork, integers, &c->info);
}

static void gesvd(struct call *c)
{
    int64_t lda = at_least_one(c->m), ldv = at_least_one(result(c, 'v')->dims[0]);
    char mode = svd_mode(c);
    void *rwork = c->l->is_complex ? scratch(c, 5 * c->k, real_unit(c)) : NULL;

    take(c, 'a', 0);
    INVOKE(c, &mode, &mode, &c->m, &c->n, data(c, 'a'), &lda, data(c, 's'), data_or_scratch(c, 'u'),
           &lda, data_or_scratch(c, 'v'), &ldv, WORK_HERE, rwork, &c->info);
}

/* Unpacks vectors of real matrices: for a conjugate pair, LAPACK gives the real and the imaginary
   part as two columns. */
static void unpack_vectors(struct call *c, const void *packed, const void *imaginary, void *to)
{
    size_t n = (size_t)c->n, unit = real_unit(c);
    const char *from = packed;

    for (size_t j = 0; j < n; j++) {
        double w =
            c->l->wide ? ((const double *)imaginary)[j] : (double)((const float *)imaginary)[j];
        bool pair = w != 0 && j + 1 < n;

        for (size_t i = 0; i < n; i++) {
            char *here = (char *)to + (j * n + i) * 2 * unit, *next = here + n * 2 * unit;

            memcpy(here, from + (j * n + i) * unit, unit);
            memset(here + unit, 0, unit);
            if (!pair)
                continue;
            memcpy(here + unit, from + ((j + 1) * n + i) * unit, unit);
            memcpy(next, here, 2 * unit);
            if (c->l->wide)
                ((double *)(void *)next)[1] *= -1;
            else
                ((float *)(void *)next)[1] *= -1;
        }
        j += pair;
    }
}

static bool is_finite(const struct call *c, const struct block *b)
{
    size_t n = block_bytes(b, unit_of(c)) / real_unit(c);

    for (size_t i = 0; i < n; i++)
        if (!isfinite(c->l->wide ? ((const double *)b->data)[i]
                                 : (double)((const float *)b->data)[i]))
            return false;
    return true;
}

/* Like JAX, does not give LAPACK a matrix that is not finite, because it may not return. */
static void geev(struct call *c)
{
    char left = c->l->older ? (char)operand_integer(c, 2) : c->l->mode[0];
    char right = c->l->older ? (char)operand_integer(c, 3) : c->l->mode[1];
    int64_t lda = at_least_one(c->n);
    void *a = scratch(c, c->n * c->n, unit_of(c));
    void *vl = c->l->is_complex ? data(c, 'l') : scratch(c, c->n * c->n, unit_of(c));
    void *vr = c->l->is_complex ? data(c, 'r') : scratch(c, c->n * c->n, unit_of(c));
    void *rwork = c->l->is_complex ? scratch(c, 2 * c->n, real_unit(c)) : NULL;

    if (c->no_memory)
        return;
    if (!is_finite(c, &c->operand[0])) {
        c->info = -4;
        return;
    }
    left = left == 'V' ? 'V' : 'N';
    right = right == 'V' ? 'V' : 'N';
    memcpy(a, c->operand[0].data, block_bytes(&c->operand[0], unit_of(c)));
    INVOKE(c, &left, &right, &c->n, a, &lda, data(c, 'w'), data(c, 'j'), vl, &lda, vr, &lda,
           WORK_HERE, rwork, &c->info);
    if (!c->l->is_complex && left == 'V')
        unpack_vectors(c, vl, data(c, 'j'), data(c, 'l'));
    if (!c->l->is_complex && right == 'V')
        unpack_vectors(c, vr, data(c, 'j'), data(c, 'r'));
}

static void gees(struct call *c)
{
    char mode = c->l->older ? (char)operand_integer(c, 2) : c->l->mode[0], no = 'N';
    int64_t lda = at_least_one(c->n), chosen = 0;
    void *rwork = c->l->is_complex ? scratch(c, c->n, real_unit(c)) : NULL;
    void *flags = scratch(c, c->n, 8);

    mode = mode == 'V' ? 'V' : 'N';
    take(c, 'a', 0);
    INVOKE(c, &mode, &no, &no /* no function chooses */, &c->n, data(c, 'a'), &lda, &chosen,
           data(c, 'w'), data(c, 'j'), data(c, 'v'), &lda, WORK_HERE, rwork, flags, &c->info);
}

static void gehrd(struct call *c)
{
    int64_t low = c->l->older ? operand_integer(c, 1) : c->l->low;
    int64_t high = c->l->older ? operand_integer(c, 2) : c->l->high;
    int64_t lda = at_least_one(c->n);

    if (low < 1 || low > lda || high < (low < c->n ? low : c->n) || high > c->n) {
        c->wrong_shape = true;
        return;
    }
    take(c, 'a', 0);
    INVOKE(c, &c->n, &low, &high, data(c, 'a'), &lda, data(c, 't'), WORK_HERE, &c->info);
}

static void sytrd(struct call *c)
{
    char uplo = c->l->older ? operand_integer(c, 1) ? 'L' : 'U' : c->l->mode[0];
    int64_t lda = at_least_one(c->n);

    take(c, 'a', 0);
    INVOKE(c, &uplo, &c->n, data(c, 'a'), &lda, data(c, 'd'), data(c, 'e'), data(c, 't'), WORK_HERE,
           &c->info);
}

static void syevd(struct call *c)
{
    char uplo = c->l->older ? operand_integer(c, 0) ? 'L' : 'U' : c->l->mode[0], vectors = 'V';
    int64_t n = c->n, lda = at_least_one(n);
    int64_t reals = 1 + 5 * n + 2 * n * n, integers = 3 + 5 * n;
    void *rwork = c->l->is_complex ? scratch(c, reals, real_unit(c)) : NULL;
    void *iwork = scratch(c, integers, 8);

    take(c, 'a', 0);
    INVOKE(c, &vectors, &uplo, &c->n, data(c, 'a'), &lda, data(c, 'w'), WORK_HERE, rwork,
           rwork ? &reals : NULL, iwork, &integers, &c->info);
}

static void geqp3(struct call *c)
{
    int64_t lda = at_least_one(c->m), *pivots = scratch(c, c->n, 8);
    void *rwork = c->l->is_complex ? scratch(c, 2 * c->n, real_unit(c)) : NULL;

    if (!pivots)
        return;
    memcpy(pivots, c->operand[1].data, block_bytes(&c->operand[1], 4));
    take(c, 'a', 0);
    INVOKE(c, &c->m, &c->n, data(c, 'a'), &lda, pivots, data(c, 't'), WORK_HERE, rwork, &c->info);
    memcpy(data(c, 'p'), pivots, block_bytes(result(c, 'p'), 4));
}

static void ormqr(struct call *c)
{
    char side = c->l->flags[0] ? 'L' : 'R';
    char turn = !c->l->flags[1] ? 'N' : c->l->is_complex ? 'C' : 'T';
    int64_t lda = at_least_one(c->operand[0].dims[0]), ldc = at_least_one(c->m);
    int64_t k = c->operand[1].dims[0];

    if (c->operand[0].dims[0] != (side == 'L' ? c->m : c->n) || k > c->operand[0].dims[1] ||
        k > c->operand[0].dims[0]) {
        c->wrong_shape = true;
        return;
    }
    take(c, 'c', 2);
    INVOKE(c, &side, &turn, &c->m, &c->n, &k, c->operand[0].data, &lda, c->operand[1].data,
           data(c, 'c'), &ldc, WORK_HERE, &c->info);
}

/* ---- of GPUs ---- */

/* Gives V instead of its adjoint. */
static void gpu_svd(struct call *c)
{
    struct block *v = result(c, 'v'), kept = *v;
    size_t unit = unit_of(c), rows = (size_t)kept.dims[0], columns = (size_t)kept.dims[1];

    *v =
        (struct block){scratch(c, kept.dims[0] * kept.dims[1], unit), {kept.dims[1], kept.dims[0]}};
    if (v->data)
        gesdd(c);
    for (size_t i = 0; v->data && i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            char *to = (char *)kept.data + (j * rows + i) * unit;

            memcpy(to, (char *)v->data + (i * columns + j) * unit, unit);
            if (!c->l->is_complex)
                continue;
            if (c->l->wide)
                ((double *)(void *)to)[1] *= -1;
            else
                ((float *)(void *)to)[1] *= -1;
        }
    *v = kept;
}

/* Gives complex eigenvalues, and vectors like LAPACK. */
static void gpu_geev(struct call *c)
{
    char left = c->l->mode[0], right = c->l->mode[1];
    int64_t lda = at_least_one(c->n);
    size_t unit = real_unit(c);
    bool pair = !c->l->is_complex;
    void *re = pair ? scratch(c, c->n, unit) : data(c, 'w');
    void *im = pair ? scratch(c, c->n, unit) : NULL;
    void *rwork = pair ? NULL : scratch(c, 2 * c->n, unit);

    if (c->no_memory)
        return;
    if (!is_finite(c, &c->operand[0])) {
        c->info = -4;
        return;
    }
    INVOKE(c, &left, &right, &c->n, c->operand[0].data, &lda, re, im, data(c, 'l'), &lda,
           data(c, 'r'), &lda, WORK_HERE, rwork, &c->info);
    for (size_t i = 0; pair && i < (size_t)c->n; i++) {
        memcpy((char *)data(c, 'w') + 2 * i * unit, (char *)re + i * unit, unit);
        memcpy((char *)data(c, 'w') + (2 * i + 1) * unit, (char *)im + i * unit, unit);
    }
}

#define ALL(shapes)                    \
    {                                  \
        shapes, shapes, shapes, shapes \
    }
#define TYPED(shapes)              \
    {                              \
        shapes, shapes, NULL, NULL \
    }
#define SVD "aTmn sRk uTm* vT*n iI"
static const struct routine routines[] = {
    {"gesdd", "aTmn", ALL(SVD), gesdd, 0, {NULL, NULL}},
    {"gesvd", "aTmn", TYPED(SVD), gesvd, 0, {NULL, NULL}},
    {"geev",
     "aTnn",
     {"wRn jRn lCnn rCnn iI", "wCn lCnn rCnn iI", "- - - wRn jRn lCnn rCnn iI",
      "- - wCn lCnn rCnn iI"},
     geev,
     0,
     {NULL, NULL}},
    {"gees",
     "aTnn",
     {"aTnn vTnn wRn jRn dI iI", "aTnn vTnn wCn dI iI", "aTnn wRn jRn vTnn dI iI",
      "aTnn - wCn vTnn dI iI"},
     gees,
     0,
     {NULL, NULL}},
    {"gehrd", "aTnn", ALL("aTnn tTp iI"), gehrd, 0, {NULL, NULL}},
    {"sytrd", "aTnn", ALL("aTnn dRn eRp tTp iI"), sytrd, 0, {NULL, NULL}},
    {"hetrd", "aTnn", ALL("aTnn dRn eRp tTp iI"), sytrd, 0, {NULL, NULL}},
    {"syevd", "aTnn", ALL("aTnn wRn iI"), syevd, 0, {NULL, NULL}},
    {"heevd", "aTnn", ALL("aTnn wRn iI"), syevd, 0, {NULL, NULL}},
    {"geqp3", "aTmn pIn", TYPED("aTmn pIn tTk"), geqp3, 0, {NULL, NULL}},
    {"ormqr", "aT** tT* cTmn", TYPED("cTmn"), ormqr, 2, {NULL, NULL}},
    {"unmqr", "aT** tT* cTmn", TYPED("cTmn"), ormqr, 2, {NULL, NULL}},
};

/* Names after "cu" or "hip"; older ones do not end in _ffi, and their configuration cannot be read,
   so only what the shapes say is known. */
#define GPU_SVD(name)                                             \
    {                                                             \
        name, "aTmn", TYPED("aTmn sRk uTm* vTn* iI"), gpu_svd, 0, \
        {                                                         \
            "gesdd", "gesdd"                                      \
        }                                                         \
    }
static const struct routine gpu_routines[] = {
    GPU_SVD("solver_gesvdj"),
    GPU_SVD("solver_gesvdp"),
    {"solver_gesvd", "aTmn", TYPED(SVD), gesvd, 0, {"gesvd", "gesvd"}},
    {"solver_gesdd", "aTmn", TYPED(SVD), gesdd, 0, {"gesdd", "gesdd"}},
    {"solver_geev", "aTnn", TYPED("- wCn lTnn rTnn iI"), gpu_geev, 0, {"geev", "geev"}},
    {"solver_sytrd", "aTnn", TYPED("aTnn dRn eRp tTp iI"), sytrd, 0, {"sytrd", "hetrd"}},
    {"solver_ormqr", "aT** tT* cTmn", TYPED("cTmn"), ormqr, 2, {"ormqr", "unmqr"}},
    {"hybrid_eig_real",
     "aTnn",
     {"wRn jRn lCnn rCnn iI", NULL, NULL, NULL},
     geev,
     0,
     {"geev", "geev"}},
    {"hybrid_eig_comp", "aTnn", {NULL, "wCn lCnn rCnn iI", NULL, NULL}, geev, 0, {"geev", "geev"}},
    {"hybrid_geqp3", "aTmn pIn", TYPED("aTmn pIn tTk"), geqp3, 0, {"geqp3", "geqp3"}},
};

/* ---- blocks ---- */

static unsigned type_of(const struct lapack *l, char letter)
{
    bool is_complex = letter == 'C' || (letter == 'T' && l->is_complex);

    if (letter == 'I')
        return RP_ELEM_S32;
    return is_complex ? l->wide ? RP_ELEM_C128 : RP_ELEM_C64 : l->wide ? RP_ELEM_F64 : RP_ELEM_F32;
}

/* Entry i of the shapes, or NULL. */
static const char *shape_entry(const char *shapes, size_t i)
{
    for (; shapes && i; i--) {
        shapes = strchr(shapes, ' ');
        if (shapes)
            shapes++;
    }
    return shapes;
}

static bool shape_matches(const struct call *c, const char *entry, const struct rp_tensor *t,
                          const struct rp_tensor *main, struct block *out)
{
    size_t nbatch = main->rank - 2, nlast = strcspn(entry, " ") - 2;

    if (t->elem != type_of(c->l, entry[1]) || t->rank != nbatch + nlast ||
        memcmp(t->dims, main->dims, nbatch * sizeof *t->dims) != 0)
        return false;
    *out = (struct block){NULL, {1, 1}};
    for (size_t i = 0; i < nlast; i++) {
        char is = entry[2 + i];
        int64_t want = is == 'm' ? c->m : is == 'n' ? c->n : is == 'k' ? c->k : c->n - 1;

        out->dims[i] = t->dims[nbatch + i];
        if (is != '*' && out->dims[i] != (want > 0 ? want : 0))
            return false;
    }
    return true;
}

/* Copies matrix b of an array; out: from the block to the array. */
static void move_block(struct rp_tensor *t, size_t b, const struct block *block, bool out)
{
    size_t rows = (size_t)block->dims[0], columns = (size_t)block->dims[1], unit = t->unit;
    unsigned char *array = t->data + b * rows * columns * unit, *column = block->data;

    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            unsigned char *x = array + (i * columns + j) * unit,
                          *y = column + (j * rows + i) * unit;

            memcpy(out ? x : y, out ? y : x, unit);
        }
}

/* ---- a custom call ---- */

static struct rp_tensor *result_part(struct rp_tensor *all, size_t i)
{
    return all->elem != RP_ELEM_TUPLE ? i ? NULL : all : i < all->nparts ? all->parts[i] : NULL;
}

/* Makes room for one matrix of every operand and result, after checking their shapes. */
static enum rp_code blocks_new(struct call *c, const struct rp_node *node, struct rp_tensor *all,
                               struct rp_err *err)
{
    const struct rp_tensor *main = c->in[c->l->first + c->l->routine->main];
    const char *entry;

    c->m = main->dims[main->rank - 2];
    c->n = main->dims[main->rank - 1];
    c->k = c->m < c->n ? c->m : c->n;
    for (size_t i = 0; (entry = shape_entry(c->l->routine->operands, i)) != NULL; i++) {
        if (!shape_matches(c, entry, c->in[c->l->first + i], main, &c->operand[i]))
            return rp_node_error(node, RP_FORMAT, err, "wrong shape of operand %zu",
                                 c->l->first + i);
        c->operand[i].data = calloc(block_bytes(&c->operand[i], 16) + 16, 1);
        c->no_memory |= !c->operand[i].data;
    }
    for (size_t i = 0; (entry = shape_entry(c->l->results, i)) != NULL; i++) {
        struct rp_tensor *part = result_part(all, i);
        struct block *block = *entry == '-' ? NULL : result(c, *entry);

        if (!block)
            continue;
        if (!part || !shape_matches(c, entry, part, main, block))
            return rp_node_error(node, RP_FORMAT, err, "wrong shape of result %zu", i);
        block->data = calloc(block_bytes(block, 16) + 16, 1);
        c->no_memory |= !block->data;
    }
    return c->no_memory ? rp_err_nomem(err, "LAPACK") : RP_OK;
}

static enum rp_code run_matrix(struct call *c, const struct rp_node *node, struct rp_tensor *all,
                               size_t b, struct rp_err *err)
{
    const char *entry;

    c->info = 0;
    for (size_t i = 0; shape_entry(c->l->routine->operands, i); i++)
        move_block(c->in[c->l->first + i], b, &c->operand[i], false);
    c->l->routine->run(c);
    int32_t info = (int32_t)c->info;
    if (data(c, 'i'))
        memcpy(data(c, 'i'), &info, sizeof info);
    for (size_t i = 0; i < c->nscratch; i++)
        free(c->scratch[i]);
    c->nscratch = 0;
    if (c->no_memory)
        return rp_err_nomem(err, "LAPACK");
    if (c->wrong_shape)
        return rp_node_error(node, RP_FORMAT, err, "shapes do not match the mode of LAPACK's %s",
                             c->l->routine->name);
    for (size_t i = 0; (entry = shape_entry(c->l->results, i)) != NULL; i++)
        if (*entry != '-')
            move_block(result_part(all, i), b, result(c, *entry), true);
    return RP_OK;
}

static void call_release(struct call *c)
{
    for (size_t i = 0; i < OPERANDS; i++)
        free(c->operand[i].data);
    for (size_t i = 0; i < 26; i++)
        free(c->result[i].data);
}

static RP_KERNEL(lapack_run)
{
    RP_SCOPED(call_release) struct call c = {.l = node->attrs, .in = in};
    RP_SCOPED(rp_tensors_release) struct rp_tensors parts = {0};
    RP_SCOPED(rp_tensor_drop_at) struct rp_tensor *all = NULL;
    const struct rp_tensor *main = in[c.l->first + c.l->routine->main];

    RP_TRY(rp_custom_parts(node, &parts, err));
    RP_TRY(rp_custom_give(node, &parts, &all, err));
    RP_TRY(blocks_new(&c, node, all, err));
    size_t matrices = c.k ? main->n / ((size_t)c.m * (size_t)c.n) : 0;
    for (size_t b = 0; b < matrices; b++)
        RP_TRY(run_matrix(&c, node, all, b, err));
    *out = all;
    all = NULL;
    return RP_OK;
}

static char config_letter(const struct rp_plan *plan, const struct rp_node *node, const char *key,
                          const char *letters, char absent)
{
    for (; *letters; letters++)
        if (rp_config_letter(plan, node, key, *letters))
            return *letters;
    return absent;
}

static void read_config(struct rp_plan *plan, const struct rp_node *node, struct lapack *l)
{
    if (l->routine->run == geev) {
        l->mode[0] = config_letter(plan, node, "compute_left", "VN", 'N');
        l->mode[1] = config_letter(plan, node, "compute_right", "VN", 'N');
    } else if (l->routine->run == sytrd || l->routine->run == syevd) {
        l->mode[0] = config_letter(plan, node, "uplo", "LU", 'U');
    } else {
        l->mode[0] = config_letter(plan, node, "mode", "ASNV", 'N');
    }
    l->flags[0] = rp_config_flag(plan, node, "left");
    l->flags[1] = rp_config_flag(plan, node, "transpose");
    l->low = (int64_t)rp_config_number(plan, node, "low", 1);
    l->high = (int64_t)rp_config_number(plan, node, "high", 0);
}

/* Finds the routine of "lapack_sgesdd_ffi", and the letter of its type. */
static const struct routine *find_routine(const char *name, size_t n, char *letter, bool *older)
{
    static const char begin[] = "lapack_", end[] = "_ffi";
    size_t at = sizeof begin - 1, tail = sizeof end - 1;

    if (n < at + 2 || memcmp(name, begin, at) != 0 || !memchr("sdcz", name[at], 4))
        return NULL;
    *letter = name[at];
    *older = n < at + tail || memcmp(name + n - tail, end, tail) != 0;
    name += at + 1;
    n -= at + 1 + (*older ? 0 : tail);
    for (size_t i = 0; i < sizeof routines / sizeof *routines; i++)
        if (n == strlen(routines[i].name) && !memcmp(name, routines[i].name, n))
            return &routines[i];
    return NULL;
}

static const struct routine *find_gpu_routine(const char *name, size_t n, bool *older)
{
    static const char end[] = "_ffi";
    size_t at = n > 2 && !memcmp(name, "cu", 2) ? 2 : n > 3 && !memcmp(name, "hip", 3) ? 3 : 0;
    size_t tail = sizeof end - 1;

    if (!at)
        return NULL;
    *older = n < at + tail || memcmp(name + n - tail, end, tail) != 0;
    n -= *older ? 0 : tail;
    for (size_t i = 0; i < sizeof gpu_routines / sizeof *gpu_routines; i++)
        if (n - at == strlen(gpu_routines[i].name) &&
            !memcmp(name + at, gpu_routines[i].name, n - at))
            return &gpu_routines[i];
    return NULL;
}

/* Derives what the CPU's typed calls have as letters from flags and shapes. */
static enum rp_code read_gpu_config(struct rp_plan *plan, const struct rp_node *node,
                                    struct lapack *l, bool older, struct rp_err *err)
{
    const struct rp_value_shape *a = rp_node_operand(plan, node, l->routine->main);
    bool svd = l->routine->run == gesvd || l->routine->run == gesdd || l->routine->run == gpu_svd;
    int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1], k = m < n ? m : n;
    bool turned = older ? m < n : rp_config_flag(plan, node, "transposed");

    l->mode[0] = rp_config_flag(plan, node, "left") ? 'V' : 'N';
    l->mode[1] = rp_config_flag(plan, node, "right") ? 'V' : 'N';
    if (l->routine->run == sytrd) {
        l->mode[0] = rp_config_flag(plan, node, "lower") ? 'L' : 'U';
        if (older)
            return rp_node_error(node, RP_UNSUPPORTED, err,
                                 "its configuration does not say which triangle is used");
    }
    if (!svd)
        return RP_OK;
    if (node->shape->elem != RP_ELEM_TUPLE || node->shape->nparts < 5)
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of operands or results");
    if (node->shape->parts[2]->rank < 2) { /* singular values only */
        l->results = "aTmn sRk - - iI";
        l->mode[0] = 'N';
        return RP_OK;
    }
    if (l->routine->run != gpu_svd && turned)
        l->results = "aTmn sRk vT*n uTm* iI";
    a = node->shape->parts[2];
    l->mode[0] = a->dims[a->rank - 1] == k && a->dims[a->rank - 2] == m ? 'S' : 'A';
    if (l->routine->run != gpu_svd && turned)
        l->mode[0] = a->dims[a->rank - 2] == k ? 'S' : 'A';
    else if (m == k) { /* U does not tell, because it is square in both modes */
        a = node->shape->parts[3];
        l->mode[0] = a->dims[a->rank - (l->routine->run == gpu_svd ? 1 : 2)] == k ? 'S' : 'A';
    }
    return RP_OK;
}

static char type_letter(unsigned elem)
{
    return elem == RP_ELEM_F32    ? 's'
           : elem == RP_ELEM_F64  ? 'd'
           : elem == RP_ELEM_C64  ? 'c'
           : elem == RP_ELEM_C128 ? 'z'
                                  : 0;
}

RP_PREPARE(rp_lapack_prepare)
{
    struct lapack *l = RP_NODE_NEW(plan, struct lapack);
    struct rp_lapack library;
    char letter = 0, name[32];
    bool on_gpu = false, old_name = false;
    size_t n;
    const char *target = rp_custom_name(plan, node, &n);

    RP_TRY(rp_err_need(l, err, "planning"));
    l->routine = find_routine(target, n, &letter, &l->older);
    if (!l->routine && (l->routine = find_gpu_routine(target, n, &old_name)) != NULL) {
        on_gpu = true;
        letter = l->routine->main < node->nin
                     ? type_letter(rp_node_operand(plan, node, l->routine->main)->elem)
                     : 0;
        if (!letter)
            return rp_node_error(node, RP_FORMAT, err, "wrong type of the operands");
    }
    if (!l->routine)
        return rp_node_error(node, RP_UNSUPPORTED, err, "unsupported custom call '%.*s'", (int)n,
                             target);
    l->is_complex = letter == 'c' || letter == 'z';
    l->wide = letter == 'd' || letter == 'z';
    l->results = l->routine->results[2 * l->older + l->is_complex];
    uint32_t operands = 0;
    while (shape_entry(l->routine->operands, operands))
        operands++;
    if (!l->results || node->nin < operands || (on_gpu && node->nin != operands) ||
        rp_node_operand(plan, node, node->nin - operands + l->routine->main)->rank < 2)
        return rp_node_error(node, RP_FORMAT, err, "wrong shape of operands or results");
    l->first = node->nin - operands;
    for (uint32_t i = 0; i < l->first; i++)
        if (!rp_elem_is_signed(rp_node_operand(plan, node, i)->elem) &&
            !rp_elem_is_unsigned(rp_node_operand(plan, node, i)->elem))
            return rp_node_error(node, RP_FORMAT, err, "operand %u is not an integer", i);
    for (uint32_t i = 0; i < operands; i++) {
        const struct rp_value_shape *shape = rp_node_operand(plan, node, l->first + i);

        for (uint32_t d = 0; d < shape->rank; d++)
            if (shape->dims[d] > 1 << 20)
                return rp_node_error(node, RP_LIMIT, err, "matrices of over 2^20 rows or columns");
    }
    read_config(plan, node, l);
    if (on_gpu)
        RP_TRY(read_gpu_config(plan, node, l, old_name, err));
    snprintf(name, sizeof name, "%c%s", letter,
             on_gpu ? l->routine->fortran[l->is_complex] : l->routine->name);
    rp_lapack_open(&library);
    *(void **)&l->fn = rp_lapack_find(&library, name);
    if (!l->fn)
        return rp_node_error(
            node, RP_UNSUPPORTED, err,
            "custom call '%.*s' needs LAPACK: install liblapack3 (Debian), lapack (other systems) "
            "or SciPy (pip install scipy), or name a library that has it in REPRISE_LAPACK",
            (int)n, target);
    node->attrs = l;
    node->run = lapack_run;
    return RP_OK;
}

#define LIBRARY(prefix)                                          \
    {prefix "solver_ges*", rp_lapack_prepare, lapack_run},       \
        {prefix "solver_gee*", rp_lapack_prepare, lapack_run},   \
        {prefix "solver_sytrd*", rp_lapack_prepare, lapack_run}, \
        {prefix "solver_ormqr*", rp_lapack_prepare, lapack_run}, \
    {                                                            \
        prefix "hybrid_*", rp_lapack_prepare, lapack_run         \
    }

const struct rp_custom_target rp_custom_lapack[] = {
    {"lapack_*", rp_lapack_prepare, lapack_run},
    LIBRARY("cu"),
    LIBRARY("hip"),
    {NULL, NULL, NULL},
};
