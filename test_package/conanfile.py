"""Compiles packaging/use/store.cpp with the package, and runs it."""

import os
import tempfile

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout


class ElidexTest(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "VirtualRunEnv"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.cache_variables["ELIDEX_TARGET"] = (
            "elidex::shared" if self.dependencies["elidex"].options.shared else "elidex::elidex")
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            with tempfile.TemporaryDirectory() as directory:
                program = os.path.join(self.cpp.build.bindir, "store")
                self.run(f'"{program}" "{directory}"', env="conanrun")
