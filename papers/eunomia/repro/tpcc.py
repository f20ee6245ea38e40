"""Paper 003 on a database over its indexes: figure 18, TPC-C with the standard mix.

DBX is HTM-B+Tree under DBX's commit, Euno-DBX Euno-B+Tree under the same, Silo Masstree under
Silo's. Euno-DBX over the tree that marks hot keys is drawn and told too. DBX's commit is the one whose region writes a word of each record (dbx_locking_commit.hpp
says why); what the one makes that copies rows inside stands beside. Figure 18a says nothing of its
threads: section 6's 16. Averages over the points of a figure; the paper does not say over which.
"""

from panels import figure, lines
from verdicts import (Judgement, conflicts_by_place, number, numbers, of_gain, of_ratio, say,
                      shares_told, values, worst)

from .runs import (COPYING_DBX, COPYING_EUNO_DBX, DBX, DRAWN, EUNO_DBX, EUNO_TREE, FAMILY,
                   FEW_RETRIES, HTM_TREE, KEY_BITS, KEY_BITS_DBX, LABELS, LOOKS, MASSTREE, OUR_DBX,
                   OUR_TREE, RULES, SILO, facts, tpcc, warehouses_of)

PLACES = {"by warehouses": (1, 2, 4, 8, 16), "by threads": (1, 4, 8, 16, 20)}
OURS = "DBX's commit over euno-btree+ (ours)"
# Of Euno-DBX over each: least, most, average.
PAPER = {"by warehouses": {DBX: (1.07, 12.14, 3.60), SILO: (1.42, 2.01, 1.65)},
         "by threads": {DBX: (1.60, 16.26, 9.07), SILO: (1.78, 2.35, 1.99)}}
PAPER_TPS = 337_000
MOST, OUR_MOST = tpcc(EUNO_DBX, 1, 20), tpcc(OUR_DBX, 1, 20)  # one warehouse, most threads
EASIER = [tpcc(d, 1, 20, RULES + (FEW_RETRIES if d != SILO else ())) for d in (DBX, EUNO_DBX, SILO)]
COPYING_EUNO, COPYING = tpcc(COPYING_EUNO_DBX), tpcc(COPYING_DBX)
# Each has the look of its index.
DATABASES = {DBX: ("DBX", HTM_TREE), EUNO_DBX: ("Euno-DBX", EUNO_TREE),
             KEY_BITS_DBX: ("Euno-DBX, key bits", KEY_BITS), SILO: ("Silo", MASSTREE),
             OUR_DBX: ("DBX over euno-btree+ (ours)", OUR_TREE)}


def by(axis, *databases):
    return [tpcc(d, n) if axis == "by warehouses" else tpcc(d, 1, n)
            for d in databases for n in PLACES[axis]]


def panel(title, x, x_of, **more):
    series = {name: by(f"by {x}", database) for database, (name, _) in DATABASES.items()}
    return lines(title, x, "1000 transactions/s", series, x_of, of=lambda y: 1000 * y, **more)


FIGURE_18 = figure("E-F18", "TPC-C, standard mix", [
    panel("16 threads", "warehouses", warehouses_of, x_scale="log"),
    panel("1 warehouse", "threads", lambda p: p.threads,
          paper={"Euno-DBX": [(20, PAPER_TPS / 1000)]})], 2,
    footnote="The paper's text gives ratios beside the one number.",
    **DRAWN | {"looks": {name: LOOKS[LABELS[index]] for name, index in DATABASES.values()}})


def extremes(runs, axis, first, second):
    least, average, most = facts(runs.ratios(by(axis, first), by(axis, second)))
    return least, most, average


def told_of_run(name, run):
    regions = run.commit_regions
    text = say("{}: {} k tps, {} aborts and {} repetitions a transaction", name, run.mops * 1000,
               run.aborts_per_op, run.repeated / run.requests)
    if regions["commits"]:
        text += say(", {} % of the commits that began as regions took the lock; conflicts: {}",
                    regions["fallback_pct"],
                    shares_told(conflicts_by_place(run), 3, none="no conflicts"))
    return text


