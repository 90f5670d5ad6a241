"""Plan QMD's collections, one for each source, and make QMD have exactly these."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from clawmark.backends.qmd.process import Output, QmdProcess, failed
from clawmark.model.values import SourceName
from clawmark.workspace.places import ROOT_FILES, Extra

MARKDOWN = "**/*.{md,MD,Md,mD}"


class Collection(NamedTuple):
    """A collection of QMD: a folder, which files of it, and how these are cited."""

    name: str
    folder: str
    mask: str
    lead: str
    """What a citation has in front of the path in the folder; unused for transcripts."""
    source: SourceName = "memory"


def plan_collections(
    agent: str,
    workspace: str,
    extras: Sequence[Extra],
    *,
    own_memory: bool,
    names: Mapping[str, str],
    sessions: str = "",
) -> tuple[Collection, ...]:
    """Return the collections of a memory; only folders that exist.

    `names` are the configured names of folders by their real path, `sessions` is the folder of the
    exported transcripts, empty if they are not searched."""
    found = list[Collection]()
    if own_memory:
        memory = os.path.join(workspace, "memory")
        found.append(
            Collection(
                name=f"memory-root-{agent}", folder=workspace, mask=",".join(ROOT_FILES), lead=""
            )
        )
        # A link instead of the folder would lead out of the workspace.
        if os.path.isdir(memory) and not os.path.islink(memory):
            found.append(
                Collection(name=f"memory-dir-{agent}", folder=memory, mask=MARKDOWN, lead="memory/")
            )
    for number, extra in enumerate(extras, 1):
        folder = extra.folder or os.path.join(workspace, extra.inside)
        lead = extra.lead
        if extra.file:
            folder = extra.folder or os.path.dirname(folder)
            lead = extra.prefix.removesuffix(extra.file)
        name = names.get(os.path.realpath(folder)) or extra.name or f"custom-{number}"
        mask = extra.file or ",".join(extra.patterns) or MARKDOWN
        found.append(
            Collection(
                name=f"{name}-{agent}", folder=os.path.realpath(folder), mask=mask, lead=lead
            )
        )
    if sessions:
        found.append(
            Collection(
                name=f"sessions-{agent}",
                folder=sessions,
                mask="*.md",
                lead="",
                source="sessions",
            )
        )
    return _with_unique_names(one for one in found if os.path.isdir(one.folder))


def _with_unique_names(collections: Iterable[Collection]) -> tuple[Collection, ...]:
    """Write names as QMD accepts them, and number those that occur twice."""
    found = dict[str, Collection]()
    for one in collections:
        plain = re.sub("[^a-z0-9-]", "-", one.name.lower()).strip("-") or "collection"
        name, number = plain, 1
        while name in found:
            number += 1
            name = f"{plain}-{number}"
        found[name] = one._replace(name=name)
    return tuple(found.values())


def ensure_collections(
    process: QmdProcess, wanted: Sequence[Collection], known: Iterable[str], seconds: float
) -> None:
    """Add missing collections, bind those again whose folder or mask differ, and remove those of
    `known` that are no longer wanted.
    """
    for one in wanted:
        arguments = ("collection", "show", one.name)
        shown = process.run(arguments, seconds)
        if shown.code == 0 and _shown_facts(shown) == (one.folder, one.mask):
            continue
        if shown.code == 0:
            _must(process, ("collection", "remove", one.name), seconds)
        elif "not found" not in shown.err:
            raise failed(shown, arguments)
        _must(
            process,
            ("collection", "add", one.folder, "--name", one.name, "--mask", one.mask),
            seconds,
            allowed="already exists",
        )
    for name in sorted(set(known) - {one.name for one in wanted}):
        _must(process, ("collection", "remove", name), seconds, allowed="not found")


def _must(
    process: QmdProcess, arguments: Sequence[str], seconds: float, *, allowed: str = ""
) -> None:
    done = process.run(arguments, seconds)
    if done.code != 0 and not (allowed and allowed in done.err):
        raise failed(done, arguments)


def _shown_facts(shown: Output) -> tuple[str, str]:
    """Return the folder and the mask that `collection show` prints."""
    facts = dict(re.findall(r"^\s+(Path|Pattern):\s+(.*?)\s*$", shown.out, re.MULTILINE))
    return facts.get("Path", ""), facts.get("Pattern", "")
