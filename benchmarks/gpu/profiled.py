"""`scripts/gpu profile`: a step by kernel slot, with the least time that its bytes and operations need."""

import json

from run import last_line
from sections import group, plain_row

CASES = [("gpt2", 32), ("vit_base", 256)]


def floors(self, case, batch):
    """Least milliseconds by slot, on an H100 if the device's name says so, else on an H200; and the counts of the whole step."""
    code, output = self.run(f"{case}: roofline", [self.program("benchmarks", "gpu_roofline"), case, "--batch", batch, "--precision", "bf16",
                                                  "--form", "layer_norm", "--json"], 120)
    if code != 0:
        self.failed(f"{case}: roofline", last_line(output))
        return {}, {}
    counted = json.loads(last_line(output))["layer_norm"]
    card = "H100" if "H100" in self.device_name else "H200"
    return {slot: c["floor_ms"][card] for slot, c in counted["slots"].items()}, counted | {"card": card}


def leg(self):
    self.need_device()
    for case, batch in ([("gpt_smoke", 2), ("vit_smoke", 2)] if self.options.tiny else CASES):
        with self.part(f"{case}, mixed, batch {batch}", 20) as go:
            if not go:
                continue
            times = 1 if self.options.tiny else 5
            with self.ours("step", case, "--precision", "bf16", "--batch", str(batch)) as side:
                plain = side.go(times, "train")["ms"]
                answer = side.go(times, "profile train")
            least, counted = floors(self, case, batch)
            names = sorted(answer["kernels"], key=lambda n: -answer["kernels"][n])
            rows = [plain_row(n, {"measured": answer["kernels"][n] / times, "floor": least.get(n, 0.0)}, ratios=False)
                    for n in names]
            whole = {"measured": sorted(plain)[len(plain) // 2]}
            if counted:
                whole["floor"] = counted["all"]["floor_ms"][counted["card"]]
            rows.insert(0, plain_row("the step, unprofiled", whole, ratios=False))
            note = ""
            if counted:
                note = (f"Floor: the sum over calls of the larger of bytes and operations at the rates of an {counted['card']} "
                        f"(benchmarks/gpu/roofline.cpp); {counted['all']['launches']} launches, {counted['waits']} waits.")
            self.add(group(f"Time of a step by kernel, {case}", "ms", rows, ["measured", "floor"], note=note))
            self.raw[f"{case} profile"] = answer
    with self.part("trace of a step", 10) as go:
        if go:
            trace = self.results.folders[0] / "trace.json"
            case = "gpt_smoke" if self.options.tiny else "gpt2"
            code, output = self.run("trace", [self.program("benchmarks", "step"), case, "--precision", "bf16", "--device", self.options.device,
                                              "--steps", "1"], 60, {"ISONORM_PROFILE": str(trace)})
            if code == 0:
                self.results.write("trace.json", trace.read_text())
                self.say(f"  {trace} (for ui.perfetto.dev)")
            else:
                self.failed("trace", last_line(output))
