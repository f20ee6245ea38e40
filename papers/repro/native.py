"""Runs the chosen figures on real threads of this machine, and reports them apart."""

import outputs
from verdicts import number
from worker import ask

ROUNDS = {"smoke": 5, "full": 15}


def answers(plan, flags, asking=ask):
    """The chosen series that run on real threads, one after the other so that none disturbs
    another."""
    names = dict.fromkeys(name for family, some, _ in plan for one in some
                          for name in one.series if name in family.native)
    how = {"seed": flags.seed, "full": flags.scale == "full", "rounds": ROUNDS[flags.scale]}
    return [asking(flags.native, {"experiment": name, **how}) for name in names if flags.native]


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
                     f"native, not simulated: {answer['native']}, {answer['cpus']} CPUs, medians "
                     f"of {answer['rounds']} rounds"))
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
