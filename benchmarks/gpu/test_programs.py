"""The test programs of a build on the device: a part of `scripts/gpu truth`."""

import os
import re
from concurrent.futures import ThreadPoolExecutor

from run import last_line

NO_LIBRARIES = {"ISONORM_GPU_LIBRARIES": "0"}
# The groups of tests/op_cases/all.cpp. Each runs in its own process, because a device error persists until the process
# ends.
OP_GROUPS = ["create", "copy", "random", "unary", "binary", "comparison", "reduce", "matmul", "einsum", "shape", "arrange", "window",
             "index", "statistics", "distance", "softmax", "rotary", "norm", "image", "convolution", "resize", "loss",
             "mlp", "attention", "recurrent", "group_norm", "linear_cross_entropy"]
AT_ONCE = max(4, len(os.sched_getaffinity(0)) // 2)  # test programs at a time; their references are computed on the CPU


def programs(self):
    """(what, program, its runs): a run is (name, arguments, environment). The emulation's programs if the library is emulated."""
    cuda = not self.emulated()
    tiny = self.options.tiny
    rows = [(group, ["bad calls*"] if tiny else [], {"ISONORM_OP_ROWS": group}) for group in (OP_GROUPS[:2] if tiny else OP_GROUPS)]
    yield "ops", "test_ops_cuda" if cuda else "test_ops_gpu", rows
    yield "optimizers", "test_optim_cuda" if cuda else "test_optim_gpu", [("", ["*norm*"] if tiny else [], {})]
    yield "models", "test_device_cuda" if cuda else "test_device", [("", ["files are one*"] if tiny else ["~[two devices]"], {})]
    yield "ranks", "test_distributed_cuda" if cuda else "test_distributed_gpu", [("", [], {})]
    if cuda:
        yield "CUDA", "test_gpu_cuda", [("", [], {})]


def tests(self):
    for label, environment in [("", {}), (", without libraries", NO_LIBRARIES)][:1 if self.emulated() else 2]:
        for what, program, runs in programs(self):
            path = self.options.build / "tests" / program
            if not path.exists():
                self.failed(f"tests of {what}", f"{program} is not built")
                continue
            with self.part(f"tests of {what}{label}", 10, 300) as go, ThreadPoolExecutor(AT_ONCE) as pool:
                if go:
                    done = list(pool.map(lambda r: (r, test(self, path, *r, environment)), runs))
                    for (name, arguments, more), (code, output) in done:
                        if code != 0:
                            by_case(self, pool, path, name, arguments, environment | more, label, first_failure(code, output))
                    passed = sum(code == 0 for _, (code, _) in done)
                    self.say(f"  {program}: {passed} of {len(done)} passed" if len(done) > 1 or not passed else
                             f"  {program}: {summary(done[0][1][1])}")
                    for line in done[0][1][1].splitlines():
                        if line.strip().startswith("not run: "):
                            self.say(f"  {program}: {line.strip()}")


def test(self, path, name, arguments, more, environment):
    threads = str(max(1, len(os.sched_getaffinity(0)) // AT_ONCE))
    label = " ".join([path.name, name, *environment, *arguments]).replace("  ", " ")
    return self.run(label, [path, *arguments], 150, {"OMP_NUM_THREADS": threads} | environment | more)


def by_case(self, pool, path, name, arguments, environment, label, whole):
    """A run failed: runs each test case in a process of its own, because a failed case may break the later ones."""
    listed = self.run(f"{path.name}: names", [path, "--list-test-names-only", *arguments], 60, environment)[1]
    cases = [line.strip() for line in listed.splitlines() if line.strip()]
    escaped = [re.sub(r"([,\[*])", r"\\\1", case) for case in cases]
    done = list(pool.map(lambda case: test(self, path, name, [case], {}, environment) if self.left() > 1 else None, escaped))
    if None in done:
        self.leave_out(f"{path.name} {name}".strip(), f"{done.count(None)} cases were not tried by themselves")
    bad = [(case, first_failure(*one)) for case, one in zip(cases, done) if one and one[0] != 0]
    for case, why in bad or [("all cases pass one by one, together not", whole)]:
        self.failed(f"{path.name} {name}".strip() + label, f"{case}: {why}")


def summary(output):
    found = re.search(r"All tests passed \(([^)]*)\)", output)
    return found.group(1) if found else last_line(output)


def first_failure(code, output):
    """One line from the output of a test program or compute-sanitizer."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    at = next((i for i, line in enumerate(lines) if "FAILED" in line), None)
    if at is not None:
        said = " ".join(lines[at:at + 4])
    else:
        said = next((line for line in lines if "error" in line.lower()), last_line(output))
    return ("the time was over; " if code == 124 else f"exit code {code}: ") + said[:400]
