"""Claims of paper 003 about skewed keys at 16 threads: figures 2, 3 and 10 to 13."""

from eunomia_runs import (EUNO_LIST, EUNO_TREE, HOT_THETAS, HTM_LIST, HTM_MASSTREE, HTM_TREE, LEAN, LOCK_FREE_LIST,
                          LOCK_LIST, MASSTREE, OUR_TREE, OURS, THETAS, Point, Test, beside_retries, conflict_shares,
                          curve, speedup, told_of_ours)
from verdicts import (AGREES, DIFFERS, Judgement, above, below, number, numbers, of_gain, of_ratio, of_shape, within,
                      worst)

# "Low or even modest" contention is theta below 0.6 in section 6.2, high contention is theta above it.
LOW, HIGH = [t for t in THETAS if t < 0.6], [t for t in THETAS if t > 0.6]
LOW_HOT, HIGH_HOT = [t for t in HOT_THETAS if t < 0.6], [t for t in HOT_THETAS if t > 0.6]
HOT, HOTTEST = Point(HTM_TREE, 0.9), Point(HTM_TREE, 0.99)
OUR_HOTTEST = Point(OUR_TREE, 0.99)
LEAN_TREE = curve(HTM_TREE, knobs=LEAN)
LEAN_HOTTEST = Point(HTM_TREE, 0.99, knobs=LEAN)


def lean(runs, theta, name, unit):
    """The tree without versions, so that nobody takes the baseline for weakened."""
    return (f"The baseline counts up a version in each leaf that it writes to, as the paper's tree does; without "
            f"versions: {number(runs[Point(HTM_TREE, theta, knobs=LEAN)][name])} {unit}.")


def hot_throughput(runs):
    """HTM-B+Tree throughput at theta 0.9, 16 threads: less than 3 Mops/s."""
    here = runs[HOT]["mops"]
    return Judgement("E-F2a", "< 3 Mops/s", f"{number(here)} Mops/s", below(here, 3),
                     lean(runs, 0.9, "mops", "Mops/s") + " The number of retries decides: "
                     + beside_retries(lambda change: f"{number(runs[change(HOT)]['mops'])} Mops/s"))


def stable(runs):
    """HTM-B+Tree and HTM-skip list stable below theta 0.6: each within 25 % of uniform keys."""
    tree, skip_list = ([runs[p]["mops"] for p in curve(index, low)] for index, low in ((HTM_TREE, LOW),
                                                                                       (HTM_LIST, LOW_HOT)))
    holds = all(of_ratio(m, mops[0]) == AGREES for mops in (tree, skip_list) for m in mops)
    return Judgement("E-F2b", "stable below 0.6", f"tree {numbers(tree)}; list {numbers(skip_list)} Mops/s",
                     of_shape(holds), f"At theta {', '.join(map(str, LOW))}. The list's hot region is our reading; "
                     "the more requests go there, the more of what they look for lies in the caches: the list rises.")


def growth(claim, runs, low, high, paper, note):
    before, after = runs[low]["aborts_per_op"], runs[high]["aborts_per_op"]
    if before == 0:
        return Judgement(claim, f"{paper} x", f"{number(after)} aborts/op over none", DIFFERS,
                         f"Nothing aborts at theta {low.theta}.")
    return Judgement(claim, f"{paper} x", f"{number(after / before)} x ({number(before)} to {number(after)} aborts/op)",
                     of_ratio(after / before, paper), note)


def abort_growth(runs):
    """HTM-B+Tree abort rate at theta 0.9 over theta 0.5: 47 x."""
    low = Point(HTM_TREE, 0.5)
    return growth("E-F3a", runs, low, HOT, 47,
                  f"At theta 0.5 {sum(runs[low]['aborts'].values())} aborts in the run, "
                  f"{runs[low]['aborts']['conflict']} of them conflicts. "
                  + lean(runs, 0.9, "aborts_per_op", "aborts/op at 0.9"))


