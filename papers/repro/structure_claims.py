"""The claims of paper 004 about data structures (section 3.3, appendices C.7 and D): bank, counters, list and map under
every lock. As thesis_claims.py, where the claims about the machine and its locks are.

None of these figures is digitised: the text gives the numbers. "RTM" in them is elision only. Each test's wording was
written down before its figure was run.
"""

from figures import at, mean
from thesis_claims import Test
from verdicts import AGREES, DIFFERS, NEAR, Judgement, number, numbers, of_ratio, of_shape, worst

PLAIN, REGIONS = ("POSIX", "TAS"), ("HLE", "elision only")
CORES = 4
ABORTED_CYCLES, ABORT_RATE = ": aborted of transactional cycles, %", ": aborted transactions, %"
TRANSACTIONAL_CYCLES = ": transactional of all cycles, %"


def heights(series, names, x):
    return [at(series[name], x) for name in names]


def of_lead(ratio, most):
    """Ahead, and by no more than that; up to twice as much is near."""
    return DIFFERS if ratio <= 1 else AGREES if ratio <= most else NEAR if ratio <= 2 * most else DIFFERS


LOWEST, HIGHEST = ": lowest of the seeds", ": highest of the seeds"


def reach_told(series, names, x, where):
    """How far a curve reaches there over the seeds, where the run says so."""
    reaches = [f"{name} {number(at(series[name + LOWEST], x))} to {number(at(series[name + HIGHEST], x))}"
               for name in names if name + LOWEST in series]
    return f"Over the seeds, {where}: {', '.join(reaches)} operations/ms." if reaches else ""


def bank(here, paper):
    """Closed bank, 4 threads, 50/50: HTM slightly ahead of POSIX and TAS; money conserved. Ahead: HLE and RTM both above the
    better of the two; slightly: by no more than a half. A run that loses money fails, so that none is judged."""
    ours = here["S-3.12"]
    best = max(heights(ours, PLAIN, 0))
    leads = [height / best for height in heights(ours, REGIONS, 0)]
    return Judgement("S-3.12", "HLE and RTM slightly above POSIX and TAS; money conserved",
                     f"HLE {number(leads[0])}, RTM {number(leads[1])} times the better of POSIX and TAS; money conserved",
                     worst(of_lead(lead, 1.5) for lead in leads))


def one_counter(here, paper):
    """One shared counter: HTM no better; 37 % aborted cycles (RTM, 4 threads). No better: with 1 to 4 threads HLE and RTM at most a
    quarter above the better of POSIX and TAS."""
    ours = here["S-3.13"]
    leads = [max(heights(ours, REGIONS, n)) / max(heights(ours, PLAIN, n)) for n in range(1, CORES + 1)]
    aborted = at(ours["elision only" + ABORTED_CYCLES], CORES)
    return Judgement("S-3.13", "HLE and RTM no better than POSIX and TAS; 37 % aborted cycles",
                     f"the better of HLE and RTM {numbers(leads)} times the better of POSIX and TAS with 1, 2, 3, 4 threads; "
                     f"{number(aborted)} % aborted cycles", worst([of_shape(max(leads) <= 1.25), of_ratio(aborted, 37)]))


def alignment(here, paper):
    """Aligning per-core counters: speedup about 10 (HLE and RTM, 4 threads), and more with 4 threads than with 2."""
    gains = [a / u for a, u in zip(heights(here["S-3.15"], REGIONS, CORES), heights(here["S-3.14"], REGIONS, CORES))]
    tas = at(here["S-3.15"]["TAS"], CORES) / at(here["S-3.14"]["TAS"], CORES)
    scales = all(at(here["S-3.15"][name], CORES) > at(here["S-3.15"][name], 2) for name in REGIONS)
    return Judgement("S-3.15", "about 10 times, and scales",
                     f"HLE {number(gains[0])}, RTM {number(gains[1])} times (TAS {number(tas)}); "
                     + ("scales" if scales else "does not scale"),
                     worst([of_shape(scales), *(of_ratio(gain, 10) for gain in gains)]))


def global_lock(here, paper):
    """Per-core counters under one global lock: HLE keeps nearly all, POSIX and TAS collapse. With 4 threads, of the throughput with a
    lock for each counter: HLE at least 80 %, POSIX and TAS at most half."""
    kept = {name: 100 * at(here["S-3.16"][name], CORES) / at(here["S-3.15"][name], CORES) for name in ("HLE", *PLAIN)}
    return Judgement("S-3.16", "HLE keeps nearly all, POSIX and TAS collapse",
                     ", ".join(f"{name} keeps {number(value)} %" for name, value in kept.items()),
                     of_shape(kept["HLE"] >= 80 and kept["POSIX"] <= 50 and kept["TAS"] <= 50),
                     reach_told(here["S-3.16"], ("HLE", "elided<ttas_lock>"), CORES, "4 threads under the global lock"))


