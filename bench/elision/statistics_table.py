"""Reads the table that libelidex-preload.so prints (preload/report.cpp)."""

import re

HEAD = re.compile(r"^elidex: (?P<program>.*), process (?P<process>\d+), (?P<time>[\d.]+ \w+): (?P<calls>\d+) lock calls at "
                  r"(?P<places>\d+) places, (?P<contended>\d+) contended \((?P<contended_pct>[\d.]+) %\), "
                  r"waited (?P<waited>[\d.]+ \w+)$")
TIME = r"(-|[\d.]+ (?:ns|us|ms|s))"
ROW = re.compile(r"^ *(\d+) +(\d+) +" + f"{TIME} +" * 4 + r" *(\w+(?: \w+)?) +(\S.*)$")
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def nanoseconds(text):
    """None for '-'."""
    if text == "-":
        return None
    number, unit = text.split()
    return float(number) * UNITS[unit]


def reports(text):
    """A list of reports, each with what its head says and its rows."""
    found = []
    for line in text.splitlines():
        head = HEAD.match(line)
        if head:
            found.append({"program": head["program"], "process": int(head["process"]), "seconds": nanoseconds(head["time"]) / 1e9,
                          "calls": int(head["calls"]), "places": int(head["places"]), "contended": int(head["contended"]),
                          "waited_ns": nanoseconds(head["waited"]), "rows": []})
            continue
        row = ROW.match(line)
        if row and found:
            found[-1]["rows"].append({"calls": int(row[1]), "contended": int(row[2]), "waited_ns": nanoseconds(row[3]),
                                      "longest_wait_ns": nanoseconds(row[4]), "held_ns_mean": nanoseconds(row[5]),
                                      "held_ns_max": nanoseconds(row[6]), "lock": row[7], "place": row[8].strip()})
    return found