def list_abort_growth(runs):
    """HTM-skip list abort rate at theta 0.99 over theta 0: 22 x."""
    return growth("E-F3b", runs, Point(HTM_LIST, 0), Point(HTM_LIST, 0.99), 22,
                  f"At theta 0 {sum(runs[Point(HTM_LIST, 0)]['aborts'].values())} aborts in the whole run: the ratio "
                  "is one of next to nothing. What theta means for the skip lists is our reading (--dist hot:THETA).")


def wasted(runs):
    """CPU cycles wasted in aborts under high contention: more than 94 %."""
    hottest = runs[HOTTEST]
    here = hottest["wasted_pct"]
    outside = 100 - hottest["transactional_pct"] - (here - hottest["aborted_pct_of_all"])
    return Judgement("E-F3c", "> 94 %", f"{number(here)} %", above(here, 94),
                     f"HTM-B+Tree at theta 0.99. {number(outside)} % are neither in regions nor in aborts: "
                     f"{number(hottest['fallback_pct'])} % of the operations end under the lock, and the others wait. "
                     + lean(runs, 0.99, "wasted_pct", "%"))


def leaf_level(runs):
    """Share of conflicts in the B+tree's leaf level 90 %, in the skip list's lowest two levels 83 %."""
    here = [conflict_shares(runs[p])["leaf level"] for p in (HOTTEST, Point(HTM_LIST, 0.99))]
    return Judgement("E-F3d", "90; 83 %", numbers(here) + " %", worst([of_ratio(here[0], 90), of_ratio(here[1], 83)]),
                     "At theta 0.99, of all conflicts. For the list those where a node's record lies: links are not "
                     "told apart by level, so that it is a lower bound.")


def conflict_kinds(runs):
    """B+tree conflicts by different keys / shared metadata / same record: 87-90, 6-10, 9-12 %."""
    shares, without = (conflict_shares(runs[p]) for p in (HOTTEST, LEAN_HOTTEST))
    kinds = ("different records", "shared metadata", "same record")
    here = [shares[n] for n in kinds]
    verdicts = [within(share, *bounds) for share, bounds in zip(here, ((87, 90), (6, 10), (9, 12)))]
    return Judgement(
        "E-F3e", "87-90; 6-10; 9-12 %", numbers(here) + " %", worst(verdicts),
        "The machine sorts each conflict by the bytes of its first clash, and a version is metadata; the paper took "
        "versions or shared records away and looked at what remained, so that its shares sum to more than 100. Without "
        f"versions: {numbers(without[n] for n in kinds)} %.")


def list_conflict_kinds(runs):
    """Skip list conflicts by different records / same record: 92-99, 1-7 %."""
    shares = conflict_shares(runs[Point(HTM_LIST, 0.99)])
    here = [shares["different records"], shares["same record"]]
    verdicts = [within(share, *bounds) for share, bounds in zip(here, ((92, 99), (1, 7)))]
    return Judgement("E-F3f", "92-99; 1-7 %", numbers(here) + " %", worst(verdicts),
                     "At theta 0.99. Within our hot region all keys are asked for alike, so that two threads seldom "
                     "meet on one.")


def ours(runs, theta, told):
    return told_of_ours(runs, Point(OUR_TREE, theta), told)


def hottest_tree(runs):
    """Euno-B+Tree over HTM-B+Tree at theta 0.99, 16 threads (18.6 over 1.7 Mops/s): 11 x."""
    euno, htm, without = (runs[p]["mops"] for p in (Point(EUNO_TREE, 0.99), HOTTEST, LEAN_HOTTEST))

    def told(change):
        first, second = (runs[change(p)]["mops"] for p in (Point(EUNO_TREE, 0.99), HOTTEST))
        return f"{number(first / second)} x ({number(first)} over {number(second)})"

    return Judgement("E-F10a", "11 x (18.6 over 1.7 Mops/s)",
                     f"{number(euno / htm)} x ({number(euno)} over {number(htm)} Mops/s)", of_gain(euno / htm, 11),
                     f"The ratio hangs on how deep the baseline falls: to 1.7 in the paper. Over the tree without "
                     f"versions ({number(without)} Mops/s): {number(euno / without)} x; " + beside_retries(told)
                     + ours(runs, 0.99, lambda r: f"{number(r['mops'] / htm)} x ({number(r['mops'])} Mops/s)"))


