"""The commands that README.md and docs/*.md show, and how CI runs each.

commands_of() finds them: lines of code blocks, and inline code that is a whole command. ROWS has
one row for each: how CI runs it. A command without a row and a row without a command are errors
(tests/test_commands.py).
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Whole programs on these pages are in examples/.
TOP_PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# `./dev docs` compiles the programs on these (docs/site/snippets.py).
SITE_PAGES = [page for directory in ("tutorial", "guides", "cookbook", "ideas")
              for page in sorted((ROOT / "docs" / directory).glob("*.md"))]
PAGES = TOP_PAGES + SITE_PAGES

PROGRAMS = ("./dev", "elidex", "elidex-c++", "cmake", "ctest", "ninja", "make", "git", "sudo", "apt", "apt-get",
            "pip", "python3", "sh",
            "bash", "export", "addr2line", "redis-server", "gdb")
SHELL_LINE = re.compile(rf"(?:\w+=\S+ )*(?:{'|'.join(map(re.escape, PROGRAMS))})(?= |$)")
SHELL_ASSIGNMENT = re.compile(r"(?:[A-Z_]+=\S+ )+\w")
COMMENT = re.compile(r"\s+# .*")


def code_blocks(text):
    """(language, lines) of each fenced or indented block of a Markdown page."""
    blocks, fence, indented, blank = [], None, False, True
    for line in text.split("\n"):
        if line.startswith("```"):
            fence = None if fence is not None else line[3:].strip()
            if fence is not None:
                blocks.append((fence, []))
        elif fence is not None:
            blocks[-1][1].append(line)
        elif line.startswith("    ") and (blank or indented):
            if not indented:
                blocks.append(("", []))
            indented = True
            blocks[-1][1].append(line[4:])
        elif line.strip():
            indented = False
        blank = not line.strip()
    return blocks


def without_blocks(text):
    """Without code blocks, and without comments, which no reader sees."""
    return re.sub(r"^```.*?^```$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)


def is_command(line):
    return SHELL_LINE.match(line) is not None or SHELL_ASSIGNMENT.match(line) is not None


def normalized(line):
    """Without its comment. `elidex` is what ./dev builds and runs."""
    line = COMMENT.sub("", " ".join(line.split()))
    return "./dev " + line if line.startswith("elidex ") else line


def inline_commands(text):
    """`./dev ...`, and `elidex COMMAND ARGUMENT...`. `elidex bench` and `elidex db bench` alone are
    the names of commands."""
    for code in re.findall(r"`([^`]+)`", without_blocks(text)):
        words = code.split()
        if words and (words[0] == "./dev" and len(words) > 1 or words[0] == "elidex"
                      and len(words) > (3 if words[1:2] == ["db"] else 2)):
            yield normalized(code)


def commands_of(text):
    lines = [line for language, lines in code_blocks(text) if language not in ("cpp", "output") for line in lines]
    return [*(normalized(line) for line in lines if is_command(line)), *inline_commands(text)]


def whole_programs_of(text):
    return ["\n".join([*lines, ""]) for _, lines in code_blocks(text)
            if any("int main(" in line for line in lines)]


@dataclass(frozen=True)
class Row:
    """How CI runs a command.

    smaller    replacements (old, new) that make it short enough for every run of CI; None: only
               --long runs it
    full       replacements that --long applies, such as a directory of its own or a program that
               ends; None: --long uses `smaller` too
    never      the reason why CI does not run it
    statuses   the expected exit statuses
    """

    command: str
    smaller: tuple = None
    full: tuple = ()
    never: str = ""
    statuses: tuple = (0,)


def as_written(command):
    return Row(command, smaller=())


def reduced(command, *pairs, full=()):
    return Row(command, smaller=pairs, full=full)


def long_only(command, *pairs, statuses=(0,)):
    return Row(command, full=pairs, statuses=statuses)


def never(command, why):
    return Row(command, never=why)


BRIEF = "--seconds 0.05 --repeat 1"
ITSELF = "these tests are a part of it"
WHOLE_PAPER = ("takes up to an hour; --long runs the figures that the pages name, and "
               "papers/repro/tests the judgement of all")
OWN_PROGRAM = "tests/machine/elidex_cxx_test.py compiles and runs such programs"
PACKAGES = "needs root and a Debian mirror; CI runs it as a job of its own"
# Servers run until they are stopped: a program that ends runs in place of them.
PROGRAM = ("redis-server --port 7777", "xz --version")
PRELOADED = ("/usr/lib", "{root}/build/release/preload")
EARLIER = "{root}/tests/data/directory-b9e5752"
INSTALL = (("build/install", "{directory}/install"), ("-S .", "-S {root}"),
           ("/where/you/like", "{directory}/prefix"))

ROWS = [
    # Measuring.
    as_written("./dev elidex doctor"),
    as_written("./dev elidex list"),
    as_written("./dev elidex report"),
    reduced("./dev elidex bench --index ordered_map,btree/mutex,absl+mutex --workload a "
            "--dist zipf:0.99 --keys 1M "
            "--threads 1,2", ("--keys 1M", f"--keys 10K {BRIEF}")),
    reduced("./dev elidex bench --workload c --threads 1,2 --csv runs.csv",
            ("1,2", f"1,2 --keys 10K {BRIEF}"), ("runs.csv", "{directory}/runs.csv")),
    reduced("./dev elidex bench --index ordered_map,std+shared_mutex --workload a "
            "--dist zipf:0.99 --keys 1M "
            "--threads 1,2", ("--keys 1M", f"--keys 10K {BRIEF}")),
    reduced("./dev elidex bench --index btree/htm-dbx,euno-btree,masstree --workload put:0.99 "
            "--threads 1,2", ("1,2", f"1,2 --keys 10K {BRIEF}")),
    reduced("./dev elidex bench --index db/occ,db/2pl --workload tpcc --threads 1,2",
            ("1,2", f"1,2 {BRIEF}")),
    reduced("./dev elidex bench --index db/occ,db/dbx,db/2pl --workload tpcc --warehouses 1,2 "
            "--threads 1,2",
            ("--threads 1,2", f"--threads 1,2 {BRIEF}")),
    reduced("./dev elidex bench --index db/occ,db/dbx,db/2pl --workload ycsb-txn:a "
            "--ops-per-txn 16 --theta 0.99 --keys 100K "
            "--threads 1,2", ("100K", f"10K {BRIEF}")),
    reduced("./dev elidex bench --index db/occ,db/2pl --workload smallbank "
            "--isolation serializable,read-committed "
            "--threads 1,2", ("1,2", f"1,2 {BRIEF}")),
    reduced("./dev demo", ("demo", "demo --seconds 0.02")),
    reduced("./dev locks", ("locks", "locks --rounds 1")),
    long_only("./dev maps", ("maps", "maps --rounds 2")),
    long_only("./dev programs"),
    long_only("./dev docs"),
    long_only("./dev columns"),
    long_only("./dev bench"),
    long_only("./dev bench --check", statuses=(0, 1)),  # 1: slower than where the gate was stored
    never("./dev bench --against COMMIT", "builds another commit, and measures for twenty minutes"),
    never("./dev bench --against b9e5752 --only warehouse", "builds another commit"),
    never("ELIDEX_TEST_HISTORY=h.jsonl build/release/tests/stress_tests --gtest_filter=DatabaseStress/0.*Scans*",
          "writes a file; the suite runs the test without one"),
    never("./dev bench --save", "replaces docs/results"),
    never("./dev bench --check --save", "replaces docs/results/gate.json"),
    # Columns and programs.
    as_written("./dev elidex column load papers/claims.csv --column unit --rows 10M"),
    as_written("./dev elidex column query papers/claims.csv --column unit --find lines "
               "--count a n --top 3"),
    reduced("./dev elidex elide -- redis-server --port 7777", PROGRAM, full=None),
    reduced("./dev elidex elide --stats - -- redis-server --port 7777", PROGRAM, full=None),
    reduced("ELIDEX_STATS=/tmp/locks.%p LD_PRELOAD=/usr/lib/libelidex-preload.so mariadbd",
            ("mariadbd", "xz --version"),
            ("/tmp/", "{directory}/"), ("/usr/lib", "{root}/build/release/preload"), full=None),
    # Simulated machines.
    reduced("./dev elidex sim --index btree/htm-dbx,ordered_map --dist uniform,zipf:0.99 "
            "--machine haswell-ep-2x10 "
            "--cores 1,16", ("1,16", "1,16 --ops 200 --keys 10K")),
    reduced("./dev elidex sim --index btree/htm-dbx,btree/optimistic --dist uniform,zipf:0.99 "
            "--cores 1,16 --ops 2000",
            ("--ops 2000", "--ops 200 --keys 10K")),
    reduced("./dev elidex sim --index btree/htm-dbx,euno-btree,masstree "
            "--workload eunomia:0.99,eunomia:0.5 --cores 16 --ops 8000", ("8000", "200")),
    reduced("./dev elidex sim --index btree/spin,ordered_map --machine haswell-i5-4670t --cores 4 "
            "--threads 4,64", ("4,64", "4,64 --ops 50 --keys 1K")),
    reduced("./dev elidex sim --workload tpcc --machine icelake-sp-2x32 --cores 1,16,64",
            ("1,16,64", "1,4 --ops 20 --customers 30 --items 100")),
    as_written("./dev elidex sim --index btree/htm-dbx --dist zipf:0.99 --machine haswell-i7-4770 "
               "--cores 8 "
               "--trace collapse.json"),
    as_written("./dev elidex repro S-3.7"),
    *(long_only("./dev elidex repro " + ids) for ids in
      ("K-F9b", "E-F10", "E-F18", "S-3.5", "S-3.9b", "S-3.15", "S-3.16", "S-3.17", "S-3.19",
       "S-5.2 S-5.3 S-5.4 S-5.5 S-5.6")),
    never("./dev elidex repro S", WHOLE_PAPER),
    never("./dev elidex repro E-F10 --scale settled --jobs 16 --answers settled.jsonl", WHOLE_PAPER),
    never("./dev elidex repro E --scale settled --answers e.jsonl", WHOLE_PAPER),
    never("./dev elidex repro E --scale full --answers full.jsonl", WHOLE_PAPER),
    never("./dev elidex repro E --scale full --answers full.jsonl --verify", WHOLE_PAPER),
    never("./dev elidex repro K --scale settled", WHOLE_PAPER),
    never("./dev elidex repro K --scale settled --verify --answers docs/results/repro-karnagel-answers.jsonl", WHOLE_PAPER),
    # 1: no transaction commits on this CPU.
    Row("./dev elidex repro all --native --answers native.jsonl --json native.json",
        smaller=(("repro all", "repro S-3.8 S-3.12"),), full=None, statuses=(0, 1)),
    as_written("./dev example conflict"),
    as_written("./dev example machine"),
    *(as_written(f"./dev example {topic}")
      for topic in ("word-count", "order-book", "time-series", "accounts")),
    # A database's directory.
    *(reduced(f"./dev elidex db {command} bank", ("bank", EARLIER)) for command in ("info", "verify")),
    *(reduced(f"./dev elidex db {command} DIR", ("DIR", EARLIER))
      for command in ("dump", "history", "info", "verify")),
    reduced("./dev elidex db restore DIR TO --group N",
            ("DIR TO --group N", EARLIER + " {directory}/restored --group 1M")),
    reduced("./dev elidex db dump bank > bank.jsonl",
            ("bank > bank.jsonl", EARLIER + " > {directory}/bank.jsonl")),
    reduced("./dev elidex db dump bank --table accounts --out accounts.parquet",
            ("bank", EARLIER), ("accounts.parquet", "{directory}/accounts.parquet")),
    reduced("./dev elidex db shell bank", ("bank", EARLIER)),
    *(reduced("./dev elidex db load bank accounts.csv --table accounts --columns " + columns,
              ("./dev elidex db load bank accounts.csv",
               "printf 'key,owner\\n1,Ada\\n' | {root}/dev elidex db load {directory}/csv" + str(number) +
               " - --format csv"))
      for number, columns in enumerate(('"owner text, balance integer"', '"owner text, balance integer, note text null"'))),
    reduced("./dev elidex db load copy bank.jsonl",
            ("load copy bank.jsonl",
             "dump " + EARLIER + " | {root}/dev elidex db load {directory}/copy -")),
    reduced("./dev elidex db backup bank copy-2",
            ("bank copy-2", EARLIER + " {directory}/copy-2")),
    reduced("./dev elidex db backup DIR TO", ("DIR TO", EARLIER + " {directory}/copy-3")),
    reduced("./dev elidex db backup DIR TO --update",
            ("DIR TO --update", EARLIER + " {directory}/copy-4 && {root}/dev elidex db backup " +
             EARLIER + " {directory}/copy-4 --update")),
    *(reduced("./dev elidex db bench --against sqlite,lmdb,rocksdb" + more,
              ("sqlite,lmdb,rocksdb", "sqlite,lmdb,rocksdb --rows 1K --work load,commits "
               f"--durability sync {BRIEF}")) for more in ("", " --json -")),
    never("elidex-c++ -O2 examples/machine.cpp -o bank", OWN_PROGRAM),
    never('ELIDEX_SIM="machine=haswell-i5-4670t locks=elided cpus=4 seed=2" ./bank', OWN_PROGRAM),
    # Recipes.
    *(never("./dev elidex " + command, "needs the code of its recipe, which checks/recipes compiles")
      for command in ("bench --index btree/shared,btree/rw --workload a --threads 1,2",
                      "bench --index ordered_map --workload u --threads 1,2", "repro E-F10z")),
    reduced("./dev schedule NoLostUpdate --seed 42",
            ("NoLostUpdate", "DatabaseSchedules/0.NoLostUpdate")),
    as_written("./dev elidex sim --index btree/htm-dbx --cores 2 --ops 200 --keys 1K "
               "--trace run.json"),
    reduced("ELIDEX_SIM=\"machine=haswell-i5-4670t locks=elided\" gdb -batch "
            "-ex 'set breakpoint pending on' -ex 'break elidex_sim_begin' -ex run -ex backtrace "
            "build/release/examples/machine_example", ("build/release", "{root}/build/release"),
            full=None),
    *(reduced(command, PRELOADED, full=None) for command in (
        "ELIDEX_VERBOSE=on LD_PRELOAD=/usr/lib/libelidex-preload.so xz --version",
        "ELIDEX_ELISION=off LD_PRELOAD=/usr/lib/libelidex-preload.so xz --version")),
    # 1: xz has ended by itself, so that there is no stack for the backtrace.
    Row("gdb -batch -ex 'set exec-wrapper env LD_PRELOAD=/usr/lib/libelidex-preload.so' -ex run "
        "-ex backtrace --args xz --version", smaller=(PRELOADED,), full=None, statuses=(0, 1)),
    # Building and testing.
    long_only("cmake -S . -B build/install -DCMAKE_BUILD_TYPE=Release -DELIDEX_BUILD_CLI=OFF "
              "-DELIDEX_BUILD_MACHINE=OFF "
              "-DELIDEX_BUILD_TESTS=OFF -DELIDEX_BUILD_EXAMPLES=OFF", *INSTALL),
    long_only("cmake --build build/install && cmake --install build/install "
              "--prefix /where/you/like", *INSTALL),
    reduced("./dev crash --runs 100", ("100", "2")),
    reduced("./dev schedule AreLinearizable",
            ("AreLinearizable", "HashMapSchedules/0.AreLinearizable")),
    never("./dev test", ITSELF),
    never("./dev test --quick", ITSELF),
    never("./dev test --long", ITSELF),
    never("./dev test --long --part arm64", ITSELF),
    never("./dev lint", "./dev test --long runs it"),
    never("./dev fmt", "changes the checkout; ./dev lint checks the same"),
    never("./dev package", PACKAGES),
    never("./dev package --no-tools", PACKAGES),
    never("./dev setup --peers", "installs Rust's cargo"),
]
