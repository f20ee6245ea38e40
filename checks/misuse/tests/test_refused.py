"""The compiler refuses each call of refused.cpp with the words above it."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import refused


class Refused(unittest.TestCase):
    def test_each_call_with_its_words(self):
        self.assertEqual(list(refused.complaints()), [])

    def test_a_call_that_compiles_or_has_other_words_is_found(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "planted.cpp"
            path.write_text('#include "elidex/ordered_map.hpp"\n'
                            "void of_planted_calls(elidex::ordered_map<int, int>& map) {\n"
                            '  // ordered_map::get | "no such words"\n'
                            "  static_cast<void>(map.get(1));\n"
                            '  // ordered_map::compute | "no such words"\n'
                            "  map.compute(1, [](int) {});\n"
                            "}\n")
            found = list(refused.complaints(path))
        self.assertEqual(len(found), 2)
        self.assertIn("the compiler says: nothing", found[0])
        self.assertIn("std::optional<Value>&", found[1])


if __name__ == "__main__":
    unittest.main()
