"""Experiments as the papers register them: what runs, how it is judged, what is drawn.

    FAMILY = Turned("sensitivity", machines=(MACHINE,), size=size, knobs=knobs, listed=True)

    @FAMILY.claim("E-F2a", [*TREE, *LEAN_TREE], FIGURE_2, turned=[HOT])
    def hot_throughput(runs):
        '''The test's wording, where it says more than claims.csv.'''
        return Judgement(paper, here, verdict, note)

A package papers/*/repro has FAMILIES, a tuple of them; the runner finds it by its place.
"""

import functools
import importlib
import sys
from dataclasses import dataclass, field, replace

import machines
import native
import outputs
import scales
from claims import ROOT, read_claims
from verdicts import FORMULA, without_evidence


OF_INDEXES = ("retries", "leaf_version")  # the knobs that are not the simulated machine's


@dataclass(frozen=True)
class Point:
    """One run but for its seed. `more`: what else it asks for; `knobs`: what differs from the
    defaults. Both are tuples of (name, value)."""
    index: str
    workload: str
    dist: str
    threads: int
    machine: str
    more: tuple = ()
    knobs: tuple = ()

    def turned(self, name, value):
        return replace(self, knobs=((name, value),))

    def request(self, machine_file, seed, size):
        made = {"index": self.index, "workload": self.workload, "dist": self.dist,
                "threads": self.threads, "seed": seed, "set": {}, "quantum": 0, **size,
                "machine_file": str(machine_file or self.machine), **dict(self.more)}
        for name, value in self.knobs:
            of_machine = name in machines.values(self.machine)
            (made["set"] if of_machine else made)[name] = value
        return made


@dataclass
class Experiment:
    """Points run with all seeds; `once`, and what is turned, with the first seed."""
    id: str
    judge: object  # of the runs; gives a Judgement
    points: list = ()
    figure: tuple = ()  # functions of the runs that give a Figure each
    where: str = ""  # in the paper, where claims.csv has no claim
    shared: tuple = ()  # ids of figures that mean this experiment
    beside: list = ()  # points that are drawn and told if they can run
    full: list = ()  # the same, at full scale alone
    once: list = ()
    elsewhere: list = ()  # the same, on a further machine: nothing where a file is in its place
    turned: list = ()  # where all knobs are turned
    retried: list = ()  # where the number of retries alone is
    series: list = ()  # names of experiments that answer with series
    varied: bool = False  # these run again with one thing changed at a time
    formula: bool = False  # the judge evaluates the paper's own formula
    simulated: str = ""  # what the judge needs and a native run does not give
    by_prefix: bool = False  # the judge reads series of locks that are elided by HLE's prefixes


@dataclass
class Family:
    """Experiments whose runs are asked for and changed in one way; `table` is the changed runs'
    place in the document."""
    table: str
    machines: tuple  # the paper's own
    size: object = None  # of a point and scales.lengths(): keys and operations
    seeds: dict = field(default_factory=lambda: {"smoke": 1, "full": 3})
    spread: tuple = ()  # measures that stand with their extremes over the seeds, as mops does
    kept: tuple = ()  # what points ask for that stands with their runs
    listed: bool = False  # the program's list of indexes has those of its points
    experiments: list = field(default_factory=list)
    unsimulated: str = ""  # what the experiments without runs are
    native: tuple = ()  # figures that run on real threads, too
    regions: str = ""  # the series that is there if these have transactions

    def claim(self, one, points=(), *figure, judge=None, **more):
        def register(judge):
            def judged(runs):
                return without_evidence(judge(runs), FORMULA)

            used = functools.wraps(judge)(judged) if more.get("formula") else judge
            self.experiments.append(Experiment(one, used, points, figure, **more))
            return judge
        return register(judge) if judge else register

    def among(self, ids):
        return [e for i in ids for e in self.experiments if e.id == i]

    def lacking(self, chosen, known):
        """id -> the indexes that it needs and the program lacks."""
        needed = {e.id: dict.fromkeys(p.index for p in e.points) for e in chosen if self.listed}
        return {i: lacks for i, indexes in needed.items()
                if (lacks := [x for x in indexes if x not in known])}

    def turns(self, experiment, flags, known):
        """(point, knob, value, the point with that knob turned); first the point itself."""
        return ()

    def requests(self, chosen, flags, known):
        """(point, seed) -> request, and name -> request of what answers with series. On real
        threads all points run once for each seed before any runs again."""
        host = flags.host
        lengths, breadth = scales.lengths(flags.scale), scales.breadth(flags.scale)
        rounds = native.ROUNDS[lengths]
        seeds = [(flags.seed + n) % 2**64
                 for n in range(rounds if host else flags.seeds or self.seeds[breadth])]
        wanted, named = {}, {}
        for one in chosen:
            points = (*one.points, *one.beside, *(one.full if breadth == "full" else ()))
            turned = [turned for *_, turned in self.turns(one, flags, known)]
            once = (*(() if flags.machine or host else one.elsewhere), *one.once, *turned)
            wanted |= dict.fromkeys((p, s) for p in points if not self.listed or p.index in known
                                    for s in seeds)
            wanted |= dict.fromkeys((p, flags.seed) for p in once)
            named |= dict.fromkeys(one.series)
            named |= dict.fromkeys(f"{name} turned" for name in one.series
                                   if one.varied and not host)
        series = {"machine_file": str(flags.machine or self.machines[-1]), "seed": flags.seed,
                  "full": lengths == "full"} | ({"rounds": rounds} if host else {})
        if host:
            wanted = sorted((w for w in wanted if w[0].threads <= host["cpus"]),
                            key=lambda w: seeds.index(w[1]))
        operations = {"operations": native.OPERATIONS[lengths]} if host else {}
        return ({(p, s): p.request(flags.machine, s, self.size(p, lengths) | operations)
                 for p, s in wanted} | {name: {"experiment": name, **series} for name in named})

    def machines_used(self, requests):
        used = {r["machine_file"] for r in requests}
        own = [str(m) for m in self.machines]
        return [*(m for m in own if m in used), *sorted(used - set(own))]


