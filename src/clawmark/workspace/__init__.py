"""A folder of Markdown: guarded reads, durable writes, file states, and the files a new workspace
starts with.

Importing this package is cheap: writing, bootstrap and the sample workspace are loaded when they
are used."""

from clawmark.workspace.workspace import Workspace

__all__ = ["Workspace"]
