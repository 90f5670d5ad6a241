"""Connect a host to the memory, and undo it: plan the edits of its files, then apply them.

Planning changes nothing, so the plan can be shown first. An edit inserts pieces of text, which are
recorded in a receipt; removal takes out exactly these pieces and leaves other changes alone. A file
created by the installation is deleted; other files are never replaced as a whole."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from clawmark.hooks import jsontext, tomltext
from clawmark.hooks.events import HOSTS
from clawmark.hooks.hosts import Addition
from clawmark.hooks.receipt import Entry, Piece, Receipt, back_up, save
from clawmark.model.errors import ConfigError, WriteConflict

MOST_BYTES = 64 << 20


class Edit(NamedTuple):
    """The content of a file before and after; None if there is no file."""

    file: str
    before: bytes | None
    after: bytes | None


class Plan(NamedTuple):
    """The edits of an installation or a removal."""

    edits: tuple[Edit, ...]
    receipt: Receipt
    """The receipt after the edits."""
    notices: tuple[str, ...]
    """What is not changed, and why."""


def plan_install(wanted: Sequence[Addition], receipt: Receipt) -> Plan:
    """Plan the edits after which every addition exists exactly once."""
    edits, notices, after = list[Edit](), list[str](), dict(receipt)
    for file, additions in _by_file(wanted).items():
        before = _read(file)
        text = _decoded(before or b"", file)
        if before is not None and all(_is_there(text, addition) for addition in additions):
            continue
        entry = receipt.get(file)
        # Without a receipt only hooks are known to be ours, by their command.
        ours = (
            entry.pieces if entry else [_expected(one) for one in additions if one.form == "item"]
        )
        cleaned = _without(text, ours, file)
        created = before is None or (entry is not None and entry.created)
        is_free = before is None or (created and not cleaned)
        made, pieces = _with(cleaned, additions, is_free, notices)
        if not pieces:
            continue
        folders = _missing_folders(file) or (entry.folders if entry else ())
        after[file] = Entry(created, folders, pieces)
        edits.append(Edit(file, before, made.encode("utf-8", "surrogatepass")))
    return Plan(tuple(edits), after, tuple(notices))


def plan_removal(wanted: Sequence[Addition], receipt: Receipt) -> Plan:
    """Plan the removal of our entries; without a receipt they are recognised by their content."""
    edits, notices = list[Edit](), list[str]()
    files = {file: list[Addition]() for file in receipt} or _by_file(wanted)
    for file, additions in files.items():
        before = _read(file)
        if before is None:
            continue
        text = _decoded(before, file)
        entry = receipt.get(file) or _guessed(text, additions)
        cleaned = _without(text, entry.pieces, file)
        is_empty = entry.created and not cleaned.strip("\ufeff \t\r\n")
        if cleaned != text or is_empty:
            after = None if is_empty else cleaned.encode("utf-8", "surrogatepass")
            edits.append(Edit(file, before, after))
        elif any(piece.form == "text" for piece in entry.pieces) and file in receipt:
            notices.append(f"{file} was changed since, and is kept.")
    return Plan(tuple(edits), {}, tuple(notices))


def carry_out(plan: Plan, receipt: Receipt, folder: str, *, mode: int) -> None:
    """Apply a plan; `folder` is for receipt and backups, `mode` for new files."""
    for file, before, _ in plan.edits:
        if _read(file) != before:
            raise _changed(file)
        if before is not None:
            back_up(folder, file, before)
    # The receipt is written first, so that a crash in between can be undone.
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


# --- Pieces of text ---


def _by_file(wanted: Iterable[Addition]) -> dict[str, list[Addition]]:
    files: dict[str, list[Addition]] = {}
    for addition in wanted:
        files.setdefault(addition.file, []).append(addition)
    return files


def _is_there(text: str, wanted: Addition) -> bool:
    if wanted.form == "text":
        return text == wanted.lines[0]
    if wanted.form == "toml":
        block = "\n".join([tomltext.BEGIN, *wanted.lines, tomltext.END])
        return block in text.replace("\r\n", "\n")
    found = jsontext.get(text, wanted.path, wanted.file)
    if wanted.form == "json":
        return found == wanted.value
    return isinstance(found, list) and wanted.value in found


def _with(
    text: str, additions: Sequence[Addition], is_free: bool, notices: list[str]
) -> tuple[str, tuple[Piece, ...]]:
    """Insert the additions that are not there yet; return the text and the inserted pieces."""
    pieces = list[Piece]()
    for file, form, path, value, lines in additions:
        if form == "text":
            if is_free:
                text = lines[0]
                pieces.append(Piece(form=form, path=(), made=(), text=text))
            else:
                notices.append(f"{file} already exists, and is not changed.")
        elif form == "toml":
            if _has_tables(text, file):
                notices.append(f"{file} already has [mcp_servers.clawmark]; it is not changed.")
                continue
            text, piece = tomltext.put(text, lines, file)
            pieces.append(Piece(form=form, path=(), made=(), text=piece))
        elif form == "json" and jsontext.get(text, path, file) is not None:
            notices.append(f"{file} already has {'.'.join(path)}; it is not changed.")
        else:
            done = jsontext.put(text, path, value, file, as_item=form == "item")
            text = done.text
            pieces.append(Piece(form=form, path=path, made=done.made, text=done.piece))
    return text, tuple(pieces)


def _without(text: str, pieces: Sequence[Piece], file: str) -> str:
    """Remove the pieces in reverse order; a reformatted piece is found by its path."""
    for piece in reversed(pieces):
        if piece.text and text.count(piece.text) == 1:
            cut = text.replace(piece.text, "", 1)
            if _is_valid(cut, piece.form, file):
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
    """Return the piece that an installation inserts, if there is no receipt."""
    text = addition.lines[0] if addition.form == "text" else ""
    return Piece(form=addition.form, path=addition.path, made=(), text=text)


def _guessed(text: str, additions: Sequence[Addition]) -> Entry:
    """Guess what an installation has inserted; our name may be another program's."""
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
    return "clawmark" in shown and any(f" hook {host} " in shown for host in HOSTS)


def _is_valid(text: str, form: str, file: str) -> bool:
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


# --- Files ---


def _read(file: str) -> bytes | None:
    """Return the bytes of a file, following links; None if it does not exist."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(file, flags)
    except FileNotFoundError:
        if os.path.lexists(file):
            raise ConfigError(f"{file} is a broken link.", file=file) from None
        return None
    except OSError as error:
        raise _refused(file, error) from None
    with open(descriptor, "rb") as opened:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode) or info.st_size > MOST_BYTES:
            raise ConfigError(f"{file} is not a configuration file.", file=file)
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
    """Replace a file, or the target of a link, atomically; its mode is kept."""
    target = os.path.realpath(file)
    temporary = f"{target}.{os.getpid()}.clawmark"
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        kept = mode if before is None else stat.S_IMODE(os.stat(target).st_mode)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(temporary, flags, 0o600)
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
            return  # not empty, or already gone


def _refused(file: str, error: OSError) -> ConfigError:
    return ConfigError(
        f"{file} cannot be used: {error.strerror or type(error).__name__}.", file=file
    )


def _changed(file: str) -> WriteConflict:
    message = f"{file} changed while this was planned."
    return WriteConflict(message, path=file, base_hash="", current_hash="", hint="Try again.")
