"""What scripts/bench measures. Each section gives groups of figures, all of one form that table.py and page.py show:

    {"title", "unit", "better": "lower" | "higher" | null, of the values, "note", "kind": "bars" | "lines" | "shares",
     "series": [name, ...], "ratio": what the ratios are, with {} for the series,
     "aims": {series: aim of its ratio, or, where it has none, of its value}, an aim being ["at most" | "at least", number],
     "across": what the rows of lines are, "marks": [[value, name], ...] of lines, "decimals": of values, or null,
     "rows": [{"name", "values": {series: number}, "ratios": {series: number}, "aim": of the value of ours, or null,
              "detail": text after the name}]}
"""

import contextlib
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

from sides import ROOT, AtOnce, Failure, Side, Work, alternate, ratio, set_up_torch

CASES = ["vit_fmnist", "vit_tiny", "gpt_small"]
INFERENCE_BATCHES = [1, 16]
FORM_CASES = ["vit_tiny", "vit_small", "vit_base", "gpt3_small"]
LARGER_BATCHES = [("vit_base", 8), ("gpt3_small", 4)]  # than in the cases: projecting costs the same for any batch
OPS = [("add_norm_layer", 6400, 512), ("add_norm_rms", 6400, 512), ("layer_norm", 6400, 512), ("softmax", 6400, 512),
       ("softmax", 1600, 512), ("gelu", 6400, 512), ("gelu", 1600, 512), ("cross_entropy", 6400, 512),
       ("cross_entropy", 2048, 8192), ("adamw", 24, 512)]
# Tensors of an op's size to read and write, forward and backward: x and y; the gradient of y, the saved tensors, the
# gradient of x. AdamW reads a parameter, its gradient and two moments, and writes back the parameter and the moments.
PASSES = {"add_norm_layer": 8, "add_norm_rms": 8, "layer_norm": 5, "softmax": 5, "gelu": 5, "cross_entropy": 3, "adamw": 7}
FUSED = [("mlp", 6400, 128), ("mlp", 2048, 384), ("attention", 128, 50), ("attention", 8, 256), ("conv2d", 32, 32),
         ("conv2d", 16, 96), ("max_pool2d", 32, 96)]
CONVOLUTIONS = [("conv2d_rgb", 16, 96), ("conv2d_large", 16, 96), ("conv2d_stride2", 16, 96), ("conv2d", 16, 192)]
LIMITS = {"limit": "gemms", "own limit": "products", "registers": "registers"}  # for a step or a forward pass
WIDTHS = [64, 128, 256, 512, 1024, 2048, 4096, 8192]
ELEMENTS = 1 << 22  # elements of a tensor in the bandwidth section: 16 MiB
TENSORS = 4  # tensors that add_norm reads and writes: x, branch, sum, normed; backward: their gradients and the sum
CHAIN = 1000
CONTEXTS = [(8192, 6), (8192, 1), (16384, 1), (32768, 1)]  # with the model's depth; the last ones take a minute a step
STEPS = 300  # steps of the trainings whose losses are shown


def at_most(x):
    return ["at most", x]


def at_least(x):
    return ["at least", x]


def group(title, unit, rows, series, ratio="ours / {}", kind="bars", note="", aims=None, across="", marks=(), decimals=None,
          better="lower"):
    return dict(title=title, unit=unit, better=better, rows=rows, series=series, ratio=ratio, kind=kind, note=note,
                across=across, marks=marks, decimals=decimals,
                aims={name: aim for name, aim in (aims or {}).items() if name in series})


def row(name, results, base="ours", inverse=False, scale=1.0, aim=None):
    """A row from the results of an alternate(): ratios are base / series, or series / base."""
    others = [side for side in results if side != base]
    pair = (lambda side: (results[side], results[base])) if inverse else (lambda side: (results[base], results[side]))
    return dict(name=name, values={side: r["median_ms"] * scale for side, r in results.items()},
                ratios={side: ratio(*pair(side)) for side in others}, aim=aim, detail="")


