"""A wrong figure is found, in a page and in a stored file; so is one that no file has, and an annotation for nothing."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import expressions  # noqa: E402
import figures  # noqa: E402
import pages  # noqa: E402

STORED = {
    "commit": "0123456789ab",
    "runs": [
        {"index": "map", "workload": "c", "dist": "uniform", "threads": 1, "mops": 2.5, "raw_mops": [2.0, 2.5, 3.0]},
        {"index": "map", "workload": "c", "dist": "uniform", "threads": 2, "mops": 5.25, "raw_mops": [5.0, 5.25, 6.0]},
        {"index": "peer", "workload": "c", "dist": "uniform", "threads": 1, "mops": 1.25, "retries": None},
        {"index": "peer", "workload": "c", "dist": "uniform", "threads": 2, "mops": 1.75, "retries": 8},
    ],
    "claims": [{"id": "E-1", "paper": "11 x", "here": "1.49 x (9.1 over 6.12 Mops/s)", "verdict": "differs",
                "note": "With 16 retries 1.06 x; with 1000 retries 1.33 x."}],
    "series": [{"name": "a b", "points": [[1, 31.6], [2, 60.4]]}],
}
SOURCES = """
## The files
| file | commit |
| --- | --- |
| [`runs.json`](results/runs.json) | 0123456789ab |
<!-- figures: sources -->
"""


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "docs" / "results").mkdir(parents=True)
        self.store(STORED)

    def store(self, stored):
        (self.root / "docs" / "results" / "runs.json").write_text(json.dumps(stored))

    def checked(self, text):
        return figures.check_page("docs/PAGE.md", text, expressions.Files(self.root))

    def problems(self, text):
        return self.checked(text)[1]

    def assert_found(self, text, words):
        found = self.problems(text)
        self.assertTrue(any(words in line for line in found), found)

    def written(self, text):
        return figures.edited(text, self.checked(text)[0].edits)

    def value(self, expression):
        return expressions.evaluate(expressions.Files(self.root), {"": "runs.json"}, expression)


class Expressions(Case):
    def test_paths_and_operators(self):
        for expression, value in {
                "[map 2]": 5.25, "[map 2] / [peer 1]": 4.2, "100 * ([map 1] - [peer 1]) / [map 1]": 50.0,
                "[peer retries=8].threads": 2, "[peer retries=none]": 1.25, "claims[E-1].here[2]": 6.12,
                "max([map 1].raw_mops[0], [map 2].raw_mops[0])": 5.0, "series[name=\"a b\"].points[2]": 60.4,
                "claims[E-1].note[\"1000 retries\"]": 1.33, "claims[verdict=differs].count": 1}.items():
            self.assertAlmostEqual(self.value(expression), value, msg=expression)

    def test_what_is_not_there_is_named(self):
        for expression, words in {
                "[map]": "2 records", "[none 1]": "nothing", "[map 1].speed": "no 'speed'", "claims[E-1].here[9]": "nothing",
                "[map 1] /": "no expression", "other#[map 1]": "no file 'other'", "claims[E-1]": "not a figure",
                "[map 1] [map 2]": "too much", "[map 1] / 0": "zero", "(1 + 2": "no ')'"}.items():
            with self.assertRaisesRegex(expressions.BadExpression, words.replace(")", r"\)"), msg=expression):
                self.value(expression)


class Texts(Case):
    PAGE = "The map makes 5.25 Mops/s,\n4.2 times as many as its peer.\n<!-- figures: runs.json\n     5.25 = [map 2]\n" \
           "     4.2 = [map 2] / [peer 1] -->\n" + SOURCES

    def test_the_stored_figures_pass(self):
        self.assertEqual(self.problems(self.PAGE), [])
        self.assertEqual(self.problems(self.PAGE.replace("5.25", "5.3")), [], "rounded to what is written")

    def test_canary_a_figure_of_the_page_is_changed(self):
        self.assert_found(self.PAGE.replace("makes 5.25", "makes 5.26"), "the text above does not have 5.25")
        self.assert_found(self.PAGE.replace("makes 5.25", "makes 5.26"), "5.26 has no annotation")
        self.assert_found(self.PAGE.replace("5.25", "5.26"), "5.26 is 5.25 by [map 2]")

    def test_canary_a_figure_of_the_file_is_changed(self):
        stored = json.loads(json.dumps(STORED))
        stored["runs"][1]["mops"] = 5.27
        self.store(stored)
        self.assert_found(self.PAGE, "5.25 is 5.27 by [map 2]")

    def test_two_figures_that_changed_places_are_found(self):
        page = "From 2.5 to 5.25 Mops/s.\n<!-- figures: runs.json; 2.5 = [map 1]; 5.25 = [map 2] -->\n" + SOURCES
        self.assertEqual(self.problems(page), [])
        self.assert_found(page.replace("From 2.5 to 5.25", "From 5.25 to 2.5"), "does not have 5.25, in this order")

    def test_a_figure_without_an_annotation(self):
        for figure in ("1.49 times", "142 k", "85 %", "13 us", "4.3 M", "12 to 15 %", "1 and 2 ns", "300 cycles"):
            self.assert_found(f"It is {figure}.\n", f"{figure.split()[0]} has no annotation")

    def test_constants_of_the_design_need_none(self):
        self.assertEqual(self.problems("64 bytes, 512 threads, theta 0.99, section 3.2 and figure 5.4 of 1 M keys, 95 % reads; "
                                       "`x = 4.5`, [a](b-1.5.md), Apache-2.0, S-5.4.\n\n    code 1.5 %\n\n```\n1.5 %\n```\n"), [])

    def test_none_says_why(self):
        self.assertEqual(self.problems("It is 1.49.\n<!-- figures: none: by hand -->\n"), [])
        self.assertEqual(self.problems("1.49, 2.5 and 1.49.\n<!-- figures: none 1.49, 2.5: by hand -->\n"), [])
        self.assertEqual(self.problems("# By hand\n<!-- figures: none: by hand -->\n\nIt is 1.49.\n\n- 2.5\n"), [])
        self.assert_found("It is 1.49.\n<!-- figures: none: -->\n", "does not say why")
        self.assert_found("# By hand\n<!-- figures: none: by hand -->\n\n1.49\n\n# Next\n2.5\n", "2.5 has no annotation")

    def test_annotations_for_nothing(self):
        self.assert_found("Nothing.\n<!-- figures: none: by hand -->\n", "no other figure")
        self.assert_found("It is 1.49.\n<!-- figures: none 1.49, 2.5: by hand -->\n", "does not have 2.5")
        self.assert_found("2.5\n<!-- figures: nowhere.json; 2.5 = [map 1] -->\n", "no file nowhere.json")
        self.assert_found("2.5\n<!-- figures: runs.json; none: by hand -->\n", "runs.json is named and not used")
        self.assert_found("2.5\n<!-- figures: runs.json; 2.5 = [mop 1] -->\n", "names nothing")
        self.assert_found("2.5\n\n<!-- figures: none: by hand -->\n", "not directly below")
        self.assert_found("2.5\n<!-- figures: none: by hand\n", "does not end")
        self.assert_found("2.5\n<!-- figures: 2.5 by hand -->\n", "is not QUOTED = EXPRESSION")

    def test_items_of_a_list_have_their_own(self):
        page = "- It is 1.49.\n  <!-- figures: none: by hand -->\n- It is 2.5,\n  and 5.25.\n  <!-- figures: none 2.5: by hand -->\n"
        self.assertEqual(self.problems(page), ["docs/PAGE.md:4: 5.25 has no annotation"])

    def test_writing_corrects_the_page_and_its_annotation(self):
        self.assertEqual(self.written(self.PAGE.replace("5.25", "5.26")), self.PAGE)


class Tables(Case):
    PAGE = """| threads | map | over peer |
