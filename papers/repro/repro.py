#!/usr/bin/env python3
"""Runs the papers' experiments again, draws ours over theirs and judges each claim.

    repro.py --worker build/release/bench/simulated/elidex-sim --scale smoke --out plots S-3.1 E-F2

`elidex repro` calls this. The experiments themselves are in papers/*/repro/; experiments.py says
what they consist of. """

import argparse
import os
import sys
import textwrap
from pathlib import Path

import ending
import machines
import native
import outputs
from claims import BadInput, Claim, read_claims, select
from experiments import families
from worker import WorkerFailed, ask, ask_all


def arguments_of(given):
    parser = argparse.ArgumentParser(prog="repro.py",
                                     description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("ids", nargs="+", metavar="ID",
                        help="a claim (S-3.5), a figure (E-F2), a paper (K, E, S) or all")
    parser.add_argument("--worker", required=True,
                        help="the program that runs on the simulated machine")
    parser.add_argument("--native",
                        help="the program that runs the thesis's data structures on this machine")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--scale", choices=("smoke", "full"), default="smoke")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", required=True, help="the directory for plots")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--machine", help="a machine file in place of each paper's own")
    parser.add_argument("--json", help="a file, or - for standard output")
    return parser.parse_args(given)


FAMILIES = families()
EXPERIMENTS = {e.id: e for family in FAMILIES for e in family.experiments}


def known_claims():
    """claims.csv and, after its claims, the experiments that it has no claim for."""
    known = read_claims()
    for name, one in EXPERIMENTS.items():
        if one.where:
            known[name] = Claim(name, one.where, one.judge.__doc__, "", "")
    return known


class Plan:
    """What the chosen ids need from the simulated machine."""

    def __init__(self, ids, flags, known_indexes=()):
        self.ids, self.flags, self.known = ids, flags, known_indexes
        self.chosen = [(f, chosen) for f in FAMILIES if (chosen := f.among(ids))]
        self.asked = [f.requests(chosen, flags, known_indexes) for f, chosen in self.chosen]
        self.requests = {key: one for asked in self.asked for key, one in asked.items()}

    def machine_document(self):
        """What the runs and the claims are of. The parameters at the top are of the first
        machine."""
        files, beside = [], []
        for (family, _), asked in zip(self.chosen, self.asked):
            series = {key: one for key, one in asked.items() if isinstance(key, str)}
            files += family.machines_used({key: asked[key] for key in asked if key not in series})
            # What is measured beside a model comes last.
            (beside if family.unsimulated else files).extend(family.machines_used(series))
        used = {Path(file).stem: machines.values(file) for file in (*files, *beside)}
        if not used:
            return {"simulated": self.chosen[0][0].unsimulated}
        return {"simulated": ", ".join(used), **next(iter(used.values())), "machines": used}


