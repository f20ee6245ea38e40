"""The page has everything, loads nothing, and bad files change nothing."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import report  # noqa: E402
import results  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]


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
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.out = Path(self.directory.name) / "page.html"

    def write(self, content, name="r.json"):
        path = Path(self.directory.name) / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def page_of(self, *contents):
        files = [self.write(c, f"r{n}.json") for n, c in enumerate(contents)]
        self.assertEqual(report.main([*files, "--out", str(self.out)]), 0)
        return self.out.read_text()

    def refused(self, named, *arguments):
        """One line that names it, and status 2."""
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(report.main(list(arguments)), 2)
        self.assertRegex(said.getvalue(), rf"\Areport: [^\n]*{re.escape(named)}: [^\n]+\n\Z")

    def headings(self, page):
        return [re.sub("<[^>]+>", "", text) for text in re.findall(r"<h2[^>]*>.*?</h2>", page)]

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

    def test_locks_and_programs_have_tables(self):
        lock = {"kind": "exclusive", "writes_pct": 100, "inside": 4, "outside": 50, "threads": 2,
                "mops": [76.0]}
        runs = [lock | {"lock": "std::mutex", "median_mops": 76.0, "ratio": 1.0},
                lock | {"lock": "elidex::mutex", "median_mops": 86.4, "ratio": 1.137}]
        spread = {"median": 0.9876, "min": 0.91, "max": 1.04}
        program = {"program": "redis-server", "load": "redis-benchmark",
                   "ratios": {"library": spread}, "cpu_ratios": {}}
        page = self.page_of({"schema": 1, "commit": "abc", "machine": {}, "runs": runs},
                            {"schema": 1, "rounds": 7, "programs": [program]})
        self.assertEqual(self.headings(page),
                         ["Locks under contention", "Programs under libelidex-preload.so"])
        for text in ("4 words changed inside, 50 steps outside", "elidex::mutex", "86.40\n1.14 x",
                     "redis-benchmark", "0.99\n0.91 to 1.04"):
            self.assertIn(text, page)

    def test_what_has_no_table_is_named(self):
        gate = {**content_of([{"index": "ordered_map", "workload": "a"}]), "gate": {"form": 1}}
        repro = {**content_of([run_of("x", mops=3.21)], simulated=True), "series": [{"id": "E-F2"}],
                 "claims": [{"id": "E-F2", "verdict": "agrees"}]}
        page = self.page_of(gate, repro, {"schema": 1, "columns": [{}], "queries": [{"find": 1}]},
                            {"schema": 1, "laps": [1, 2], "runs": [{"lap": 1}]})
        self.assertEqual(self.headings(page)[:2], ["Claims of the papers", "Not shown"])
        for text in ("r0.json: 1 run that ./dev bench --check compares with.",
                     "r1.json: 1 run and 1 figure behind its claims",
                     "r2.json: 1 answer of elidex column query.",
                     "r3.json: no table for: laps, runs."):
            self.assertIn(text, page)
        self.assertNotIn("3.21", page)

    def test_a_database_is_headed_by_its_size_and_its_settings_stay_apart(self):
        def tpcc(index, warehouses, durability, mops):
            run = run_of(index, workload="tpcc", dist="nurand", mops=mops, warehouses=warehouses,
                         durability=durability,
                         by_type={})
            return {name: value for name, value in run.items() if name not in ("keys", "key_type")}

        page = self.page_of(content_of([tpcc("db/occ", 1, "none", 0.11),
                                        tpcc("db/occ", 2, "none", 0.22),
                                        tpcc("db/occ", 2, "async", 0.33)]))
        self.assertEqual(self.headings(page)[:2], ["TPC-C, 1 warehouse", "TPC-C, 2 warehouses"])
        for text in ("TPC-C&#x27;s mix, durability async", "M transactions/s", "db/occ 0.11",
                     "db/occ 0.22", "db/occ 0.33"):
            self.assertIn(text, page)
        self.assertNotIn("integer keys", page)

    def test_stores_are_headed_by_their_rows(self):
        def of(index, durability, mops):
            run = run_of(index, workload="commits", mops=mops, durability=durability, rows=2000,
                         value_bytes=100, rows_per_commit=1)
            return {name: value for name, value in run.items() if name not in ("keys", "key_type")}

        content = {**content_of([of("elidex", "sync", 0.00123), of("lmdb", "sync", 0.00045),
                                 of("lmdb", "async", 0.25)]),
                   "openings": [{"index": "lmdb"}], "stores": [], "disk": {}}
        page = self.page_of(content)
        self.assertIn("stores, 2 K rows of 100 bytes", self.headings(page))
        for text in ("overwrite a row in one transaction, uniform keys, durability sync",
                     "durability async", "elidex 0.00123", ">0.00123<", "M transactions/s",
                     "r0.json: 1 opening of stores."):
            self.assertIn(text, page)

    def test_an_index_alone_is_fastest_at_nothing(self):
        page = self.page_of(content_of([run_of("x", 1), run_of("ordered_map", 1),
                                        run_of("ordered_map", 2)]))
        self.assertIn("1 thread: <b>", page)
        self.assertNotIn("2 threads: <b>", page)

    def test_equal_simulated_runs_with_other_rates_stay_apart(self):
        page = self.page_of(content_of([run_of("x", mops=1.11)], simulated="m"),
                            content_of([run_of("x", mops=2.22)], simulated="m"))
        for text in ("x 1.11", "x 2.22", "50 % read, 50 % update, uniform keys, file r1.json"):
            self.assertIn(text, page)

    def disturbed_page(self, **machine):
        """With 2 threads the first index's run is disturbed, with 1 thread none is."""
        runs = [run_of(index, threads, dist="zipf:0.99", mops=threads, ratio_to_first=1.25,
                       cpu_wait_pct=30.0 if (index, threads) == ("absl+mutex", 2) else 0.1)
                for index in ("absl+mutex", "ordered_map") for threads in (1, 2)]
        return self.page_of(content_of(runs, **machine))

    def test_disturbed_runs_are_marked_and_not_compared(self):
        page = self.disturbed_page(usable_threads=2)
        self.assertEqual(page.count("In 1 of 4 runs other programs kept the threads waiting for "
                                    "more than 5 %"), 2)
        self.assertIn("1 thread: <b>", page)
        self.assertNotIn("2 threads: <b>", page)
        self.assertIn("no order: † 1 of 2 disturbed", page)
        self.assertIn("2.000 †", page)
        self.assertEqual(page.count("<td>1.25</td>"), 2)  # of one thread alone
        self.assertNotIn("absl+mutex 2.00 x", page)  # of hot keys

    def test_more_threads_than_cpus_wait_for_each_other(self):
        page = self.disturbed_page(usable_threads=1)
        self.assertNotIn("other programs", page)
        self.assertIn("2 threads: <b>", page)

    def test_a_page_of_disturbed_runs_gives_no_ratio(self):
        runs = [run_of(index, cpu_wait_pct=40.0, ratio_to_first=ratio, mops=2 * ratio)
                for index, ratio in (("absl+mutex", 1.0), ("ordered_map", 0.25))]
        page = self.page_of(content_of(runs, usable_threads=2))
        self.assertIn("In 2 of 2 runs", page)
        text = re.sub(r"<[^>]+>", " ", page)
        self.assertEqual(re.findall(r"[0-9.]+ x\b", text), [])
        self.assertNotIn("fastest with", text)

    def test_all_that_is_checked_in_is_read(self):
        contents = [results.read_file(path)
                    for path in sorted((ROOT / "docs" / "results").glob("*.json"))]
        self.assertGreater(len(contents), 40)
        shown = ("runs", "claims", "columns", "locks", "programs", "not_shown")
        self.assertEqual([c["file"] for c in contents if not any(c[name] for name in shown)], [])
        titles = [one.title for one in results.key_sets(contents)]
        self.assertEqual(len(titles), len(set(titles)), titles)
        self.assertEqual([title for title in titles if title.startswith(("0 ", "an unrecorded"))],
                         [])

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
        self.assertEqual(self.headings(page)[:2],
                         ["1 M u64 integer keys", "1 M u64 integer keys, simulated"])

    def test_bad_files_are_refused_and_nothing_is_written(self):
        wrong_fields = [{"mops": "x"}, {"mops": None}, {"mops": -1.0}, {"mops": float("nan")}, {"keys": "many"},
                        {"dist": "zipf:q"}, {"index": ["x"]}, {"threads": "2"}, {"threads": 1.5}, {"ns_p50": []}]
        for bad in ("not json", {"schema": 2, "runs": []}, {"schema": 1}, {"schema": 1, "runs": [{"index": "x"}]},
                    {"schema": 1, "runs": [3]}, {"schema": 1, "runs": [], "machine": "x"},
                    {"schema": 1, "runs": [], "claims": {"a": 1}}, {"schema": 1, "columns": [{"column": "x"}]},
                    *(content_of([run_of("x") | w]) for w in wrong_fields)):
            with self.subTest(bad=bad):
                self.refused("r.json", self.write(bad), "--out", str(self.out))
        self.refused("/nowhere/r.json", "/nowhere/r.json", "--out", str(self.out))
        below_a_file = self.write(content_of([run_of("x")])) + "/page.html"
        self.refused(below_a_file, self.write(content_of([run_of("x")])), "--out", below_a_file)
        self.assertFalse(self.out.exists())
        self.assertEqual([p.suffix for p in Path(self.directory.name).iterdir()], [".json"])

    def test_a_field_of_another_type_is_drawn_or_refused(self):
        run = run_of("x", cpu_wait_pct=1.0, order="random", scan_length=[1, 2], warehouses=2,
                     machine="m", by_type={})
        content = content_of([run, run_of("y")]) | {"claims": [{"id": "E-F2", "verdict": "agrees"}]}
        for name in (*run, *content, "cpu", "usable_threads"):
            for odd in (None, [{"a": None}], {"b": []}, "text", -1, 10**400, True):
                wrong = json.loads(json.dumps(content))
                for holder in (wrong, wrong["runs"][0], wrong["machine"]):
                    if name in holder:
                        holder[name] = odd
                with self.subTest(name=name, odd=str(odd)[:20]):
                    try:
                        key_sets = results.key_sets([results.read_file(self.write(wrong))])
                        self.assertTrue(all(one.title for one in key_sets))
                    except results.BadResults as error:
                        self.assertRegex(str(error), r"\Areport: .*r\.json: [^\n]+\Z")

    def test_missing_directories_are_made_for_a_page_alone(self):
        out = Path(self.directory.name) / "none" / "deeper" / "page.html"
        self.refused("r.json", self.write("not json"), "--out", str(out))
        good = self.write(content_of([run_of("x")]))
        with self.assertRaises(OSError):
            report.write_whole({str(out): b"a page", self.directory.name: b"a directory"})
        self.assertFalse(out.parent.parent.exists())
        self.assertEqual(report.main([good, "--out", str(out)]), 0)
        self.assertTrue(out.exists())

    def test_the_page_of_all_that_is_checked_in_is_small_and_its_contents_complete(self):
        files = sorted(map(str, (ROOT / "docs" / "results").glob("*.json")))
        self.assertEqual(report.main([*files, "--out", str(self.out)]), 0)
        self.assertLessEqual(self.out.stat().st_size, 2_000_000)
        page = self.out.read_text()
        listed = re.findall(r"<a href='#([^']+)'>", page[page.index("<nav>"):page.index("</nav>")])
        self.assertEqual(listed, re.findall(r"<h2 id='([^']+)'>", page))
        self.assertEqual(len(listed), len(set(listed)))
        self.assertGreater(len(listed), 20)
        self.assertNotIn("? cores", page)

    def test_what_is_wide_scrolls_in_its_own_box(self):
        threads = (1, 2, 4, 8)
        page = self.page_of(content_of([run_of(i, t) for i in ("x", "ordered_map")
                                        for t in threads]))
        self.assertIn("<meta name=viewport content='width=device-width'>", page)
        for tag in ("<table", "<svg"):
            self.assertIn(tag, page)
            self.assertEqual(page.count(tag), page.count("<div class=scroll>" + tag), tag)

    def test_the_headline_says_what_was_run(self):
        claims = [{"id": "E-F2", "verdict": "agrees"}]
        page = self.page_of(content_of([run_of(i, t) for i in ("absl+mutex", "ordered_map")
                                        for t in (1, 2)]),
                            content_of([run_of("x", 8, workload="c")]) | {"claims": claims})
        headline = "elidex: absl+mutex, ordered_map, x; 2 kinds of work; 1 M u64 integer keys; "
        self.assertIn(f"<h1>{headline}1 to 8 threads; 1 claim of the papers</h1>", page)
        many = self.page_of(content_of([run_of(f"index {n}") for n in range(9)]))
        self.assertIn("<h1>elidex: 9 indexes; 50 % read, 50 % update, uniform keys; 1 M u64 integer "
                      "keys; 1 thread</h1>", many)

    def test_the_load_of_the_machine(self):
        busy = content_of([run_of("x", cpu_wait_pct=p) for p in (0.25, 1.5, 3.0)], usable_threads=2)
        page = self.page_of(busy | {"load_average": {"start": 0.512, "end": 1.75}},
                            content_of([run_of("x")]))
        self.assertIn("Load average before the runs: 0.51 in 1 file; not recorded in 1.", page)
        cells = ("r0.json", "2", "0.51", "1.75", "1.50", "3.00")
        self.assertIn("".join(f"<td>{cell}</td>" for cell in cells), page)
        self.assertIn("do not record the machine&#x27;s load",
                      self.page_of(content_of([run_of("x")])))
        for wrong in ([1], {"start": 1}, {"start": 1, "end": "much"}, {"start": -1, "end": 0}):
            bad = self.write(busy | {"load_average": wrong})
            self.refused("r.json", bad, "--out", str(self.out))

    def test_bars_are_as_long_as_rates_and_latencies(self):
        page = self.page_of(content_of([
            run_of("x", mops=5.0, mops_min=4.0, mops_max=10.0, ns_p50=100, ns_p99=10_000,
                   ns_p999=123_456),
            run_of("ordered_map", mops=10.0, mops_min=10.0, mops_max=10.0, ns_p50=1000,
                   ns_p99=10_000)]))
        self.assertIn("<td class='bar ours'><b style=left:0.0%;width:max(2px,100.0%)></b></td>",
                      page)
        self.assertIn("<td class='bar'><b style=left:0.0%;width:max(2px,50.0%)></b>"
                      "<i style=left:40.0%;width:60.0%></i></td>", page)
        shares = [float(w) for w in re.findall(r"left:[1-9][^<>]*max\(2px,([\d.]+)%", page)]
        self.assertAlmostEqual(shares[1], 2 * shares[0], delta=0.2)  # two decades and one
        self.assertIn("123456", page)
        self.assertNotIn("p99.9", self.page_of(content_of([run_of("x")])))

    def test_a_full_disk_is_told(self):
        limited = ("import resource, sys, report; resource.setrlimit(resource.RLIMIT_FSIZE, "
                   "(1000, 1000));"
                   "sys.exit(report.main(sys.argv[1:]))")
        good = self.write(content_of([run_of("x")]))
        said = subprocess.run([sys.executable, "-c", limited, good, "--out", str(self.out)],
                              cwd=ROOT / "cli" / "report",
                              stderr=subprocess.PIPE, text=True)
        self.assertEqual((said.returncode, said.stderr),
                         (2, f"report: {self.out}: File too large\n"))
        self.assertEqual([p.name for p in Path(self.directory.name).iterdir()], ["r.json"])

    def test_a_device_is_written_and_stays_one(self):
        device = Path(self.directory.name) / "pipe"
        os.mkfifo(device)
        reader = os.open(device, os.O_RDONLY | os.O_NONBLOCK)
        report.write_whole({str(device): b"a page"})
        self.assertEqual(os.read(reader, 100), b"a page")
        os.close(reader)
        self.assertTrue(device.is_fifo())

    def test_one_bad_output_leaves_the_other_as_it_was(self):
        good = self.write(content_of([run_of("x")]))
        # The first is below a file; of the second there are no runs to draw.
        for picture in (good + "/p.png", str(Path(self.directory.name) / "p.png")):
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(report.main([good, "--out", str(self.out), "--picture", picture]), 2)
        self.assertEqual([p.name for p in Path(self.directory.name).iterdir()], ["r.json"])

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
        self.assertEqual(self.headings(page)[:2],
                         ["1 M u64 integer keys (elidex abc)", "1 M u64 integer keys (elidex def)"])
        page = self.page_of(content_of([run_of("x", mops=2.0)]), content_of([run_of("x", mops=7.77)]))
        self.assertIn("1 earlier runs of the same kind are left out: the file named last counts.",
                      page)
        self.assertIn("x 7.77", page)

    def test_many_numbers_of_threads(self):
        page = self.page_of(content_of([run_of(i, t) for i in ("x", "ordered_map") for t in (1, 2, 4, 8, 16, 20)]))
        self.assertIn("20 threads", page)

    def test_a_run_that_did_nothing_is_drawn(self):
        self.page_of(content_of([run_of("x", mops=0.0), run_of("ordered_map", mops=0.0)]))

    def test_picture(self):
        runs = [run_of(i, t, w, d) for i in ("x", "ordered_map") for t in (1, 2)
                for w, d in (("b", "uniform"), ("a", "zipf:0.99"))]
        picture = Path(self.directory.name) / "p.png"
        self.assertEqual(report.main([self.write(content_of(runs)), "--out", str(self.out), "--picture", str(picture)]), 0)
        self.assertTrue(picture.read_bytes().startswith(b"\x89PNG"))

    def test_picture_has_a_row_of_panels_for_each_allocator(self):
        runs = [run_of(i, t, w, d) for i in ("x", "ordered_map") for t in (1, 2)
                for w, d in (("b", "uniform"), ("a", "zipf:0.99"))]
        heights = []
        for allocators in (["one"], ["one", "another"]):
            files = [self.write(content_of(runs, allocator=name), f"{name}.json")
                     for name in allocators]
            picture = Path(self.directory.name) / "p.png"
            self.assertEqual(report.main([*files, "--out", str(self.out), "--picture", str(picture)]), 0)
            heights.append(int.from_bytes(picture.read_bytes()[20:24], "big"))  # PNG's IHDR
        self.assertEqual(heights[1], 2 * heights[0])


if __name__ == "__main__":
    unittest.main()
