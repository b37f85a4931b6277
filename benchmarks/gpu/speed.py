"""`scripts/gpu speed`: kernels and training steps compared with PyTorch's eager and torch.compile."""

from contextlib import ExitStack

import sections
from sections import at_least, group, plain_row, row
from sides import Work, ratio
from steps import PRODUCTS, choices, forms, gpt2_steps, large_steps, other_steps, rounds

ELEMENTS = 1 << 25  # of a tensor of the norms: 64 MiB in bf16, more than a device's cache
WIDTHS = [512, 768, 1024, 2048, 4096, 8192]
TENSORS = 4  # tensors that add_norm reads and writes, forward and backward, each counted once
PRODUCT = 8192  # rows and columns of the product that serves as the ceiling


def peers(self, stack, program, dtype, compiled=True):
    """Ours, and PyTorch's sides if there are any."""
    sides = {"ours": stack.enter_context(self.ours(program, "--dtype", dtype))}
    if self.options.python:
        script = f"torch_{program}.py"
        sides["eager"] = stack.enter_context(self.torch("eager", script, "--dtype", dtype))
        if compiled:
            sides["compile"] = stack.enter_context(self.torch("compile", script, "--dtype", dtype, "--compile"))
    return sides


def ceilings(self):
    """The machine's peak rates: a copy, a large product."""
    size, copied = (64, 1 << 12) if self.options.tiny else (PRODUCT, 1 << 31)
    found = {}
    with self.part("ceilings", 20, limit=60) as go, ExitStack() as stack:
        if not go:
            return
        sides = peers(self, stack, "kernels", "bf16", compiled=False)
        copies = rounds(self, "copy", {n: Work(s, f"memcpy {copied} 1") for n, s in sides.items()}, 4)
        products = rounds(self, "product", {n: Work(s, f"linear {size} {size}", "forward_ms") for n, s in sides.items()}, 6)
        found["copy"] = {name: 2 * 2 * copied / 1e6 / r["median_ms"] for name, r in copies.items()}  # read + written, bf16
        found["product"] = {name: 2 * size ** 3 / 1e9 / r["median_ms"] for name, r in products.items()}
        self.add(group("Ceilings", "GB/s of a copy, TFLOP/s of a product in bf16",
                       [plain_row(f"copy of {2 * copied / 1e9:.1f} GB", found["copy"], inverse=True),
                        plain_row(PRODUCTS, found["product"], inverse=True)], list(sides),
                       ratio="{} / ours", better="higher"))


def norms(self):
    elements = 1 << 10 if self.options.tiny else ELEMENTS
    for direction, aim in (("forward", 0.85), ("backward", 0.80)):
        for width in [64] if self.options.tiny else WIDTHS:
            with self.part(f"norms, width {width}, {direction}", 20) as go, ExitStack() as stack:
                if not go:
                    continue
                sides = peers(self, stack, "kernels", "bf16")
                count = elements // width
                works = {"RMSNorm": Work(sides["ours"], f"add_norm_rms {count} {width}", f"{direction}_ms")}
                works |= {n if n != "ours" else "LayerNorm": Work(s, f"add_norm_layer {count} {width}", f"{direction}_ms")
                          for n, s in sides.items()}
                works["copy"] = Work(sides["ours"], f"memcpy {TENSORS // 2 * count} {width}")
                results = rounds(self, f"norm {width} {direction}", works, 3)
                made = plain_row(str(width), {n: ratio(results["copy"], r) for n, r in results.items() if n != "copy"}, ratios=False)
                self.add(group(f"Residual + norm, {direction}", "its bytes per second / a copy's", [made],
                               list(made["values"]), kind="lines", better="higher", across="width of a row", marks=[[1, "copy"], [aim, "aim"]],
                               aims={n: at_least(aim) for n in ("LayerNorm", "RMSNorm")},
                               note="bf16; gain (and bias) and their gradients included; each of the four tensors of "
                                    f"{2 * elements >> 20} MiB counts once. eager, compile: LayerNorm."))


def single(self):
    sizes = [("cross_entropy", 64, 32), ("adamw", 2, 16), ("gelu", 64, 32), ("softmax", 64, 32)] if self.options.tiny else \
        [("cross_entropy", 8192, 50304), ("adamw", 24, 2048), ("gelu", 32768, 3072), ("softmax", 32768, 1024)]
    for op, count, width in sizes:
        with self.part(f"{op} [{count}, {width}]", 25) as go, ExitStack() as stack:
            if not go:
                continue
            dtype = "f32" if op == "adamw" else "bf16"
            sides = peers(self, stack, "kernels", dtype)
            elements = count * width * (width if op == "adamw" else 1)
            works = {n: Work(s, f"{op} {count} {width}") for n, s in sides.items()}
            works["copy"] = Work(sides["ours"], f"memcpy {elements * sections.PASSES[op] // 2} 1")
            made = row(f"{op} [{count}, {width}], {dtype}", rounds(self, op, works, 4))
            self.add(group("Single ops", "ms", [made], list(made["values"]),
                           note="Forward and backward; AdamW: a step. Copy: of the bytes that the op has to read and write."))


PARTS = {"ceilings": ceilings, "gpt2": gpt2_steps, "steps": large_steps, "choices": choices, "forms": forms, "norms": norms, "ops": single,
         "other": other_steps}


def leg(self):
    self.need_device()
    if not self.options.python:
        self.leave_out("PyTorch:", "--python names no interpreter that has it; ours alone is measured")
    self.run_parts(PARTS)
