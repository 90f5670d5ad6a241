"""Notices that something changed among the memory files, and says no more than that.

Folders to keep an eye on come in; a call for each change goes out, with the path that changed, or
an empty one for "look at everything". What really changed is found by comparing disk and index,
which is left to `sync`. On Linux the system reports changes (one inotify instance, one watch per
folder) and nothing runs in between. Where it cannot, and where it would miss what another machine
does, the files are looked at again and again, with rests so long that it does not matter."""

from __future__ import annotations

import errno
import os
import select
import threading
import time
from collections.abc import Callable, Sequence

from clawmark.model.values import Scan
from clawmark.workspace import places
from clawmark.workspace.guard import reason_of
from clawmark.workspace.watching.folders import OUT_OF_WATCHES, Target, WatchedFolders

# After a look, how long to rest for each second of the processor it took, and for each second that
# went by: a network disk costs no processor, and is not to be asked all the time either. The
# smaller numbers count for a while after a change, because one seldom comes alone; the larger ones
# keep an idle poller below half a percent of a core.
QUICK_REST, CALM_REST = (20.0, 3.0), (250.0, 30.0)
QUICK_SECONDS = 30.0
LEAST_REST_SECONDS = 1.0


def memory_targets(
    root: str, extra_paths: Sequence[str], sources: Sequence[str] = ()
) -> list[Target]:
    """What a workspace consists of: two files at its root, `memory/`, the extra paths, and the
    folders of its sources.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    targets = [
        Target(root, places.ROOT_FILES.__contains__, deep=False),
        Target(os.path.join(root, "memory"), places.is_markdown, deep=True),
    ]
    for extra in places.resolve_extras(root, extra_paths, home)[0]:
        folder = extra.folder or os.path.join(
            root, os.path.dirname(extra.prefix) if extra.file else extra.prefix
        )
        is_wanted = extra.file.__eq__ if extra.file else places.is_markdown
        targets.append(Target(os.path.normpath(folder), is_wanted, deep=not extra.file))
    for given in extra_paths:
        path = os.path.normpath(os.path.join(root, os.path.expanduser(given.strip())))
        if "\0" not in path and not os.path.lexists(path):
            targets.append(Target(path, places.is_markdown, deep=True))
    return targets + [Target(folder, places.is_markdown, deep=True) for folder in sources]


class Watcher:
    """Calls `changed` from its own thread whenever something may have changed; `start` and `close`
    are its life.
    """

    def __init__(
        self,
        targets: Callable[[], Sequence[Target]],
        scan: Callable[[], Scan],
        changed: Callable[[str], None],
        *,
        warn: Callable[[str], None],
        poll_because: str = "",
        most_watches: int | None = None,
    ) -> None:
        self._targets = targets
        self._scan = scan
        self._changed = changed
        self._warn = warn
        self._most_watches = most_watches
        self.polls_because = poll_because
        """Why the files are looked at again and again; empty while the system reports changes."""
        self._folders: WatchedFolders | None = None
        self._seen: object = None
        self._stopping = threading.Event()
        self._wake, self._woken = os.pipe()
        self._thread = threading.Thread(target=self._run, name="clawmark-watch", daemon=True)

    @property
    def watched_folders(self) -> int:
        """How many folders the system watches for us."""
        folders = self._folders
        return len(folders) if folders is not None else 0

    def start(self) -> None:
        """Begin; what changes from here on is noticed."""
        if self.polls_because:
            self._seen = self._look()
        else:
            self._set_up()
        self._thread.start()

    def close(self) -> None:
        """Stop at once and let go of everything."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        os.write(self._woken, b"x")
        if self._thread.ident is not None:
            self._thread.join()
        for descriptor in (self._wake, self._woken):
            os.close(descriptor)
        self._let_go()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._folders is None:
                    self._poll()
                else:
                    self._follow(self._folders)
            except (
                Exception
            ) as error:  # a watcher that died in silence would be worse than one that polls
                self._give_up(error)

    # --- the system reports --------------------------------------------------------------------------------------

    def _set_up(self) -> None:
        """Have everything watched that is there now; poll when the system has no watches left."""
        self._let_go()
        try:
            self._folders = WatchedFolders(self._targets(), self._most_watches)
        except OSError as error:
            self._give_up(error)

    def _let_go(self) -> None:
        folders, self._folders = self._folders, None
        if folders is not None:
            folders.close()

    def _follow(self, folders: WatchedFolders) -> None:
        """Wait for events, however long that takes, and pass them on."""
        poller = select.poll()
        poller.register(folders.descriptor, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        while True:
            poller.poll()
            if self._stopping.is_set():
                return
            paths = folders.read()
            if (
                paths is None
            ):  # a folder we stand on came or went, or there was more than the system could tell
                self._set_up()
                self._changed("")
                return
            for path in dict.fromkeys(paths):
                self._changed(path)

    def _give_up(self, error: Exception) -> None:
        """Poll from here on, and say so once, unless the system never could do otherwise."""
        self._let_go()
        self._seen = (
            None  # so that the first look counts as a change: something may have been missed
        )
        if self.polls_because:
            return
        if isinstance(error, OSError) and error.errno == errno.ENOSYS:
            self.polls_because = "this system does not report changes"
            return
        if isinstance(error, OSError) and error.errno in OUT_OF_WATCHES:
            self.polls_because = f"the system has no watches left ({reason_of(error)})"
            advice = " Raise fs.inotify.max_user_watches or fs.inotify.max_user_instances."
        else:
            self.polls_because = (
                f"watching failed ({reason_of(error) if isinstance(error, OSError) else error!r})"
            )
            advice = ""
        self._warn(f"Changes are looked for by polling: {self.polls_because}.{advice}")

    # --- we look -------------------------------------------------------------------------------------------------

    def _poll(self) -> None:
        """Look, and rest in proportion to what the look cost."""
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
