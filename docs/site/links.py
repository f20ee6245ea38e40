"""Checks the links and anchors of the built pages."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value is not None:
                self.links.append(value)
        named = dict(attributes)
        if tag in ("script", "img", "iframe") and named.get("src"):
            self.loaded.append(named["src"])
        if tag == "link" and named.get("rel") == "stylesheet":
            self.loaded.append(named["href"])


def check(directory):
    """(number of pages, number of links checked, complaints)."""
    pages = {path: Page(path.read_text()) for path in sorted(Path(directory).rglob("*.html"))}
    checked, complaints = 0, []
    for path, page in pages.items():
        complaints += [f"{path.relative_to(directory)}: loads {url} from the network" for url in page.loaded
                       if re.match(r"[a-z]+:|//", url) and not url.startswith("data:")]
        for link in page.links:
            if re.match(r"[a-z]+:", link) or link.startswith("//") or path.name == "404.html":
                continue
            checked += 1
            target, _, anchor = link.partition("#")
            target = target.partition("?")[0]
            there = (path.parent / unquote(target)).resolve() if target else path
            if there.is_dir():
                there = there / "index.html"
            if not there.exists():
                complaints.append(f"{path.relative_to(directory)}: no file for {link}")
            elif anchor and there in pages and unquote(anchor) not in pages[there].anchors:
                complaints.append(f"{path.relative_to(directory)}: no anchor for {link}")
    return len(pages), checked, complaints
