"""The folder of a queue: cells, tickets that move by atomic renames, attempts and runs.

Takes cells; gives tickets. Knows neither leases nor processes, and nothing of what a run does.

    queue.json               format, and the scanline that wrote it
    cells/ID.json            every cell, written once
    pending/ID@N.json        the cell's ticket: a second name of the same file, in one folder at a
    running/ID@N-TOKEN.json  time. N counts claims; TOKEN is the claim that may end this attempt
    done/, failed/           the same name as in running/
    attempts/ID/N-TOKEN/     the run folder of one claim, which no other claim writes to
    runs/ID/                 the run folder of a finished cell
    leases/ logs/ errors/    heartbeats; what runs print; why they failed

A ticket is one file, so a cell is in one state, and a rename of it succeeds for one process only.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..errors import UserError
from ..files import disk_errors, refusal_of, replace_file, sync_folder, write_synced
from . import attempts
from .cells import VERSION, Cell, CellError, read_cell

State = Literal["pending", "running", "done", "failed"]
STATES: tuple[State, ...] = ("pending", "running", "done", "failed")
FORMAT_VERSION = 1
_RECORD, _NEW = "queue.json", "new"
_FOLDERS = (*STATES, _NEW, "cells", "attempts", "runs", "leases", "logs", "errors")
_SUFFIX = ".json"
_REMEDY = "free some space and start the command again"


class QueueError(UserError):
    """A queue cannot be used as asked."""


@dataclass(frozen=True, order=True)
class Ticket:
    """One state of a cell; claimed under a token or free."""

    number: int
    """Claims so far, this one included."""
    cell_id: str
    token: str = ""

    @property
    def name(self) -> str:
        return f"{self.cell_id}@{self.attempt}"

    @property
    def attempt(self) -> str:
        return f"{self.number:03d}-{self.token}" if self.token else f"{self.number:03d}"

    def claimed(self) -> Ticket:
        """The next claim of the same cell, by a token that no other claim has."""
        return Ticket(self.number + 1, self.cell_id, secrets.token_hex(4))

    def free(self) -> Ticket:
        return Ticket(self.number, self.cell_id)

    @classmethod
    def of(cls, name: str) -> Ticket | None:
        """The ticket of a file's name; None for other files."""
        cell_id, at, attempt = name.removesuffix(_SUFFIX).rpartition("@")
        number, _, token = attempt.partition("-")
        known = at and name.endswith(_SUFFIX) and number.isdecimal()
        return cls(int(number), cell_id, token) if known else None