def step_row(name, results):
    """A row for a step or forward pass; the limit by registers has no ratio."""
    made = row(name, results)
    del made["ratios"]["registers"]
    return made


def plain_row(name, values, base="ours", inverse=False, aim=None, ratios=True, detail=""):
    """A row of single figures."""
    quotient = (lambda v: v / values[base]) if inverse else (lambda v: values[base] / v)
    return dict(name=name, values=values, aim=aim, detail=detail,
                ratios={side: quotient(v) for side, v in values.items() if ratios and side != base})


def same_parameters(what, sides):
    counts = {name: side.facts["parameters"] for name, side in sides.items()}
    if len(set(counts.values())) > 1:
        raise Failure(f"{what}: the sides differ in parameters: {counts}")


class Bench:
    """Starts the programs and keeps their answers; options come from bench.py."""

    def __init__(self, options, say):
        self.options, self.python, self.say = options, options.python, say
        self.raw, self.facts, self.torch_version = {}, None, "absent"

    def ours(self, program, *arguments, threads=None, environment=None):
        threads = threads or self.options.threads
        command = [self.options.build / "benchmarks" / program, *arguments, "--serve", "--threads", str(threads)]
        side = Side("ours", command, threads, environment=environment)
        self.facts = self.facts or side.facts
        return side

    def torch(self, program, *arguments):
        self.python = self.python or set_up_torch()
        name = "compile" if "--compile" in arguments else "eager"
        side = Side(name, [self.python, ROOT / "benchmarks" / program, *arguments], self.options.threads)
        self.torch_version = side.facts["version"]
        return side

    def alternate(self, name, works, seconds, times=1, before=2):
        """As sides.alternate(); the times of every round go into the JSON file under that name."""
        self.say(name)
        result = alternate(works, 0 if self.options.quick else seconds, times, before=before)
        self.raw.setdefault(name, {}).update(result)
        return result

    def sides_of(self, stack, case):
        """Ours, eager and compile on one case."""
        sides = {"ours": stack.enter_context(self.ours("step", case)),
                 "eager": stack.enter_context(self.torch("torch_step.py", case, "--serve"))}
        if self.options.compile:
            self.say(f"{case}: torch.compile")
            sides["compile"] = stack.enter_context(self.torch("torch_step.py", case, "--serve", "--compile"))
        same_parameters(case, sides)
        return sides

    def peers(self):
        return ["ours", "eager"] + (["compile"] if self.options.compile else [])


