"""Paper 004 on data structures (section 3.3, appendices C.7 and D): bank, counters, list and map
under every lock.

"RTM" in them is elision only. The text gives the numbers; where the thesis's own figures contradict
a sentence, the figures are judged (S-3.13, S-D.5, S-D.6). Each test's wording was written down
before its figure was run, but for these three.
"""

import functools

from curves import at, rises
from panels import Figure, Panel, looks
from verdicts import (AGREES, DIFFERS, NEAR, Judgement, compared, number, of_gain, of_ratio,
                      of_shape, say, values, worst)

from .runs import ELISIONS, FAMILY, FIGURES, MACHINE, ROWS, claim, read_figure

PLAIN, REGIONS = ("POSIX", "TAS"), ("HLE", "elision only")
CORES = 4
ABORTED_CYCLES = ": aborted of transactional cycles, %"
ABORT_RATE = ": aborted transactions, %"
TRANSACTIONAL_CYCLES = ": transactional of all cycles, %"
CYCLES = "counts of lost cycles"  # which only the simulated machine counts
LOWEST, HIGHEST = ": lowest of the seeds", ": highest of the seeds"

# --- figures: throughputs to the left, aborted cycles to the right ---

# The same lock has the same colour in every figure.
LOOKS = looks((*PLAIN, *REGIONS, "ttas_lock", "elided<ttas_lock>"))
SHOWN = {"elision only": "elision only (RTM)",
         "elided<ttas_lock>": "elided<ttas_lock>\n(RTM, then the lock)"}
# What the thesis's text and tables have of aborted cycles, in %.
PAPER_WASTED = {"S-3.13": {"elision only": [(4, 37)]},
                "S-3.18": {"HLE": [(10, 34.31), (100, 6.72)]},
                "S-3.19": {"HLE": [(0, 5.81), (1, 53.56)]}, "S-D.5": {"HLE": [(50, 64.61)]}}
TITLES = {one: row for one, row in ROWS.items() if row["y"].startswith("operations per ms")}
FAMILY.native = tuple(TITLES)


def figure(one, runs):
    row, series = TITLES[one], runs.curves(one)
    throughputs = {name: points for name, points in series.items() if ": " not in name}
    reach = max(x for points in throughputs.values() for x, _ in points)
    paper = {name: [p for p in points if p[0] <= reach]
             for name, points in read_figure(one.removeprefix("S-")).items()}
    wasted = {name.removesuffix(ABORTED_CYCLES): points for name, points in series.items()
              if name.endswith(ABORTED_CYCLES)}
    form = {"kind": "groups" if row["form"] == "bars" else "lines", "overlapping": True,
            "x_scale": "log" if row["form"] == "log" else "linear",
            "names": dict(enumerate(row["places"].split("|"))) if not row["x"] else {}}
    return Figure(one, row["title"], [
        Panel("", row["x"], row["y"], here=throughputs, paper=paper,
              digitised=bool(paper) and form["kind"] == "lines", **form),
        Panel("", row["x"], "aborted of transactional cycles, in %", here=wasted,
              paper=PAPER_WASTED.get(one, {}), per_cent=True, **form)], 2, looks=LOOKS,
        machine=(MACHINE,), size=(6.25, 4.6), shown=SHOWN, data=(series, paper))


FIGURES |= {one: functools.partial(figure, one) for one in TITLES}


# --- claims ---

def heights(series, names, *xs):
    return [at(series[name], x) for name in names for x in xs]


def ratios(series, names, x, other):
    """Of the names' heights at one x over those at the other, in per cent."""
    return [100 * at(series[name], x) / at(series[name], other) for name in names]


def leads(series, x):
    """HLE and RTM over the better of POSIX and TAS."""
    return [height / max(heights(series, PLAIN, x)) for height in heights(series, REGIONS, x)]


def of_lead(ratio, most):
    """Ahead, and by no more than that; up to twice as much is near."""
    return (DIFFERS if ratio <= 1 else AGREES if ratio <= most else NEAR if ratio <= 2 * most
            else DIFFERS)


def reach_told(series, names, x, where):
    """How far a curve reaches there over the seeds, where the run says so."""
    reaches = [say("{} {} to {}", name, *heights(series, (name + LOWEST, name + HIGHEST), x))
               for name in names if name + LOWEST in series]
    return f"Over the seeds, {where}: {', '.join(reaches)} operations/ms." if reaches else ""


@claim("S-3.9b", where="section 3.2.4, listing 3.10", simulated=ELISIONS)
def nested_workaround(here, _):
    """With the thesis's workaround (listing 3.10) HLE locks held together abort no more: less than
    1 %, up to 20 locks."""
    with_it, without = (max(y for _, y in here[name])
                        for name in ("workaround", "HLE nested mutexes"))
    return Judgement("no nesting aborts", say("at most {} %, without it {} %", with_it, without),
                     of_shape(with_it < 1))


