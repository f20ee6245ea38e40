#!/usr/bin/env python3
"""Stands in for `elidex column load`: counts what the file holds and makes up the speeds and sizes."""

import csv
import json
import sys


def main():
    path, flags = sys.argv[3], dict(zip(sys.argv[4::2], sys.argv[5::2]))
    with open(path, encoding="utf-8", newline="") as file:
        values = [row[flags["--column"]] for row in csv.DictReader(file)]
    rows = int(flags["--rows"])
    parse = {"string": str, "int": int, "double": float}[flags["--type"]]
    column = {"file": path, "column": flags["--column"], "type": flags["--type"], "rows": rows,
              "distinct": len({parse(value) for value in values[:rows]}), "skipped": 0, "read_mb_s": 100.0,
              "insert_mrows_s": 2.5, "threads": int(flags["--threads"]), "merge_s": 0.5, "delta_bytes_per_row": 12.0,
              "main_bytes_per_row": 2.25, "vector_bytes_per_row": 32.0, "id_bits": 17}
    json.dump({"schema": 1, "commit": "abc", "machine": {"cpu": "Some CPU"}, "columns": [column]}, sys.stdout)


if __name__ == "__main__":
    main()
