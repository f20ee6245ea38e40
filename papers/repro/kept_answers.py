"""A file that keeps each run's answer as it ends, so that hours of runs may be interrupted.

    with KeptAnswers("full.jsonl", files) as kept:     # loads the file, or begins it
        kept.answer_of(request)                        # None: not there
        kept.add(request, answer)                      # from any thread; on the disk on return

The first line names the program by the SHA-256 of its files, and natively the machine. Another
program's or machine's answers are refused, because they may differ. A machine file's name and
values are part of the key, its comments are not. Each answer has a checksum, so that a damaged one
is refused and not judged. Files of earlier versions lack checksums. KeptAnswers drops an incomplete
last line. One process at a time may use a file.

StoredAnswers reads a complete file of any program. repeated() draws the runs by which it is
checked.
"""

import fcntl
import functools
import hashlib
import json
import math
import os
import random
import threading
import zlib
from pathlib import Path

import machines
from claims import BadInput

MADE_BY = "program_sha256"


def content(files):
    """The SHA-256 of the files, one after the other."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()


def key_of(request):
    """Equal for equal runs."""
    named = {name: described(value) if name == "machine_file" else value
             for name, value in request.items()}
    return json.dumps(named, sort_keys=True)


@functools.cache
def described(machine_file):
    values = json.dumps(machines.values(machine_file), sort_keys=True)
    return f"{Path(machine_file).stem} {hashlib.sha256(values.encode()).hexdigest()}"


def checksum(key, answer):
    return zlib.crc32(json.dumps([key, answer]).encode())


def answers_of(lines):
    """key -> answer. Raises ValueError, TypeError or KeyError for a line that is damaged."""
    answers = {}
    for number, one in enumerate(lines, 2):
        key, answer = one["key"], one["answer"]
        if not isinstance(key, str) or not isinstance(answer, dict):
            raise ValueError(f"line {number}: no answer")
        if one.get("crc32", checksum(key, answer)) != checksum(key, answer):
            raise ValueError(f"line {number}: wrong checksum")
        answers[key] = answer
    return answers


def named(error):
    """What answers_of() says of a line, or nothing."""
    return str(error) if type(error) is ValueError else ""


DAMAGE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


class KeptAnswers:
    def __init__(self, path, files, host=None):
        """files: what the program consists of. host: what native.host_of() says of this machine;
        none for simulated runs."""
        self.path, self.lock, self.answers = path, threading.Lock(), {}
        head = {MADE_BY: content(files)} | ({"host": host} if host else {})
        try:
            self.file = open(path, "a+b")
        except OSError as error:
            raise self.refusal(error.strerror or "not a file to read and write") from None
        try:
            self.own()
            whole = self.read(head)
        except BadInput:
            self.file.close()
            raise
        if self.file.seekable():
            self.file.truncate(whole)
        if not whole:
            self.write(head)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def refusal(self, why):
        return BadInput(f"--answers: '{self.path}': {why} (expected a file of this build, or a new "
                        "file)")

    def own(self):
        """Until the file is closed. What has no locks, such as a pipe, is used without."""
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(f"--answers: '{self.path}': another process uses it") from None
        except OSError:
            pass

    def read(self, head):
        """Loads the answers; returns the length of the complete lines."""
        self.file.seek(0)
        there = self.file.read()
        whole = there.rfind(b"\n") + 1
        lines = there[:whole].splitlines()
        head_begins = b'{"' + MADE_BY.encode()
        if there and not lines and not head_begins.startswith(there[:len(head_begins)]):
            raise self.refusal("not an --answers file")
        try:
            made = [json.loads(line) for line in lines]
            if made and made[0] != head:
                raise self.refusal("written by another build or on another machine"
                                   if MADE_BY in made[0] else "not an --answers file")
            self.answers = answers_of(made[1:])
        except DAMAGE as error:
            raise self.refusal(named(error) or "not an --answers file") from None
        return whole

    def write(self, one):
        self.file.write(json.dumps(one).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def answer_of(self, request):
        return self.answers.get(key_of(request))

    def add(self, request, answer):
        with self.lock:
            key = key_of(request)
            self.write({"key": key, "answer": answer, "crc32": checksum(key, answer)})


ONE_IN = 10  # of the stored runs, this share is repeated


class StoredAnswers(KeptAnswers):
    """The answers of a complete file, by any simulated program."""

    def __init__(self, path):
        self.path = path
        try:
            self.file = open(path, "rb")
        except OSError as error:
            raise self.refusal(error.strerror) from None
        try:
            first, *others = [json.loads(line) for line in self.file]
            self.program = first[MADE_BY]
            self.answers = answers_of(others)
        except DAMAGE as error:
            self.file.close()
            raise self.refusal(named(error) or "not a complete --answers file") from None

    def refusal(self, why):
        return BadInput(f"--answers: '{self.path}': {why}")

    def all_of(self, requests):
        """(point, seed) or name -> answer."""
        answers = {key: self.answer_of(request) for key, request in requests.items()}
        lacking = sum(1 for answer in answers.values() if answer is None)
        if lacking:
            raise self.refusal(f"has {len(answers) - lacking} of the {len(answers)} runs "
                               "(expected all with --verify)")
        return answers


def repeated(requests, seed):
    """One request in ten, at least one, drawn by the seed alone and not by their order."""
    ordered = sorted(requests, key=lambda key: key_of(requests[key]))
    drawn = random.Random(seed).sample(ordered, math.ceil(len(ordered) / ONE_IN))
    return {key: requests[key] for key in drawn}
