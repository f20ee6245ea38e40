"""The plots as PNG bytes: ours solid, the paper's dashed, the same series in the same colour."""

import io
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402
from matplotlib.patheffects import Normal, Stroke  # noqa: E402
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator  # noqa: E402

plt.rcParams.update({
    "font.size": 11, "font.family": "DejaVu Sans", "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 12, "axes.titleweight": "bold", "text.parse_math": False, "axes.grid": True, "grid.alpha": 0.3,
    "grid.linewidth": 0.6, "axes.axisbelow": True, "hatch.linewidth": 0.8
})

# Okabe and Ito's colours, told apart by colour-blind readers; the markers tell series apart without colour.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00"]
MARKERS = "osD^vPX"
MARKED_MAX = 20  # points; more of them would hide the lines
DPI = 130
DASHES = (0, (4, 2))
# Dashes have a white edge, so that they show on a solid line of their own colour.
WHITE_EDGE = [Stroke(linewidth=2.8, foreground="white"), Normal()]

# figure -> (title, x axis, y axis, further settings of matplotlib's axes)
SIZE, ABORTED = "size of the transaction in KB", "transactions that abort in %"
AXES = {
    "S-2.4": ("Types of the lock word, 4 threads", "locks (log scale)", "locked sections per ms, in thousands",
              {"xscale": "log"}),
    "S-2.5": ("A hundred locks, unlocked at once, 4 threads", "locked sections of each thread", "time in ms", {}),
    "S-2.6": ("One lock, held for long, 4 threads", "locked sections of each thread", "time in ms", {}),
    "S-2.7": ("Test-then-set locks, with and without HLE", "locked sections of each of 4 threads", "time in ms", {}),
    "S-3.0": ("Regions that ignore the lock lose updates", "", "lost updates in %", {}),
    "S-3.1": ("Sequential writes in a transaction", SIZE, ABORTED, {}),
    "S-3.2": ("Sequential reads in a transaction", SIZE, ABORTED, {}),
    "S-3.5": ("Writes by stride, static array", SIZE, ABORTED, {}),
    "S-3.6": ("Writes by stride, heap array", SIZE, ABORTED, {}),
    "S-3.7": ("Aborts by duration", "iterations of a loop around a nop (log scale)", ABORTED, {"xscale": "log"}),
    "S-3.8": ("Nested RTM regions", "regions inside the outermost", ABORTED, {}),
    "S-3.9": ("HLE locks held at once", "locks held at once", "aborted of transactional cycles, in %", {}),
    "S-3.9b": ("HLE locks held at once, with the workaround", "locks held at once",
               "aborted of transactional cycles, in %", {}),
    "S-3.10": ("Lock and unlock around nothing", "", "cycles, the clock's own included", {}),
    "S-C.1": ("Allocation inside a transaction", "bytes allocated (log scale)", ABORTED, {"xscale": "log"}),
    "S-C.2": ("Random accesses to 64 KB", "accesses in a transaction", ABORTED, {}),
    "S-C.3": ("Lock and unlock around reading 1 KB", "", "cycles, the clock's own included", {}),
    "S-D.1": ("Writing an array of 1 KB", "", "cycles", {}),
    "S-D.2": ("Sixteen writes again and again", "execution", "cycles", {}),
    "S-D.4": ("Sixteen writes after an abort", "", "cycles", {}),
    "K-T1": ("Conflict probability by level of the tree", "level (0: leaves, 4: root)", "P_C in millionths", {}),
    "K-F7": ("Overflow of a set of the cache", "random cache lines in the transaction", "overflow probability", {}),
}


def png(figure):
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
    return out.getvalue()


def looks(names):
    return {name: (COLOURS[n % len(COLOURS)], MARKERS[n % len(MARKERS)]) for n, name in enumerate(names)}


def in_order(here, paper):
    return list(dict.fromkeys([*here, *paper]))


def legend(axis, names, here, paper, looks_of, whose):
    """The series by colour, then which line is whose; beside the plot, where it hides nothing."""
    handles, labels = [], []
    for name in names:
        colour, marker = looks_of[name]
        handles.append(Line2D([], [], color=colour, linewidth=2.5, marker=marker, markersize=6))
        labels.append(name + ("" if name in here and name in paper or not paper else
                              " (here alone)" if name in here else " (paper alone)"))
    if paper:
        handles += [
            Line2D([], [], color="#777777", linewidth=2.2),
            Line2D([], [], color="#777777", linewidth=1.6, linestyle=DASHES)
        ]
        labels += [whose, "paper"]
    legend_outside(axis, handles, labels)


def legend_outside(axis, handles, labels):
    axis.legend(handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)