def list_reads(here, paper):
    """Doubly linked list, 2 threads: HTM ahead read-only; RTM without fallback behind TAS update-only. Ahead: HLE and RTM both more than
    a quarter above the better of POSIX and TAS."""
    ours = here["S-3.17"]
    leads = [height / max(heights(ours, PLAIN, 100)) for height in heights(ours, REGIONS, 100)]
    behind = at(ours["elision only"], 0) / at(ours["TAS"], 0)
    return Judgement("S-3.17", "read-only HLE and RTM ahead; update-only RTM behind TAS",
                     f"read-only HLE {number(leads[0])}, RTM {number(leads[1])} times the better of POSIX and TAS; update-only "
                     f"RTM {number(behind)} times TAS", of_shape(min(leads) > 1.25 and behind < 1),
                     reach_told(ours, ("TAS", "elision only"), 0, "update-only"))


SIZES = (10, 100)


def map_gain(here, paper):
    """Bucket-locked hashmap, 4 threads: HLE over POSIX at 10 / 100 buckets: 130 / 134 % more, each within 25 %."""
    ours = here["S-3.18"]
    gains = [100 * (at(ours["HLE"], n) / at(ours["POSIX"], n) - 1) for n in SIZES]
    more = [100 * at(ours[name], SIZES[1]) / at(ours[name], SIZES[0]) for name in ("POSIX", "TAS", *REGIONS)]
    return Judgement("S-3.18a", "130; 134 % more", numbers(gains) + " % more", worst(map(of_ratio, gains, (130, 134))),
                     f"Table 3.4, 100 buckets over 10, POSIX, TAS, HLE, RTM: {numbers(more)} % (paper: 442; 427; 450; 476).")


def map_aborts(here, paper):
    """HLE transaction abort rate at 10 / 100 buckets: 45.11 / 15.02 %, each within 25 %."""
    ours = here["S-3.18"]
    rates = heights(ours, ["HLE" + ABORT_RATE], SIZES[0]) + heights(ours, ["HLE" + ABORT_RATE], SIZES[1])
    cycles = [at(ours["HLE" + kind], n) for kind in (TRANSACTIONAL_CYCLES, ABORTED_CYCLES) for n in SIZES]
    return Judgement("S-3.18b", "45.11; 15.02 %", numbers(rates) + " %", worst(map(of_ratio, rates, (45.11, 15.02))),
                     f"Table 3.3, transactional and aborted cycles at 10 / 100 buckets: {numbers(cycles)} % (paper: 53.06; "
                     "30.58; 34.31; 6.72).")


def map_global(here, paper):
    """1000 buckets, aborted cycles (of transactional): per-bucket lock 5.81 / global lock 53.56 %, each within 25 %."""
    ours = here["S-3.19"]
    aborted, transactional = ([at(ours["HLE" + kind], x) for x in (0, 1)] for kind in (ABORTED_CYCLES,
                                                                                      TRANSACTIONAL_CYCLES))
    kept = [100 * at(ours[name], 1) / at(ours[name], 0) for name in ("POSIX", "TAS", *REGIONS)]
    return Judgement("S-3.19", "5.81; 53.56 %", numbers(aborted) + " %", worst(map(of_ratio, aborted, (5.81, 53.56))),
                     f"Transactional cycles: {numbers(transactional)} % (paper: 22.19; 25.9). Under the global lock POSIX, TAS, "
                     f"HLE, RTM keep {numbers(kept)} %.")


def nested_workaround(here, paper):
    """With the thesis's workaround (listing 3.10) HLE locks held together abort no more: less than 1 %, up to 20 locks."""
    highest = {name: max(y for _, y in points) for name, points in here["S-3.9b"].items()}
    return Judgement("S-3.9b", "no nesting aborts", f"at most {number(highest['workaround'])} %, without it "
                     f"{number(highest['HLE nested mutexes'])} %", of_shape(highest["workaround"] < 1))


def map_sizes(here, paper):
    """Globally locked map, 4 threads: more buckets lead to a better throughput (thesis, section 3.3.4), under every lock."""
    rising = all(a < b for name in (*PLAIN, *REGIONS) for (_, a), (_, b) in zip(here["S-C.10"][name],
                                                                              here["S-C.10"][name][1:]))
    gains = [here["S-C.10"][name][-1][1] / here["S-C.10"][name][0][1] for name in (*PLAIN, *REGIONS)]
    return Judgement("S-C.10", "figure not digitised; rises with the buckets",
                     f"10,000 buckets over 10, POSIX, TAS, HLE, RTM: {numbers(gains)} times", of_shape(rising))


