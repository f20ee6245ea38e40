"""Paper 004 on data structures (section 3.3, appendices C.7 and D): bank, counters, list and map
under every lock.

None of these figures is digitised: the text gives the numbers. "RTM" in them is elision only. Each
test's wording was written down before its figure was run.
"""

import functools

from curves import at, mean, rises
from panels import Figure, Panel, looks
from verdicts import (AGREES, DIFFERS, NEAR, Judgement, compared, number, numbers, of_ratio,
                      of_shape, worst)

from .runs import FAMILY, FIGURES, MACHINE, ROWS, claim

PLAIN, REGIONS = ("POSIX", "TAS"), ("HLE", "elision only")
CORES = 4
ABORTED_CYCLES = ": aborted of transactional cycles, %"
ABORT_RATE = ": aborted transactions, %"
TRANSACTIONAL_CYCLES = ": transactional of all cycles, %"
LOWEST, HIGHEST = ": lowest of the seeds", ": highest of the seeds"

# --- figures: throughputs to the left, aborted cycles to the right ---

# The same lock has the same colour in every figure.
LOOKS = looks((*PLAIN, *REGIONS, "ttas_lock", "elided<ttas_lock>"))
SHOWN = {"elision only": "elision only (RTM)",
         "elided<ttas_lock>": "elided<ttas_lock>\n(RTM, then the lock)"}
TITLES = {one: row for one, row in ROWS.items() if row["y"].startswith("operations per ms")}
FAMILY.native = tuple(TITLES)


def throughputs(series):
    """Without what counters of transactions say."""
    return {name: points for name, points in series.items() if ": " not in name}


def figure(one, runs):
    row, series = TITLES[one], runs.curves(one)
    wasted = {name.removesuffix(ABORTED_CYCLES): points for name, points in series.items()
              if name.endswith(ABORTED_CYCLES)}
    form = {"kind": "groups" if row["form"] == "bars" else "lines", "overlapping": True,
            "x_scale": "log" if row["form"] == "log" else "linear",
            "names": dict(enumerate(row["places"].split("|"))) if not row["x"] else {}}
    return Figure(one, row["title"], [
        Panel("", row["x"], row["y"], here=throughputs(series), **form),
        Panel("", row["x"], "aborted of transactional cycles, in %", here=wasted, per_cent=True,
              **form)], 2, looks=LOOKS, machine=(MACHINE,), size=(6.25, 4.6), shown=SHOWN,
                  data=(series, {}))


FIGURES |= {one: functools.partial(figure, one) for one in TITLES}


# --- claims ---

def heights(series, names, x):
    return [at(series[name], x) for name in names]


def best(series, names, x):
    return max(heights(series, names, x))


def of_lead(ratio, most):
    """Ahead, and by no more than that; up to twice as much is near."""
    return (DIFFERS if ratio <= 1 else AGREES if ratio <= most else NEAR if ratio <= 2 * most
            else DIFFERS)


def reach_told(series, names, x, where):
    """How far a curve reaches there over the seeds, where the run says so."""
    ends = {name: [number(at(series[name + end], x)) for end in (LOWEST, HIGHEST)]
            for name in names if name + LOWEST in series}
    reaches = [f"{name} {lowest} to {highest}" for name, (lowest, highest) in ends.items()]
    return f"Over the seeds, {where}: {', '.join(reaches)} operations/ms." if reaches else ""


@claim("S-3.9b", "S-3.9b", claimed=False, where="section 3.2.4, listing 3.10")
def nested_workaround(here, paper):
    """With the thesis's workaround (listing 3.10) HLE locks held together abort no more: less than
    1 %, up to 20 locks."""
    highest = {name: max(y for _, y in points) for name, points in here["S-3.9b"].items()}
    return Judgement("no nesting aborts", f"at most {number(highest['workaround'])} %, without it "
                     f"{number(highest['HLE nested mutexes'])} "
                     "%", of_shape(highest["workaround"] < 1))


