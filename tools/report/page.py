"""The HTML page around the plots. Everything is in the one file; nothing is loaded from elsewhere."""

from collections import Counter
from html import escape
from os.path import basename

import plots
from results import (WORKLOADS, beyond_spread, fastest, lasting, lead, machines, shorten, spread, theta_of, work_order,
                     work_title)

ROWS_MAX = 10  # more rows of winners are folded away

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 1080px; margin: 2em auto; padding: 0 1em; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.2em; border-bottom: 2px solid #ddd; } h3 { margin: 1.8em 0 .3em; }
table { border-collapse: collapse; margin: .6em 0; font-size: 14px; }
th, td { padding: .25em .8em; text-align: right; border-bottom: 1px solid #e4e4e4; }
th { border-bottom: 2px solid #bbb; font-weight: 600; } th:first-child, td:first-child, .words { text-align: left; }
td { white-space: pre; vertical-align: top; font-variant-numeric: tabular-nums; }
td.words, td:first-child { white-space: pre-line; }
.best { font-weight: 700; } .note { color: #555; font-size: 13.5px; }
.simulated { background: #fff6dd; border-left: 5px solid #E69F00; padding: .4em .8em; }
details { margin: .4em 0; } summary { cursor: pointer; color: #0072B2; } li { margin: .3em 0; }
svg { display: block; }
@media print {
  body { max-width: none; margin: 0; font-size: 12px; } h2, h3, summary { break-after: avoid; } svg, tr { break-inside: avoid; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
}
"""


def table(headings, rows):
    """Cells are text, or (text, css class)."""
    def cell(content, tag="td"):
        text, css = content if isinstance(content, tuple) else (content, "")
        name = f' class="{css}"' if css else ""
        return f"<{tag}{name}>{escape(str(text))}</{tag}>"

    head = "".join(cell(h, "th") for h in headings)
    body = "".join("<tr>" + "".join(cell(c) for c in row) + "</tr>\n" for row in rows)
    return f"<table><tr>{head}</tr>\n{body}</table>\n"


def size_words(count):
    for size, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} bytes"


def words(value, name=""):
    if isinstance(value, dict):
        return ", ".join(f"{k.replace('_', ' ').removesuffix(' bytes')} {words(v, k)}" for k, v in value.items())
    if isinstance(value, list):
        return "\n".join(map(words, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and name.endswith("bytes"):
        return size_words(value)
    return str(value) if value != "" else "none"


def machines_section(contents):
    hosts = [lasting(m) for m in machines(contents)]
    if not any(hosts):
        return ""
    names = list(dict.fromkeys(name for host in hosts for name in host))
    titles = [("machine" if len(hosts) == 1 else f"machine {n}") + (", simulated" if host.get("simulated") else "")
              for n, host in enumerate(hosts, 1)]
    rows = []
    for name in names:
        told = [words(host[name], name) if name in host else "" for host in hosts]
        css = "words best" if len(set(told)) > 1 else "words"
        rows.append((name.replace("_", " ").removesuffix(" bytes"), *((t, css) for t in told)))
    return "<h2>Where it was measured</h2>" + table(("", *((t, "words") for t in titles)), rows)


def folded(summary, content, opened=False):
    return f"<details{' open' if opened else ''}><summary>{escape(summary)}</summary>{content}</details>"


def runs_with(runs, count):
    return [r for r in runs if r["threads"] == count]


def winners(key_set):
    """Who is fastest at what, and how clearly."""
    rows, threads = [], plots.few(key_set.threads)
    for work in sorted(key_set.works, key=work_order):
        cells = []
        for count in threads:
            if not runs_with(key_set.works[work], count):
                cells.append("")
                continue
            best, second = fastest(key_set.works[work], count)
            text = f"{best['index']} {best['mops']:.3g}"
            if lead(best, second):
                sign = "" if beyond_spread(best, second) else " (ranges overlap)"
                text += f"\n{lead(best, second):.2f} x {second['index']}{sign}"
            cells.append((text, "best" if best["index"] == "ordered_map" else ""))
        rows.append((work_title(work), *cells))
    drawn = table(("the fastest, Mops/s", *map(plots.threads_title, threads)), rows)
    return drawn if len(rows) <= ROWS_MAX else folded(f"The fastest at each of {len(rows)} kinds of work", drawn)


def notes(key_set):
    spreads = sorted(spread(r) for runs in key_set.works.values() for r in runs)
    text = (f"Medians of interleaved rounds. Between its slowest and its fastest round a run differs by a factor of "
            f"{spreads[len(spreads) // 2]:.2f} (the median run), {spreads[-1]:.2f} (the worst); where the "
            f"ranges of two indexes overlap, their order is unproven.")
    if any(dist.startswith("zipf") for _, dist in key_set.works):
        text += " Zipf: hot keys lie side by side in key order, unless it says scattered."
    text += f" From {', '.join(map(basename, key_set.files))}; elidex {key_set.commit}."
    if key_set.replaced:
        text += f" Earlier runs of the same kind left out, since the file named last counts: {key_set.replaced}."
    return f"<p class=note>{escape(text)}</p>"


def run_table(runs):
    rows = []
    for count in plots.thread_counts(runs):
        there = runs_with(runs, count)
        best = max(r["mops"] for r in there)
        for r in there:
            rows.append((r["index"], count, (f"{r['mops']:.3f}", "best" if r["mops"] == best else ""),
                         f"{r['mops_min']:.3f} to {r['mops_max']:.3f}",
                         f"{r['ratio_to_first']:.2f}" if "ratio_to_first" in r else "",
                         *(f"{r[name]:.{digits}f}" if name in r else "" for name, digits in
                           (("ns_p50", 0), ("ns_p99", 0), ("aborts_per_op", 2), ("fallback_pct", 0)))))
    firsts = {r["first"] for r in runs}
    return table(("index", "threads", "Mops/s", "slowest to fastest round",
                  f"x {firsts.pop()}" if len(firsts) == 1 else "x the first index of its file", "p50 ns", "p99 ns",
                  "aborts per op", "fallback %"), rows)


def theta_plots(works, looks):
    """For a workload that was run at three skews or more. `works`: dist -> runs."""
    out = []
    for scrambled in (False, True):
        there = {d: runs for d, runs in works.items()
                 if d == "uniform" or d.startswith("zipf") and d.endswith("scrambled") == scrambled}
        if len({theta_of(d) for d in there}) < 3:
            continue
        out.append(f"<p>Throughput as the keys get hotter{' (hot keys scattered)' if scrambled else ''}:</p>")
        for count in plots.few(plots.thread_counts([r for runs in there.values() for r in runs])):
            out.append(plots.svg(plots.by_theta(there, count, looks)))
    return "\n".join(out)


def memory_plot(key_set, looks):
    size_of = {r["index"]: r["bytes_per_key"] for work in sorted(key_set.works, key=work_order, reverse=True)
               for r in key_set.works[work] if r.get("bytes_per_key", 0) > 0}
    return "<h3>Memory</h3>" + plots.svg(plots.bytes_per_key(size_of, looks)) if size_of else ""


def work_block(work, runs, looks):
    drawn = plots.latency(runs, looks)
    return (plots.svg(plots.throughput(runs, looks)) + (plots.svg(drawn) if drawn is not None else "")
            + folded(f"The numbers (workload {work[0]}, {work[1]})", run_table(runs)))


def section(key_set, looks):
    parts = [f"<h2>{escape(key_set.title)}</h2>"]
    if key_set.simulated:
        parts.append("<p class=simulated>Simulated: all of this section comes from a modelled machine and is not comparable "
                     "with native figures.</p>")
    parts += [winners(key_set), notes(key_set)]
    for workload in sorted({w for w, _ in key_set.works}, key=lambda w: work_order((w, ""))):
        works = {dist: key_set.works[(workload, dist)]
                 for _, dist in sorted((k for k in key_set.works if k[0] == workload), key=work_order)}
        curves = theta_plots(works, looks)
        if curves:
            parts.append(f"<h3>{escape(WORKLOADS.get(workload, workload))}</h3>{curves}")
        for dist, runs in works.items():
            title, block = work_title((workload, dist)), work_block((workload, dist), runs, looks)
            parts.append(folded(f"{title}: throughput and latency", block) if curves else f"<h3>{escape(title)}</h3>{block}")
    parts.append(memory_plot(key_set, looks))
    return "\n".join(parts)


def claims_section(contents):
    rows = []
    for content in contents:
        kind = "simulated" if content["machine"].get("simulated") else "native"
        for claim in content["claims"]:
            rows.append((claim.get("id", ""), *((str(claim.get(n, "")), "words") for n in ("where", "paper", "here")),
                         kind, (claim.get("verdict", ""), "best")))
    verdicts = Counter(str(row[-1][0]) for row in rows)
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    return (f"<h2>Claims of the papers</h2><p>{escape(told)}.</p>"
            + table(("claim", ("where", "words"), ("the paper", "words"), ("here", "words"), "measured", "verdict"), rows)
            if rows else "")


def columns_section(contents):
    rows = []
    for content in contents:
        for one in content["columns"]:
            arrow = one.get("arrow", {})
            numbers = (one["insert_mrows_s"], one["delta_bytes_per_row"], one["main_bytes_per_row"],
                       one["vector_bytes_per_row"], arrow.get("dictionary_bytes_per_row"))
            rows.append(((f"{one['column']} of {one['file'].rsplit('/', 1)[-1]}", "words"), one["type"], f"{one['rows']:,}",
                         f"{one['distinct']:,}", *("" if n is None else f"{n:.2f}" for n in numbers)))
    return ("<h2>Columns</h2><p>Bytes are for each row: of the delta that took them, of the main after a merge, of a plain vector, "
            "and of Arrow's dictionary encoding.</p>"
            + table((("column", "words"), "type", "rows", "values", "loaded, M rows/s", "delta", "main", "vector", "Arrow"), rows)
            if rows else "")


def factors(values):
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return f"{low} x" if low == high else f"{low} to {high} x"


def leader_words(key_set, count):
    """Who is fastest at most kinds of work with that many threads."""
    works = [runs_with(runs, count) for runs in key_set.works.values() if runs_with(runs, count)]
    ends = [fastest(runs, count) for runs in works]
    won = Counter(best["index"] for best, _ in ends)
    leader = max(sorted(won), key=won.get)
    ours = [(best, second) for best, second in ends if best["index"] == leader]
    clear = sum(second is not None and beyond_spread(best, second) for best, second in ours)
    text = f"<b>{escape(leader)}</b> at {len(ours)} of {len(ends)} kinds of work ({clear} beyond the spread)"
    leads = [lead(best, second) for best, second in ours if lead(best, second)]
    if leads:
        text += f", {factors(leads)} the next"
    firsts = {best["first"] for best, _ in ours if best["first"] != leader and "ratio_to_first" in best}
    if len(firsts) == 1:
        first = firsts.pop()
        text += f", {factors([b['ratio_to_first'] for b, _ in ours if b['first'] == first])} {escape(first)}"
    return text


def hot_words(key_set):
    """What more threads bring where the keys are hottest."""
    hot = [work for work in key_set.works if theta_of(work[1]) > 0 and len(plots.thread_counts(key_set.works[work])) > 1]
    if not hot:
        return ""
    work = min(hot, key=lambda w: (-theta_of(w[1]), w[1].endswith("scrambled"), work_order(w)))
    counts = plots.thread_counts(key_set.works[work])
    mops = {(r["index"], r["threads"]): r["mops"] for r in key_set.works[work]}
    gains = {i: mops[(i, counts[-1])] / mops[(i, counts[0])] for i in sorted(key_set.indexes)
             if mops.get((i, counts[0])) and (i, counts[-1]) in mops}
    if not gains:
        return ""
    told = list(dict.fromkeys(i for i in ("ordered_map", max(gains, key=gains.get), min(gains, key=gains.get)) if i in gains))
    each = ", ".join(f"{escape(i)} {gains[i]:.2f} x" for i in told)
    return (f"Hot keys ({escape(work_title(work))}): {plots.threads_title(counts[-1])} do this many times the work of "
            f"{plots.threads_title(counts[0])}: {each}.")


def headline(key_sets):
    """Ten seconds' worth: who is fastest, for each number of threads, and who bears hot keys."""
    items = []
    for key_set in key_sets:
        if len(key_set.indexes) < 2:
            continue
        lines = [f"<li>{plots.threads_title(n)}: {leader_words(key_set, n)}.</li>" for n in plots.few(key_set.threads)]
        hot = hot_words(key_set)
        kind = "" if key_set.simulated else ", native"
        items.append(f"<li>{escape(key_set.title)}{kind}; fastest with<ul>{''.join(lines)}{f'<li>{hot}</li>' if hot else ''}"
                     "</ul></li>")
    return f"<ul>{''.join(items)}</ul>" if items else ""


def render(contents, key_sets):
    looks = plots.Looks({i for key_set in key_sets for i in key_set.indexes})
    commits = ", ".join(sorted({str(c.get("commit", "unknown")) for c in contents}))
    hosts = "; ".join(dict.fromkeys(f"simulated {m['simulated']}" if "simulated" in m else
                                     f"{m.get('cpu', 'unknown CPU')}, {m.get('cores', '?')} cores" for m in machines(contents)))
    runs = sum(len(c["runs"]) for c in contents)
    facts = f"{hosts}; elidex {commits}; {runs} run{'s' * (runs != 1)} from {len(contents)} file{'s' * (len(contents) != 1)}"
    body = "\n".join(section(s, looks) for s in key_sets)
    return (f"<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>elidex: what was measured</title>"
            f"<meta name=viewport content='width=device-width'><style>{STYLE}</style></head><body>\n"
            f"<h1>elidex: what was measured</h1><p class=note>{escape(facts)}</p>\n{headline(key_sets)}\n{body}\n"
            f"{columns_section(contents)}\n{claims_section(contents)}\n{machines_section(contents)}\n</body></html>\n")