def cold_cache(here, paper):
    """Writing an array of 1 KB takes about 100 cycles more on a cold cache than on a warm one."""
    cold, warm = (at(here["S-D.1"][name], 0) for name in ("cold cache", "warm cache"))
    return Judgement("S-D.1", "about 100 cycles more", f"{number(cold - warm)} cycles more",
                     of_ratio(cold - warm, 100))


def after_an_abort(here, paper):
    """After an abort, writing all of an array takes as many cycles as writing one element as often: within 25 %."""
    everything, one = (at(here["S-D.4"][name], 0) for name in ("all elements", "one element"))
    return Judgement("S-D.4", "the same number of cycles", f"{number(everything)} and {number(one)} cycles",
                     of_ratio(everything, one))


def unaligned_list(here, paper):
    """Unaligned list, 4 threads, TAS: the more reads instead of writes, the better; and HLE aborts a lot (table D.1: 64.61 % of
    transactional cycles; more than half with 50 % reads)."""
    tas = here["S-D.5"]["TAS"]
    rising = all(a < b for (_, a), (_, b) in zip(tas, tas[1:]))
    aborted = at(here["S-D.5"]["HLE" + ABORTED_CYCLES], 50)
    return Judgement("S-D.5", "TAS rises with the reads; HLE 64.61 % aborted cycles",
                     f"TAS {numbers(y for _, y in tas)} operations/ms; HLE {number(aborted)} % with half reads",
                     of_shape(rising and aborted > 50))


def aligned_list(here, paper):
    """Aligned items make update-only RTM three times as fast on the list with 4 threads, and the rest not nearly as much."""
    def gain(name, x):
        return at(here["S-D.6"][name], x) / at(here["S-D.5"][name], x)
    most, others = gain("elision only", 0), [gain("elision only", x) for x in (50, 100)]
    return Judgement("S-D.6", "3 times; otherwise not nearly as much",
                     f"{number(most)} times; with 50 and 100 % reads {numbers(others)} times",
                     worst([of_ratio(most, 3), of_shape(mean(others) < most)]))


TESTS = {
    "S-3.9b": Test(nested_workaround, ["S-3.9b"], claimed=False, where="section 3.2.4, listing 3.10"),
    "S-3.12": Test(bank, ["S-3.12"], turned=True),
    "S-3.13": Test(one_counter, ["S-3.13"], turned=True),
    "S-3.15": Test(alignment, ["S-3.14", "S-3.15"], turned=True),
    "S-3.16": Test(global_lock, ["S-3.15", "S-3.16"], turned=True),
    "S-3.17": Test(list_reads, ["S-3.17"], turned=True),
    "S-3.18a": Test(map_gain, ["S-3.18"], turned=True),
    "S-3.18b": Test(map_aborts, ["S-3.18"], turned=True),
    "S-3.19": Test(map_global, ["S-3.19"], turned=True),
    "S-C.10": Test(map_sizes, ["S-C.10"], claimed=False, where="appendix C.7"),
    "S-D.1": Test(cold_cache, ["S-D.1"], claimed=False, where="appendix D.1"),
    "S-D.4": Test(after_an_abort, ["S-D.2", "S-D.4"], claimed=False, where="appendix D.1"),
    "S-D.5": Test(unaligned_list, ["S-D.5"], claimed=False, where="appendix D.2"),
    "S-D.6": Test(aligned_list, ["S-D.5", "S-D.6"], claimed=False, where="appendix D.2"),
}
# Figures that can run on real threads too, and are drawn with their counters.
USE_CASES = ("S-3.12", "S-3.13", "S-3.14", "S-3.15", "S-3.16", "S-3.17", "S-3.18", "S-3.19", "S-C.10", "S-D.5", "S-D.6")


def turned_id(figure):
    """The experiment that runs the figure with one thing changed at a time."""
    return f"{figure} turned"


def turned_figures(ids):
    return list(dict.fromkeys(f for i in ids if i in TESTS and TESTS[i].turned for f in TESTS[i].figures))


def variants(turned):
    """figure -> "VARIANT | SERIES" -> points becomes variant -> figure -> series -> points."""
    found = {}
    for figure, series in turned.items():
        for name, points in series.items():
            variant, _, of_figure = name.partition(" | ")
            found.setdefault(variant, {}).setdefault(figure, {})[of_figure] = points
    return found


def sensitivity(claim, turned):
    """The claim with nothing and then with one thing changed at a time."""
    if claim not in TESTS or not TESTS[claim].turned:
        return []
    rows = []
    for name, here in variants({f: turned[f] for f in TESTS[claim].figures}).items():
        changed = TESTS[claim].judge(here, None)
        rows.append({"claim": claim, "changed": name, "here": changed.here, "verdict": changed.verdict})
    return rows


def counters(series):
    """What counters of transactions say: not in the figures, which have throughputs."""
    return {name: points for name, points in series.items() if ": " in name}


def throughputs(series):
    return {name: points for name, points in series.items() if ": " not in name}
