"""Paper 003 on skewed keys at 16 threads: figures 2, 3 and 10 to 13."""

from statistics import geometric_mean

from panels import Panel, figure
from panels import lines as line_panel
from verdicts import (AGREES, DIFFERS, Judgement, above, below, compared, number, numbers, of_gain,
                      of_ratio, of_shape, say, values, within, worst)

from .runs import (APART, CATEGORIES, CAUSES, CONFLICT, DRAWN, EUNO_LIST, EUNO_TREE, FAMILY,
                   FULL_THETAS, HOT_THETAS, HTM_LIST, HTM_MASSTREE, HTM_TREE, KEY_BITS, LABELS,
                   LEAN, LEAN_LABEL, LISTS, LOCK_FREE_LIST, LOCK_LIST, MASSTREE, MOPS, OURS,
                   OUR_TREE, PRELOADED, PUT, THETAS, TREES, at, beside_retries, curve, ran,
                   rest_of_curve, theta_of, told_of_key_bits, told_of_ours, whole_curve)

# "Low or even modest" contention is theta below 0.6 in section 6.2, high contention is theta above.
# A judge takes those of its thetas that were run.
LOW, HIGH = [t for t in FULL_THETAS if t < 0.6], [t for t in FULL_THETAS if t > 0.6]
LOW_HOT, HIGH_HOT = [t for t in HOT_THETAS if t < 0.6], [t for t in HOT_THETAS if t > 0.6]
HOT, MIDDLE, HOTTEST = (at(HTM_TREE, theta) for theta in (0.9, 0.5, 0.99))
LIST_COLD, LIST_HOTTEST = at(HTM_LIST, 0), at(HTM_LIST, 0.99)
EUNO_HOTTEST, KEY_BITS_HOTTEST, OUR_HOTTEST, EUNO_LIST_HOTTEST = (
    at(i, 0.99) for i in (EUNO_TREE, KEY_BITS, OUR_TREE, EUNO_LIST))
LEAN_HOTTEST = at(HTM_TREE, 0.99, knobs=LEAN)
APART_HOTTEST = at(HTM_TREE, 0.99, workload=APART)
LEAN_TREE = curve(HTM_TREE, knobs=LEAN)
REST = rest_of_curve(HTM_TREE)
OTHER_WORKLOADS = {PUT: "put, from an empty tree", PRELOADED: "updates of a million keys"}
TREE, EUNO, BITS, OUR, MASS, LIST, EUNO_SKIP = map(curve, (
    HTM_TREE, EUNO_TREE, KEY_BITS, OUR_TREE, MASSTREE, HTM_LIST, EUNO_LIST))
RECORDS = ("leaf", "node", "node head", "value")
PLACES = "places of conflicts"  # which a CPU does not tell


def conflict_counts(run):
    """Conflicts by the paper's categories (section 3.2), and those at the leaf level or on a list's
    records.

    A clash of overlapping bytes is on the same record, one of a line alone on different records, if
    records lie there; anywhere else it is on shared metadata: heads of leaves, locks, inner nodes.
    A skip list's links lie beside its records and count as such. """
    found = dict.fromkeys((*CATEGORIES, "leaf level"), 0)
    for c in run["conflicts"]:
        where, same, line = c["where"], c["true_sharing"], c["false_sharing"]
        if where.startswith("leaf") or where in ("node head", "value"):
            found["leaf level"] += same + line
        if where in RECORDS:
            found["same record"] += same
            found["different records"] += line
        else:
            found["shared metadata"] += same + line
    return found


def conflict_shares(run):
    """The same in per cent of all conflicts."""
    counts = conflict_counts(run)
    total = sum(counts[name] for name in CATEGORIES)
    return {name: 100 * count / total if total else 0.0 for name, count in counts.items()}


def aborts_by_category(run):
    """Aborts per operation: conflicts by category, then all other causes. Real threads do not tell
    the categories."""
    causes = run["aborts"]
    conflicts = run["aborts_per_op"] * causes["conflict"] / max(sum(causes.values()), 1)
    shares = conflict_shares(run) if "conflicts" in run else {CONFLICT: 100}
    return {**{name: conflicts * shares[name] / 100 for name in (*CATEGORIES, CONFLICT)
               if name in shares},
            "no conflict": run["aborts_per_op"] - conflicts}


def x_of(index):
    return ("theta: hot region's share (0: uniform)" if index in LISTS
            else "Zipf theta (0: uniform)")


