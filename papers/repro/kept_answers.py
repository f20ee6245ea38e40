"""A file that keeps each run's answer as it ends, so that hours of runs may be interrupted.

    with KeptAnswers("full.jsonl", program) as kept:   # reads what is there, or begins the file
        kept.answer_of(request)                        # None: not there
        kept.add(request, answer)                      # from any thread; then it is on the disk

The first line names the program by its SHA-256. Another program's answers are refused, because they
may differ. A line that was not written whole is dropped.
"""

import hashlib
import json
import os
import threading

from claims import BadInput

MADE_BY = "program_sha256"


def fingerprint(program):
    with open(program, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def key_of(request):
    return json.dumps(request, sort_keys=True)


class KeptAnswers:
    def __init__(self, path, program):
        self.path, self.lock, self.answers = path, threading.Lock(), {}
        head = {MADE_BY: fingerprint(program)}
        try:
            self.file = open(path, "a+b")
        except OSError as error:
            raise self.refusal(error.strerror) from None
        try:
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
        return BadInput(f"--answers: '{self.path}': {why} (expected a file of this option, or a new "
                        "one)")

    def read(self, head):
        """Takes what is there; returns the length of the whole lines."""
        self.file.seek(0)
        content = self.file.read()
        whole = content.rfind(b"\n") + 1
        lines = content[:whole].splitlines()
        if content and not lines and not content.startswith(b'{"' + MADE_BY.encode()[:len(content) - 2]):
            raise self.refusal("it holds something else")
        try:
            made = [json.loads(line) for line in lines]
            if made and made[0] != head:
                raise self.refusal("another build has made it" if MADE_BY in made[0]
                                   else "it holds something else")
            self.answers = {key_of(one["request"]): one["answer"] for one in made[1:]}
        except (ValueError, TypeError, KeyError):
            raise self.refusal("it holds something else") from None
        return whole

    def write(self, one):
        self.file.write(json.dumps(one).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def answer_of(self, request):
        return self.answers.get(key_of(request))

    def add(self, request, answer):
        with self.lock:
            self.write({"request": request, "answer": answer})
