"""site.py SITE: each link, picture and script of the site's pages leads to a file of the site, each anchor to an element, and the
first page leads to every page. The links are read from the HTML itself."""

import html.parser
import sys
import urllib.parse
from pathlib import Path


class Page(html.parser.HTMLParser):
    """What a page links to, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("href", "src") and value is not None:
                self.links.add(value)
            elif name in ("id", "name") and value is not None:
                self.anchors.add(value)


def main(site: Path) -> int:
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}
    failures: list[str] = []
    reached, waiting = {site / "index.html"}, [site / "index.html"]
    while waiting:
        page = waiting.pop()
        for link in sorted(pages[page].links):
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = (page.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else page
            if not path.is_file():
                failures.append(f"{page.relative_to(site)}: '{link}' leads nowhere")
            elif path in pages and urllib.parse.unquote(parts.fragment) not in pages[path].anchors:
                failures.append(f"{page.relative_to(site)}: '{link}' has no such anchor")
            elif path in pages and path not in reached:
                reached.add(path)
                waiting.append(path)
    failures += [f"no link leads to {page.relative_to(site)}" for page in sorted(set(pages) - reached)]
    wanted = ("tutorials/own-model.html", "guide/install.html", "reference/compile.html", "reference/llmpart.h.html", "schemas/README.html")
    failures += [f"there is no page {name}" for name in wanted if site / name not in pages and not (site / name).with_name("index.html").is_file()]
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
