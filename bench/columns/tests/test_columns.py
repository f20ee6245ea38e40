"""Real columns: the package's file is decoded as its own reader does, nothing unchecked is used, and the table says what
the tool and pyarrow said. No network, no built tool, and but for one test no pyarrow."""

import base64
import contextlib
import hashlib
import importlib.util
import io
import json
import os
import shlex
import sys
import tarfile
import tempfile
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import compare  # noqa: E402
import costs  # noqa: E402
import real_data  # noqa: E402

FAKE_TOOL = Path(__file__).resolve().parent / "fake_tool.py"


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def number_field(number, value, signed=False):
    return varint(number << 3) + varint(2 * value if value >= 0 else -2 * value - 1) if signed else \
        varint(number << 3) + varint(value)


def string_field(number, value):
    held = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(held)) + held


def message(*parts):
    return varint(len(b"".join(parts))) + b"".join(parts)


TWO_CITIES = (
    message(number_field(1, 3039163, True), string_field(2, "Sant Julià"), string_field(3, "AD"), string_field(7, "PPLA"),
            string_field(8, "06"), number_field(9, 8022), number_field(10, 149129, True), number_field(11, 4246372, True))
    + message(number_field(1, -7, True), string_field(2, 'a "b", c'), string_field(3, "NA"), string_field(4, "FI"),
              number_field(10, -149130, True), number_field(11, -9246372, True)))


def package_of(data, name=real_data.MEMBER):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def sha512(data):
    return base64.b64encode(hashlib.sha512(data).digest()).decode()


