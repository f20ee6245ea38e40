#!/usr/bin/env python3
"""Builds elidex's packages and uses each: what ./dev package runs.

    package.py [--no-tools] [--only debian|conan]

Debian: builds the packages, runs lintian, installs them into a new minimal Debian (mmdebstrap), and
compiles and runs programs there. Conan: `conan create` without network, static and shared.
Everything lies in build/package: the packages, the logs, and a copy of the sources, whose build is
continued by the next run. Prints a line for each step; status 1 if one fails.
"""

import argparse
import filecmp
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "package"
REQUIREMENTS = ROOT / "packaging" / "requirements.txt"
SUITE = "bookworm"
JOBS = len(os.sched_getaffinity(0))


class Failed(Exception):
    """A step failed; the text is one line."""


def version():
    header = (ROOT / "include" / "elidex" / "version.hpp").read_text()
    return re.search(r'version\[\] = "([^"]+)"', header).group(1)


def step(name, command, log, **options):
    """Runs the command, whose output goes into build/package/LOG. Returns the output."""
    begin = time.monotonic()
    log = OUT / log
    with open(log, "w") as out:
        status = subprocess.run([str(word) for word in command], stdout=out,
                                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                **options).returncode
    said = log.read_text(errors="replace")
    if status != 0:
        print("    " + "\n    ".join(said.rstrip().splitlines()[-30:]))
        raise Failed(f"package: {name}: status {status}; {log.relative_to(ROOT)} has all output")
    print(f"package: {name}: done in {time.monotonic() - begin:.0f} s", flush=True)
    return said


def copied_sources():
    """A copy of the files that git knows or would add. Unchanged files keep their time stamps."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                            check=True, stdout=subprocess.PIPE, text=True).stdout
    files = {Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()}
    copy = OUT / f"elidex-{version()}"
    # debhelper's notes of an earlier build lie in debian/.
    shutil.rmtree(copy / "debian", ignore_errors=True)
    for path in sorted(copy.rglob("*")):
        relative = path.relative_to(copy)
        if not relative.parts[0].startswith("obj-") and path.is_file() and relative not in files:
            path.unlink()
    for name in sorted(files):
        target = copy / name
        if not target.exists() or not filecmp.cmp(ROOT / name, target, shallow=False):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    return copy


def debian_packages(tools):
    """Builds the packages, and returns those that users install."""
    source = copied_sources()
    for old in (*OUT.glob("*.deb"), *OUT.glob("*.changes"), *OUT.glob("*.buildinfo")):
        old.unlink()
    environment = dict(os.environ, LC_ALL="C.UTF-8")
    environment.setdefault("DEB_BUILD_OPTIONS", f"parallel={JOBS}")
    if not tools:
        environment["DEB_BUILD_PROFILES"] = "pkg.elidex.notools"
    step("Debian packages", ["dpkg-buildpackage", "-b", "-us", "-uc", "-nc"], "debian.log",
         cwd=source, env=environment)
    step("lintian", ["lintian", "--allow-root", "--profile", "debian", "--fail-on",
                     "error,warning", *OUT.glob("*.changes")], "lintian.log")
    return sorted(deb for deb in OUT.glob("*.deb") if "-dbgsym_" not in deb.name)


def use_in_clean_debian(packages):
    (OUT / "version").write_text(version() + "\n")
    copies = ['mkdir "$1/packages" "$1/use"',
              "copy-in " + " ".join(map(str, [*packages, OUT / "version"])) + " /packages",
              "copy-in " + " ".join(map(str, (ROOT / "packaging" / "use").iterdir())) + " /use",
              'chroot "$1" /use/in_clean_system.sh']
    # CMAKE_* variables may name programs that the clean system lacks, such as a compiler launcher.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CMAKE_")}
    said = step(f"use in a clean {SUITE}",
                ["mmdebstrap", "--variant=apt", "--format=null",
                 *(f"--customize-hook={hook}" for hook in copies), SUITE, "-"],
                "clean-system.log", env=environment)
    return len(re.findall(r"^ok ", said, re.MULTILINE))


def conan():
    """The program, in a virtual environment of its own."""
    venv, wanted = OUT / "venv", hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    stamp = venv / "requirements.sha256"
    if not stamp.exists() or stamp.read_text() != wanted:
        python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
        step("environment of Conan", [python, "-m", "venv", "--clear", venv], "venv.log")
        step("Conan", [venv / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check",
                       "--require-virtualenv", "-r", REQUIREMENTS], "pip.log")
        stamp.write_text(wanted)
    return venv / "bin" / "conan"


def conan_packages():
    program, home, test = conan(), OUT / "conan", OUT / "conan-test"
    for old in (home, test):
        shutil.rmtree(old, ignore_errors=True)
    environment = dict(os.environ, CONAN_HOME=str(home))
    without_network = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "-rn"]
    step("conan profile", [program, "profile", "detect"], "conan-profile.log", env=environment)
    for shared in ("False", "True"):
        step(f"conan create, shared={shared}",
             [*without_network, program, "create", ROOT, "--no-remote", "--build=missing",
              "-s", "compiler.cppstd=20", "-o", f"elidex/*:shared={shared}",
              "-c", f"tools.build:jobs={JOBS}",
              "-c", f"tools.cmake.cmake_layout:test_folder={test}"],
             f"conan-{shared.lower()}.log", env=environment)
    return 2


def main():
    parser = argparse.ArgumentParser(prog="./dev package", description=__doc__.splitlines()[0])
    parser.add_argument("--no-tools", action="store_true",
                        help="without elidex-tools, which takes most of the time")
    parser.add_argument("--only", choices=("debian", "conan"))
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    results = []
    try:
        if arguments.only != "debian":
            results.append(f"{conan_packages()} Conan packages")
        if arguments.only != "conan":
            packages = debian_packages(not arguments.no_tools)
            checks = use_in_clean_debian(packages)
            results.append(f"{len(packages)} Debian packages, {checks} checks in a clean system")
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    print("package: " + "; ".join(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
