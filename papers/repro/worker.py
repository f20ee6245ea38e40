"""Runs requests on the simulated machine: each in a process of its own, several at a time.

Runs that would load the same keys into the same index, and take less time than the load, share one
load if the caller allows it (in_groups())."""

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from claims import BadInput
from ending import came, check, put_off

SIGNAL_POLL_SECONDS = 0.1


class WorkerFailed(Exception):
    """One line for the user; the exit status is 1."""


class Progress:
    """A bar on standard error where that is a terminal; nothing elsewhere."""

    CELLS = 24

    def __init__(self, total, stream=None):
        self.stream = stream or sys.stderr
        self.on = self.stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.total, self.done, self.begin = max(total, 1), 0, time.monotonic()
        self.draw("running")

    def draw(self, doing):
        bar = ("#" * (self.done * self.CELLS // self.total)).ljust(self.CELLS, ".")
        text = (f"{bar} {100 * self.done / self.total:3.0f} % "
                f"{time.monotonic() - self.begin:4.0f} s  {doing}")
        self.write(text[:shutil.get_terminal_size().columns - 1])

    def step(self, doing):
        self.done += 1
        self.draw(doing)

    def write(self, text):
        if self.on:
            self.stream.write(f"\r{text}\033[K")
            self.stream.flush()


def name_of(request):
    if "list" in request:
        return "list"
    return request.get("experiment") or f"{request['index']}, {request['dist']}"


class Running:
    """The simulated runs of all threads. end() kills them and lets none begin."""

    def __init__(self):
        self.lock, self.programs, self.ended = threading.Lock(), set(), False

    def run(self, program, text, each=None):
        """(status, standard output, standard error). each: gets the lines of the output, one by
        one, instead."""
        ran, lines = None, []
        # A file for errors: they may be more than a pipe holds.
        with tempfile.TemporaryFile("w+") as errors:
            try:
                with put_off(), self.lock:
                    if self.ended:
                        raise WorkerFailed(f"{program}: ended by a signal")
                    ran = subprocess.Popen([program], stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, stderr=errors, text=True)
                    self.programs.add(ran)
                with ran.stdout:
                    with contextlib.suppress(BrokenPipeError), ran.stdin:  # it may refuse early
                        ran.stdin.write(text)
                    for line in ran.stdout:
                        (each or lines.append)(line)
                ran.wait()
                errors.seek(0)
                return ran.returncode, "".join(lines), errors.read()
            except BaseException:
                if ran:
                    ran.kill()
                    ran.wait()
                raise
            finally:
                with self.lock:
                    self.programs.discard(ran)

    def end(self):
        with self.lock:
            self.ended = True
            for program in self.programs:
                program.kill()


def refuse(status, said, name):
    """What a run said that gave no answer."""
    if status == 2:
        raise BadInput(said)
    raise WorkerFailed(said or f"{name}: the run ended with status {status}")


def parsed(text, name):
    try:
        return json.loads(text)
    except ValueError:
        raise WorkerFailed(f"{name}: the run gave no JSON") from None


def run_of(running, program, request, each=None):
    """Its output."""
    try:
        status, out, err = running.run(program, json.dumps(request), each)
    except OSError as error:
        raise WorkerFailed(f"{program}: {error.strerror}") from None
    if status != 0:
        first = request["runs"][0] if "runs" in request else request
        refuse(status, err.strip().split("\n")[0], name_of(first))
    return out


def ask(program, request, running=None):
    """One request, one answer."""
    return parsed(run_of(running or Running(), program, request), name_of(request))


def ask_several(program, requests, took, running=None):
    """Requests that load alike: took(number, answer) for each, in their order, as it ends."""
    ended = 0

    def each(line):
        nonlocal ended
        name = name_of(requests[ended])
        answer = parsed(line, name)
        if "failed" in answer:
            refuse(answer["status"], answer["failed"], name)
        took(ended, answer)
        ended += 1

    run_of(running or Running(), program, {"runs": requests}, each)
    if ended < len(requests):
        raise WorkerFailed(f"{name_of(requests[ended])}: the run gave no JSON")


# A load writes a key in a tenth of the time that the machine takes for an operation, or less.
KEYS_OF_AN_OPERATION = 10
# What runs of one load may differ in: load_alike() of the program for the simulated machine.
AFTER_THE_LOAD = ("workload", "threads", "cpus", "operations", "quantum", "set")
OF_CAPABILITIES = ("rtm", "hle")  # but not in these


def load_of(request):
    """Equal where runs share a load; None where that gains little."""
    known_size = {"keys", "operations", "threads"} <= request.keys()
    if not known_size or not request["workload"].startswith("insert-mix:") or (
            request["keys"] < KEYS_OF_AN_OPERATION * request["operations"] * request["threads"]):
        return None
    return json.dumps([sorted((n, v) for n, v in request.items() if n not in AFTER_THE_LOAD),
                       [request.get("set", {}).get(n) for n in OF_CAPABILITIES]])


def in_groups(requests, sharing):
    """The keys of requests, those of one load together."""
    groups = {}
    for key, request in requests.items():
        load = load_of(request) if sharing else None
        groups.setdefault(load or (key,), []).append(key)
    return list(groups.values())


def failures(futures):
    return [f.exception() for f in futures if f.done() and not f.cancelled() and f.exception()]


def ask_all(program, requests, jobs, asking=None, kept=None, failed=None, sharing=False):
    """key -> request becomes key -> answer. The first failure ends it; what has not begun by then
    never does. With `failed`, a dictionary, a run that fails leaves its key and the reason there,
    and the others go on. A signal ends what runs, too. Requests already in `kept` do not run.
    sharing: runs may share a load."""
    check()
    answers = {} if kept is None else {key: answer for key, request in requests.items()
                                       if (answer := kept.answer_of(request)) is not None}
    wanted = {key: request for key, request in requests.items() if key not in answers}
    progress, running, futures = Progress(len(wanted)), Running(), {}
    asking = asking or functools.partial(ask, running=running)

    def took(key, answer):
        if kept is not None:
            kept.add(wanted[key], answer)
        answers[key] = answer
        progress.step(name_of(wanted[key]))

    def work(keys):
        if len(keys) == 1:
            return took(keys[0], asking(program, wanted[keys[0]]))
        return ask_several(program, [wanted[key] for key in keys],
                           lambda number, answer: took(keys[number], answer), running)

    # An exception inside the pool's own code would leave a lock held or a thread unknown.
    with put_off():
        pool = ThreadPoolExecutor(max(1, min(jobs, len(wanted))))
        try:
            for keys in in_groups(wanted, sharing):
                futures[keys[0]] = pool.submit(work, keys)
            left = futures.values()
            while left and not came():
                left = wait(left, timeout=SIGNAL_POLL_SECONDS, return_when=FIRST_EXCEPTION).not_done
                for future in left if failed is None and failures(futures.values()) else ():
                    future.cancel()
            if came():
                running.end()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            progress.write("")
    for error in failures(futures.values()):
        if failed is None or not isinstance(error, WorkerFailed):
            raise error
    if failed is not None:
        failed |= {key: str(future.exception()) for key, future in futures.items()
                   if future.exception()}
    return {key: answers[key] for key in requests if key in answers}
