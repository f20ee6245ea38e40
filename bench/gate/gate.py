#!/usr/bin/env python3
"""The benchmark gate (`./dev bench --check`): is elidex slower, beside maps of others, than when the gate was stored?

Exit status: 0 no row is slower, 1 some row is (one line for each), 2 nothing was compared (one line says why).

A row is slower when the interval of its median ratio lies wholly below the stored one, and does so again when it is
measured a second time with more rounds. See ratios.py for the interval and rounds.py for what is run.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import rounds as measured
from ratios import ROUNDS_MIN, BadGate, drop_found_pct, figures, verdict

ROOT = Path(__file__).resolve().parents[2]
STORED = ROOT / "docs" / "results" / "gate.json"
RESULTS = ROOT / "results"
ROUNDS = 12
# What is stored is compared with often, and what failed once is to be told from chance: both get more rounds.
MORE = 2
# As in the notes of `elidex bench`.
WAIT_PCT_MAX = 5


def progress_on(stream):
    """A line that counts the rounds on a terminal, nothing in a pipe."""
    begin = time.monotonic()

    def show(done, total):
        left = f", {(time.monotonic() - begin) / done * (total - done) / 60:.1f} min left" if done else ""
        text = f"gate: round {min(done + 1, total)} of {total}{left}" if done < total else ""
        stream.write("\r\033[K" + text)
        stream.flush()
    return show if stream.isatty() else lambda done, total: None


def machine_name(content):
    machine = content["machine"]
    return f"{machine.get('cpu', 'unknown CPU')} ({machine.get('cpu_signature', 'unknown signature')})"


def table(head, lines):
    """Columns as wide as their widest cell."""
    lines = [head, *lines]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def notes(contents, stored=None):
    """What a reader of the table should know about the machine."""
    if stored is not None and machine_name(stored) != machine_name(contents[0]):
        yield (f"note: stored on another CPU, {machine_name(stored)}; here is {machine_name(contents[0])}. "
               "Ratios cancel most of the difference, not all of it")
    waits = [share for content in contents for share in measured.waits_of(content)]
    busy = sum(share > WAIT_PCT_MAX for share in waits)
    if busy:
        yield (f"note: in {busy} of {len(waits)} runs other programs kept the threads waiting for more than "
               f"{WAIT_PCT_MAX} % of the time")


def say(*lines):
    print(*lines, sep="\n", flush=True)


def save(bench, path, count, progress):
    content = measured.measure(bench, measured.PLANS, count, progress)
    now = figures(measured.runs_of(content), measured.ROWS)
    say(table(("row", "ratio"), [(str(row), str(now[row])) for row in measured.ROWS]), *notes([content]))
    measured.write(path, content)
    say(f"gate: {len(now)} rows of {count} rounds stored in {path}")
    return 0


def check(bench, path, count, results, progress):
    stored_content = measured.read(path)  # before minutes of measuring
    stored = figures(measured.runs_of(stored_content), measured.ROWS)
    contents = [measured.measure(bench, measured.PLANS, count, progress)]
    measured.write(results / "gate.json", contents[0])
    now = figures(measured.runs_of(contents[0]), measured.ROWS)
    verdicts = {row: verdict(stored[row], now[row]) for row in measured.ROWS}

    doubtful = [row for row in measured.ROWS if verdicts[row] == "slower"]
    if doubtful:
        say(f"gate: {len(doubtful)} of {len(verdicts)} rows look slower; measuring them again, {MORE * count} rounds")
        parts = [part for plan in measured.PLANS if (part := plan.part(doubtful))]
        contents.append(measured.measure(bench, parts, MORE * count, progress))
        measured.write(results / "gate-again.json", contents[1])
        again = figures(measured.runs_of(contents[1]), doubtful)
        for row in doubtful:
            now[row] = again[row]
            verdicts[row] = verdict(stored[row], again[row]) + ", measured twice"

    say(f"each row's rate over that of its yardstick, mostly a locked map with 1 thread, in the same round (median and its "
        f"interval); stored with commit {stored_content['commit']}, now {contents[0]['commit']}",
        table(("row", "stored", "now", "verdict"),
              [(str(row), str(stored[row]), str(now[row]), verdicts[row]) for row in measured.ROWS]),
        *notes(contents, stored_content))
    slower = [row for row in doubtful if verdicts[row].startswith("slower")]
    for row in slower:
        say(f"slower: {row}: {now[row]}, stored {stored[row]}: "
            f"{(1 - now[row].median / stored[row].median) * 100:.0f} % less")
    if slower:
        say(f"gate: {len(slower)} of {len(verdicts)} rows are slower")
        return 1
    hidden = {row: drop_found_pct(stored[row], now[row]) for row in measured.ROWS}
    blindest = max(hidden, key=hidden.get)
    say(f"gate: none of {len(hidden)} rows is slower; the noise would hide a drop by "
        f"{statistics.median(hidden.values()):.0f} % in the median row, {hidden[blindest]:.0f} % in the noisiest ({blindest})")
    return 0


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elidex", required=True, type=Path, help="the built tool")
    parser.add_argument("--stored", default=STORED, type=Path, help="the gate's file [docs/results/gate.json]")
    parser.add_argument("--results", default=RESULTS, type=Path, help="where a check leaves its rounds [results]")
    parser.add_argument("--save", action="store_true", help="store the measured rounds instead of comparing them")
    parser.add_argument("--rounds", default=ROUNDS, type=int,
                        help=f"of a check [{ROUNDS}]; {MORE} times as many for --save and for a second look")
    arguments = parser.parse_args(words)
    if arguments.rounds < ROUNDS_MIN:
        parser.error(f"--rounds: {arguments.rounds} are too few for an interval (expected at least {ROUNDS_MIN})")
    return arguments


def main(words, bench_with=measured.bench_with):
    arguments = parse(words)
    progress = progress_on(sys.stderr)
    bench = bench_with(arguments.elidex)
    try:
        if arguments.save:
            return save(bench, arguments.stored, MORE * arguments.rounds, progress)
        return check(bench, arguments.stored, arguments.rounds, arguments.results, progress)
    except BadGate as error:
        print(f"gate: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