class Outcome:
    """The judgements, tables and figures of the chosen ids."""

    def __init__(self, plan, answers, native_answers=()):
        from frame import Runs, frame_of

        self.plan, self.flags, self.native = plan, plan.flags, native_answers
        frame, known, judged = frame_of(answers), known_claims(), {}
        self.runs, self.figures = [], []
        self.changed = {family.table: [] for family in sorted(FAMILIES, key=lambda f: f.table)}
        self.told = []
        for (family, chosen), asked in zip(plan.chosen, plan.asked):
            own = frame["point"].isin({key[0] for key in asked}) | frame["figure"].notna()
            runs = Runs(frame[own], self.flags, family)
            self.runs += runs.documents()
            drawn = dict.fromkeys(figure for one in chosen for figure in one.figure)
            made = [figure(runs).without_empty_panels() for figure in drawn]
            self.figures += [figure for figure in made if figure.panels]
            rows = family.sensitivity(chosen, runs, plan.known)
            self.changed[family.table] += rows
            self.told.append((family.table, family.told(rows)))
            for one in chosen:
                judged[one.id] = one.judge(runs)
                judged[one.id].id, judged[one.id].where = one.id, known[one.id].where
        self.judgements = [judged[i] for i in plan.ids]

    def plots(self):
        """Path -> PNG."""
        import drawing

        made, scale = {}, f"{self.flags.scale} run, seed {self.flags.seed}"
        for figure in self.figures:
            own = [Path(m).stem for m in figure.machine]
            used = [Path(self.flags.machine).stem] if self.flags.machine else own
            # Another machine than the paper's own is named: a second opinion overwrites nothing.
            name = figure.id if used[0] == own[0] else f"{figure.id}-{used[0]}"
            said = figure.said.format(machine=", ".join(used), scale=scale)
            made[os.path.join(self.flags.out, name + ".png")] = drawing.draw(figure, said)
        for figure, said in native.figures(self.plan.chosen, self.native, self.flags):
            made[os.path.join(self.flags.out, figure.id + "-native.png")] = drawing.draw(
                figure, f"{said}, {scale}")
        return made

    def document(self, missing, plots):
        changed = dict(self.changed)
        return outputs.document(
            self.flags.commit, self.plan.machine_document(), self.runs, self.judgements,
            series=[figure.series() for figure in self.figures],
            sensitivity=changed.pop("sensitivity"), not_built=list(missing), **changed,
            native=self.native, scale=self.flags.scale, plots=plots)

    def text(self, missing, plots):
        """What the terminal shows."""
        flags, machine = self.flags, self.plan.machine_document()["simulated"]
        machine = f"simulated: {machine}" if self.plan.requests else machine
        text = f"{machine}; {flags.scale} scale, seed {flags.seed}, commit {flags.commit}\n\n"
        text += outputs.claims_table(self.judgements)
        notes = outputs.notes(self.judgements)
        text += f"\n{notes}" if notes else ""
        text += "".join(told for _, told in sorted(self.told, key=lambda table: table[0]))
        text += native.told(self.plan.chosen, self.native, flags)
        if plots:
            text += "\nplots:\n" + "".join(f"  {path}\n" for path in plots)
        if missing:
            named = (f"{i} (needs {', '.join(lacks)})" if lacks else i
                     for i, lacks in missing.items())
            text += "\n" + textwrap.fill("not built yet: " + ", ".join(named), outputs.WIDTH) + "\n"
        return text


def indexes_of(program):
    """What this build can run on the simulated machine."""
    return ask(program, {"list": "indexes"})["indexes"]


def runnable(flags):
    """(the ids to run, id -> what it lacks, the program's indexes)"""
    shared = {figure: one.id for one in EXPERIMENTS.values() for figure in one.shared}
    ids, unbuilt = select(flags.ids, known_claims(), EXPERIMENTS, shared)
    listed = any(family.listed and family.among(ids) for family in FAMILIES)
    known = indexes_of(flags.worker) if listed else []
    lacking = {}
    for family in FAMILIES:
        lacking |= family.lacking(family.among(ids), known)
    ids = [i for i in ids if i not in lacking]
    if not ids:
        needed = ", ".join(dict.fromkeys(index for lacks in lacking.values() for index in lacks))
        raise BadInput(f"id: {', '.join(lacking)} cannot run: the simulated machine has no index "
                       f"{needed}")
    return ids, dict.fromkeys(unbuilt) | lacking, known


def run(flags):
    ids, missing, known = runnable(flags)
    # These take a second to load: after what is refused at once, before minutes of runs.
    with ending.put_off():
        import drawing  # noqa: F401
        import frame  # noqa: F401

    outputs.check_directory(flags.out)
    if flags.json and flags.json != "-":
        outputs.check_file(flags.json)
    plan = Plan(ids, flags, known)
    answers = ask_all(flags.worker, plan.requests, flags.jobs) if plan.requests else {}
    outcome = Outcome(plan, answers, native.answers(plan.chosen, flags))
    files = outcome.plots()
    plots = list(files)
    document = outputs.json_text(outcome.document(missing, plots)) if flags.json else ""
    if flags.json and flags.json != "-":
        files[flags.json] = document.encode()
    with ending.put_off():
        outputs.make_directory(flags.out)
        outputs.write_whole(files)
    sys.stdout.write(document if flags.json == "-" else outcome.text(missing, plots))
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
        said = error if isinstance(error, WorkerFailed) else error.strerror
        print(f"repro: {said}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"repro: {error.name} is missing; ./dev setup installs it", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(ending.by_signal(main))
