# From here on the script is the same for every operator.
import json
import statistics
import sys
import time

import torch

TYPES = {"float": torch.float32, "double": torch.float64, "c10::Half": torch.float16, "c10::BFloat16": torch.bfloat16, "long int": torch.int64,
         "long": torch.int64, "int": torch.int32, "short int": torch.int16, "signed char": torch.int8, "unsigned char": torch.uint8, "bool": torch.bool,
         "c10::complex<float>": torch.complex64, "c10::complex<double>": torch.complex128}
CALLS = 30


def tensor(shape, strides, kind, limit):
    """Random values; numbers that may be indices are within the limits. The elements lie in memory as they did."""
    if kind not in TYPES and not kind.startswith("c10::Float8"):
        raise ValueError(f"a tensor of the type '{kind}'")
    dtype = TYPES.get(kind) or getattr(torch, kind[5:].lower())
    size = 1 + sum((n - 1) * abs(s) for n, s in zip(shape, strides)) if all(shape) else 0
    if dtype.is_floating_point or dtype.is_complex:
        memory = torch.randn(max(size, 1), device=DEVICE, dtype=torch.float32).to(dtype)
    elif dtype == torch.bool:
        memory = torch.rand(max(size, 1), device=DEVICE) < 0.5
    else:
        memory = torch.randint(limit[0], max(limit[0] + 1, min(limit[1], torch.iinfo(dtype).max)), (max(size, 1),), device=DEVICE, dtype=dtype)
    view = memory.as_strided(shape, strides or [1] * len(shape))
    try:
        return torch.empty_strided(shape, strides or [1] * len(shape), device=DEVICE, dtype=dtype).copy_(view)
    except RuntimeError:  # several elements are one place of memory
        return view


def value(text, kind):
    """A number, list or word as the profiler writes it, for an argument of this type in the schema."""
    if text == "" or text == "None":
        return None
    if kind.startswith(("bool", "Optional[bool")):
        return text in ("True", "1")
    if "Device" in kind:
        return DEVICE
    try:
        return json.loads(text.replace("True", "true").replace("False", "false"))
    except ValueError:
        return float(text) if text.replace(".", "", 1).lstrip("-").replace("e", "").replace("+", "").replace("-", "").isdigit() or text in ("inf", "-inf") else text


def index_limit(name, shapes, numbers):
    """Below what indices must be: the rows of a table, the classes of a loss; otherwise every dimension of what is indexed."""
    first = shapes[0] if shapes and shapes[0] and not isinstance(shapes[0][0], list) else []
    if "embedding" in name and "backward" in name:
        return next((n for n in numbers if isinstance(n, int) and n > 1), 1)
    if "embedding" in name or "index_select" in name:
        return first[0] if first else 1
    if "nll_loss" in name:
        second = shapes[1] if "backward" in name and len(shapes) > 1 else first
        return second[1] if len(second) > 1 else 1
    dims = [n for s in shapes if s and not isinstance(s[0], list) for n in s]
    return min(dims) if dims else 2


def arguments(schema, limit):
    given, named = [], {}
    for i, a in enumerate(schema.arguments):
        kind, shape, stride = KINDS[i], SHAPES[i], STRIDES[i] if i < len(STRIDES) else []
        wanted = str(a.type)
        if kind in ("TensorList", "GenericList") and shape and isinstance(shape[0], list):
            one = next((k for k in KINDS if k in TYPES), "float")
            made = [tensor(s, stride[k] if stride else None, one, limit) if s or "Optional" not in wanted else None for k, s in enumerate(shape)]
        elif kind in TYPES or kind.startswith("c10::Float8"):
            if "Tensor" not in wanted:
                raise TypeError(a.name)
            made = tensor(shape, stride, kind, limit)
        else:
            made = value(NUMBERS[i] if i < len(NUMBERS) else "", wanted)
            if made is None and a.has_default_value():
                made = a.default_value
            if "Tensor" in wanted and "Optional" not in wanted and made is not None and not isinstance(made, torch.Tensor):
                raise TypeError(a.name)
            if wanted in ("Device", "Optional[Device]"):
                made = torch.device(DEVICE)
            elif a.name == "dtype" and isinstance(made, int):
                made = NUMBER_TYPES.get(made)
            elif a.name == "layout":
                made = torch.strided
            elif a.name == "memory_format":
                made = {0: torch.contiguous_format, 1: torch.preserve_format, 2: torch.channels_last, 3: torch.channels_last_3d}.get(made)
        if a.kwarg_only:
            named[a.name] = made
        else:
            given.append(made)
    return given, named


