"""The Conan 2 recipe of the library. It has no dependencies: `conan create . -nr` needs no network."""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rm, rmdir

required_conan_version = ">=2.0"


class ElidexConan(ConanFile):
    name = "elidex"
    license = "Apache-2.0"
    description = "Maps, locks, columns and transactions that stay fast under contention"
    topics = ("concurrency", "map", "transactions", "lock-elision", "htm")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}
    exports_sources = ("CMakeLists.txt", "LICENSE", "README.md", "CHANGELOG.md", "include/*", "src/*",
                       "docs/*.md", "docs/results/readme.png")

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, "include/elidex/version.hpp"))
        self.version = re.search(r'version\[\] = "([^"]+)"', header).group(1)

    def validate(self):
        check_min_cppstd(self, 20)
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("elidex: the system is not supported (expected Linux)")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["ELIDEX_SHARED"] = bool(self.options.shared)
        for part in ("CLI", "MACHINE", "TESTS", "EXAMPLES", "PRELOAD"):
            toolchain.cache_variables["ELIDEX_BUILD_" + part] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        if self.options.shared:
            rm(self, "libelidex.a", os.path.join(self.package_folder, "lib"))
        for directory in ("share", "lib/cmake", "lib/pkgconfig"):
            rmdir(self, os.path.join(self.package_folder, directory))

    def package_info(self):
        target = "elidex::shared" if self.options.shared else "elidex::elidex"
        self.cpp_info.set_property("cmake_target_name", target)
        self.cpp_info.set_property("pkg_config_name", "elidex")
        self.cpp_info.libs = ["elidex"]
        self.cpp_info.system_libs = ["pthread"]
