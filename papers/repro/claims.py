"""The claims of the papers, and which of them an id means."""

import csv
import difflib
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
CLAIMS_FILE = ROOT / "papers" / "claims.csv"


class BadInput(Exception):
    """One line for the user; the exit status is 2."""


class Claim(NamedTuple):
    id: str
    where: str
    wording: str
    paper_value: str
    unit: str


def read_claims(file=CLAIMS_FILE):
    with open(file, encoding="utf-8", newline="") as lines:
        return {row["id"]: Claim(row["id"], f"paper {row['paper']}, {row['where']}", row["claim"],
                                 row["paper_value"], row["unit"]) for row in csv.DictReader(lines)}


def papers(known):
    """Their letters."""
    return list(dict.fromkeys(one.split("-")[0] for one in known))


def meant_by(wanted, known, shared=()):
    """The ids among `known` that one argument means, in their order; none for an unknown one.
    `shared`: figure -> the claim that it shares with another, which claims.csv calls "Fig
    2.5-2.6"."""
    if wanted == "all":
        return list(known)
    if wanted in papers(known):
        return [one for one in known if one.startswith(wanted + "-")]
    # A figure's claims are its id and a letter; E-F1 is no figure of E-F10a.
    meant = re.compile(re.escape(dict(shared).get(wanted, wanted)) + "[a-z]?")
    return [one for one in known if meant.fullmatch(one)]


def near_to(wanted, known, shared):
    """At most one id or figure."""
    upper = wanted.upper()
    if meant_by(upper, known, shared):
        return [upper]
    return difflib.get_close_matches(upper, known, 1)


def select(arguments, known, built, shared=()):
    """(ids to run, ids not built yet), each once and in the order of `known`. Refuses what cannot
    be run."""
    chosen = set()
    expected = ("expected a claim of papers/claims.csv such as E-F2a, a figure such as E-F2, a "
                f"paper ({', '.join(papers(known))}) or all")
    for wanted in (one for argument in arguments for one in argument.split(",")):
        meant = meant_by(wanted, known, shared)
        if not meant:
            raise BadInput(f"id: invalid value '{wanted}' ({expected})" +
                           "".join(f" Did you mean '{one}'?" for one in near_to(wanted, known, shared)))
        if not any(one in built for one in meant):
            raise BadInput(f"id: '{wanted}' is not built yet ({expected})")
        chosen.update(meant)
    return ([i for i in known if i in chosen and i in built],
            [i for i in known if i in chosen and i not in built])
