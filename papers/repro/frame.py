"""The runs as one pandas data frame, from which judges and figures read."""

import statistics

import pandas as pd


COLUMNS = ["point", "seed_asked", "run", "figure", "variant", "series", "points"]


def frame_of(answers):
    """A row for each run and seed, and one for each series of an experiment that answers with
    series. `answers`: (point, seed) or name -> answer."""
    rows = []
    for key, answer in answers.items():
        if isinstance(key, str):
            figure, _, turned = key.partition(" ")
            for one in answer["series"]:
                variant, name = one["name"].split(" | ", 1) if turned else ("", one["name"])
                points = [(float(x), float(y)) for x, y in one["points"]]
                rows.append((None, None, None, figure, variant, name, points))
        else:
            rows.append((*key, answer, None, None, None, None))
    return pd.DataFrame(rows, columns=COLUMNS, dtype=object)


class Runs:
    """Of each point the run of its median seed: a row of `table`, whose index is the points."""

    def __init__(self, frame, flags, family, table=None, variant=""):
        self.frame, self.flags, self.family, self.variant = frame, flags, family, variant
        self.table = self.settled() if table is None else table

    def settled(self):
        """The run of the median seed, with the seeds' extremes beside it."""
        made = {}
        for point, runs in self.frame.groupby("point", sort=False)["run"]:
            runs = sorted(runs, key=lambda r: r["mops"])
            made[point] = {**runs[len(runs) // 2], "mops_min": runs[0]["mops"],
                           "mops_max": runs[-1]["mops"], "seeds": sorted(r["seed"] for r in runs)}
            asked = {**dict(point.more), **dict(point.knobs)}
            made[point] |= {name: asked[name] for name in self.family.kept if name in asked}
            for name in (n for n in self.family.spread if n in runs[0]):
                values = [r[name] for r in runs]
                made[point] |= {name: statistics.median(values), f"{name}_min": min(values),
                                f"{name}_max": max(values)}
        index = pd.Index(list(made), dtype=object)
        table = pd.DataFrame(list(made.values()), index=index, dtype=object)
        table["run"] = pd.Series(list(made.values()), index=index, dtype=object)
        return table

    def first_seed(self):
        rows = self.frame["seed_asked"] == self.flags.seed
        return Runs(self.frame[rows], self.flags, self.family)

    def under(self, change):
        """The runs with something changed, in the places of those without."""
        there = {p: q for p in self.table.index if (q := change(p)) in self.table.index}
        table = self.table.loc[list(there.values())].set_axis(pd.Index(list(there), dtype=object))
        return Runs(self.frame, self.flags, self.family, table, self.variant)

    def varied(self, variant):
        return Runs(self.frame, self.flags, self.family, self.table, variant)

    def __contains__(self, point):
        return point in self.table.index

    def __getitem__(self, point):
        return self.table.loc[point]

    def has(self, points):
        return all(p in self for p in points)

    def tell(self, measure):
        """Returns whether the runs have `measure`; native runs lack some."""
        return measure in self.table

    def of_machine(self, note):
        """Returns `note` for simulated runs, and nothing for native ones."""
        return "" if self.flags.host else note

    def values(self, points, measure="mops"):
        return self.table.loc[list(points), measure].tolist()

    def ratios(self, first, second, measure="mops"):
        """Of each of the first points over its second."""
        pairs = zip(self.values(first, measure), self.values(second, measure), strict=True)
        return [a / b for a, b in pairs]

    def ratio(self, first, second, measure="mops"):
        return self[first][measure] / self[second][measure]

    def documents(self):
        """The runs as they are: no knob is turned."""
        return [run for point, run in self.table["run"].items() if not point.knobs]

    def line(self, points, x_of, measure="mops", of=lambda y: y):
        """[(x, y, least, most)] for a figure; nothing where a point was not run."""
        if not self.has(points) or not self.tell(measure):
            return []
        spread = [m for m in (f"{measure}_min", f"{measure}_max") if m in self.table]
        rows = self.table.loc[list(points), [measure, *spread]].itertuples(index=False, name=None)
        return [(x_of(p), *map(of, row)) for p, row in zip(points, rows)]

    def curves(self, figure, variant=None):
        """series name -> [(x, y)]"""
        variant = self.variant if variant is None else variant
        rows = (self.frame["figure"] == figure) & (self.frame["variant"] == variant)
        return dict(self.frame.loc[rows, ["series", "points"]].itertuples(index=False, name=None))

    def variants(self, figures):
        rows = self.frame["figure"].isin(figures) & (self.frame["variant"] != "")
        return list(dict.fromkeys(self.frame.loc[rows, "variant"]))
