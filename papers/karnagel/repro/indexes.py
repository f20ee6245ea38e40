"""Paper 001 on the Delta Storage Index and the B+tree under their locks: figures 3 to 6, 9 and
10."""

import math

import scales
from panels import COLOURS, TEXT_ALONE, figure, lines, looks
from verdicts import (AGREES_RATIO, DIFFERS, Judgement, compared, conflicts_by_place, numbers,
                      of_shape, say, shares_told)

from .runs import (BTREE, BTREE_RTM, DELTA, DELTA_RTM, FAMILY, INSERTS, KEYS, SOCKET, SOCKETS,
                   TUNED_RTM, at, by_inserts, by_threads, inserts_of)

MIXES = (0, 5, 20, 100)  # figures 3a and 4a
ONE_SOCKET = (1, 2, 4, 8)
TWO_SOCKETS = (1, 2, 4, 8, 16, 32)  # 32: two hardware threads on each core
NEVER_BELOW = 0.95  # "at or above": what runs of different seeds differ by
FAR_ABOVE = 2
DELTA_RW, BTREE_RW, BTREE_FREE = DELTA + "/rw", BTREE + "/rw", BTREE + "/none"
F5_LOCKS = [f"{BTREE}/{lock}" for lock in ("rw", "spin", "rtm", "hle")]
F6_LOCKS = [f"{DELTA}/{lock}" for lock in ("rw", "spin", "rtm", "rtm-noretry", "hle")]
F9_LOCKS = [*F6_LOCKS[:3], TUNED_RTM]

# --- figures: the paper's curves are not digitised ---

LABELS = {
    "rw": "RW lock", "spin": "spin lock", "none": "no lock", "rtm": "TSX-R",
    "rtm-noretry": "TSX-R, no retries", "hle": "TSX-H", TUNED_RTM: "TSX-R, elision-friendly"
}
MIX_LABELS = [f"RW lock, {i} %" for i in MIXES]
LOOKS = looks(LABELS.values()) | dict(zip(MIX_LABELS, zip(COLOURS[3:], "^vPX")))


def by_label(indexes, points_of):
    return {LABELS.get(index) or LABELS[index.split("/")[1]]: points_of(index)
            for index in indexes}


def over_inserts(title, indexes, threads, machine=SOCKET):
    """The paper's form: relative to the spin lock without inserts."""
    at_rest = at(indexes[0].split("/")[0] + "/spin", 0, threads, machine)
    series = by_label(indexes, lambda index: by_inserts(index, threads, machine))

    def made(runs):
        over = runs[at_rest].mops if at_rest in runs else 0
        return lines(title, "inserts in % (log scale above 1)", "speed over the spin lock's at 0 %",
                     series if over else {}, inserts_of, of=lambda y: y / over,
                     x_scale="symlog")(runs)
    return made


def over_threads(title, series):
    return lines(title, "threads", "Mops/s", series, lambda p: p.threads)


def drawn(one, title, panels, machine=SOCKET):
    return figure(one, title, panels, len(panels), looks=LOOKS, machine=(machine,),
                  lacking=TEXT_ALONE, said=lambda r: (
        f"simulated machine {{machine}}, {KEYS[scales.lengths(r.flags.scale)] // 1_000_000} M values, {{scale}}"))


class OnSockets:
    """Figure 3, or 4, and its runs."""

    def __init__(self, one, title, index):
        rw, spin, none = (f"{index}/{lock}" for lock in ("rw", "spin", "none"))
        by_mix = {name: by_threads(rw, i, ONE_SOCKET, SOCKETS)
                  for name, i in zip(MIX_LABELS, MIXES)}
        reading = by_label((rw, spin, none), lambda i: by_threads(i, 0, TWO_SOCKETS, SOCKETS))
        self.figure = drawn(one, title, [
            over_threads("one socket, by inserts", by_mix),
            over_inserts("8 threads", (rw, spin), 8, SOCKETS),
            over_threads("look-ups only, two sockets", reading)], SOCKETS)
        self.points = [*sum(by_mix.values(), []),
                       *(p for i in (rw, spin) for p in by_inserts(i, 8, SOCKETS)),
                       *sum(reading.values(), [])]


def elided(one, title, indexes):
    return drawn(one, title, [over_inserts(f"{n} threads", indexes, n) for n in (4, 8)])


