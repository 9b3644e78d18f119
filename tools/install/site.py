"""Gathers the pages of the website: site.py SOURCE STAGE LLMPART.

STAGE/docs gets the documents, with the tree's README.md as the first page, and the reference; STAGE/mkdocs.yml says how
MkDocs builds them. A link to a file that is no page becomes the file's name, because the site has no sources.
"""

import json
import pathlib
import posixpath
import re
import subprocess
import sys

# Wide tables scroll in their own box, which keeps a page as wide as a phone.
STYLE = ".col-md-9 table { display: block; overflow-x: auto; }\n.col-md-9 { overflow-wrap: break-word; }\n"
FENCE = re.compile(r"^```(\w+) .+$", re.M)  # what follows the language is for the tests of the documents
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def pages_of(source: pathlib.Path) -> dict[str, str]:
    """Paths of pages in the tree, and in the site."""
    pages = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "python/README.md": "python.md"}
    for path in [*source.glob("docs/**/*.md"), *source.glob("examples/**/*.md"), source / "tests/README.md"]:
        name = path.relative_to(source).as_posix()
        pages[name] = name.removeprefix("docs/")
    return {name: target for name, target in pages.items() if (source / name).exists()}


def files_of(source: pathlib.Path) -> set[str]:
    """Paths of files in docs/ to which pages link and which the site has as they are."""
    patterns = ("docs/images/*", "docs/schemas/*.json", "docs/*.json", "docs/*.pml")
    return {path.relative_to(source).as_posix() for pattern in patterns for path in source.glob(pattern)}


def relink(text: str, page: str, pages: dict[str, str], files: set[str]) -> str:
    """Links between pages, and to files, by their places in the site."""
    own = pages[page]

    def replace(match: re.Match[str]) -> str:
        mark, label, link = match.groups()
        target, _, anchor = link.partition("#")
        if "://" in link or not target:
            return match.group(0)
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        path = path + "/README.md" if path + "/README.md" in pages else path
        if path in pages:
            there = posixpath.relpath(pages[path], posixpath.dirname(own) or ".")
            return f"[{label}]({there}{'#' + anchor if anchor else ''})"
        if path in files:
            return f"{mark}[{label}]({posixpath.relpath(path.removeprefix('docs/'), posixpath.dirname(own) or '.')})"
        if mark:
            return match.group(0)
        return f"{label} (`{path}`)" if label.strip("`") != path else f"`{path}`"

    # Code between fences has no links.
    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(replace, part) for part in parts)


def command_reference(llmpart: str) -> dict[str, str]:
    """A page for each subcommand, from its help."""

    def run(*words: str) -> str:
        return subprocess.run([llmpart, *words], check=True, capture_output=True, text=True).stdout

    names = run("help", "--words").split()
    texts = {f"reference/{name}.md": f"# llmpart {name}\n\n```text\n{run('help', name)}```\n" for name in names}
    rows = "".join(f"* [llmpart {name}]({name}.md)\n" for name in names)
    texts["reference/README.md"] = f"# The command\n\n```text\n{run('--help')}```\n\n{rows}"
    return texts


def on_config(config: dict, **_: object) -> None:
    """MkDocs calls this: the theme looks headings up by CSS selectors, which begin with no digit."""
    from markdown.extensions.toc import slugify

    config["mdx_configs"].setdefault("toc", {})["slugify"] = lambda text, separator: re.sub(r"^(?=\d)", "n", slugify(text, separator))


def on_post_page(output: str, **_: object) -> str:
    """MkDocs calls this: the theme's switch of colours wants the styles of the highlighter, which the site leaves out."""
    return output.replace("</head>", '<meta id="hljs-light"><meta id="hljs-dark"></head>', 1)


def on_page_content(html: str, page: object, **_: object) -> None:
    """MkDocs calls this with each page: a fence that it did not take as one is text, and ends the build."""
    if "```" in re.sub(r"<code.*?</code>", "", html, flags=re.S):
        raise SystemExit(f"{page}: a block of code is not closed, or its fence has more than a language")


def main(source: pathlib.Path, stage: pathlib.Path, llmpart: str) -> None:
    docs = stage / "docs"
    pages, files = pages_of(source), files_of(source)
    texts = {target: relink(FENCE.sub(r"```\1", (source / page).read_text()), page, pages, files) for page, target in pages.items()}
    texts.update(command_reference(llmpart))
    header = (source / "runtime/library/llmpart.h").read_text()
    texts["reference/llmpart.h.md"] = f"# The C library\n\n```c\n{header}```\n"
    for name, text in texts.items():
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_text(text)
    for name in files:
        target = docs / name.removeprefix("docs/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((source / name).read_bytes())
    for path in source.glob("examples/**/figures/*"):
        target = docs / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    (docs / "site.css").write_text(STYLE)
    tutorials = [{"Your own model in ten minutes": "tutorials/own-model.md"},
                 {"A Raspberry Pi and a GPU server": "tutorials/pi-and-gpu-server.md"},
                 {"A capacity plan": "tutorials/capacity-plan.md"}, {"Early exits": "tutorials/early-exits.md"}]
    guide = sorted(name for name in texts if name.startswith("guide/"))
    reference = sorted(name for name in texts if name.startswith("reference/"))
    formats = sorted(name for name in texts if "/" not in name and name not in ("index.md", "contributing.md"))
    nav = [{"llmpart": "index.md"}, {"Tutorials": tutorials}, {"Guide": guide},
           {"Reference": [*reference, "schemas/README.md", *formats]},
           {"Examples": sorted(name for name in texts if name.startswith("examples/"))},
           {"Measurements": sorted(name for name in texts if name.startswith("measurements/"))},
           {"Decisions": sorted(name for name in texts if name.startswith("adr/"))}, {"Contributing": "contributing.md"}]
    config = {"site_name": "llmpart", "docs_dir": "docs", "theme": {"name": "mkdocs", "color_mode": "auto", "user_color_mode_toggle": True, "highlightjs": False}, "extra_css": ["site.css"], "nav": nav,
              "use_directory_urls": False, "hooks": [str(pathlib.Path(__file__).resolve())],
              "validation": {"omitted_files": "ignore", "anchors": "warn", "unrecognized_links": "warn"}}
    (stage / "mkdocs.yml").write_text(json.dumps(config, indent=1))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3])
