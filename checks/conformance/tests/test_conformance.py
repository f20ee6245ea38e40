"""The page of what the conformance tests record."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import conformance

ROWS = """\
operation\tint\tdouble\tordered_map\tget\t
operation\tint\tdouble\tordered_map\tat\tcopies the value
operation\tint\tdouble\tordered_map\tscan\t
operation\tint\tdouble\thash_map\tget\t
operation\tint\tdouble\thash_map\tat\tcopies the value
requirement\tmap.access\t`at()` throws.\tordered_map
requirement\tmap.access\t`at()` throws.\thash_map
requirement\tmap.access\tOnly one.\thash_map
absent\t`begin()`\tno references\tordered_map
"""


class Page(unittest.TestCase):
    def setUp(self):
        self.lines = conformance.page(ROWS).splitlines()

    def test_operations(self):
        self.assertIn("| `int` | `double` | both 1/2 | - | - | - | - | - | `ordered_map` | - | - |", self.lines)
        self.assertIn("| `double` | `at` | copies the value |", self.lines)

    def test_requirements(self):
        self.assertIn("| [map.access] | `at()` throws. | both |", self.lines)
        self.assertIn("| [map.access] | Only one. | `hash_map` |", self.lines)
        self.assertIn("| `begin()` | no references | `ordered_map` |", self.lines)

    def test_an_operation_of_no_group_is_found(self):
        with self.assertRaisesRegex(RuntimeError, "in no group"):
            conformance.page("operation\tint\tint\tordered_map\tnew_one\t\n")
        with self.assertRaisesRegex(RuntimeError, "no operations"):
            conformance.page("")

    def test_a_stale_page_is_found(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "page.md"
            made = conformance.page(ROWS)
            conformance.table.complaints_about(path, made, True, "again")
            self.assertEqual(conformance.table.complaints_about(path, made, False, "again"), [])
            path.write_text(made.replace("Only one.", "Another."))
            found = conformance.table.complaints_about(path, made, False, "again")
        self.assertIn("not on the page: | [map.access] | Only one. | `hash_map` |", found)
        self.assertEqual(len(found), 3)


if __name__ == "__main__":
    unittest.main()