| ---: | ---: | --- |
| 1 | 2.50 | 2.0 (of 1.25) |
| 2 | 5.25 | 3.0 (of 1.75) |
<!-- figures: runs.json
     map: [{head} {1}]
     over peer: [map {1}] / [peer {1}], [peer {1}] -->
""" + SOURCES

    def test_the_stored_figures_pass(self):
        self.assertEqual(self.problems(self.PAGE), [])

    def test_canary_a_figure_of_the_page_is_changed(self):
        self.assert_found(self.PAGE.replace("2 | 5.25", "2 | 5.35"), "docs/PAGE.md:4: 5.35 is 5.25 by [map 2]")
        self.assertEqual(self.written(self.PAGE.replace("2 | 5.25", "2 | 5.35")), self.PAGE)

    def test_canary_a_figure_of_the_file_is_changed(self):
        stored = json.loads(json.dumps(STORED))
        stored["runs"][3]["mops"] = 1.85
        self.store(stored)
        self.assert_found(self.PAGE, "1.75 is 1.85 by [peer 2]")

    def test_columns_cells_and_rows_that_are_not_covered(self):
        self.assert_found(self.PAGE.replace("     map: [{head} {1}]\n", ""), "2.50 has no annotation")
        self.assert_found(self.PAGE.replace(" (of 1.25)", ""), "has 1 figures, its annotation 2")
        self.assert_found(self.PAGE.replace("map: [", "mop: ["), "no column 'mop'")
        self.assert_found(self.PAGE.replace("| 2 | 5.25", "| 3 | 5.25"), "[map 3] names nothing")
        self.assert_found(self.PAGE.replace("over peer: [", "row 3: 1\n over peer: ["), "there is no row 3")

    def test_rows_and_cells_of_their_own(self):
        page = self.PAGE.replace("over peer: [", "row 2, over peer: 3, _\n     over peer: [").replace("(of 1.75)", "(of 9)")
        self.assertEqual(self.problems(page), [])
        page = self.PAGE.replace("map: [{head} {1}]", "rows: c 1 | c 2\n     map: [map {}]")
        self.assertEqual(self.problems(page), [])
        self.assert_found(page.replace("c 1 | c 2", "c 1"), "1 names of 2 rows")

    def test_texts_and_lists_count_with_all_their_numbers(self):
        page = """| claim | here | verdict | all |
