"""The claims of paper 003 on the simulated machine: which there are, which of them this build can run.

By subject: eunomia_skew.py (figures 2, 3, 10 to 13), eunomia_threads.py (14, 15), eunomia_steps.py (16, 17),
eunomia_memory.py (section 6.5) and eunomia_tpcc.py (18). What they ask for is eunomia_runs.py's, how it is drawn eunomia_figures.py's.
"""

import eunomia_memory
import eunomia_skew
import eunomia_steps
import eunomia_threads
import eunomia_tpcc

TESTS = {**eunomia_skew.TESTS, **eunomia_threads.TESTS, **eunomia_steps.TESTS, **eunomia_tpcc.TESTS,
         **eunomia_memory.TESTS}


def lacking(ids, known):
    """id -> the indexes that it needs and this build lacks."""
    needed = {i: dict.fromkeys(p.index for p in TESTS[i].points) for i in ids if i in TESTS}
    return {i: missing for i, indexes in needed.items() if (missing := [x for x in indexes if x not in known])}