def steps(bench):
    """Training, inference, memory and start of the cases."""
    training, inference, peaks, own_peaks, starts, shares = [], {b: [] for b in INFERENCE_BATCHES}, [], [], [], []
    with bench.ours("step", CASES[0]) as first:  # not counted: a virtual machine first gets memory from its host
        first.go(1, "train")
    for case in CASES:
        with contextlib.ExitStack() as stack:
            sides = bench.sides_of(stack, case)
            ours = sides["ours"]
            # Measured first, so that the peak of memory is training's.
            peak = {name: side.go(1, "train")["peak_bytes"] / 1e6 for name, side in sides.items()}
            held = {name: side.facts["base_bytes"] / 1e6 for name, side in sides.items()}
            own = {name: peak[name] - held[name] for name in peak}
            for rows, memory in ((peaks, peak), (own_peaks, own)):
                rows.append(plain_row(case, memory))
            works = {name: Work(side, "train") for name, side in sides.items()}
            works |= {name: Work(ours, words) for name, words in LIMITS.items()}
            results = bench.alternate(f"{case}: training", works, 15)
            training.append(step_row(case, results))
            starts.append(start(case, sides, results))
            shares.append(share(case, ours.go(3, "profile train")))
            for batch in INFERENCE_BATCHES:
                works = {name: Work(side, f"infer {batch}") for name, side in sides.items()}
                works |= {name: Work(ours, f"{words} {batch}") for name, words in LIMITS.items()}
                once = ours.go(2, f"infer {batch}")["ms"][-1]
                results = bench.alternate(f"{case}: inference, batch {batch}", works, 4, max(1, min(10, int(100 / once))))
                inference[batch].append(step_row(case, results))
    series = bench.peers()
    with_limits = series + list(LIMITS)
    groups = [group("Training step", "ms", training, with_limits,
                    aims={"eager": at_most(0.75), "compile": at_most(0.8), "limit": at_most(1.15),
                          "own limit": at_most(1.15)},
                    note="Forward, loss, backward, clipping, AdamW. Limits: the matrix products of our step alone, by OpenBLAS "
                         "and by our own kernel; the same number of multiply-adds in registers.")]
    groups += [group(f"Inference, batch {b}", "ms", rows, with_limits, aims={"compile": at_most(0.75)})
               for b, rows in inference.items()]
    groups += [
        group("Peak memory of training", "MB", peaks, series,
              aims={"eager": at_most(0.33), "compile": at_most(0.33)},
              note="Largest resident size of the process."),
        group("Peak memory beyond the bare process", "MB", own_peaks, series,
              note="Less the resident size right before the model is built (libraries, interpreter)."),
        group("Start", "ms", starts, series,
              note="From the start of the process to the end of the first step, less a median step."),
        group("Time of our training step by kernel", "% of its time", shares, sorted_kernels(shares), kind="shares", better=None,
              note="From the profile of three steps."),
    ]
    return groups


def start(case, sides, results):
    values = {name: side.facts["start_ms"] - results[name]["median_ms"] for name, side in sides.items()}
    return plain_row(case, values, aim=at_most(200) if case == "vit_fmnist" else None)


def share(case, profile):
    total = sum(profile["kernels"].values()) + profile["between"]
    values = {name: 100 * ms / total for name, ms in profile["kernels"].items()}
    return plain_row(case, values | {"between kernels": 100 * profile["between"] / total}, ratios=False)


def sorted_kernels(rows):
    names = {name for r in rows for name in r["values"]}
    return sorted(names, key=lambda n: -max(r["values"].get(n, 0) for r in rows))


def kernels(bench):
    """Single ops, and the overhead of an op and a node."""
    with contextlib.ExitStack() as stack:
        sides = {"ours": stack.enter_context(bench.ours("kernels")),
                 "eager": stack.enter_context(bench.torch("torch_kernels.py"))}
        chain = {f: {n: Work(s, f"chain {CHAIN} 1", f) for n, s in sides.items()} for f in ("forward_ms", "backward_ms")}
        if bench.options.compile:
            sides["compile"] = stack.enter_context(bench.torch("torch_kernels.py", "--compile"))
        single, fused = ([op_row(bench, sides, *op) for op in ops] for ops in (OPS, FUSED))
        per_op = 1e6 / CHAIN  # ns
        overhead = [row("recorded op", bench.alternate("overhead of an op", chain["forward_ms"], 2, 5), scale=per_op,
                        aim=at_most(150)),
                    row("backward node", bench.alternate("overhead of a node", chain["backward_ms"], 2, 5), scale=per_op,
                        aim=at_most(50))]
    return [
        group("Single ops", "ms", single, bench.peers() + ["memory"],
              aims={"eager": at_most(0.5), "compile": at_most(0.5)},
              note="Forward and backward to every input; AdamW: one step, in the column compile PyTorch's fused one. Memory: "
                   "memcpy of the bytes that the op has to read and write."),
        group("Ops with products", "ms", fused, bench.peers(),
              note="Attention: batch x length, 4 heads of 64. Images of 16 x 16: images x channels."),
        group("Overhead", "ns", overhead, ["ours", "eager"],
              note=f"A chain of {CHAIN} additions of single elements with a graph, per op; its backward, per node."),
    ]


