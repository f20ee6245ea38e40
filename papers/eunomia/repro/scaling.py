"""Paper 003 on more threads and on what each design choice brings: figures 14 to 17."""

from dataclasses import replace

from panels import COLOURS, Panel, figure, lines
from verdicts import (AGREES_RATIO, DIFFERS, Judgement, compared, number, numbers, of_gain,
                      of_ratio, of_shape, say, values, within, worst)

from .runs import (DRAWN, EUNO_LIST, EUNO_TREE, FAMILY, HTM_LIST, HTM_MASSTREE, HTM_TREE, KEY_BITS,
                   KEY_BITS_STEP, LABELS, LEAN, LISTS, LIST_STEPS, MASSTREE, MOPS, OURS, OUR_TREE,
                   TREES, TREE_STEPS, at, beside_retries, told_of_key_bits, told_of_ours)

THREADS = (1, 4, 8, 16, 20)
TREE_THETAS = (0.2, 0.6, 0.9, 0.99)
LIST_THETAS = (0, 0.5, 0.7, 0.99)


def by_threads(indexes, *thetas):
    return [at(i, theta, threads=n) for i in indexes for theta in thetas for n in THREADS]


def most(theta, *indexes):
    return [at(index, theta, threads=20) for index in indexes]


def heights(runs, index, theta):
    """threads -> Mops/s"""
    return dict(zip(THREADS, runs.values(by_threads([index], theta))))


def stops_after(mops, threads):
    """More threads than that bring less than a quarter more; that many bring more than a quarter
    over one."""
    later = max(m for n, m in mops.items() if n > threads)
    return later < AGREES_RATIO * mops[threads] and mops[threads] > AGREES_RATIO * mops[1]


def still_scales(mops, threads):
    """The most threads bring over a quarter more than that many, and no step on the way loses."""
    later = [m for n, m in mops.items() if n >= threads]
    return later[-1] > AGREES_RATIO * later[0] and all(a < b for a, b in zip(later, later[1:]))


def by_theta(one, title, indexes, thetas, marks):
    return figure(one, title, [
        lines(f"theta {theta}", "threads", MOPS, {LABELS[i]: by_threads([i], theta)
                                                  for i in indexes},
              lambda p: p.threads, paper=marks.get(theta)) for theta in thetas], 2, **DRAWN)


FIGURE_14 = by_theta("E-F14", "B+trees by threads", TREES, TREE_THETAS, {
    0.99: {LABELS[EUNO_TREE]: [(20, 21.9)], LABELS[MASSTREE]: [(20, 13.1)]}})
FIGURE_15 = by_theta("E-F15", "Skip lists by threads", LISTS, LIST_THETAS, {})


@FAMILY.claim("E-F14a", by_threads((EUNO_TREE, MASSTREE), *TREE_THETAS), FIGURE_14,
              beside=[*by_threads([OUR_TREE], *TREE_THETAS), *by_threads([KEY_BITS], 0.99)],
              turned=most(0.99, EUNO_TREE, MASSTREE))
def most_threads(runs):
    here, [ours] = runs.values(most(0.99, EUNO_TREE, MASSTREE)), most(0.99, OUR_TREE)
    return compared(here, (21.9, 13.1), " Mops/s",
                    say("One over the other: {}; in the paper 1.67. With 8 threads{} Euno-B+Tree "
                        "makes {} Mops/s.", here[0] / here[1],
                        runs.of_machine(", all on one socket,"),
                        runs[at(EUNO_TREE, 0.99, threads=8)].mops)
                    + (f" {OURS}: {number(runs[ours].mops)} Mops/s." if ours in runs else ""),
                    names=(LABELS[EUNO_TREE], LABELS[MASSTREE]))


STOPPING = ((HTM_TREE, 0.6, 4), (HTM_MASSTREE, 0.2, 8))  # index, theta, threads