@claim("S-3.12", varied=True, by_prefix=True)
def bank(here, _):
    """Closed bank, 4 threads, 50/50: HTM slightly ahead of POSIX and TAS; money conserved. Ahead:
    HLE and RTM both above the better of the two; slightly: by no more than a half. A run that loses
    money fails, so that none is judged."""
    return Judgement("HLE and RTM slightly above POSIX and TAS; money conserved",
                     say("HLE {}, RTM {} times the better of POSIX and TAS; money conserved",
                         *leads(here, 0)), worst(of_lead(lead, 1.5) for lead in leads(here, 0)))


@claim("S-3.13", varied=True, simulated=CYCLES)
def one_counter(here, paper):
    """One shared counter: HTM no better; 37 % aborted cycles (RTM, 4 threads). The thesis's figure
    has the better of HLE and RTM behind the better of POSIX and TAS with one thread, ahead with
    two, and level with four: these ratios are judged."""
    threads = (1, 2, CORES)
    ahead, theirs = ([max(leads(series, n)) for n in threads] for series in (here, paper))
    aborted = at(here["elision only" + ABORTED_CYCLES], CORES)
    text = ("the better of HLE and RTM {} times the better of POSIX and TAS with 1, 2, 4 threads; "
            "{} % aborted cycles")
    return Judgement(say(text, theirs, 37), say(text, ahead, aborted),
                     worst([*map(of_ratio, ahead, theirs), of_ratio(aborted, 37)]),
                     values=values("x", ahead, theirs, [f"threads: {n}" for n in threads])
                     + values("%", [aborted], [37], ["aborted cycles"]))


def gains_of_alignment(figures):
    return [a / u for a, u in zip(*(heights(figures[f], (*REGIONS, "TAS"), CORES)
                                    for f in ("S-3.15", "S-3.14")))]


@claim("S-3.15", "S-3.14", "S-3.15", varied=True, shared=["S-3.14"], by_prefix=True)
def alignment(here, paper):
    """Aligning per-core counters: speedup about 10, and more with 4 threads than with 2. The
    thesis's figures have 6.6 times for HLE and 40 times for RTM with 4 threads: these are judged."""
    *gains, tas = gains_of_alignment(here)
    *theirs, _ = gains_of_alignment(paper)
    scales = all(at(here["S-3.15"][name], CORES) > at(here["S-3.15"][name], 2) for name in REGIONS)
    return Judgement(say("HLE {}, RTM {} times; scales", *theirs),
                     say("HLE {}, RTM {} times (TAS {}); {}", *gains, tas,
                         "scales" if scales else "does not scale"),
                     worst([of_shape(scales), *map(of_ratio, gains, theirs)]),
                     values=values("x", gains, theirs, REGIONS))


@claim("S-3.16", "S-3.15", "S-3.16", varied=True, by_prefix=True)
def global_lock(here, _):
    """Per-core counters under one global lock: HLE keeps nearly all, POSIX and TAS collapse. With 4
    threads, of the throughput with a lock for each counter: HLE at least 80 %, POSIX and TAS at
    most half."""
    kept = {name: 100 * at(here["S-3.16"][name], CORES) / at(here["S-3.15"][name], CORES)
            for name in ("HLE", *PLAIN)}
    return Judgement("HLE keeps nearly all, POSIX and TAS collapse",
                     ", ".join(f"{name} keeps {number(value)} %" for name, value in kept.items()),
                     of_shape(kept["HLE"] >= 80 and kept["POSIX"] <= 50 and kept["TAS"] <= 50),
                     reach_told(here["S-3.16"], ("HLE", "elided<ttas_lock>"), CORES,
                                "4 threads under the global lock"))


@claim("S-3.17", varied=True, by_prefix=True)
def list_reads(here, _):
    """Doubly linked list, 2 threads: HTM ahead read-only; RTM without fallback behind TAS
    update-only. Ahead: HLE and RTM both more than a quarter above the better of POSIX and TAS."""
    ahead = leads(here, 100)
    behind = at(here["elision only"], 0) / at(here["TAS"], 0)
    return Judgement("read-only HLE and RTM ahead; update-only RTM behind TAS",
                     say("read-only HLE {}, RTM {} times the better of POSIX and TAS; update-only "
                         "RTM {} times TAS", *ahead, behind),
                     of_shape(min(ahead) > 1.25 and behind < 1),
                     reach_told(here, ("TAS", "elision only"), 0, "update-only"))


SIZES = (10, 100)
BUCKETS = [f"buckets: {n}" for n in SIZES]


claim("S-3.18a", "S-3.18", varied=True, by_prefix=True)(lambda here, _: compared(
    [100 * (at(here["HLE"], n) / at(here["POSIX"], n) - 1) for n in SIZES], (130, 134), " % more",
    say("Table 3.4, 100 buckets over 10, POSIX, TAS, HLE, RTM: {} % (paper: 442; 427; 450; 476).",
        ratios(here, PLAIN + REGIONS, 100, 10)), names=BUCKETS))
