"""Paper 003 on skewed keys at 16 threads: figures 2, 3 and 10 to 13."""

from panels import Figure, Panel
from verdicts import (AGREES, DIFFERS, Judgement, above, below, compared, number, numbers, of_gain,
                      of_ratio, of_shape, within, worst)

from .runs import (CATEGORIES, CAUSES, DRAWN, EUNO_LIST, EUNO_TREE, FAMILY, HOT_THETAS, HTM_LIST,
                   HTM_MASSTREE, HTM_TREE, LABELS, LEAN, LEAN_LABEL, LISTS, LOCK_FREE_LIST,
                   LOCK_LIST, MASSTREE, MOPS, OUR_TREE, OURS, THETAS, TREES, at, beside_retries,
                   curve, geometric_mean, lines, theta_of, told_of_ours, told_thetas)

# "Low or even modest" contention is theta below 0.6 in section 6.2, high contention is theta above.
LOW, HIGH = [t for t in THETAS if t < 0.6], [t for t in THETAS if t > 0.6]
LOW_HOT, HIGH_HOT = [t for t in HOT_THETAS if t < 0.6], [t for t in HOT_THETAS if t > 0.6]
HOT, HOTTEST, LIST_HOTTEST = at(HTM_TREE, 0.9), at(HTM_TREE, 0.99), at(HTM_LIST, 0.99)
EUNO_HOTTEST, OUR_HOTTEST = at(EUNO_TREE, 0.99), at(OUR_TREE, 0.99)
LEAN_HOTTEST = at(HTM_TREE, 0.99, knobs=LEAN)
LEAN_TREE = curve(HTM_TREE, knobs=LEAN)
TREE, LIST = curve(HTM_TREE), curve(HTM_LIST)
ABORTS = "aborts per operation"
ZIPF, HOT_REGION = "Zipf theta (0: uniform)", "theta: hot region's share (0: uniform)"
RECORDS = ("leaf", "node", "node head", "value")


def conflict_counts(run):
    """Conflicts by the paper's categories (section 3.2), and those at the leaf level or on a list's
    records.

    A clash of overlapping bytes is on the same record, one of a line alone on different records, if
    records lie there; anywhere else it is on shared metadata: heads of leaves, locks, inner nodes.
    The runs insert nothing, so that nobody writes a skip list's links, which lie beside its
    records. """
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
    """Aborts per operation: conflicts by category, then all other causes."""
    shares, causes = conflict_shares(run), run["aborts"]
    conflicts = run["aborts_per_op"] * causes["conflict"] / max(sum(causes.values()), 1)
    return {**{name: conflicts * shares[name] / 100 for name in CATEGORIES},
            "no conflict": run["aborts_per_op"] - conflicts}


def over_theta(runs, indexes, measure="mops"):
    found = lines(runs, indexes, curve, theta_of, measure)
    if HTM_TREE not in indexes:
        return found
    return {LABELS[HTM_TREE]: found[LABELS[HTM_TREE]],
            LEAN_LABEL: runs.line(LEAN_TREE, theta_of, measure), **found}


def by_theta(title, runs, index, measure="mops", y=MOPS, paper=(), **more):
    x = HOT_REGION if index == HTM_LIST else ZIPF
    return Panel(title, x, y, "lines", over_theta(runs, [index], measure), dict(paper), **more)


def stack(runs, index, paper=()):
    """Aborts per operation over theta in the paper's categories."""
    points = curve(index)
    parts = [(theta_of(p), aborts_by_category(runs[p])) for p in points] if runs.has(points) else []
    return Panel(LABELS[index], HOT_REGION if index in LISTS else ZIPF, ABORTS, "stacks",
                 {cause: [(theta, part[cause]) for theta, part in parts] for cause in CAUSES},
                 {"all": paper} if paper else {})