NUMBER_TYPES = {0: torch.uint8, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.int64, 5: torch.float16, 6: torch.float32, 7: torch.float64,
                9: torch.complex64, 10: torch.complex128, 11: torch.bool, 15: torch.bfloat16}


def make_call():
    """The overload that takes these inputs, and a call of it."""
    space, _, name = NAME.partition("::")
    packet, limit, problem = getattr(getattr(torch.ops, space), name), index_limit(name, SHAPES, [value(n, "") for n in NUMBERS]), None
    for overload in packet.overloads():
        function = getattr(packet, overload)
        if len(function._schema.arguments) != len(KINDS):
            continue
        for limits in ((0, limit), (0, 1), (1, 2)):
            try:
                given, named = arguments(function._schema, limits)
                with torch.no_grad():
                    function(*given, **named)
                    sync()
                return function, given, named
            except TypeError:  # an overload for something else
                problem = problem or "none of them takes these types"
                break
            except Exception as wrong:
                problem = wrong
    raise SystemExit(f"{NAME}: no overload of this PyTorch ({torch.__version__}) takes these inputs{': ' + str(problem) if problem else ''}")


def sync():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def measure(call):
    """Median nanoseconds of a call: of its work on the device, with its names in order; on the CPU of the call itself."""
    function, given, named = call
    with torch.no_grad():
        for _ in range(5):
            function(*given, **named)
        sync()
        if DEVICE != "cuda":
            times = []
            for _ in range(CALLS):
                began = time.perf_counter_ns()
                function(*given, **named)
                times.append(time.perf_counter_ns() - began)
            return statistics.median(times), []
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            for _ in range(CALLS):
                function(*given, **named)
            sync()
    events = sorted((e for e in seen.profiler.kineto_results.events() if "CUDA" in str(e.device_type())), key=lambda e: e.start_ns())
    events = [e for e in events if e.name() not in ("Context Sync", "Activity Buffer Request")]
    each = len(events) // CALLS
    rounds = [events[i * each:(i + 1) * each] for i in range(CALLS)] if each else []
    return statistics.median(sum(e.duration_ns() for e in r) for r in rounds) if rounds else 0, [e.name() for e in rounds[-1]] if rounds else []


def text_of(ns):
    return f"{ns / 1e3:.1f} us" if ns < 1e6 else f"{ns / 1e6:.2f} ms"


def main():
    global DEVICE
    if DEVICE == "cuda" and not torch.cuda.is_available():
        print("recorded on a GPU, which is not here: it runs on the CPU, where its time says nothing", file=sys.stderr)
        DEVICE = "cpu"
    for precision in ("highest", "high"):  # whether products used TF32 is not recorded, but kernels have other names with it
        torch.set_float32_matmul_precision(precision)
        call = make_call()
        ns, kernels = measure(call)
        if kernels == KERNELS or not KERNELS or DEVICE != "cuda":
            break
    same = kernels == KERNELS if DEVICE == "cuda" else None
    answer = {"op": NAME, "overload": call[0]._schema.overload_name or "default", "recorded_ns": RECORDED_NS, "time_ns": ns,
              "change_ratio": ns / RECORDED_NS - 1 if RECORDED_NS else None, "same_kernels": same, "kernels": kernels}
    if "--json" in sys.argv:
        print(json.dumps(answer))
        return
    print(f"operator  {NAME}.{answer['overload']}, {SHAPES}")
    print(f"recorded  {text_of(RECORDED_NS)}, median of {CALLS_RECORDED} calls")
    print(f"here      {text_of(ns)}" + (f" ({100 * answer['change_ratio']:+.1f} %)" if RECORDED_NS else ""))
    if same is not None:
        print("kernels   " + ("the same" if same else "others"))
        for name in kernels if same else [*(f"recorded: {k}" for k in KERNELS), *(f"here: {k}" for k in kernels)]:
            print(f"  {name}")


main()
