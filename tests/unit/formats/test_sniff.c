/* SPDX-License-Identifier: Apache-2.0 */
/* What the first bytes of a file say: each format knows its own, at both sides of every condition.
 */
#include "formats/formats.h"
#include "unit.h"

#define SQLITE     "SQLite format 3\0"
#define TEXT(text) text, sizeof text - 1

static const struct {
    const char *head;
    size_t n;
    const char *file;
    const char *format; /* the formats that it fits best, the first wins */
    enum rp_sniff fit;
} heads[] = {
    {TEXT("BufferAssignment:"), "x", "xla-buffers", RP_SNIFF_CERTAIN},
    {TEXT("BufferAssignment"), "x", NULL, RP_SNIFF_NO},
    {TEXT("role=worker,id=1\n"), "x", "byteps-log", RP_SNIFF_CERTAIN},
    {TEXT("role=worker,\n"), "x", NULL, RP_SNIFF_NO},
    {TEXT("1,start,2:3\n"), "x", "byteps-log", RP_SNIFF_CERTAIN},
    {TEXT("1,begin,2:3\n"), "x", NULL, RP_SNIFF_NO},
    {TEXT("1,stop,2:3:4\n"), "x", "byteps-log", RP_SNIFF_CERTAIN},
    {TEXT("1,stop,2:3:4:5\n"), "x", NULL, RP_SNIFF_NO},
    {TEXT("1,stop,2,3\n"), "x", NULL, RP_SNIFF_NO},
    {TEXT("{\"workload_graph\": []}"), "x", "chakra-json", RP_SNIFF_CERTAIN},
    {TEXT("{\"a\": {\"workload_graph\": []}"), "x", "chrome-json", RP_SNIFF_FALLBACK},
    {TEXT("{\"traceEvents\": ["), "x", "chrome-json", RP_SNIFF_CERTAIN},
    {TEXT(" {\"a\": 1, \"traceEvents\": ["), "x", "chrome-json", RP_SNIFF_CERTAIN},
    {TEXT("{\"a\": [1, 2"), "x", "chrome-json", RP_SNIFF_FALLBACK},
    {TEXT("{\"nodes\": ["), "x", NULL, RP_SNIFF_NO},
    {TEXT("{\"a\": 1}"), "x", NULL, RP_SNIFF_NO},
    {TEXT("["), "x", "chrome-json", RP_SNIFF_FALLBACK},
    {TEXT("[{}"), "x", "chrome-json", RP_SNIFF_FALLBACK},
    {TEXT("[1"), "x", NULL, RP_SNIFF_NO},
    {TEXT("[{\"ph\": \"X\"}, {"), "x", "chrome-json", RP_SNIFF_CERTAIN},
    {TEXT("[{\"pid\": 1"), "x", "chrome-json", RP_SNIFF_FALLBACK},
    {TEXT("[{\"pid\": 1}, {"), "x", NULL, RP_SNIFF_NO},
    {TEXT("[{\"ph\": \"X\"}\n{\"ph\": \"X\"}\n"), "x", "dftracer chrome-json", RP_SNIFF_CERTAIN},
    {TEXT("[\n{\"ph\": \"X\"} \r\n {\"ph\": \"X\"}\n"), "x", "dftracer chrome-json",
     RP_SNIFF_CERTAIN},
    {TEXT("[{\"ph\": \"X\"},\n{\"ph\": \"X\"}\n"), "x", "chrome-json", RP_SNIFF_CERTAIN},
    {TEXT("/* CTF 1.8 */"), "metadata", "ctf", RP_SNIFF_CERTAIN},
    {TEXT("{\"entries\": [], \"pg_config\": {}}"), "x", "flight-recorder", RP_SNIFF_CERTAIN},
    {TEXT("{\"entries\": [\"pg_config\"]}"), "x", NULL, RP_SNIFF_NO},
    {TEXT("{\"header\": {\"inspector_output_format_version\": \"v4\"}, \"coll_perf\": {"), "x",
     "nccl-inspector", RP_SNIFF_CERTAIN},
    {TEXT("{\"header\": {\"inspector_output_format_version\": \"v4\"}, \"p2p_perf\": {"), "x",
     "nccl-inspector", RP_SNIFF_CERTAIN},
    {TEXT("{\"header\": {\"inspector_output_format_version\": \"v4\"}"), "x", "chrome-json",
     RP_SNIFF_FALLBACK},
    {TEXT("{\"commId\": 1, \"ProfilerLifecycle\": 1"), "x", "nccl-profiler", RP_SNIFF_CERTAIN},
    {TEXT("{\"commId\": 1, \"ncclProfileColl\": 1"), "x", "nccl-profiler", RP_SNIFF_CERTAIN},
    {TEXT("{\"commId\": 1, \"other\": 1"), "x", "chrome-json", RP_SNIFF_FALLBACK},
    {TEXT("\"Kind\",\"Start_Timestamp\",\"End_Timestamp\"\n{"), "x", "rocprofv3-csv",
     RP_SNIFF_CERTAIN},
    {TEXT("\"Domain\",\"Start_Timestamp\",\"End_Timestamp\""), "x", "rocprofv3-csv",
     RP_SNIFF_CERTAIN},
    {TEXT("\"Dispatch_Id\",\"Counter_Name\",\"Counter_Value\"\n"), "x", "rocprofv3-csv",
     RP_SNIFF_CERTAIN},
    {TEXT("\"Kind\",\"Start_Timestamp\"\n\"End_Timestamp\""), "x", NULL, RP_SNIFF_NO},
    {TEXT("\"Kind\",\"Start_Timestamp\",\"End_Timestamp\",{\n"), "x", NULL, RP_SNIFF_NO},
    {TEXT("{\"rocprofiler-sdk-tool\": ["), "x", "rocprofv3-json", RP_SNIFF_CERTAIN},
    {TEXT("{\"a\": {\"rocprofiler-sdk-tool\": ["), "x", "chrome-json", RP_SNIFF_FALLBACK},
    {TEXT("MOJ\1\1"), "x", "austin", RP_SNIFF_CERTAIN},
    {TEXT("MOJ\7\1"), "x", "austin", RP_SNIFF_CERTAIN},
    {TEXT("MOJ\10\1"), "x", NULL, RP_SNIFF_NO},
    {TEXT("MOJ\0\1"), "x", NULL, RP_SNIFF_NO},
    {TEXT("MOJ\1\2"), "x", NULL, RP_SNIFF_NO},
    {TEXT("MOJ\1"), "x", NULL, RP_SNIFF_NO},
    {TEXT("Attaching 1 probe...\n\n@[\n"), "x", "bpftrace", RP_SNIFF_CERTAIN},
    {TEXT("@x[\n"), "x", "bpftrace", RP_SNIFF_CERTAIN},
    {TEXT("@x\n"), "x", NULL, RP_SNIFF_NO},
    {TEXT("other\n@[\n"), "x", NULL, RP_SNIFF_NO},
    {TEXT("{\"meta\": {\"preprocessedProfileVersion\": 1"), "x", "firefox", RP_SNIFF_CERTAIN},
    {TEXT("{\"meta\": {\"version\": 1"), "x", "chrome-json", RP_SNIFF_FALLBACK},
    {TEXT("a;b 1\nc;d 2\n"), "x", "folded", RP_SNIFF_LIKELY},
    {TEXT("a;b 1\nc 2\n"), "x", "folded", RP_SNIFF_LIKELY},
    {TEXT("a;b 1\nc 2\nd 3\n"), "x", NULL, RP_SNIFF_NO},
    {TEXT("a;b 1\nc 2\nd 3\n"), "x.folded", "folded", RP_SNIFF_LIKELY},
    {TEXT("a 1\n"), "x.collapsed", "folded", RP_SNIFF_LIKELY},
    {TEXT("a;b 1\nc;d e\n"), "x.folded", NULL, RP_SNIFF_NO},
    {TEXT("# austin: 1\n"), "x", "folded", RP_SNIFF_CERTAIN},
    {TEXT("--- heapz 1"), "x", "gperftools", RP_SNIFF_CERTAIN},
    {TEXT("--- heap 12"), "x", NULL, RP_SNIFF_NO},
    {TEXT("PERFILE2\0\0\0\0\0\0\0\0"), "x", "perf-data", RP_SNIFF_CERTAIN},
    {TEXT("PERFILE2\0\0\0\0\0\0\0"), "x", NULL, RP_SNIFF_NO},
    {TEXT("# c\nsh 12 1.5: cycles:\n\t6f1 gamma+0x1 (/x)\n"), "x", "perf-script", RP_SNIFF_CERTAIN},
    {TEXT("sh 12 1.5: 7 cycles: 6f1 gamma+0x1 (/x)\n\n"), "x", "perf-script", RP_SNIFF_LIKELY},
    {TEXT("sh 12 1.5: cycles:\n\tzzz gamma\n"), "x", NULL, RP_SNIFF_NO},
    {TEXT("[{\"children\": [], \"frame\": {}, \"metrics\": {}}]"), "x", "proton", RP_SNIFF_CERTAIN},
    {TEXT("[{\"children\": [], \"metrics\": {}}]"), "x", NULL, RP_SNIFF_NO},
    {TEXT("[{\"children\": [], \"frame\": {}}]"), "x", NULL, RP_SNIFF_NO},
    {TEXT("{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\""), "x",
     "speedscope", RP_SNIFF_CERTAIN},
    {TEXT("{\"$schema\": \"other\""), "x", "chrome-json", RP_SNIFF_FALLBACK},
    {TEXT("{\"shared\": {}, \"profiles\": []}"), "x", "speedscope", RP_SNIFF_CERTAIN},
    {TEXT("{\"shared\": {}, \"profile\": []"), "x", "chrome-json", RP_SNIFF_FALLBACK},
    {TEXT("{\"share\": {}, \"profiles\": []"), "x", "chrome-json", RP_SNIFF_FALLBACK},
    {TEXT(SQLITE "CUPTI_ACTIVITY_KIND_"), "x", "nsys-sqlite", RP_SNIFF_CERTAIN},
    {TEXT(SQLITE "META_DATA_EXPORT"), "x", "nsys-sqlite", RP_SNIFF_CERTAIN},
    {TEXT(SQLITE "rocpd_info_"), "x", "rocpd", RP_SNIFF_CERTAIN},
    {TEXT(SQLITE "rocpd_api_ops"), "x", "rpd", RP_SNIFF_CERTAIN},
    {TEXT(SQLITE "other"), "x", "nsys-sqlite rocpd rpd", RP_SNIFF_FALLBACK},
    {TEXT("other"), "x.nsys-rep", "nsys-sqlite", RP_SNIFF_FALLBACK},
    {TEXT("other"), "x.qdrep", "nsys-sqlite", RP_SNIFF_FALLBACK},
    {TEXT("other"), "x.rep", NULL, RP_SNIFF_NO},
    {TEXT("# c\n# d\nnode {\n"), "x", "graphdef-text", RP_SNIFF_CERTAIN},
    {TEXT("signature {\n"), "x", "graphdef-text", RP_SNIFF_CERTAIN},
    {TEXT("nodes {\n"), "x", NULL, RP_SNIFF_NO},
    {TEXT("{\"device_traces\": []"), "x", "torch-memory", RP_SNIFF_CERTAIN},
    {TEXT("{\"segments\": [{\"segment_type\": \"x\""), "x", "torch-memory", RP_SNIFF_CERTAIN},
    {TEXT("[{\"segment_type\": \"x\""), "x", "torch-memory", RP_SNIFF_CERTAIN},
    {TEXT("{\"segments\": [{\"type\": \"x\""), "x", "chrome-json", RP_SNIFF_FALLBACK},
    {TEXT("\n# c\nclass GraphModule(torch.nn.Module):\n"), "x", "fx", RP_SNIFF_LIKELY},
    {TEXT("class GraphModule(Module):\n"), "x", NULL, RP_SNIFF_NO},
    {TEXT("import torch\nclass GraphModule(torch.nn.Module):\n"), "x", NULL, RP_SNIFF_NO},
};

static void formats_know_their_own(void **state)
{
    UNUSED_STATE(state);
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        const struct rp_format *format;
        enum rp_sniff best = RP_SNIFF_NO;
        char names[200] = "";

        for (size_t k = 0; (format = rp_format_at(k)); k++) {
            enum rp_sniff fit =
                format->sniff((const uint8_t *)heads[i].head, heads[i].n, heads[i].file);

            if (fit > best)
                names[0] = '\0';
            best = fit > best ? fit : best;
            if (fit && fit == best)
                snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                         *names ? " " : "", format->name);
        }
        if (best != heads[i].fit || strcmp(names, heads[i].format ? heads[i].format : "") != 0)
            fail_msg("%s: '%s' %d", heads[i].head, names, best);
    }
}

int test_sniff(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_know_their_own),
    };

    return cmocka_run_group_tests_name("sniff", tests, NULL, NULL);
}
