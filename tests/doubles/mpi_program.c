/* SPDX-License-Identifier: Apache-2.0 */
/* A program of MPI: ten steps, in each of which the others wait for rank 2 for 100 ms; with an
   argument it hangs in the fourth. */
#include "fake_mpi.h"

#include "reprise/record.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* The late rank begins its time when the others have arrived, which may take long on a busy
 * machine.
 */
static void work(int is_late)
{
    if (is_late)
        fake_mpi_await_others(MPI_COMM_WORLD);
    nanosleep(&(struct timespec){.tv_nsec = is_late ? 100000000 : 1000000}, NULL);
}

int main(int argc, char **argv)
{
    double send[100] = {0}, receive[400];
    MPI_Request request;
    MPI_Comm pair;
    MPI_Win window;
    char name[32];
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &pair);
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "step %d", i);
        if (argc > 1 && rank == 2 && i == 3)
            pause();
        RP_RANGE_BEGIN(name);
        work(rank == 2);
        MPI_Allreduce(send, receive, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        PMPI_Barrier(pair); /* as bindings of other languages do */
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, receive, 100, MPI_DOUBLE, MPI_COMM_WORLD);
        RP_RANGE_END();
    }
    MPI_Gather(rank ? send : MPI_IN_PLACE, rank ? 100 : 0, rank ? MPI_DOUBLE : MPI_DATATYPE_NULL,
               receive, rank ? 0 : 100, rank ? MPI_DATATYPE_NULL : MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Send(send, 10, MPI_DOUBLE, (rank + 1) % size, 7, pair);
    MPI_Recv(receive, 10, MPI_DOUBLE, MPI_ANY_SOURCE, 7, pair, MPI_STATUS_IGNORE);
    work(rank == 1); /* late for what is waited for below */
    MPI_Iallreduce(send, receive, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_create(receive, sizeof receive, sizeof *receive, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &window);
    MPI_Win_fence(0, window);
    MPI_Put(send, 10, MPI_DOUBLE, (rank + 1) % size, 0, 10, MPI_DOUBLE, window);
    work(rank == 1);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Comm_free(&pair);
    if (!rank)
        puts("done");
    return MPI_Finalize();
}
