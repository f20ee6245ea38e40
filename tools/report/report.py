#!/usr/bin/env python3
"""One self-contained HTML page of everything measured: report.py FILES... --out FILE [--picture FILE.png]"""

import argparse
import errno
import os
import sys
import tempfile

from results import BadResults, key_sets, read_file


def write_whole(files):
    """Path -> bytes. None is replaced unless all could be written, and each then has all of its content."""
    written = []
    try:
        for path, data in files.items():
            handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)))
            written.append((temporary, path))
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(temporary, 0o644)
            if os.path.isdir(path):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        for temporary, path in written:
            os.replace(temporary, path)
    except OSError as error:
        for temporary, _ in written:
            if os.path.exists(temporary):
                os.unlink(temporary)
        raise BadResults(f"report: {path}: {error.strerror}") from None


def draw_picture(sets):
    """The read-mostly and the hot-key mix over the largest integer key set that has both."""
    import plots

    wanted = (("b", "uniform", "read-mostly"), ("a", "zipf:0.99", "hot keys"))
    for key_set in reversed([s for s in sets if s.key_type == "u64" and not s.simulated]):
        if all((workload, dist) in key_set.works for workload, dist, _ in wanted):
            panels = [(title, key_set.works[(workload, dist)]) for workload, dist, title in wanted]
            looks = plots.Looks({r["index"] for _, runs in panels for r in runs})
            return plots.picture(panels, looks)
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

        files = {flags.out: render(contents, sets).encode()}
        if flags.picture:
            files[flags.picture] = draw_picture(sets)
        write_whole(files)
    except BadResults as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
