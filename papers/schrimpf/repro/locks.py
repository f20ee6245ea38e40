"""Paper 004 on the machine and its locks: chapter 2, section 3.2 and appendix C."""

from curves import at, between, last_below, mean, rises
from verdicts import AGREES, NEAR, Judgement, compared, number, numbers, of_ratio, of_shape, worst

from .runs import claim

L1D_KB = 32
HALF = 50  # a size that most transactions still commit


@claim("S-2.4", "S-2.4", claimed=False)
def lock_words(here, paper):
    """Unsigned, with 4 bytes, is the fastest type of a lock variable (thesis, section 2.4.1)."""
    def gain(series):
        others = [name for name in series if name != "unsigned(4)"]
        return [y / max(at(series[name], x) for name in others) for x, y in series["unsigned(4)"]]

    ours, theirs = gain(here["S-2.4"]), gain(paper["S-2.4"])
    return Judgement(
        f"{numbers(theirs)} times the next with 1, 10, 100 locks", numbers(ours) + " times",
        worst([of_shape(min(ours) > 1), *map(of_ratio, ours, theirs)]),
        "The other sizes run without elision here, by construction; on the thesis's CPU their "
        "elision always failed, which costs more than no elision.")


@claim("S-2.5", "S-2.5", "S-2.6", shared=["S-2.6"])
def test_then_set(here, paper):
    """Test-then-set lock against test-and-set: equal when unlocked at once, far better when
    held."""
    at_once, held, their_once, their_held = (
        [tas / tas_t for (_, tas), (_, tas_t) in zip(whose[figure]["TAS"], whose[figure]["TAS-T"])]
        for whose in (here, paper) for figure in ("S-2.5", "S-2.6"))
    # Equal: within 25 %. Far better: beyond that at every number of sections.
    holds = all(of_ratio(r, 1) == AGREES for r in at_once) and all(r > 1.25 for r in held)
    ours, theirs = (number(at(whose["S-2.6"]["TAS-T"], 100)) for whose in (here, paper))
    return Judgement(
        f"TAS takes {numbers(their_once)} times as long at once, {numbers(their_held)} times when "
        "held",
        f"{numbers(at_once)} at once, {numbers(held)} held", of_shape(holds),
        f"The shape alone agrees: the times themselves are a fifth of the thesis's ({ours} ms "
        f"against {theirs} ms for 100 held sections).")


@claim("S-2.7", "S-2.7", claimed=False)
def exchange(here, paper):
    """HLE is two times faster than the lock without it at 10^4 repeats (thesis, section 2.4.4)."""
    ours, theirs = (at(one["S-2.7"]["TAS"], 1e4) / at(one["S-2.7"]["HLE TAS"], 1e4)
                    for one in (here, paper))
    return compared([ours], [theirs], " times", "Test-and-set and exchange are one instruction "
                    "here, so one of each pair of curves is drawn.")


@claim("S-3.0", "S-3.0", claimed=False, where="section 3.1")
def read_set(here, paper):
    """A region that ignores the lock loses updates; one that reads it loses none (thesis, section
    3.1)."""
    kept, lost = (at(here["S-3.0"][name], 0) for name in ("lock in the read set", "lock not read"))
    return Judgement("the lock must be in the read set",
                     f"lost updates: {number(kept)} % with it, {number(lost)} % without",
                     of_shape(kept == 0 and lost > 0))


@claim("S-3.1", "S-3.1", in_per_cent=True)
def writes(here, paper):
    """Sequential transactional writes commit up to the L1D, never past 32 KB; first-touch memory
    aborts."""
    ours, first_touch = (here["S-3.1"][name] for name in ("initialized", "uninitialized"))
    beyond = min(between(ours, L1D_KB, 1e9) + between(first_touch, L1D_KB, 1e9))
    small = mean(between(ours, 0, 20))
    touched = mean(between(first_touch, 0, L1D_KB)) - mean(between(ours, 0, L1D_KB))
    # Seldom: one in twenty on average.
    holds = beyond == 100 and small <= 5 and touched > 0

    def told(series, above):
        low = mean(between(series["initialized"], 0, 20))
        half, touch = (last_below(series[name], HALF) for name in ("initialized", "uninitialized"))
        return (f"above 32 KB {above} %; initialised below 20 KB {number(low)} %; half abort from "
                f"{number(half)} KB, at first touch from {number(touch)} KB")

    return Judgement(
        told(paper["S-3.1"], 100), told(here["S-3.1"], number(beyond)), of_shape(holds),
        "The shape alone agrees: here every first touch of a page aborts, while most of the "
        "thesis's memory below 20 KB presumably had a page already; and its writes fail earlier "
        "than ours, where other data shares the L1.")


