"""The plots, as SVG text or as a PNG file. An index has one colour and one hatch in a section."""

import io
import itertools
import re
from collections import defaultdict

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FixedLocator, MaxNLocator  # noqa: E402

from results import rate_unit, theta_of  # noqa: E402

plt.rcParams.update({
    "font.size": 10, "font.family": "DejaVu Sans", "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 10, "axes.titleweight": "bold", "svg.fonttype": "none", 
    "hatch.linewidth": 0.6, "text.parse_math": False,
})

# Okabe and Ito's colours, told apart by colour-blind readers too; hatches, markers and lines tell repeated ones apart.
OURS = "#D55E00"
OTHERS = ["#0072B2", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#7F7F7F", "#B8A900"]
HATCHES = ["", "///", "...", "xxx"]
LINES = ["-", "--", ":", "-."]
MARKERS = "osD^vP*X"
DAGGER = "†"  # behind the rate of a run that other programs disturbed
PANELS_MAX = 3  # beside each other in the width of a page


class Looks:
    """Which colour, hatch, marker and line each index has, over all plots of a section."""

    def __init__(self, indexes):
        others = sorted(i for i in indexes if i != "ordered_map")
        self._of = {name: (OTHERS[n % len(OTHERS)], HATCHES[n // len(OTHERS) % len(HATCHES)],
                           MARKERS[(n + 1) % len(MARKERS)], LINES[n // len(OTHERS) % len(LINES)])
                    for n, name in enumerate(others)}
        self._of["ordered_map"] = (OURS, "", "o", "-")

    def colour(self, index):
        return self._of[index][0]

    def hatch(self, index):
        return self._of[index][1]

    def marker(self, index):
        return self._of[index][2]

    def line(self, index):
        return self._of[index][3]


drawn = itertools.count()


def svg(figure):
    out = io.StringIO()
    # Plots of one page share no element names, and equal data gives an equal page.
    plt.rcParams["svg.hashsalt"] = f"elidex {next(drawn)}"
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    text = out.getvalue()
    # Only the drawing itself: the XML prologue and the metadata name outside addresses and are of no use in HTML.
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg"):], flags=re.DOTALL)
    text = re.sub(r' width="[\d.]+pt" height="[\d.]+pt"', "", text, count=1)
    return f"<div class=scroll>{text}</div>"


def ordered_indexes(runs):
    """Slowest first, by the run with the most threads: the fastest ends up on top of a horizontal chart."""
    best = {}
    for run in sorted(runs, key=lambda r: r["threads"]):
        best[run["index"]] = run["mops"]
    return sorted(best, key=best.get)


def thread_counts(runs):
    return sorted({r["threads"] for r in runs})


def few(threads):
    """At most PANELS_MAX of them, the first and the last included."""
    if len(threads) <= PANELS_MAX:
        return threads
    return [threads[round(n * (len(threads) - 1) / (PANELS_MAX - 1))] for n in range(PANELS_MAX)]


def name_rows(axis, indexes, **font):
    axis.set_yticks(range(len(indexes)), indexes, **font)
    for label in axis.get_yticklabels():
        label.set_fontweight("bold" if label.get_text() == "ordered_map" else "normal")


def threads_title(count):
    return f"{count} thread" + ("" if count == 1 else "s")


def rate_text(run, form=".3g"):
    return format(run["mops"], form) + (f" {DAGGER}" if run["disturbed"] else "")


def by_threads(runs, looks):
    points = defaultdict(list)
    for run in runs:
        points[run["index"]].append((run["threads"], run))
    return curves(points, looks, "threads", "")


def curves(points, looks, label, title):
    """Throughput over something, whiskers from the slowest to the fastest round. `points`: index -> [(where, run)]."""
    figure, axis = plt.subplots(figsize=(6.6, 3.4))
    last = {index: max(there, key=lambda point: point[0])[1]["mops"] for index, there in points.items()}
    for index in sorted(points, key=last.get, reverse=True):  # the legend reads as the right ends of the curves
        there = sorted(points[index], key=lambda point: point[0])
        ours = index == "ordered_map"
        axis.errorbar([x for x, _ in there], [r["mops"] for _, r in there],
                      yerr=[[max(r["mops"] - r["mops_min"], 0) for _, r in there],
                            [max(r["mops_max"] - r["mops"], 0) for _, r in there]],
                      color=looks.colour(index), marker=looks.marker(index), linestyle=looks.line(index), markersize=5.5,
                      capsize=2, linewidth=2.6 if ours else 1.3, elinewidth=0.8, zorder=3 if ours else 2, label=index)
        for x, run in there:
            if run["disturbed"]:
                axis.annotate(DAGGER, (x, run["mops"]), (4, 4), textcoords="offset points")
    axis.set_ylim(bottom=0)
    axis.xaxis.set_major_locator(FixedLocator(sorted({x for there in points.values() for x, _ in there})))
    axis.set_xlabel(label)
    unit = rate_unit([run for there in points.values() for _, run in there])
    axis.set_ylabel(unit)
    axis.grid(alpha=0.3, linewidth=0.6)
    # Above the curves: beside them it would be out of sight on a phone.
    axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, fontsize=9,
                title=title or None, alignment="left")
    return figure


def by_theta(works, threads, looks):
    """Throughput over skew. `works`: dist -> runs of one workload."""
    points = defaultdict(list)
    for dist, runs in works.items():
        for run in runs:
            if run["threads"] == threads:
                points[run["index"]].append((theta_of(dist), run))
    return curves(points, looks, "skew of the keys: Zipf theta (0 = uniform)", threads_title(threads))


def picture(rows, looks):
    """The README's picture as PNG bytes. `rows`: the allocator -> (title, runs) pairs."""
    everything = [r for panels in rows.values() for _, runs in panels for r in runs]
    indexes = ordered_indexes(everything)
    longest = max(r["mops_max"] for r in everything)
    columns = max(len({r["threads"] for r in runs}) for _, runs in next(iter(rows.values()))) * 2
    figure = plt.figure(figsize=(2.2 + 1.95 * columns, (1.3 + 0.34 * len(indexes)) * len(rows)), layout="constrained")
    parts = figure.subfigures(len(rows), 1, squeeze=False)[:, 0]
    for part, (allocator, panels) in zip(parts, sorted(rows.items())):
        if len(rows) > 1:
            part.suptitle(allocator, x=0.01, ha="left", fontsize=11, fontweight="bold")
        picture_row(part, panels, indexes, longest, looks)
    figure.supxlabel("Mops/s (million operations per second), more is better", fontsize=10.5)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=130)
    plt.close(figure)
    return out.getvalue()


def picture_row(part, panels, indexes, longest, looks):
    columns = [(title, count, [r for r in runs if r["threads"] == count])
               for title, runs in panels for count in sorted({r["threads"] for r in runs})]
    axes = part.subplots(1, len(columns), sharey=True, squeeze=False)
    for axis, (title, count, runs) in zip(axes[0], columns):
        for run in runs:
            row, index = indexes.index(run["index"]), run["index"]
            axis.barh(row, run["mops"], height=0.7, color=looks.colour(index), hatch=looks.hatch(index),
                      edgecolor="white", linewidth=0)
            axis.plot([run["mops_min"], run["mops_max"]], [row, row], color="black", linewidth=1)
            axis.text(max(run["mops_max"], run["mops"]) + 0.02 * longest, row, rate_text(run),
                      va="center",
                      fontsize=10)
        name_rows(axis, indexes, fontsize=11)
        axis.tick_params(axis="y", length=0)
        axis.set_xlim(0, longest * 1.25)
        axis.xaxis.set_major_locator(MaxNLocator(4))
        axis.set_title(f"{title}, {threads_title(count)}", loc="left", fontsize=10.5)
        axis.grid(axis="x", alpha=0.3, linewidth=0.6)
        axis.set_axisbelow(True)