class Queue:
    """A queue that exists, in one format, for any number of processes at once."""

    def __init__(self, path: Path, version: str) -> None:
        self.path, self.version = path, version

    @classmethod
    def open(cls, path: Path, any_version: bool = False) -> Queue:
        """The queue of a folder; of another scanline's only with `any_version`."""
        try:
            record = json.loads((path / _RECORD).read_bytes())
            version, found = int(record["format_version"]), str(record["scanline"])
        except FileNotFoundError:
            raise QueueError(
                f"There is no queue in {path} (it has no {_RECORD}); make one with "
                f"`scanline sweep {path} ...`."
            ) from None
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            fault = f"{type(error).__name__}: {error}"
            raise QueueError(
                f"{path / _RECORD} is damaged ({fault}); put back a copy of it."
            ) from error
        if version > FORMAT_VERSION:
            raise QueueError(f"The queue {path} was written by a newer scanline; update this one.")
        if found != VERSION and not any_version:
            raise QueueError(
                f"The queue {path} was written by scanline {found}, and this is {VERSION}: "
                "results of two versions would be mixed; use that version, or give --any-version."
            )
        return cls(path, found)

    @classmethod
    def make(cls, path: Path, any_version: bool = False) -> Queue:
        """The queue of a folder, begun where there is none; a folder of other things is refused."""
        if (path / _RECORD).exists():
            return cls.open(path, any_version)
        if path.exists() and (not path.is_dir() or set(os.listdir(path)) - set(_FOLDERS)):
            raise QueueError(f"{path} holds other files and no queue; name another folder.")
        with disk_errors(f"the queue {path}", _REMEDY):
            for name in _FOLDERS:
                (path / name).mkdir(parents=True, exist_ok=True)
            record = {"format_version": FORMAT_VERSION, "scanline": VERSION}
            replace_file(path / _RECORD, (json.dumps(record) + "\n").encode())
        return cls(path, VERSION)

    # Cells

    def add(self, cell: Cell) -> bool:
        """Adds a cell; False where the queue has it already, in whatever state.

        The cell's file and its ticket are two names of one file. A process that dies between the
        two leaves the file in new/, and `settle` gives it its ticket.
        """
        new = self.path / _NEW / f"{cell.id}@{secrets.token_hex(4)}{_SUFFIX}"
        with disk_errors(f"the cell {cell.id}", _REMEDY):
            write_synced(new, cell.text().encode())
            try:
                os.link(new, self.cell_file(cell.id))
            except FileExistsError:
                new.unlink()
                self._mend(cell)
                return False
            sync_folder(self.path / "cells")
            self._to_pending(new, cell.id)
        return True

    def _mend(self, cell: Cell) -> None:
        """Writes a cell's file again if it is damaged; its id says what was in it."""
        try:
            self.cell(cell.id)
        except CellError:
            replace_file(self.cell_file(cell.id), cell.text().encode())

    def _to_pending(self, new: Path, cell_id: str) -> None:
        with suppress(FileNotFoundError):  # another process has just done it
            os.rename(new, self._file("pending", Ticket(0, cell_id)))
        sync_folder(self.path / "pending")

    def cell_file(self, cell_id: str) -> Path:
        return self.path / "cells" / f"{cell_id}{_SUFFIX}"

    def cell(self, cell_id: str) -> Cell:
        return read_cell(self.cell_file(cell_id))

    def cell_ids(self) -> list[str]:
        return sorted(path.stem for path in (self.path / "cells").glob(f"*{_SUFFIX}"))

    # Tickets

    def tickets(self, state: State) -> list[Ticket]:
        """Tickets of a state, fewest claims first."""
        found = (Ticket.of(name) for name in os.listdir(self.path / state))
        return sorted(ticket for ticket in found if ticket is not None)

    def holds(self, state: State, ticket: Ticket) -> bool:
        """Whether the ticket is in this state under this token."""
        return self._file(state, ticket).exists()

    def move(self, ticket: Ticket, source: State, target: State, to: Ticket | None = None) -> bool:
        """Moves a ticket if it is still where it was; for one process only, and for ever."""
        before, after = self._file(source, ticket), self._file(target, to or ticket)
        try:
            os.rename(before, after)
        except FileNotFoundError:
            # A network file system may have done it and lost its own answer.
            return bool((to or ticket).token) and after.exists()
        for folder in {before.parent, after.parent}:
            sync_folder(folder)
        return True

    def claim(self, ticket: Ticket, source: State = "pending") -> Ticket | None:
        """A claim of a pending cell, or of one whose lease is stale; None if another was first."""
        mine = ticket.claimed()
        return mine if self.move(ticket, source, "running", mine) else None

    def give_back(self, ticket: Ticket) -> bool:
        """Ends a claim; the attempt's folder stays for the next one."""
        given = self.move(ticket, "running", "pending", ticket.free())
        if given:
            self._forget_lease(ticket)
        return given

    def fail(self, ticket: Ticket) -> bool:
        failed = self.move(ticket, "running", "failed")
        if failed:
            self._forget_lease(ticket)
        return failed

    def finish(self, ticket: Ticket) -> bool:
        """Ends a claim whose run is complete: this rename is the one commit of a result."""
        finished = self.move(ticket, "running", "done")
        if finished:
            self._publish(ticket)
        return finished

    def _file(self, state: State, ticket: Ticket) -> Path:
        return self.path / state / f"{ticket.name}{_SUFFIX}"

    def _forget_lease(self, ticket: Ticket) -> None:
        self.lease_file(ticket).unlink(missing_ok=True)

    # Attempts and runs

    def attempt(self, ticket: Ticket) -> Path:
        """The run folder of a claim."""
        return self.path / "attempts" / ticket.cell_id / ticket.attempt

    def begin_attempt(self, ticket: Ticket) -> Path:
        """Makes the run folder of a claim from the one of the newest claim before it, if any."""
        attempts.begin(self.attempt(ticket))
        return self.attempt(ticket)

    def run(self, cell_id: str) -> Path:
        """The run folder of a finished cell."""
        return self.path / "runs" / cell_id

    def lease_file(self, ticket: Ticket) -> Path:
        return self.path / "leases" / f"{ticket.name}{_SUFFIX}"

    def log_file(self, ticket: Ticket) -> Path:
        return self.path / "logs" / ticket.cell_id / f"{ticket.attempt}.txt"

    def errors(self, cell_id: str) -> list[Path]:
        """Files with the errors of a cell, oldest first."""
        return sorted((self.path / "errors" / cell_id).glob("*.txt"))

    def write_error(self, ticket: Ticket, text: str) -> None:
        folder = self.path / "errors" / ticket.cell_id
        folder.mkdir(exist_ok=True)
        replace_file(folder / f"{ticket.attempt}.txt", text.encode())

    def settle(self) -> None:
        """Completes what a process has begun and not ended; any process may, at any time."""
        for path in (self.path / _NEW).glob(f"*{_SUFFIX}"):
            cell_id = path.name.rpartition("@")[0]
            with suppress(FileNotFoundError):
                if os.path.samefile(path, self.cell_file(cell_id)):
                    self._to_pending(path, cell_id)
        for ticket in self.tickets("done"):
            if not self.run(ticket.cell_id).exists():
                self._publish(ticket)

    def _publish(self, ticket: Ticket) -> None:
        """Moves a finished attempt, without its replay, to its place among the runs."""
        mine = self.attempt(ticket)
        with suppress(FileNotFoundError):  # another process does the same
            attempts.drop_replay(mine)
            os.rename(mine, self.run(ticket.cell_id))
        shutil.rmtree(mine.parent, ignore_errors=True)
        for lease in (self.path / "leases").glob(f"{_literal(ticket.cell_id)}@*"):
            lease.unlink(missing_ok=True)

    def retry_failed(self) -> int:
        """Gives every failed cell another chance; its errors stay under another name."""
        num = 0
        for ticket in self.tickets("failed"):
            for path in self.errors(ticket.cell_id):
                path.rename(path.with_suffix(".old"))
            num += self.move(ticket, "failed", "pending", ticket.free())
        return num


def _literal(name: str) -> str:
    """A name as a pattern that matches itself."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def trouble(error: Exception) -> str:
    """What a worker says of a disk or a folder that fails it."""
    if not isinstance(error, OSError):
        return str(error)
    reason = error.strerror or str(error)
    return refusal_of(error) or f"The queue cannot be used: {reason}; check its disk."


def lines_of(paths: list[Path]) -> Iterator[str]:
    """The first line of each file that can be read."""
    for path in paths:
        with suppress(OSError):
            yield path.read_text(errors="replace").partition("\n")[0]
