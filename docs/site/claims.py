"""Makes the page with all claims of the papers, from papers/claims.csv and the stored runs."""

import collections
import csv
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STORED = ("repro-karnagel", "repro-eunomia-haswell-ep", "repro-thesis")
PAGES = {"001": ("Karnagel et al.", "COLUMN.md"), "003": ("Eunomia", "EUNOMIA.md"), "004": ("Schrimpf", "THESIS.md")}
HEAD = """# All claims

The claims of the three [papers](../PAPERS.md) beside our results, as `papers/claims.csv` and the stored runs have them. All results are
simulated ([MACHINE](../MACHINE.md)). `elidex repro` with a claim's ID repeats it. [PAPERS](../PAPERS.md#the-verdicts-and-their-causes) has
the causes of the differences.

"""


def page():
    results = {}
    for name in STORED:
        for claim in json.loads((ROOT / "docs" / "results" / f"{name}.json").read_text())["claims"]:
            results[claim["id"]] = {**claim, "file": name}
    with open(ROOT / "papers" / "claims.csv", newline="") as file:
        claims = list(csv.DictReader(file))
    counts = collections.Counter(one["verdict"] for one in results.values())
    out = [HEAD, "| verdict | claims |", "| --- | --- |", *(f"| {verdict} | {counts[verdict]} |" for verdict in sorted(counts)), ""]
    for paper, (title, details) in PAGES.items():
        out += [f"## {paper}: {title}", "", f"Details: [{details}](../{details}).", "",
                "| claim | where | what | paper | here | verdict |", "| --- | --- | --- | --- | --- | --- |"]
        for claim in (one for one in claims if one["paper"] == paper):
            found = results.get(claim["id"], {"paper": claim["paper_value"], "here": "not run", "verdict": "", "file": ""})
            stored = f" ([run](../results/{found['file']}.json))" if found["file"] else ""
            cells = (claim["id"], claim["where"], claim["claim"], found["paper"], found["here"], found["verdict"] + stored)
            out.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
        out.append("")
    return "\n".join(out)
