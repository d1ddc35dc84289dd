/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Multiplies two matrices in one of two orders of its loops, which differ by how they walk through
 * memory. `make demo` compares them:
 *
 *     cc -O2 -o by_columns multiply.c
 *     cc -O2 -DBY_ROWS -o by_rows multiply.c
 *     reprise try --against-command ./by_columns -- ./by_rows
 */
#include <stdio.h>

enum { N = 640 };
static float a[N][N], b[N][N], c[N][N];

int main(void)
{
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            a[i][j] = (float)(i % 7);
            b[i][j] = (float)(j % 5);
        }
    }
    for (int i = 0; i < N; i++) {
#ifdef BY_ROWS
        for (int k = 0; k < N; k++)
            for (int j = 0; j < N; j++)
                c[i][j] += a[i][k] * b[k][j];
#else
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++)
                c[i][j] += a[i][k] * b[k][j];
#endif
    }
    printf("%g\n", (double)c[N / 2][N / 3]);
    return 0;
}
