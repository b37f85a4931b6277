"""Training steps on a device compared with PyTorch's: parts of `scripts/gpu speed`."""

import statistics
from contextlib import ExitStack

from run import LEAST
from sections import at_least, at_most, group, plain_row, row
from sides import Failure, Work, alternate, ratio

BEST = "Choices of a training step"  # title
PRODUCTS = "a large product, with a bias"  # a row of the ceilings
CASES = [("gpt2", 32), ("vit_base", 256)]
SEPARATE = {"ISONORM_GPU_BGRADB": "0"}  # computes bias gradients by a separate kernel
# Precision of a step: arguments of our program and of PyTorch's. mixed: f32 parameters, products in bf16 (autocast in
# PyTorch).
PRECISIONS = {"mixed": (["--precision", "bf16"], ["--dtype", "bf16"]), "bf16": (["--dtype", "bf16"], ["--dtype", "bf16", "--pure"]),
              "f32": (["--dtype", "f32"], ["--dtype", "f32"]), "f64": (["--dtype", "f64"], ["--dtype", "f64"])}


def flops(case, batch):
    """Of a training step of the model alone: 6 a weight and row, causal attention's half, as llm.c counts."""
    if case == "gpt2":
        return batch * 1024 * (6 * (12 * 12 * 768 ** 2 + 50304 * 768) + 6 * 12 * 768 * 1024)
    if case == "vit_base":
        return batch * (6 * 197 * 12 * 12 * 768 ** 2 + 6 * 196 * 768 ** 2 + 12 * 12 * 768 * 197 ** 2)
    raise Failure(f"{case}: its operations are not counted here")


def rounds(self, what, works, seconds, times=1):
    result = alternate(works, 0 if self.options.tiny else seconds * self.options.scale, times)
    self.raw[what] = result
    return result


def ceiling(self):
    """Operations per second of a large product in bf16, ours or PyTorch's; none if they were not measured."""
    made = self.group("Ceilings")
    values = [max(row["values"].values()) for row in made["rows"] if row["name"] == PRODUCTS] if made else []
    return 1e12 * values[0] if values else None


ORDERS = {"deterministic": [], "any order": ["--any-order"]}
SUMS = {"fused sums": {}, "separate sums": SEPARATE}
LAUNCHES = {"eager": [], "captured": ["--captured"]}


def choices(self):
    """GPT-2's step under different options, each compared with the first."""
    case, batch = ("gpt_smoke", 2) if self.options.tiny else CASES[0]
    arguments = [case, *PRECISIONS["mixed"][0], "--batch", str(batch)]
    base, *others = ((o, s, l) for o in ORDERS for s in SUMS for l in LAUNCHES)
    for choice in others:
        name = ", ".join(choice)
        with self.part(f"{case}: {name}", 15) as go, ExitStack() as stack:
            if not go:
                continue
            sides = {label: stack.enter_context(self.ours("step", *arguments, *ORDERS[o], *LAUNCHES[l], environment=SUMS[s]))
                     for label, (o, s, l) in (("base", base), ("this", choice))}
            made = row(name, rounds(self, f"{case}: {name}", {n: Work(s, "train") for n, s in sides.items()}, 2, 3), base="this")
            self.add(group(BEST, "ms", [made], ["this", "base"], "this / {}", note=f"{case}, mixed. base: {', '.join(base)}."))


def best(self, order):
    """(arguments, environment) of the fastest choice of this order of sums; the plainest if none was measured."""
    made = self.group(BEST)
    ratios = {row["name"]: row["ratios"]["base"] for row in made["rows"]} if made else {}
    _, sums, launches = min(((order, s, l) for s in SUMS for l in LAUNCHES), key=lambda c: ratios.get(", ".join(c), 1.0))
    return [*ORDERS[order], *LAUNCHES[launches]], SUMS[sums]


