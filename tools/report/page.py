"""The HTML page around the plots. Everything is in the one file; nothing is loaded from elsewhere."""

from html import escape

import plots
from results import WORKLOADS, fastest, shorten, spread, theta_of, work_order, work_title

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 1080px; margin: 2em auto; padding: 0 1em; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.2em; border-bottom: 2px solid #ddd; } h3 { margin: 1.8em 0 .3em; }
table { border-collapse: collapse; margin: .6em 0; font-size: 14px; }
th, td { padding: .25em .8em; text-align: right; border-bottom: 1px solid #e4e4e4; }
th { border-bottom: 2px solid #bbb; font-weight: 600; } th:first-child, td:first-child, td.words { text-align: left; }
.best { font-weight: 700; } .note { color: #555; font-size: 13.5px; }
.simulated { background: #fff6dd; border-left: 5px solid #E69F00; padding: .4em .8em; }
details { margin: .4em 0; } summary { cursor: pointer; color: #0072B2; }
@media print { h3 { break-after: avoid; } svg, table { break-inside: avoid; } details { display: block; } }
"""


def table(headings, rows):
    """Cells are text, or (text, css class)."""
    def cell(content, tag="td"):
        text, css = content if isinstance(content, tuple) else (content, "")
        return f"<{tag}{f' class={css}' if css else ''}>{escape(str(text))}</{tag}>"

    head = "".join(cell(h, "th") for h in headings)
    body = "".join("<tr>" + "".join(cell(c) for c in row) + "</tr>\n" for row in rows)
    return f"<table><tr>{head}</tr>\n{body}</table>\n"


def machine_table(machine):
    def words(value):
        if isinstance(value, dict):
            return ", ".join(f"{k}: {words(v)}" for k, v in value.items())
        return ", ".join(map(words, value)) if isinstance(value, list) else str(value)

    return table(("this was measured on", ""), [(name.replace("_", " "), (words(v), "words"))
                                                for name, v in machine.items()])


def all_threads(key_set):
    return sorted({r["threads"] for runs in key_set.works.values() for r in runs})


def winners(key_set):
    """Who is fastest at what, and how clearly."""
    threads = all_threads(key_set)
    rows = []
    for work in sorted(key_set.works, key=work_order):
        runs, cells = key_set.works[work], []
        for count in threads:
            if not any(r["threads"] == count for r in runs):
                cells.append("")
                continue
            best, lead = fastest(runs, count)
            ahead = "" if lead is None else f", {lead:.2f} x the next"
            cells.append((f"{best['index']}: {best['mops']:.3g}{ahead}", "best" if best["index"] == "ordered_map" else ""))
        rows.append([(work_title(work), "words"), *cells])
    return table(["fastest, in million operations per second", *map(plots.threads_title, threads)], rows)


def spread_note(key_set):
    spreads = sorted(spread(r) for runs in key_set.works.values() for r in runs)
    return (f"Medians of interleaved rounds. Between its slowest and its fastest round a run differs by a factor of "
            f"{spreads[len(spreads) // 2]:.2f} (median over all runs), {spreads[-1]:.2f} at worst: "
            f"smaller differences between indexes are unproven.")


def run_table(runs):
    rows = []
    for count in sorted({r["threads"] for r in runs}):
        there = [r for r in runs if r["threads"] == count]
        best = max(r["mops"] for r in there)
        for r in there:
            rows.append((r["index"], count, (f"{r['mops']:.3f}", "best" if r["mops"] == best else ""),
                         f"{r['mops_min']:.3f} to {r['mops_max']:.3f}",
                         f"{r['ratio_to_first']:.2f}" if "ratio_to_first" in r else "",
                         f"{r.get('ns_p50', 0):.0f}", f"{r.get('ns_p99', 0):.0f}",
                         f"{r.get('aborts_per_op', 0):.2f}", f"{r.get('fallback_pct', 0):.0f}"))
    return table(("index", "threads", "Mops/s", "slowest to fastest round", "x the first index", "p50 ns", "p99 ns",
                  "aborts per op", "fallback %"), rows)


def theta_plots(key_set, looks):
    """For every workload that was run at three skews or more."""
    out = []
    for workload in sorted({w for w, _ in key_set.works}, key=lambda w: work_order((w, ''))):
        for scrambled in (False, True):
            works = {d: runs for (w, d), runs in key_set.works.items()
                     if w == workload and (d == "uniform" or d.endswith("scrambled") == scrambled)}
            if len({theta_of(d) for d in works}) < 3:
                continue
            where = "scattered" if scrambled else "side by side"
            out.append(f"<h3>{escape(WORKLOADS.get(workload, workload))}: the hotter the keys (hot keys {where})</h3>")
            for count in sorted({r["threads"] for runs in works.values() for r in runs}):
                out.append(plots.svg(plots.by_theta(works, count, looks)))
    return "\n".join(out)


def memory_plot(key_set, looks):
    size_of = {r["index"]: r["bytes_per_key"] for work in sorted(key_set.works, key=work_order, reverse=True)
               for r in key_set.works[work] if r.get("bytes_per_key", 0) > 0}
    return "<h3>Memory</h3>" + plots.svg(plots.bytes_per_key(size_of, looks)) if size_of else ""


def section(key_set, looks):
    parts = [f"<h2>{escape(key_set.title)}</h2>"]
    if key_set.simulated:
        parts.append("<p class=simulated>Simulated: cycles of a modelled machine, not comparable with native figures.</p>")
    parts += [winners(key_set), f"<p class=note>{spread_note(key_set)}</p>"]
    for work in sorted(key_set.works, key=work_order):
        runs = key_set.works[work]
        parts.append(f"<h3>{escape(work_title(work))}</h3>")
        parts.append(plots.svg(plots.throughput(runs, looks)))
        drawn = plots.latency(runs, looks)
        if drawn is not None:
            parts.append(plots.svg(drawn))
        parts.append(f"<details><summary>The numbers (workload {escape(work[0])}, {escape(work[1])})</summary>"
                     f"{run_table(runs)}</details>")
    parts += [theta_plots(key_set, looks), memory_plot(key_set, looks)]
    parts.append(f"<details><summary>The machine</summary>{machine_table(key_set.machine)}</details>")
    return "\n".join(parts)


def claims_section(contents):
    rows = [(c.get("id", ""), (c.get("where", ""), "words"), c.get("paper", ""), c.get("here", ""), c.get("verdict", ""))
            for content in contents for c in content.get("claims", [])]
    return "<h2>Claims of the papers</h2>" + table(("claim", "where", "the paper", "here", "verdict"), rows) if rows else ""


def headline(key_sets):
    """Ten seconds' worth: who is fastest, for each number of threads."""
    lines = []
    for key_set in key_sets:
        if len({r["index"] for runs in key_set.works.values() for r in runs}) < 2:
            continue
        kind = "simulated" if key_set.simulated else "native"
        words = []
        for count in all_threads(key_set):
            best = [fastest(runs, count) for runs in key_set.works.values() if any(r["threads"] == count for r in runs)]
            names = [run["index"] for run, _ in best]
            leader = max(sorted(set(names)), key=names.count)
            leads = sorted(lead for run, lead in best if run["index"] == leader and lead)
            ahead = f", {leads[0]:.2f} to {leads[-1]:.2f} x the next" if len(leads) > 1 else ""
            words.append(f"with {plots.threads_title(count)} <b>{escape(leader)}</b> is the fastest at "
                         f"{names.count(leader)} of {len(names)} kinds of work{ahead}")
        lines.append(f"<li>{escape(key_set.title)} ({kind}): {'; '.join(words)}.</li>")
    return "<ul>" + "".join(lines) + "</ul>" if lines else ""


def render(contents, key_sets):
    looks = plots.Looks({r["index"] for s in key_sets for runs in s.works.values() for r in runs})
    machine = key_sets[0].machine if key_sets else {}
    commits = ", ".join(sorted({str(c.get("commit", "unknown")) for c in contents}))
    facts = f"{machine.get('cpu', 'unknown CPU')}, {machine.get('cores', '?')} cores; elidex at {commits}"
    body = "\n".join(section(s, looks) for s in key_sets)
    runs = sum(len(c["runs"]) for c in contents)
    return (f"<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>elidex: what was measured</title>"
            f"<meta name=viewport content='width=device-width'><style>{STYLE}</style></head><body>\n"
            f"<h1>elidex: what was measured</h1><p class=note>{escape(facts)}; {shorten(runs)} runs from "
            f"{len(contents)} files</p>\n{headline(key_sets)}\n{body}\n{claims_section(contents)}\n</body></html>\n")