def judged(runs, axis, others, note):
    """Least, most and average of Euno-DBX over each of the others."""
    here = [extremes(runs, axis, EUNO_DBX, other) for other in others]
    paper = [PAPER[axis][other] for other in others]
    return Judgement("; ".join(map(numbers, paper)) + " x", "; ".join(map(numbers, here)) + " x",
                     worst(of_gain(h, p) for ours, theirs in zip(here, paper)
                           for h, p in zip(ours, theirs)), note,
                     values=values("x", sum(here, ()), sum(paper, ()), [
                         f"{DATABASES[other][0]} {which}" for other in others
                         for which in ("least", "most", "average")]))


def points_told(runs, axis, other):
    ratios = runs.ratios(by(axis, EUNO_DBX), by(axis, other))
    return ", ".join(f"{place}: {number(r)}" for place, r in zip(PLACES[axis], ratios))


def others_told(runs, axis, other):
    """Of the databases that are not judged."""
    return "".join(say(" {} over it: {} x.", name, extremes(runs, axis, database, other))
                   for database, name in ((KEY_BITS_DBX, DATABASES[KEY_BITS_DBX][0]),
                                          (OUR_DBX, OURS)) if runs.has(by(axis, database)))


def warehouses(runs, other, *told):
    runs_told = "; ".join(told_of_run(DATABASES[d][0], runs[tpcc(d)]) for d in (other, *told))
    return judged(runs, "by warehouses", [other],
                  f"16 threads; by warehouses {points_told(runs, 'by warehouses', other)}."
                  f"{others_told(runs, 'by warehouses', other)} With one warehouse, {runs_told}.")


DATABASE = "TPC-C over these indexes, which is only simulated"
TURNED = [tpcc(EUNO_DBX), tpcc(DBX)]


@FAMILY.claim("E-F18a", by("by warehouses", EUNO_DBX, DBX), FIGURE_18, simulated=DATABASE,
              turned=TURNED,
              beside=[*by("by warehouses", KEY_BITS_DBX, OUR_DBX), COPYING_EUNO, COPYING])
def warehouses_over_dbx(runs):
    made = warehouses(runs, DBX, EUNO_DBX)
    if runs.has((COPYING_EUNO, COPYING)):
        made.note += say(" Under a commit that copies rows inside its region {} x there ({}).",
                         runs.ratios([COPYING_EUNO], [COPYING]), told_of_run("DBX", runs[COPYING]))
    return made


FAMILY.claim("E-F18b", by("by warehouses", EUNO_DBX, SILO), FIGURE_18, simulated=DATABASE,
             beside=by("by warehouses", KEY_BITS_DBX, OUR_DBX), judge=lambda runs: warehouses(runs, SILO))
FAMILY.claim("E-F18c", by("by threads", EUNO_DBX, DBX, SILO), FIGURE_18, simulated=DATABASE,
             turned=TURNED,
             beside=by("by threads", KEY_BITS_DBX, OUR_DBX), judge=lambda runs: judged(
                 runs, "by threads", [DBX, SILO],
                 f"By threads, over DBX {points_told(runs, 'by threads', DBX)}; over Silo "
                 f"{points_told(runs, 'by threads', SILO)}." + others_told(runs, "by threads", DBX)))


@FAMILY.claim("E-F18d", by("by threads", EUNO_DBX), FIGURE_18, simulated=DATABASE,
              beside=[OUR_MOST, *EASIER])
def most_threads(runs):
    here = runs[MOST].mops * 1e6
    best = max(runs.values(by("by threads", EUNO_DBX))) * 1e6
    ours = say(" {}: {}.", OURS, runs[OUR_MOST].mops * 1e6) if OUR_MOST in runs else ""
    easier = ("" if not runs.has(EASIER) else
              say(" If nobody orders or pays at another warehouse, threads number their orders "
                  "themselves, each district is delivered to alone, and the regions of commits "
                  f"retry {FEW_RETRIES[0][1]} times: ")
              + "; ".join(say("{} {}", DATABASES[p.index][0], runs[p].mops * 1e6) for p in EASIER)
              + ".")
    return Judgement(f"{PAPER_TPS} tps", f"{number(here)} tps", of_ratio(here, PAPER_TPS),
                     f"The most with any number of threads: {number(best)}.{ours}{easier}",
                     values=values("tps", [here], [PAPER_TPS]))
