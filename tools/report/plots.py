"""The plots, as SVG text or as a PNG file. An index has one colour and one hatch everywhere."""

import io
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter  # noqa: E402

from results import theta_of  # noqa: E402

plt.rcParams.update({
    "font.size": 10, "font.family": "DejaVu Sans", "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 10, "axes.titleweight": "bold", "svg.fonttype": "none", "svg.hashsalt": "elidex",
    "hatch.linewidth": 0.6, "text.parse_math": False,
})

# Okabe and Ito's colours, told apart by colour-blind readers too; hatches and markers tell repeated ones apart.
OURS = "#D55E00"
OTHERS = ["#0072B2", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#7F7F7F", "#B8A900"]
HATCHES = ["", "///", "...", "xxx"]
MARKERS = "osD^vP*X"


class Looks:
    """Which colour, hatch and marker each index has, over all plots of a page."""

    def __init__(self, indexes):
        others = sorted(i for i in indexes if i != "ordered_map")
        self._of = {name: (OTHERS[n % len(OTHERS)], HATCHES[n // len(OTHERS) % len(HATCHES)],
                           MARKERS[(n + 1) % len(MARKERS)]) for n, name in enumerate(others)}
        self._of["ordered_map"] = (OURS, "", "o")

    def colour(self, index):
        return self._of[index][0]

    def hatch(self, index):
        return self._of[index][1]

    def marker(self, index):
        return self._of[index][2]


def svg(figure):
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    text = out.getvalue()
    # Only the drawing itself: the XML prologue and the metadata name outside addresses and are of no use in HTML.
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg"):], flags=re.DOTALL)
    return re.sub(r' width="[\d.]+pt" height="[\d.]+pt"', ' style="width:100%;height:auto"', text, count=1)


def ordered_indexes(runs):
    """Slowest first, by the run with the most threads: the fastest ends up on top of a horizontal chart."""
    best = {}
    for run in sorted(runs, key=lambda r: r["threads"]):
        best[run["index"]] = run["mops"]
    return sorted(best, key=best.get)


def thread_panels(runs, row_inches, title_of):
    threads = sorted({r["threads"] for r in runs})
    indexes = ordered_indexes(runs)
    figure, axes = plt.subplots(1, len(threads), sharey=True, squeeze=False,
                                figsize=(10, 1.0 + row_inches * max(len(indexes), 2)))
    for axis, count in zip(axes[0], threads):
        axis.set_title(title_of(count), loc="left")
        axis.set_yticks(range(len(indexes)), indexes)
        axis.set_ylim(-0.6, len(indexes) - 0.4)
        axis.tick_params(axis="y", length=0)
        axis.grid(axis="x", alpha=0.3, linewidth=0.6)
        axis.set_axisbelow(True)
        for label in axis.get_yticklabels():
            label.set_fontweight("bold" if label.get_text() == "ordered_map" else "normal")
    return figure, list(zip(axes[0], threads)), {name: row for row, name in enumerate(indexes)}


def threads_title(count):
    return f"{count} thread" + ("" if count == 1 else "s")


def throughput(runs, looks):
    figure, panels, rows = thread_panels(runs, 0.3, threads_title)
    longest = max(max(r["mops_max"], r["mops"]) for r in runs) or 1
    for axis, count in panels:
        for run in (r for r in runs if r["threads"] == count):
            row, index = rows[run["index"]], run["index"]
            axis.barh(row, run["mops"], height=0.68, color=looks.colour(index), hatch=looks.hatch(index),
                      edgecolor="white", linewidth=0)
            axis.plot([run["mops_min"], run["mops_max"]], [row, row], color="black", linewidth=1.1,
                      marker="|", markersize=5)
            axis.text(max(run["mops_max"], run["mops"]) + 0.02 * longest, row, f"{run['mops']:.3g}", va="center",
                      fontsize=9)
        axis.set_xlim(0, longest * 1.16)
        axis.xaxis.set_major_locator(MaxNLocator(5))
        axis.set_xlabel("million operations per second")
    figure.tight_layout()
    return figure


def latency(runs, looks):
    runs = [r for r in runs if r.get("ns_p50", 0) > 0 and r.get("ns_p99", 0) > 0]
    if not runs:
        return None
    figure, panels, rows = thread_panels(runs, 0.26, threads_title)
    low, high = min(r["ns_p50"] for r in runs), max(r["ns_p99"] for r in runs)
    for axis, count in panels:
        for run in (r for r in runs if r["threads"] == count):
            row, colour = rows[run["index"]], looks.colour(run["index"])
            axis.plot([run["ns_p50"], run["ns_p99"]], [row, row], color=colour, linewidth=1.6)
            axis.plot(run["ns_p50"], row, marker="o", color=colour, markersize=6)
            axis.plot(run["ns_p99"], row, marker="D", color=colour, markersize=6, markerfacecolor="white")
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0), numticks=8))
        axis.xaxis.set_major_formatter(FuncFormatter(lambda ns, _: f"{ns:g}"))
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_xlim(low / 1.4, high * 1.6)
        axis.set_xlabel("ns per operation, log scale: ● p50, ◇ p99")
    figure.tight_layout()
    return figure


