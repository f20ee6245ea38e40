#!/usr/bin/env python3
"""One self-contained HTML page of everything measured: report.py FILES... --out FILE [--picture FILE.png]"""

import argparse
import os
import sys
from pathlib import Path

from results import BadResults, Work, key_sets, read_file

sys.path.append(str(Path(__file__).resolve().parents[1] / "files"))
from whole_files import write_whole  # noqa: E402

FAILED, REFUSED = 1, 2  # exit statuses


def draw_picture(sets):
    """The read-mostly and the hot-key mix over the largest integer key set that has both, with each
    allocator that measured it."""
    import plots

    wanted = (("b", "uniform", "read-mostly"), ("a", "zipf:0.99", "hot keys"))
    good = [s for s in sets if "u64 integer" in s.data and not s.simulated
            and all(Work(workload, dist) in s.works for workload, dist, _ in wanted)]
    if not good:
        raise BadResults("report: --picture: needs workload b uniform and workload a zipf:0.99 over the same integer keys")
    rows = {}
    for one in good:
        if one.data == good[-1].data:
            rows[one.machine.get("allocator", "")] = [(title, one.works[Work(workload, dist)])
                                                      for workload, dist, title in wanted]
    looks = plots.Looks({r["index"] for panels in rows.values() for _, runs in panels for r in runs})
    return plots.picture(rows, looks)


def render(contents, sets):
    os.environ.setdefault("OPENBLAS_NUM_THREADS",
                          "1")  # the page needs no threads, which take memory
    try:
        import page  # matplotlib takes a second to load: after the input is known to be good
    except ModuleNotFoundError as error:
        raise BadResults(f"report: {error.name} is missing (expected python3 with matplotlib, numpy "
                         "and pandas; set ELIDEX_PYTHON to another Python)") from None
    return page.render(contents, sets).encode()


def one_line(error):
    """The first line of what went wrong at the bottom: numpy wraps a failed import in pages of
    advice."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def make_page(flags):
    contents = [read_file(path) for path in flags.files]
    sets = key_sets(contents)
    files = {flags.out: render(contents, sets)}
    if flags.picture:
        files[flags.picture] = draw_picture(sets)
    try:
        write_whole(files)
    except OSError as error:
        raise BadResults(f"report: {error.strerror}") from None


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", help="results in JSON, as elidex bench --json writes them")
    parser.add_argument("--out", required=True, help="the HTML file to write")
    parser.add_argument("--picture", help="a PNG for the README, written as well")
    flags = parser.parse_args(arguments)
    try:
        make_page(flags)
    except BadResults as error:
        print(error, file=sys.stderr)
        return REFUSED
    except MemoryError:
        print("report: out of memory", file=sys.stderr)
        return FAILED
    except (ImportError,
            OSError) as error:  # a library that cannot be mapped, a font that cannot be read
        print(f"report: the page cannot be drawn: {one_line(error)}", file=sys.stderr)
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