def over_masstree(claim, runs, thetas, paper, more=""):
    """The geometric mean over the thetas meant."""
    ratios = [runs[a]["mops"] / runs[b]["mops"] for a, b in zip(curve(EUNO_TREE, thetas), curve(MASSTREE, thetas))]
    here = speedup(runs, curve(EUNO_TREE, thetas), curve(MASSTREE, thetas))
    return Judgement(claim, f"{paper} x", f"{number(here)} x", of_gain(here, paper),
                     f"The geometric mean of {numbers(ratios)} at theta {', '.join(map(str, thetas))}." + more)


def low_tree(runs):
    """Euno-B+Tree over Masstree, low contention: 1.3685 x."""
    return over_masstree("E-F10b", runs, LOW, 1.3685)


def high_tree(runs):
    """Euno-B+Tree over Masstree, high contention: 1.65 x."""
    masstree = runs[Point(MASSTREE, 0.99)]["mops"]
    more = (" Masstree has no regions that could lose; a request of Euno-B+Tree that holds its key's lock bit loses up "
            "to 128 times while others wait for the bit. At 0.99, Masstree as it is: "
            + beside_retries(lambda change: f"{number(runs[change(Point(EUNO_TREE, 0.99))]['mops'] / masstree)} x"))
    if all(p in runs for p in curve(OUR_TREE, HIGH)):
        more += f" {OURS} over Masstree: {number(speedup(runs, curve(OUR_TREE, HIGH), curve(MASSTREE, HIGH)))} x."
    return over_masstree("E-F10c", runs, HIGH, 1.65, more)


def instructions(runs):
    """Instructions per operation, Masstree over Euno-B+Tree at theta 0.5: 2.10 x."""
    masstree, euno, htm = (runs[Point(index, 0.5)]["accesses_per_op"] for index in (MASSTREE, EUNO_TREE, HTM_TREE))
    return Judgement("E-F10d", "2.1 x", f"{number(masstree / euno)} x ({number(masstree)} over {number(euno)})",
                     of_gain(masstree / euno, 2.1),
                     "The machine counts accesses to memory, not instructions; at theta 0.5 little is retried. "
                     f"HTM-B+Tree makes {number(htm)}: scattered leaves and marks add {number(euno - htm)} to that, "
                     f"while our Masstree with all its versions is only {number(masstree - htm)} above.")


def aborts(runs):
    """Aborts per operation at theta 0.99: HTM-B+Tree 60.3, Euno-B+Tree 1.9."""
    both = HOTTEST, Point(EUNO_TREE, 0.99)
    here = [runs[p]["aborts_per_op"] for p in both]
    return Judgement("E-F11", "60.3; 1.9 aborts/op", numbers(here) + " aborts/op",
                     worst([of_ratio(here[0], 60.3), of_ratio(here[1], 1.9)]),
                     lean(runs, 0.99, "aborts_per_op", "aborts/op") + " Otherwise "
                     + beside_retries(lambda change: numbers(runs[change(p)]["aborts_per_op"] for p in both))
                     + ours(runs, 0.99, lambda r: f"{number(r['aborts_per_op'])} aborts/op"))


def low_list(runs):
    """Euno-SkipList over fine-grained-lock / lock-free skip list, low contention: 3.47, 2.10 x."""
    here = [speedup(runs, curve(EUNO_LIST, LOW_HOT), curve(other, LOW_HOT)) for other in (LOCK_LIST, LOCK_FREE_LIST)]
    return Judgement("E-F12a", "3.47; 2.1 x", numbers(here) + " x", worst(map(of_gain, here, (3.47, 2.1))),
                     f"Geometric means over theta {', '.join(map(str, LOW_HOT))}. Where little collides all three "
                     "follow the same links from line to line, and that takes the time: accesses/op at theta 0 "
                     + numbers(runs[Point(index, 0)]["accesses_per_op"] for index in (EUNO_LIST, LOCK_LIST,
                                                                                      LOCK_FREE_LIST))
                     + " (Euno, locks, lock-free).")


