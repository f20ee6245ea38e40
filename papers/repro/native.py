"""Runs on real threads: all claims with --native, and some figures beside their simulated ones."""

from dataclasses import replace

import outputs
import scales
from claims import BadInput
from verdicts import number
from worker import WorkerFailed, ask

ROUNDS = {"smoke": 5, "full": 15}
NOT_OF_HOST = ("indexes", "experiments")  # what the program can do, and not what the machine is
# Of each thread: some 0.1 s a run. A native run costs little, and a short one measures its start.
OPERATIONS = {"smoke": 100_000, "full": 400_000}


def host_of(program, asking=ask):
    """What this machine is and what the program can run on it. Refuses a machine without hardware
    transactions."""
    if not program:
        raise BadInput("--native: needs --native-worker")
    host = asking(program, {"list": "all"})
    if not host["rtm_commits"]:
        raise WorkerFailed(f"--native: no hardware transaction commits here: {host['htm']}; "
                           "see 'elidex doctor'")
    return host


def machine_of(host):
    return {name: value for name, value in host.items() if name not in NOT_OF_HOST}


def broken(experiment, asked, failed):
    """Why a run that the experiment needs failed; none if all ended. What is drawn beside it may
    fail."""
    needed = {*experiment.points, *experiment.once, *experiment.turned, *experiment.retried}
    return next((why for key, why in failed.items() if key in asked and (
        key in experiment.series if isinstance(key, str) else
        key[0] in needed or replace(key[0], knobs=()) in needed)), None)


def unfit(experiment, host):
    """Returns the reasons why this machine cannot run the experiment; empty if it can."""
    if experiment.formula:
        return ["it is a formula"]
    if experiment.simulated:
        return [f"it needs {experiment.simulated}"]
    if experiment.by_prefix and not host["hle_advertised"]:
        return ["it needs HLE"]
    threads = max([*(p.threads for p in experiment.points),
                   *(host["experiments"].get(name, 0) for name in experiment.series)], default=0)
    lacks = [f"{name} has no native form" for name in experiment.series
             if name not in host["experiments"]]
    return lacks + ([f"it needs {threads} CPUs"] if threads > host["cpus"] else [])


def told_of(host, scale):
    cpus = host["cpus"]
    rounds = ROUNDS[scales.lengths(scale)]
    return f"{host['native']}, {cpus} CPU{'s' * (cpus > 1)}, medians of {rounds} rounds"


def beside(plan, flags, asking=ask):
    """The chosen series that run on real threads, too, one after the other so that none disturbs
    another."""
    names = dict.fromkeys(name for family, some, _ in plan for one in some
                          for name in one.series if name in family.native)
    lengths = scales.lengths(flags.scale)
    how = {"seed": flags.seed, "full": lengths == "full", "rounds": ROUNDS[lengths]}
    return [asking(flags.native_worker, {"experiment": name, **how}) for name in names
            if flags.native_worker]


def figures(plan, found, flags):
    """(figure, what its footnote says)"""
    from frame import Runs, frame_of

    made = []
    for answer in found:
        family, figure = next((family, figure) for family, some, _ in plan for one in some
                              for name, figure in zip(one.series, one.figure)
                              if name == answer["id"])
        runs = Runs(frame_of({answer["id"]: answer}), flags, family)
        made.append((figure(runs).without_empty_panels(),
                     f"native, not simulated: {told_of(answer, flags.scale)}"))
    return made


def told(plan, found, flags):
    """A table of its own, under a heading that says whose numbers they are."""
    if not found:
        return ""
    first, regions = found[0], {family.regions for family, *_ in plan}
    text = (f"\nnative, not simulated: this machine ({first['native']}, {first['cpus']} CPUs), "
            f"operations per ms, medians of {first['rounds']} rounds")
    text += "\n" if any(s["name"] in regions for s in first["series"]) else (
        f";\nno hardware transactions: {first['htm']}\n")
    for figure, _ in figures(plan, found, flags):
        panel = figure.panels[0]
        xs = sorted({x for points in panel.here.values() for x, _ in points})
        rows = [(name, *(number(dict(points)[x]) if x in dict(points) else "-" for x in xs))
                for name, points in panel.here.items()]
        text += f"\n{figure.id}, native: {figure.title}\n" + outputs.table(
            (panel.x, *(panel.names.get(x, f"{x:g}") for x in xs)), rows)
    return text
