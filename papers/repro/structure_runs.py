"""What the structures' claims run beside their figures: the figures with one thing changed at a time, and the same programs
on real threads of this machine, whose numbers stand apart from simulated ones."""

import figures
import structure_claims
import structure_titles
from outputs import table
from verdicts import number
from worker import ask

ROUNDS = {"smoke": 5, "full": 15}


def requests(ids, machine_file, scale, seed):
    return {structure_claims.turned_id(figure): {"experiment": structure_claims.turned_id(figure),
                                                 "machine_file": str(machine_file), "seed": seed, "full": scale == "full"}
            for figure in structure_claims.turned_figures(ids)}


def turned(ids, answers):
    """figure -> its series under all variants."""
    return {figure: figures.series_of(answers[structure_claims.turned_id(figure)])
            for figure in structure_claims.turned_figures(ids)}


def native(program, wanted, scale, seed, asking=ask):
    """The figures among `wanted` that run on real threads, one after the other so that none disturbs another."""
    if not program:
        return []
    return [asking(program, {"experiment": figure, "seed": seed, "full": scale == "full", "rounds": ROUNDS[scale]})
            for figure in wanted if figure in structure_claims.USE_CASES]


def sensitivity_told(rows):
    if not rows:
        return ""
    text = "\nstructures, sensitivity: one thing changed at a time (a smoke run: the first seed alone)\n"
    for claim in dict.fromkeys(row["claim"] for row in rows):
        text += "\n" + table((claim, "here", "verdict"), [(row["changed"], row["here"], row["verdict"])
                                                          for row in rows if row["claim"] == claim], (32, 66, 8))
    return text


def native_told(answers):
    """Its own table, under a heading that says whose numbers they are."""
    if not answers:
        return ""
    first = answers[0]
    text = (f"\nnative, not simulated: this machine ({first['native']}, {first['cpus']} CPUs), operations per ms, medians of "
            f"{first['rounds']} rounds;\nno hardware transactions: {first['htm']}\n" if not has_regions(first) else
            f"\nnative, not simulated: this machine ({first['native']}, {first['cpus']} CPUs), operations per ms, medians of "
            f"{first['rounds']} rounds\n")
    for answer in answers:
        series = structure_claims.throughputs(figures.series_of(answer))
        xs = sorted({x for points in series.values() for x, _ in points})
        rows = [(name, *(number(dict(points)[x]) if x in dict(points) else "-" for x in xs))
                for name, points in series.items()]
        title, axis = structure_titles.TITLES[answer["id"]]
        names = structure_titles.BARS.get(answer["id"], {})
        text += f"\n{answer['id']}, native: {title}\n" + table((axis, *(names.get(x, f"{x:g}") for x in xs)), rows)
    return text


def has_regions(answer):
    return any(s["name"] == "HLE" for s in answer["series"])