def figure_2(runs):
    return Figure("E-F2", "Throughput under contention, 16 threads", [
        by_theta("HTM-B+Tree", runs, HTM_TREE, paper={LABELS[HTM_TREE]: [(0.9, 3, "<")]}),
        by_theta("HTM-SkipList", runs, HTM_LIST)], 2, **DRAWN)


def figure_3(runs):
    wasted = {"measure": "wasted_pct", "y": "% of cycles, in aborts", "per_cent": True}
    return Figure("E-F3", "Why transactions abort, 16 threads", [
        stack(runs, HTM_TREE), stack(runs, HTM_LIST),
        by_theta("HTM-B+Tree, wasted", runs, HTM_TREE,
                 paper={LABELS[HTM_TREE]: [(0.99, 94, ">")]}, **wasted),
        by_theta("HTM-SkipList, wasted", runs, HTM_LIST, **wasted)], 2, **DRAWN)


def figure_10(runs):
    here = over_theta(runs, TREES)
    marks = {LABELS[EUNO_TREE]: [(0.99, 18.6)], LABELS[HTM_TREE]: [(0.99, 1.7)],
             LABELS[MASSTREE]: [(0.99, 11.3)]}
    return Figure("E-F10", "Throughput of B+trees, 16 threads",
                  [Panel("", ZIPF, MOPS, "lines", here, marks)], **DRAWN,
                  footnote="Masstree's point is 18.6 / 1.65." if here[LABELS[MASSTREE]] else "")


def figure_11(runs):
    return Figure("E-F11", "Why transactions abort in B+trees, 16 threads", [
        stack(runs, HTM_TREE, [(0.99, 60.3)]), stack(runs, EUNO_TREE, [(0.99, 1.9)]),
        stack(runs, OUR_TREE)], 3, **DRAWN)


def figure_12(runs):
    return Figure("E-F12", "Throughput of skip lists, 16 threads",
                  [Panel("", HOT_REGION, MOPS, "lines", over_theta(runs, LISTS))], **DRAWN,
                  footnote="The paper's text gives ratios alone.")


def figure_13(runs):
    return Figure("E-F13", "Why transactions abort in skip lists, 16 threads",
                  [stack(runs, HTM_LIST), stack(runs, EUNO_LIST)], 2, **DRAWN)


def lean(runs, theta, name, unit):
    """The tree without versions, so that nobody takes the baseline for weakened."""
    return ("The baseline counts up a version in each leaf that it writes to, as the paper's tree "
            f"does; without versions: {number(runs[at(HTM_TREE, theta, knobs=LEAN)][name])} "
            f"{unit}.")


@FAMILY.claim("E-F2a", [*TREE, *LEAN_TREE], figure_2, turned=[HOT])
def hot_throughput(runs):
    """HTM-B+Tree throughput at theta 0.9, 16 threads: less than 3 Mops/s."""
    def told(those):
        return f"{number(those[HOT]['mops'])} Mops/s"

    return Judgement("< 3 Mops/s", told(runs), below(runs[HOT]["mops"], 3),
                     lean(runs, 0.9, "mops", "Mops/s") + " The number of retries decides: "
                     + beside_retries(runs, told))


@FAMILY.claim("E-F2b", [*TREE, *LIST], figure_2)
def stable(runs):
    """HTM-B+Tree and HTM-skip list stable below theta 0.6: each within 25 % of uniform keys."""
    both = [runs.values(curve(HTM_TREE, LOW)), runs.values(curve(HTM_LIST, LOW_HOT))]
    holds = all(of_ratio(m, mops[0]) == AGREES for mops in both for m in mops)
    return Judgement("stable below 0.6", f"tree {numbers(both[0])}; list {numbers(both[1])} Mops/s",
                     of_shape(holds), f"At theta {told_thetas(LOW)}. The list's hot region is our "
                     "reading; the more requests go there, the more of what they look for lies in "
                     "the caches: the list rises.")