claim("S-3.18b", "S-3.18", varied=True, simulated=ELISIONS)(lambda here, _: compared(
    heights(here, ["HLE" + ABORT_RATE], *SIZES), (45.11, 15.02), " %",
    say("Table 3.3, transactional and aborted cycles at 10 / 100 buckets: {} % (paper: 53.06; "
        "30.58; 34.31; 6.72).",
        heights(here, ("HLE" + TRANSACTIONAL_CYCLES, "HLE" + ABORTED_CYCLES), *SIZES)),
    said="45.11; 15.02 %", names=BUCKETS))
@claim("S-3.18c", "S-3.18", where="section 3.3.4", by_prefix=True)
def one_bucket(here, _):
    """With one bucket RTM falls by a factor of 33 and TAS by 13. The thesis does not say from where;
    from ten buckets is judged."""
    falls = [at(here[name], 10) / at(here[name], 1) for name in ("elision only", "TAS")]
    return compared(falls, (33, 13), " times", said="33; 13 times", names=("RTM", "TAS"))


claim("S-3.19", varied=True, simulated=ELISIONS)(lambda here, _: compared(
    heights(here, ["HLE" + ABORTED_CYCLES], 0, 1), (5.81, 53.56), " %",
    say("Transactional cycles: {} % (paper: 22.19; 25.9). Under the global lock POSIX, TAS, HLE, "
        "RTM keep {} %.", heights(here, ["HLE" + TRANSACTIONAL_CYCLES], 0, 1),
        ratios(here, PLAIN + REGIONS, 1, 0)), said="5.81; 53.56 %",
    names=("bucket locks", "one lock")))


@claim("S-C.10", where="appendix C.7", by_prefix=True)
def map_sizes(here, _):
    """Globally locked map, 4 threads: more buckets lead to a better throughput (thesis, section
    3.3.4), under every lock."""
    speeds = [[y for _, y in here[name]] for name in PLAIN + REGIONS]
    return Judgement("rises with the buckets",
                     say("10,000 buckets over 10, POSIX, TAS, HLE, RTM: {} times",
                         [ys[-1] / ys[0] for ys in speeds]), of_shape(all(map(rises, speeds))))


@claim("S-D.1", where="appendix D.1")
def cold_cache(here, _):
    """Writing an array of 1 KB takes about 100 cycles more on a cold cache than on a warm one."""
    cold, warm = heights(here, ("cold cache", "warm cache"), 0)
    return compared([cold - warm], [100], " cycles more", said="about 100 cycles more")


@claim("S-D.4", "S-D.2", "S-D.4", where="appendix D.1", shared=["S-D.2", "S-D.3"])
def after_an_abort(here, _):
    """After an abort, writing all of an array takes as many cycles as writing one element as often:
    within 25 %."""
    everything, one = heights(here["S-D.4"], ("all elements", "one element"), 0)
    return Judgement("the same number of cycles", say("{} and {} cycles", everything, one),
                     of_ratio(everything, one))


@claim("S-D.5", where="appendix D.2", simulated=ELISIONS)
def unaligned_list(here, paper):
    """Unaligned list, 4 threads, TAS: the more reads instead of writes, the better; and HLE aborts
    a lot (table D.1: 64.61 % of transactional cycles). In the thesis's figure TAS is slowest with
    half reads: its throughputs over that of updates only are judged, and HLE's aborted cycles with
    half reads."""
    gains, theirs = ([at(series["TAS"], x) / at(series["TAS"], 0) for x in (50, 100)]
                     for series in (here, paper))
    aborted = at(here["HLE" + ABORTED_CYCLES], 50)
    text = ("TAS with 50 and 100 % reads {} times as fast as with updates only; HLE {} % aborted "
            "cycles")
    return Judgement(say(text, theirs, 64.61), say(text, gains, aborted),
                     worst([*map(of_ratio, gains, theirs), of_ratio(aborted, 64.61)]),
                     values=values("x", gains, theirs, ("50 % reads", "100 % reads"))
                     + values("%", [aborted], [64.61], ["HLE, aborted cycles"]))


@claim("S-D.6", "S-D.5", "S-D.6", where="appendix D.2")
def aligned_list(here, paper):
    """Aligned items make update-only RTM three times as fast on the list with 4 threads, and the
    rest not nearly as much. In the thesis's figures update-only RTM is slower, and reads gain:
    these ratios are judged."""
    def speeds(series, one):
        return heights(series[one], ["elision only"], 0, 50, 100)

    gains, theirs = ([aligned / not_so for aligned, not_so in zip(speeds(series, "S-D.6"),
                                                                  speeds(series, "S-D.5"))]
                     for series in (here, paper))
    text = "RTM with 0, 50 and 100 % reads {} times as fast"
    return Judgement(say(text, theirs), say(text, gains), worst(map(of_gain, gains, theirs)),
                     values=values("x", gains, theirs, ("0 % reads", "50 %", "100 %")))
