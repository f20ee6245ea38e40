#!/usr/bin/env python3
"""Runs the papers' experiments again, draws ours over theirs and judges each claim: `elidex repro` calls this.

    repro.py --worker build/release/bench/simulated/elidex-sim --scale smoke --out plots S-3.1 E-F2

Where to look: claims.py has the ids, thesis_claims.py and structure_claims.py the tests of paper 004, eunomia_claims.py those
of 003, model_claims.py (its models) and karnagel_claims.py (its runs) those of 001, txbench_claims.py those of 004 about a database, drawing.py and panel_drawing.py the plots, outputs.py the tables
and the JSON.
"""

import argparse
import os
import sys

import ending
import eunomia_claims
import eunomia_figures
import eunomia_runs
import figures
import karnagel_claims
import karnagel_figures
import karnagel_runs
import machines
import model_claims
import outputs
import panels
import seeds
import structure_claims
import structure_runs
import thesis_claims
import txbench_claims
import txbench_figures
import txbench_runs
from claims import BadInput, Claim, read_claims, select
from worker import WorkerFailed, ask, ask_all

GROUPS = (model_claims, karnagel_claims, eunomia_claims, thesis_claims, structure_claims, txbench_claims)
THESIS = {**thesis_claims.TESTS, **structure_claims.TESTS}  # paper 004


def arguments_of(given):
    parser = argparse.ArgumentParser(prog="repro.py", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("ids", nargs="+", metavar="ID",
                        help="a claim (S-3.5), a figure (E-F2), a paper (K, E, S) or all")
    parser.add_argument("--worker", required=True, help="the program that runs on the simulated machine")
    parser.add_argument("--native", help="the program that runs the thesis's data structures on this machine")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--scale", choices=("smoke", "full"), default="smoke")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", required=True, help="the folder for plots")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--machine", help="a machine file in place of each paper's own")
    parser.add_argument("--json", help="a file, or - for standard output")
    return parser.parse_args(given)


def known_claims():
    """claims.csv and, after the thesis's claims, the thesis's figures that it has no claim for."""
    known = read_claims()
    for name, test in THESIS.items():
        if not test.claimed:
            figure = name.removeprefix("S-")
            where = test.where or ("section 3.1" if figure == "3.0" else
                                   f"appendix {figure}" if figure[0] == "C" else f"Fig {figure}")
            known[name] = Claim(name, f"paper 004, {where} (no claim of claims.csv)", test.judge.__doc__, "", "")
    return known


class Plan:
    """What the chosen ids need from the simulated machine."""

    def __init__(self, ids, flags, known_indexes=()):
        self.ids, self.flags, self.known_indexes = ids, flags, known_indexes
        self.thesis_file = flags.machine or machines.THESIS_MACHINE
        self.eunomia_file = flags.machine or machines.EUNOMIA_MACHINE
        self.figures = list(dict.fromkeys(f for i in ids if i in THESIS for f in THESIS[i].figures))
        self.capacity = any(i in model_claims.MEASURED for i in ids)
        self.karnagel = {i: karnagel_claims.TESTS[i] for i in ids if i in karnagel_claims.TESTS}
        self.eunomia = {i: eunomia_claims.TESTS[i] for i in ids if i in eunomia_claims.TESTS}
        self.txbench = {i: txbench_claims.TESTS[i] for i in ids if i in txbench_claims.TESTS}

    def requests(self):
        made = {}
        if self.eunomia:
            made |= eunomia_runs.requests(self.eunomia_file, machines.values(self.eunomia_file), self.flags.scale,
                                          self.flags.seed, self.eunomia.values(), self.known_indexes)
        if self.karnagel:
            made |= karnagel_runs.requests(self.flags.machine, self.flags.scale, self.flags.seed, self.karnagel.values())
        made |= txbench_runs.requests(self.flags.machine, self.flags.scale, self.flags.seed, self.txbench)
        if self.capacity:
            made["K-F7"] = {"experiment": "K-F7", "machine_file": str(self.flags.machine or machines.KARNAGEL_MACHINE),
                            "seed": self.flags.seed, "full": self.flags.scale == "full"}
        for figure in self.figures:
            made[figure] = {"experiment": figure, "machine_file": str(self.thesis_file), "seed": self.flags.seed,
                            "full": self.flags.scale == "full"}
        return made | structure_runs.requests(self.ids, self.thesis_file, self.flags.scale, self.flags.seed)

    @staticmethod
    def karnagel_file(figure):
        return str(karnagel_runs.SOCKETS if figure in ("K-F3", "K-F4") else karnagel_runs.SOCKET)

    def machine_document(self):
        """What the runs and the claims are of. The parameters at the top are those of the runs' machine."""
        used = {}
        named = sorted({p.machine for t in self.karnagel.values() for p in t.points}, reverse=True)
        for wanted, file in (*((True, self.flags.machine or file) for file in named),
                             (self.eunomia, self.eunomia_file), (self.figures or self.txbench, self.thesis_file),
                             (self.txbench and not self.flags.machine, txbench_runs.MANY_CORES),
                             (self.capacity, self.flags.machine or machines.KARNAGEL_MACHINE)):
            if wanted:
                used[os.path.basename(file).removesuffix(".machine")] = machines.values(file)
        if not used:
            return {"simulated": "models of paper 001"}
        first = next(iter(used))
        return {"simulated": ", ".join(used), **used[first], "machines": used}


