"""A wrong figure is found, in a page and in a stored file; so is one that no file has, and an
annotation that is for nothing."""

import copy
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import expressions  # noqa: E402
import figures  # noqa: E402


def run(index, threads, mops, **more):
    return {"index": index, "workload": "c", "threads": threads, "mops": mops, **more}


STORED = {
    "commit": "0123456789ab",
    "runs": [run("map", 1, 2.5, raw_mops=[2.0, 2.5, 3.0], waits=None),
             run("map", 2, 5.25, raw_mops=[5.0, 5.25, 6.0]),
             run("peer", 1, 1.25, retries=None), run("peer", 2, 1.75, retries=8)],
    "claims": [{"id": "E-1", "here": "1.49 x (9.1 over 6.12 Mops/s)", "verdict": "differs",
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
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = Path(directory.name)
        (self.root / "docs" / "results").mkdir(parents=True)
        self.store(lambda stored: None)

    def store(self, change):
        stored = copy.deepcopy(STORED)
        change(stored)
        (self.root / "docs" / "results" / "runs.json").write_text(json.dumps(stored))

    def page(self, text):
        return figures.Page("docs/PAGE.md", text, expressions.Files(self.root))

    def assert_fine(self, text):
        self.assertEqual(self.page(text).problems(), [])

    def assert_found(self, text, words):
        found = self.page(text).problems()
        self.assertTrue(any(words in line for line in found), found)

    def value(self, expression):
        return expressions.evaluate(expressions.Files(self.root), {"": "runs.json"}, expression)


class Expressions(Case):
    def test_paths_and_operators(self):
        for expression, value in {
                "[map 2]": 5.25,
                "[map 2] / [peer 1]": 4.2,
                "100 * ([map 1] - [peer 1]) / [map 1]": 50.0,
                "[peer retries=8].threads": 2,
                "[peer retries=none]": 1.25,
                "claims[E-1].here[2]": 6.12,
                "claims[E-1].note[\"1000 retries\"]": 1.33,
                "claims[E-1].note[\"with\" \"retries\"]": 1.33,
                "claims[verdict=differs].count": 1,
                "median([map 1].raw_mops[0], [map 2].raw_mops[0])": 3.5,
                "series[name=\"a b\"].points[2]": 60.4}.items():
            self.assertAlmostEqual(self.value(expression), value, msg=expression)

    def test_rounds_are_compared_as_the_gate_does(self):
        self.store(lambda stored: stored["runs"].extend([
            run("a", 1, 3, raw_mops=[2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0]),
            run("b", 1, 1, raw_mops=[2.0] * 7)]))
        self.assertEqual(self.value("rounds([a 1].raw_mops, [b 1].raw_mops)"), 4.0)
        self.assertEqual(self.value("rounds_low([a 1].raw_mops, [b 1].raw_mops)"), 1.0)
        self.assertEqual(self.value("rounds_high([a 1].raw_mops, [b 1].raw_mops)"), 7.0)

    def test_what_is_not_there_is_named(self):
        for expression, words in {
                "[map]": "2 records", "[none 1]": "nothing", "[map 1].speed": "no 'speed'",
                "[map 1].waits": "null", "claims[E-1].here[9]": "nothing",
                "claims[E-1].note[\"never\"]": "nothing", "claims[E-1]": "not a figure",
                "other#[map 1]": "no file 'other'", "[map 1] [map 2]": "superfluous",
                "[map 1] / 0": "zero", "(1 + 2": r"no '\)'", "[map 1] /": "not an expression",
                "claims[E-1].here + 1": "not a number"}.items():
            with self.assertRaisesRegex(expressions.BadExpression, words, msg=expression):
                self.value(expression)


class Texts(Case):
    PAGE = """The map makes 5.25 Mops/s,
4.2 times as many as its peer.
<!-- figures: runs.json
     5.25 = [map 2]
     4.2 = [map 2] / [peer 1] -->
""" + SOURCES

    def test_stored_figures_pass_rounded_to_the_digits_that_are_quoted(self):
        self.assert_fine(self.PAGE)
        self.assert_fine(self.PAGE.replace("5.25", "5.3").replace("4.2", "4"))

    def test_canary_a_figure_of_the_page_is_changed(self):
        changed = self.PAGE.replace("makes 5.25", "makes 5.26")
        self.assert_found(changed, "docs/PAGE.md:4: the text above does not have 5.25")
        self.assert_found(changed, "docs/PAGE.md:1: 5.26 has no annotation")
        self.assert_found(self.PAGE.replace("5.25", "5.26"), "5.26 is 5.25 by [map 2]")

    def test_canary_a_figure_of_the_file_is_changed(self):
        self.store(lambda stored: stored["runs"][1].update(mops=5.27))
        self.assert_found(self.PAGE, "docs/PAGE.md:1: 5.25 is 5.27 by [map 2]")

    def test_two_figures_that_changed_places_are_found(self):
        page = """From 2.5 to 5.25 Mops/s.
<!-- figures: runs.json; 2.5 = [map 1]; 5.25 = [map 2] -->
""" + SOURCES
        self.assert_fine(page)
        changed = page.replace("From 2.5 to 5.25", "From 5.25 to 2.5")
        self.assert_found(changed, "does not have 5.25, in this order")

    def test_a_figure_without_an_annotation_is_found(self):
        for figure in ("1.49 times", "142 k", "85 %", "13 us", "4.3 M", "12 to 15 %", "1 and\n2 ns",
                       "300 cycles", "72 bytes a key", "3 M/s", "58 904 operations a second"):
            number = " ".join(word for word in figure.split() if word.replace(".", "").isdigit())
            number = number if " 904" in number else number.split()[0]
            self.assert_found(f"It is {figure}.\n", f"{number} has no annotation")

    def test_constants_of_the_design_need_none(self):
        self.assert_fine("64 bytes, 512 threads, theta 0.99, sections 3.2 and 3.4, 1 M integer "
                         "keys, 95 % reads; `x = 4.5`, [a](b-1.5.md), Apache-2.0, S-5.4.\n\n"
                         "    ./a --of 1.5 %\n\n```\n1.5 %\n```\n")

    def test_none_says_why(self):
        self.assert_fine("It is 1.49.\n<!-- figures: none: by hand -->\n")
        self.assert_fine("1.49, 2.5 and 1.49.\n<!-- figures: none 1.49, 2.5: by hand -->\n")
        self.assert_found("It is 1.49.\n<!-- figures: none: -->\n", "has no reason")

    def test_none_below_a_heading_is_for_its_section(self):
        page = "# By hand\n<!-- figures: none: by hand -->\n\nIt is 1.49.\n\n- 2.5\n"
        self.assert_fine(page)
        self.assert_found(page + "\n# Next\n2.5\n", "docs/PAGE.md:9: 2.5 has no annotation")
        self.assert_found("# A\n<!-- figures: 2.5 = [map 1] -->\n\n2.5\n", "can only be 'none")

    def test_an_annotation_for_nothing_is_found(self):
        for page, words in {
                "Nothing.\n<!-- figures: none: by hand -->\n": "without other figures",
                "1.49.\n<!-- figures: none 1.49, 2.5: by hand -->\n": "does not have 2.5",
                "2.5\n<!-- figures: nowhere.json; 2.5 = [map 1] -->\n": "no file nowhere.json",
                "2.5\n<!-- figures: runs.json; none: by hand -->\n": "named and not used",
                "2.5\n<!-- figures: runs.json; 2.5 = [mop 1] -->\n": "names nothing",
                "2.5\n\n<!-- figures: none: by hand -->\n": "not directly below",
                "2.5\n<!-- figures: none: by hand\n": "does not end",
                "2.5\n<!-- figures: 2.5 by hand -->\n": "is not QUOTED = EXPRESSION"}.items():
            self.assert_found(page, words)

    def test_items_of_a_list_have_annotations_of_their_own(self):
        page = self.page("- It is 1.49.\n  <!-- figures: none: by hand -->\n"
                         "- It is 2.5,\n  and 5.25.\n  <!-- figures: none 2.5: by hand -->\n")
        self.assertEqual(page.problems(), ["docs/PAGE.md:4: 5.25 has no annotation"])

    def test_writing_corrects_the_page_and_its_annotation(self):
        self.assertEqual(self.page(self.PAGE.replace("5.25", "5.26")).corrected(), self.PAGE)


class Tables(Case):
    PAGE = """| threads | map | over peer |
| ---: | ---: | --- |
| 1 | 2.50 | 2.0 (of 1.25) |
| 2 | 5.25 | 3.0 (of 1.75) |
<!-- figures: runs.json
     map: [{head} {1}]
     over peer: [map {1}] / [peer {1}], [peer {1}] -->
""" + SOURCES

    def test_stored_figures_pass(self):
        self.assert_fine(self.PAGE)

    def test_canary_a_figure_of_the_page_is_changed(self):
        changed = self.PAGE.replace("2 | 5.25", "2 | 5.35")
        self.assert_found(changed, "docs/PAGE.md:4: 5.35 is 5.25 by [map 2]")
        self.assertEqual(self.page(changed).corrected(), self.PAGE)

    def test_canary_a_figure_of_the_file_is_changed(self):
        self.store(lambda stored: stored["runs"][3].update(mops=1.85))
        self.assert_found(self.PAGE, "docs/PAGE.md:4: 1.75 is 1.85 by [peer 2]")

    def test_columns_cells_and_rows_that_do_not_fit_are_found(self):
        for old, new, words in (
                ("     map: [{head} {1}]\n", "", "2.50 has no annotation"),
                (" (of 1.25)", "", "has 1 figures, its annotation 2"),
                ("map: [", "mop: [", "no column 'mop'"),
                ("| 2 | 5.25", "| 3 | 5.25", "[map 3] names nothing"),
                ("over peer: [", "row 3: 1\n     over peer: [", "there is no row 3"),
                ("| 2 | 5.25 |", "| 2 | 5.25 | 9 |", "a row of 4 cells under 3"),
                ("map: [{head} {1}]", "rows: c 1\n     map: [map {}]", "1 names of 2 rows")):
            self.assert_found(self.PAGE.replace(old, new), words)

    def test_rows_and_cells_of_their_own(self):
        cell = self.PAGE.replace("over peer: [", "row 2, over peer: 3, _\n     over peer: [")
        self.assert_fine(cell.replace("(of 1.75)", "(of 9)"))
        row = self.PAGE.replace("map: [", "row 2: [map 2], 3, [peer 2]\n     map: [")
        self.assert_fine(row)
        self.assert_found(row.replace("3, [peer 2]", "4, [peer 2]"), "3.0 is 4.0 by 4")

    def test_names_of_rows(self):
        named = self.PAGE.replace("map: [{head} {1}]", "rows: c 1 | c 2\n     map: [map {}]")
        self.assert_fine(named)
        self.assert_fine(named.replace("[map {}]", "[map {rest} workload={first}]"))

    def test_texts_and_lists_stand_for_all_their_numbers(self):
        page = """| claim | here | verdict | all |
| --- | --- | --- | --- |
| E-1 | 1.49 x (9.1 : 6.12) | differs | 32; 60 |
<!-- figures: runs.json; here: claims[{}].here; verdict: claims[{}].verdict
     all: series[name="a b"].points -->
""" + SOURCES
        self.assert_fine(page)
        self.assert_found(page.replace("| differs", "| near"), "'near' is 'differs'")
        self.assert_found(page.replace("6.12", "6.13"), "6.13 is 6.12")
        self.assert_found(page.replace("6.12", "6.1"), "6.1 is 6.12")  # not rounded
        changed = page.replace("| differs", "| near").replace("60 |", "61 |")
        self.assertEqual(self.page(changed).corrected(), page)


class Sources(Case):
    PAGE = "2.5\n<!-- figures: runs.json; 2.5 = [map 1] -->\n"

    def test_a_page_lists_the_files_that_it_quotes_with_their_commits(self):
        self.assert_found(self.PAGE, "lists their files and commits")
        self.assert_fine(self.PAGE + SOURCES)
        old = self.PAGE + SOURCES.replace("0123456789ab", "ba9876543210")
        self.assert_found(old, "lacks '| [`runs.json`](results/runs.json) | 0123456789ab |'")
        self.assertEqual(self.page(old).corrected(), self.PAGE + SOURCES)

    def test_files_declared_for_the_page(self):
        page = "2.5\n<!-- figures: 2.5 = r#[map 1] -->\n" + SOURCES
        self.assert_fine(page.replace("sources -->", "sources; r=runs.json -->"))
        self.assert_found(page.replace("sources -->", "sources; r=runs.json; o=runs.csv -->"),
                          "runs.csv is declared and not quoted")


class ThePages(unittest.TestCase):
    def page(self, path, change=lambda text: text, files=None):
        text = (figures.ROOT / path).read_text(encoding="utf-8")
        return figures.Page(path, change(text), files or expressions.Files(figures.ROOT))

    def test_each_figure_is_the_stored_one(self):
        for path in figures.PAGES:
            self.assertEqual(self.page(path).problems(), [])

    def test_canary_one_figure_of_a_page_is_changed(self):
        for path in figures.PAGES:
            for number in self.page(path).found.compared[::20]:
                changed = self.page(path, lambda text: (
                    text[:number.begin] + "7" + text[number.begin:]))
                self.assertNotEqual(changed.problems(), [], f"{path}: 7{number.written}")

    def test_canary_one_figure_of_a_file_is_changed(self):
        files = expressions.Files(figures.ROOT)
        claims = files.get("repro-eunomia-haswell-ep.json")["claims"]
        claim = next(claim for claim in claims if claim["id"] == "E-F10a")
        claim["here"] = "1" + claim["here"]
        self.assertNotEqual(self.page("docs/EUNOMIA.md", files=files).problems(), [])


if __name__ == "__main__":
    unittest.main()
