"""Several seeds of one point: its run is that of the median seed."""


def by_point(answers):
    """(point, seed) -> answer becomes point -> its answers, the slowest first."""
    found = {}
    for (point, _), answer in answers.items():
        found.setdefault(point, []).append(answer)
    for runs in found.values():
        runs.sort(key=lambda r: r["mops"])
    return found


def of_median_seed(runs):
    """Of runs that ascend: the middle one, with the seeds' extremes beside it."""
    return {**runs[len(runs) // 2], "mops_min": runs[0]["mops"], "mops_max": runs[-1]["mops"],
            "seeds": sorted(r["seed"] for r in runs)}


def runs_of(answers):
    """point -> the run of the median seed."""
    return {point: of_median_seed(runs) for point, runs in by_point(answers).items()}
