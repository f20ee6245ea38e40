#!/usr/bin/env python3
"""Real programs under libelidex-preload.so (`./dev programs`): are their answers right, and how much slower are they?

Each program runs with its own load tool: as it is, with the library, and with the library's statistics, one after the other
within a round, so that what else the machine does meets all alike. A figure is the median over the rounds of the ratio to
the same round's run without the library. Two are measured: operations a second, and the program's processor time for each
operation, which other work on the machine disturbs less.

Exit status: 0 done and all answers right, 1 some answer is wrong, 2 nothing was run.
"""

import argparse
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from statistics_table import reports

HERE = Path(__file__).resolve().parent
MODES = ("plain", "library", "statistics")
ROWS_SAVED = 8


class Wrong(Exception):
    """A program's answer is not what it must be."""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def run(command, **options):
    options.setdefault("timeout", 300)
    answer = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if answer.returncode != 0:
        raise Wrong(f"{command[0]}: status {answer.returncode}: {(answer.stderr or answer.stdout).strip()[-300:]}")
    return answer.stdout


def cpu_seconds(process):
    """What it has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Program:
    """One program. run() does one measured run in that environment; it returns operations a second, and the program's
    processor time for each."""

    def __init__(self, directory, seconds):
        self.directory, self.seconds = directory, seconds

    def prepare(self):
        pass


class Server(Program):
    """A program that is started, waited for, loaded, and stopped by SIGTERM."""

    def run(self, environment):
        with open(self.directory / "server.log", "a") as log:
            server = subprocess.Popen([str(word) for word in self.command()], env=environment, stdout=log, stderr=log)
        try:
            for _ in range(600):
                if server.poll() is not None:
                    raise Wrong(f"{self.name}: ended at once (see {self.directory / 'server.log'})")
                if self.answers():
                    break
                time.sleep(0.1)
            else:
                raise Wrong(f"{self.name}: it does not answer")
            before = cpu_seconds(server.pid)
            rate, operations = self.load()
            return rate, (cpu_seconds(server.pid) - before) / operations
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(60)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
                raise Wrong(f"{self.name}: it does not end")

    def answers(self):
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0


class Redis(Server):
    name, needs, load_tool = "redis-server", ("redis-server", "redis-benchmark", "redis-cli"), "redis-benchmark -t set,get"

    def command(self):
        self.port = free_port()
        return ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--save", "", "--dir", self.directory]

    def load(self):
        requests = int(40_000 * self.seconds)
        out = run(["redis-benchmark", "-p", self.port, "-n", requests, "-c", 30, "-r", 10_000, "-d", 64, "-t", "set,get",
                   "--csv"])
        rates = [float(rate) for rate in re.findall(r'^"(?:SET|GET)","([\d.]+)"', out, re.MULTILINE)]
        if len(rates) != 2:
            raise Wrong(f"redis-benchmark failed: {out[-200:]}")
        client = ["redis-cli", "-p", self.port]
        for word in ("one", "two"):
            if run([*client, "SET", "elidex", word]).strip() != "OK" or run([*client, "GET", "elidex"]).strip() != word:
                raise Wrong("redis-server: a value is not what was set")
        info = run([*client, "INFO", "errorstats"])
        if re.search(r"^errorstat_", info, re.MULTILINE):
            raise Wrong(f"redis-server counts errors: {info}")
        return statistics.harmonic_mean(rates), 2 * requests


class Memcached(Server):
    name, needs = "memcached", ("memcached", "memcaslap")
    load_tool = "memcaslap, 9 gets for each set, a tenth of the values verified"

    def command(self):
        self.port = free_port()
        return ["memcached", "-l", "127.0.0.1", "-p", self.port, "-t", 2, "-m", 256,
                *(["-u", "root"] if os.geteuid() == 0 else [])]

    def load(self):
        out = run(["memcaslap", "-s", f"127.0.0.1:{self.port}", "-T", 2, "-c", 16, "-t", f"{max(1, round(self.seconds))}s",
                   "-X", 100, "-v", 0.1])
        rate = re.search(r"Ops: (\d+) TPS: (\d+)", out)
        numbers = {name: int(value) for name, value in re.findall(r"^(\w+): (\d+)$", out, re.MULTILINE)}
        if not rate or int(rate[1]) == 0:
            raise Wrong(f"memcaslap failed: {out[-300:]}")
        if numbers.get("verify_failed", 0) or numbers.get("verify_misses", 0) or numbers.get("get_misses", 0):
            raise Wrong(f"memcached: values are missing or wrong: {numbers}")
        return float(rate[2]), int(rate[1])


class MariaDb(Server):
    name, needs = "mariadbd", ("mariadbd", "mariadb-install-db", "mariadb", "sysbench")
    load_tool = "sysbench oltp_read_write, 4 threads"

    def prepare(self):
        self.data, self.socket = self.directory / "data", self.directory / "socket"
        self.user = ["--user=root"] if os.geteuid() == 0 else []
        run(["mariadb-install-db", "--no-defaults", f"--datadir={self.data}", "--auth-root-authentication-method=normal",
             "--skip-test-db", *self.user])
        self.loaded = False

    def command(self):
        return [shutil.which("mariadbd"), "--no-defaults", f"--datadir={self.data}", f"--socket={self.socket}", "--skip-networking",
                "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=128M", f"--pid-file={self.directory / 'pid'}",
                *self.user]

    def answers(self):
        return subprocess.run(["mariadb", "--no-defaults", f"--socket={self.socket}", "-uroot", "-e", "SELECT 1"],
                              capture_output=True).returncode == 0

    def sysbench(self, *what):
        return run(["sysbench", "oltp_read_write", "--db-driver=mysql", f"--mysql-socket={self.socket}", "--mysql-user=root",
                    "--mysql-db=sbtest", "--tables=2", "--table-size=10000", "--threads=4", f"--time={round(self.seconds)}",
                    *what])

    def sql(self, text):
        return run(["mariadb", "--no-defaults", f"--socket={self.socket}", "-uroot", "-N", "-e", text]).strip()

    def load(self):
        if not self.loaded:
            self.sql("CREATE DATABASE sbtest")
            self.sysbench("prepare")
            self.loaded = True
        out = self.sysbench("run")
        rate = re.search(r"transactions: +(\d+) +\(([\d.]+) per sec", out)
        # A deadlock between transactions is rolled back and repeated: "ignored errors". Anything else ends sysbench.
        if not rate:
            raise Wrong(f"sysbench failed: {out[-300:]}")
        for table in ("sbtest1", "sbtest2"):
            if self.sql(f"SELECT count(*) FROM sbtest.{table}") != "10000":
                raise Wrong("mariadbd: rows are missing")
            if not self.sql(f"CHECK TABLE sbtest.{table}").endswith("OK"):
                raise Wrong("mariadbd: CHECK TABLE finds a fault")
        return float(rate[2]), int(rate[1])


class Sqlite(Program):
    name, needs = "sqlite", ("cc",)
    load_tool = "4 threads with one connection (sqlite_threads.c)"

    def prepare(self):
        self.program = self.directory / "sqlite_threads"
        run(["cc", "-O2", HERE / "sqlite_threads.c", "-o", self.program, "-lsqlite3", "-lpthread"])

    def run(self, environment):
        before = cpu_seconds_of_children()
        rate = float(run([self.program, self.directory / "rows.db", 4, self.seconds], env=environment))
        return rate, (cpu_seconds_of_children() - before) / (rate * self.seconds)


class Xz(Program):
    name, needs = "xz", ("xz",)
    load_tool = "xz -T2 of 8 MB of words"

    def prepare(self):
        words = random.Random(1)
        vocabulary = ["".join(words.choices("etaoinshrdlu", k=words.randint(2, 9))) for _ in range(5000)]
        self.plain = self.directory / "words"
        with open(self.plain, "w") as out:
            size = 0
            while size < 8_000_000:
                line = " ".join(words.choices(vocabulary, k=2000)) + "\n"
                out.write(line)
                size += len(line)
        self.sum = None

    def run(self, environment):
        packed = self.directory / "words.xz"
        begin, cpu_before = time.monotonic(), cpu_seconds_of_children()
        with open(packed, "wb") as out:
            if subprocess.run(["xz", "-1", "-T2", "--block-size=1MiB", "-c", str(self.plain)], stdout=out, env=environment,
                              timeout=300).returncode != 0:
                raise Wrong("xz: it failed")
        rate, cpu = 1 / (time.monotonic() - begin), cpu_seconds_of_children() - cpu_before
        found = hashlib.sha256(packed.read_bytes()).hexdigest()
        if self.sum is None:
            self.sum = found
            if hashlib.sha256(subprocess.run(["xz", "-dc", str(packed)], capture_output=True).stdout).digest() != \
                    hashlib.sha256(self.plain.read_bytes()).digest():
                raise Wrong("xz: what it wrote does not unpack to what it read")
        if found != self.sum:
            raise Wrong("xz: another output than before")
        return rate, cpu


PROGRAMS = {one.name: one for one in (Redis, Memcached, MariaDb, Sqlite, Xz)}


def environment_of(mode, library, stats):
    clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD" and not name.startswith("ELIDEX_")}
    if mode == "plain":
        return clean
    return dict(clean, LD_PRELOAD=str(library), **({"ELIDEX_STATS": str(stats), "ELIDEX_SITES": "12"} if mode == "statistics" else {}))


def measure(program, library, rounds, say):
    rates, cpu = {mode: [] for mode in MODES}, {mode: [] for mode in MODES}
    stats = program.directory / "stats"
    program.prepare()
    program.run(environment_of("plain", library, stats))  # warms caches and makes tables
    for number in range(rounds):
        shift = number % len(MODES)
        for mode in MODES[shift:] + MODES[:shift]:
            stats.unlink(missing_ok=True)
            rate, cpu_each = program.run(environment_of(mode, library, stats))
            rates[mode].append(rate)
            cpu[mode].append(cpu_each)
            if mode == "statistics":
                report, text = the_report(program, stats), stats.read_text()
        say(f"programs: {program.name}, round {number + 1} of {rounds}: " +
            ", ".join(f"{mode} {rates[mode][-1]:.5g}" for mode in MODES))
    return rates, cpu, report, text


def the_report(program, stats):
    if not stats.exists():
        raise Wrong(f"{program.name}: no statistics were written")
    found = reports(stats.read_text())
    if not found:
        raise Wrong(f"{program.name}: the statistics hold no table")
    return max(found, key=lambda one: one["calls"])  # of the programs that a script starts, the one that was measured


def ratio(rates, mode):
    each = sorted(a / b for a, b in zip(rates[mode], rates["plain"]))
    return {"median": statistics.median(each), "min": each[0], "max": each[-1]}


def summary_line(one):
    cells = [f"{found['median']:.3f} ({found['min']:.3f}..{found['max']:.3f})"
             for kind in ("ratios", "cpu_ratios") for found in (one[kind]["library"], one[kind]["statistics"])]
    head = one["report"]
    return (f"{one['program']:13}" + "".join(f"{cell:>24}" for cell in cells) + f"{head['calls']:12,}"
            f"{100 * head['contended'] / max(1, head['calls']):12.2f}{head['waited_ns'] / 1e6:11.1f}")


HEAD = (f"{'program':13}{'rate, library':>24}{'rate, statistics':>24}{'CPU, library':>24}{'CPU, statistics':>24}"
        f"{'lock calls':>12}{'contended %':>12}{'waited ms':>11}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each run, about [3]")
    parser.add_argument("--only", default=",".join(PROGRAMS), metavar="A,B", help="of: " + ", ".join(PROGRAMS))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    say = lambda text: print(text, file=sys.stderr, flush=True)  # noqa: E731
    if arguments.rounds < 1 or arguments.seconds <= 0:
        say("programs: --rounds and --seconds: they take numbers above 0")
        return 2
    chosen = arguments.only.split(",")
    unknown = [name for name in chosen if name not in PROGRAMS]
    if unknown:
        say(f"programs: --only: it takes {', '.join(PROGRAMS)}, not {unknown[0]}")
        return 2
    results, wrong = [], 0
    for name in chosen:
        kind = PROGRAMS[name]
        missing = [tool for tool in kind.needs if shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin") is None]
        if missing:
            say(f"programs: {name} is left out: there is no {missing[0]}")
            continue
        with tempfile.TemporaryDirectory(prefix="elidex-programs-") as directory:
            try:
                rates, cpu, report, text = measure(kind(Path(directory), arguments.seconds), arguments.library, arguments.rounds, say)
            except (Wrong, subprocess.TimeoutExpired) as error:
                say(f"programs: {error}")
                wrong += 1
                continue
        report["rows"] = report["rows"][:ROWS_SAVED]
        results.append({"program": name, "load": kind.load_tool, "rates": rates, "cpu_seconds": cpu,
                        "ratios": {mode: ratio(rates, mode) for mode in MODES[1:]},
                        "cpu_ratios": {mode: ratio(cpu, mode) for mode in MODES[1:]}, "report": report})
        print(f"\n{text}")
    if not results:
        return 1 if wrong else 2
    print("Ratios to the run without the library. Rate: operations a second, less is slower; CPU: processor time for each, more is slower.\n" + HEAD)
    for one in results:
        print(summary_line(one))
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        content = {"schema": 1, "rounds": arguments.rounds, "seconds": arguments.seconds, "programs": results}
        arguments.json.write_text(json.dumps(content, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    os.environ["PATH"] += ":/usr/sbin"
    sys.exit(main())