def growth(runs, low, high, paper, note):
    before, after = runs.values([low, high], "aborts_per_op")
    if before == 0:
        return Judgement(f"{paper} x", f"{number(after)} aborts/op over none", DIFFERS,
                         f"Nothing aborts at theta {theta_of(low)}.")
    return Judgement(f"{paper} x",
                     f"{number(after / before)} x ({number(before)} to {number(after)} aborts/op)",
                     of_ratio(after / before, paper), note)


@FAMILY.claim("E-F3a", [*TREE, at(HTM_TREE, 0.9, knobs=LEAN)], figure_3, turned=[HOT])
def abort_growth(runs):
    """HTM-B+Tree abort rate at theta 0.9 over theta 0.5: 47 x."""
    low = at(HTM_TREE, 0.5)
    aborts = runs[low]["aborts"]
    return growth(runs, low, HOT, 47, f"At theta 0.5 {sum(aborts.values())} aborts in the run, "
                  f"{aborts['conflict']} of them conflicts. "
                  + lean(runs, 0.9, "aborts_per_op", "aborts/op at 0.9"))


@FAMILY.claim("E-F3b", LIST, figure_3, turned=[LIST_HOTTEST])
def list_abort_growth(runs):
    """HTM-skip list abort rate at theta 0.99 over theta 0: 22 x."""
    low = at(HTM_LIST, 0)
    return growth(runs, low, LIST_HOTTEST, 22,
                  f"At theta 0 {sum(runs[low]['aborts'].values())} aborts in the whole run: the "
                  "ratio is one of next to nothing. What theta means for the skip lists is our "
                  "reading (--dist hot:THETA).")


@FAMILY.claim("E-F3c", [*TREE, LEAN_HOTTEST], figure_3, turned=[HOTTEST])
def wasted(runs):
    """CPU cycles wasted in aborts under high contention: more than 94 %."""
    hottest = runs[HOTTEST]
    here = hottest["wasted_pct"]
    outside = 100 - hottest["transactional_pct"] - (here - hottest["aborted_pct_of_all"])
    return Judgement("> 94 %", f"{number(here)} %", above(here, 94),
                     f"HTM-B+Tree at theta 0.99. {number(outside)} % are neither in regions nor in "
                     f"aborts: {number(hottest['fallback_pct'])} % of the operations end under the "
                     "lock, and the others wait. " + lean(runs, 0.99, "wasted_pct", "%"))


@FAMILY.claim("E-F3d", [*TREE, *LIST], figure_3)
def leaf_level(runs):
    """Share of conflicts in the B+tree's leaf level 90 %, in the skip list's lowest two levels 83
    %."""
    here = [conflict_shares(runs[p])["leaf level"] for p in (HOTTEST, LIST_HOTTEST)]
    return compared(here, (90, 83), " %", "At theta 0.99, of all conflicts. For the list those "
                    "where a node's record lies: links are not told apart by level, so that it is "
                    "a lower bound.")


def in_ranges(shares, ranges, note):
    told = "; ".join(f"{low}-{high}" for low, high in ranges) + " %"
    return Judgement(told, f"{numbers(shares)} %",
                     worst(within(share, *ends) for share, ends in zip(shares, ranges)), note)


@FAMILY.claim("E-F3e", [*TREE, LEAN_HOTTEST], figure_3, turned=[HOTTEST])
def conflict_kinds(runs):
    """B+tree conflicts by different keys / shared metadata / same record: 87-90, 6-10, 9-12 %."""
    shares, without = (conflict_shares(runs[p]) for p in (HOTTEST, LEAN_HOTTEST))
    kinds = ("different records", "shared metadata", "same record")
    return in_ranges([shares[n] for n in kinds], ((87, 90), (6, 10), (9, 12)),
                     "The machine sorts each conflict by the bytes of its first clash, and a "
                     "version is metadata; the paper took versions or shared records away and "
                     "looked at what remained, so that its shares sum to more than 100. Without "
                     f"versions: {numbers(without[n] for n in kinds)} %.")