class Outcome:
    """The judgements, series and plots of the chosen ids."""

    def __init__(self, plan, answers, native=()):
        self.plan, self.flags, self.native = plan, plan.flags, native
        self.models = model_claims.Models(self.flags.scale, self.flags.seed)
        if plan.capacity:
            self.models.measured = figures.series_of(answers["K-F7"])
        self.here = {f: figures.series_of(answers[f]) for f in plan.figures}
        self.paper = {f: figures.read_figure(f.removeprefix("S-")) for f in plan.figures}
        asked, of_karnagel, of_txbench = ({key: answer for key, answer in answers.items()
                               if isinstance(key, tuple) and isinstance(key[0], kind)}
                              for kind in (eunomia_runs.Point, karnagel_runs.Point, txbench_runs.Point))
        self.runs, self.karnagel_runs = eunomia_runs.runs_of(asked), seeds.runs_of(of_karnagel)
        self.sensitivity = eunomia_runs.sensitivity(asked, machines.values(plan.eunomia_file), self.flags.scale,
                                                    self.flags.seed, plan.eunomia,
                                                    plan.known_indexes) if plan.eunomia else []
        self.karnagel_sensitivity = karnagel_runs.sensitivity(of_karnagel, self.flags.machine, self.flags.scale,
                                                              self.flags.seed, plan.karnagel)
        self.txbench_runs = seeds.runs_of(of_txbench)
        self.txbench_sensitivity = txbench_runs.sensitivity(of_txbench, self.flags.seed, plan.txbench)
        self.txbench_figures = txbench_figures.drawn(plan.txbench, self.txbench_runs)
        self.eunomia_figures = eunomia_figures.drawn(plan.eunomia, self.runs)
        self.karnagel_figures = karnagel_figures.drawn(plan.karnagel, self.karnagel_runs)
        known = known_claims()
        self.judgements = [self.judge(i) for i in plan.ids]
        turned = structure_runs.turned(plan.ids, answers)
        self.structure_sensitivity = []
        for judgement in self.judgements:
            judgement.where = known[judgement.id].where
            self.structure_sensitivity += structure_claims.sensitivity(judgement.id, turned)

    def judge(self, one):
        if one in model_claims.TESTS:
            return model_claims.TESTS[one](self.models)
        if one in karnagel_claims.TESTS:
            return karnagel_claims.TESTS[one].judge(self.karnagel_runs)
        if one in eunomia_claims.TESTS:
            return eunomia_claims.TESTS[one].judge(self.runs)
        if one in txbench_claims.TESTS:
            return txbench_claims.TESTS[one].judge(self.txbench_runs)
        calibrated = [name for f in THESIS[one].figures
                      for name in machines.calibrated_from(self.plan.thesis_file, f.removeprefix("S-"))]
        return thesis_claims.judge(one, self.here, self.paper, calibrated, THESIS)

    def series(self):
        def listed(series):
            return [{"name": name, "points": points} for name, points in series.items()]
        made = model_claims.series_of(self.plan.ids, self.models)
        made += [panels.series(f) for f in (*self.karnagel_figures, *self.eunomia_figures, *self.txbench_figures)]
        return made + [{"id": f, "series": listed(self.here[f]), "paper": listed(self.paper[f])}
                       for f in self.plan.figures]

    def plots(self):
        """Path -> PNG."""
        import drawing
        import panel_drawing
        import structure_drawing

        made, scale = {}, f"{self.flags.scale} run, seed {self.flags.seed}"

        def path(name, own_machine):
            """With the machine's name, unless it is the paper's own: a second opinion overwrites nothing."""
            file = os.path.basename(self.flags.machine or own_machine)
            if file != os.path.basename(own_machine):
                name += "-" + file.removesuffix(".machine")
            return os.path.join(self.flags.out, name + ".png")

        for one in model_claims.series_of(self.plan.ids, self.models):
            here, paper = ({s["name"]: s["points"] for s in one[whose]} for whose in ("series", "paper"))
            where = path(one["id"], machines.KARNAGEL_MACHINE)
            made[where] = drawing.overlay(one["id"], here, paper, f"model of paper 001, {scale}")
        for figure in self.karnagel_figures:
            file = self.flags.machine or self.plan.karnagel_file(figure.id)
            name = os.path.basename(file).removesuffix(".machine")
            made[path(figure.id, self.plan.karnagel_file(figure.id))] = panel_drawing.draw(
                figure, f"simulated machine {name}, {karnagel_runs.KEYS[self.flags.scale] // 1_000_000} M values, {scale}")
        for figure in self.eunomia_figures:
            name = os.path.basename(self.plan.eunomia_file).removesuffix(".machine")
            made[path(figure.id, machines.EUNOMIA_MACHINE)] = panel_drawing.draw(
                figure, f"simulated machine {name}, {scale}")
        for figure in self.txbench_figures:
            name = ", ".join(os.path.basename(file).removesuffix(".machine")
                             for file in txbench_runs.machines_of(self.flags.machine))
            made[path(figure.id, machines.THESIS_MACHINE)] = panel_drawing.draw(figure, f"simulated: {name}, {scale}")
        for f in self.plan.figures:
            name = os.path.basename(self.plan.thesis_file).removesuffix(".machine")
            said = f"simulated machine {name}, {scale}"
            made[path(f, machines.THESIS_MACHINE)] = (
                structure_drawing.draw(f, self.here[f], said) if f in structure_claims.USE_CASES else
                drawing.overlay(f, self.here[f], self.paper[f], said))
        for answer in self.native:
            made[os.path.join(self.flags.out, answer["id"] + "-native.png")] = structure_drawing.draw(
                answer["id"], figures.series_of(answer),
                f"native, not simulated: {answer['native']}, {answer['cpus']} CPUs, medians of {answer['rounds']} rounds, {scale}")
        return made


