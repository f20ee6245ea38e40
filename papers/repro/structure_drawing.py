"""The plots of the data structures: throughputs to the left, aborted cycles to the right. Simulated and native numbers
never share one."""

import matplotlib.pyplot as plt
from drawing import COLOURS, MARKERS, legend_outside, plain, png
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from structure_claims import ABORTED_CYCLES, counters, throughputs
from structure_titles import BARS, BUCKETS, TITLES

# The same lock has the same colour in every figure.
LOCKS = ("POSIX", "TAS", "HLE", "elision only", "ttas_lock", "elided<ttas_lock>")
SHOWN = {"elision only": "elision only (RTM)", "elided<ttas_lock>": "elided<ttas_lock>\n(RTM, then the lock)"}


def look(name):
    n = LOCKS.index(name) if name in LOCKS else len(LOCKS)
    return COLOURS[n % len(COLOURS)], MARKERS[n % len(MARKERS)]


def grouped_bars(axis, series, names_of_x):
    xs = sorted({x for points in series.values() for x, _ in points})
    width = 0.84 / len(series)
    for n, (name, points) in enumerate(series.items()):
        for x, y in points:
            at = xs.index(x) + (n - (len(series) - 1) / 2) * width
            axis.bar(at, y, width=0.92 * width, color=look(name)[0])
            axis.annotate(short(y), (at, y), ha="center", va="bottom", fontsize=8.5, rotation=90,
                          xytext=(0, 3), textcoords="offset points")
    axis.set_xticks(range(len(xs)), [names_of_x.get(x, plain(x)) for x in xs])
    axis.grid(axis="x", visible=False)
    axis.set_ylim(0, axis.get_ylim()[1] * 1.16)


def short(y):
    return f"{y:.3g}" if y < 999.5 else plain(y)


def lines(axis, series, logarithmic):
    for n, (name, points) in enumerate(series.items()):
        colour, marker = look(name)
        # Lines that lie upon each other stay visible: the first is the widest.
        axis.plot(*zip(*points), color=colour, marker=marker, markersize=6, linewidth=2 + 0.7 * (len(series) - 1 - n))
    xs = sorted({x for points in series.values() for x, _ in points})
    if logarithmic:
        axis.set_xscale("log")
    axis.xaxis.set_major_locator(FixedLocator(xs))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: plain(x)))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: plain(y)))
    axis.set_ylim(0, axis.get_ylim()[1] * 1.05)


def panel(axis, figure_id, series):
    if figure_id in BARS:
        grouped_bars(axis, series, BARS[figure_id])
    else:
        lines(axis, series, logarithmic=TITLES[figure_id][1] == BUCKETS)


def draw(figure_id, series, footnote):
    """`series`: name -> points. The right panel is there where counters are."""
    title, x_axis = TITLES[figure_id]
    speeds = throughputs(series)
    wasted = {name.removesuffix(ABORTED_CYCLES): points for name, points in counters(series).items()
              if name.endswith(ABORTED_CYCLES)}
    figure, axes = plt.subplots(1, 2 if wasted else 1, figsize=(12.5 if wasted else 7.6, 4.6), squeeze=False,
                                gridspec_kw={"width_ratios": [1.25, 1] if wasted else [1]})
    left, right = axes[0][0], axes[0][-1]
    figure.suptitle(f"{figure_id}: {title}", x=0.01, ha="left", fontweight="bold", fontsize=12)
    panel(left, figure_id, speeds)
    left.set(xlabel=x_axis, ylabel="operations per ms, all threads")
    if wasted:
        panel(right, figure_id, wasted)
        right.set(xlabel=x_axis, ylabel="aborted of transactional cycles, in %")
        right.set_ylim(0, 118 if figure_id in BARS else 103)
        right.set_yticks(range(0, 101, 20))
    names = list(speeds)
    legend_outside(right, [plt.Line2D([], [], color=look(n)[0], linewidth=3, marker=look(n)[1], markersize=6)
                           for n in names], [SHOWN.get(n, n) for n in names])
    figure.tight_layout()
    figure.text(0.01, -0.03, footnote, fontsize=9, color="#555555")
    return png(figure)
