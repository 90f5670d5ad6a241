"""The proposals of an agent: one private JSON file each, in a folder of the state folder.

An acceptance stores what it is about to write, replaces the memory files, and then stores that it
is done. If it is killed in between, the next call that reads the proposal compares the files with
the stored hashes and completes or cancels it, so that no hunk is applied twice."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple

from clawmark.agent.review.hunks import (
    Hunk,
    HunkState,
    NoLongerApplies,
    apply_hunks,
    hunk_hash,
    is_applied,
)
from clawmark.agent.review.proposals import Applying, FileHashes, Proposal, as_json, from_json
from clawmark.model.errors import (
    ClawmarkError,
    ProposalDamaged,
    ReviewError,
    WorkspaceError,
    WriteConflict,
    advice,
)
from clawmark.model.provenance import Origin
from clawmark.system import shared_json
from clawmark.system.private_files import make_private_folder, sync_folder
from clawmark.text.chunking.tokens import well_formed
from clawmark.text.write_check import check_write
from clawmark.workspace import Workspace

LOCK_SECONDS = 10.0
MOST_DECIDED = 200
"""How many decided proposals are kept to look back at."""
MOST_REJECTED = 10_000
"""How many hashes of rejected hunks are remembered."""
_ATTEMPTS = 5
"""How often an acceptance is repeated if a file changes at the same time."""
_NAME = re.compile(r"p([1-9][0-9]{0,8})\.json")
_REJECTED = "rejected.json"


class Damaged(NamedTuple):
    """A file of the folder that is not a proposal."""

    path: str
    reason: str


class ProposalBox:
    """The proposals of one agent. Methods may be called by several threads and processes."""

    def __init__(self, folder: str, now: Callable[[], datetime], workspace: Workspace) -> None:
        self.folder = folder
        self._now = now
        self._workspace = workspace

    def add(
        self,
        hunks: Sequence[Hunk],
        *,
        title: str,
        origin: Origin,
        base: Mapping[str, str] | None = None,
    ) -> Proposal | None:
        """Store a proposal, durably.

        Hunks that were rejected before, or that wait already, are left out. Returns the proposal
        that has the last of the hunks: an older one if all of them wait, None if all of them were
        rejected. `base` has the hash of each file that the hunks are based on."""
        for hunk in hunks:
            problem = check_write(hunk.new, current=hunk.old)
            if problem is not None:
                raise WorkspaceError(problem.message, hint=problem.hint)
        with self._locked():
            rejected, waiting = set(self._rejected()), dict[str, Proposal]()
            for proposal in self._load_all():
                for number in proposal.pending:
                    waiting[hunk_hash(proposal.hunks[number - 1])] = proposal
            wanted = [hunk for hunk in hunks if hunk_hash(hunk) not in rejected]
            new = [hunk for hunk in wanted if hunk_hash(hunk) not in waiting]
            if not new:
                return waiting[hunk_hash(wanted[-1])] if wanted else None
            added = Proposal(
                id=self._next_id(),
                created=self._now().isoformat(timespec="seconds"),
                title=title,
                origin=origin,
                base=dict(base or {}),
                hunks=tuple(
                    hunk._replace(new=well_formed(hunk.new).replace("\0", "")) for hunk in new
                ),
            )
            self._save(added)
            self._prune()
            return added

    def list(self, *, decided: bool = False) -> tuple[Proposal, ...]:
        """Return the pending proposals, the oldest first; with `decided`, the others too."""
        return tuple(
            proposal for proposal in self._recovered() if decided or proposal.state == "pending"
        )

    def get(self, proposal_id: str) -> Proposal:
        """Return a proposal; raises ReviewError if there is none with this id."""
        with self._locked():
            return self._recover(self._load(proposal_id))

    def count(self) -> int:
        """Return how many proposals are pending."""
        return len(self.list())

    def damaged(self) -> tuple[Damaged, ...]:
        """Return the files that cannot be read as proposals."""
        found = list[Damaged]()
        for name in self._names():
            path = os.path.join(self.folder, name)
            try:
                self._read(name)
            except ValueError as error:
                found.append(Damaged(path, str(error)))
        return tuple(found)

    def accept(
        self,
        proposal_id: str,
        numbers: Iterable[int] | None = None,
        *,
        origin: Origin | None = None,
    ) -> Proposal | NoLongerApplies:
        """Write hunks to their files, all pending ones by default.

        They count as confirmed by the user, unless another `origin` is given.
        If one of them no longer applies, nothing is written and the answer says which and why.
        Raises ReviewError for hunks that do not exist or were decided about already."""
        with self._locked():
            proposal = self._recover(self._load(proposal_id))
            wanted = _pending(proposal, numbers)
            for attempt in range(1, _ATTEMPTS + 1):
                planned = self._plan(proposal, wanted)
                if isinstance(planned, NoLongerApplies):
                    return planned
                applying, texts = planned
                proposal = proposal._replace(applying=applying)
                self._save(proposal)
                try:
                    self._write(proposal, texts, origin)
                except WriteConflict:
                    proposal = self._recover(proposal)
                    wanted = tuple(one for one in wanted if one in proposal.pending)
                    if attempt == _ATTEMPTS:
                        raise
                except ClawmarkError:
                    self._recover(proposal)
                    raise
                else:
                    break
            proposal = _decided(proposal, wanted, "accepted")._replace(applying=None)
            self._save(proposal)
            return proposal

    def reject(
        self, proposal_id: str, numbers: Iterable[int] | None = None, *, reason: str = ""
    ) -> Proposal:
        """Reject hunks, all pending ones by default; they are not proposed again."""
        with self._locked():
            proposal = self._recover(self._load(proposal_id))
            wanted = _pending(proposal, numbers)
            hashes = [hunk_hash(proposal.hunks[number - 1]) for number in wanted]
            # First: a hunk that is still pending can be rejected again.
            self._remember_rejected(hashes)
            proposal = _decided(proposal, wanted, "rejected", reason)
            self._save(proposal)
            return proposal

    def edit(self, proposal_id: str, number: int, new: str) -> Proposal:
        """Change what a pending hunk writes.

        If it no longer applies, the edited text is added to the end of the file."""
        with self._locked():
            proposal = self._recover(self._load(proposal_id))
            (number,) = _pending(proposal, (number,))
            hunk = proposal.hunks[number - 1]
            new = new.replace("\r\n", "\n").rstrip("\n")
            problem = check_write(new, current=hunk.old)
            if problem is not None:
                raise WorkspaceError(problem.message, hint=problem.hint)
            if not hunk.old and not new.strip():
                raise ReviewError(
                    f"Hunk {number} of {proposal.id} would add nothing.",
                    hint=f"To drop it: clawmark review reject {proposal.id} --hunk {number}",
                )
            proposal = _with_hunk(proposal, number, self._placed(hunk._replace(new=new)))
            self._save(proposal)
            return proposal

    def pending_hunk(self, proposal_id: str, number: int) -> Hunk:
        """Return a hunk; raises ReviewError if it does not exist or was decided about already."""
        proposal = self.get(proposal_id)
        (number,) = _pending(proposal, (number,))
        return proposal.hunks[number - 1]

    def _placed(self, hunk: Hunk) -> Hunk:
        """Return an edited hunk; if its place is gone, it is added to the end of the file."""
        current = self._workspace.read_exact(hunk.path)
        text = current.text if current is not None else ""
        if hunk.new and isinstance(apply_hunks(text, [hunk]), NoLongerApplies):
            return hunk._replace(old="", before="", after="", start_line=0)
        return hunk

    def rewrite(self, keep: Callable[[str], bool]) -> int:
        """Remove every text that must not be kept, and return how many proposals changed.

        A hunk is removed with its text, and with the hash that says it was rejected; a reason, a
        title, a source, a citation or lines around a hunk are emptied."""
        if not os.path.isdir(self.folder):
            return 0
        changed = 0
        with self._locked():
            for proposal in map(self._recover, tuple(self._load_all())):
                kept = _without(proposal, keep)
                if kept == proposal:
                    continue
                changed += 1
                left = {hunk_hash(hunk) for hunk in kept.hunks}
                self._forget_rejected({hunk_hash(hunk) for hunk in proposal.hunks} - left)
                if kept.hunks:
                    self._save(kept)
                else:
                    os.unlink(os.path.join(self.folder, f"{proposal.id}.json"))
                    sync_folder(self.folder)
        return changed

    # --- Accepting ---

    def _plan(
        self, proposal: Proposal, numbers: tuple[int, ...]
    ) -> tuple[Applying, dict[str, str]] | NoLongerApplies:
        """Return what an acceptance writes: the hashes to store, and the text of each file."""
        files, texts = dict[str, FileHashes](), dict[str, str]()
        for path in dict.fromkeys(proposal.hunks[number - 1].path for number in numbers):
            of_path = [one for one in numbers if proposal.hunks[one - 1].path == path]
            current = self._workspace.read_exact(path)
            before = current.text if current is not None else ""
            applied = apply_hunks(before, [proposal.hunks[number - 1] for number in of_path])
            if isinstance(applied, NoLongerApplies):
                return applied._replace(number=of_path[applied.number - 1])
            problem = check_write(applied.text, current=before)
            if problem is not None:
                raise WorkspaceError(problem.message, hint=problem.hint)
            texts[path] = applied.text
            files[path] = FileHashes(
                before=current.hash if current is not None else "",
                after=hashlib.sha256(applied.text.encode("utf-8", "surrogatepass")).hexdigest(),
            )
        return Applying(numbers, files), texts

    def _write(self, proposal: Proposal, texts: Mapping[str, str], given: Origin | None) -> None:
        assert proposal.applying is not None
        for path, hashes in proposal.applying.files.items():
            hunks = [proposal.hunks[number - 1] for number in proposal.applying.numbers]
            cited = dict.fromkeys(one for hunk in hunks for one in hunk.citations)
            origin = given or Origin(
                actor="user",
                kind="accepted",
                trust="owner",
                session=proposal.origin.session,
                source=" ".join([f"proposal {proposal.id}", *cited])[:500],
            )
            self._workspace.replace(path, texts[path], hashes.before, origin=origin)

    def _recover(self, proposal: Proposal) -> Proposal:
        """Complete or cancel an acceptance that was interrupted."""
        if proposal.applying is None:
            return proposal
        done = list[int]()
        for path, hashes in proposal.applying.files.items():
            numbers = [
                one for one in proposal.applying.numbers if proposal.hunks[one - 1].path == path
            ]
            current = self._workspace.read_exact(path)
            if current is None:
                continue
            hunks = [proposal.hunks[number - 1] for number in numbers]
            if current.hash == hashes.after or (
                # Another program has changed the file since.
                current.hash != hashes.before and is_applied(current.text, hunks)
            ):
                done += numbers
        proposal = _decided(proposal, tuple(done), "accepted")._replace(applying=None)
        self._save(proposal)
        return proposal

    # --- Files ---

    def _recovered(self) -> Iterator[Proposal]:
        for proposal in self._load_all():
            if proposal.applying is None:
                yield proposal
            else:  # an acceptance was interrupted, or is running
                yield self.get(proposal.id)

    def _load_all(self) -> Iterator[Proposal]:
        for name in self._names():
            try:
                found = self._read(name)
            except ValueError:  # reported by `damaged`
                continue
            if found is not None:
                yield found

    def _load(self, proposal_id: str) -> Proposal:
        name = f"{proposal_id}.json"
        try:
            found = self._read(name) if _NAME.fullmatch(name) else None
        except ValueError:
            raise ProposalDamaged(
                f"The file of proposal {proposal_id} is damaged.",
                hint=f"Delete {os.path.join(self.folder, name)}",
            ) from None
        if found is None:
            raise ReviewError(
                f"There is no proposal {proposal_id!r}.", hint="To see them: clawmark review list"
            )
        return found

    def _read(self, name: str) -> Proposal | None:
        """Return the proposal of a file, None if there is none; ValueError if it is damaged."""
        with self._explained():
            values = shared_json.load(os.path.join(self.folder, name))
        if values is None:
            return None
        proposal = from_json(values)
        if f"{proposal.id}.json" != name:
            raise ValueError("the file has another name than the proposal")
        return proposal

    def _names(self) -> Sequence[str]:
        with self._explained():
            try:
                names = os.listdir(self.folder)
            except FileNotFoundError:
                return []
        numbers = {name: int(found[1]) for name in names if (found := _NAME.fullmatch(name))}
        return sorted(numbers, key=numbers.__getitem__)

    def _next_id(self) -> str:
        names = self._names()
        found = _NAME.fullmatch(names[-1]) if names else None
        return f"p{int(found[1]) + 1 if found else 1}"

    def _save(self, proposal: Proposal) -> None:
        self._save_values(f"{proposal.id}.json", as_json(proposal))

    def _save_values(self, name: str, values: dict[str, object]) -> None:
        with self._explained():
            shared_json.save(os.path.join(self.folder, name), values, durable=True)
            sync_folder(self.folder)

    def _prune(self) -> None:
        """Delete the oldest decided proposals; the rejected hunks stay remembered."""
        decided = [one for one in self._load_all() if one.state != "pending"]
        for proposal in decided[:-MOST_DECIDED]:
            os.unlink(os.path.join(self.folder, f"{proposal.id}.json"))

    def _rejected(self) -> Sequence[str]:
        try:
            with self._explained():
                found = (shared_json.load(os.path.join(self.folder, _REJECTED)) or {}).get("hashes")
        except ValueError:  # rejected text may be proposed again, which the user can reject again
            return []
        return [str(one) for one in found] if isinstance(found, list) else []

    def _remember_rejected(self, hashes: Sequence[str]) -> None:
        known = list(dict.fromkeys([*self._rejected(), *hashes]))
        self._save_values(_REJECTED, {"hashes": known[-MOST_REJECTED:]})

    def _forget_rejected(self, hashes: set[str]) -> None:
        known = self._rejected()
        left = [one for one in known if one not in hashes]
        if left != known:
            self._save_values(_REJECTED, {"hashes": left})

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._explained():
            make_private_folder(self.folder)
            locked = shared_json.locked(os.path.join(self.folder, "box"), LOCK_SECONDS)
            with locked as is_ours:
                if not is_ours:
                    raise ClawmarkError(
                        f"Another process keeps the proposals in {self.folder} locked.",
                        hint="Try again in a moment.",
                    )
                yield

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ClawmarkError(
                f"The proposals in {self.folder} cannot be used: {error.strerror}.",
                hint=advice(error, "Check the state folder and its disk."),
            ) from error


def _pending(proposal: Proposal, numbers: Iterable[int] | None) -> tuple[int, ...]:
    """Return the hunks to decide about; raises ReviewError if one of them is not pending."""
    wanted = tuple(dict.fromkeys(sorted(proposal.pending if numbers is None else numbers)))
    if not wanted:
        raise ReviewError(f"Proposal {proposal.id} is {proposal.state} already.")
    for number in wanted:
        if not 1 <= number <= len(proposal.hunks):
            raise ReviewError(
                f"Proposal {proposal.id} has no hunk {number}.",
                hint=f"To see its hunks: clawmark review show {proposal.id}",
            )
        state = proposal.hunks[number - 1].state
        if state != "pending":
            raise ReviewError(f"Hunk {number} of proposal {proposal.id} is {state} already.")
    return wanted


def _decided(
    proposal: Proposal, numbers: Sequence[int], state: HunkState, note: str = ""
) -> Proposal:
    for number in numbers:
        hunk = proposal.hunks[number - 1]
        proposal = _with_hunk(proposal, number, hunk._replace(state=state, note=note))
    return proposal


def _with_hunk(proposal: Proposal, number: int, hunk: Hunk) -> Proposal:
    hunks = list(proposal.hunks)
    hunks[number - 1] = hunk
    return proposal._replace(hunks=tuple(hunks))


def _without(proposal: Proposal, keep: Callable[[str], bool]) -> Proposal:
    """Return a proposal without the texts that must not be kept."""
    kept = tuple(
        _emptied(hunk, keep)
        for hunk in proposal.hunks
        if keep(hunk.path) and keep(hunk.old) and keep(hunk.new)
    )
    origin = proposal.origin
    after = proposal._replace(
        hunks=kept,
        title=proposal.title if keep(proposal.title) else "",
        origin=origin._replace(
            session=origin.session if keep(origin.session) else "",
            source=origin.source if keep(origin.source) else "",
        ),
    )
    # The hashes are those of files that had the text.
    return after if after == proposal else after._replace(base={})


def _emptied(hunk: Hunk, keep: Callable[[str], bool]) -> Hunk:
    return hunk._replace(
        reason=hunk.reason if keep(hunk.reason) else "",
        note=hunk.note if keep(hunk.note) else "",
        citations=tuple(one for one in hunk.citations if keep(one)),
        before=hunk.before if keep(hunk.before) else "",
        after=hunk.after if keep(hunk.after) else "",
    )
