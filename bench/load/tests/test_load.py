"""The judgement of the load test, and one workload that runs beside busy programs."""

import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import load  # noqa: E402

ELIDEX = Path(__file__).resolve().parents[3] / "build" / "release" / "cli" / "elidex"


class FairShares(unittest.TestCase):
    def test_threads_and_busy_programs_share_the_processors(self):
        self.assertAlmostEqual(load.fair_share(2, 4, 2), 1 / 3)
        self.assertAlmostEqual(load.fair_share(16, 4, 2), 16 / 20)
        self.assertAlmostEqual(load.fair_share(2, 2, 16), 1.0)
        self.assertAlmostEqual(load.fair_share(1, 1, 2), 1.0)

    def test_canary_a_workload_that_starves_is_found(self):
        share = load.fair_share(2, 4, 2)
        self.assertAlmostEqual(load.judged([9.0, 9.0, 9.0], [3.0, 2.7, 3.3], share), 1.0)
        run = {"index": "x", "workload": "a", "threads": 2, "mops_alone": [9.0], "mops_beside": [1.4],
               "of_fair_share": load.judged([9.0], [1.4], share)}
        self.assertEqual(load.report([run], 0.5), [run])
        self.assertEqual(load.judged([0.0], [0.0], share), 0.0)


@unittest.skipUnless(ELIDEX.exists(), "build/release/cli/elidex is not built")
class Smoke(unittest.TestCase):
    def test_transactions_make_progress_beside_busy_programs(self):
        with load.busy_programs(2 * len(os.sched_getaffinity(0))):
            for index in ("db/occ", "db/2pl"):
                self.assertGreater(load.rate(ELIDEX, index, "ycsb-txn:a", 16, 0.5), 0.0)


if __name__ == "__main__":
    unittest.main()