def step(self, case, batch, precision, order, modes, aims, seconds):
    """One case: ours and each mode of PyTorch in turns, one mode after the other, so that a device has room for both.
    Returns our milliseconds, and the peak of tensors by side in GB."""
    values, ratios, peaks = {}, {}, {}
    of_ours, of_torch = PRECISIONS[precision]
    chosen, environment = best(self, order)
    asked = ["--deterministic"] if order == "deterministic" else []
    with self.ours("step", case, *of_ours, "--batch", str(batch), *chosen, environment=environment) as ours:
        def measure(name, other=None):
            works = {"ours": Work(ours, "train")} | ({name: Work(other, "train")} if other else {})
            results = rounds(self, f"{case} {precision} {batch}, {order}: {name}", works, seconds, 3)
            for side, found in results.items():
                values.setdefault(side, []).append(found["median_ms"])
                if found.get("peak_tensor_bytes"):
                    peaks[side] = found["peak_tensor_bytes"] / 1e9
            if other:
                ratios[name] = ratio(results["ours"], results[name])

        for name, arguments in (modes if self.options.python else {}).items():
            self.say(f"  {name}")
            try:
                with self.torch(name, "torch_step.py", case, "--serve", "--fused", *of_torch, "--batch", str(batch), *asked,
                                "--gelu", ours.facts["gelu"], *arguments) as other:
                    if other.facts["parameters"] != ours.facts["parameters"]:
                        raise Failure(f"it has {other.facts['parameters']} parameters, ours {ours.facts['parameters']}")
                    measure(name, other)
            except Failure as why:  # a mode that fails here is no reason to skip the others
                if self.left() < LEAST and not values:
                    raise
                if self.left() < LEAST:  # keeps what was measured
                    self.leave_out(f"{case}, {name}, {order}", "was cut short")
                    break
                self.failed(f"{case}, {name}, {order}", str(why))
        if not values:
            measure("ours alone")
    values = {name: statistics.median(of) for name, of in values.items()}
    made = dict(name=f"{case}, batch {batch}, {precision}", values=values, ratios=ratios, aim=None, detail="")
    self.add(group(f"Training step, {case}, {precision}, {order}", "ms", [made], list(values),
                   aims={n: at_most(a) for n, a in aims.items()},
                   note="Forward, loss, backward, clipping, AdamW; PyTorch's fused AdamW. mixed: f32 parameters, products in bf16 "
                        "(PyTorch's autocast); bf16: parameters, too. deterministic: asked of both. Ours: "
                        f"{' '.join(chosen) or 'no option'}{' '.join(f', {k}={v}' for k, v in environment.items())}."))
    return values["ours"], peaks


MODES = {"compile": ["--compile"], "eager": []}


def gpt2_steps(self):
    steps_beside_torch(self, 0, [("mixed", "any order"), ("mixed", "deterministic")])


def large_steps(self):
    steps_beside_torch(self, 1, [("mixed", "any order"), ("bf16", "any order")])
    steps_beside_torch(self, 0, [("bf16", "any order")])


def steps_beside_torch(self, number, wanted):
    """Steps of a large case, with the choices that were measured to be the fastest."""
    case, batch = ([("gpt_smoke", 2), ("vit_smoke", 2)] if self.options.tiny else CASES)[number]
    for precision, order in wanted:
        with self.part(f"{case}, {precision}, {order}", 60 if self.options.python else 20, limit=300) as go:
            if not go:
                continue
            ms, peaks = step(self, case, batch, precision, order, MODES, {"compile": 1.0}, 8)
            rate = ceiling(self)
            if rate and not self.options.tiny:
                used = flops(case, batch) / (1e-3 * ms) / rate
                self.add(group("Use of the machine", "model FLOP/s / the product's", [
                    plain_row(f"{case}, {precision}, {order}", {"ours": used}, ratios=False, aim=at_least(0.55))], ["ours"],
                    better="higher"))
            if peaks:
                self.add(group("Memory", "GB in tensors at most", [plain_row(f"{case}, {precision}, {order}", peaks)], list(peaks),
                               aims={"eager": at_most(0.6)}))


def other_steps(self):
    tiny = self.options.tiny
    for dtype, batch in (("f32", 8), ("f64", 2)):
        with self.part(f"GPT-2, {dtype}", 40) as go:
            if go:
                step(self, "gpt_smoke" if tiny else "gpt2", 2 if tiny else batch, dtype, "any order", {"eager": []}, {"eager": 0.9}, 8)
    with self.part("a tiny step", 40) as go:
        if go:
            modes = {"eager": [], "compile": ["--compile"], "reduce-overhead": ["--compile", "--mode", "reduce-overhead"]}
            step(self, "gpt_smoke" if tiny else "gpt2_short", 1, "mixed", "any order", modes, {"reduce-overhead": 1.0}, 6)


def forms(self):
    """The cost of the forms of the stream, and of projecting raw weights."""
    sides_of = {"Pre-LN": ["layer_norm"], "Pre-RMSNorm": ["rms_norm"], "Pre-CRMSNorm": ["crms_norm"],
                "mapped once": ["rms_norm", "--storage", "mapped"]}
    for case, batch in ([("gpt_smoke", 2)] if self.options.tiny else CASES):
        with self.part(f"{case}: forms", 40) as go, ExitStack() as stack:
            if not go:
                continue
            sides = {n: stack.enter_context(self.ours("step", case, *PRECISIONS["mixed"][0], "--batch", str(batch), "--no-affine",
                                                      "--form", *form)) for n, form in sides_of.items()}
            results = rounds(self, f"{case} forms", {n: Work(s, "train") for n, s in sides.items()}, 10, 3)
            made = row(case, results, base="Pre-LN", inverse=True)
            cost = ratio(results["Pre-RMSNorm"], results["mapped once"]) - 1
            made["detail"] = f"projecting raw weights: {100 * cost:+.1f} % (aim: <= 1 %)"
            self.add(group("Forms, training step", "ms", [made], list(sides_of), "{} / Pre-LN",
                           note="mixed. Pre-RMSNorm projects the weights of Pre-LN in every forward; mapped once: projected ones are "
                                "stored."))
