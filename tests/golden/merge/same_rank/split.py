# split.py MODE TRACE: the two halves of a recording, host.json and device.json, as two tools would have
# recorded them; the clock of the second is 777.125 ms ahead.
import gzip
import json
import sys

SHIFT_US = 777125
mode, path = sys.argv[1:]
trace = json.load(gzip.open(path))
device_kinds = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync")
call_kinds = ("cuda_runtime", "cuda_driver")
events = trace.pop("traceEvents")
host = [e for e in events if e.get("cat") not in device_kinds and e.get("ph") not in "sft"]
device = [e for e in events if e.get("cat") in device_kinds]
if mode in ("names", "wall", "nothing"):  # the recorder of the device has the calls, too, with ids of its own
    device += [e for e in events if e.get("cat") in call_kinds]
if mode in ("wall", "nothing"):
    host = [e for e in host if e.get("cat") not in call_kinds]
moved = []
for i, e in enumerate(device):
    e = {**e, "ts": round(e["ts"] + SHIFT_US, 3), "args": dict(e.get("args", {}))}
    if mode not in ("ids", "early") and "correlation" in e["args"]:
        e["args"]["correlation"] += 5000000
    if mode == "early" and i == 40:
        e["ts"] -= 3000
    moved.append(e)
base = trace.get("baseTimeNanoseconds", 0)
head = {"baseTimeNanoseconds": base - SHIFT_US * 1000} if mode == "wall" else {}
json.dump({**trace, "traceEvents": host}, open("host.json", "w"))
json.dump({"deviceProperties": trace["deviceProperties"], **head, "traceEvents": moved}, open("device.json", "w"))
