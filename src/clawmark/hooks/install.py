"""Connecting a host and taking it back: the additions of `hosts` in, edits of files out, first
planned, then carried out.

Planning reads and changes nothing, so that the plan can be shown. Every edit is a few pieces of
text put into a file; the receipt keeps them, and removing takes exactly these pieces out again, so
that the file has the bytes it had, whatever else was changed in it since. A file that was made for
this is deleted, a file of somebody else's is never replaced."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from clawmark.hooks import jsontext, tomltext
from clawmark.hooks.hosts import Addition
from clawmark.hooks.receipt import Entry, Piece, Receipt, back_up, save
from clawmark.model.errors import ConfigError, WriteConflict

MOST_BYTES = 64 << 20


class Edit(NamedTuple):
    """One file before and after; None where there is no file."""

    file: str
    before: bytes | None
    after: bytes | None


class Plan(NamedTuple):
    """What an installation or a removal will do."""

    edits: tuple[Edit, ...]
    receipt: Receipt
    """As it is afterwards."""
    notices: tuple[str, ...]
    """What is left alone, and why."""


def plan_install(wanted: Sequence[Addition], receipt: Receipt) -> Plan:
    """What to change so that everything wanted is there once; nothing when it is."""
    edits, notices, after = list[Edit](), list[str](), dict(receipt)
    for file, additions in _by_file(wanted).items():
        before = _read(file)
        text = _decoded(before or b"", file)
        if before is not None and all(_is_there(text, addition) for addition in additions):
            continue
        entry = receipt.get(file)
        # Without a receipt nothing is known to be ours but a hook, which says so itself.
        ours = (
            entry.pieces if entry else [_expected(one) for one in additions if one.form == "item"]
        )
        cleaned = _without(text, ours, file)
        made, pieces = _with(
            cleaned, additions, before is None or _is_all_ours(entry, cleaned), notices
        )
        if not pieces:
            continue
        created = before is None or (entry is not None and entry.created)
        after[file] = Entry(
            created, _missing_folders(file) or (entry.folders if entry else ()), pieces
        )
        edits.append(Edit(file, before, made.encode("utf-8", "surrogatepass")))
    return Plan(tuple(edits), after, tuple(notices))


def plan_removal(wanted: Sequence[Addition], receipt: Receipt) -> Plan:
    """What to change so that nothing of ours is left; without a receipt, our entries are found by
    what they say.
    """
    edits, notices = list[Edit](), list[str]()
    for file, additions in (
        {file: list[Addition]() for file in receipt} or _by_file(wanted)
    ).items():
        before = _read(file)
        if before is None:
            continue
        text = _decoded(before, file)
        entry = receipt.get(file) or _guessed(text, additions)
        cleaned = _without(text, entry.pieces, file)
        is_empty = entry.created and not cleaned.strip("\ufeff \t\r\n")
        if cleaned != text or is_empty:
            edits.append(
                Edit(file, before, None if is_empty else cleaned.encode("utf-8", "surrogatepass"))
            )
        elif any(piece.form == "text" for piece in entry.pieces) and file in receipt:
            notices.append(f"{file} was changed since, and stays.")
    return Plan(tuple(edits), {}, tuple(notices))


def carry_out(plan: Plan, receipt: Receipt, folder: str, *, mode: int) -> None:
    """Do what was planned; `folder` keeps the receipt and the backups, `mode` is for files that are
    made.
    """
    for file, before, _ in plan.edits:
        if _read(file) != before:
            raise _changed(file)
        if before is not None:
            back_up(folder, file, before)
    # First what will have been done, then doing it: whoever dies in between can still undo it.
    if plan.receipt:
        save(folder, plan.receipt)
    for file, before, after in plan.edits:
        if after is None:
            os.unlink(file)
        else:
            _write(file, before, after, mode)
    if not plan.receipt:
        for entry in receipt.values():
            _remove_folders(entry.folders)
        save(folder, {})


# --- pieces ---------------------------------------------------------------------------------------------------------------


def _by_file(wanted: Iterable[Addition]) -> dict[str, list[Addition]]:
    files: dict[str, list[Addition]] = {}
    for addition in wanted:
        files.setdefault(addition.file, []).append(addition)
    return files


def _is_there(text: str, wanted: Addition) -> bool:
    if wanted.form == "text":
        return text == wanted.lines[0]
    if wanted.form == "toml":
        return "\n".join([tomltext.BEGIN, *wanted.lines, tomltext.END]) in text.replace(
            "\r\n", "\n"
        )
    found = jsontext.get(text, wanted.path, wanted.file)
    return (
        found == wanted.value
        if wanted.form == "json"
        else isinstance(found, list) and wanted.value in found
    )


def _with(
    text: str, additions: Sequence[Addition], is_free: bool, notices: list[str]
) -> tuple[str, tuple[Piece, ...]]:
    """The text with the additions that somebody else has not made already."""
    pieces = list[Piece]()
    for file, form, path, value, lines in additions:
        if form == "text":
            if is_free:
                text = lines[0]
                pieces.append(Piece(form=form, path=(), made=(), text=text))
            else:
                notices.append(f"{file} is there already, and is left as it is.")
        elif form == "toml":
            if _has_tables(text, file):
                notices.append(f"{file} has [mcp_servers.clawmark] already, and is left as it is.")
                continue
            text, piece = tomltext.put(text, lines, file)
            pieces.append(Piece(form=form, path=(), made=(), text=piece))
        elif form == "json" and jsontext.get(text, path, file) is not None:
            notices.append(f"{file} has {'.'.join(path)} already, and it is left as it is.")
        else:
            done = jsontext.put(text, path, value, file, as_item=form == "item")
            text = done.text
            pieces.append(Piece(form=form, path=path, made=done.made, text=done.piece))
    return text, tuple(pieces)


def _without(text: str, pieces: Sequence[Piece], file: str) -> str:
    """The text without the pieces, last in first out; one that was reformatted since is found by
    its place.
    """
    for piece in reversed(pieces):
        if piece.text and text.count(piece.text) == 1:
            cut = text.replace(piece.text, "", 1)
            if _is_sound(cut, piece.form, file):
                text = cut
                continue
        if piece.form == "json":
            text = jsontext.take(text, piece.path, file, piece.made)
        elif piece.form == "item":
            text = jsontext.take(text, piece.path, file, piece.made, item=_is_our_hook)
        elif piece.form == "toml":
            text = tomltext.take(text)
    return text


def _expected(addition: Addition) -> Piece:
    """What an installation would have put in, when there is no receipt to say so."""
    return Piece(
        form=addition.form,
        path=addition.path,
        made=(),
        text=addition.lines[0] if addition.form == "text" else "",
    )


def _guessed(text: str, additions: Sequence[Addition]) -> Entry:
    """What an installation has probably left in a file.

    A server of our name that starts something else is not ours.
    """
    ours = [
        one
        for one in additions
        if one.form != "json" or _is_our_server(jsontext.get(text, one.path, one.file))
    ]
    return Entry(all(one.form == "text" for one in additions), (), tuple(map(_expected, ours)))


def _is_our_server(value: object) -> bool:
    shown = json.dumps(value)
    return "clawmark" in shown and '"mcp"' in shown


def _is_our_hook(item: object) -> bool:
    shown = json.dumps(item)
    return "clawmark" in shown and any(
        f" hook {host} " in shown for host in ("claude-code", "codex")
    )


def _is_sound(text: str, form: str, file: str) -> bool:
    try:
        if form == "toml":
            tomltext.read(text, file)
        elif form != "text":
            jsontext.read(text, file)
    except ConfigError:
        return False
    return True


def _has_tables(text: str, file: str) -> bool:
    servers = tomltext.read(text, file).get("mcp_servers")
    return isinstance(servers, dict) and "clawmark" in servers


def _is_all_ours(entry: Entry | None, cleaned: str) -> bool:
    return entry is not None and entry.created and not cleaned


# --- files ----------------------------------------------------------------------------------------------------------------


def _read(file: str) -> bytes | None:
    """The bytes of a file; None when there is none.

    A link is followed: people keep such files elsewhere.
    """
    try:
        descriptor = os.open(
            file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
    except FileNotFoundError:
        if os.path.lexists(file):
            raise ConfigError(f"{file} is a link that leads nowhere.", file=file) from None
        return None
    except OSError as error:
        raise _refused(file, error) from None
    with open(descriptor, "rb") as opened:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_size > MOST_BYTES:
            raise ConfigError(f"{file} is not a file of settings.", file=file)
        return opened.read()


def _decoded(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(
            f"{file} is not UTF-8.", file=file, hint="Save it as UTF-8 and try again."
        ) from None


def _missing_folders(file: str) -> tuple[str, ...]:
    found = list[str]()
    folder = os.path.dirname(file)
    while not os.path.lexists(folder):
        found.append(folder)
        folder = os.path.dirname(folder)
    return tuple(reversed(found))


def _write(file: str, before: bytes | None, after: bytes, mode: int) -> None:
    """Replace a file in one step, with the mode it had; the target of a link, not the link."""
    target = os.path.realpath(file)
    temporary = f"{target}.{os.getpid()}.clawmark"
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        kept = mode if before is None else stat.S_IMODE(os.stat(target).st_mode)
        descriptor = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600
        )
        with open(descriptor, "wb") as out:
            out.write(after)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(temporary, kept)
        os.replace(temporary, target)
    except OSError as error:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise _refused(file, error) from None


def _remove_folders(folders: Sequence[str]) -> None:
    for folder in reversed(folders):
        try:
            os.rmdir(folder)
        except OSError:
            return  # something else lives in it now, or it is gone


def _refused(file: str, error: OSError) -> ConfigError:
    return ConfigError(
        f"{file} cannot be used: {error.strerror or type(error).__name__}.", file=file
    )


def _changed(file: str) -> WriteConflict:
    message = f"{file} changed while this was planned."
    return WriteConflict(message, path=file, base_hash="", current_hash="", hint="Try again.")