def high_list(runs):
    """Euno-SkipList over HTM-skip list, high contention: 2.89 x."""
    pairs = list(zip(curve(EUNO_LIST, HIGH_HOT), curve(HTM_LIST, HIGH_HOT)))
    here = speedup(runs, *zip(*pairs))
    return Judgement("E-F12b", "2.89 x", f"{number(here)} x", of_gain(here, 2.89),
                     f"The geometric mean of {numbers(runs[a]['mops'] / runs[b]['mops'] for a, b in pairs)} at theta "
                     f"{', '.join(map(str, HIGH_HOT))}. At 0.99 " + beside_retries(
                         lambda change: f"{number(speedup(runs, *([change(p)] for p in pairs[-1])))} x"))


def list_aborts(runs):
    """Aborts removed by Euno-SkipList under high contention: 95 %."""
    htm, euno = (runs[Point(index, 0.99)]["aborts_per_op"] for index in (HTM_LIST, EUNO_LIST))
    removed = 100 * (1 - euno / htm) if htm else 0
    return Judgement("E-F13", "95 %", f"{number(removed)} % ({number(htm)} to {number(euno)} aborts/op)",
                     of_ratio(removed, 95), "At theta 0.99.")


TREE, LIST = curve(HTM_TREE), curve(HTM_LIST)
TESTS = {
    "E-F2a": Test(hot_throughput, [*TREE, *LEAN_TREE], turned=[HOT]),
    "E-F2b": Test(stable, [*TREE, *LIST]),
    "E-F3a": Test(abort_growth, [*TREE, Point(HTM_TREE, 0.9, knobs=LEAN)], turned=[HOT]),
    "E-F3b": Test(list_abort_growth, LIST, turned=[Point(HTM_LIST, 0.99)]),
    "E-F3c": Test(wasted, [*TREE, LEAN_HOTTEST], turned=[HOTTEST]),
    "E-F3d": Test(leaf_level, [*TREE, *LIST]),
    "E-F3e": Test(conflict_kinds, [*TREE, LEAN_HOTTEST], turned=[HOTTEST]),
    "E-F3f": Test(list_conflict_kinds, LIST),
    "E-F10a": Test(hottest_tree, [*TREE, *curve(EUNO_TREE), *LEAN_TREE], curve(OUR_TREE),
                   [Point(EUNO_TREE, 0.99), HOTTEST], [OUR_HOTTEST]),
    "E-F10b": Test(low_tree, [*curve(EUNO_TREE), *curve(MASSTREE)],
                   turned=[Point(EUNO_TREE, 0.5), Point(MASSTREE, 0.5)]),
    "E-F10c": Test(high_tree, [*curve(EUNO_TREE), *curve(MASSTREE)],
                   [*curve(HTM_MASSTREE), *curve(OUR_TREE)],
                   [Point(EUNO_TREE, 0.99), Point(MASSTREE, 0.99)]),
    "E-F10d": Test(instructions, [Point(index, 0.5) for index in (EUNO_TREE, MASSTREE, HTM_TREE)]),
    "E-F11": Test(aborts, [*TREE, *curve(EUNO_TREE), LEAN_HOTTEST], curve(OUR_TREE),
                  [HOTTEST, Point(EUNO_TREE, 0.99)], [OUR_HOTTEST]),
    "E-F12a": Test(low_list, [*curve(EUNO_LIST), *curve(LOCK_LIST), *curve(LOCK_FREE_LIST)],
                   turned=[Point(index, 0) for index in (EUNO_LIST, LOCK_LIST, LOCK_FREE_LIST)]),
    "E-F12b": Test(high_list, [*curve(EUNO_LIST), *LIST], turned=[Point(EUNO_LIST, 0.99), Point(HTM_LIST, 0.99)]),
    "E-F13": Test(list_aborts, [*curve(EUNO_LIST), *LIST], turned=[Point(EUNO_LIST, 0.99), Point(HTM_LIST, 0.99)]),
}