@FAMILY.claim("E-F14b", by_threads((HTM_TREE, HTM_MASSTREE), *TREE_THETAS), FIGURE_14,
              turned=[at(index, theta, threads=20) for index, theta, _ in STOPPING])
def trees_stop(runs):
    here, notes, holds = [], [], True
    for index, theta, threads in STOPPING:
        mops, [last] = heights(runs, index, theta), most(theta, index)
        holds = holds and stops_after(mops, threads)
        here.append(say("{} at {}, then at most {}", mops[threads], threads,
                        max(m for n, m in mops.items() if n > threads)))
        notes.append(say("{} with 20 threads at theta {} has {} aborts/op.", index, theta,
                         runs[last].aborts_per_op))
    return Judgement("after 4; after 8 threads", "; ".join(here) + " Mops/s", of_shape(holds),
                     " ".join(notes))


@FAMILY.claim("E-F15", by_threads(LISTS, 0.99), FIGURE_15,
              full=by_threads(LISTS, *LIST_THETAS[:-1]), turned=most(0.99, *LISTS))
def only_one_scales(runs):
    there = {index: heights(runs, index, 0.99) for index in LISTS}
    stopped = [index for index in LISTS if index != EUNO_LIST and stops_after(there[index], 4)]
    scales = still_scales(there[EUNO_LIST], 4)
    return Judgement("Euno scales; HTM, locks, lock-free stop after 4",
                     "; ".join(say("{} {} at 4, {} at 20", index, mops[4], mops[20])
                               for index, mops in there.items()) + " Mops/s",
                     of_shape(scales and len(stopped) == len(LISTS) - 1),
                     f"Euno-SkipList {'scales' if scales else 'does not scale'}; stopped after 4: "
                     f"{', '.join(stopped) or 'none'}. To stop: no number of threads beyond brings "
                     "a quarter more.")


# --- figures 16 and 17: theta 0.9, 20 threads ---

TREE, LIST = most(0.9, HTM_TREE, *TREE_STEPS), most(0.9, HTM_LIST, *LIST_STEPS)
# Not in the paper's figure: the control by key bits, and two indexes with adaptive control.
BITS, DONE_TREE, DONE_LIST, OUR_POINT = most(0.9, KEY_BITS_STEP, KEY_BITS, EUNO_LIST, OUR_TREE)
LEAN_TREE = replace(TREE[0], knobs=LEAN)
PAPER_TREE, PAPER_LIST = (1.83, 4.58, 11.10), (2.74, 6.55, 7.55)
STEPS = ("+split", "+partition", "+CCM")
ABLATIONS = {"B+tree": (TREE, PAPER_TREE, {"+CCM, key bits": BITS, "key bits, adaptive": DONE_TREE,
                                           OURS: OUR_POINT, "baseline, no versions": LEAN_TREE}),
             "skip list": (LIST, PAPER_LIST, {"+adaptive": DONE_LIST})}


def over(runs, points, baseline):
    """Of each step, the baseline's throughput being 1."""
    return runs.ratios(points, [baseline] * len(points))


def shares(speedups):
    """Of the whole reduction of the time for an operation, each step's share in per cent; none if
    there is none."""
    times = [1, *(1 / s for s in speedups)]
    whole = times[0] - times[-1]
    return [100 * (a - b) / whole for a, b in zip(times, times[1:])] if whole > 0 else None


def step_panel(title):
    points, paper, more = ABLATIONS[title]

    def made(runs):
        found = dict(zip(STEPS, points[1:])) | more
        steps = {"baseline": 1} | {name: over(runs, [p], points[0])[0]
                                   for name, p in found.items() if p in runs}
        steps = steps if runs.has(points) else {}
        whose = ({name: [(n, y)] for n, (name, y) in enumerate(those)}
                 for those in (steps.items(), zip(steps, (1, *paper))))
        return Panel(title, "", "speed-up over the baseline", "pairs", *whose)
    return made