def op_row(bench, sides, op, rows, width):
    name = f"{op}, {rows} layers of {width}" if op == "adamw" else f"{op} [{rows}, {width}]"
    works = {n: Work(side, f"{op} {rows} {width}") for n, side in sides.items()}
    if op in PASSES:  # memcpy reads and writes, so half as many
        elements = rows * width * (width if op == "adamw" else 1)
        works["memory"] = Work(sides["ours"], f"memcpy {elements * PASSES[op] // 2} 1")
    return row(name, bench.alternate(name, works, 2, 5))


def convolution(bench):
    """The layers of ConvPool-CNN-C (Springenberg et al., 1412.6806)."""
    with bench.ours("kernels") as ours, bench.torch("torch_kernels.py") as eager:
        rows = [op_row(bench, {"ours": ours, "eager": eager}, *op) for op in CONVOLUTIONS]
    return [group("Convolutions of ConvPool-CNN-C", "ms", rows, ["ours", "eager"], aims={"eager": at_most(0.8)},
                  note="Images x channels, filters of 3 x 3, forward and backward to images, filter and bias. rgb: from 3 channels, "
                       "images of 32 x 32 that take no gradient; large and stride2: of 32 x 32; conv2d: of 16 x 16.")]


def bandwidth(bench):
    """The fused residual + norm against memcpy, by width."""
    gigabytes = TENSORS * ELEMENTS * 4 / 1e9
    rows = []
    for width in WIDTHS:
        shares = {}
        with bench.ours("kernels") as side:
            for direction in ("forward", "backward"):
                works = {f"{norm} {direction}": Work(side, f"add_norm_{key} {ELEMENTS // width} {width}", f"{direction}_ms")
                         for norm, key in (("LayerNorm", "layer"), ("RMSNorm", "rms"))}
                copy = Work(side, f"memcpy {TENSORS // 2 * ELEMENTS // width} {width}")
                results = bench.alternate(f"add_norm, width {width}, {direction}", works | {"memcpy": copy}, 1, 3)
                shares |= {name: ratio(results["memcpy"], results[name]) for name in works}
        speed = 1e3 * gigabytes / results["memcpy"]["median_ms"]
        rows.append(plain_row(str(width), shares, ratios=False, detail=f"memcpy {speed:.1f} GB/s"))
    return [group("Residual + norm", "its bytes per second / memcpy's", rows, list(shares), kind="lines", better="higher",
                  across="width of a row", marks=[[1, "memcpy"], [0.9, "aim"]],
                  aims={name: at_least(0.9) for name in shares},
                  note="add_norm with learned gain (and bias) on tensors of 16 MiB: each of the four tensors "
                       "that it has to read or write counts once, forward and backward; memcpy by the same threads moves "
                       "the same number of bytes, read and write counted.")]


def decoding(bench):
    """A token at a time at batch 1, and reading the same number of bytes as the weights."""
    rows, shares = [], []
    for dtype in ("f32", "bf16"):
        with contextlib.ExitStack() as stack:
            sides = {"ours": stack.enter_context(bench.ours("tokens", "--dtype", dtype)),
                     "eager": stack.enter_context(bench.torch("torch_tokens.py", "--dtype", dtype))}
            if bench.options.compile:
                bench.say(f"decoding in {dtype}: torch.compile")
                sides["compile"] = stack.enter_context(bench.torch("torch_tokens.py", "--dtype", dtype, "--compile"))
            same_parameters(f"decoding in {dtype}", sides)
            works = {name: Work(side, "decode") for name, side in sides.items()} | {"read": Work(sides["ours"], "read")}
            results = bench.alternate(f"decoding in {dtype}", works, 15)
        read = results.pop("read")
        speed = read["bytes"] / read["median_ms"] / 1e6
        rows.append(row(dtype, results))
        shares.append(plain_row(dtype, {name: ratio(read, result) for name, result in results.items()}, ratios=False,
                                detail=f"read {speed:.1f} GB/s"))
    return [group("Decoding", "ms per token", rows, bench.peers(),
                  note="A GPT of width 1024, depth 8 and 8192 ids, greedy at batch 1, all in one dtype. PyTorch's keys and values "
                       "lie in memory of a fixed size."),
            group("Decoding: share of the bandwidth", "weights' bytes per second / a sum's", shares, bench.peers(), better="higher",
                  ratio="", aims={"ours": at_least(0.85)})]