def lines(title, *indexes, measure="mops", y=MOPS, workload=None, **more):
    """Over theta; beside the paper's baseline the tree without versions."""
    def made(runs):
        series = {LABELS[index]: whole_curve(runs, index, workload=workload) for index in indexes}
        if HTM_TREE in indexes and not workload:
            series = {LABELS[HTM_TREE]: series[LABELS[HTM_TREE]],
                      LEAN_LABEL: whole_curve(runs, HTM_TREE, knobs=LEAN)} | series
        return line_panel(title, x_of(indexes[0]), y, series, theta_of, measure, **more)(runs)
    return made


def stack(index, *paper):
    """Aborts per operation over theta in the paper's categories."""
    def made(runs):
        parts = [(theta_of(p), aborts_by_category(runs[p])) for p in whole_curve(runs, index)
                 if runs.has(curve(index))]
        return Panel(LABELS[index], x_of(index), "aborts per operation", "stacks",
                     {cause: [(theta, part[cause]) for theta, part in parts if cause in part]
                      for cause in CAUSES},
                     {"all": list(paper)} if paper else {})
    return made


WASTED = {"measure": "wasted_pct", "y": "% of cycles, in aborts", "per_cent": True}
FIGURE_2 = figure("E-F2", "Throughput under contention, 16 threads", [
    lines("HTM-B+Tree", HTM_TREE, paper={LABELS[HTM_TREE]: [(0.9, 3, "<")]}),
    lines("HTM-SkipList", HTM_LIST)], 2, **DRAWN)
FIGURE_3 = figure("E-F3", "Why transactions abort, 16 threads", [
    stack(HTM_TREE), stack(HTM_LIST),
    lines("HTM-B+Tree, wasted", HTM_TREE, paper={LABELS[HTM_TREE]: [(0.99, 94, ">")]}, **WASTED),
    lines("HTM-SkipList, wasted", HTM_LIST, **WASTED)], 2, **DRAWN)
FIGURE_10 = figure("E-F10", "Throughput of B+trees, 16 threads", [
    lines("the released benchmark (judged)", *TREES, paper={
        LABELS[EUNO_TREE]: [(0.99, 18.6)], LABELS[HTM_TREE]: [(0.99, 1.7)],
        LABELS[MASSTREE]: [(0.99, 11.3)]}),
    *(lines(title, *TREES, workload=w) for w, title in OTHER_WORKLOADS.items())], 3, **DRAWN,
    footnote=lambda runs: "Masstree's point is 18.6 / 1.65." if runs.has(MASS) else "")
FIGURE_11 = figure("E-F11", "Why transactions abort in B+trees, 16 threads", [
    stack(HTM_TREE, (0.99, 60.3)), stack(EUNO_TREE, (0.99, 1.9)), stack(KEY_BITS),
    stack(OUR_TREE)], 2, **DRAWN)
FIGURE_12 = figure("E-F12", "Throughput of skip lists, 16 threads", [lines("", *LISTS)], **DRAWN,
                   footnote="The paper's text gives ratios alone.")
FIGURE_13 = figure("E-F13", "Why transactions abort in skip lists, 16 threads", [
    stack(HTM_LIST), stack(EUNO_LIST)], 2, **DRAWN)


def lean(runs, theta, name, unit):
    """The tree without versions, so that nobody takes the baseline for weakened."""
    return say("The baseline counts up a version in each leaf that it writes to, as the paper's "
               "tree does; without versions: {} {}.", runs[at(HTM_TREE, theta, knobs=LEAN)][name],
               unit)


FAMILY.claim("E-F2a", [*TREE, *LEAN_TREE], FIGURE_2, full=REST, turned=[HOT],
             judge=lambda runs: Judgement(
                 "< 3 Mops/s", say("{} Mops/s", runs[HOT].mops), below(runs[HOT].mops, 3),
                 lean(runs, 0.9, "mops", "Mops/s") + " Otherwise "
                 + beside_retries(runs, "{} Mops/s", lambda those: [those[HOT].mops]),
                 values=values("Mops/s", [runs[HOT].mops], [3], ["(less than)"])))


@FAMILY.claim("E-F2b", [*curve(HTM_TREE, (0, 0.5)), *LIST], FIGURE_2, full=REST)
def stable(runs):
    """HTM-B+Tree and HTM-skip list stable below theta 0.6: each within 25 % of uniform keys."""
    low = ran(runs, curve(HTM_TREE, LOW))
    both = [runs.values(low), runs.values(curve(HTM_LIST, LOW_HOT))]
    holds = all(of_ratio(m, mops[0]) == AGREES for mops in both for m in mops)
    return Judgement("stable below 0.6", say("tree {}; list {} Mops/s", *both), of_shape(holds),
                     f"At theta {thetas_told(low)}. The list's workload is our reading of the "
                     "paper's text.")