class InADirectory(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def write_data(self):
        """135 cities, among them quoted names and equal values, and 3 words."""
        names = [f"{'Upper, ' if i % 10 == 0 else ''}City {i % 100}" for i in range(135)]
        rows = [(name, "NA" if i % 2 else "FI", i % 7 * 1000, f"{i % 50}.50000", f"-{i}.25000") for i, name in enumerate(names)]
        (self.directory / "cities.csv").write_bytes(
            real_data.csv_bytes(("name", "country", "population", "latitude", "longitude"), rows))
        (self.directory / "words.csv").write_bytes(real_data.csv_bytes(("word",), [["a"], ["b"], ["é"]]))


class Decoder(unittest.TestCase):
    def test_two_cities(self):
        first, second = real_data.cities(TWO_CITIES)
        self.assertEqual(first, {"id": 3039163, "name": "Sant Julià", "country": "AD", "other_country": "", "municipality": "",
                                 "subdivision": "", "feature_code": "PPLA", "admin_code": "06", "population": 8022,
                                 "latitude": "42.46372", "longitude": "1.49129"})
        # Coordinates are differences to the city before; a population that is left out is 0.
        self.assertEqual([second[name] for name in ("id", "name", "other_country", "population", "latitude", "longitude")],
                         [-7, 'a "b", c', "FI", 0, "-50.00000", "-0.00001"])

    def test_no_city(self):
        self.assertEqual(list(real_data.cities(b"")), [])

    def test_every_cut_is_refused(self):
        end_of_first = TWO_CITIES[0] + 1
        for end in set(range(1, len(TWO_CITIES))) - {end_of_first}:
            with self.assertRaises(real_data.BadData, msg=f"cut at {end}"):
                list(real_data.cities(TWO_CITIES[:end]))

    def test_what_is_not_known_is_refused(self):
        for part in (number_field(12, 1), number_field(2, 1), string_field(9, "1"), varint(1 << 3 | 5) + b"1234",
                     string_field(2, b"\xff"), varint(2 << 3 | 2) + varint(9) + b"x", b"\xff" * 11):
            with self.assertRaises(real_data.BadData, msg=part):
                list(real_data.cities(message(part)))

    def test_large_numbers(self):
        for number in (0, 127, 128, 2**32, 2**64 - 1):
            held = varint(number)
            self.assertEqual(real_data.varint(held, 0, len(held)), (number, len(held)))
        self.assertEqual([real_data.zigzag(n) for n in range(5)], [0, -1, 1, -2, 2])


class Fetching(InADirectory):
    def test_downloaded_once(self):
        archive = package_of(TWO_CITIES)
        there, path = self.directory / "there.tgz", self.directory / "new" / "package.tgz"
        there.write_bytes(archive)
        with contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(real_data.package(path, there.as_uri(), sha512(archive)), archive)
            there.unlink()
            self.assertEqual(real_data.package(path, there.as_uri(), sha512(archive)), archive)
        self.assertEqual(err.getvalue().count("fetching"), 1)

    def test_another_checksum_is_refused_and_nothing_kept(self):
        there, path = self.directory / "there.tgz", self.directory / "package.tgz"
        there.write_bytes(package_of(TWO_CITIES))
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaisesRegex(real_data.BadData, "checksum differs"):
            real_data.package(path, there.as_uri(), sha512(b"another"))
        self.assertEqual(sorted(self.directory.iterdir()), [there])

    def test_a_damaged_file_is_refused(self):
        path = self.directory / "package.tgz"
        path.write_bytes(b"damaged")
        with self.assertRaisesRegex(real_data.BadData, "checksum differs; delete it"):
            real_data.package(path)

    def test_no_network_is_one_line(self):
        with contextlib.redirect_stderr(io.StringIO()), self.assertRaises(real_data.BadData) as refused:
            real_data.package(self.directory / "package.tgz", (self.directory / "nowhere").as_uri())
        self.assertIn("it takes a network", str(refused.exception))
        self.assertNotIn("\n", str(refused.exception))

    def test_packages_without_the_cities(self):
        for archive in (package_of(TWO_CITIES, "package/other"), b"no archive", package_of(TWO_CITIES)[:40]):
            with self.assertRaisesRegex(real_data.BadData, "holds no file"):
                real_data.member(archive, real_data.MEMBER)

    def test_files_read_back_as_they_were(self):
        word_list = self.directory / "list"
        word_list.write_text("a\nb's\n\né\n", encoding="utf-8")
        rows = real_data.write_all(self.directory / "out", word_list, package_of(TWO_CITIES))
        self.assertEqual(rows, {"cities.csv": 2, "words.csv": 3})
        values = {name: compare.column_values(self.directory / "out" / file, compare.Column(file, name, type))
                  for file, name, type in (("cities.csv", "name", "string"), ("cities.csv", "country", "string"),
                                           ("cities.csv", "population", "int"), ("cities.csv", "latitude", "double"),
                                           ("words.csv", "word", "string"))}
        self.assertEqual(values, {"name": ["Sant Julià", 'a "b", c'], "country": ["AD", "NA"], "population": [8022, 0],
                                  "latitude": [42.46372, -50.0], "word": ["a", "b's", "é"]})
        self.assertIn(b'"a ""b"", c",NA,FI,', (self.directory / "out" / "cities.csv").read_bytes())


class FakeArrow:
    version = "0"

    def __init__(self, distinct=lambda values: len(set(values))):
        self.distinct = distinct

    def array(self, values, type):
        return values

    def encode(self, array, rows):
        plain = compare.repeated(array, rows, lambda pieces: sum(pieces, []))
        return {"distinct": self.distinct(plain), "plain_bytes_per_row": 9.0, "dictionary_bytes_per_row": 4.5,
                "encode_mrows_s": 20.0}


class WholeCommand(InADirectory):
    def setUp(self):
        super().setUp()
        self.write_data()
        self.out = self.directory / "out" / "columns.json"

    def run_compare(self, *more, load_with=compare.load_with, arrow=FakeArrow, tool=FAKE_TOOL):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = compare.main(["--elidex", str(tool), "--data", str(self.directory), "--json", str(self.out), *more],
                                  load_with, arrow)
        return status, out.getvalue(), err.getvalue()

    def assert_refused(self, words, *more, **other):
        status, out, err = self.run_compare("--rows", "200", "--rounds", "1", *more, **other)
        self.assertEqual((status, out), (2, ""))
        self.assertEqual(err.count("\n"), 1, err)
        self.assertIn(words, err)
        self.assertFalse(self.out.exists())

    def tool_that(self, edit):
        """The fake tool with another answer."""
        def loads(elidex):
            load = compare.load_with(elidex)

            def changed(*arguments):
                content = load(*arguments)
                edit(content["columns"][0])
                return content
            return changed
        return loads

    def test_table_and_json(self):
        status, out, err = self.run_compare("--rows", "1k", "--rounds", "3", "--threads", "2")
        self.assertEqual((status, err), (0, ""))
        lines = out.splitlines()
        self.assertEqual([line.split()[0] for line in lines[2:8]],
                         ["name", "country", "population", "latitude", "longitude", "word"])
        self.assertEqual(lines[3].split(), ["country", "string", "1000", "2", "0.200", "%", "2.50", "20.00", "12.00", "2.25",
                                            "32.00", "9.00", "4.50"])
        self.assertIn("elidex abc, 2 threads; pyarrow 0, 1 thread; medians of 3 rounds", out)
        self.assertIn("135 rows of cities.csv, 3 rows of words.csv", out)

        content = json.loads(self.out.read_text())
        self.assertEqual([content[name] for name in ("schema", "commit", "machine", "rounds", "runs")],
                         [1, "abc", {"cpu": "Some CPU"}, 3, []])
        word = content["columns"][-1]
        self.assertEqual([word[name] for name in ("file", "column", "type", "file_rows", "rows", "distinct", "threads")],
                         ["words.csv", "word", "string", 3, 1000, 3, 2])
        self.assertEqual(word["arrow"], {"version": "0", "plain_bytes_per_row": 9.0, "dictionary_bytes_per_row": 4.5,
                                         "encode_mrows_s": 20.0, "raw_encode_mrows_s": [20.0] * 3})
        self.assertNotIn(str(self.directory), self.out.read_text())

    def test_medians_of_rounds(self):
        speeds = iter([speed for speed in (1.0, 9.0, 2.0) for _ in compare.COLUMNS])
        status, _, _ = self.run_compare("--rows", "10", "--rounds", "3",
                                        load_with=self.tool_that(lambda one: one.update(insert_mrows_s=next(speeds))))
        self.assertEqual(status, 0)
        for one in json.loads(self.out.read_text())["columns"]:
            self.assertEqual((one["insert_mrows_s"], one["raw_insert_mrows_s"]), (2.0, [1.0, 9.0, 2.0]))

    def test_canary_other_values_are_refused(self):
        self.assert_refused("elidex counts 200 rows, 1 distinct", load_with=self.tool_that(lambda one: one.update(distinct=1)))
        self.assert_refused("and 4 skipped", load_with=self.tool_that(lambda one: one.update(skipped=4)))
        self.assert_refused("elidex counts 135 rows", load_with=self.tool_that(lambda one: one.update(rows=135)))
        self.assert_refused("pyarrow counts 7 distinct", arrow=lambda: FakeArrow(lambda values: 7))

    def test_tools_that_fail(self):
        tool = self.directory / "tool"
        self.assert_refused("No such file", tool=tool)
        wrong = json.dumps({"schema": 1, "commit": "abc", "machine": {}, "columns": [{"column": "name", "type": "string"}]})
        for command, words in (("exit 3", "status 3"), ("echo one >&2; echo why >&2; exit 2", "failed for name of cities.csv: why"),
                               ("true", "no results"), ("echo []", "no results"),
                               (f"echo {shlex.quote(wrong)}", "no results")):
            tool.write_text(f"#!/bin/sh\n{command}\n")
            os.chmod(tool, 0o755)
            self.assert_refused(words, tool=tool)

    def test_data_that_is_not_there_or_another(self):
        cities = self.directory / "cities.csv"
        cities.write_text("name,country,population,latitude,longitude\na,b,many,0,0\n")
        self.assert_refused("no column 'population' of ints")
        cities.write_text("name\n")
        self.assert_refused("no rows")
        cities.write_text("country\na\n")
        self.assert_refused("no column 'name' of strings")
        cities.unlink()
        self.assert_refused("No such file")

    def test_flags(self):
        self.assertEqual([compare.count(word) for word in ("1", "10M", "2k")], [1, 10**7, 2000])
        for word in ("0", "-1", "M", "1.5", ""):
            with self.assertRaises(ValueError, msg=word):
                compare.count(word)

    def test_without_pyarrow(self):
        with unittest.mock.patch.dict(sys.modules, {"pyarrow": None}):
            self.assert_refused("pyarrow is missing", arrow=compare.Arrow)


class Repeated(unittest.TestCase):
    def test_all_then_the_first(self):
        for rows in range(1, 12):
            self.assertEqual(compare.repeated([1, 2, 3, 4], rows, lambda pieces: sum(pieces, [])),
                             [i % 4 + 1 for i in range(rows)])

    @unittest.skipUnless(importlib.util.find_spec("pyarrow"), "needs pyarrow, which ./dev columns installs")
    def test_pyarrow(self):
        arrow = compare.Arrow()
        words = arrow.encode(arrow.array(["a", "bc", "d"], "string"), 7)
        self.assertEqual(words["distinct"], 3)
        self.assertAlmostEqual(words["plain_bytes_per_row"] * 7, 7 * 4 + 9)  # offsets (nbytes leaves out the last), a bc d a bc d a
        self.assertAlmostEqual(words["dictionary_bytes_per_row"] * 7, 7 * 4 + 3 * 4 + 4)
        for type, values in (("int", [1, -2, 2**40]), ("double", [0.5, 1e300, -1.0])):
            numbers = arrow.encode(arrow.array(values, type), 6)
            self.assertEqual((numbers["distinct"], numbers["plain_bytes_per_row"], numbers["dictionary_bytes_per_row"]),
                             (3, 8, 4 + 3 * 8 / 6))


class Costs(unittest.TestCase):
    CONTENT = {"benchmarks": [
        {"run_name": "column/get/7", "aggregate_name": "mean", "real_time": 9, "time_unit": "ns"},
        {"run_name": "column/get/7", "aggregate_name": "median", "real_time": 5, "time_unit": "ns", "items_per_second": 2e8},
        {"run_name": "column/merge/9/iterations:1/manual_time", "aggregate_name": "median", "real_time": 2, "time_unit": "ms",
         "items_per_second": 5e9},
        {"run_name": "column/get beside merges/1/iterations:1/real_time", "aggregate_name": "median", "real_time": 1,
         "time_unit": "s", "ns_p50": 1, "ns_p99": 2, "ns_p999": 3, "merges": 4}]}

    def test_keeps_the_medians_in_nanoseconds(self):
        self.assertEqual(costs.medians(self.CONTENT),
                         [{"name": "get/7", "ns": 5, "items_per_second": 2e8},
                          {"name": "get beside merges/1", "ns": 1e9, "ns_p50": 1, "ns_p99": 2, "ns_p999": 3, "merges": 4},
                          {"name": "merge/9", "ns": 2e6, "items_per_second": 5e9}])

    def test_says_each_in_a_line(self):
        text = list(costs.lines(costs.medians(self.CONTENT)))
        self.assertIn("5.0 ns  200.00 M/s", text[0])
        self.assertIn("p99 2 ns", text[1])
        self.assertIn("2.00 ms    5.00 G/s", text[2])

    def test_a_program_that_says_nothing_is_refused(self):
        with self.assertRaises(real_data.BadData):
            costs.measure("true", 1)
        with self.assertRaises(real_data.BadData):
            costs.measure("/no/such/program", 1)


if __name__ == "__main__":
    unittest.main()
