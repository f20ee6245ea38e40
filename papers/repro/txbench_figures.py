"""Figures 5.4 and 5.5 of paper 004 as data. The thesis's curves are not digitised, and its text has numbers of 64 clients or of none in particular, so that no
mark of its stands beside ours."""

from panels import Figure, Panel, with_something
from txbench_claims import ABORTED, TRANSACTIONAL
from txbench_runs import (BESIDE, CLIENTS, EXCHANGING, HLE, LATCHES, LOCK_MUTEX, MANY_CLIENTS, PTHREAD, RETRIED, SHARDED,
                          THESIS, UNMODIFIED, USUAL)

LABELS = {HLE: "low-level HLE", RETRIED: "low-level, retried", PTHREAD: "pthread elision", LOCK_MUTEX: "lock mutex",
          LATCHES: "transaction latches", SHARDED: "sharded, elided (ours)", EXCHANGING[LOCK_MUTEX]: "lock mutex, TAS-T"}
SHOWN = {HLE: "HLE", RETRIED: "retry", PTHREAD: "pthr.", LOCK_MUTEX: "lock\nmutex", LATCHES: "trans.\nlatch", SHARDED: "shards"}
# Bottom up, as figure 5.6 groups them.
CAUSES = {"conflict with another": ("conflict",), "capacity": ("write capacity", "read capacity"),
          "the program's own": ("explicit",), "pause or system call": ("system call",), "two locks elided": ("elision", "nesting"),
          "interrupt, page fault": ("interrupt", "page fault")}
OVER = "over unmodified"


def line(runs, scene, variant, places, value):
    if any(scene.point(variant, n) not in runs for n in places):
        return []
    return [(n, value(runs, scene, variant, n)) for n in places]


def over_unmodified(runs, scene, variant, n):
    return runs[scene.point(variant, n)]["mops"] / runs[scene.point(UNMODIFIED, n)]["mops"]


def figure_5_4(runs):
    def panel(title, scene, places, variants):
        return Panel(title, "clients", OVER, "lines",
                     {LABELS[v]: line(runs, scene, v, places, over_unmodified) for v in variants}, even=True)
    more = (*THESIS, SHARDED, EXCHANGING[LOCK_MUTEX])
    return Figure("S-5.4", "txbench over a lock system with elided latches: throughput over unmodified", [
        panel("4 cores, thinking clients", USUAL, CLIENTS, (*THESIS, SHARDED)),
        panel("20 cores, thinking clients", BESIDE["thinking"], MANY_CLIENTS, more),
        panel("20 cores, clients that never think", BESIDE["busy"], MANY_CLIENTS, more)], 3,
        "40 clients: two on each core. 64 clients on four cores (the thesis's 29 %) are not simulated.")


def causes(runs, scene, clients):
    variants = (*THESIS, SHARDED)
    if any(scene.point(v, clients) not in runs for v in variants):
        return {}
    found = {v: runs[scene.point(v, clients)] for v in variants}
    return {name: [(SHOWN[v], sum(run["aborts_by_reason"].get(r, 0) for r in reasons) / run["requests"]) for v, run in found.items()]
            for name, reasons in CAUSES.items()}


def figure_5_5(runs):
    def panels(where, scene, places):
        def lines(title, measure):
            return Panel(f"{where}: {title}", "clients", "%", "lines",
                         {LABELS[v]: line(runs, scene, v, places, lambda r, s, variant, n: r[s.point(variant, n)][measure])
                          for v in (*THESIS, SHARDED)}, even=True)
        return [lines("transactional of busy cycles", TRANSACTIONAL), lines("aborted of transactional ones", ABORTED),
                Panel(f"{where}: {places[-1]} clients", "", "aborts per db transaction", "stacks", causes(runs, scene, places[-1]))]
    return Figure("S-5.5", "txbench over a lock system with elided latches: cycles in transactions, and why these abort",
                  panels("4 cores", USUAL, CLIENTS) + panels("20 cores", BESIDE["busy"], MANY_CLIENTS), 3,
                  "4 cores: clients think as long as they are served; 20 cores: they never think. 40 clients: two on each core.")


FIGURES = {"S-5.4": figure_5_4, "S-5.5": figure_5_5}


def drawn(ids, runs):
    return with_something([FIGURES[i](runs) for i in ids])
