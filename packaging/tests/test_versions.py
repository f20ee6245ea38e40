"""All files that name the version name the one of include/elidex/version.hpp."""

import json
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def text(path):
    return (ROOT / path).read_text()


def version_of(header):
    return re.search(r'version\[\] = "(\d+\.\d+\.\d+)"', header).group(1)


class Versions(unittest.TestCase):
    def setUp(self):
        self.header = text("include/elidex/version.hpp")
        self.version = version_of(self.header)
        self.minor = self.version.rpartition(".")[0]

    def test_the_macros_are_the_string(self):
        macros = [re.search(rf"#define ELIDEX_VERSION_{part} (\d+)", self.header).group(1)
                  for part in ("MAJOR", "MINOR", "PATCH")]
        self.assertEqual(".".join(macros), self.version)

    def test_cmake_reads_the_header(self):
        self.assertRegex(text("CMakeLists.txt"), r"file\(STRINGS \S+/include/elidex/version\.hpp")
        self.assertIn("project(elidex VERSION ${elidex_version}", text("CMakeLists.txt"))

    def test_citation(self):
        self.assertIn(f"\nversion: {self.version}\n", text("CITATION.cff"))

    def test_vcpkg_port(self):
        self.assertEqual(json.loads(text("packaging/vcpkg/elidex/vcpkg.json"))["version"],
                         self.version)

    def test_debian(self):
        self.assertRegex(text("debian/changelog"), rf"^elidex \({re.escape(self.version)}\) ")
        soname = "libelidex" + self.minor
        self.assertIn(f"\nPackage: {soname}\n", text("debian/control"))
        self.assertTrue((ROOT / "debian" / f"{soname}.install").exists())
        self.assertIn(f'"elidex {self.minor}"', text("debian/man/elidex.1"))
        self.assertIn(f'"elidex {self.minor}"', text("debian/man/elidex-c++.1"))

    def test_pages(self):
        for page in ("docs/VERSIONS.md", "docs/LINKING.md"):
            self.assertEqual(set(re.findall(r"libelidex\.so\.(\d+\.\d+)", text(page))),
                             {self.minor}, page)


if __name__ == "__main__":
    unittest.main()
