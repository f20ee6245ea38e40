import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from programs import ratio  # noqa: E402
from statistics_table import nanoseconds, reports  # noqa: E402

TEXT = """\
elidex: redis server, process 25353, 122 ms: 1680000 lock calls at 3 places, 243197 contended (14.5 %), waited 167 ms
elision: the CPU does not advertise RTM
       calls   contended      waited    longest   held mean   held max  lock         called from
      800000      233846      131 ms    4.04 ms       56 ns    6.87 us  mutex        contended_one+0xf
       80000           0           -          -           -          -  try write    libc.so.6+0x1f
  ... and 1 more places (ELIDEX_SITES shows more)
elidex: sh, process 1, 1.00 s: 1 lock calls at 1 places, 0 contended (0.0 %), waited 0 ns
"""


class StatisticsTable(unittest.TestCase):
    def test_reads_reports_and_rows(self):
        first, second = reports(TEXT)
        self.assertEqual((first["program"], first["process"], first["calls"]), ("redis server", 25353, 1680000))
        self.assertAlmostEqual(first["seconds"], 0.122)
        self.assertEqual(len(first["rows"]), 2)
        self.assertEqual(first["rows"][0]["place"], "contended_one+0xf")
        self.assertEqual(first["rows"][0]["held_ns_mean"], 56)
        self.assertEqual(first["rows"][1]["lock"], "try write")
        self.assertIsNone(first["rows"][1]["waited_ns"])
        self.assertEqual(second["rows"], [])

    def test_units(self):
        self.assertEqual(nanoseconds("1.50 ms"), 1.5e6)
        self.assertIsNone(nanoseconds("-"))

    def test_ratios_are_within_rounds(self):
        found = ratio({"plain": [1, 10, 100], "library": [1, 9, 110]}, "library")
        self.assertEqual(found, {"median": 1, "min": 0.9, "max": 1.1})


if __name__ == "__main__":
    unittest.main()
