"""The HTML page around the plots. Everything is in the one file; nothing is loaded from elsewhere."""

import math
import re
import statistics
from collections import Counter, defaultdict
from html import escape
from os.path import basename
from typing import NamedTuple

import plots
from plots import DAGGER
from results import (WAIT_PCT_MAX, Work, beyond_spread, fastest, is_database, lasting, lead,
                     machines, plural, rate_unit, spread, theta_of, work_order, work_title,
                     workload_title)

ROWS_MAX = 10  # more rows of winners are folded away
COMMITS_MAX = 3  # more commits are counted, not named
NAMES_MAX = 6  # the same of what the headline names

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 1080px;
  margin: 2em auto; padding: 0 1em; overflow-wrap: anywhere; }
h1 { margin-bottom: 0; font-size: 1.7em; line-height: 1.25; }
h2 { margin-top: 2.2em; border-bottom: 2px solid #ddd; } h3 { margin: 1.8em 0 .3em; }
h3 small { font-weight: 400; color: #555; margin-left: .6em; }
table { border-collapse: collapse; margin: .6em 0; font-size: 14px; overflow-wrap: normal; }
th, td { padding: .25em .8em; text-align: right; border-bottom: 1px solid #e4e4e4; }
th { border-bottom: 2px solid #bbb; font-weight: 600; vertical-align: bottom; }
th:first-child, td:first-child, .words { text-align: left; } .words { min-width: 11em; }
td { white-space: pre; vertical-align: top; font-variant-numeric: tabular-nums; }
td.words, td:first-child { white-space: pre-line; } td:first-child { min-width: 9em; }
td.name:first-child { white-space: nowrap; min-width: 0; }
tr:has(.group) td { border-top: 2px solid #bbb; }
td.bar { position: relative; min-width: 9em; padding: 0; }
td.bar b, td.bar i { position: absolute; print-color-adjust: exact; }
td.bar b { top: 18%; height: 64%; background: #56B4E9; } td.ours b { background: #D55E00; }
td.bar i { top: calc(50% - 1px); border-top: 2px solid #222; }
nav { columns: 20em; margin: 1em 0; font-size: 14px; }
nav a { display: block; break-inside: avoid; padding: .15em 0; }
.scroll { overflow-x: auto; }
.best { font-weight: 700; } .note { color: #555; font-size: 13.5px; }
.warning { background: #fde8e6; border-left: 5px solid #C0392B; padding: .4em .8em; }
.simulated { background: #fff6dd; border-left: 5px solid #E69F00; padding: .4em .8em; }
details { margin: .4em 0; } summary { cursor: pointer; color: #0072B2; } li { margin: .3em 0; }
svg { display: block; width: 100%; min-width: 480px; max-width: 760px; height: auto; }
@media (max-width: 700px) {
  body { margin: 1em auto; } ul { padding-left: 1.2em; }
  th, td { padding: .25em .5em; } td.bar { min-width: 6em; }
}
@media print {
  body { max-width: none; margin: 0; font-size: 12px; } h2, h3, summary { break-after: avoid; } svg, tr { break-inside: avoid; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
}
"""


class Bar(NamedTuple):
    """A cell of a table: a bar between two places, and a line for a spread. In per cent of the
    cell's width."""

    start: float
    end: float
    ours: bool
    low: float = 0
    high: float = 0

    def html(self):
        line = (f"<i style=left:{self.low:.1f}%;width:{self.high - self.low:.1f}%></i>"
                if self.high > self.low else "")
        return (f"<td class='bar{' ours' if self.ours else ''}'><b style=left:{self.start:.1f}%;"
                f"width:max(2px,{self.end - self.start:.1f}%)></b>{line}</td>")


def table(headings, rows):
    """Cells are text, (text, css class) or a Bar. A wide table scrolls in its own box. Columns of
    empty cells are left out."""
    def cell(content, tag="td"):
        if isinstance(content, Bar):
            return content.html()
        text, css = content if isinstance(content, tuple) else (content, "")
        name = f' class="{css}"' if css else ""
        return f"<{tag}{name}>{escape(str(text))}</{tag}>"

    used = [n for n in range(len(headings)) if n == 0 or any(row[n] != "" for row in rows)]
    head = "".join(cell(headings[n], "th") for n in used)
    body = "".join("<tr>" + "".join(cell(row[n]) for n in used) + "</tr>\n" for row in rows)
    return f"<div class=scroll><table><tr>{head}</tr>\n{body}</table></div>\n"


def anchor(title):
    return "set-" + re.sub(r"\W+", "-", title).strip("-")


def heading(title):
    """Of a section. The table of contents lists it."""
    return f"<h2 id='{anchor(title)}'>{escape(title)}</h2>"


def contents_list(body):
    """Links to all sections of that text."""
    links = [f"<a href='#{one}'>{title}</a>"
             for one, title in re.findall(r"<h2 id='([^']*)'>(.*?)</h2>", body)]
    return f"<nav>{''.join(links)}</nav>" if len(links) > 1 else ""


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
        css = "words best" if len({one for one in told if one}) > 1 else "words"
        rows.append((name.replace("_", " ").removesuffix(" bytes"), *((t, css) for t in told)))
    return heading("Where it was measured") + table(("", *((t, "words") for t in titles)), rows)


def folded(summary, content, opened=False):
    return f"<details{' open' if opened else ''}><summary>{escape(summary)}</summary>{content}</details>"


def runs_with(runs, count):
    return [r for r in runs if r["threads"] == count]


def compared(runs, count):
    """The runs with that many threads, where an order of them means something: two or more, none of
    them disturbed."""
    there = runs_with(runs, count)
    return there if len(there) > 1 and not any(r["disturbed"] for r in there) else []


def winner_cell(runs, count):
    there = runs_with(runs, count)
    if not there:
        return ""
    if any(r["disturbed"] for r in there):
        return f"no order: {DAGGER} {sum(r['disturbed'] for r in there)} of {len(there)} disturbed"
    best, second = fastest(there, count)
    text = f"{best['index']} {best['mops']:.3g}"
    if lead(best, second):
        sign = "" if beyond_spread(best, second) else " (ranges overlap)"
        text += f"\n{lead(best, second):.2f} x {second['index']}{sign}"
    return text, "best" if best["index"] == "ordered_map" else ""


def winners(key_set):
    """Who is fastest at what, and how clearly."""
    threads = plots.few(key_set.threads)
    rows = [(work_title(work), *(winner_cell(key_set.works[work], count) for count in threads))
            for work in sorted(key_set.works, key=work_order)]
    title = ("the fastest, " if key_set.compared_threads else "") + rate_unit(key_set.runs)
    drawn = table((title, *map(plots.threads_title, threads)), rows)
    return drawn if len(rows) <= ROWS_MAX else folded(f"The fastest at each of {len(rows)} kinds of work", drawn)


def notes(key_set):
    spreads = sorted(s for s in map(spread, key_set.runs) if s is not None)
    text = "" if key_set.simulated else "Medians of interleaved rounds. "
    if spreads and spreads[-1] > 1:
        text += (f"Between its slowest and its fastest round a run differs by a factor of "
                 f"{spreads[len(spreads) // 2]:.2f} "
                 f"(the median run), {spreads[-1]:.2f} (the worst). Where the ranges of two "
                 "indexes overlap, their order is "
                 "unproven. ")
    if any(work.dist.startswith("zipf") for work in key_set.works):
        text += "Zipf: hot keys are adjacent in key order, unless the title says scattered. "
    files = ", ".join(map(basename, key_set.files))
    text += f"From {files}; elidex {key_set.commit or 'of an unrecorded commit'}."
    if key_set.replaced:
        text += (f" {key_set.replaced} earlier runs of the same kind are left out: the file named "
                 "last counts.")
    return f"<p class=note>{escape(text)}</p>"


def disturbed_note(runs):
    """The warning of `elidex bench` about these runs; empty where there is no reason for it."""
    count = sum(r["disturbed"] for r in runs)
    if not count:
        return ""
    return (f"<p class=warning>In {count} of {len(runs)} runs other programs kept the threads "
            "waiting for more than "
            f"{WAIT_PCT_MAX} % of the time: these rates are too low. They are marked {DAGGER}. "
            "The page gives no order and no "
            "ratio where one of them takes part.</p>")


def rate_bar(run, longest):
    return Bar(0, 100 * run["mops"] / longest, run["index"] == "ordered_map",
               100 * run["mops_min"] / longest, 100 * run["mops_max"] / longest)


def latency_bar(run, low, high):
    """From p50 to p99, on a log scale from `low` to `high`."""
    if not is_timed(run):
        return ""
    ends = [100 * math.log(run[name] / low) / math.log(high / low) for name in ("ns_p50", "ns_p99")]
    return Bar(*ends, run["index"] == "ordered_map")


def is_timed(run):
    return run.get("ns_p50", 0) > 0 and run.get("ns_p99", 0) >= run["ns_p50"]


def measured(run, name, digits):
    """The figure as text. What rounds to zero says nothing."""
    text = f"{run.get(name, 0):.{digits}f}"
    return text if float(text) else ""


def run_table(runs):
    """A row for each run, with bars: the fastest first."""
    rows, timed = [], [r for r in runs if is_timed(r)]
    longest = max(max(r["mops"], r["mops_max"]) for r in runs) or 1
    # Commits that wait for a disk: some hundreds a second.
    form = ".3f" if longest >= 0.1 else ".3g"
    low, high = ((min(r["ns_p50"] for r in timed) / 1.1, max(r["ns_p99"] for r in timed) * 1.1)
                 if timed else (1, 2))
    for count in plots.thread_counts(runs):
        there = sorted(runs_with(runs, count), key=lambda r: -r["mops"])
        best = max((r["mops"] for r in compared(runs, count)), default=None)
        for r in there:
            rows.append(((r["index"], "name group" if r is there[0] else "name"), count,
                         rate_bar(r, longest),
                         (plots.rate_text(r, form), "best" if r["mops"] == best else ""),
                         f"{r['mops_min']:{form}} to {r['mops_max']:{form}}",
                         f"{r['ratio_to_first']:.2f}" if "ratio_to_first" in r else "",
                         latency_bar(r, low, high),
                         *(measured(r, name, digits) for name, digits in
                           (("ns_p50", 0), ("ns_p99", 0), ("ns_p999", 0), ("aborts_per_op", 2),
                            ("fallback_pct", 0)))))
    firsts = {r["first"] for r in runs}
    return table(("index", "threads", "", rate_unit(runs), "slowest to\nfastest round",
                  f"x {firsts.pop()}" if len(firsts) == 1 else "x the first index of its file",
                  "p50 to p99, log scale", "p50 ns", "p99 ns", "p99.9 ns", "aborts per op",
                  "fallback %"), rows)


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


def memory_table(key_set):
    size_of = {r["index"]: r["bytes_per_key"] for work in sorted(key_set.works, key=work_order, reverse=True)
               for r in key_set.works[work] if r.get("bytes_per_key", 0) > 0}
    if not size_of:
        return ""
    unit = "bytes per row" if is_database(key_set.runs) else "bytes per key, value included"
    most = max(size_of.values())
    rows = [((index, "name"), Bar(0, 100 * size / most, index == "ordered_map"), f"{size:.1f}")
            for index, size in sorted(size_of.items(), key=lambda one: one[1])]
    return "<h3>Memory</h3>" + table(("index", "", unit), rows)


def work_block(runs, looks):
    """Curves for many numbers of threads."""
    if len(plots.thread_counts(runs)) <= plots.PANELS_MAX:
        return run_table(runs)
    return plots.svg(plots.by_threads(runs, looks)) + folded("The numbers", run_table(runs))


def section(key_set):
    looks = plots.Looks(key_set.indexes)
    parts = [heading(key_set.title)]
    if key_set.simulated:
        parts.append("<p class=simulated>Simulated: all of this section comes from a modelled machine and is not comparable "
                     "with native figures.</p>")
    parts += [disturbed_note(key_set.runs), winners(key_set), notes(key_set)]
    families = dict.fromkeys((work.workload, work.settings)
                             for work in sorted(key_set.works, key=work_order))
    for workload, settings in families:
        works = {work.dist: key_set.works[work] for work in sorted(key_set.works, key=work_order)
                 if (work.workload, work.settings) == (workload, settings)}
        curves = theta_plots(works, looks)
        if curves:
            parts.append(f"<h3>{escape(workload_title(workload))}</h3>{curves}")
        for dist, runs in works.items():
            work = Work(workload, dist, settings)
            title, block = work_title(work), work_block(runs, looks)
            names = f"<small>{escape(f'{workload}, {dist}')}</small>"
            parts.append(folded(f"{title}: throughput and latency", block) if curves else
                         f"<h3>{escape(title)}{names}</h3>{block}")
    parts.append(memory_table(key_set))
    return "\n".join(parts)


def claims_section(contents):
    rows = []
    for content in contents:
        kind = "simulated" if content["machine"].get("simulated") else "native"
        for claim in content["claims"]:
            rows.append(((claim.get("id", ""), "name"),
                         *((str(claim.get(n, "")), "words") for n in ("where", "paper", "here")),
                         kind, (claim.get("verdict", ""), "best")))
    verdicts = Counter(str(row[-1][0]) for row in rows)
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    return (heading("Claims of the papers") + f"<p>{escape(told)}.</p>"
            + table(("claim", ("where", "words"), ("the paper", "words"), ("here", "words"), "measured", "verdict"), rows)
            if rows else "")


def lock_table(runs):
    """A row for each lock, a column for each number of threads."""
    counts = sorted({r["threads"] for r in runs})
    rows = []
    for lock in dict.fromkeys(r["lock"] for r in runs):
        there = {r["threads"]: r for r in runs if r["lock"] == lock}
        rows.append((lock, *(f"{there[n]['median_mops']:.2f}"
                             + (f"\n{there[n]['ratio']:.2f} x" if "ratio" in there[n] else "")
                             if n in there else ""
                             for n in counts)))
    return table(("M sections/s", *map(plots.threads_title, counts)), rows)


def locks_section(contents):
    parts = []
    for content in contents:
        situations = defaultdict(list)
        for run in content["locks"]:
            situations[(run["kind"], run["writes_pct"], run["inside"], run["outside"])].append(run)
        for (kind, writes, inside, outside), runs in situations.items():
            share = f", {writes:g} % writers" if kind == "shared" else ""
            title = f"{kind} locks{share}: {inside} words changed inside, {outside} steps outside"
            parts.append(f"<h3>{escape(title)}</h3>" + lock_table(runs))
        if situations:
            parts.append(f"<p class=note>From {escape(basename(content['file']))}; elidex "
                         f"{escape(content['commit'])}.</p>")
    return (heading("Locks under contention") + "<p>Medians over the rounds. The ratio is to the "
            "standard's lock in the same round."
            "</p>" + "\n".join(parts) if parts else "")


def programs_section(contents):
    rows = []
    for one in (one for content in contents for one in content["programs"]):
        cells = []
        for mode in ("library", "statistics"):
            for kind in ("ratios", "cpu_ratios"):
                told = one[kind].get(mode)
                cells.append(f"{told['median']:.2f}\n{told['min']:.2f} to {told['max']:.2f}"
                             if told else "")
        rows.append((one["program"], (one["load"], "words"), *cells))
    return (heading("Programs under libelidex-preload.so") + "<p>Ratios to the same round's run "
            "without the library: median, "
            "smallest and largest.</p>"
            + table(("program", ("load", "words"), "speed", "CPU time per operation",
                     "speed, with statistics",
                     "CPU time, with statistics"), rows) if rows else "")


def columns_section(contents):
    rows = []
    for content in contents:
        for one in content["columns"]:
            arrow = one["arrow"]
            numbers = (one["insert_mrows_s"], one["delta_bytes_per_row"], one["main_bytes_per_row"],
                       one["vector_bytes_per_row"], arrow.get("dictionary_bytes_per_row"))
            rows.append(((f"{one['column']} of {one['file'].rsplit('/', 1)[-1]}", "words"), one["type"], f"{one['rows']:,}",
                         f"{one['distinct']:,}", *("" if n is None else f"{n:.2f}" for n in numbers)))
    return (heading("Columns") + "<p>Bytes are for each row: of the delta that took them, of the "
            "main after a merge, of a plain vector, and of Arrow's dictionary encoding.</p>"
            + table((("column", "words"), "type", "rows", "values", "loaded, M rows/s", "delta", "main", "vector", "Arrow"), rows)
            if rows else "")


def not_shown_section(contents):
    items = [f"<li>{escape(basename(content['file']))}: {escape(what)}.</li>"
             for content in contents for what in content["not_shown"]]
    return heading("Not shown") + f"<ul>{''.join(items)}</ul>" if items else ""


def factors(values):
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return f"{low} x" if low == high else f"{low} to {high} x"


def leader_words(key_set, count):
    """Who is fastest at most kinds of work with that many threads; empty where no order of the runs
    means anything."""
    works = [runs for runs in (compared(runs, count) for runs in key_set.works.values()) if runs]
    if not works:
        return ""
    ends = [fastest(runs, count) for runs in works]
    won = Counter(best["index"] for best, _ in ends)
    leader = max(sorted(won), key=won.get)
    ours = [(best, second) for best, second in ends if best["index"] == leader]
    clear = sum(beyond_spread(best, second) for best, second in ours)
    text = f"<b>{escape(leader)}</b> at {len(ours)} of {len(ends)} kinds of work"
    if not key_set.simulated:
        text += f" ({clear} beyond the spread)"
    leads = [lead(best, second) for best, second in ours if lead(best, second)]
    if leads:
        text += f", {factors(leads)} the next"
    firsts = {best["first"] for best, _ in ours if best["first"] != leader and "ratio_to_first" in best}
    if len(firsts) == 1:
        first = firsts.pop()
        ratios = [b["ratio_to_first"] for b, _ in ours if b["first"] == first
                  and "ratio_to_first" in b]
        text += f", {factors(ratios)} {escape(first)}"
    return text


def hot_words(key_set):
    """What more threads bring where the keys are hottest."""
    hot = [work for work in key_set.works
           if theta_of(work.dist) > 0 and len(plots.thread_counts(key_set.works[work])) > 1]
    if not hot:
        return ""
    work = min(hot, key=lambda w: (-theta_of(w.dist), w.dist.endswith("scrambled"), work_order(w)))
    counts = plots.thread_counts(key_set.works[work])
    mops = {(r["index"], r["threads"]): r["mops"] for r in key_set.works[work]
            if not r["disturbed"]}
    gains = {i: mops[(i, counts[-1])] / mops[(i, counts[0])] for i in sorted(key_set.indexes)
             if mops.get((i, counts[0])) and (i, counts[-1]) in mops}
    if not gains:
        return ""
    told = list(dict.fromkeys(i for i in ("ordered_map", max(gains, key=gains.get), min(gains, key=gains.get)) if i in gains))
    each = ", ".join(f"{escape(i)} {gains[i]:.2f} x" for i in told)
    return (f"Hot keys ({escape(work_title(work))}): {plots.threads_title(counts[-1])} do this many times the work of "
            f"{plots.threads_title(counts[0])}: {each}.")


def headline_item(key_set):
    lines = [f"<li>{plots.threads_title(n)}: {told}.</li>"
             for n in plots.few(key_set.compared_threads)
             if (told := leader_words(key_set, n))]
    hot = hot_words(key_set) if lines else ""
    kind = "" if key_set.simulated else ", native"
    link = f"<a href='#{anchor(key_set.title)}'>{escape(key_set.title)}</a>"
    begin = f"<li>{link}{kind}; fastest with"
    if hot:
        lines.append(f"<li>{hot}</li>")
    return f"{begin}<ul>{''.join(lines)}</ul></li>" if lines else ""


def headline(key_sets):
    """Ten seconds' worth: who is fastest, for each number of threads, and who bears hot keys."""
    native = "".join(headline_item(s) for s in key_sets if not s.simulated)
    simulated = "".join(headline_item(s) for s in key_sets if s.simulated)
    return ((f"<ul>{native}</ul>" if native else "")
            + (folded("On simulated machines", f"<ul>{simulated}</ul>", opened=not native)
               if simulated else ""))


def some(names, nouns):
    """The names, or how many there are."""
    names = list(dict.fromkeys(names))
    return ", ".join(names) if len(names) <= NAMES_MAX else f"{len(names)} {nouns}"


def numbers_of_threads(counts):
    if len(counts) <= 2:
        return " and ".join(map(str, counts)) + (" thread" if counts == [1] else " threads")
    return f"{counts[0]} to {counts[-1]} threads"


def what_ran(contents, key_sets):
    """The headline: what the page's figures are of."""
    told = []
    if key_sets:
        works = {work_title(work) for one in key_sets for work in one.works}
        told.append(some((i for s in key_sets for i in sorted(s.indexes)), "indexes"))
        told.append(works.pop() if len(works) == 1 else f"{len(works)} kinds of work")
        told.append(some((s.data for s in key_sets), "sets of data"))
        told.append(numbers_of_threads(sorted({n for s in key_sets for n in s.threads})))
    told += [plural(count, noun) for count, noun in (
        (len({run["lock"] for c in contents for run in c["locks"]}), "lock"),
        (len({one["program"] for c in contents for one in c["programs"]}), "program"),
        (sum(len(c["columns"]) for c in contents), "column"),
        (sum(len(c["claims"]) for c in contents), "claim")) if count]
    if any(c["claims"] for c in contents):
        told[-1] += " of the papers"
    return "; ".join(told) or "nothing that this page shows"


def host_of(machine):
    if machine.get("simulated"):
        return f"simulated {machine['simulated']}"
    return f"{machine.get('cpu') or 'an unrecorded CPU'}, {plural(machine['cores'], 'core')}" \
        if "cores" in machine else "an unrecorded machine"


def facts_of(contents):
    """What the page is made of, in one line."""
    hosts = list(dict.fromkeys(map(host_of, machines(contents))))
    commits = sorted({c["commit"] for c in contents if c["commit"]})
    runs = sum(len(c["runs"]) for c in contents)
    few = len(commits) <= COMMITS_MAX
    told = f"elidex {', '.join(commits)}" if few else f"{len(commits)} commits of elidex"
    return f"{'; '.join(hosts)}; {told}; {plural(runs, 'run')} from {plural(len(contents), 'file')}"


def load_rows(contents):
    """A row for each file that says how busy its machine was."""
    rows = []
    for content in contents:
        load = content["load_average"]
        waits = [r["cpu_wait_pct"] for r in content["runs"] if "cpu_wait_pct" in r]
        if load or waits:
            cpus = content["machine"].get("usable_threads", "")
            rows.append((basename(content["file"]), words(cpus),
                         *(f"{load[at]:.2f}" if load else "" for at in ("start", "end")),
                         *(f"{of(waits):.2f}" if waits else "" for of in (statistics.median, max))))
    return rows


def load_section(contents):
    rows = load_rows(contents)
    if not rows:
        return ""
    return (heading("Load of the machines")
            + "<p>The load average is the kernel's, over one minute. The one at the end includes the measured threads. Waiting is the share of a run's "
            f"time in which its threads were ready but had no CPU; beyond {WAIT_PCT_MAX} % a run "
            "is marked as disturbed.</p>"
            + table(("file", "CPUs", "load average\nat the start", "load average\nat the end",
                     "waiting %,\nmedian run", "waiting %,\nworst run"), rows))


def load_words(contents):
    """The load before the runs, in one sentence."""
    loads = [c["load_average"]["start"] for c in contents if c["load_average"]]
    if not loads:
        return "The files do not record the machine's load average."
    span = f"{min(loads):.2f}" + (f" to {max(loads):.2f}" if len(loads) > 1 else "")
    lacking = len(contents) - len(loads)
    where = f" in {plural(len(loads), 'file')}; not recorded in {lacking}" if lacking else ""
    return f"Load average before the runs: {span}{where}."


def render(contents, key_sets):
    warning = disturbed_note([run for key_set in key_sets for run in key_set.runs])
    fastest_of_all = headline(key_sets)
    body = "\n".join([heading("Who is fastest") + fastest_of_all if fastest_of_all else "",
                      *map(section, key_sets),
                      *(make(contents) for make in (
                          locks_section, programs_section, columns_section, claims_section,
                          not_shown_section, load_section, machines_section))])
    title = escape(f"elidex: {what_ran(contents, key_sets)}")
    return (f"<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>{title}</title>"
            f"<meta name=viewport content='width=device-width'><style>{STYLE}</style></head><body>\n"
            f"<h1>{title}</h1><p class=note>{escape(facts_of(contents))}. "
            f"{escape(load_words(contents))}</p>\n{warning}\n"
            f"{contents_list(body)}\n{body}\n</body></html>\n")
