"""Replay: the last steps of every environment, drawn from again and again.

Gives the sampler slots to fill and the learner batches of stored steps, by the sampling rule and
the n-step target it was given; holds rows back until `commit` where it is staged.
Knows no sampler, network or optimiser.

Frames are kept once, per environment, so neighbours in time are neighbours in the ring and no stack
can mix two games. A slot is an array of its own that `put` copies (a microsecond per frame) and not
a view into the ring: a sampler keeps its views of one slot forever instead of making new ones for
every rollout, and nothing that a learner may be reading is ever written.

Threads: each writer puts from one thread of its own, one learner draws; none of them may run while
`commit`, `cut`, `state` or `load` does. Unstaged, writer and learner are the same thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ..choices import Updates
from ..devices import HOST, Device, Places, download
from ..interfaces import BuildContext
from ..memory import Share
from ..records import Batch, Column, Experience, Slot, Spaces, State, to_array
from ..settings import at_least
from .batches import NStep, Reader
from .memory import ReplayPlace, ReplayShape, place_of, replay_memory, sizes_of
from .ring import (
    GOES_ON,
    TRUNCATED,
    Flush,
    FramePool,
    Ring,
    RingLayout,
    SlotWriter,
    WriteCursors,
    observations,
)
from .sampling import Sampling, UniformSampling
from .sequences import Readers, SequenceShape, refuse_odd, stored_columns


@dataclass(frozen=True, kw_only=True)
class ReplaySettings:
    """What is kept and how it is drawn."""

    needs: ClassVar[frozenset[str]] = frozenset()

    capacity_agent_steps: int = 1_000_000
    """Agent steps kept over all environments; each gets an equal share."""
    capacity_bytes: int = 0
    """Bytes that all of the replay may take, instead of capacity_agent_steps; 0 for none."""
    batch_size: int = 32
    """Steps per batch."""
    sequence_agent_steps: int = 0
    """Agent steps of every drawn sequence, for networks with memory; 0 draws single steps."""
    burn_in_agent_steps: int = 0
    """Agent steps before a sequence that only bring the network's state up to date."""
    training_intensity: float = 8.0
    """Times that a collected step is drawn on average: updates = intensity x steps / batch_size."""
    learning_starts_agent_steps: int = 50_000
    """Agent steps stored before the first batch."""
    sampling: Sampling = field(default_factory=UniformSampling)
    """Which steps are drawn."""
    accumulator: NStep = field(default_factory=NStep)
    """How the rewards that follow a step become one."""
    flush: Flush = "full"
    """What a commit makes visible: 'full', or the steps of 'completed' episodes only."""
    replay_place: ReplayPlace = "auto"
    """Where the replay's frames are: in the 'host' memory, from which batches go to the device; on
    the 'device'; or 'auto', there if they fit into half of what is free."""

    def __post_init__(self) -> None:
        at_least(1, self, "capacity_agent_steps", "batch_size")
        at_least(0, self, "capacity_bytes", "training_intensity", "learning_starts_agent_steps")
        at_least(0, self, "sequence_agent_steps", "burn_in_agent_steps")
        refuse_odd(self.sequence_agent_steps, self.burn_in_agent_steps, self.batch_size)
        if self.flush not in ("full", "completed"):
            raise ValueError(f"flush={self.flush!r} is unknown; use 'full' or 'completed'.")
        if self.flush == "completed" and "writers" not in self.gives:
            raise ValueError(
                "flush='completed' stores more of one environment than of another, but "
                "spread='per-env' draws equally often from each; use spread='steps'."
            )

    @property
    def gives(self) -> frozenset[str]:
        """Writers may put as they come where draws take environments with uneven steps."""
        writers = () if self.sampling == UniformSampling(spread="per-env") else ("writers",)
        whole = ("whole sequences",) if self.sequence_agent_steps else ()
        return frozenset({"pairs", "lasting steps", "central updates", *writers, *whole})

    @property
    def sequence(self) -> SequenceShape:
        """What one draw reads; of single steps a sequence of one."""
        learned = self.sequence_agent_steps or 1
        return SequenceShape(learned, self.burn_in_agent_steps, self.accumulator.n_step)

    def shared(self, num_learners: int, *, divides_batch: bool = True) -> ReplaySettings:
        """What one of several learners keeps and draws: its part of everything that is counted.

        Those that divide a batch begin together; others (not `divides_batch`) draw whole batches.
        """
        for name in ("capacity_agent_steps", "batch_size") if divides_batch else ():
            if getattr(self, name) % num_learners:
                raise ValueError(
                    f"{name}={getattr(self, name)} does not divide among {num_learners} learners; "
                    f"use a multiple of {num_learners}."
                )
        starts = self.learning_starts_agent_steps
        return replace(
            self,
            capacity_agent_steps=self.capacity_agent_steps // num_learners,
            capacity_bytes=self.capacity_bytes // num_learners,
            batch_size=self.batch_size // num_learners if divides_batch else self.batch_size,
            learning_starts_agent_steps=(
                -(-starts // num_learners) if divides_batch else starts // num_learners
            ),
        )

    def updates(self, num_envs: int, rollout_agent_steps: int) -> Updates:
        """Once there are enough steps to draw from."""
        drawn = self.training_intensity * num_envs * rollout_agent_steps
        return Updates(drawn / self.batch_size, self.batch_size)

    def memory(self, context: BuildContext) -> Share:
        own, shape = self._of(context)
        columns = {**context.columns, **stored_columns(context.carried)}
        share = replay_memory(context.spaces, shape, own, columns)
        return share._replace(place=place_of(share, context.device, self.replay_place).memory)

    def build(self, context: BuildContext) -> Replay:
        own, shape = self._of(context)
        device, place = context.device, self.memory(context).place
        places = device, device if place == device.memory else HOST
        parts = (context.seed, context.columns, context.carried, places)
        return Replay(context.spaces, shape, own, *parts)

    def _of(self, context: BuildContext) -> tuple[ReplaySettings, ReplayShape]:
        """What one learner keeps."""
        shape = ReplayShape(
            num_envs=context.num_envs,
            rollout_agent_steps=context.rollout_agent_steps,
            num_writers=context.num_samplers,
            staged_agent_steps=context.staged_agent_steps,
            first_env_id=context.first_env_id,
            num_learners=context.num_learners,
        )
        return self.shared(context.num_learners, divides_batch=context.divides_batch), shape


class Replay:
    """Stored steps of B environments behind the verbs of a store."""

    keeps_rows = True

    def __init__(  # noqa: PLR0913 (each is a choice of its own)
        self,
        spaces: Spaces,
        shape: ReplayShape,
        settings: ReplaySettings,
        seed: int,
        columns: Mapping[str, Column] | None = None,
        carried: Mapping[str, Column] = MappingProxyType({}),
        places: tuple[Device, Device] = (HOST, HOST),  # of slots and batches; of the frames
    ) -> None:
        self._spaces, self._shape, self.settings, self._seed = spaces, shape, settings, seed
        self._history, self._carried, self._device = spaces.stack - 1, carried, places[0]
        sizes = sizes_of(spaces, shape, settings, {**(columns or {}), **stored_columns(carried)})
        stored = sizes.stored(settings.capacity_agent_steps, settings.capacity_bytes)
        limits = sizes.limits(stored)
        layout = RingLayout(limits.num_rows, shape.num_envs, shape.first_env_id)
        self._ring = Ring(sizes.columns, layout, places[1])
        self._cursors = WriteCursors(shape.num_envs, limits)
        self._writers = [self._new_writer(n, columns or {}) for n in range(shape.num_writers)]
        self._pools = {
            "final": FramePool(layout, self.slot().host.finals),
            "start": FramePool(layout, self.slot().starts),
        }
        around = (spaces, settings.accumulator, seed, self._device)
        self._readers = Readers(self._ring, self._pools, *around)
        drawn = settings.sequence if carried else None
        self._reader = self._readers.of(settings.batch_size, settings.sampling, drawn)
        self._others: list[Reader] = []
        self._num_drawable = self._num_paid = self._agent_steps = 0

    def _new_writer(self, number: int, columns: Mapping[str, Column]) -> SlotWriter:
        shape = self._shape
        size = (shape.rollout_agent_steps, shape.num_envs // shape.num_writers)
        slot = Slot.allocate(self._spaces, *size, columns, self._carried, Places(self._device))
        side_by_side = shape.num_writers if shape.staged_agent_steps else 1
        slot.num_learners = side_by_side * shape.num_learners
        return SlotWriter(slot, shape.envs_of(number), self._ring)

    # Writing

    def slot(self, writer: int = 0) -> Slot:
        """The arrays of one writer: the same at every call."""
        return self._writers[writer].slot

    def put(self, experience: Experience) -> None:
        """Copies a filled slot into the ring; visible at once, or at the next commit if staged."""
        number = self._writer_of(experience.slot)
        writer = self._writers[number]
        self._check_room(writer)
        writer.write(self.next_row(number), experience.columns)
        self._cursors.advance(writer.envs, writer.end)
        if not self._shape.staged_agent_steps:
            self.commit()

    def commit(self) -> None:
        """Makes staged steps visible, by the flush rule; in the order of environments."""
        self._cursors.commit(self.settings.flush)
        self._place_staged()
        self._move_readers(max(writer.agent_steps for writer in self._writers))

    def _place_staged(self) -> None:
        for writer in self._writers:
            for name, staged in writer.staged.items():
                self._pools[name].kept.extend(staged)
                staged.clear()

    def _move_readers(self, agent_steps: int) -> None:
        """Draws see what is committed now."""
        drawable = self._cursors.drawable()
        self._pools["final"].release(drawable.first)
        burn_in = self.settings.burn_in_agent_steps
        self._pools["start"].release(drawable.first - burn_in - self._history)
        for reader in (self._reader, *self._others):
            reader.rule.move(drawable)
        self._num_drawable, self._agent_steps = drawable.num_steps, agent_steps

    def cut(self, writer: int | None = None) -> None:
        """Games of a writer, or all, were begun anew: the newest steps end truncated."""
        self._place_staged()
        for number in range(len(self._writers)) if writer is None else (writer,):
            self._cut(number)

    def _cut(self, writer: int) -> None:
        row, envs = self.next_row(writer), self._writers[writer].envs
        self._writers[writer].rows_since_cut = 0
        ends = to_array(self._ring.arrays["end"])[(row - 1) % self._ring.layout.num_rows, envs]
        goes_on = ends == GOES_ON
        if row > self._history and goes_on.any():
            ends[goes_on] = TRUNCATED
            numbers = torch.arange(envs.start, envs.stop)[goes_on]
            last = observations(self._ring, self._pools["start"].kept, self._spaces, row, envs)
            last = torch.from_numpy(download(last))[goes_on]
            self._pools["final"].kept.append(row - 1, numbers, last)
        self._cursors.completed[envs] = self._cursors.written[envs]

    def _writer_of(self, slot: Slot) -> int:
        for number, writer in enumerate(self._writers):
            if writer.slot is slot:
                return number
        raise ValueError("This slot is not the replay's own; fill the one that slot() gives.")

    def _check_room(self, writer: SlotWriter) -> None:
        num_steps, room = writer.slot.num_steps, self._cursors.room(writer.envs.start)
        if self._shape.staged_agent_steps and num_steps > room:
            raise RuntimeError(
                f"{num_steps} steps were put where {room} more may be staged; call commit() every "
                f"staged_agent_steps={self._shape.staged_agent_steps}, or raise that number."
            )

    # Drawing

    @property
    def num_drawable(self) -> int:
        return self._num_drawable

    def batches(self, num_updates: int | None = None) -> Iterator[Batch]:
        """So many batches, or as many as the training intensity owes for the committed steps."""
        if num_updates is not None:
            for _ in range(num_updates):
                yield self.sample()
            return
        while self.owes:
            self._num_paid += 1
            yield self.sample()

    @property
    def owes(self) -> bool:
        return self._num_drawable > 0 and self._num_paid < self._num_owed()

    def _num_owed(self) -> int:
        """Updates that all committed steps deserve, those before the learning start left out."""
        settings = self.settings
        counted = max(0, self._cursors.num_committed - settings.learning_starts_agent_steps)
        return int(counted * settings.training_intensity / settings.batch_size)

    def sample(self, reader: Reader | None = None) -> Batch:
        """One batch, for the replay's own learner or for another reader's; valid until its next."""
        if not self._num_drawable:
            raise RuntimeError(
                "No step can be drawn yet; put more steps than n_step of every environment "
                "(and commit them, if the replay is staged)."
            )
        return (reader or self._reader).draw(self._agent_steps)

    def reader(self, batch_size: int, purpose: str) -> Reader:
        """Uniform draws of another learner; they change nothing here and no checkpoint has them."""
        reader = self._readers.of_steps(batch_size, UniformSampling(), purpose)
        reader.rule.move(self._cursors.drawable())
        self._others.append(reader)
        return reader

    def feedback(self, batch: Batch, priorities: Tensor | None) -> None:
        if priorities is not None and self._reader.rule.learns:
            assert batch.indices is not None
            self._reader.learn(to_array(batch.indices), download(priorities))

    # Saving

    def first_row(self, writer: int = 0) -> int:
        """Oldest row of a writer that any later draw may read: what a checkpoint must keep."""
        first = self._cursors.drawable().first[self._shape.envs_of(writer)]
        return int(first.min()) - self.settings.burn_in_agent_steps - self._history

    def next_row(self, writer: int = 0) -> int:
        """Row that a writer writes next: rows below it never change."""
        return int(self._cursors.written[self._shape.envs_of(writer).start])

    def rows(self, first: int, last: int, writer: int = 0) -> dict[str, Tensor]:
        """Rows first <= i < last of a writer, each column [rows, b, ...], for append-only saving.

        Views of the ring where they do not cross its end: save them before the next put.
        """
        oldest = self.next_row(writer) + 1 - self._ring.layout.num_rows
        if not max(0, oldest) <= first <= last <= self.next_row(writer):
            raise ValueError(
                f"Rows {first} to {last} of writer {writer} are not in the ring, which has "
                f"{max(0, oldest)} to {self.next_row(writer)}; begin new segments at first_row()."
            )
        envs = self._shape.envs_of(writer)
        return {n: self._ring.read(first, last, envs, n) for n in sorted(self._ring.arrays)}

    def restore_rows(self, first: int, columns: Mapping[str, Tensor], writer: int = 0) -> None:
        """Puts saved rows back, oldest first; `load` comes after the last of them."""
        arrays: dict[str, Any] = {name: to_array(column) for name, column in columns.items()}
        if not self._ring.place.is_host:
            arrays["frame"] = self._ring.place.upload(columns["frame"])
        self._ring.write(first, self._shape.envs_of(writer), arrays)
        self._writers[writer].restored_rows = first + columns["frame"].shape[0]

    def state(self) -> State:
        """Everything but the rows, which `rows` gives, those that are staged included."""
        self._place_staged()
        return {
            "num_rows": self._ring.layout.num_rows,
            "num_updates": self._reader.num_draws,
            "num_paid": self._num_paid,
            "reached": [writer.agent_steps for writer in self._writers],
            "rows_since_cut": [writer.rows_since_cut for writer in self._writers],
            "agent_steps": self._agent_steps,
            "cursors": self._cursors.state(),
            "pools": {name: pool.state() for name, pool in self._pools.items()},
            "sampling": self._reader.rule.state(),
            **self._ring.newest(self._cursors.written),
        }

    def load(self, state: State) -> None:
        """Continues exactly, after `restore_rows` has put all rows back."""
        self._check_restored(state)
        self._cursors.load(state["cursors"])
        self._reader.num_draws, self._num_paid = state["num_updates"], state["num_paid"]
        counts = zip(state["reached"], state["rows_since_cut"], strict=True)
        for writer, (agent_steps, rows_since_cut) in zip(self._writers, counts, strict=True):
            writer.agent_steps, writer.rows_since_cut = agent_steps, rows_since_cut
        self._ring.set_newest(self._cursors.written, state)
        for name, pool in self._pools.items():
            pool.kept.load(state["pools"][name])
        # A cut may have come after saving.
        finals = self._pools["final"].kept
        rows = finals.steps % self._ring.layout.num_rows
        self._ring.arrays["end"][rows, finals.envs] = TRUNCATED
        self._reader.rule.load(state["sampling"])
        self._move_readers(state["agent_steps"])

    def _check_restored(self, state: State) -> None:
        if state["num_rows"] != self._ring.layout.num_rows:
            raise ValueError(
                f"The saved replay has {state['num_rows']} rows per environment, this one "
                f"{self._ring.layout.num_rows}; continue with the settings it was saved with."
            )
        written = np.asarray(state["cursors"]["written"])
        for number, writer in enumerate(self._writers):
            expected, restored = int(written[writer.envs.start]), writer.restored_rows
            if expected > self._history and restored != expected:
                raise ValueError(
                    f"Writer {number} had {expected} rows when saved, {restored} were restored; "
                    "call restore_rows() with every saved segment before load()."
                )
