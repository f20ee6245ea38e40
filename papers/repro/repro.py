#!/usr/bin/env python3
"""Runs the papers' experiments again, draws ours over theirs and judges each claim.

    repro.py --worker build/release/bench/simulated/elidex-sim --scale smoke --out plots S-3.1 E-F2

`elidex repro` calls this. The experiments themselves are in papers/*/repro/; experiments.py says
what they consist of. """

import argparse
import json
import os
import sys
import textwrap
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import ending
import machines
import native
import outputs
import scales
from claims import BadInput, Claim, read_claims, select
from experiments import families
from panels import Figure, own_panels
from kept_answers import KeptAnswers, StoredAnswers, content, repeated
from worker import WorkerFailed, ask, ask_all, name_of


PACKAGES = "expected python3 with matplotlib, numpy and pandas; set ELIDEX_PYTHON to another Python"


def arguments_of(given):
    parser = argparse.ArgumentParser(prog="repro.py",
                                     description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("ids", nargs="+", metavar="ID",
                        help="a claim (S-3.5), a figure (E-F2), a paper (K, E, S) or all")
    parser.add_argument("--worker", required=True,
                        help="the program that runs on the simulated machine")
    parser.add_argument("--native-worker",
                        help="the program that runs on real threads of this machine")
    parser.add_argument("--native", action="store_true",
                        help="run everything on this machine, nothing on the simulated one")
    parser.add_argument("--facts", default="{}", help="facts about this machine, as JSON")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--scale", choices=scales.SCALES, default="smoke")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int,
                        help="how many, from --seed on, in place of the scale's")
    parser.add_argument("--out", required=True, help="the directory for plots")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--machine", help="a machine file in place of each paper's own")
    parser.add_argument("--answers", help="saves each run's result to this file; results already "
                        "there are reused")
    parser.add_argument("--verify", action="store_true", help="takes all results from --answers, "
                        "repeats one run in ten, and compares")
    parser.add_argument("--json", help="a file, or - for standard output")
    # Of native.host_of(), with --native; and how busy the machine was before.
    parser.set_defaults(host=None, load=os.getloadavg()[0])
    return parser.parse_args(given)


FAMILIES = families()
EXPERIMENTS = {e.id: e for family in FAMILIES for e in family.experiments}


def known_claims():
    """claims.csv and, after its claims, the experiments that it has no claim for."""
    return read_claims() | {i: Claim(i, one.where, one.judge.__doc__, "", "")
                            for i, one in EXPERIMENTS.items() if one.where}


def runnable(flags):
    """(the ids to run, id -> what it lacks, the program's indexes)"""
    shared = {figure: one.id for one in EXPERIMENTS.values() for figure in one.shared}
    ids, unbuilt = select(flags.ids, known_claims(), EXPERIMENTS, shared)
    lacking = {}
    if flags.native:
        flags.host = native.host_of(flags.native_worker)
        known = flags.host["indexes"]
        lacking |= {i: lacks for i in ids if (lacks := native.unfit(EXPERIMENTS[i], flags.host))}
    else:
        listed = any(family.listed and family.among(ids) for family in FAMILIES)
        known = ask(flags.worker, {"list": "indexes"})["indexes"] if listed else []
    for family in FAMILIES:
        lacking = family.lacking(family.among(ids), known) | lacking
    ids = [i for i in ids if i not in lacking]
    if not ids:
        if flags.native:
            raise BadInput(f"id: no requested experiment runs natively: {named(lacking)}")
        needed = ", ".join(dict.fromkeys(index for lacks in lacking.values() for index in lacks))
        raise BadInput(f"id: {', '.join(lacking)} cannot run: the simulated machine has no index "
                       f"{needed}")
    return ids, dict.fromkeys(unbuilt) | lacking, known


def named(missing):
    """Ids, each with what is missing: clauses natively, otherwise indexes."""
    def why(lacks):
        if not lacks:
            return ""
        clauses = any(" " in one for one in lacks)
        return f" ({'' if clauses else 'needs '}{', '.join(lacks)})"

    return ", ".join(i + why(lacks) for i, lacks in missing.items())


def machine_document(plan, host, facts):
    """Describes the machine that produced the runs. The parameters at the top are of the first
    machine."""
    if host:
        return facts | native.machine_of(host)
    files, beside = [], []
    for family, _, asked in plan:
        runs, series = ([r for key, r in asked.items() if isinstance(key, str) == named]
                        for named in (False, True))
        files += family.machines_used(runs)
        # What is measured beside a model comes last.
        (beside if family.unsimulated else files).extend(family.machines_used(series))
    used = {Path(file).stem: machines.values(file) for file in (*files, *beside)}
    if not used:
        return {"simulated": plan[0][0].unsimulated}
    return {"simulated": ", ".join(used), **next(iter(used.values())), "machines": used}