FIGURE_3 = OnSockets("K-F3", "Delta index under locks", DELTA)
FIGURE_4 = OnSockets("K-F4", "B+tree under locks", BTREE)
FIGURE_5 = elided("K-F5", "B+tree with lock elision", F5_LOCKS)
FIGURE_6 = elided("K-F6", "Delta index with lock elision", F6_LOCKS)
FIGURE_9 = elided("K-F9", "Elision-friendly delta index", F9_LOCKS)
FIGURE_10 = drawn("K-F10", "The elision-friendly index by threads", [
    over_threads(f"{i} % inserts", by_label((DELTA_RW, TUNED_RTM), lambda index, i=i: by_threads(
        index, i, ONE_SOCKET))) for i in (0, 100)])


# --- claims ---

def over(runs, first, second, inserts, threads=8, machine=SOCKET):
    """How many times as fast the first index is."""
    return runs.ratio(*(at(i, inserts, threads, machine) for i in (first, second)))


def gain(runs, index, more, fewer):
    """How many times as fast with more threads, reading only, on two sockets."""
    return runs.ratio(*(at(index, 0, n, SOCKETS) for n in (more, fewer)))


@FAMILY.claim("K-F3", FIGURE_3.points, FIGURE_3.figure)
def read_write_lock(runs):
    """Figure 3. At 100 % inserts within 25 % of the spin lock; at 0 % within 25 % of eight times as
    fast with eight threads; from 8 to 16 it gains less than 1 / 1.25 of what no lock gains, and
    that is within 25 % of twice."""
    falls = over(runs, DELTA_RW, DELTA + "/spin", 100, machine=SOCKETS)
    eight, across = gain(runs, DELTA_RW, 8, 1), gain(runs, DELTA_RW, 16, 8)
    free = gain(runs, DELTA + "/none", 16, 8)
    # what -> (the value, its lowest, its highest)
    wanted = {"falls to the spin lock": (falls, 1 / AGREES_RATIO, AGREES_RATIO),
              "scales to 8": (eight, 8 / AGREES_RATIO, math.inf),
              "drops across sockets": (across, 0, math.nextafter(free / AGREES_RATIO, 0)),
              "no lock scales": (free, 2 / AGREES_RATIO, math.inf)}
    failed = [outside(what, *bounds) for what, bounds in wanted.items()
              if not bounds[1] <= bounds[0] <= bounds[2]]
    return Judgement("; ".join(wanted),
                     say("{} of the spin lock at 100 %; {} x with 8 threads; from 8 to 16 {} x, "
                         "without lock {} x", falls, eight, across, free),
                     of_shape(not failed), f"Not so: {', '.join(failed)}." if failed else "")


def outside(what, value, low, high):
    """How far a value is outside of its bounds."""
    bound, side = (low, "below") if value < low else (high, "above")
    return say("{} ({} % {} its bound {})", what, 100 * abs(value / bound - 1), side, bound)


@FAMILY.claim("K-F4", [*FIGURE_4.points, *by_threads(DELTA_RW, 0, TWO_SOCKETS, SOCKETS)],
              FIGURE_4.figure)
def smaller_section(runs):
    """Figure 4: reading only, from 1 to 8 and to 16 threads the RW lock gains less over the B+tree
    than over the delta index."""
    tree, delta = ([gain(runs, i, n, 1) for n in (8, 16)] for i in (BTREE_RW, DELTA_RW))
    return Judgement("the B+tree scales worse",
                     say("8 threads {} x, delta index {} x; 16 threads {} x, {} x", tree[0],
                         delta[0], tree[1], delta[1]),
                     of_shape(all(a < b for a, b in zip(tree, delta))))


def each(indexes, *threads):
    return [p for n in threads for index in indexes for p in by_inserts(index, n)]


@FAMILY.claim("K-F5a", each(F5_LOCKS, 4, 8), FIGURE_5)
def elided_tree(runs):
    ratios = {(threads, i): over(runs, BTREE_RTM, BTREE_RW, i, threads)
              for threads in (4, 8) for i in INSERTS}
    (threads, inserts), least = min(ratios.items(), key=lambda r: r[1])
    return Judgement("at or above everywhere",
                     say("least {} x (at {} %, {} threads), most {} x", least, inserts, threads,
                         max(ratios.values())), of_shape(least >= NEVER_BELOW))


@FAMILY.claim("K-F5b", [at(i, 0, n) for i in (BTREE_FREE, BTREE_RTM) for n in (4, 8)], FIGURE_5,
              turned=[at(BTREE_FREE, 0), at(BTREE_RTM, 0)])
def close_to_free(runs):
    """Figure 5: RTM close to no concurrency control: within 25 %, where that is safe to run,
    without inserts."""
    ratios = [over(runs, BTREE_FREE, BTREE_RTM, 0, n) for n in (4, 8)]
    return Judgement("close", f"{numbers(ratios)} x as fast without (4; 8 threads)",
                     of_shape(max(ratios) <= AGREES_RATIO),
                     "Without concurrency control only look-ups are correct, so only they are "
                     "compared.")


