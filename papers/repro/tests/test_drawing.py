"""The x scales of plots are true: what is twice as far in the data is so in the plot."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import drawing  # noqa: E402
from panels import Panel, looks  # noqa: E402


def axis_of(kind, points, **more):
    panel = Panel("", "x", "y", kind, {"ours": [(x, 1 + n) for n, x in enumerate(points)]}, **more)
    axis = drawing.plt.subplots()[1]
    drawing.KINDS[kind](axis, panel, looks(["ours"]))
    return axis


class XScales(unittest.TestCase):
    def tearDown(self):
        drawing.plt.close("all")

    def centres(self, axis):
        return [bar.get_x() + bar.get_width() / 2 for bar in axis.patches]

    def test_lines(self):
        axis = axis_of("lines", [1, 2, 64], x_scale="log")
        self.assertEqual(list(axis.lines[0].get_xdata()), [1, 2, 64])
        self.assertEqual((axis.get_xscale(), list(axis.get_xticks())), ("log", [1, 2, 64]))
        self.assertEqual(axis_of("lines", [0, 1, 100], x_scale="symlog").get_xscale(), "symlog")

    def test_stacks_and_groups_of_numbers(self):
        for kind in ("stacks", "groups"):
            with self.subTest(kind):
                axis = axis_of(kind, [0, 0.9, 0.99])
                for here, there in zip(self.centres(axis), [0, 0.9, 0.99], strict=True):
                    self.assertAlmostEqual(here, there)
                self.assertLess(max(bar.get_width() for bar in axis.patches), 0.09)
                self.assertEqual(list(axis.get_xticks()), [0, 0.9, 0.99])

    def test_places_with_names_are_side_by_side(self):
        axis = axis_of("groups", [0, 1], names={0: "one lock", 1: "many"})
        self.assertEqual([label.get_text() for label in axis.get_xticklabels()], ["one lock", "many"])
        self.assertEqual(len(axis_of("stacks", ["HLE", "RTM"]).patches), 2)

    def test_own_numbers_and_ranges(self):
        panel = Panel("", "%", "", "numbers", {"ours": [(0, -3)]}, {"ours": [(0, (25, 35))]})
        axis = drawing.plt.subplots()[1]
        drawing.numbers(axis, panel, looks(["ours"]))
        ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axis.patches]
        self.assertEqual([tuple(sorted(one)) for one in ends], [(-3, 0), (25, 35)])
        self.assertEqual([text.get_text() for text in axis.texts], ["-3", "25 to 35"])


if __name__ == "__main__":
    unittest.main()
