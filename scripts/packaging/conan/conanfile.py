"""The library as a package of Conan 2:  conan create scripts/packaging/conan --build=missing

What it is built with comes from the system's packages, which Conan names and, with -c tools.system.package_manager:mode=install, installs.
"""
import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy, load
from conan.tools.system.package_manager import Apt

ROOT = os.path.join("..", "..")


class Isonorm(ConanFile):
    name = "isonorm"
    license = "MIT"
    description = "Deep learning in C++20 where Pre-LN, Pre-RMSNorm and Pre-CRMSNorm are one model"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "kernels": ["all", "native"]}
    default_options = {"shared": False, "kernels": "all"}

    def set_version(self):
        text = load(self, os.path.join(self.recipe_folder, ROOT, "CMakeLists.txt"))
        self.version = re.search(r"isonorm VERSION (\S+)", text)[1]

    def export_sources(self):
        root = os.path.join(self.recipe_folder, ROOT)
        copy(self, "*", root, self.export_sources_folder, excludes=("build/*", ".*", "tests/*"))
        copy(self, "tests/emulated_gpu/*", root, self.export_sources_folder)

    def layout(self):
        self.folders.build = self.folders.generators = "build"

    def system_requirements(self):
        Apt(self).install(["libopenblas-openmp-dev", "zlib1g-dev", "libpcre2-dev", "libutf8proc-dev", "libpng-dev", "libjpeg-dev",
                           "nlohmann-json3-dev"], check=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        off = "BUILD_TESTS", "BUILD_TOOLS", "BUILD_EXAMPLES", "BUILD_BENCHMARKS"
        toolchain.cache_variables.update({f"ISONORM_{name}": "OFF" for name in off})
        toolchain.cache_variables.update(ISONORM_GPU="off", ISONORM_UNITY="ON", ISONORM_KERNELS=str(self.options.kernels))
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()

    def package_info(self):
        # The library's CMake package lists the libraries to link.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "isonorm")]