@claim("S-3.12", "S-3.12", varied=True)
def bank(here, paper):
    """Closed bank, 4 threads, 50/50: HTM slightly ahead of POSIX and TAS; money conserved. Ahead:
    HLE and RTM both above the better of the two; slightly: by no more than a half. A run that loses
    money fails, so that none is judged."""
    ours = here["S-3.12"]
    leads = [height / best(ours, PLAIN, 0) for height in heights(ours, REGIONS, 0)]
    return Judgement("HLE and RTM slightly above POSIX and TAS; money conserved",
                     f"HLE {number(leads[0])}, RTM {number(leads[1])} times the better of POSIX "
                     "and TAS; money conserved", worst(of_lead(lead, 1.5) for lead in leads))


@claim("S-3.13", "S-3.13", varied=True)
def one_counter(here, paper):
    """One shared counter: HTM no better; 37 % aborted cycles (RTM, 4 threads). No better: with 1 to
    4 threads HLE and RTM at most a quarter above the better of POSIX and TAS."""
    ours = here["S-3.13"]
    leads = [best(ours, REGIONS, n) / best(ours, PLAIN, n) for n in range(1, CORES + 1)]
    aborted = at(ours["elision only" + ABORTED_CYCLES], CORES)
    return Judgement("HLE and RTM no better than POSIX and TAS; 37 % aborted cycles",
                     f"the better of HLE and RTM {numbers(leads)} times the better of POSIX and "
                     f"TAS with 1, 2, 3, 4 threads; {number(aborted)} % aborted cycles",
                     worst([of_shape(max(leads) <= 1.25), of_ratio(aborted, 37)]))


@claim("S-3.15", "S-3.14", "S-3.15", varied=True, shared=["S-3.14"])
def alignment(here, paper):
    """Aligning per-core counters: speedup about 10 (HLE and RTM, 4 threads), and more with 4
    threads than with 2."""
    *gains, tas = (a / u for a, u in zip(*(heights(here[f], (*REGIONS, "TAS"), CORES)
                                           for f in ("S-3.15", "S-3.14"))))
    scales = all(at(here["S-3.15"][name], CORES) > at(here["S-3.15"][name], 2) for name in REGIONS)
    return Judgement("about 10 times, and scales",
                     f"HLE {number(gains[0])}, RTM {number(gains[1])} times (TAS {number(tas)}); "
                     + ("scales" if scales else "does not scale"),
                     worst([of_shape(scales), *(of_ratio(gain, 10) for gain in gains)]))


@claim("S-3.16", "S-3.15", "S-3.16", varied=True)
def global_lock(here, paper):
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


@claim("S-3.17", "S-3.17", varied=True)
def list_reads(here, paper):
    """Doubly linked list, 2 threads: HTM ahead read-only; RTM without fallback behind TAS
    update-only. Ahead: HLE and RTM both more than a quarter above the better of POSIX and TAS."""
    ours = here["S-3.17"]
    leads = [height / best(ours, PLAIN, 100) for height in heights(ours, REGIONS, 100)]
    behind = at(ours["elision only"], 0) / at(ours["TAS"], 0)
    return Judgement("read-only HLE and RTM ahead; update-only RTM behind TAS",
                     f"read-only HLE {number(leads[0])}, RTM {number(leads[1])} times the better "
                     f"of POSIX and TAS; update-only RTM {number(behind)} times TAS",
                     of_shape(min(leads) > 1.25 and behind < 1),
                     reach_told(ours, ("TAS", "elision only"), 0, "update-only"))


SIZES = (10, 100)


@claim("S-3.18a", "S-3.18", varied=True)
def map_gain(here, paper):
    """Bucket-locked hashmap, 4 threads: HLE over POSIX at 10 / 100 buckets: 130 / 134 % more, each
    within 25 %."""
    ours = here["S-3.18"]
    gains = [100 * (at(ours["HLE"], n) / at(ours["POSIX"], n) - 1) for n in SIZES]
    more = [100 * at(ours[name], SIZES[1]) / at(ours[name], SIZES[0])
            for name in (*PLAIN, *REGIONS)]
    return compared(gains, (130, 134), " % more", "Table 3.4, 100 buckets over 10, POSIX, TAS, "
                    f"HLE, RTM: {numbers(more)} % (paper: 442; 427; 450; 476).")


def counted(series, kind, xs):
    """What HLE's counters say."""
    return [at(series["HLE" + kind], x) for x in xs]