| --- | --- | --- | --- |
| E-1 | 1.49 x (9.1 : 6.12) | differs | 32; 60 |
<!-- figures: runs.json; here: claims[{}].here; verdict: claims[{}].verdict; all: series[name="a b"].points -->
""" + SOURCES
        self.assertEqual(self.problems(page), [])
        self.assert_found(page.replace("| differs", "| near"), "'near' is 'differs'")
        self.assert_found(page.replace("6.12", "6.13"), "6.13 is 6.12")
        self.assertEqual(self.written(page.replace("| differs", "| near").replace("1.49", "1.5").replace("60 |", "61 |")),
                         page.replace("1.49", "1.5"))


class Sources(Case):
    def test_a_page_that_quotes_files_lists_them_with_their_commits(self):
        page = "2.5\n<!-- figures: runs.json; 2.5 = [map 1] -->\n"
        self.assert_found(page, "lists their files and commits")
        self.assertEqual(self.problems(page + SOURCES), [])
        old = page + SOURCES.replace("0123456789ab", "ba9876543210")
        self.assert_found(old, "lacks '| [`runs.json`](results/runs.json) | 0123456789ab |'")
        self.assertEqual(self.written(old), page + SOURCES)

    def test_files_declared_for_the_page(self):
        page = "2.5\n<!-- figures: 2.5 = r#[map 1] -->\n" + SOURCES
        self.assertEqual(self.problems(page.replace("sources -->", "sources; r=runs.json -->")), [])
        self.assert_found(page.replace("sources -->", "sources; r=runs.json; o=runs.csv -->"), "runs.csv is declared and not quoted")


class ThePages(unittest.TestCase):
    def test_each_figure_is_the_stored_one(self):
        files = expressions.Files(figures.ROOT)
        for path in figures.PAGES:
            text = (figures.ROOT / path).read_text(encoding="utf-8")
            self.assertEqual(figures.check_page(path, text, files)[1], [])

    def test_canary_a_page_with_one_figure_changed(self):
        files = expressions.Files(figures.ROOT)
        for path in ("docs/EUNOMIA.md", "docs/PERFORMANCE.md"):
            text = (figures.ROOT / path).read_text(encoding="utf-8")
            numbers = [number for block in pages.blocks_of(text) for number in pages.figures_of(block.text, block.begin)
                       if block.annotation and "none" not in block.annotation.text and block.kind == "text"]
            number = numbers[len(numbers) // 2]
            other = text[:number.begin] + "7" + text[number.begin:]
            self.assertNotEqual(figures.check_page(path, other, files)[1], [])


if __name__ == "__main__":
    unittest.main()