READING, ORIGINAL, FRIENDLY = at(DELTA_RTM, 0), at(DELTA_RTM, 100), at(TUNED_RTM, 100)
FOUR = [at(index, 100, 4) for index in (DELTA_RTM, TUNED_RTM)]
F6B, F9B = each(F6_LOCKS, 8), each(F9_LOCKS, 8)


@FAMILY.claim("K-F6a", F6B, FIGURE_6, turned=[READING])
def original_reads(runs):
    run = runs[READING]
    made = compared([run.fallback_pct], [2.5], " %")
    if runs.tell("lines_per_commit"):
        made.note = say("A look-up touches {} lines here, 93 in the paper.", run.lines_per_commit)
    if made.verdict == DIFFERS and run.fallback_pct < 2.5:
        made.note += runs.of_machine(" The machine's transactions may read more than the L1 holds "
                                     "(paper section 3.2): look-ups hardly abort.")
    return made


def places(run):
    """Where transactions met, in words; nothing of real threads, which do not tell."""
    if "conflicts" not in run:
        return ""
    counts = dict(sorted(conflicts_by_place(run).items(), reverse=True))
    told = shares_told(counts, 3, "{:.0f}".format, "{share} % on the {name}", "there were none")
    return f"Of the conflicts {told}. "


FAMILY.claim("K-F6b", F6B, FIGURE_6, turned=[ORIGINAL], judge=lambda runs: compared(
    [runs[ORIGINAL].fallback_pct], [75], " %",
    f"{places(runs[ORIGINAL])}How often TSX-R tries again, which the paper does not say, decides: "
    "see the sensitivity."))
FAMILY.claim("K-F9a", each(F9_LOCKS, 4), FIGURE_9, turned=FOUR, judge=lambda runs: compared(
    runs.values(FOUR, "fallback_pct"), (3.6, 1.7), " %", names=("before", "after")))
FAMILY.claim("K-F9b", F9B, FIGURE_9, turned=[FRIENDLY], judge=lambda runs: compared(
    [runs[FRIENDLY].fallback_pct], [1.3], " %", places(runs[FRIENDLY]) + say(
        "Before the transformations {} % took the lock.", runs[ORIGINAL].fallback_pct)))


def crossing(ratios):
    """Where a curve of (x, ratio) first comes to 1, straight lines between its points; its end if
    nowhere."""
    before = None
    for x, ratio in ratios:
        if ratio >= 1 and before:
            return before[0] + (x - before[0]) * (1 - before[1]) / (ratio - before[1])
        if ratio >= 1:
            return x
        before = (x, ratio)
    return ratios[-1][0]


@FAMILY.claim("K-F6c", F6B, FIGURE_6)
def break_even(runs):
    ratios = [(i, over(runs, DELTA_RTM, DELTA_RW, i)) for i in INSERTS]
    told = "; ".join(say("{} at {} %", r, i) for i, r in ratios)
    return compared([crossing(ratios)], [2], " %", f"RTM over RW lock: {told}. In the paper, RTM must "
                    "first make up for look-ups that abort for capacity.")


@FAMILY.claim("K-F9c", [*F9B, *(at(i, 100, 4) for i in (TUNED_RTM, DELTA_RW))], FIGURE_9,
              turned=[FRIENDLY, at(DELTA_RW, 100)])
def speed_up(runs):
    eight, four = (over(runs, TUNED_RTM, DELTA_RW, 100, n) for n in (8, 4))
    return compared([eight], [4.6], " x", say("With 4 threads {} x.", four))


@FAMILY.claim("K-F10", [p for index in (DELTA_RW, TUNED_RTM) for i in (0, 100)
                        for p in by_threads(index, i, ONE_SOCKET)], FIGURE_10,
              turned=[at(TUNED_RTM, 0), at(DELTA_RW, 0)])
def scaling(runs):
    """Figure 10: RTM slightly below the RW lock at 0 % inserts (by no more than 25 %), more than
    twice as fast at 100 %, and at both more than a quarter faster with 8 threads than with 4."""
    read, write = (over(runs, TUNED_RTM, DELTA_RW, i) for i in (0, 100))
    grows = runs.ratios(*([at(TUNED_RTM, i, n) for i in (0, 100)] for n in (8, 4)))
    holds = (1 / AGREES_RATIO <= read <= 1 and write > FAR_ABOVE and min(grows) > AGREES_RATIO)
    return Judgement("slightly below at 0 %; far above at 100 %; scales from 4 to 8",
                     say("{} x; {} x; {} x", read, write, grows), of_shape(holds),
                     "The RW lock protects the original index, as in the paper's figure 9.")
