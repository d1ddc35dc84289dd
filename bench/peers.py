# SPDX-License-Identifier: Apache-2.0
"""What bench/run asks of the peers, each in a process of its own: load, then the analyses that answer what `reprise report` does.

    peers.py hta TRACE...         HolisticTraceAnalysis: load, temporal breakdown, overlap, idle breakdown, launch statistics
    peers.py tracelens TRACE...   AMD's TraceLens: tree, GPU timeline and operators of each rank, collectives of several

Prints "load_s SECONDS", the time without importing the modules."""
import contextlib, io, logging, sys, time


def hta(files):
    logging.disable(logging.CRITICAL)
    from hta.trace_analysis import TraceAnalysis
    begin = time.monotonic()
    analysis = TraceAnalysis(trace_files=dict(enumerate(files)), trace_dir="/")
    ranks = list(range(len(files)))
    analysis.get_temporal_breakdown(visualize=False)
    analysis.get_comm_comp_overlap(visualize=False)
    analysis.get_idle_time_breakdown(ranks=ranks, visualize=False)
    analysis.get_cuda_kernel_launch_stats(ranks=ranks, visualize=False)
    return begin


def tracelens(files):
    from TraceLens import NcclAnalyser, TreePerfAnalyzer
    begin = time.monotonic()
    for path in files:
        rank = TreePerfAnalyzer.from_file(path)
        rank.get_df_gpu_timeline()
        rank.get_df_kernel_launchers_summary(rank.get_df_kernel_launchers())
    if len(files) > 1:
        run = NcclAnalyser(files, len(files))
        run.build_df_nccl_implicit_sync_cat()
        run.build_df_straggler_summary()
    return begin


def main():
    peer, files = {"hta": hta, "tracelens": tracelens}[sys.argv[1]], sys.argv[2:]
    with contextlib.redirect_stdout(io.StringIO()):
        begin = peer(files)
    print("load_s", time.monotonic() - begin)


main()