def bars(axis, here, paper):
    """One group of bars for each series, named below it."""
    names = in_order(here, paper)
    for n, (name, (colour, _)) in enumerate(looks(names).items()):
        for shift, points, style in ((-0.2, here.get(name), {"color": colour}),
                                     (0.2, paper.get(name), {"facecolor": "white", "edgecolor": colour, "hatch": "////",
                                                             "linewidth": 1.4})):
            if points:
                x = n + (shift if paper else 0)
                axis.bar(x, points[0][1], width=0.36, **style)
                axis.annotate(f"{points[0][1]:.3g}", (x, points[0][1]), ha="center", va="bottom", fontsize=10)
    # Long names break at their first space or bracket.
    axis.set_xticks(range(len(names)), [re.sub(r" |(?=<)", "\n", n, count=1) if len(n) > 12 else n for n in names],
                    fontsize=9.5)
    axis.set_xlim(-0.7, len(names) - 0.3)
    axis.grid(axis="x", visible=False)
    if paper:
        legend_outside(axis, [Patch(facecolor="#777777"), Patch(facecolor="white", edgecolor="#777777", hatch="////")],
                       ["here, simulated", "paper"])


def lines(axis, here, paper, whose):
    names = in_order(here, paper)
    look = looks(names)
    for n, name in enumerate(names):
        colour, marker = look[name]
        if name in here:
            # Series that lie upon each other stay visible: the first is the widest.
            axis.plot(*zip(*here[name]), color=colour, linewidth=3 + max(len(here) - 1 - n, 0), zorder=2,
                      marker=marker if len(here[name]) <= MARKED_MAX else None, markersize=6)
        if name in paper:
            # The dashes of neighbours begin elsewhere, so that each shows in the other's gaps.
            axis.plot(*zip(*paper[name]), color=colour, linewidth=1.6, linestyle=(3 * n, (4, 2)),
                      zorder=4 if name in here else 3,
                      marker=marker if len(paper[name]) <= MARKED_MAX else None, markersize=6, markerfacecolor="white",
                      path_effects=WHITE_EDGE)
    legend(axis, names, here, paper, look, whose)


def plain(value):
    """Thousands apart, millions as such."""
    return f"{value / 1e6:g} M" if value >= 1e6 and value % 1e5 == 0 else f"{value:,.0f}".replace(",", " ")


def number_x_axis(axis, figure_id, here):
    xs = sorted({x for points in here.values() for x, _ in points})
    if len(xs) <= 10:
        axis.xaxis.set_major_locator(FixedLocator(xs))
    elif axis.get_xscale() == "log":
        axis.xaxis.set_major_locator(LogLocator())
    elif figure_id.startswith("S-3.9"):
        axis.xaxis.set_major_locator(FixedLocator([1, *range(2, 21, 2)]))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: plain(x)))
    axis.xaxis.set_minor_locator(NullLocator())


def overlay(figure_id, here, paper, footnote):
    """One figure. `here` and `paper`: series name -> points."""
    title, x_axis, y_axis, settings = AXES[figure_id]
    figure, axis = plt.subplots(figsize=(8.4, 4.6))
    one_place = all(len(points) == 1 for points in here.values())
    reach = max(x for points in here.values() for x, _ in points)
    paper = {name: [(x, y) for x, y in points if x <= 1.02 * reach] for name, points in paper.items()}
    axis.set_title(f"{figure_id}: {title}", loc="left", pad=32 if figure_id == "K-F7" else None)
    axis.set(ylabel=y_axis, xlabel=x_axis, **settings)
    if one_place:
        bars(axis, here, paper)
    else:
        lines(axis, here, paper, "here" if figure_id.startswith("K") else "here, simulated")
        number_x_axis(axis, figure_id, here)
    if "in %" in y_axis and figure_id != "S-3.0":
        axis.set_ylim(-3, 103)
    else:
        axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
    if figure_id == "K-F7":
        footprints(axis)
    if figure_id == "K-T1":
        axis.invert_xaxis()
        axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{1e6 * y:g}"))
    figure.text(0.01, -0.03, footnote, fontsize=9, color="#555555")
    return png(figure)


FOOTPRINTS = ((47, "right", "binary search:\naverage 47, worst 53"), (53, "left", ""),
              (93, "left", "linear:\naverage 93"), (213, "left", "linear:\nworst 213"))


def footprints(axis):
    """The figure's dotted lines: what searches touch."""
    for lines_touched, side, label in FOOTPRINTS:
        axis.axvline(lines_touched, color="#777777", linestyle=":", linewidth=1.3)
        axis.annotate(label, (lines_touched, 1.01), xytext=(-3 if side == "right" else 0, 0), fontsize=9, ha=side,
                      va="bottom", textcoords="offset points", xycoords=("data", "axes fraction"))
