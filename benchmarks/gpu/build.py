"""`scripts/gpu build`: configures and builds what the other legs run."""

import os
import subprocess

from run import NotBuilt, last_line
from sides import ROOT

PROGRAMS = {"cuda": ["isonorm_program", "benchmarks", "step_emulated", "test_ops_cuda", "test_optim_cuda", "test_device_cuda",
                     "test_gpu_cuda"],
            "emulated": ["isonorm_program", "benchmarks", "step_emulated", "test_ops_gpu", "test_optim_gpu", "test_device"]}


def leg(self):
    options = self.options
    configure = ["cmake", "-S", ROOT, "-B", options.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 f"-DISONORM_GPU={options.form}", f"-DISONORM_CUDA_ARCHITECTURES={options.architectures}"]
    self.say(f"configuring {options.build}")
    code, output = self.run("configure", configure, 120)
    without_tests = code != 0 and "Catch2" in output
    if without_tests:  # the other legs need it for a part of `truth` alone
        self.left_out.append("the test programs: Catch2 is not installed")
        code, output = self.run("configure", [*configure, "-DISONORM_BUILD_TESTS=OFF"], 120)
    if code != 0:
        errors = [line.strip() for line in output.splitlines() if line.strip()]
        first = next((i for i, line in enumerate(errors) if "Error" in line), len(errors) - 1)
        raise NotBuilt("cmake: " + (" ".join(errors[first:first + 4]) if errors else f"ended with {code}"))
    # One by one: what is cut short keeps the programs that come first.
    for target in PROGRAMS[options.form]:
        if without_tests and target.startswith("test_"):
            continue
        if not self.enough(target, 20):
            continue
        self.say(f"building {target}")
        code, output = self.run(f"build {target}", ["cmake", "--build", options.build, "--parallel", os.cpu_count(), "--target", target],
                                self.left())
        if code != 0:
            error = next((line for line in output.splitlines() if "error" in line.lower()), last_line(output))
            self.failed(target, "the time was over; run it again" if code == 124 else error)
        self.save()
    with_device = subprocess.run([options.build / "tools" / "isonorm", "--version"], capture_output=True, text=True) \
        if (options.build / "tools" / "isonorm").exists() else None
    if with_device is None:
        raise NotBuilt(f"{options.build / 'tools' / 'isonorm'} was not built")
    self.say(with_device.stdout.strip())