@claim("S-3.2", "S-3.2", in_per_cent=True)
def reads(here, paper):
    """Transactional reads can exceed the L1D, up to about 1 MB."""
    ours, theirs = (one["S-3.2"]["initialized"] for one in (here, paper))
    beyond = mean(between(ours, L1D_KB, 200))
    last, their_last = last_below(ours, 99), last_below(theirs, 99)

    def told(share, kb):
        return f"32 to 200 KB abort {number(share)} %; the last of 1 % commit at {number(kb)} KB"

    return Judgement(
        told(mean(between(theirs, L1D_KB, 200)), their_last), told(beyond, last),
        worst([of_shape(beyond < HALF), of_ratio(last, their_last)]),
        f"The curve is flatter in its middle: half abort from {number(last_below(ours, HALF))} KB "
        "on, in the thesis first at 400 KB, and at first touch every page aborts here.")


def capacities(series):
    return {name: last_below(points, HALF) for name, points in series.items()}


@claim("S-3.5", "S-3.5", in_per_cent=True)
def strides(here, paper):
    """Write capacity by stride: step 2 halves, step 4 quarters it; odd steps equal step 1."""
    ours, theirs = capacities(here["S-3.5"]), capacities(paper["S-3.5"])
    one, odd = ours["step size 1"], [ours[name] for name in ours
                                     if name in ("step size 3", "step size 5")]
    verdicts = [of_ratio(ours["step size 2"], one / 2), of_ratio(ours["step size 4"], one / 4)]
    verdicts += [of_ratio(other, one) for other in odd]
    verdicts += [of_ratio(ours[name], theirs[name]) for name in theirs]
    return Judgement(f"steps 1, 2, 4: {numbers(theirs.values())} KB; odd steps equal 1",
                     f"steps 1, 2, 4: {numbers(ours[name] for name in theirs)} KB; odd: "
                     f"{numbers(odd)} KB",
                     worst(verdicts), "" if odd else "No odd step but 1 was run.")


@claim("S-3.6", "S-3.6", in_per_cent=True)
def heap_strides(here, paper):
    """As 3.5 on heap memory: the differences shrink."""
    ours, theirs = capacities(here["S-3.6"]), capacities(paper["S-3.6"])
    shared = [name for name in theirs if name in ours]
    missing = [name for name in theirs if name not in ours]
    # On the static array step 2 leaves a half and step 4 a quarter; shrunk differences leave more.
    left = {"step size 2": 1 / 2, "step size 4": 1 / 4}
    shrink = all(ours[name] / ours["step size 1"] > left[name] for name in shared if name in left)
    verdict = worst([of_shape(shrink), *(of_ratio(ours[name], theirs[name]) for name in shared)])
    if missing and verdict == AGREES:
        verdict = NEAR  # half of the test could not be made
    note = ("Objects lie 80 bytes apart here, one after the other; presumably the thesis's heap "
            "scattered them, which fills some sets earlier.")
    if missing:
        note = (f"The experiment leaves out {' and '.join(missing)}, so that half of the test is "
                f"open. {note}")
    told = "; ".join(f"{name.removeprefix('step size ')}: {number(kb)}"
                     for name, kb in ours.items())
    return Judgement(f"steps 1, 2, 4: {numbers(theirs.values())} KB", f"{told} KB", verdict, note)


DURATIONS = [10_000 * 1.15 ** k for k in (24, 30, 36, 42, 48, 51)]  # a smoke run has these, too


@claim("S-3.7", "S-3.7", in_per_cent=True)
def durations(here, paper):
    """Abort rate grows with duration (timer interrupts): at six durations, each rate within 25
    %."""
    ours, theirs = (one["S-3.7"]["nop loop (RTM)"] for one in (here, paper))
    rates, their_rates = ([at(points, x) for x in DURATIONS] for points in (ours, theirs))
    loops = ", ".join(number(x / 1e6) for x in DURATIONS)
    return Judgement(f"{numbers(their_rates)} % at {loops} M loops", numbers(rates) + " %",
                     worst([of_shape(rises(rates)), of_shape(ours[-1][1] == 100),
                            *map(of_ratio, rates, their_rates)]))