def time_panel(runs):
    bars = {}
    for name, (points, paper, _) in ABLATIONS.items():
        if runs.has(points):
            name = name.removeprefix("B+")
            bars |= {f"{name}, here": shares(over(runs, points[1:], points[0])),
                     f"{name}, paper": shares(paper)}
    return Panel("", "", "% of the reduction", "stacks", {
        step: [(bar, parts[n]) for bar, parts in bars.items() if parts]
        for n, step in enumerate(STEPS)}, elsewhere=True)


ONE_LOOK = dict.fromkeys(("baseline", *STEPS, *ABLATIONS["B+tree"][2], *ABLATIONS["skip list"][2]),
                         (COLOURS[0], ""))
STEP_LOOKS = {step: (COLOURS[n], "") for step, n in zip(STEPS, (0, 6, 2))}
FIGURE_16 = figure("E-F16", "What each step brings, theta 0.9, 20 threads",
                   list(map(step_panel, ABLATIONS)), 2, **DRAWN | {"looks": ONE_LOOK})
FIGURE_17 = figure("E-F17", "Of the reduction of execution time, by step", [time_panel],
                   **DRAWN | {"looks": STEP_LOOKS},
                   footnote="The paper's bars from the numbers of its figure 16.")


def steps(runs, points, done, paper, note="", more=""):
    """What each step brings, beside the finished index and other numbers of retries."""
    def here(those):
        return over(those, points[1:], points[0])

    if done in runs:
        note += say("With adaptive control{}: {}. ", " of key bits" * (done == DONE_TREE),
                    runs.ratio(done, points[0]))
    alike = beside_retries(runs, "{}", lambda those: [here(those)])
    return compared(here(runs), paper, " x", f"{note}All steps {alike}{more}", of_gain,
                    names=STEPS)


@FAMILY.claim("E-F16a", [*TREE, LEAN_TREE], FIGURE_16, beside=[BITS, DONE_TREE, OUR_POINT],
              turned=[TREE[0], TREE[-1]], retried=[*TREE, BITS, DONE_TREE, OUR_POINT])
def tree_steps(runs):
    base, without = runs.values([TREE[0], LEAN_TREE])
    lean = [h * base / without for h in over(runs, TREE[1:], TREE[0])]
    return steps(runs, TREE, DONE_TREE, PAPER_TREE,
                 f"Over the tree without versions: {numbers(lean)}. ",
                 told_of_key_bits(runs, BITS, "{}", lambda run: [run.mops / base])
                 + told_of_ours(runs, OUR_POINT, "{}", lambda run: [run.mops / base]))


FAMILY.claim("E-F16b", LIST, FIGURE_16, beside=[DONE_LIST], turned=[LIST[0], LIST[-1]],
             retried=[*LIST, DONE_LIST],
             judge=lambda runs: steps(runs, LIST, DONE_LIST, PAPER_LIST))


@FAMILY.claim("E-F17", [*TREE, *LIST], FIGURE_17, retried=[*TREE, *LIST])
def time_shares(runs):
    tree, skip_list = (shares(over(runs, points[1:], points[0])) for points in (TREE, LIST))
    paper = "split 50, 70; partition 25-35; CCM 15 %"
    if tree is None or skip_list is None:
        return Judgement(paper, "no reduction", DIFFERS)
    verdicts = [of_ratio(tree[0], 50), of_ratio(skip_list[0], 70), within(tree[1], 25, 35),
                within(skip_list[1], 25, 35), of_ratio(tree[2], 15)]
    return Judgement(paper, say("tree {}; list {} %", tree, skip_list), worst(verdicts),
                     "From the runs of figure 16: of the time for an operation, in the order "
                     "split, partition, CCM.", values=values(
                         "%", (*tree, *skip_list[:2]), (50, (25, 35), 15, 70, (25, 35)),
                         ("tree split", "tree partition", "tree CCM", "list split",
                          "list partition")))
