"""Series of the data structures that have what the thesis says: made up, or its own figures where these are judged."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[n]) for n in (1, 3)]
from papers.schrimpf.repro import structures as sc  # noqa: E402
from papers.schrimpf.repro.runs import read_figure  # noqa: E402

THREADS = (1, 2, 3, 4)


def level(y, xs=(0,)):
    return [(x, y) for x in xs]


def counted(name, xs, transactional=30, aborted=5, rate=5):
    """What counters say of one lock; a number, or one for each x."""
    def points(value):
        return list(zip(xs, value if isinstance(value, tuple) else (value,) * len(xs)))
    return {name + sc.TRANSACTIONAL_CYCLES: points(transactional), name + sc.ABORTED_CYCLES: points(aborted),
            name + sc.ABORT_RATE: points(rate)}


def scaling(one):
    return [(n, n * one) for n in THREADS]


def list_series(rtm_at_0, plain=((0, 80), (50, 90), (100, 100))):
    xs = [x for x, _ in plain]
    return {"POSIX": [(x, y - 5) for x, y in plain], "TAS": list(plain), "HLE": [(0, 90), (50, 95), (100, 200)],
            "elision only": [(0, rtm_at_0), (50, 95), (100, 210)],
            **counted("HLE", xs, aborted=(64.61, 64.61, 0)), **counted("elision only", xs)}


FIGURES = {
    "S-3.9b": {"HLE nested mutexes": [(1, 0), (20, 94)], "workaround": [(1, 0), (20, 0)]},
    "S-3.12": {"POSIX": level(100), "TAS": level(95), "HLE": level(105), "elision only": level(110),
               **counted("HLE", (0,))},
    "S-3.13": {**read_figure("3.13"), **counted("elision only", THREADS, aborted=(0, 20, 30, 37))},
    "S-3.14": {name: level(height, THREADS) for name, height in (("POSIX", 20), ("TAS", 20), ("HLE", 30.2),
                                                                 ("elision only", 5))},
    "S-3.15": {"POSIX": scaling(45), "TAS": scaling(50), "HLE": scaling(50), "elision only": scaling(50)},
    "S-3.16": {"POSIX": level(40, THREADS), "TAS": level(45, THREADS), "HLE": scaling(49), "elision only": scaling(50)},
    "S-3.17": list_series(60),
    "S-3.18": {"POSIX": [(10, 100), (100, 442)], "TAS": [(1, 199 / 13), (10, 199), (100, 852)],
               "HLE": [(10, 230), (100, 1033)], "elision only": [(1, 237 / 33), (10, 237), (100, 1129)],
               **counted("HLE", (10, 100), (53.06, 30.58), (34.31, 6.72), (45.11, 15.02))},
    "S-3.19": {"POSIX": [(0, 100), (1, 30)], "TAS": [(0, 150), (1, 40)], "HLE": [(0, 200), (1, 150)],
               "elision only": [(0, 210), (1, 210)], **counted("HLE", (0, 1), (22.19, 25.9), (5.81, 53.56))},
    "S-C.10": {name: [(10, 1), (100, 2), (1000, 3), (10000, 4)] for name in ("POSIX", "TAS", "HLE", "elision only")},
    "S-D.1": {"cold cache": level(200), "warm cache": level(100)},
    "S-D.2": {"all elements, aborted": [(1, 100), (2, 100)], "one element, aborted": [(1, 100), (2, 100)]},
    "S-D.4": {"all elements": level(100), "one element": level(100)},
    "S-D.5": {**read_figure("D.5"), **counted("HLE", (0, 50, 100), aborted=(64.61, 64.61, 0))},
    "S-D.6": read_figure("D.6"),
}


def experiment(name):
    """None for what is no experiment of the structures."""
    figure = name.removesuffix(" turned")
    if figure not in FIGURES or figure == name:
        return FIGURES.get(name)
    return {f"{variant} | {series}": points for variant in ("nothing", "one thing", "another") for series, points in
            FIGURES[figure].items()}


def native(name):
    """As the native program answers, on a machine without transactions."""
    series = {n: p for n, p in FIGURES[name].items() if n in ("POSIX", "TAS")}
    return {"id": name, "native": "fake CPU", "cpus": 2, "htm": "it is a fake", "rounds": 5,
            "series": [{"name": n, "points": p} for n, p in series.items()]}