def thetas_told(points):
    return ", ".join(str(theta_of(p)) for p in points)


def growth(runs, low, high, paper, note):
    before, after = runs.values([low, high], "aborts_per_op")
    if before == 0:
        return Judgement(f"{paper} x", say("{} aborts/op over none", after), DIFFERS,
                         f"Nothing aborts at theta {theta_of(low)}.")
    return Judgement(f"{paper} x",
                     say("{} x ({} to {} aborts/op)", after / before, before, after),
                     of_ratio(after / before, paper), note,
                     values=values("x", [after / before], [paper]))


FAMILY.claim("E-F3a", [*TREE, at(HTM_TREE, 0.9, knobs=LEAN)], FIGURE_3, full=REST, turned=[HOT],
             judge=lambda runs: growth(runs, MIDDLE, HOT, 47, (
                 f"At theta 0.5 {sum(runs[MIDDLE].aborts.values())} aborts in the run, "
                 f"{runs[MIDDLE].aborts['conflict']} of them conflicts. "
                 + lean(runs, 0.9, "aborts_per_op", "aborts/op at 0.9"))))
FAMILY.claim("E-F3b", LIST, FIGURE_3, turned=[LIST_HOTTEST], judge=lambda runs: growth(
    runs, LIST_COLD, LIST_HOTTEST, 22,
    f"At theta 0 {sum(runs[LIST_COLD].aborts.values())} aborts in the run. What theta means for the "
    "skip lists is our reading: the share of the hot front."))
FAMILY.claim("E-F3d", [*TREE, *LIST], FIGURE_3, full=REST, simulated=PLACES,
             judge=lambda runs: compared(
    [conflict_shares(runs[p])["leaf level"] for p in (HOTTEST, LIST_HOTTEST)], (90, 83), " %",
    "At theta 0.99, of all conflicts. For the list those on a record or on the links of its two "
    "lowest levels.", names=("tree", "list")))


@FAMILY.claim("E-F3c", [*TREE, LEAN_HOTTEST], FIGURE_3, full=REST, turned=[HOTTEST],
              simulated="counts of lost cycles")
def wasted(runs):
    run = runs[HOTTEST]
    outside = 100 - run.transactional_pct - (run.wasted_pct - run.aborted_pct_of_all)
    return Judgement("> 94 %", say("{} %", run.wasted_pct), above(run.wasted_pct, 94),
                     say("HTM-B+Tree at theta 0.99. {} % are neither in regions nor in aborts: {} "
                         "% of the operations end under the lock, and the others wait. ", outside,
                         run.fallback_pct) + lean(runs, 0.99, "wasted_pct", "%"),
                     values=values("%", [run.wasted_pct], [94], ["(more than)"]))


def kinds(run, ranges):
    shares = conflict_shares(run)
    return [shares[kind] for kind in ranges]


def ranges_told(ranges):
    return "; ".join(f"{low}-{high}" for low, high in ranges.values()) + " %"


def in_ranges(run, ranges, note):
    """ranges: kind of conflict -> the paper's least and most"""
    shares = kinds(run, ranges)
    return Judgement(ranges_told(ranges), f"{numbers(shares)} %",
                     worst(within(share, *ends) for share, ends in zip(shares, ranges.values())),
                     note, values=values("%", shares, ranges.values(), ranges))


TREE_KINDS = {"different records": (87, 90), "shared metadata": (6, 10), "same record": (9, 12)}


@FAMILY.claim("E-F3e", [*TREE, LEAN_HOTTEST, APART_HOTTEST], FIGURE_3, full=REST, turned=[HOTTEST])
def kinds_of_conflicts(runs):
    """Section 3.2's own method: what is left without accesses to one record by several threads,
    and what goes without versions, each as a share of all aborts."""
    total, apart, lean_aborts = runs.values([HOTTEST, APART_HOTTEST, LEAN_HOTTEST], "aborts_per_op")
    if total == 0:
        return Judgement(ranges_told(TREE_KINDS), "no aborts", DIFFERS,
                         "Nothing aborts at theta 0.99.")
    shares = [100 * apart / total, 100 * (total - lean_aborts) / total,
              100 * (total - apart) / total]
    note = say("Aborts per operation at theta 0.99: {}; without accesses of several threads to one "
               "record {}; without versions {}.", total, apart, lean_aborts)
    if "conflicts" in runs[HOTTEST]:
        note += say(" By the bytes of each conflict's first clash: {} %.",
                    kinds(runs[HOTTEST], TREE_KINDS))
    return Judgement(ranges_told(TREE_KINDS), f"{numbers(shares)} %",
                     worst(within(share, *ends)
                           for share, ends in zip(shares, TREE_KINDS.values())), note,
                     values=values("%", shares, TREE_KINDS.values(), TREE_KINDS))