def figures_of(family, chosen, runs, judged, known):
    """The figures of these experiments. A claim's own numbers stand in its last figure, or in one
    of their own."""
    judgements = {}  # of each figure: a function of the runs, or a claim's id
    for one in chosen:
        places = one.figure or (one.id,)
        for place in places:
            judgements.setdefault(place, [])
        judgements[places[-1]].append(judged[one.id])
    made = []
    for place, own in judgements.items():
        figure = (Figure(place, known[place].wording, [], machine=family.machines[-1:])
                  if isinstance(place, str) else place(runs).without_empty_panels())
        if isinstance(place, str) and EXPERIMENTS[place].formula:
            figure = replace(figure, said=family.unsimulated + ", {scale}", whose="here")
        figure.own = own_panels(own)
        made += [figure] if figure.panels or figure.own else []
    return made


class Outcome:
    """The judgements, tables and figures of the chosen ids. plan: (family, its experiments, their
    requests)"""

    def __init__(self, ids, plan, answers, flags, known):
        from frame import Runs, frame_of

        self.flags, frame, known_ids, judged = flags, frame_of(answers), known_claims(), {}
        self.runs, self.figures, self.told = [], [], []
        self.changed = {family.table: [] for family in sorted(FAMILIES, key=lambda f: f.table)}
        for family, chosen, asked in plan:
            own = frame["point"].isin({key[0] for key in asked}) | frame["figure"].notna()
            runs = Runs(frame[own], flags, family)
            self.runs += runs.documents()
            rows = family.sensitivity(chosen, runs, known)
            self.changed[family.table] += rows
            self.told.append((family.table, family.told(rows)))
            for one in chosen:
                judged[one.id] = one.judge(runs)
                judged[one.id].id, judged[one.id].where = one.id, known_ids[one.id].where
            self.figures += figures_of(family, chosen, runs, judged, known_ids)
        self.judgements = [judged[i] for i in ids]

    def plots(self, native_figures):
        """Path -> bytes: each figure as PNG, SVG and CSV."""
        import drawing

        made, scale = {}, f"{self.flags.scale} run, seed {self.flags.seed}"
        if host := self.flags.host:
            told = f"native: {native.told_of(host, self.flags.scale)}"
            native_figures = [(replace(figure, whose="here, native"), told)
                              for figure in self.figures]
        for figure in () if host else self.figures:
            own = [Path(m).stem for m in figure.machine]
            used = [Path(self.flags.machine).stem] if self.flags.machine else own
            # Another machine than the paper's own is named: a second opinion overwrites nothing.
            name = figure.id if used[0] == own[0] else f"{figure.id}-{used[0]}"
            made[name] = figure, figure.said.format(machine=", ".join(used), scale=scale)
        made |= {f"{figure.id}-native": (figure, f"{said}, {scale}")
                 for figure, said in native_figures}
        return {os.path.join(self.flags.out, name + suffix): content
                for name, what in made.items()
                for suffix, content in (*drawing.draw(*what).items(),
                                        (".csv", what[0].table().encode()))}

    def text(self, machine, missing, native_text, plots):
        """What the terminal shows."""
        notes = outputs.notes(self.judgements)
        seeds = max((len(one.get("seeds", ())) for one in self.runs), default=1)
        told = f"seed {self.flags.seed}"
        if seeds > 1:
            told = f"medians of up to {seeds} seeds"
        text = (f"{machine}; {self.flags.scale} scale, {told}, commit "
                f"{self.flags.commit}\n\n" + outputs.claims_table(self.judgements)
                + "\n" + outputs.counted(self.judgements))
        text += f"\n{notes}" if notes else ""
        text += "".join(told for _, told in sorted(self.told, key=lambda table: table[0]))
        text += native_text
        if plots:
            text += "\nplots, each also as .svg and .csv:\n"
            text += "".join(f"  {path}\n" for path in plots)
        if missing:
            why = "not run natively: " if self.flags.native else "not built yet: "
            text += "\n" + textwrap.fill(why + named(missing), outputs.WIDTH) + "\n"
        return text


def without_failed(ids, plan, missing, failed):
    """The same without the experiments of which a run failed; these are missing."""
    lost = {one.id: [why] for _, chosen, asked in plan for one in chosen
            if (why := native.broken(one, asked, failed))}
    left = [i for i in ids if i not in lost]
    if not left:
        raise WorkerFailed("; ".join(dict.fromkeys(failed.values())))
    kept = [(family, some, asked) for family, chosen, asked in plan
            if (some := [one for one in chosen if one.id not in lost])]
    return left, kept, missing | lost


def files_of(flags):
    """What the program consists of: a simulated one also of the machine's library."""
    if flags.native:
        return [flags.native_worker]
    return ask(flags.worker, {"list": "files"})["files"]