def threads(bench):
    """Our step with all threads against one thread, and against the same number of single-threaded processes."""
    count = bench.options.threads
    if count < 2:
        return []
    names = [f"{count} threads", f"{count} single-threaded processes"]
    rows = []
    for case in CASES:
        with contextlib.ExitStack() as stack:
            all_threads = stack.enter_context(bench.ours("step", case))
            ones = [stack.enter_context(bench.ours("step", case, threads=1)) for _ in range(count)]
            works = {"threads": Work(all_threads, "train"), "one": Work(ones[0], "train"), "at once": Work(AtOnce(*ones), "train")}
            results = bench.alternate(f"{case}: threads", works, 12)
        rows.append(plain_row(f"{case}, training", {names[0]: ratio(results["one"], results["threads"]),
                                                    names[1]: count * ratio(results["one"], results["at once"])}, ratios=False))
    return [group("Threads", "steps in the time of a single-threaded step", rows, names, better="higher",
                  aims={names[0]: at_least(1.85)} if count == 2 else {},
                  note="Processes share nothing but the machine: the cores that it provides under full load.")]


def forms(bench):
    """The cost of the norm: our step in other forms of the stream; the norms have no gain and bias of their own."""
    sides_of = {"Pre-LN": ["layer_norm"], "Pre-RMSNorm": ["rms_norm"], "mapped once": ["rms_norm", "--storage", "mapped"],
                "no norm": ["none"]}
    training, inference, projection, shares = [], [], [], []
    for case in FORM_CASES:
        with contextlib.ExitStack() as stack:
            sides = {name: stack.enter_context(bench.ours("step", case, "--no-affine", "--form", *form))
                     for name, form in sides_of.items()}
            for work, words, seconds, rows in (("training", "train", 30, training), ("inference", "infer 1", 10, inference)):
                results = bench.alternate(f"{case}: forms, {work}", {n: Work(s, words) for n, s in sides.items()}, seconds)
                rows.append(row(case, results, base="Pre-LN", inverse=True))
                pair = {name: results[name] for name in ("Pre-RMSNorm", "mapped once")}
                projection.append(row(f"{case}, {work}", pair, base="Pre-RMSNorm"))
            shares.append(norm_share(case, sides))
    for case, batch in LARGER_BATCHES:
        with contextlib.ExitStack() as stack:
            bench.say(f"{case}: forms, batch {batch}")
            sides = {name: stack.enter_context(bench.ours("step", case, "--no-affine", "--batch", str(batch), "--form", *form))
                     for name, form in sides_of.items() if name in ("Pre-LN", "Pre-RMSNorm")}
            shares.append(norm_share(case, sides))
    over_pre_ln = "{} / Pre-LN"
    return [
        group("Forms, training step", "ms", training, list(sides_of), over_pre_ln,
              note="Pre-RMSNorm holds the weights of Pre-LN and projects them in every forward; mapped once: projected "
                   "weights are stored."),
        group("Forms, inference, batch 1", "ms", inference, list(sides_of), over_pre_ln, note="As above."),
        group("Cost of projecting in every forward", "ms", projection, ["Pre-RMSNorm", "mapped once"], "Pre-RMSNorm / {}",
              aims={"mapped once": at_most(1.01)}, note="The same figures."),
        group("Norms' and projection's share of a training step", "% of its time", shares, ["norms", "projection"],
              note="From profiles: kernels with norm in their names, which add the residual too, of Pre-LN's step; projecting "
                   "weights and, backward, their gradients, of Pre-RMSNorm's."),
    ]