@FAMILY.claim("E-F3f", LIST, figure_3)
def list_conflict_kinds(runs):
    """Skip list conflicts by different records / same record: 92-99, 1-7 %."""
    shares = conflict_shares(runs[LIST_HOTTEST])
    return in_ranges([shares["different records"], shares["same record"]], ((92, 99), (1, 7)),
                     "At theta 0.99. Within our hot region all keys are asked for alike, so that "
                     "two threads seldom meet on one.")


@FAMILY.claim("E-F10a", [*TREE, *curve(EUNO_TREE), *LEAN_TREE], figure_10, beside=curve(OUR_TREE),
              turned=[EUNO_HOTTEST, HOTTEST], retried=[OUR_HOTTEST])
def hottest_tree(runs):
    """Euno-B+Tree over HTM-B+Tree at theta 0.99, 16 threads (18.6 over 1.7 Mops/s): 11 x."""
    euno, htm, without = runs.values([EUNO_HOTTEST, HOTTEST, LEAN_HOTTEST])

    def told(those, unit=""):
        first, second = those.values([EUNO_HOTTEST, HOTTEST])
        return f"{number(first / second)} x ({number(first)} over {number(second)}{unit})"

    return Judgement("11 x (18.6 over 1.7 Mops/s)", told(runs, " Mops/s"), of_gain(euno / htm, 11),
                     "The ratio hangs on how deep the baseline falls: to 1.7 in the paper. Over "
                     f"the tree without versions ({number(without)} Mops/s): "
                     f"{number(euno / without)} x; "
                     + beside_retries(runs, told)
                     + told_of_ours(runs, OUR_HOTTEST, lambda r: f"{number(r['mops'] / htm)} x "
                                                                 f"({number(r['mops'])} Mops/s)"))


def means_of(runs, first, seconds, thetas, paper, said, note="", ratios=True):
    """Geometric means over the thetas of the first index over each of the others."""
    found = [runs.ratios(curve(first, thetas), curve(second, thetas)) for second in seconds]
    told = f"The geometric mean of {numbers(found[0])}" if ratios else "Geometric means"
    return compared(list(map(geometric_mean, found)), paper, " x",
                    f"{told} {'at' if ratios else 'over'} theta {told_thetas(thetas)}.{note}",
                    of_gain, said)


@FAMILY.claim("E-F10b", [*curve(EUNO_TREE), *curve(MASSTREE)], figure_10,
              turned=[at(EUNO_TREE, 0.5), at(MASSTREE, 0.5)])
def low_tree(runs):
    """Euno-B+Tree over Masstree, low contention: 1.3685 x."""
    return means_of(runs, EUNO_TREE, [MASSTREE], LOW, [1.3685], "1.3685 x")


@FAMILY.claim("E-F10c", [*curve(EUNO_TREE), *curve(MASSTREE)], figure_10,
              beside=[*curve(HTM_MASSTREE), *curve(OUR_TREE)],
              turned=[EUNO_HOTTEST, at(MASSTREE, 0.99)])
def high_tree(runs):
    """Euno-B+Tree over Masstree, high contention: 1.65 x."""
    masstree = runs[at(MASSTREE, 0.99)]["mops"]
    more = (" Masstree has no regions that could lose; a request of Euno-B+Tree that holds its "
            "key's lock bit loses up to 128 times while others wait for the bit. At 0.99, Masstree "
            "as it is: "
            + beside_retries(runs, lambda those:
                             f"{number(those[EUNO_HOTTEST]['mops'] / masstree)} x"))
    if runs.has(curve(OUR_TREE, HIGH)):
        ours = geometric_mean(runs.ratios(curve(OUR_TREE, HIGH), curve(MASSTREE, HIGH)))
        more += f" {OURS} over Masstree: {number(ours)} x."
    return means_of(runs, EUNO_TREE, [MASSTREE], HIGH, [1.65], "1.65 x", more)