@claim("S-3.8", "S-3.8", in_per_cent=True)
def nesting(here, paper):
    """RTM nests to depth 6 (7 with the outermost), then always aborts."""
    points = here["S-3.8"]["RTM nesting"]
    shallow, deep = max(between(points, 0, 6.5)), min(between(points, 6.5, 1e9))
    return Judgement("0 % to depth 6, 100 % from 7",
                     f"{number(shallow)} % to depth 6, {number(deep)} % from 7",
                     of_shape(shallow == 0 and deep == 100))


LOCKS_HELD = (1, 2, 4, 8, 20)


@claim("S-3.9", "S-3.9", in_per_cent=True)
def elided_together(here, paper):
    """More than one elided HLE lock held at once: the share of transactional cycles that abort."""
    ours, theirs = ([at(one["S-3.9"]["HLE nested mutexes"], n) for n in LOCKS_HELD]
                    for one in (here, paper))
    # With one lock next to nothing aborts (0.06 % in the thesis), which no ratio describes: less
    # than 1 %.
    verdicts = [of_shape(ours[0] < 1), *map(of_ratio, ours[1:], theirs[1:])]
    return Judgement(f"{numbers(theirs)} % with {', '.join(map(str, LOCKS_HELD))} locks",
                     numbers(ours) + " %", worst(verdicts),
                     "Every elision aborts from two locks on, as the thesis's counters say.")


LOCK_KINDS = ("POSIX", "HLE", "TAS", "RTM")


def overheads(here, paper, figure, note):
    """Over no lock, in per cent."""
    ours, theirs = ([100 * (series[name][0][1] / series["no synchronization"][0][1] - 1)
                     for name in LOCK_KINDS] for series in (here[figure], paper[figure]))
    return compared(ours, theirs, " %", note, said=f"{numbers(theirs)} % ({', '.join(LOCK_KINDS)})")


@claim("S-3.10", "S-3.10")
def lock_overhead(here, paper):
    """Lock-only overhead over no lock, POSIX / HLE / TAS / RTM: 139 / 126 / 69 / 36 %, each within
    25 %."""
    return overheads(here, paper, "S-3.10", "Taking a TAS lock costs 34 cycles here, 24 there.")


@claim("S-C.1", "S-C.1", claimed=False)
def allocation(here, paper):
    """Stack allocation never aborts, heap allocation always does (thesis, appendix C.1)."""
    rates = {name: [y for _, y in points] for name, points in here["S-C.1"].items()}
    always = min(min(rates[name]) for name in ("heap, recycled", "heap, new pages"))
    return Judgement("stack 0 %, heap 100 %",
                     "; ".join(f"{name} {number(mean(ys))} %" for name, ys in rates.items()),
                     of_shape(max(rates["stack"]) == 0 and always == 100),
                     "Here the allocator has memory at hand when it is asked for a size again; new "
                     "pages abort as in the thesis.")


@claim("S-C.2", "S-C.2", claimed=False)
def random_places(here, paper):
    """Too many random writes abort as sequential ones do, and before random reads (thesis, appendix
    C.2.2)."""
    write, read = (here["S-C.2"][name] for name in ("random write", "random read"))
    half_writes, half_reads = last_below(write, HALF), last_below(read, HALF)
    told = f"half abort after {number(half_writes)} writes, {number(half_reads)} reads"
    return Judgement("figure not digitised", told + " (the most run)" * (half_reads == read[-1][0]),
                     of_shape(half_writes < half_reads))


@claim("S-C.3", "S-C.3", claimed=False)
def array_overhead(here, paper):
    """As 3.10 around reading an array of 1 KB (thesis, appendix C.3): each overhead within 25 %."""
    ours, theirs = (at(one["S-C.3"]["no synchronization"], 0) for one in (here, paper))
    return overheads(here, paper, "S-C.3", "The machine charges nothing for the array: the "
                     "compiler leaves reads of a static array that no one else can see without a "
                     "hook."
                     if ours < theirs / 2 else "")