def verified(flags, requests):
    """The stored answers, and what came of repeating some."""
    with StoredAnswers(flags.answers) as stored:
        there, again = stored.all_of(requests), repeated(requests, flags.seed)
    # Each with a load of its own, so that it is not the stored run's way that is repeated.
    now = ask_all(flags.worker, again, flags.jobs)
    differ = [key for key in again if now[key] != there[key]]
    apart = [100 * abs(now[key]["cycles"] / there[key]["cycles"] - 1) for key in differ
             if there[key].get("cycles") and "cycles" in now[key]]
    return there, {"seed": flags.seed, "runs": len(there), "repeated": len(again),
                   "differ": [name_of(again[key]) for key in differ],
                   "cycles_apart_pct": max(apart, default=None), "stored_by": stored.program,
                   "repeated_by": content(files_of(flags))}


def told_of_verified(found):
    by = "the same program" if found["stored_by"] == found["repeated_by"] else "another program"
    text = (f"\nverified: {found['repeated']} of {found['runs']} stored runs repeated, drawn by "
            f"seed {found['seed']}; {by} stored them; ")
    differ = found["differ"]
    if not differ:
        return text + "all are equal\n"
    apart = found["cycles_apart_pct"]
    far = "" if apart is None else f", by up to {apart:.2g} % of their cycles"
    return text + f"{len(differ)} differ{far}: {'; '.join(differ[:5])}{' ...' * (len(differ) > 5)}\n"


def run(flags):
    for flag in ("machine", "seeds"):
        if flags.native and getattr(flags, flag):
            raise BadInput(f"--{flag}: cannot be combined with --native")
    if flags.verify and flags.native:
        raise BadInput("--verify: cannot be combined with --native")
    if flags.verify and not flags.answers:
        raise BadInput("--verify: --answers is missing (expected --answers FILE)")
    ids, missing, known = runnable(flags)
    # These take a second to load: after what is refused at once, before minutes of runs.
    with ending.put_off():
        import drawing  # noqa: F401
        import frame  # noqa: F401

    outputs.check_directory(flags.out)
    if flags.json and flags.json != "-":
        outputs.check_file(flags.json)
    plan = [(family, chosen, family.requests(chosen, flags, known))
            for family in FAMILIES if (chosen := family.among(ids))]
    requests = {key: one for *_, asked in plan for key, one in asked.items()}
    # Native runs would disturb each other.
    program, jobs = (flags.native_worker, 1) if flags.native else (flags.worker, flags.jobs)
    machine = machine_document(plan, flags.host, json.loads(flags.facts))
    failed, found = {} if flags.native else None, None
    if flags.verify:
        answers, found = verified(flags, requests)
    else:
        keeping = (KeptAnswers(flags.answers, files_of(flags), flags.host and machine) if flags.answers
                   else nullcontext())
        with keeping as kept:
            answers = (ask_all(program, requests, jobs, kept=kept, failed=failed,
                               sharing=not flags.native) if requests else {})
    if failed:
        ids, plan, missing = without_failed(ids, plan, missing, failed)
    natives = [] if flags.native else native.beside(plan, flags)
    outcome = Outcome(ids, plan, answers, flags, known)
    files = outcome.plots(native.figures(plan, natives, flags))
    plots, document = [path for path in files if path.endswith(".png")], ""
    if flags.json:
        document = outputs.json_text(outputs.document(
            flags, machine, outcome, list(missing), natives, plots, found))
        if flags.json != "-":
            files[flags.json] = document.encode()
    with ending.put_off():
        # First: it must not be lost with the plots.
        if flags.json and flags.json != "-":
            outputs.write_whole({flags.json: files.pop(flags.json)})
        outputs.make_directory(flags.out)
        outputs.write_whole(files)
    if flags.native:
        ran = f"native: {native.told_of(machine, flags.scale)}"
    else:
        ran = f"simulated: {machine['simulated']}" if requests else machine["simulated"]
    sys.stdout.write(document if flags.json == "-" else outcome.text(
        ran, missing, native.told(plan, natives, flags), plots))
    if found:
        (sys.stderr if flags.json == "-" else sys.stdout).write(told_of_verified(found))
    sys.stdout.flush()
    return 1 if found and found["differ"] else 0


def main(given=None):
    flags = arguments_of(given)
    try:
        return run(flags)
    except BadInput as error:
        print(f"elidex: {error}", file=sys.stderr)
        return 2
    except (WorkerFailed, OSError) as error:
        said = error if isinstance(error, WorkerFailed) else error.strerror
        print(f"elidex: repro: {said}", file=sys.stderr)
        return 1
    except ImportError as error:
        said = ("is missing" if isinstance(error, ModuleNotFoundError) else
                "cannot be loaded")
        print(f"elidex: repro: {error.name or 'a package'} {said} ({PACKAGES})", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(ending.by_signal(main))
