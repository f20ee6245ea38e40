"""The page has everything, loads nothing, and bad files change nothing."""

import contextlib
import io
import json
import re
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import report  # noqa: E402


def run_of(index, threads=1, workload="a", dist="uniform", mops=2.0, **more):
    return {"index": index, "workload": workload, "dist": dist, "threads": threads, "mops": mops,
            "mops_min": mops * 0.9, "mops_max": mops * 1.1, "ns_p50": 300.0, "ns_p99": 2000.0, "aborts_per_op": 0.0,
            "fallback_pct": 0.0, "bytes_per_key": 24.5, "seed": 1, "keys": 10**6, "key_type": "u64",
            "ratio_to_first": 1.0, **more}


def content_of(runs, **machine):
    return {"schema": 1, "commit": "abc", "machine": {"cpu": "A CPU", "cores": 2, **machine}, "runs": runs, "claims": []}


def outside_addresses(page):
    """Whatever a browser would load from elsewhere; names of XML vocabularies are no addresses to load."""
    loads = re.findall(r"""(?:src|srcset|href|data|action|url)\s*[=(]\s*["']?([^"')\s>]+)|@import\s*["']([^"']+)""", page)
    return [a for pair in loads for a in pair if a and not a.startswith("#")]


class Page(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = Path(self.folder.name) / "page.html"

    def write(self, content, name="r.json"):
        path = Path(self.folder.name) / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def page_of(self, *contents):
        files = [self.write(c, f"r{n}.json") for n, c in enumerate(contents)]
        self.assertEqual(report.main([*files, "--out", str(self.out)]), 0)
        return self.out.read_text()

    def test_every_index_is_there(self):
        names = [f"index/{n}" for n in range(12)]
        page = self.page_of(content_of([run_of(n, t, mops=1 + t) for n in names for t in (1, 2, 8)]))
        for name in names:
            self.assertIn(name, page)

    def test_columns_are_listed(self):
        column = {"file": "/data/cities.csv", "column": "name", "type": "string", "rows": 1000, "distinct": 12,
                  "insert_mrows_s": 8.5, "delta_bytes_per_row": 5.25, "main_bytes_per_row": 2.125, "vector_bytes_per_row": 32,
                  "arrow": {"dictionary_bytes_per_row": 4.5}}
        content = {"schema": 1, "commit": "abc", "machine": {"cpu": "A CPU", "cores": 2}, "columns": [column]}
        html = self.page_of(content)
        for text in ("name of cities.csv", "1,000", "8.50", "5.25", "4.50"):
            self.assertIn(text, html)

    def test_skews_are_plotted_and_claims_listed(self):
        dists = ("uniform", "zipf:0.5", "zipf:0.9", "zipf:0.99")
        content = content_of([run_of(i, 2, dist=d) for i in ("x", "ordered_map") for d in dists])
        content["claims"] = [{"id": "E-F10a", "paper": "11", "here": "12", "verdict": "agrees"}]
        page = self.page_of(content)
        self.assertIn("Zipf theta", page)
        self.assertIn("E-F10a", page)

    def test_loads_nothing(self):
        page = self.page_of(content_of([run_of("x"), run_of("ordered_map", 2)]))
        self.assertEqual(outside_addresses(page), [])
        # The check can fail: whatever is planted is found.
        for planted in ("<img src='{}'>", '<link rel=stylesheet href="{}">', "<script src={}></script>",
                        "<style>@import '{}';</style>", "<style>p {{ background: url({}) }}</style>"):
            address = "http://example.org/a"
            self.assertEqual(outside_addresses(page + planted.format(address)), [address], planted)

    def test_names_are_escaped(self):
        page = self.page_of(content_of([run_of("<script>alert(1)</script>")]))
        self.assertNotIn("<script>", page)

    def test_simulated_and_native_do_not_share_a_table(self):
        page = self.page_of(content_of([run_of("x")]), content_of([run_of("x")], simulated=True))
        self.assertIn("Simulated", page)
        self.assertEqual(page.count("<h2>1 M u64 integer keys</h2>"), 1)
        self.assertEqual(page.count("<h2>1 M u64 integer keys, simulated</h2>"), 1)

    def test_bad_files_are_refused_and_nothing_is_written(self):
        wrong_fields = [{"mops": "x"}, {"mops": None}, {"mops": -1.0}, {"mops": float("nan")}, {"keys": "many"},
                        {"dist": "zipf:q"}, {"index": ["x"]}, {"threads": "2"}, {"threads": 1.5}, {"ns_p50": []}]
        for bad in ("not json", {"schema": 2, "runs": []}, {"schema": 1}, {"schema": 1, "runs": [{"index": "x"}]},
                    {"schema": 1, "runs": [3]}, {"schema": 1, "runs": [], "machine": "x"},
                    {"schema": 1, "runs": [], "claims": {"a": 1}}, {"schema": 1, "columns": [{"column": "x"}]},
                    *(content_of([run_of("x") | w]) for w in wrong_fields)):
            with self.subTest(bad=bad), contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(report.main([self.write(bad), "--out", str(self.out)]), 2)
                self.assertRegex(said.getvalue(), r"\Areport: .*r\.json: [^\n]+\n\Z")
        self.assertEqual(report.main(["/nowhere/r.json", "--out", str(self.out)]), 2)
        self.assertEqual(report.main([self.write(content_of([run_of("x")])), "--out", "/nowhere/page.html"]), 2)
        self.assertFalse(self.out.exists())
        self.assertEqual([p.suffix for p in Path(self.folder.name).iterdir()], [".json"])

    def test_one_bad_output_leaves_the_other_as_it_was(self):
        good = self.write(content_of([run_of("x")]))
        for picture in ("/nowhere/p.png", str(Path(self.folder.name) / "p.png")):  # no such folder; no runs to draw it
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(report.main([good, "--out", str(self.out), "--picture", picture]), 2)
        self.assertEqual([p.name for p in Path(self.folder.name).iterdir()], ["r.json"])

    def test_odd_names_and_unmeasured_figures_are_drawn(self):
        dists = ("uniform", "zipf:0.5", "zipf:0.9", "custom")
        page = self.page_of(content_of([run_of("$x_{y$", workload="of my own", dist=d, ns_p50=None) for d in dists]))
        self.assertIn("$x_{y$", page)
        self.assertIn("of my own", page)

    def test_the_headline_says_who_leads_by_how_much_and_what_hot_keys_do(self):
        runs = [run_of("absl+mutex", 1, dist="zipf:0.99", mops=2.0), run_of("absl+mutex", 2, dist="zipf:0.99", mops=1.0),
                run_of("ordered_map", 1, dist="zipf:0.99", mops=2.1, ratio_to_first=1.05),
                run_of("ordered_map", 2, dist="zipf:0.99", mops=4.2, ratio_to_first=4.2)]
        page = self.page_of(content_of(runs))
        self.assertIn("1 thread: <b>ordered_map</b> at 1 of 1 kinds of work (0 beyond the spread), 1.05 x the next, "
                      "1.05 x absl+mutex", page)
        self.assertIn("2 threads: <b>ordered_map</b> at 1 of 1 kinds of work (1 beyond the spread), 4.20 x the next", page)
        self.assertIn("ordered_map 2.00 x, absl+mutex 0.50 x", page)
        self.assertIn("1.05 x absl+mutex (ranges overlap)", page)

    def test_commits_stay_apart_and_a_later_file_replaces_runs(self):
        page = self.page_of(content_of([run_of("x")]), {**content_of([run_of("x")]), "commit": "def"})
        self.assertIn("<h2>1 M u64 integer keys (elidex abc)</h2>", page)
        self.assertIn("<h2>1 M u64 integer keys (elidex def)</h2>", page)
        page = self.page_of(content_of([run_of("x", mops=2.0)]), content_of([run_of("x", mops=7.77)]))
        self.assertIn("the file named last counts: 1.", page)
        self.assertIn("x 7.77", page)

    def test_many_numbers_of_threads(self):
        page = self.page_of(content_of([run_of(i, t) for i in ("x", "ordered_map") for t in (1, 2, 4, 8, 16, 20)]))
        self.assertIn("20 threads", page)

    def test_a_run_that_did_nothing_is_drawn(self):
        self.page_of(content_of([run_of("x", mops=0.0), run_of("ordered_map", mops=0.0)]))

    def test_picture(self):
        runs = [run_of(i, t, w, d) for i in ("x", "ordered_map") for t in (1, 2)
                for w, d in (("b", "uniform"), ("a", "zipf:0.99"))]
        picture = Path(self.folder.name) / "p.png"
        self.assertEqual(report.main([self.write(content_of(runs)), "--out", str(self.out), "--picture", str(picture)]), 0)
        self.assertTrue(picture.read_bytes().startswith(b"\x89PNG"))


if __name__ == "__main__":
    unittest.main()
