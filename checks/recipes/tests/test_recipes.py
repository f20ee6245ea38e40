"""The recipes of docs/CONTRIBUTING.md work, and the check finds those that do not."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import recipes  # noqa: E402

LOCK = ("## Recipes\n\n### Add a lock\n\nWrite `include/lock.hpp`:\n\n```cpp\nint held{};\n```\n\n"
        "```diff\n--- a/src/list\n+++ b/src/list\n@@ -1,1 +1,2 @@\n one\n+two\n```\n\n### Look\n\nText\n")


class Parts(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.copy = Path(directory.name)
        for name in ("include", "src"):
            (self.copy / name).mkdir()
        (self.copy / "src" / "list").write_text("zero\none\n")
        self.recipe, = recipes.recipes_of("Text\n" + LOCK)

    def test_files_and_diffs(self):
        changed = recipes.apply(self.recipe, self.copy)
        self.assertEqual([str(p.relative_to(self.copy)) for p in changed],
                         ["include/lock.hpp", "src/list"])
        self.assertEqual((self.copy / "src" / "list").read_text(), "zero\none\ntwo\n")
        recipes.check(self.recipe, changed[:1], self.copy, self.copy)

    def test_a_diff_of_other_text_is_found(self):
        (self.copy / "src" / "list").write_text("zero\n")
        with self.assertRaisesRegex(recipes.Wrong, "does not apply"):
            recipes.apply(self.recipe, self.copy)

    def test_code_that_does_not_compile_is_found(self):
        (self.copy / "include" / "lock.hpp").write_text("int held{\n")
        with self.assertRaisesRegex(recipes.Wrong, "lock.hpp does not compile"):
            recipes.compile_one(self.copy / "include" / "lock.hpp", self.copy)

    def test_a_file_that_is_there_is_found(self):
        (self.copy / "include" / "lock.hpp").write_text("")
        with self.assertRaisesRegex(recipes.Wrong, "is there already"):
            recipes.apply(self.recipe, self.copy)


class Page(unittest.TestCase):
    """One test for each recipe with code."""


def test_of(recipe):
    def test(self):
        with tempfile.TemporaryDirectory() as directory:
            copy = Path(directory) / "copy"
            recipes.copy_sources(copy)
            changed = recipes.apply(recipe, copy)
            recipes.check(recipe, changed, copy, Path(directory) / "plots")
    return test


for one in recipes.recipes_of(recipes.PAGE.read_text()):
    setattr(Page, "test_" + one.title.lower().replace(" ", "_"), test_of(one))


if __name__ == "__main__":
    unittest.main()
