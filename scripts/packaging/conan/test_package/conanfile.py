"""tests/consumer, built and run against the package."""
import os

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake

ROOT = os.path.join("..", "..", "..")
CONSUMER = os.path.join(ROOT, "tests", "consumer")


class Consumer(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeToolchain", "VirtualRunEnv"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        self.folders.build = os.path.join(ROOT, "build", "conan")
        self.folders.generators = self.folders.build

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder=CONSUMER)
        cmake.build()

    def test(self):
        if can_run(self):
            for program in "train", "own_op":
                self.run(os.path.join(self.build_folder, program), env="conanrun")
