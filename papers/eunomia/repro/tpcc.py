"""Paper 003 on a database over its indexes: figure 18, TPC-C with the standard mix.

DBX is HTM-B+Tree under DBX's commit, Euno-DBX Euno-B+Tree under the same, Silo Masstree under
Silo's. DBX's commit is the one whose region writes a word of each record (dbx_locking_commit.hpp
says why); what the one makes that copies rows inside stands beside. Figure 18a says nothing of its
threads: section 6's 16. Averages over the points of a figure; the paper does not say over which.
"""

from panels import Figure, Panel
from verdicts import (Judgement, conflicts_by_place, number, numbers, of_gain, of_ratio,
                      shares_told, worst)

from .runs import (COPYING_DBX, COPYING_EUNO_DBX, DBX, DRAWN, EUNO_DBX, EUNO_TREE, FAMILY, HTM_TREE,
                   LABELS, LOOKS, MASSTREE, OUR_DBX, OUR_TREE, SILO, facts, tpcc,
                   warehouses_of)

PLACES = {"by warehouses": (1, 2, 4, 8, 16), "by threads": (1, 4, 8, 16, 20)}
HOT = 1  # warehouses, in figure 18b
MOST = 20  # threads
OURS = "DBX's commit over euno-btree+ (ours)"
# Of Euno-DBX over each: least, most, average.
PAPER = {"by warehouses": {DBX: (1.07, 12.14, 3.60), SILO: (1.42, 2.01, 1.65)},
         "by threads": {DBX: (1.60, 16.26, 9.07), SILO: (1.78, 2.35, 1.99)}}
PAPER_TPS = 337_000
# Each has the look of its index.
DATABASES = {DBX: ("DBX", HTM_TREE), EUNO_DBX: ("Euno-DBX", EUNO_TREE), SILO: ("Silo", MASSTREE),
             OUR_DBX: ("DBX over euno-btree+ (ours)", OUR_TREE)}


def by(figure, *databases):
    return [tpcc(d, n) if figure == "by warehouses" else tpcc(d, HOT, n)
            for d in databases for n in PLACES[figure]]


def figure_18(runs):
    def tps(figure, x_of):
        return {name: runs.line(by(figure, database), x_of, of=lambda y: 1000 * y)
                for database, (name, _) in DATABASES.items()}

    y = "1000 transactions/s"
    looks = {name: LOOKS[LABELS[index]] for name, index in DATABASES.values()}
    return Figure("E-F18", "TPC-C, standard mix", [
        Panel("16 threads", "warehouses", y, "lines", tps("by warehouses", warehouses_of),
              even=True),
        Panel("1 warehouse", "threads", y, "lines", tps("by threads", lambda p: p.threads),
              {"Euno-DBX": [(MOST, PAPER_TPS / 1000)]})], 2, **DRAWN | {"looks": looks},
                  footnote="The paper's text gives ratios beside the one number.")


def over(runs, figure, first, second):
    return runs.ratios(by(figure, first), by(figure, second))


def extremes(ratios):
    least, average, most = facts(ratios)
    return least, most, average


def told_of_run(name, run):
    regions = run["commit_regions"]
    text = (f"{name}: {number(run['mops'] * 1000)} k tps, {number(run['aborts_per_op'])} aborts "
            f"and {number(run['repeated'] / run['requests'])} repetitions a transaction")
    if regions["commits"]:
        places = shares_told(conflicts_by_place(run), 3, none="no conflicts")
        text += (f", {number(regions['fallback_pct'])} % of the commits that began as regions took "
                 f"the lock; conflicts: {places}")
    return text


def judged(runs, figure, others, note):
    """Least, most and average of Euno-DBX over each of the others."""
    here = [extremes(over(runs, figure, EUNO_DBX, other)) for other in others]
    paper = [PAPER[figure][other] for other in others]
    return Judgement("; ".join(map(numbers, paper)) + " x", "; ".join(map(numbers, here)) + " x",
                     worst(of_gain(h, p) for ours, theirs in zip(here, paper)
                           for h, p in zip(ours, theirs)), note)


def points_told(runs, figure, other):
    ratios = over(runs, figure, EUNO_DBX, other)
    return ", ".join(f"{place}: {number(r)}" for place, r in zip(PLACES[figure], ratios))


def ours_told(runs, figure, other):
    if not runs.has(by(figure, OUR_DBX)):
        return ""
    return f" {OURS} over it: {numbers(extremes(over(runs, figure, OUR_DBX, other)))} x."


def warehouses(runs, other, *told):
    figure = "by warehouses"
    runs_told = "; ".join(told_of_run(DATABASES[d][0], runs[tpcc(d)]) for d in (other, *told))
    return judged(runs, figure, [other],
                  f"16 threads; by warehouses {points_told(runs, figure, other)}."
                  f"{ours_told(runs, figure, other)} With one warehouse, {runs_told}.")


def copying_told(runs):
    euno, dbx = tpcc(COPYING_EUNO_DBX), tpcc(COPYING_DBX)
    if not runs.has((euno, dbx)):
        return ""
    return (" Under a commit that copies rows inside its region "
            f"{number(runs[euno]['mops'] / runs[dbx]['mops'])} x there "
            f"({told_of_run('DBX', runs[dbx])}).")


TURNED = [tpcc(EUNO_DBX), tpcc(DBX)]


@FAMILY.claim("E-F18a", by("by warehouses", EUNO_DBX, DBX), figure_18, turned=TURNED,
              beside=[*by("by warehouses", OUR_DBX), tpcc(COPYING_EUNO_DBX), tpcc(COPYING_DBX)])
def warehouses_over_dbx(runs):
    """Euno-DBX over DBX by warehouses: least 1.07, most 12.14, on average 3.60 x."""
    made = warehouses(runs, DBX, EUNO_DBX)
    made.note += copying_told(runs)
    return made


@FAMILY.claim("E-F18b", by("by warehouses", EUNO_DBX, SILO), figure_18,
              beside=by("by warehouses", OUR_DBX))
def warehouses_over_silo(runs):
    """Euno-DBX over Silo by warehouses: least 1.42, most 2.01, on average 1.65 x."""
    return warehouses(runs, SILO)


@FAMILY.claim("E-F18c", by("by threads", EUNO_DBX, DBX, SILO), figure_18, turned=TURNED,
              beside=by("by threads", OUR_DBX))
def threads_over_both(runs):
    """One warehouse by threads, over DBX: 1.60, 16.26, 9.07 x; over Silo: 1.78, 2.35, 1.99 x."""
    return judged(runs, "by threads", [DBX, SILO],
                  f"By threads, over DBX {points_told(runs, 'by threads', DBX)}; over Silo "
                  f"{points_told(runs, 'by threads', SILO)}." + ours_told(runs, "by threads", DBX))


@FAMILY.claim("E-F18d", by("by threads", EUNO_DBX), figure_18, beside=[tpcc(OUR_DBX, HOT, MOST)])
def most_threads(runs):
    """One warehouse, 20 threads, Euno-DBX: 337,000 transactions a second."""
    here = runs[tpcc(EUNO_DBX, HOT, MOST)]["mops"] * 1e6
    best = max(runs.values(by("by threads", EUNO_DBX))) * 1e6
    ours = tpcc(OUR_DBX, HOT, MOST)
    return Judgement(f"{PAPER_TPS} tps", f"{number(here)} tps", of_ratio(here, PAPER_TPS),
                     f"The most with any number of threads: {number(best)}."
                     + (f" {OURS}: {number(runs[ours]['mops'] * 1e6)}." if ours in runs else ""))
