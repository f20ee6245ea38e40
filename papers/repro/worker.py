"""Runs requests on the simulated machine: each in a process of its own, several at a time.

Runs that begin with the same keys in the same index, and spend most of their time on loading these,
share one load (in_groups())."""

import functools
import json
import os
import shutil
import subprocess
import sys
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
    return request.get("experiment") or f"{request['index']}, {request['dist']}"


class Running:
    """The simulated runs of all threads. end() kills them and lets none begin."""

    def __init__(self):
        self.lock, self.programs, self.ended = threading.Lock(), set(), False

    def run(self, program, text, each=None):
        """(status, standard output, standard error). each: gets the lines of the output, one by
        one, instead."""
        ran = None
        try:
            with put_off(), self.lock:
                if self.ended:
                    raise WorkerFailed(f"{program}: ended by a signal")
                ran = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
                self.programs.add(ran)
            if each:
                ran.stdin.write(text)
                ran.stdin.close()
                for line in ran.stdout:
                    each(line)
                ran.stdin = None
            out, err = ran.communicate(None if each else text)
            return ran.returncode, out, err
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


def ask(program, request, running=None):
    """One request, one answer."""
    try:
        status, out, err = (running or Running()).run(program, json.dumps(request))
    except OSError as error:
        raise WorkerFailed(f"{program}: {error.strerror}") from None
    said = err.strip().split("\n")[0]
    if status == 2:
        raise BadInput(said)
    if status != 0:
        raise WorkerFailed(
            said or f"{name_of(request)}: the run ended with status {status}")
    try:
        return json.loads(out)
    except ValueError:
        raise WorkerFailed(f"{name_of(request)}: the run gave no JSON") from None


def keeping(asking, kept):
    def asked(program, request):
        answer = asking(program, request)
        kept.add(request, answer)
        return answer
    return asked


def failures(futures):
    return [f.exception() for f in futures if f.done() and not f.cancelled() and f.exception()]


def ask_all(program, requests, jobs, asking=None, kept=None, failed=None):
    """key -> request becomes key -> answer. The first failure ends it; what has not begun by then
    never does. With `failed`, a dictionary, a run that fails leaves its key and the reason there,
    and the others go on. A signal ends what runs, too. Requests already in `kept` do not run."""
    check()
    there = {} if kept is None else {key: answer for key, request in requests.items()
                                     if (answer := kept.answer_of(request)) is not None}
    wanted = {key: request for key, request in requests.items() if key not in there}
    progress, running, futures = Progress(len(wanted)), Running(), {}
    asking = asking or functools.partial(ask, running=running)
    if kept is not None:
        asking = keeping(asking, kept)
    # An exception inside the pool's own code would leave a lock held or a thread unknown.
    with put_off():
        pool = ThreadPoolExecutor(max(1, min(jobs, len(wanted))))
        try:
            for key, request in wanted.items():
                futures[key] = pool.submit(asking, program, request)
                futures[key].add_done_callback(
                    lambda f, r=request: f.cancelled() or progress.step(name_of(r)))
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
    broken = {key: str(future.exception()) for key, future in futures.items()
              if future.exception()}
    if failed is not None:
        failed |= broken
    return {key: there[key] if key in there else futures[key].result() for key in requests
            if key not in broken}
