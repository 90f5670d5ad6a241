"""Hooks of MkDocs: they let the site use the same pages that people read on a code host.

- Pages that the navigation of `mkdocs.yml` does not name are added to it, by folder.
- `CHANGELOG.md`, `AGENTS.md` and other documents outside `docs/` become pages.
- Links to other files of the repository, such as results, lead to copies below `files/`.
- A `<picture>` with a light and a dark image becomes two images that follow the site's colours.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "AGENTS.md": "contributing.md",
    "bench/README.md": "measurements.md",
    "src/clawmark/embed/local/NOTICE.md": "notices.md",
    "training/README.md": "training.md",
    "training/LICENCES.md": "training-licences.md",
}
"""Documents outside `docs/`, and their pages on the site."""

REST = {"decisions": "Decisions", "how-to": "More", "explanation": "More"}
"""Where pages go that the navigation does not name: folder and section."""

_LINK = re.compile(r"(?P<before>\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?P<after>\))")
_PICTURE = re.compile(
    r'<picture>\s*<source[^>]*srcset="(?P<dark>[^"]+)"[^>]*>\s*'
    r'<img[^>]*alt="(?P<alt>[^"]*)"[^>]*src="(?P<light>[^"]+)"[^>]*>\s*</picture>'
)
_FENCE = re.compile(r"^(`{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    docs = Path(config.docs_dir)
    pages = sorted(file.relative_to(docs).as_posix() for file in docs.rglob("*.md"))
    config.nav = complete_nav(config.nav or [], [*pages, *PAGES.values()])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    sources = {file.abs_src_path for file in files.documentation_pages()}
    for name in sorted({name for source in sources if source for name in linked_files(source)}):
        copy = File.generated(config, f"files/{name}", abs_src_path=str(ROOT / name))
        files.append(copy)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    source = os.path.relpath(page.file.abs_src_path or "", ROOT)
    return outside_code(markdown, lambda text: site_links(site_pictures(text), source))


def complete_nav(nav: list[Any], pages: Iterable[str]) -> list[Any]:
    """Return the navigation with the pages it does not name, in sections named after folders."""
    missing = [page for page in pages if page not in set(named_pages(nav))]
    sections = dict[str, list[Any]]()
    for page in missing:
        sections.setdefault(REST.get(page.split("/")[0], "More"), []).append(page)
    return [*nav, *({title: found} for title, found in sorted(sections.items()))]


def named_pages(nav: object) -> Iterator[str]:
    match nav:
        case str():
            yield nav
        case list():
            for one in nav:
                yield from named_pages(one)
        case dict():
            yield from named_pages(list(nav.values()))


def linked_files(source: str) -> Iterator[str]:
    """Yield the files outside `docs/` that a document links to, and that are not pages."""
    text = _FENCE.sub("", Path(source).read_text(encoding="utf-8"))
    for link in _LINK.finditer(text):
        name = repository_path(os.path.relpath(source, ROOT), link["path"])
        if is_copied(name):
            yield name


def is_copied(name: str) -> bool:
    return not name.startswith("docs/") and name not in PAGES and (ROOT / name).is_file()


def repository_path(source: str, link: str) -> str:
    """Return where a link of the document `source` leads, from the root of the repository."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), link))


def site_path(name: str) -> str:
    """Return where a file of the repository is on the site."""
    if name in PAGES:
        return PAGES[name]
    return f"files/{name}" if is_copied(name) else name.removeprefix("docs/")


def site_links(text: str, source: str) -> str:
    """Rewrite the links that lead out of `docs/`, or come from outside it."""
    folder = posixpath.dirname(site_path(source))

    def rewrite(link: re.Match[str]) -> str:
        path = site_path(repository_path(source, link["path"]))
        return f"]({posixpath.relpath(path, folder or '.')}{link['anchor'] or ''})"

    return _LINK.sub(rewrite, text)


def site_pictures(text: str) -> str:
    def rewrite(picture: re.Match[str]) -> str:
        alt, light, dark = picture["alt"], picture["light"], picture["dark"]
        return f"![{alt}]({light}#only-light)\n![{alt}]({dark}#only-dark)"

    return _PICTURE.sub(rewrite, text)


def outside_code(markdown: str, change: Any) -> str:
    """Apply `change` to a document except to its fenced blocks."""
    parts, end = list[str](), 0
    for fence in _FENCE.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])