def norm_share(case, sides):
    of = {name: share(case, sides[name].go(2, "profile train"))["values"] for name in ("Pre-LN", "Pre-RMSNorm")}
    norms = sum(v for k, v in of["Pre-LN"].items() if "norm" in k)
    return plain_row(case, {"norms": norms, "projection": of["Pre-RMSNorm"]["recentre"]}, ratios=False,
                     detail=f"batch {sides['Pre-LN'].facts['batch']}")


def instruction_sets(bench):
    """Training and inference with products of bf16 by each instruction set that this machine has for them, and in f32. If avx512_bf16
    beats avx512 on a CPU, add the CPU to the table of core/kernels/isa_choice.h, with the log."""
    training, inference = [], {b: [] for b in INFERENCE_BATCHES}
    for case in CASES:
        with contextlib.ExitStack() as stack:
            sides = {"f32": stack.enter_context(bench.ours("step", case))}
            for isa in ("avx512", "avx512_bf16", "amx_bf16"):
                side = stack.enter_context(bench.ours("step", case, "--precision", "bf16", environment={"ISONORM_ISA": isa}))
                if side.facts["instructions"] == isa:
                    sides[isa] = side
            if "avx512" not in sides:
                raise Failure("isa: this machine has no AVX-512")
            for rows, work, seconds in [(training, "train", 12), *((rows, f"infer {batch}", 4) for batch, rows in inference.items())]:
                once = sides["f32"].go(2, work)["ms"][-1]
                works = {name: Work(side, work) for name, side in sides.items()}
                results = bench.alternate(f"{case}: instruction sets, {work}", works, seconds, max(1, min(10, int(100 / once))))
                rows.append(row(case, results, base="avx512", inverse=True))
    note = "avx512 widens bf16 to f32, avx512_bf16 has vdpbf16ps, amx_bf16 has tiles."
    return [group(f"bf16 by instruction set: {what}", "ms", rows, list(sides), "{} / avx512", note=note)
            for what, rows in [("training step", training), *((f"inference, batch {b}", rows) for b, rows in inference.items())]]


def bf16(bench):
    """Products of bf16 over parameters of f32: ours against ours in f32 and PyTorch's autocast."""
    training, inference = [], {b: [] for b in INFERENCE_BATCHES}
    for case in CASES:
        with contextlib.ExitStack() as stack:
            sides = {"bf16": stack.enter_context(bench.ours("step", case, "--precision", "bf16")),
                     "f32": stack.enter_context(bench.ours("step", case))}
            for name, words in {"autocast": [], "compiled": ["--compile"]}.items():
                if bench.options.compile or not words:
                    bench.say(f"{case}: {name}")
                    sides[name] = stack.enter_context(bench.torch("torch_step.py", case, "--serve", "--dtype", "bf16", *words))
            works = {name: Work(side, "train") for name, side in sides.items()}
            training.append(row(case, bench.alternate(f"{case}: bf16, training", works, 12), base="bf16"))
            for batch, rows in inference.items():
                once = sides["bf16"].go(2, f"infer {batch}")["ms"][-1]
                works = {name: Work(side, f"infer {batch}") for name, side in sides.items()}
                results = bench.alternate(f"{case}: bf16, inference, batch {batch}", works, 4, max(1, min(10, int(100 / once))))
                rows.append(row(case, results, base="bf16"))
    aims = {"f32": at_most(0.65), "autocast": at_most(0.75), "compiled": at_most(0.75)}
    return [group(f"bf16: {what}", "ms", rows, list(sides), "bf16 / {}", aims=aims, note=note)
            for what, rows, note in [("training step", training, "Ours with --precision bf16 and in f32; PyTorch's autocast, eager "
                                      "and compiled.")] +
            [(f"inference, batch {b}", rows, "As above.") for b, rows in inference.items()]]


