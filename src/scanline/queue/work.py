"""A worker: claims cells of a queue and has each carried out by a process of its own.

Takes a queue and how many runs go side by side; gives the exit code of `scanline work`.
Knows tickets, leases and exit codes; what a run does is the child's.

One thread does everything in turn: look after the processes, beat, watch other workers' leases,
claim. Whatever ends a claim is one rename of its ticket, which fails if the cell was taken over
meanwhile, and nothing is written for a claim that is lost.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Protocol

from .. import processes
from ..errors import UserError
from ..files import DiskError
from . import child
from .cells import VERSION, Cell
from .child import Order
from .code import Permission
from .folder import Queue, Ticket, trouble
from .lease import LEASE_SECONDS, Clock, Lease, Watch
from .result import RESULT

CORES_PER_RUN = 1
"""Cores of one run where nothing else is said; as many runs as there are such shares."""
RETRIES = 2
_SAVED_CODES = (child.STOPPED, -signal.SIGTERM, -signal.SIGINT, 143, 130)
_TICK_SECONDS = 0.2


class Process(Protocol):
    """A running attempt."""

    def poll(self) -> int | None: ...
    def ask_to_stop(self) -> None: ...
    def kill(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class WorkSettings:
    """How a worker works."""

    slots: int | None = None
    """Runs side by side; granted cores divided by those of a run when not given."""
    cores_per_run: int = CORES_PER_RUN
    """Cores that each run is bound to where there are several slots."""
    lease_seconds: float = LEASE_SECONDS
    """Seconds without a heartbeat after which another worker takes a cell over."""
    retries: int = RETRIES
    """Further attempts at a cell whose run fails inside; a user's mistake has none."""
    nice: bool = False
    """Let other programs of this machine go first."""
    wait: bool = False
    """Stay for cells that are added later."""
    linger: bool = True
    """Stay while other workers have cells, to take them over if those workers die."""
    any_version: bool = False
    """Work on cells that another version of scanline has written."""

    def __post_init__(self) -> None:
        for name in ("slots", "cores_per_run", "lease_seconds"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UserError(f"{name}={value} must be positive.")
        if self.retries < 0:
            raise UserError(f"retries={self.retries} must not be negative.")


@dataclass
class Claim:
    """A cell that this worker has, from its claim to its end."""

    ticket: Ticket
    lease: Lease
    process: Process
    slot: int


@dataclass
class Worker:
    """Works until nothing is left; `launch` and `clock` are replaced by tests."""

    queue: Queue
    settings: WorkSettings
    permission: Permission = field(default_factory=Permission)
    say: Callable[[str], None] = print
    launch: Callable[[Order, Ticket], Process] | None = None
    clock: Clock = time.monotonic

    def __post_init__(self) -> None:
        self._cores = processes.granted_core_ids()
        share = self.settings.cores_per_run
        self.slots = self.settings.slots or max(len(self._cores) // share, 1)
        self.claims: list[Claim] = []
        self._watch = Watch(self.settings.lease_seconds, self.clock)
        self._next_look = self.clock()
        self._signals = 0
        self._trouble = ""
        self._refused: dict[str, str] = {}
        self.counts: dict[str, int] = dict.fromkeys(("done", "failed", "given back", "lost"), 0)

    # The loop

    def run(self) -> int:
        """Works until the end; the exit code."""
        with self._handling():
            while not self.is_over():
                self.tick()
                time.sleep(_TICK_SECONDS)
        return self._last_word()

    def tick(self) -> None:
        """One turn of everything; what the disk refuses ends the worker, and claims go back."""
        try:
            self.look_after_claims()
            if not self._is_stopping:
                self._claim_what_is_free()
        except (OSError, DiskError) as error:
            self._stop_for(trouble(error))

    def is_over(self) -> bool:
        """Whether there is nothing to do and nothing to wait for."""
        if self.claims:
            return False
        if self._is_stopping:
            return True
        left = [t for t in self.queue.tickets("pending") if t.cell_id not in self._refused]
        others = self.queue.tickets("running") if self.settings.linger else []
        return not (left or others or self.settings.wait)

    @property
    def _is_stopping(self) -> bool:
        return bool(self._signals or self._trouble)

    # Claims that this worker has

    def look_after_claims(self) -> None:
        """Ends what is ended or lost, and beats for the others; passes on the wish to stop."""
        for claim in list(self.claims):
            if self._is_stopping:
                claim.process.ask_to_stop()
            if self._signals > 1:
                claim.process.kill()
            code = claim.process.poll()
            if not self.queue.holds("running", claim.ticket):
                self._lose(claim)
            elif code is not None:
                self._drop(claim)
                self._end(claim, code)
            else:
                self._beat(claim)

    def _beat(self, claim: Claim) -> None:
        try:
            claim.lease.renew_if_due()
        except OSError as error:
            self._stop_for(trouble(error))

    def _lose(self, claim: Claim) -> None:
        """Another worker has the cell: the process ends, and nothing is written."""
        claim.process.kill()
        self._drop(claim)
        self._count("lost", claim, "was taken over by another worker; this one leaves it alone")

    def _drop(self, claim: Claim) -> None:
        self.claims.remove(claim)
        self._next_look = self.clock()  # a slot is free

    def _end(self, claim: Claim, code: int) -> None:
        """Decides where a cell goes whose process has ended."""
        if code == child.DONE and (self.queue.attempt(claim.ticket) / RESULT).exists():
            if self.queue.finish(claim.ticket):
                self._count("done", claim, "is done")
        elif code == child.DISK:
            self._give_back(claim)
            self._stop_for(child.last_line(self.queue.log_file(claim.ticket)))
        elif code in _SAVED_CODES or self._signals > 1:
            self._give_back(claim)
        else:
            self._fail(claim, code)

    def _give_back(self, claim: Claim) -> None:
        if self.queue.give_back(claim.ticket):
            self._count("given back", claim, "was saved and given back")

    def _fail(self, claim: Claim, code: int) -> None:
        """Keeps the error; the cell is tried again unless that is in vain or was enough."""
        ticket = claim.ticket
        text = child.error_text(self.queue.log_file(ticket), code)
        num_errors = len(self.queue.errors(ticket.cell_id)) + 1
        again = code != child.REFUSED and num_errors <= self.settings.retries
        if not (self.queue.give_back(ticket) if again else self.queue.fail(ticket)):
            return
        self.queue.write_error(ticket, text)
        first = text.partition("\n")[0]
        if again:
            self.say(f"{ticket.cell_id} failed and is tried again: {first}")
        else:
            self._count("failed", claim, f"has failed: {first}")

    def _count(self, what: str, claim: Claim, words: str) -> None:
        self.counts[what] += 1
        self.say(f"{claim.ticket.cell_id} {words}.".replace("..", "."))

    # Claims that it makes

    def _claim_what_is_free(self) -> None:
        if self.clock() < self._next_look:
            return
        self._next_look = self.clock() + min(self.settings.lease_seconds / 10, 5.0)
        self.queue.settle()
        for ticket in self._stale_tickets():
            self._try(ticket, "running")
        for ticket in self.queue.tickets("pending"):
            self._try(ticket, "pending")

    def _stale_tickets(self) -> list[Ticket]:
        """Cells of other workers whose heartbeat has stood still for too long."""
        mine = {claim.ticket for claim in self.claims}
        others = [t for t in self.queue.tickets("running") if t not in mine]
        self._watch.forget_all_but({ticket.name for ticket in others})
        return [t for t in others if self._watch.is_stale(t.name, self.queue.lease_file(t))]

    def _try(self, ticket: Ticket, source: str) -> None:
        if len(self.claims) >= self.slots or (cell := self._readable(ticket.cell_id)) is None:
            return
        mine = self.queue.claim(ticket, "running" if source == "running" else "pending")
        if mine is None:
            return
        try:
            self._begin(mine, cell)
        except BaseException:
            self.queue.give_back(mine)
            raise
        self.say(f"{mine.cell_id} {'is taken over' if source == 'running' else 'begins'}.")

    def _readable(self, cell_id: str) -> Cell | None:
        """The cell, if it may be run here; otherwise one sentence, once."""
        if cell_id in self._refused:
            return None
        try:
            cell = self.queue.cell(cell_id)
            self._refuse_other_version(cell)
            self.permission.check(cell)
        except UserError as error:
            self._refused[cell_id] = str(error)
            self.say(f"{cell_id} is left alone: {error}")
            return None
        return cell

    def _refuse_other_version(self, cell: Cell) -> None:
        if cell.scanline != VERSION and not self.settings.any_version:
            raise UserError(
                f"it was written by scanline {cell.scanline}, and this is {VERSION}; use that "
                "version, or give --any-version."
            )

    def _begin(self, ticket: Ticket, cell: Cell) -> None:
        lease = Lease(
            self.queue.lease_file(ticket), ticket.token, self.settings.lease_seconds, self.clock
        )
        folder = self.queue.begin_attempt(ticket)
        slot = min(set(range(self.slots)) - {claim.slot for claim in self.claims})
        order = Order(
            cell=str(self.queue.cell_file(ticket.cell_id)),
            folder=str(folder),
            recipe_file=self.permission.file_of(cell),
            cores=self._cores_of(slot),
            nice=self.settings.nice,
        )
        process = (self.launch or self._launch)(order, ticket)
        self.claims.append(Claim(ticket, lease, process, slot))

    def _launch(self, order: Order, ticket: Ticket) -> Process:
        return child.Attempt(order, self.queue.log_file(ticket))

    def _cores_of(self, slot: int) -> tuple[int, ...]:
        """Cores of its own for every slot; none are chosen where there are too few."""
        share = self.settings.cores_per_run
        cores = tuple(self._cores[slot * share : (slot + 1) * share])
        return cores if self.slots > 1 and self.slots * share <= len(self._cores) else ()

    # The end

    def _stop_for(self, sentence: str) -> None:
        """Saves and gives back everything because of a disk that fails."""
        self._trouble = self._trouble or sentence

    def receive(self, number: int, frame: FrameType | None = None) -> None:
        """The first signal saves and gives back; the second one does not wait for saving."""
        self._signals += 1

    @contextmanager
    def _handling(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM)
        before: Mapping[int, object] = {n: signal.signal(n, self.receive) for n in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)  # type: ignore[arg-type]
            for claim in self.claims:  # only after an error of this program
                claim.process.kill()
                self.queue.give_back(claim.ticket)

    def _last_word(self) -> int:
        if self._trouble:
            raise DiskError(self._trouble.removeprefix("scanline: "))
        counts = ", ".join(f"{number} {what}" for what, number in self.counts.items() if number)
        word = "Stopped" if self._signals else "Nothing is left to do"
        refused = f", {len(self._refused)} left alone" if self._refused else ""
        self.say(f"{word}: {counts or 'no cells'}{refused}.")
        return 2 if self._refused and not self._signals else 0
