"""Machine files as data: the values, and where each comes from."""

import functools
import re

from claims import ROOT, BadInput

MACHINES = ROOT / "machine" / "machines"
PARAMETER = re.compile(r"(\w+)\s*=\s*(\d+)\s*--\s*(.*)")


@functools.cache
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
