"""What a caller may do in the spaces it is a member of, and the errors if it may not.

A token may narrow this: to some spaces, and to reading, appending or publishing."""

from __future__ import annotations

from typing import NamedTuple

from clawmark.model.errors import SpaceDenied

READ, APPEND, PUBLISH = "read", "append", "publish"
PERMISSIONS = (READ, APPEND, PUBLISH)
_SHOWN = 80


class Access(NamedTuple):
    """The limits of a caller beyond its memberships."""

    permissions: frozenset[str] = frozenset(PERMISSIONS)
    spaces: frozenset[str] | None = None
    """None for all spaces of the caller."""

    @property
    def may_write(self) -> bool:
        return bool(self.permissions & {APPEND, PUBLISH})

    def includes(self, space: str) -> bool:
        """Return whether a space is among those that may be seen."""
        return self.spaces is None or space in self.spaces

    def check(self, permission: str, space: str) -> None:
        """Raise SpaceDenied if the caller does not have a permission."""
        if permission not in self.permissions:
            raise SpaceDenied(
                f"Your token does not have the permission to {permission}.",
                space=space,
                hint="Ask for one that has it: `clawmark token create --permission "
                f"{permission} …`.",
            )


FULL_ACCESS = Access()


def unknown_space(space: str) -> SpaceDenied:
    """Return the error for a space that does not exist or may not be seen."""
    return SpaceDenied(
        f"There is no space {space[:_SHOWN]!a} that you may read.",
        space=space,
        hint="Check its name, or ask the owner of the database to run `clawmark space grant`.",
    )


def read_only(space: str) -> SpaceDenied:
    """Return the error for writing into a space that may only be read."""
    return SpaceDenied(
        f"You may read the space {space[:_SHOWN]!a} but not write into it.",
        space=space,
        hint="Ask the owner of the database to run `clawmark space grant --write`.",
    )
