"""What the user gets: tables on the terminal, the JSON document, and files that appear whole or not
at all."""

import json
import os
import sys
import tempfile
import textwrap
from dataclasses import asdict
from pathlib import Path

from claims import BadInput
from verdicts import AGREES, CALIBRATION, DIFFERS, FORMULA, NEAR, number

sys.path.append(str(Path(__file__).resolve().parents[2] / "cli" / "files"))
from whole_files import is_device, write_whole  # noqa: E402, F401

WIDTH = 118
LINE_MAX = 140  # of a table that cannot be narrower


def table(titles, rows, widths_max=None):
    """Columns as wide as their longest cell, wrapped at widths_max; numbers of one column line up
    on the left."""
    limits = widths_max or [WIDTH] * len(titles)
    wrapped = [[textwrap.wrap(str(cell), limit) or [""] for cell, limit in zip(row, limits)]
               for row in [titles, *rows]]
    widths = [max(len(line) for row in wrapped for line in row[i]) for i in range(len(titles))]
    lines = []
    for row in wrapped:
        for n in range(max(map(len, row))):
            cells = [(cell[n] if n < len(cell) else "").ljust(width)
                     for cell, width in zip(row, widths)]
            lines.append(("  " + "  ".join(cells)).rstrip())
    return "\n".join(lines) + "\n"


def claims_table(judgements):
    rows = [(j.id, j.paper, j.here, j.verdict) for j in judgements]
    return table(("claim", "paper", "here", "verdict"), rows, (10, 44, 44, 11))


def counted(judgements):
    """How many claims have each verdict, and the ids of those that are not evidence."""
    ids = {}
    for j in judgements:
        ids.setdefault(j.verdict, []).append(j.id)
    told = [f"{len(ids.get(v, ()))} {v}" for v in (AGREES, NEAR, DIFFERS)]
    told += [f"{v} (no evidence): {', '.join(ids[v])}" for v in (FORMULA, CALIBRATION) if v in ids]
    return textwrap.fill("; ".join(told), WIDTH, initial_indent="  ", subsequent_indent="  ") + "\n"


def notes(judgements):
    return "".join(textwrap.fill(f"{j.id}: {j.note}", WIDTH, initial_indent="  ",
                                 subsequent_indent="      ") + "\n" for j in judgements if j.note)


def sensitivity_tables(rows, beside="aborts_per_op"):
    """Speeds and what stands beside them. A table for each theta and number of threads of a figure;
    beside several indexes, the first over the second. Figures with the same table share it."""
    places, shared, text = {}, {}, ""
    for row in rows:
        places.setdefault((row["figure"], row["dist"], row["threads"]), []).append(row)
    for (figure, dist, threads), there in places.items():
        key = dist, threads, tuple(dict.fromkeys(row["index"] for row in there))
        shared.setdefault(key, (there, []))[1].append(figure)
    for (dist, threads, indexes), (there, figures) in shared.items():
        untouched = {row["index"]: row["mops"] for row in there if row["knob"] == "none"}
        by_change, lines = {}, []
        for row in there:
            name = "nothing" if row["knob"] == "none" else f"{row['knob']} {row['value']}"
            by_change.setdefault(name, {})[row["index"]] = row
        for name, changed in by_change.items():
            cells = [f"{number(changed[i]['mops'])}, {number(changed[i][beside])}"
                     if i in changed else "-" for i in indexes]
            if len(indexes) > 1:  # an index that has no such knob runs as ever
                mops = untouched | {i: row["mops"] for i, row in changed.items()}
                is_new = name == "nothing" or any(i in changed for i in indexes[:2])
                cells.append(f"{number(mops[indexes[0]] / mops[indexes[1]])} x" if is_new else "-")
            lines.append((name, *cells))
        ratio = (f"{indexes[0]} over {indexes[1]}",) if len(indexes) > 1 else ()
        # Many long names stand in several lines each.
        widths = [22, *(max(14, len(name)) + 2 for name in (*indexes, *ratio))]
        limits = [22, *[14] * (len(indexes) + 1)] if sum(widths) > LINE_MAX else None
        text += (f"\n  {', '.join(figures)}: {dist}, {threads} threads\n"
                 + table(("changed", *indexes, *ratio), lines, limits))
    return text


def document(flags, machine, outcome, not_built, native, plots, verified=None):
    """Schema 1 of the design."""
    fields, changed = ("id", "where", "paper", "here", "verdict", "note"), dict(outcome.changed)
    claims = [{name: getattr(j, name) for name in fields} | {"values": list(map(asdict, j.values))}
              for j in outcome.judgements]
    return {"schema": 1, "commit": flags.commit, "machine": machine, "runs": outcome.runs,
            "claims": claims,
            "series": [figure.series() for figure in outcome.figures],
            "sensitivity": changed.pop("sensitivity"), "not_built": not_built, **changed,
            "native": native, "scale": flags.scale, "seed": flags.seed, "plots": plots,
            **({"verified": verified} if verified else {}),
            **({"load_average": {"start": flags.load, "end": os.getloadavg()[0]}}
               if flags.host else {})}


def json_text(content):
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def check_directory(path):
    """The directory for plots, before anything runs for minutes. It is made when there is something
    to put into it."""
    there = os.path.abspath(path)
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise BadInput(f"--out: '{path}': {there} is not a directory "
                       "(expected a directory for plots)")
    try:
        os.rmdir(tempfile.mkdtemp(dir=there))
    except OSError:
        raise BadInput(f"--out: '{path}' cannot be written (expected a directory for plots)") from None


def make_directory(path):
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise OSError(error.errno, f"--out: '{path}' cannot be made: {error.strerror} "
                                   "(expected a directory for plots)") from None


def check_file(path):
    directory = os.path.dirname(os.path.abspath(path))
    target = path if os.path.exists(path) else directory
    if os.path.isdir(path) or not os.path.isdir(directory) or not os.access(target, os.W_OK):
        raise BadInput(f"--json: {path} cannot be written "
                       "(expected a file, or - for standard output)")