def context(bench):
    """A step of a GPT on one long sample: its time and its memory by context."""
    training, peaks = [], []
    for length, depth in CONTEXTS:
        name = f"{length:,}, {depth} block" + ("s" if depth > 1 else "")
        case = ["gpt_small", "--batch", "1", "--context", str(length), "--depth", str(depth), "--warmup", "1"]
        with contextlib.ExitStack() as stack:
            sides = {"ours": stack.enter_context(bench.ours("step", *case)),
                     "eager": stack.enter_context(bench.torch("torch_step.py", *case, "--serve"))}
            results = bench.alternate(f"context of {name}", {n: Work(side, "train") for n, side in sides.items()}, 0, before=0)
            training.append(row(name, results))
            peaks.append(plain_row(name, {n: (results[n]["peak_bytes"] - side.facts["base_bytes"]) / 1e6
                                          for n, side in sides.items()}))
    return [
        group("Long context: training step", "ms", training, ["ours", "eager"], aims={"eager": at_most(0.7)},
              note="gpt_small with one sample of this many tokens; three rounds of a step each."),
        group("Long context: peak memory beyond the bare process", "MB", peaks, ["ours", "eager"]),
    ]


def activations(bench):
    """Keeping activations as bf16: memory, time and loss."""
    training, memory, kinds = [], [], ["f32", "bf16"]
    for case in CASES:
        with contextlib.ExitStack() as stack:
            sides = {kept: stack.enter_context(bench.ours("step", case, "--activations", kept)) for kept in kinds}
            answers = {name: side.go(1, "train") for name, side in sides.items()}
            for what, field in (("process", "peak_bytes"), ("tensors", "peak_tensor_bytes")):
                values = {name: answer[field] / 1e6 for name, answer in answers.items()}
                memory.append(plain_row(f"{case}, {what}", values, base="f32", inverse=True))
            works = {name: Work(side, "train") for name, side in sides.items()}
            training.append(row(case, bench.alternate(f"{case}: activations", works, 4), base="f32", inverse=True))
    steps = 30 if bench.options.quick else STEPS
    losses, tested = zip(*(train(bench, kept, steps) for kept in kinds))
    rows = [plain_row(str(end), {kept: statistics.mean(of[end - steps // 10:end]) for kept, of in zip(kinds, losses)},
                      ratios=False) for end in range(steps // 10, steps + 1, steps // 10)]
    rows.append(plain_row("test", {kept: of["loss"] for kept, of in zip(kinds, tested)}, ratios=False,
                          detail=", ".join(f"{of['accuracy']:.2%}" for of in tested)))
    return [
        group("Activations in bf16: peak memory of training", "MB", memory, kinds, "{} / f32",
              note="Largest resident size of the process; the largest size of all tensors."),
        group("Activations in bf16: training step", "ms", training, kinds, "{} / f32"),
        group("Activations in bf16: loss", "mean over the steps since the row before", rows, kinds, kind="lines", decimals=4,
              across="training steps",
              note="isonorm train on Fashion-MNIST, the same batches of 64 in both; then the test images, with the accuracy "
                   "of both."),
    ]


def train(bench, kept, steps):
    """The losses of a training, and the test of the trained model."""
    bench.say(f"training with activations in {kept}")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        command = [bench.options.build / "tools" / "isonorm", "train", "--activations", kept, "--steps", str(steps), "--threads",
                   str(bench.options.threads), "--log", log, "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failure(done.stderr.strip().splitlines()[-1])
        lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line], [line["evaluation"] for line in lines if "evaluation" in line][-1]


DEFAULT = {"steps": steps, "bf16": bf16, "kernels": kernels, "convolution": convolution, "bandwidth": bandwidth,
           "threads": threads, "decoding": decoding}
FULL = DEFAULT | {"forms": forms, "context": context, "activations": activations}
ALL = FULL | {"isa": instruction_sets}
