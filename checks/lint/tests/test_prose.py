"""The rules of prose.py find what they are for, and the project's pages follow them."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import prose  # noqa: E402

OPENING = "# Title\n\nThis page is for a test.\n\n"


def found(text, name="docs/PAGE.md"):
    return list(prose.violations(name, OPENING + text))


class Sentences(unittest.TestCase):
    def test_a_long_sentence_is_found_with_its_line(self):
        text = "# Title\n\nShort. A " + "word " * 31 + "end.\n"
        self.assertEqual(list(prose.warnings(text)), [(3, "a sentence of 33 words (at most 30)")])

    def test_turns_and_home_made_words_are_found(self):
        said = [message for _, message in prose.warnings("The page says how.\n\n- the limbo lists\n")]
        self.assertEqual(said, ["'says how' (write: describes how)", "'limbo' (write: retire list)"])
        self.assertEqual(len(list(prose.warnings("It may go on. It goes on.\n"))), 2)

    def test_code_comments_and_addresses_do_not_count(self):
        words = "word " * 40
        text = f"```\n{words}\n```\n<!-- {words}-->\n[a](says how)\n`{words}`\n\n    {words}\n"
        self.assertEqual(list(prose.warnings(text)), [])

    def test_a_cell_and_an_item_are_sentences_of_their_own(self):
        words = "word " * 20
        self.assertEqual(list(prose.warnings(f"| {words}| {words}|\n- {words}")), [])

    def test_an_item_within_an_item_counts(self):
        self.assertEqual(len(list(prose.warnings("1. One.\n   - Two.\n     " + "word " * 31))), 1)


class Lines(unittest.TestCase):
    LONG = "long " * 21

    def test_long_prose_and_annotations_are_found(self):
        for text in (self.LONG, f"- {self.LONG}", f"<!-- figures: none: {self.LONG}-->", f"1. a\n\n   {self.LONG}"):
            said = [message for _, message in prose.long_lines(text)]
            self.assertEqual(len(said), 1, text)
            self.assertIn("(at most 100)", said[0])

    def test_tables_and_code_may_be_long(self):
        for text in (f"| {self.LONG}|", f"```\n{self.LONG}\n```", f"a\n\n    {self.LONG}\n    {self.LONG}\n"):
            self.assertEqual(list(prose.long_lines(text)), [])

    def test_a_number_that_begins_a_list_by_chance_is_found(self):
        for text in ("The logs have\n32. Jitter breaks it.\n", "one large level\n1. With 8.\n"):
            self.assertEqual([line for line, _ in prose.torn_items(text)], [2])

    def test_lists_are_not_torn(self):
        for text in ("1. a\n   b\n2. c\n", "Steps:\n1. a\n2. b\n", "# T\n1. a\n", "9. a\n   - b\n10. c\n"):
            self.assertEqual(list(prose.torn_items(text)), [])


class Pages(unittest.TestCase):
    def test_the_first_use_of_a_term_is_a_link(self):
        self.assertEqual([message for _, message in found("A canary. [Canary](glossary.md).\n")],
                         ["the first 'canary' is no link to the glossary"])
        self.assertEqual(found("The [fence\nkeys](../glossary.md) of a node: fence keys.\n"), [])
        self.assertEqual(found("# A canary\n\n`pin` in code, and [a page](epoch.md).\n"), [])

    def test_records_and_pages_of_directories_need_no_links(self):
        for name in ("docs/decisions/maps.md", "docs/ROADMAP.md", "tests/README.md", "docs/glossary.md"):
            self.assertEqual(found("A canary.\n", name), [])

    def test_a_page_begins_with_its_purpose(self):
        for text in ("# Title\n\n| a | b |\n", "# Title\n\n## Part\n", "# Title\n\n```\nx\n```\n", "Words.\n"):
            self.assertEqual(len(list(prose.violations("docs/PAGE.md", text))), 1, text)
        self.assertEqual(list(prose.violations("docs/cookbook/page.md", "# Task\n\n| a | b |\n")), [])

    def test_the_pages_of_the_project_follow_the_rules(self):
        names = prose.page_names()
        self.assertIn("README.md", names)
        wrong = [f"{name}:{line}: {message}" for name in names if not name.startswith(prose.RECORDS)
                 for line, message in prose.violations(name, (prose.ROOT / name).read_text(encoding="utf-8"))]
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