FAMILY.claim("E-F3f", LIST, FIGURE_3, simulated=PLACES, judge=lambda runs: in_ranges(
    runs[LIST_HOTTEST], {"different records": (92, 99), "same record": (1, 7)},
    "At theta 0.99. No two threads ask for one record there: a clash on the same bytes is over a "
    "link."))


def beside_workloads(runs):
    """Euno-B+Tree over the baseline at theta 0.99 on the other workloads."""
    found = {title: [at(i, 0.99, workload=w) for i in (EUNO_TREE, HTM_TREE)]
             for w, title in OTHER_WORKLOADS.items()}
    return "".join(say(" {}: {} x ({} over {}).", title[0].upper() + title[1:], runs.ratio(*pair),
                       *runs.values(pair)) for title, pair in found.items() if runs.has(pair))


def on_other_workloads(thetas):
    return [at(index, theta, workload=w) for w in OTHER_WORKLOADS for index in TREES
            for theta in thetas]


def told_of_others(runs, text, values):
    """At theta 0.99."""
    return (told_of_key_bits(runs, KEY_BITS_HOTTEST, text, values)
            + told_of_ours(runs, OUR_HOTTEST, text, values))


@FAMILY.claim("E-F10a", [*TREE, *EUNO, *LEAN_TREE], FIGURE_10,
              beside=[*BITS, *OUR, *on_other_workloads(THETAS)],
              full=[*rest_of_curve(HTM_TREE, EUNO_TREE, KEY_BITS, OUR_TREE),
                    *on_other_workloads([t for t in FULL_THETAS if t not in THETAS])],
              turned=[EUNO_HOTTEST, HOTTEST], retried=[OUR_HOTTEST])
def hottest_tree(runs):
    def of(those):
        euno, htm = those.values([EUNO_HOTTEST, HOTTEST])
        return euno / htm, euno, htm

    ratio, euno, htm = of(runs)
    without = runs[LEAN_HOTTEST].mops
    return Judgement("11 x (18.6 over 1.7 Mops/s)",
                     say("{} x ({} over {} Mops/s)", ratio, euno, htm), of_gain(ratio, 11),
                     say("Over the tree without versions ({} Mops/s): {} x; ", without,
                         euno / without) + beside_retries(runs, "{} x ({} over {})", of)
                     + beside_workloads(runs) + told_of_others(
                         runs, "{} x ({} Mops/s)", lambda run: (run.mops / htm, run.mops)),
                     values=values("x", [ratio], [11]))


def means_of(runs, first, seconds, thetas, paper, said, note="", ratios=True):
    """Geometric means over the thetas of the first index over each of the others."""
    thetas = [t for t in thetas if runs.has(at(index, t) for index in (first, *seconds))]
    found = [runs.ratios(curve(first, thetas), curve(second, thetas)) for second in seconds]
    told = f"The geometric mean of {numbers(found[0])} at" if ratios else "Geometric means over"
    return compared(list(map(geometric_mean, found)), paper, " x",
                    f"{told} theta {str(thetas)[1:-1]}.{note}", of_gain, said,
                    [f"over {LABELS[second]}" for second in seconds])


def bits_over_masstree(runs, thetas):
    thetas = [t for t in thetas if runs.has((at(KEY_BITS, t), at(MASSTREE, t)))]
    if not thetas:
        return ""
    mean = geometric_mean(runs.ratios(curve(KEY_BITS, thetas), curve(MASSTREE, thetas)))
    return f" {LABELS[KEY_BITS]}: {number(mean)} x."


FAMILY.claim("E-F10b", [*EUNO, *MASS], FIGURE_10, beside=BITS,
             full=rest_of_curve(EUNO_TREE, KEY_BITS, MASSTREE),
             turned=[at(EUNO_TREE, 0.5), at(MASSTREE, 0.5)],
             judge=lambda runs: means_of(runs, EUNO_TREE, [MASSTREE], LOW, [1.3685], "1.3685 x",
                                         bits_over_masstree(runs, LOW)))


@FAMILY.claim("E-F10c", [*EUNO, *MASS], FIGURE_10, beside=[*curve(HTM_MASSTREE), *BITS, *OUR],
              full=rest_of_curve(EUNO_TREE, KEY_BITS, MASSTREE, HTM_MASSTREE, OUR_TREE),
              turned=[EUNO_HOTTEST, at(MASSTREE, 0.99)])