@FAMILY.claim("E-F10d", [at(index, 0.5) for index in (EUNO_TREE, MASSTREE, HTM_TREE)], figure_10)
def instructions(runs):
    """Instructions per operation, Masstree over Euno-B+Tree at theta 0.5: 2.10 x."""
    masstree, euno, htm = runs.values([at(i, 0.5) for i in (MASSTREE, EUNO_TREE, HTM_TREE)],
                                      "accesses_per_op")
    here = masstree / euno
    return Judgement("2.1 x", f"{number(here)} x ({number(masstree)} over {number(euno)})",
                     of_gain(here, 2.1),
                     "The machine counts accesses to memory, not instructions; at theta 0.5 little "
                     f"is retried. HTM-B+Tree makes {number(htm)}: scattered leaves and marks add "
                     f"{number(euno - htm)} to that, while our Masstree with all its versions is "
                     f"only {number(masstree - htm)} above.")


@FAMILY.claim("E-F11", [*TREE, *curve(EUNO_TREE), LEAN_HOTTEST], figure_11, beside=curve(OUR_TREE),
              turned=[HOTTEST, EUNO_HOTTEST], retried=[OUR_HOTTEST])
def aborts(runs):
    """Aborts per operation at theta 0.99: HTM-B+Tree 60.3, Euno-B+Tree 1.9."""
    def here(those):
        return those.values([HOTTEST, EUNO_HOTTEST], "aborts_per_op")

    return compared(here(runs), (60.3, 1.9), " aborts/op",
                    lean(runs, 0.99, "aborts_per_op", "aborts/op") + " Otherwise "
                    + beside_retries(runs, lambda those: numbers(here(those)))
                    + told_of_ours(runs, OUR_HOTTEST,
                                   lambda r: f"{number(r['aborts_per_op'])} aborts/op"))


@FAMILY.claim("E-F12a", [*curve(EUNO_LIST), *curve(LOCK_LIST), *curve(LOCK_FREE_LIST)], figure_12,
              turned=[at(index, 0) for index in (EUNO_LIST, LOCK_LIST, LOCK_FREE_LIST)])
def low_list(runs):
    """Euno-SkipList over fine-grained-lock / lock-free skip list, low contention: 3.47, 2.10 x."""
    accesses = runs.values([at(i, 0) for i in (EUNO_LIST, LOCK_LIST, LOCK_FREE_LIST)],
                           "accesses_per_op")
    return means_of(runs, EUNO_LIST, [LOCK_LIST, LOCK_FREE_LIST], LOW_HOT, (3.47, 2.1), "",
                    " Where little collides all three follow the same links from line to line, and "
                    f"that takes the time: accesses/op at theta 0 {numbers(accesses)} (Euno, "
                    "locks, lock-free).", ratios=False)


@FAMILY.claim("E-F12b", [*curve(EUNO_LIST), *LIST], figure_12,
              turned=[at(EUNO_LIST, 0.99), LIST_HOTTEST])
def high_list(runs):
    """Euno-SkipList over HTM-skip list, high contention: 2.89 x."""
    def told(those):
        return f"{number(those[at(EUNO_LIST, 0.99)]['mops'] / those[LIST_HOTTEST]['mops'])} x"

    return means_of(runs, EUNO_LIST, [HTM_LIST], HIGH_HOT, [2.89], "",
                    " At 0.99 " + beside_retries(runs, told))


@FAMILY.claim("E-F13", [*curve(EUNO_LIST), *LIST], figure_13,
              turned=[at(EUNO_LIST, 0.99), LIST_HOTTEST])
def list_aborts(runs):
    """Aborts removed by Euno-SkipList under high contention: 95 %."""
    htm, euno = runs.values([LIST_HOTTEST, at(EUNO_LIST, 0.99)], "aborts_per_op")
    removed = 100 * (1 - euno / htm) if htm else 0
    return Judgement("95 %", f"{number(removed)} % ({number(htm)} to {number(euno)} aborts/op)",
                     of_ratio(removed, 95), "At theta 0.99.")