@claim("S-3.18b", "S-3.18", varied=True)
def map_aborts(here, paper):
    """HLE transaction abort rate at 10 / 100 buckets: 45.11 / 15.02 %, each within 25 %."""
    ours = here["S-3.18"]
    cycles = [*counted(ours, TRANSACTIONAL_CYCLES, SIZES), *counted(ours, ABORTED_CYCLES, SIZES)]
    return compared(counted(ours, ABORT_RATE, SIZES), (45.11, 15.02), " %", "Table 3.3, "
                    f"transactional and aborted cycles at 10 / 100 buckets: {numbers(cycles)} % "
                    "(paper: 53.06; 30.58; 34.31; 6.72).", said="45.11; 15.02 %")


@claim("S-3.19", "S-3.19", varied=True)
def map_global(here, paper):
    """1000 buckets, aborted cycles (of transactional): per-bucket lock 5.81 / global lock 53.56 %,
    each within 25 %."""
    ours = here["S-3.19"]
    kept = [100 * at(ours[name], 1) / at(ours[name], 0) for name in (*PLAIN, *REGIONS)]
    return compared(counted(ours, ABORTED_CYCLES, (0, 1)), (5.81, 53.56), " %", "Transactional "
                    f"cycles: {numbers(counted(ours, TRANSACTIONAL_CYCLES, (0, 1)))} % (paper: "
                    "22.19; 25.9). Under the global lock POSIX, TAS, HLE, RTM keep "
                    f"{numbers(kept)} %.", said="5.81; 53.56 %")


@claim("S-C.10", "S-C.10", claimed=False, where="appendix C.7")
def map_sizes(here, paper):
    """Globally locked map, 4 threads: more buckets lead to a better throughput (thesis, section
    3.3.4), under every lock."""
    speeds = [[y for _, y in here["S-C.10"][name]] for name in (*PLAIN, *REGIONS)]
    return Judgement("figure not digitised; rises with the buckets",
                     "10,000 buckets over 10, POSIX, TAS, HLE, RTM: "
                     f"{numbers(ys[-1] / ys[0] for ys in speeds)} times",
                     of_shape(all(map(rises, speeds))))


@claim("S-D.1", "S-D.1", claimed=False, where="appendix D.1")
def cold_cache(here, paper):
    """Writing an array of 1 KB takes about 100 cycles more on a cold cache than on a warm one."""
    cold, warm = (at(here["S-D.1"][name], 0) for name in ("cold cache", "warm cache"))
    return compared([cold - warm], [100], " cycles more", said="about 100 cycles more")


@claim("S-D.4", "S-D.2", "S-D.4", claimed=False, where="appendix D.1", shared=["S-D.2", "S-D.3"])
def after_an_abort(here, paper):
    """After an abort, writing all of an array takes as many cycles as writing one element as often:
    within 25 %."""
    everything, one = (at(here["S-D.4"][name], 0) for name in ("all elements", "one element"))
    return Judgement("the same number of cycles", f"{number(everything)} and {number(one)} cycles",
                     of_ratio(everything, one))


@claim("S-D.5", "S-D.5", claimed=False, where="appendix D.2")
def unaligned_list(here, paper):
    """Unaligned list, 4 threads, TAS: the more reads instead of writes, the better; and HLE aborts
    a lot (table D.1: 64.61 % of transactional cycles; more than half with 50 % reads)."""
    tas = [y for _, y in here["S-D.5"]["TAS"]]
    aborted = at(here["S-D.5"]["HLE" + ABORTED_CYCLES], 50)
    return Judgement("TAS rises with the reads; HLE 64.61 % aborted cycles",
                     f"TAS {numbers(tas)} operations/ms; HLE {number(aborted)} % with half reads",
                     of_shape(rises(tas) and aborted > 50))


@claim("S-D.6", "S-D.5", "S-D.6", claimed=False, where="appendix D.2")
def aligned_list(here, paper):
    """Aligned items make update-only RTM three times as fast on the list with 4 threads, and the
    rest not nearly as much."""
    most, *others = (at(here["S-D.6"]["elision only"], x) / at(here["S-D.5"]["elision only"], x)
                     for x in (0, 50, 100))
    return Judgement("3 times; otherwise not nearly as much",
                     f"{number(most)} times; with 50 and 100 % reads {numbers(others)} times",
                     worst([of_ratio(most, 3), of_shape(mean(others) < most)]))
