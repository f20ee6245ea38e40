"""Machine files as data: the values, and which of them were taken from one of the thesis's figures."""

import re

from claims import ROOT, BadInput

MACHINES = ROOT / "machine" / "machines"
THESIS_MACHINE = MACHINES / "haswell-i5-4670t.machine"  # of paper 004
EUNOMIA_MACHINE = MACHINES / "haswell-ep-2x10.machine"  # of paper 003
KARNAGEL_MACHINE = MACHINES / "haswell-i7-4770.machine"  # of paper 001
PARAMETER = re.compile(r"(\w+)\s*=\s*(\d+)\s*--\s*(.*)")


def parameters(file):
    """name -> (value, source)"""
    try:
        with open(file, encoding="utf-8") as lines:
            found = [PARAMETER.match(line) for line in lines]
    except OSError as error:
        raise BadInput(f"--machine: {file}: {error.strerror}") from None
    return {m[1]: (int(m[2]), m[3]) for m in found if m}


def values(file):
    return {name: value for name, (value, _) in parameters(file).items()}


def calibrated_from(file, figure):
    """The parameters that the machine file takes from the thesis's figure: agreement there is no evidence."""
    source = re.compile(r"(^|; |calibrated from )thesis figure " + re.escape(figure) + r"(?![.\d])")
    return [name for name, (_, said) in parameters(file).items() if source.search(said)]
