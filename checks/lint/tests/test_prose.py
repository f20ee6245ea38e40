"""The rules of prose.py find what they are for, and the pages of PLAIN follow them."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import prose  # noqa: E402


class Prose(unittest.TestCase):
    def test_a_long_sentence_is_found_with_its_line(self):
        text = "# Title\n\nShort. A " + "word " * 31 + "end.\n"
        self.assertEqual(list(prose.warnings(text)), [(3, "a sentence of 33 words (at most 30)")])

    def test_turns_and_home_made_words_are_found(self):
        found = [message for _, message in prose.warnings("The page says how.\n\n- the limbo lists\n")]
        self.assertEqual(found, ["'says how' (write: describes how)", "'limbo' (write: retire list)"])

    def test_code_comments_and_addresses_do_not_count(self):
        text = "```\n" + "word " * 40 + "\n```\n<!-- " + "word " * 40 + "-->\n[a](says how)\n`" + "word " * 40 + "`\n"
        self.assertEqual(list(prose.warnings(text)), [])

    def test_a_cell_and_an_item_are_sentences_of_their_own(self):
        self.assertEqual(list(prose.warnings("| " + "word " * 20 + "| " + "word " * 20 + "|\n- " + "word " * 20)), [])

    def test_the_plain_pages_have_none(self):
        for name in prose.PLAIN:
            paths = sorted((prose.ROOT / name).glob("*.md")) if name.endswith("/") else [prose.ROOT / name]
            self.assertTrue(paths, name)
            for path in paths:
                self.assertEqual([], [f"{path.name}:{line}: {said}" for line, said in prose.warnings(path.read_text())])


if __name__ == "__main__":
    unittest.main()
