"""The figures of paper 001 as data: panels of series, ours beside the points that the paper's text names (its curves are
not digitised). A series is drawn when all of its points were run."""

import karnagel_claims as claims
from karnagel_runs import BTREE, DELTA, SOCKETS, TUNED, by_inserts, by_threads
from panels import Figure, Panel, with_something

LABELS = {
    "rw": "RW lock", "spin": "spin lock", "none": "no lock", "rtm": "TSX-R", "rtm-noretry": "TSX-R, no retries",
    "hle": "TSX-H", TUNED + "/rtm": "TSX-R, elision-friendly"
}
MIX_LABELS = [f"RW lock, {i} %" for i in claims.MIXES]
MOPS, INSERTED, THREADS = "Mops/s", "inserts in %", "threads"
NORMAL = "speed over the spin lock's at 0 %"
MORE = {"machine": str(SOCKETS)}


def label(index):
    return LABELS.get(index) or LABELS[index.split("/")[1]]


def line(runs, points, x_of, over=1.0):
    """[points], or nothing where one was not run."""
    if any(p not in runs for p in points):
        return []
    return [(x_of(p), *(runs[p][m] / over for m in ("mops", "mops_min", "mops_max"))) for p in points]


def over_inserts(runs, indexes, threads, **more):
    """The paper's form: relative to the spin lock without inserts."""
    at_rest = by_inserts(indexes[0].split("/")[0] + "/spin", threads, (0,), **more)[0]
    if at_rest not in runs:
        return {}
    return {label(index): line(runs, by_inserts(index, threads, **more), lambda p: p.inserts, runs[at_rest]["mops"])
            for index in indexes}


def sockets(figure, title, index):
    def made(runs):
        mixes = {name: line(runs, by_threads(index + "/rw", i, claims.ONE_SOCKET, **MORE), lambda p: p.threads)
                 for name, i in zip(MIX_LABELS, claims.MIXES)}
        across = {label(f"{index}/{lock}"): line(runs, by_threads(f"{index}/{lock}", 0, claims.TWO_SOCKETS, **MORE),
                                                 lambda p: p.threads) for lock in ("rw", "spin", "none")}
        return Figure(figure, title, [
            Panel("one socket, by inserts", THREADS, MOPS, "lines", mixes),
            Panel("8 threads", INSERTED, NORMAL, "lines",
                  over_inserts(runs, [f"{index}/{lock}" for lock in ("rw", "spin")], 8, **MORE), even=True),
            Panel("look-ups only, two sockets", THREADS, MOPS, "lines", across)], 3)
    return made


def elided(figure, title, indexes, footnote=""):
    def made(runs):
        return Figure(figure, title, [
            Panel(f"{n} threads", INSERTED, NORMAL, "lines", over_inserts(runs, indexes, n), even=True)
            for n in (4, 8)], 2, footnote)
    return made


def figure_10(runs):
    return Figure("K-F10", "The elision-friendly index by threads", [
        Panel(f"{i} % inserts", THREADS, MOPS, "lines", {
            label(index): line(runs, by_threads(index, i, claims.ONE_SOCKET), lambda p: p.threads)
            for index in (DELTA + "/rw", TUNED + "/rtm")}) for i in (0, 100)], 2)


FIGURES = {
    "K-F3": sockets("K-F3", "Delta index under locks", DELTA),
    "K-F4": sockets("K-F4", "B+tree under locks", BTREE),
    "K-F5": elided("K-F5", "B+tree with lock elision", [f"{BTREE}/{lock}" for lock in claims.ALL_BUT["F5"]]),
    "K-F6": elided("K-F6", "Delta index with lock elision", [f"{DELTA}/{lock}" for lock in claims.ALL_BUT["F6"]]),
    "K-F9": elided("K-F9", "Elision-friendly delta index", [DELTA + "/rw", DELTA + "/spin", DELTA + "/rtm",
                                                           TUNED + "/rtm"]),
    "K-F10": figure_10,
}


def drawn(ids, runs):
    """The figures of the claims, without panels that have nothing in them."""
    wanted = dict.fromkeys(i if i in FIGURES else i.rstrip("abc") for i in ids)
    return with_something([FIGURES[f](runs) for f in wanted if f in FIGURES])
