"""Report that memory files may have changed.

`Watcher` calls back for each change with the path, or with an empty path for "look at everything".
What really changed is found by a sync, which compares disk and index. The operating system reports
changes through `watchfiles`; where it cannot (no watches left, a network disk), files are polled.

watchfiles does not report that the system's event queue overflowed, so folders are listed again
after each batch of events. Its own polling compares only modification times, which an edit can
keep, so `Watcher` polls with a scan of the workspace instead.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from watchfiles import Change
from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

from clawmark.model.values import MediaRules, Scan
from clawmark.workspace import places
from clawmark.workspace.guard import MAX_COMPONENTS, is_utf8, reason_of
from clawmark.workspace.places import is_below, is_visible_folder

RECURSIVE = sys.platform != "linux"
"""Whether the system watches whole trees. Linux needs one watch for each folder, and `watchfiles`
would follow links and enter folders such as `node_modules` on the way."""

QUICK_PAUSE, CALM_PAUSE = 0.1, 3.0
ATTENTIVE_SECONDS = 10.0
"""Seconds between two questions whether the system has reported changes, which watchfiles collects
in a thread that sleeps in between: the short pause for some seconds after a change and after the
start, else the long one. A search looks at the disk itself, so it does not wait for a watcher."""

CHECK_SECONDS = 1.0
CHECK_REST = 50.0
"""Rest between two listings of the folders, for each second that a listing takes."""

# Rests between two scans while polling, for each second of processor time and of wall time that the
# scan took: a network disk uses no processor, but should not be asked all the time either. The
# shorter rests hold for a while after a change, because one rarely comes alone; the longer ones
# keep an idle poller below half a percent of a core.
QUICK_REST, CALM_REST = (20.0, 3.0), (250.0, 30.0)
QUICK_SECONDS = 30.0
LEAST_REST_SECONDS = 1.0

_SET_UP_ATTEMPTS = 10
_OUT_OF_WATCHES = re.compile(r"watch limit|\(os error (?:12|23|24|28)\)")
"""ENOMEM, ENFILE, EMFILE and ENOSPC, as watchfiles reports them."""


class _NoReports(Exception):
    """This system does not report changes of files."""


class Target(NamedTuple):
    """A folder to watch; it need not exist yet."""

    folder: str
    is_wanted: Callable[[str], bool]
    """Decides by its name whether a file matters."""
    deep: bool
    """Whether visible folders below it are watched too."""
    listing: str = ""
    """The name of a file in it that lists further targets, which are read again when it changes."""

    def holds(self, folder: str) -> bool:
        """Whether files in a folder belong to this target."""
        if folder == self.folder:
            return True
        if not self.deep or not is_below(folder, self.folder):
            return False
        parts = folder[len(self.folder) :].strip(os.sep).split(os.sep)
        return len(parts) < MAX_COMPONENTS and all(map(is_visible_folder, parts))


def memory_targets(
    root: str,
    extra_paths: Sequence[str],
    sources: Sequence[str] = (),
    media: MediaRules | None = None,
) -> list[Target]:
    """Return the targets of a workspace: root files, `memory/`, extra paths, folders of sources."""
    home = os.path.realpath(os.path.expanduser("~"))

    def is_memory(name: str) -> bool:
        return places.is_memory_name(name, media)

    targets = [
        Target(root, places.ROOT_FILES.__contains__, deep=False),
        Target(os.path.join(root, "memory"), places.is_markdown, deep=True),
    ]
    for extra in places.resolve_extras(root, extra_paths, home, media=media)[0]:
        folder = extra.folder or os.path.join(
            root, os.path.dirname(extra.prefix) if extra.file else extra.prefix
        )
        is_wanted = extra.file.__eq__ if extra.file else is_memory
        targets.append(Target(os.path.normpath(folder), is_wanted, deep=not extra.file))
    for given in extra_paths:
        path = os.path.normpath(os.path.join(root, os.path.expanduser(given.strip())))
        if "\0" not in path and not os.path.lexists(path):
            targets.append(Target(path, is_memory, deep=True))
    return targets + [Target(folder, is_memory, deep=True) for folder in sources]


class Watcher:
    """Calls `changed` from its own thread whenever something may have changed."""

    def __init__(
        self,
        targets: Callable[[], Sequence[Target]],
        scan: Callable[[], Scan],
        changed: Callable[[str], None],
        *,
        warn: Callable[[str], None],
        poll_because: str = "",
        recursive: bool = RECURSIVE,
    ) -> None:
        self._read_targets = targets
        self._scan = scan
        self._on_change = changed
        self._warn = warn
        self._recursive = recursive
        self.polls_because = poll_because
        """Why the files are polled; empty while the system reports changes."""
        self._notify: RustNotify | None = None
        self._targets: Sequence[Target] = ()
        self._folders: dict[str, tuple[int, int]] = {}
        """The watched folders by path, with device and inode."""
        self._check_at: float | None = None
        """When to list the folders again; None when no event has come since the last time."""
        self._next_check = 0.0
        self._seen: object = None
        self._reading = threading.RLock()
        """Held while the reports of the system are read, or replaced by those of new watches."""
        self._waiting: set[tuple[int, str]] = set()
        """Changes that `count_changes` has read and this thread has not reported yet."""
        self._failed: Exception | None = None
        """Why `count_changes` could not read; this thread recovers from it."""
        self._count = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="clawmark-watch", daemon=True)

    @property
    def watched_folders(self) -> int:
        """How many folders the system watches for us."""
        return len(self._folders)

    def count_changes(self) -> int | None:
        """Return how many batches of changes were reported, with what the system reports now; None
        while it does not report every change.

        If the number is the same as before a scan, the scan is still true."""
        with self._reading:
            if self._notify is None or self.polls_because or self._failed is not None:
                return None
            try:
                self._read_reports()
            except (OSError, RuntimeError, WatchfilesRustInternalError) as error:
                self._failed = error
                return None
            absent = [t.folder for t in self._targets if t.folder not in self._folders]
            return None if any(map(_identity_of, absent)) else self._count

    def start(self) -> None:
        """Start watching: changes made after this call are reported."""
        if self.polls_because:
            self._seen = self._look()
        else:
            try:
                self._set_up()
            except (OSError, RuntimeError) as error:
                self._fall_back(error)
        self._thread.start()

    def close(self) -> None:
        """Stop watching and wait for the thread to end; calling it again does nothing."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._close_notify()

    def _run(self) -> None:
        while not self._stopping.is_set():
            # The outermost call of this thread: a failing watcher falls back to polling.
            try:
                if self._notify is None:
                    self._poll()
                else:
                    self._follow()
            except Exception as error:  # the boundary of the thread
                self._recover(error)

    # --- the system reports changes ---

    def _set_up(self) -> None:
        """Watch all folders of all targets; the old watches stay until the new ones are there."""
        for _ in range(_SET_UP_ATTEMPTS):
            targets = self._read_targets()
            folders = self._list_folders(targets)
            try:
                notify = RustNotify(
                    watch_paths=list(folders),
                    debug=False,
                    force_polling=False,
                    poll_delay_ms=1000,
                    recursive=self._recursive,
                    # On Linux this would hide that no watches are left.
                    ignore_permission_denied=self._recursive,
                )
            except (FileNotFoundError, PermissionError):  # a folder changed since it was listed
                continue
            with self._reading:
                self._close_notify()
                self._notify, self._targets, self._folders = notify, targets, folders
                self._count += 1
            self._check_at = None
            if repr(notify).startswith("RustNotify(Poll"):  # the fallback of watchfiles
                raise _NoReports
            # A folder that came before the one above it was watched has caused no event.
            if self._list_folders(targets) == folders:
                return
        if self._notify is None:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        self._check_at = time.monotonic() + CHECK_SECONDS

    def _close_notify(self) -> None:
        with self._reading:
            notify, self._notify, self._folders = self._notify, None, {}
            if notify is not None:
                notify.close()

    def _list_folders(self, targets: Sequence[Target]) -> dict[str, tuple[int, int]]:
        return {
            path: identity
            for target in targets
            for path, identity in _folders_of(target, self._recursive)
        }

    def _follow(self) -> None:
        """Report changes until the watcher is closed."""
        attentive_until = time.monotonic() + ATTENTIVE_SECONDS
        while self._notify is not None:
            is_attentive = time.monotonic() < attentive_until
            if self._stopping.wait(QUICK_PAUSE if is_attentive else CALM_PAUSE):
                return
            absent = [t.folder for t in self._targets if t.folder not in self._folders]
            found = self._take_reports()
            if found:
                attentive_until = time.monotonic() + ATTENTIVE_SECONDS
                self._report(found)
            elif any(map(_identity_of, absent)):
                self._set_up()
                self._changed("")
            if self._check_at is not None and time.monotonic() >= self._check_at:
                self._check()

    def _read_reports(self) -> None:
        """Read what the system has reported; call it with `_reading` held."""
        assert self._notify is not None
        found = self._notify.watch(debounce_ms=0, step_ms=0, timeout_ms=1, stop_event=None)
        if isinstance(found, set):
            self._waiting |= found
            self._count += 1

    def _take_reports(self) -> set[tuple[int, str]]:
        """Return the changes that were not reported yet."""
        with self._reading:
            failed, self._failed = self._failed, None
            if failed is not None:
                raise failed
            self._read_reports()
            found, self._waiting = self._waiting, set()
            return found

    def _changed(self, path: str) -> None:
        self._count += 1
        self._on_change(path)

    def _report(self, found: set[tuple[int, str]]) -> None:
        """Report the changes that matter, and follow folders that came, moved or went."""
        if self._check_at is None:
            self._check_at = max(time.monotonic() + CHECK_SECONDS, self._next_check)
        files, folders = list[str](), list[str]()
        is_listing_changed = False
        is_watch_lost = False
        tops = {target.folder for target in self._targets}
        for change, path in sorted(found, key=lambda one: one[1]):
            above, name = os.path.split(path)
            holders = [target for target in self._targets if target.holds(above)]
            is_gone = change == Change.deleted
            is_watch_lost = is_watch_lost or (is_gone and path in self._folders)
            if (path in tops and change != Change.modified) or any(
                name == target.listing for target in holders
            ):
                is_listing_changed = True
            elif any(target.is_wanted(name) for target in holders):
                files.append(path)
            elif any(target.deep for target in holders) and is_visible_folder(name):
                is_known = path in self._folders or (is_gone and self._recursive)
                if is_known or _identity_of(path):
                    folders.append(path)
        if is_listing_changed:
            self._set_up()
            self._changed("")
            return
        if is_watch_lost or (folders and self._list_folders(self._targets) != self._folders):
            self._set_up()
        for path in dict.fromkeys((*folders, *files)):
            self._changed(path)

    def _check(self) -> None:
        """Find folders whose creation was not reported because the event queue was full.

        The files that changed then are found by the sync that the reported events caused."""
        began = time.monotonic()
        is_stale = self._list_folders(self._targets) != self._folders
        self._check_at = None
        if is_stale:
            self._set_up()
            self._changed("")
        ended = time.monotonic()
        self._next_check = ended + CHECK_REST * (ended - began)

    def _recover(self, error: Exception) -> None:
        """Set the watches up again after an error that concerns one file; else poll."""
        if isinstance(error, WatchfilesRustInternalError) and "decode path" in str(error):
            # A name that is not UTF-8 stops watchfiles, and other changes of the batch are lost.
            self._stopping.wait(CHECK_SECONDS)
            try:
                self._set_up()
            except (OSError, RuntimeError) as second:
                error = second
            else:
                self._changed("")
                return
        self._fall_back(error)

    def _fall_back(self, error: Exception) -> None:
        """Poll from now on, with one warning unless this system never reports changes."""
        self._close_notify()
        self._seen = None  # the first scan counts as a change: something may have been missed
        if self.polls_because:
            return
        if isinstance(error, _NoReports):
            self.polls_because = "this system does not report changes"
            return
        advice = ""
        if _OUT_OF_WATCHES.search(str(error)):
            self.polls_because = "the system has no watches left"
            if sys.platform == "linux":
                advice = " Raise fs.inotify.max_user_watches or fs.inotify.max_user_instances."
        else:
            reason = reason_of(error) if isinstance(error, OSError) else repr(error)
            self.polls_because = f"watching failed ({reason})"
        self._warn(f"Changes are looked for by polling: {self.polls_because}.{advice}")

    # --- polling ---

    def _poll(self) -> None:
        """Scan, and rest in proportion to what the scan cost."""
        changed_at = time.monotonic()
        rest = LEAST_REST_SECONDS
        while not self._stopping.wait(rest):
            began, before = time.monotonic(), time.thread_time()
            seen = self._look()
            ended, used = time.monotonic(), time.thread_time() - before
            if seen != self._seen:
                self._seen = seen
                changed_at = ended
                self._changed("")
            for_used, for_passed = QUICK_REST if ended - changed_at < QUICK_SECONDS else CALM_REST
            rest = max(LEAST_REST_SECONDS, for_used * used, for_passed * (ended - began))

    def _look(self) -> object:
        scan = self._scan()
        return scan.files, scan.failures


def _folders_of(target: Target, recursive: bool) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the readable folders to watch for a target, links and other devices excluded."""
    waiting = [(target.folder, 0)]
    top: tuple[int, int] | None = None
    while waiting:
        path, depth = waiting.pop()
        identity = _identity_of(path)
        is_elsewhere = top is not None and identity is not None and identity[0] != top[0]
        if identity is None or is_elsewhere or not os.access(path, os.R_OK):
            continue
        top = top or identity
        yield path, identity
        if recursive or not target.deep or depth + 1 >= MAX_COMPONENTS:
            continue
        try:
            with os.scandir(path) as entries:
                waiting += [
                    (entry.path, depth + 1)
                    for entry in entries
                    if entry.is_dir(follow_symlinks=False)
                    and is_visible_folder(entry.name)
                    and is_utf8(entry.name)
                ]
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            continue


def _identity_of(path: str) -> tuple[int, int] | None:
    """Device and inode of a folder; None for a link and for anything else."""
    try:
        info = os.lstat(path)
    except OSError:
        return None
    return (info.st_dev, info.st_ino) if stat.S_ISDIR(info.st_mode) else None