def told(outcome, missing, plots):
    """What the terminal shows."""
    flags = outcome.flags
    machine = outcome.plan.machine_document()["simulated"]
    if outcome.plan.requests():
        machine = f"simulated: {machine}"
    text = f"{machine}; {flags.scale} scale, seed {flags.seed}, commit {flags.commit}\n\n"
    text += outputs.claims_table(outcome.judgements)
    notes = outputs.notes(outcome.judgements)
    text += f"\n{notes}" if notes else ""
    for rows, otherwise, beside, said in (
        (outcome.karnagel_sensitivity, "8 retries after conflicts, quantum 0", "fallback_pct",
         "% that took the lock"),
        (outcome.sensitivity, "128 retries, of euno-btree+ 12, quantum 0, a version\nin each leaf of HTM-B+Tree",
         "aborts_per_op", "aborts/op")):
        if rows:
            text += (f"\nsensitivity, one thing changed at a time (otherwise {otherwise}); Mops/s and {said},\nof the "
                     "first seed:\n" + outputs.sensitivity_tables(rows, beside))
    text += structure_runs.sensitivity_told(outcome.structure_sensitivity)
    text += txbench_runs.sensitivity_told(outcome.txbench_sensitivity) + structure_runs.native_told(outcome.native)
    if plots:
        text += "\nplots:\n" + "".join(f"  {path}\n" for path in plots)
    if missing:
        named = (f"{i} (needs {', '.join(lacks)})" if lacks else i for i, lacks in missing.items())
        text += "\n" + outputs.textwrap.fill("not built yet: " + ", ".join(named), outputs.WIDTH) + "\n"
    return text