@dataclass
class Turned(Family):
    """Knobs are turned one at a time, and the runs stand in a table."""
    knobs: object = None  # of a point and scales.breadth(): name -> values
    usual: object = None  # of a point: name -> value, beside the machine's own
    row: object = None  # of an id and a point: figure, dist and theta
    otherwise: str = ""
    beside: tuple = ()  # the measure beside the speeds, and what it is called

    def turns(self, experiment, flags, known):
        for point in dict.fromkeys((*experiment.turned, *experiment.retried)):
            if point.index not in known:
                continue
            yield point, "none", None, point
            usual = machines.values(flags.machine or point.machine) | self.usual(point)
            for name, values in self.knobs(point, scales.breadth(flags.scale)).items():
                if flags.host and name not in OF_INDEXES:
                    continue
                for value in values if name == "retries" or point in experiment.turned else ():
                    if value != usual[name]:
                        yield point, name, value, point.turned(name, value)

    def sensitivity(self, chosen, runs, known):
        """One row for each figure, turned point and value; "none": the point itself."""
        first, rows = runs.first_seed(), {}
        for one in chosen:
            for point, name, value, turned in self.turns(one, runs.flags, known):
                place, run = self.row(one.id, point), first[turned]
                rows[place["figure"], turned] = {
                    "figure": place["figure"], "index": point.index, "dist": place["dist"],
                    "theta": place["theta"], "threads": point.threads, "knob": name, "value": value,
                    "mops": run["mops"], "aborts_per_op": run["aborts_per_op"],
                    "wasted_pct": run.get("wasted_pct"), "fallback_pct": run["fallback_pct"]}
        return list(rows.values())

    def told(self, rows):
        measure, said = self.beside
        head = (f"\nsensitivity, one thing changed at a time (otherwise {self.otherwise}); Mops/s "
                f"and {said},\nof the first seed:\n")
        return head + outputs.sensitivity_tables(rows, measure) if rows else ""


@dataclass
class Judged(Family):
    """The claims are judged again with one thing changed at a time."""
    changes: object = None  # of an experiment and the runs: (name, the changed runs)
    heading: str = ""
    widths: tuple = ()

    def sensitivity(self, chosen, runs, known):
        judged = [(one.id, name, one.judge(changed)) for one in chosen
                  for name, changed in self.changes(one, runs)]
        return [{"claim": one, "changed": name, "here": j.here, "verdict": j.verdict}
                for one, name, j in judged]

    def told(self, rows):
        text = f"\n{self.heading}\n" if rows else ""
        for claim in dict.fromkeys(row["claim"] for row in rows):
            cells = [(r["changed"], r["here"], r["verdict"]) for r in rows if r["claim"] == claim]
            text += "\n" + outputs.table((claim, "here", "verdict"), cells, self.widths)
        return text


def families():
    """Those of all papers, in the order of claims.csv."""
    if str(ROOT) not in sys.path:
        sys.path.append(str(ROOT))
    packages = sorted(file.parents[1].name for file in ROOT.glob("papers/*/repro/__init__.py"))
    found = [f for name in packages
             for f in importlib.import_module(f"papers.{name}.repro").FAMILIES]
    papers = list(dict.fromkeys(i.split("-")[0] for i in read_claims()))
    return sorted(found, key=lambda f: papers.index(f.experiments[0].id.split("-")[0]))
