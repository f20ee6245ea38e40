"""The comment at the top of a header, or of a function, as Markdown.

Comments are plain text: paragraphs, indented code, indented lists of "term   explanation", and
paragraphs that begin with a label such as "Thread-safety:". Everything from "Implementation notes"
on is left out.
"""

import re

LABEL = re.compile(r"^((?:Keys|Values|Keys and values|Hash|Thread-safety|Complexity|Iterator validity|Errors|"
                   r"Memory|Size|Lifetime|Guarantees|Performance|Durability|Isolation|Handles|fork\(\)|"
                   r"Not offered|Which machine a build uses)):(?:\s+|$)")
CODE = re.compile(r"[;{}]|//|^\s*#|\bfor \(|\bif \(")
PARAMETER = re.compile(r"^\w+ {2,}\S")  # a template parameter and what it is
SYMBOL = re.compile(
    r"(?<![\w`:./~])("
    r"~?(?:\w+::)*~?\w+\((?:[^()]|\([^()]*\)){0,40}\)"  # a call
    r"|(?:std|elidex|db|htm|papers)(?:::\w+)+(?:<[\w:, ]*>)?(?:&{1,2}|\*)?"
    r"|(?:const )?[A-Z]\w*&+"  # Value&, const Value&
    r"|\w+(?:/\w+)*\.(?:hpp|md|cpp)"
    r"|[a-z]\w*_\w+\*?"  # a name with an underscore
    r")(?![\w`])")


def uncommented(lines):
    """Lines of a // comment without the slashes and one space."""
    return [re.sub(r"^\s*// ?", "", line).rstrip() for line in lines]


def before_notes(lines):
    for number, line in enumerate(lines):
        if line.strip() == "Implementation notes":
            return lines[:number]
    return lines


def blocks(lines):
    """(kind, lines): "text" or "indented"."""
    found = []
    for line in lines:
        if not line.strip():
            if found and found[-1][0] == "indented":
                found[-1][1].append("")
            else:
                found.append(("end", []))
            continue
        kind = "indented" if line.startswith("  ") or PARAMETER.match(line) else "text"
        if kind == "indented" and found and found[-1][0] == "text" and is_continuation(line, found[-1][1]):
            kind = "text"
        if kind == "text" and LABEL.match(line):
            found.append(("end", []))
        if found and found[-1][0] == kind:
            found[-1][1].append(line)
        else:
            found.append((kind, [line]))
    return [(kind, trimmed(block)) for kind, block in found if kind != "end"]


def is_continuation(line, text):
    """Whether an indented line continues the paragraph above it, as below a parameter's name."""
    return line.startswith("    ") and not text[-1].endswith(":") and not CODE.search(line)


def trimmed(lines):
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def escaped(text):
    return text.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def inline(text, links=None):
    """A paragraph with its names as code, and with links to the functions that the page has."""
    links = links or {}
    parts = re.split(r"(`[^`]*`)", text)
    out = []
    for part in parts:
        if part.startswith("`"):
            out.append(linked(part, links))
            continue
        position = 0
        for found in SYMBOL.finditer(part):
            out.append(escaped(part[position:found.start()]))
            out.append(linked(f"`{found.group(1)}`", links))
            position = found.end()
        out.append(escaped(part[position:]))
    return "".join(out)


def capitalized(text):
    return text[:1].upper() + text[1:] if re.match(r"[a-z]+(?![\w:(<])", text) else text


def linked(code, links):
    name = re.sub(r"\(.*", "", code.strip("`"))
    if name.endswith((".hpp", ".md")) and name.split("/")[-1] in links:
        return f"[{code}]({links[name.split('/')[-1]]})"
    return f"[{code}](#{links[name]})" if name in links and "(" in code else code


def indented(lines, links):
    if any(line.lstrip().startswith("* ") for line in lines):
        return bullets(lines, links)
    if any(CODE.search(line) for line in lines) and not is_list_of_terms(lines):
        return fenced(lines)
    least = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    body = [line[least:] for line in lines]
    rows = []
    for line in body:
        found = re.match(r"^(\S.*?) {2,}(\S.*)$", line)
        if found:
            rows.append([found.group(1), found.group(2)])
        elif line.startswith("  ") and rows and line.strip():
            rows[-1][1] += " " + line.strip()
        elif line.strip():
            rows.append([line.strip(), ""])
    if all(not text for _, text in rows):
        return fenced(lines, "text")
    if any("   " in row[1] for row in rows):  # more than two columns
        return fenced(lines, "text")
    table = ["| | |", "| --- | --- |"]
    for term, text in rows:
        shown = f"`{term}`" if text or " " not in term else inline(term, links)
        table.append(f"| {shown} | {inline(text, links).replace('|', chr(92) + '|')} |")
    return "\n".join(table)


def is_list_of_terms(lines):
    """Whether lines that look like code are "call   explanation", or a name alone."""
    least = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    terms = [line[least:] for line in lines if line.strip() and not line[least:].startswith(" ")]
    return all(re.match(r"^\S.*? {2,}\w|[\w:]+$", term) and "//" not in term and not term.endswith((";", "{"))
               for term in terms)


def bullets(lines, links):
    items = []
    for line in lines:
        if line.lstrip().startswith("* "):
            items.append(line.strip()[2:])
        elif line.strip():
            items[-1] += " " + line.strip()
    return "\n".join(f"- {inline(item, links)}" for item in items)


def fenced(lines, language="cpp"):
    least = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    return "\n".join([f"```{language}", *(line[least:] for line in lines), "```"])


def markdown(lines, links=None, label="### {}", example=None):
    """Markdown of a comment's lines. `example` is a heading to put before the first code block."""
    out = []
    for kind, block in blocks(before_notes(lines)):
        if kind == "indented":
            made = indented(block, links)
            if example and made.startswith("```"):
                out.append(example)
                example = None
            out.append(made)
            continue
        text = " ".join(line.strip() for line in block)
        found = LABEL.match(text)
        if found and label:
            out.append(label.format(found.group(1)))
            text = capitalized(text[found.end():])
        elif found:
            out.append(f"**{found.group(1)}:** {inline(text[found.end():], links)}")
            continue
        if text:
            out.append(inline(text, links))
    return "\n\n".join(out)
