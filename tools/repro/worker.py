"""Runs requests on the simulated machine: each in a process of its own, several at a time."""

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from claims import BadInput


class WorkerFailed(Exception):
    """One line for the user; the exit status is 1."""


class Progress:
    """A bar on standard error where that is a terminal; nothing elsewhere."""

    CELLS = 24

    def __init__(self, total, stream=None):
        self.stream = stream or sys.stderr
        self.on = self.stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self.total, self.done, self.begin = total, 0, time.monotonic()
        self.draw("simulating")

    def draw(self, doing):
        if not self.on:
            return
        share = self.done / max(self.total, 1)
        filled = int(share * self.CELLS)
        text = (f"{'#' * filled}{'.' * (self.CELLS - filled)} {100 * share:3.0f} % "
                f"{time.monotonic() - self.begin:4.0f} s  {doing}")
        self.stream.write("\r" + text[:shutil.get_terminal_size().columns - 1] + "\033[K")
        self.stream.flush()

    def step(self, doing):
        self.done += 1
        self.draw(doing)

    def close(self):
        if self.on:
            self.stream.write("\r\033[K")
            self.stream.flush()


def name_of(request):
    return request.get("experiment") or f"{request['index']}, {request['dist']}"


def ask(program, request):
    """One request, one answer."""
    try:
        ran = subprocess.run([program], input=json.dumps(request), capture_output=True, text=True, check=False)
    except OSError as error:
        raise WorkerFailed(f"{program}: {error.strerror}") from None
    said = ran.stderr.strip().split("\n")[0]
    if ran.returncode == 2:
        raise BadInput(said)
    if ran.returncode != 0:
        raise WorkerFailed(said or f"{name_of(request)}: the simulated run ended with status {ran.returncode}")
    try:
        return json.loads(ran.stdout)
    except ValueError:
        raise WorkerFailed(f"{name_of(request)}: the simulated run gave no JSON") from None


def ask_all(program, requests, jobs, asking=ask):
    """key -> request becomes key -> answer. The first failure ends it; what has not begun by then never does."""
    progress = Progress(len(requests))
    pool = ThreadPoolExecutor(max(1, min(jobs, len(requests))))
    try:
        futures = {}
        for key, request in requests.items():
            futures[key] = pool.submit(asking, program, request)
            futures[key].add_done_callback(lambda f, r=request: f.cancelled() or progress.step(name_of(r)))
        wait(futures.values(), return_when=FIRST_EXCEPTION)
        failed = [f for f in futures.values() if f.done() and not f.cancelled() and f.exception()]
        if failed:
            raise failed[0].exception()
        return {key: future.result() for key, future in futures.items()}
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        progress.close()
