"""`scripts/gpu build`: configures and builds the programs of the other legs."""

import os
import subprocess

from run import NotBuilt, last_line
from sides import ROOT

# In the order of building: target -> its path in the build tree.
BENCHMARKS = {"step": "benchmarks/step", "kernels": "benchmarks/kernels", "isonorm_program": "tools/isonorm",
              "gpu_roofline": "benchmarks/gpu_roofline", "step_emulated": "benchmarks/step_emulated"}
TESTS = {"cuda": ["test_ops_cuda", "test_optim_cuda", "test_device_cuda", "test_distributed_cuda", "test_gpu_cuda"],
         "emulated": ["test_ops_gpu", "test_optim_gpu", "test_device", "test_distributed_gpu"]}


def programs(form):
    return BENCHMARKS | {name: f"tests/{name}" for name in TESTS[form]}


def leg(self, architectures="90a"):
    """Returns whether everything was built."""
    options = self.options
    configure = ["cmake", "-S", ROOT, "-B", options.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 f"-DISONORM_GPU={options.form}", f"-DISONORM_CUDA_ARCHITECTURES={options.architectures or architectures}"]
    self.say(f"configuring {options.build}")
    code, output = self.run("configure", configure, 120)
    targets = programs(options.form)
    if code != 0 and "Catch2" in output:  # the other legs need it only for a part of `truth`
        self.leave_out("the test programs:", "Catch2 is not installed")
        code, output = self.run("configure", [*configure, "-DISONORM_BUILD_TESTS=OFF"], 120)
        targets = BENCHMARKS
    if code != 0:
        errors = [line.strip() for line in output.splitlines() if line.strip()]
        first = next((i for i, line in enumerate(errors) if "Error" in line), len(errors) - 1)
        raise NotBuilt("cmake: " + (" ".join(errors[first:first + 4]) if errors else f"ended with {code}") +
                       "; or bring what `scripts/gpu pack` makes elsewhere")
    # One by one: if the build is cut short, the programs that come first are there.
    for target in targets:
        if not self.enough(target, 20):
            continue
        self.say(f"building {target}")
        code, output = self.run(f"build {target}", ["cmake", "--build", options.build, "--parallel", os.cpu_count(), "--target", target],
                                self.left() + 1)
        if code != 0:
            error = next((line for line in output.splitlines() if "error" in line.lower()), last_line(output))
            self.failed(target, error)
        self.save()
    version = subprocess.run([self.program("tools", "isonorm"), "--version"], capture_output=True, text=True)
    self.say(version.stdout.strip())
    return not self.failures and not self.left_out
