#!/usr/bin/env python3
"""One self-contained HTML page of everything measured: report.py FILES... --out FILE [--picture FILE.png]"""

import argparse
import os
import sys
import tempfile

from results import BadResults, key_sets, read_file


def write_whole(path, data):
    """The file is there with all of its content, or as it was."""
    folder = os.path.dirname(os.path.abspath(path))
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=os.path.splitext(path)[1])
    except OSError as error:
        raise BadResults(f"report: {path}: {error.strerror}") from None
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)


def draw_picture(sets, path):
    """The read-mostly and the hot-key mix over the largest integer key set that has both."""
    import plots

    wanted = (("b", "uniform", "read-mostly"), ("a", "zipf:0.99", "hot keys"))
    for key_set in reversed([s for s in sets if s.key_type == "u64" and not s.simulated]):
        if all((workload, dist) in key_set.works for workload, dist, _ in wanted):
            panels = [(title, key_set.works[(workload, dist)]) for workload, dist, title in wanted]
            looks = plots.Looks({r["index"] for _, runs in panels for r in runs})
            plots.picture(panels, looks, path)
            return
    raise BadResults("report: --picture: needs workload b uniform and workload a zipf:0.99 over the same integer keys")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", help="results in JSON, as elidex bench --json writes them")
    parser.add_argument("--out", required=True, help="the HTML file to write")
    parser.add_argument("--picture", help="a PNG for the README to write besides")
    flags = parser.parse_args(arguments)
    try:
        contents = [read_file(path) for path in flags.files]
        sets = key_sets(contents)
        try:
            from page import render  # matplotlib takes a second to load: after the input is known to be good
        except ImportError as error:
            raise BadResults(f"report: {error.name} is missing; ./dev setup installs it") from None

        write_whole(flags.out, render(contents, sets).encode())
        if flags.picture:
            draw_picture(sets, flags.picture)
    except BadResults as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
