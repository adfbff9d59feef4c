"""Check that each link within the built site leads somewhere: ``python docs/check_links.py DIR``.

Sphinx checks the links that it makes itself; here are those in raw HTML and downloads, too.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links of a page, and the places in it that a link can lead to."""

    def __init__(self, path):
        super().__init__()
        self.links, self.places = [], {""}
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.links += [found[name] for name in ("href", "src") if found.get(name)]
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}


def broken_links(site):
    """Pages and links that lead nowhere."""
    found = [path for path in site.rglob("*.html") if "_static" not in path.parts]  # templates
    pages = {path.resolve(): Page(path) for path in found}
    if not pages:
        raise SystemExit(f"{site} has no pages: build them first.")
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            missing = target in pages and place not in pages[target].places
            if missing or not target.exists():
                yield path.relative_to(site.resolve()), link


if __name__ == "__main__":
    broken = list(broken_links(Path(sys.argv[1])))
    for page, link in broken:
        print(f"{page}: {link} leads nowhere", file=sys.stderr)
    sys.exit(bool(broken))
