"""Claims of paper 003 about a database over its indexes: figure 18, TPC-C with the standard mix.

DBX is HTM-B+Tree under DBX's commit, Euno-DBX Euno-B+Tree under the same, Silo Masstree under Silo's. DBX's commit is the one whose
region writes a word of each record (dbx_locking_commit.hpp says why); what the one makes that copies rows inside stands beside. Figure 18a says nothing of its threads:
section 6's 16. Averages over the points of a figure; the paper does not say over which.
"""

from eunomia_runs import COPYING_DBX, COPYING_EUNO_DBX, DBX, EUNO_DBX, OUR_DBX, SILO, Test, tpcc
from verdicts import Judgement, number, numbers, of_gain, of_ratio, worst

WAREHOUSES = (1, 2, 4, 8, 16)
THREADS = (1, 4, 8, 16, 20)
HOT = 1  # warehouses, in figure 18b
MOST = 20  # threads
OURS = "DBX's commit over euno-btree+ (ours)"
# Of Euno-DBX over each: least, most, average.
PAPER = {"by warehouses": {DBX: (1.07, 12.14, 3.60), SILO: (1.42, 2.01, 1.65)},
         "by threads": {DBX: (1.60, 16.26, 9.07), SILO: (1.78, 2.35, 1.99)}}
PAPER_TPS = 337_000


def by_warehouses(database):
    return [tpcc(database, w) for w in WAREHOUSES]


def by_threads(database):
    return [tpcc(database, HOT, n) for n in THREADS]


FIGURES = {"by warehouses": by_warehouses, "by threads": by_threads}


def over(runs, figure, first, second):
    return [runs[a]["mops"] / runs[b]["mops"] for a, b in zip(FIGURES[figure](first), FIGURES[figure](second))]


def facts(ratios):
    return min(ratios), max(ratios), sum(ratios) / len(ratios)


def told_of_places(run):
    """Where most of a run's conflicts were, in per cent of all."""
    counts = {c["where"]: c["true_sharing"] + c["false_sharing"] for c in run["conflicts"]}
    total = sum(counts.values())
    if not total:
        return "no conflicts"
    most = sorted(counts.items(), key=lambda c: -c[1])[:3]
    return ", ".join(f"{where} {number(100 * count / total)} %" for where, count in most)


def told_of_run(name, run):
    regions = run["commit_regions"]
    return (f"{name}: {number(run['mops'] * 1000)} k tps, {number(run['aborts_per_op'])} aborts and "
            f"{number(run['repeated'] / run['requests'])} repetitions a transaction"
            + (f", {number(regions['fallback_pct'])} % of the commits that began as regions took the lock; conflicts: {told_of_places(run)}"
               if regions["commits"] else ""))


def judged(claim, runs, figure, others, more):
    """Least, most and average of Euno-DBX over each of the others."""
    here = {other: facts(over(runs, figure, EUNO_DBX, other)) for other in others}
    paper = PAPER[figure]
    return Judgement(claim, "; ".join(numbers(paper[o]) for o in others) + " x",
                     "; ".join(numbers(here[o]) for o in others) + " x",
                     worst(of_gain(h, p) for o in others for h, p in zip(here[o], paper[o])), more)


def points_told(runs, figure, other):
    places = WAREHOUSES if figure == "by warehouses" else THREADS
    ratios = over(runs, figure, EUNO_DBX, other)
    return ", ".join(f"{place}: {number(r)}" for place, r in zip(places, ratios))


def ours_told(runs, figure, other):
    if any(p not in runs for p in FIGURES[figure](OUR_DBX)):
        return ""
    return f" {OURS} over it: {numbers(facts(over(runs, figure, OUR_DBX, other)))} x."


def copying_told(runs):
    euno, dbx = tpcc(COPYING_EUNO_DBX), tpcc(COPYING_DBX)
    if euno not in runs or dbx not in runs:
        return ""
    return (f" Under a commit that copies rows inside its region {number(runs[euno]['mops'] / runs[dbx]['mops'])} x there "
            f"({told_of_run('DBX', runs[dbx])}).")


def warehouses_over_dbx(runs):
    """Euno-DBX over DBX by warehouses: least 1.07, most 12.14, on average 3.60 x."""
    return judged("E-F18a", runs, "by warehouses", [DBX],
                  f"16 threads; by warehouses {points_told(runs, 'by warehouses', DBX)}."
                  + ours_told(runs, "by warehouses", DBX)
                  + f" With one warehouse, {told_of_run('DBX', runs[tpcc(DBX)])}; {told_of_run('Euno-DBX', runs[tpcc(EUNO_DBX)])}." + copying_told(runs))


def warehouses_over_silo(runs):
    """Euno-DBX over Silo by warehouses: least 1.42, most 2.01, on average 1.65 x."""
    return judged("E-F18b", runs, "by warehouses", [SILO],
                  f"16 threads; by warehouses {points_told(runs, 'by warehouses', SILO)}."
                  + ours_told(runs, "by warehouses", SILO)
                  + f" With one warehouse, {told_of_run('Silo', runs[tpcc(SILO)])}.")


def threads_over_both(runs):
    """One warehouse by threads, over DBX: 1.60, 16.26, 9.07 x; over Silo: 1.78, 2.35, 1.99 x."""
    return judged("E-F18c", runs, "by threads", [DBX, SILO],
                  f"By threads, over DBX {points_told(runs, 'by threads', DBX)}; over Silo "
                  f"{points_told(runs, 'by threads', SILO)}." + ours_told(runs, "by threads", DBX))


def most_threads(runs):
    """One warehouse, 20 threads, Euno-DBX: 337,000 transactions a second."""
    here = runs[tpcc(EUNO_DBX, HOT, MOST)]["mops"] * 1e6
    best = max(runs[p]["mops"] for p in by_threads(EUNO_DBX)) * 1e6
    ours = tpcc(OUR_DBX, HOT, MOST)
    return Judgement("E-F18d", f"{PAPER_TPS} tps", f"{number(here)} tps", of_ratio(here, PAPER_TPS),
                     f"The most with any number of threads: {number(best)}."
                     + (f" {OURS}: {number(runs[ours]['mops'] * 1e6)}." if ours in runs else ""))


TURNED = [tpcc(EUNO_DBX), tpcc(DBX)]
TESTS = {
    "E-F18a": Test(warehouses_over_dbx, [*by_warehouses(EUNO_DBX), *by_warehouses(DBX)],
                   [*by_warehouses(OUR_DBX), tpcc(COPYING_EUNO_DBX), tpcc(COPYING_DBX)], TURNED),
    "E-F18b": Test(warehouses_over_silo, [*by_warehouses(EUNO_DBX), *by_warehouses(SILO)], by_warehouses(OUR_DBX)),
    "E-F18c": Test(threads_over_both, [p for d in (EUNO_DBX, DBX, SILO) for p in by_threads(d)], by_threads(OUR_DBX), TURNED),
    "E-F18d": Test(most_threads, by_threads(EUNO_DBX), [tpcc(OUR_DBX, HOT, MOST)]),
}