def high_tree(runs):
    masstree = runs[at(MASSTREE, 0.99)].mops
    more = " At 0.99, Masstree as it is: " + beside_retries(
        runs, "{} x", lambda those: [those[EUNO_HOTTEST].mops / masstree])
    high = [t for t in HIGH if at(OUR_TREE, t) in runs and at(MASSTREE, t) in runs]
    if high:
        ours = geometric_mean(runs.ratios(curve(OUR_TREE, high), curve(MASSTREE, high)))
        more += f" {OURS} over Masstree: {number(ours)} x."
    more += bits_over_masstree(runs, high)
    return means_of(runs, EUNO_TREE, [MASSTREE], HIGH, [1.65], "1.65 x", more)


@FAMILY.claim("E-F10d", [at(index, 0.5) for index in (EUNO_TREE, MASSTREE, HTM_TREE)], FIGURE_10,
              simulated="counts of instructions")
def instructions(runs):
    masstree, euno, htm = runs.values([at(i, 0.5) for i in (MASSTREE, EUNO_TREE, HTM_TREE)],
                                      "instructions_per_op")
    return Judgement("2.1 x", say("{} x ({} over {})", masstree / euno, masstree, euno),
                     of_gain(masstree / euno, 2.1),
                     say("Instructions of an operation at theta 0.5, without those of the C "
                         "library. HTM-B+Tree executes {} with its retries.", htm),
                     values=values("x", [masstree / euno], [2.1], ["instructions"]))


@FAMILY.claim("E-F11", [*TREE, *EUNO, LEAN_HOTTEST], FIGURE_11, beside=[*BITS, *OUR],
              full=rest_of_curve(HTM_TREE, EUNO_TREE, KEY_BITS, OUR_TREE),
              turned=[HOTTEST, EUNO_HOTTEST], retried=[OUR_HOTTEST])
def aborts(runs):
    def here(those):
        return those.values([HOTTEST, EUNO_HOTTEST], "aborts_per_op")

    return compared(here(runs), (60.3, 1.9), " aborts/op",
                    lean(runs, 0.99, "aborts_per_op", "aborts/op") + " Otherwise "
                    + beside_retries(runs, "{}; {}", here)
                    + told_of_others(runs, "{} aborts/op", lambda run: [run.aborts_per_op]),
                    names=(LABELS[HTM_TREE], LABELS[EUNO_TREE]))


@FAMILY.claim("E-F12a", [*EUNO_SKIP, *curve(LOCK_LIST), *curve(LOCK_FREE_LIST)], FIGURE_12,
              turned=[at(index, 0) for index in (EUNO_LIST, LOCK_LIST, LOCK_FREE_LIST)])
def low_list(runs):
    note = ""
    if runs.tell("accesses_per_op"):
        accesses = runs.values([at(i, 0) for i in (EUNO_LIST, LOCK_LIST, LOCK_FREE_LIST)],
                               "accesses_per_op")
        note = (" Where little collides all three follow the same links from line to line, and "
                f"that takes the time: accesses/op at theta 0 {numbers(accesses)} (Euno, locks, "
                "lock-free).")
    return means_of(runs, EUNO_LIST, [LOCK_LIST, LOCK_FREE_LIST], LOW_HOT, (3.47, 2.1), "", note,
                    ratios=False)


LISTS_HOTTEST = [EUNO_LIST_HOTTEST, LIST_HOTTEST]
FAMILY.claim("E-F12b", [*EUNO_SKIP, *LIST], FIGURE_12, turned=LISTS_HOTTEST,
             judge=lambda runs: means_of(
                 runs, EUNO_LIST, [HTM_LIST], HIGH_HOT, [2.89], "", " At 0.99 " + beside_retries(
                     runs, "{} x", lambda those: [those.ratio(*LISTS_HOTTEST)])))


@FAMILY.claim("E-F13", [*EUNO_SKIP, *LIST], FIGURE_13, turned=LISTS_HOTTEST)
def list_aborts(runs):
    htm, euno = runs.values([LIST_HOTTEST, EUNO_LIST_HOTTEST], "aborts_per_op")
    removed = 100 * (1 - euno / htm) if htm else 0
    return Judgement("95 %", say("{} % ({} to {} aborts/op)", removed, htm, euno),
                     of_ratio(removed, 95), "At theta 0.99.",
                     values=values("%", [removed], [95], ["removed"]))