def indexes_of(program):
    """What this build can run on the simulated machine."""
    return ask(program, {"list": "indexes"})["indexes"]


def run(flags):
    known = known_claims()
    built = {i for group in GROUPS for i in group.TESTS}
    ids, unbuilt = select(flags.ids, known, built)
    missing = dict.fromkeys(unbuilt)
    on_indexes = any(i in group.TESTS for i in ids for group in (eunomia_claims, karnagel_claims))
    known_indexes = indexes_of(flags.worker) if on_indexes else []
    lacking = eunomia_claims.lacking(ids, known_indexes) | karnagel_claims.lacking(ids, known_indexes)
    missing |= lacking
    ids = [i for i in ids if i not in lacking]
    if not ids:
        needed = list(dict.fromkeys(index for indexes in lacking.values() for index in indexes))
        raise BadInput(f"id: {', '.join(lacking)} cannot run: the simulated machine has no index {', '.join(needed)}")
    # matplotlib takes a second to load: after what is refused at once, and before minutes of runs that need it.
    with ending.put_off():
        import drawing  # noqa: F401

    outputs.check_folder(flags.out)
    if flags.json and flags.json != "-":
        outputs.check_file(flags.json)
    plan = Plan(ids, flags, known_indexes)
    requests = plan.requests()
    answers = ask_all(flags.worker, requests, flags.jobs) if requests else {}
    outcome = Outcome(plan, answers, structure_runs.native(flags.native, plan.figures, flags.scale, flags.seed))
    files = outcome.plots()
    plots = list(files)
    if flags.json:
        # As things are; runs with a knob turned are in the tables of sensitivity and in the series.
        runs = [run for point, run in (*outcome.karnagel_runs.items(), *outcome.runs.items()) if not point.knobs]
        runs += [run for point, run in outcome.txbench_runs.items() if txbench_runs.is_as_it_is(point)]
        content = outputs.document(flags.commit, plan.machine_document(), runs, outcome.judgements,
                                   series=outcome.series(), sensitivity=[*outcome.karnagel_sensitivity, *outcome.sensitivity], not_built=list(missing),
                                   structure_sensitivity=outcome.structure_sensitivity,
                                   txbench_sensitivity=outcome.txbench_sensitivity, native=outcome.native,
                                   scale=flags.scale, plots=plots)
        if flags.json != "-":
            files[flags.json] = outputs.json_text(content).encode()
    with ending.put_off():
        outputs.make_folder(flags.out)
        outputs.write_whole(files)
    sys.stdout.write(outputs.json_text(content) if flags.json == "-" else told(outcome, missing, plots))
    sys.stdout.flush()
    return 0


def main(given=None):
    flags = arguments_of(given)
    try:
        return run(flags)
    except BadInput as error:
        print(f"elidex: {error}", file=sys.stderr)
        return 2
    except (WorkerFailed, OSError) as error:
        print(f"repro: {error}" if isinstance(error, WorkerFailed) else f"repro: {error.strerror}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"repro: {error.name} is missing; ./dev setup installs it", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(ending.by_signal(main))