def by_theta(works, threads, looks):
    """Throughput over skew. `works`: dist -> runs of one workload."""
    figure, axis = plt.subplots(figsize=(10, 3.6))
    indexes = sorted({r["index"] for runs in works.values() for r in runs})
    for index in indexes:
        points = sorted(((theta_of(dist), r) for dist, runs in works.items() for r in runs
                         if r["index"] == index and r["threads"] == threads), key=lambda point: point[0])
        if not points:
            continue
        thetas = [t for t, _ in points]
        axis.errorbar(thetas, [r["mops"] for _, r in points],
                      yerr=[[max(r["mops"] - r["mops_min"], 0) for _, r in points],
                            [max(r["mops_max"] - r["mops"], 0) for _, r in points]],
                      color=looks.colour(index), marker=looks.marker(index), markersize=5.5, capsize=2,
                      linewidth=2.4 if index == "ordered_map" else 1.3, elinewidth=0.8, label=index)
    axis.set_ylim(bottom=0)
    axis.set_xlabel("skew of the keys: Zipf theta (0 = uniform)")
    axis.set_ylabel("million operations per second")
    axis.set_title(threads_title(threads), loc="left")
    axis.grid(alpha=0.3, linewidth=0.6)
    axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    figure.tight_layout()
    return figure


def bytes_per_key(size_of, looks):
    """`size_of`: index -> bytes."""
    indexes = sorted(size_of, key=lambda i: -size_of[i])
    figure, axis = plt.subplots(figsize=(10, 0.8 + 0.28 * max(len(indexes), 2)))
    for row, index in enumerate(indexes):
        axis.barh(row, size_of[index], height=0.68, color=looks.colour(index), hatch=looks.hatch(index),
                  edgecolor="white", linewidth=0)
        axis.text(size_of[index], row, f" {size_of[index]:.1f}", va="center", fontsize=9)
    axis.set_yticks(range(len(indexes)), indexes)
    axis.tick_params(axis="y", length=0)
    axis.set_xlim(0, max(size_of.values()) * 1.1)
    axis.set_xlabel("bytes per key, value included")
    figure.tight_layout()
    return figure


def picture(panels, looks):
    """The README's picture as PNG bytes. `panels`: (title, runs) pairs."""
    columns = [(title, count, [r for r in runs if r["threads"] == count])
               for title, runs in panels for count in sorted({r["threads"] for r in runs})]
    indexes = ordered_indexes([r for _, runs in panels for r in runs])
    figure, axes = plt.subplots(1, len(columns), sharey=True, squeeze=False,
                                figsize=(2.2 + 1.95 * len(columns), 1.35 + 0.34 * len(indexes)))
    longest = max(r["mops_max"] for _, _, runs in columns for r in runs)
    for axis, (title, count, runs) in zip(axes[0], columns):
        for run in runs:
            row, index = indexes.index(run["index"]), run["index"]
            axis.barh(row, run["mops"], height=0.7, color=looks.colour(index), hatch=looks.hatch(index),
                      edgecolor="white", linewidth=0)
            axis.plot([run["mops_min"], run["mops_max"]], [row, row], color="black", linewidth=1)
            axis.text(max(run["mops_max"], run["mops"]) + 0.02 * longest, row, f"{run['mops']:.3g}", va="center", fontsize=10)
        axis.set_yticks(range(len(indexes)), indexes, fontsize=11)
        for label in axis.get_yticklabels():
            label.set_fontweight("bold" if label.get_text() == "ordered_map" else "normal")
        axis.tick_params(axis="y", length=0)
        axis.set_xlim(0, longest * 1.25)
        axis.xaxis.set_major_locator(MaxNLocator(4))
        axis.set_title(f"{title}\n{threads_title(count)}", loc="left", fontsize=10.5)
        axis.grid(axis="x", alpha=0.3, linewidth=0.6)
        axis.set_axisbelow(True)
    figure.supxlabel("million operations per second", fontsize=10.5, y=0.03)
    figure.tight_layout(rect=(0, -0.02, 1, 1))
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=130)
    plt.close(figure)
    return out.getvalue()
