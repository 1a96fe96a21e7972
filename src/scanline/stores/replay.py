"""Replay: the last steps of every environment, drawn from again and again.

Gives the sampler slots to fill and the learner batches of stored steps, by the sampling rule and
the accumulator it was given; holds rows back until `commit` where it is staged.
Knows no sampler, network or optimiser.

One class: uniform or prioritised, one step or n, staged or not are objects and numbers, not
subclasses. Frames are kept once, per environment, so neighbours in time are neighbours in the ring
and no stack can mix two games. A slot is an array of its own that `put` copies (a microsecond per
frame) and not a view into the ring: a sampler keeps its views of one slot forever instead of making
new ones for every rollout, and nothing that a learner may be reading is ever written.

Threads: each writer puts from one thread of its own, one learner draws; nobody does while `commit`,
`cut`, `state` or `load` runs. Unstaged, writer and learner are the same thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from .. import stacks
from ..records import Batch, Column, Experience, Slot, Spaces, State, to_array
from . import memory
from .blocks import RowBlock
from .frame_pool import FramePool, start_place
from .gather import Gather
from .heads import WriteCursors
from .n_step import TRUNCATED
from .reader import Reader
from .replay_settings import ReplaySettings, ReplayShape, sizes_of, stored_per_env
from .ring import NUMBERS, Ring
from .sampling import Draws, RingLayout, Sampling, UniformSampling


class Replay:
    """Stored steps of B environments behind the verbs of a store."""

    def __init__(
        self,
        spaces: Spaces,
        shape: ReplayShape,
        settings: ReplaySettings,
        seed: int,
        columns: Mapping[str, Column] | None = None,
        announce: memory.Announce = print,
    ) -> None:
        sizes = sizes_of(spaces, shape, settings, columns or {})
        stored = stored_per_env(sizes, settings)
        memory.claim(sizes, stored, announce)
        self._spaces, self._shape, self._settings, self._seed = spaces, shape, settings, seed
        self._history = spaces.stack - 1
        limits = sizes.limits(stored)
        self._ring = Ring(sizes.columns, limits.num_rows, shape.num_envs)
        self._cursors = WriteCursors(shape.num_envs, limits)
        self._pools = {
            "final": FramePool(self._ring, "final", spaces.stack),
            "start": FramePool(self._ring, "start", spaces.num_start_frames),
        }
        self._reader = self._new_reader(settings.batch_size, settings.sampling, "replay")
        self._rule = self._reader.rule
        self._others: list[Reader] = []
        self._begin(columns or {})

    def _new_reader(self, batch_size: int, sampling: Sampling, purpose: str) -> Reader:
        first_env_id = self._shape.first_env_id
        layout = RingLayout(self._ring.num_rows, self._shape.num_envs, first_env_id)
        accumulator = self._settings.accumulator
        gather = Gather(self._ring, self._pools, self._spaces, accumulator, batch_size)
        rule = sampling.start(layout, batch_size)
        return Reader(gather, rule, batch_size, Draws(self._seed, purpose, first_env_id))

    def _begin(self, columns: Mapping[str, Column]) -> None:
        num, steps = self._shape.num_writers, self._shape.rollout_agent_steps
        num_envs = self._shape.num_envs // num
        self._blocks = [
            RowBlock(Slot.allocate(self._spaces, steps, num_envs, columns)) for _ in range(num)
        ]
        for block in self._blocks:
            block.slot.num_learners = num * self._shape.num_learners
        # Of each writer, until it is committed: (name of the pool, row, environment, frames).
        self._beside: list[list[tuple[str, int, int, Tensor]]] = [[] for _ in range(num)]
        self._reached = [0] * num  # agent steps after the last put of each writer
        self._rows_since_cut = [self._spaces.stack] * num
        self._restored_rows = [0] * num
        self._num_drawable = self._num_paid = self._agent_steps = 0

    # Writing

    def slot(self, writer: int = 0) -> Slot:
        """The arrays of one writer: the same at every call."""
        return self._blocks[writer].slot

    def put(self, experience: Experience) -> None:
        """Copies a filled slot into the ring; visible at once, or at the next commit if staged."""
        slot = experience.slot
        writer = self._writer_of(slot)
        block = self._blocks[writer]
        envs = self._shape.envs_of(writer)
        self._check_room(writer, slot.num_steps)
        first = self.next_row(writer)
        if first == self._history:
            self._write_history(envs, slot)
        since_cut = self._rows_since_cut[writer]
        self._ring.write(first, envs, block.rows(experience.columns, since_cut))
        self._rows_since_cut[writer] = since_cut + slot.num_steps
        beside = self._beside[writer]
        for name, some in (("final", slot.finals), ("start", slot.starts)):
            at = zip(some.steps.tolist(), some.envs.tolist(), some.frames.clone(), strict=True)
            for t, env, frames in at:
                if name == "start" or block.end[t, env] == TRUNCATED:
                    beside.append((name, first + t, envs.start + env, frames))
        self._cursors.advance(envs, block.end)
        self._reached[writer] = slot.agent_steps_after
        if not self._shape.staged_agent_steps:
            self.commit()

    def commit(self) -> None:
        """Makes staged steps visible, by the flush rule; in the order of environments."""
        self._cursors.commit(self._settings.flush)
        window = self._cursors.window()
        self._place_beside()
        self._pools["final"].release(window.first)
        self._pools["start"].release(window.first - self._history)
        for reader in (self._reader, *self._others):
            reader.rule.move(window)
        self._num_drawable = window.num_steps
        self._agent_steps = max(self._reached)

    def cut(self) -> None:
        """Says that all games were begun anew: the newest steps are truncated where they stand."""
        for env in range(self._shape.num_envs):
            row = int(self._cursors.written[env]) - 1
            end = self._ring.arrays["end"][row % self._ring.num_rows]
            if row >= self._history and not end[env]:
                end[env] = TRUNCATED
                last = self._observation(row + 1, env)
                self._beside[0].append(("final", row, env, last))
        np.copyto(self._cursors.completed, self._cursors.written)
        self._rows_since_cut = [0] * self._shape.num_writers
        self._place_beside()

    def _writer_of(self, slot: Slot) -> int:
        for writer, own in enumerate(self._blocks):
            if own.slot is slot:
                return writer
        raise ValueError(
            "This slot is not one of the replay's own; fill the one that slot() gives."
        )

    def _check_room(self, writer: int, num_steps: int) -> None:
        room = self._cursors.room(self._shape.envs_of(writer).start)
        if self._shape.staged_agent_steps and num_steps > room:
            raise RuntimeError(
                f"{num_steps} steps were put where {room} more may be staged; call commit() every "
                f"staged_agent_steps={self._shape.staged_agent_steps}, or raise that number."
            )

    def _write_history(self, envs: slice, slot: Slot) -> None:
        """Frames before the very first step: games may have been played before they are stored."""
        self._ring.write(0, envs, {"frame": to_array(slot.frames[: self._history])})
        for name in self._ring.arrays.keys() - {"frame"}:
            self._ring.arrays[name][: self._history, envs] = 0

    def _place_beside(self) -> None:
        for new in self._beside:
            for pool, row, env, frames in new:
                self._pools[pool].add(row, env, frames)
            new.clear()

    def _observation(self, row: int, env: int) -> Tensor:
        """The observation [S, *frame] before the step of a row."""
        envs = slice(env, env + 1)
        frames = self._ring.read(row - self._history, row + 1, envs, "frame")
        depth = self._ring.read(row, row + 1, envs, "depth")[0]
        padding = stacks.Padding(self._spaces.stack_padding, self._starts_at(row, env, depth))
        return stacks.build(frames, depth, padding)[0].clone()

    def _starts_at(self, row: int, env: int, depth: Tensor) -> stacks.SparseFrames:
        """What fills the stack before the step of a row, with that step as number 0."""
        starts = self.slot().starts.emptied()
        if depth > self._spaces.num_start_frames:
            return starts
        place = np.array([row % self._ring.num_rows * self._ring.num_envs + env])
        found = self._pools["start"].at(start_place(self._ring, place, to_array(depth)))
        starts.append(1 - int(depth), torch.zeros(1, dtype=torch.int64), found)
        return starts

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
        settings = self._settings
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
        reader = self._new_reader(batch_size, UniformSampling(), purpose)
        reader.rule.move(self._cursors.window())
        self._others.append(reader)
        return reader

    def feedback(self, batch: Batch, priorities: Tensor | None) -> None:
        if priorities is not None:
            assert batch.indices is not None
            self._rule.learn(to_array(batch.indices), to_array(priorities))

    # Saving

    def first_row(self, writer: int = 0) -> int:
        """Oldest row of a writer that any later draw may read: what a checkpoint must keep."""
        first = self._cursors.window().first[self._shape.envs_of(writer)]
        return int(first.min()) - self._history

    def next_row(self, writer: int = 0) -> int:
        """Row that a writer writes next: rows below it never change."""
        return int(self._cursors.written[self._shape.envs_of(writer).start])

    def rows(self, first: int, last: int, writer: int = 0) -> dict[str, Tensor]:
        """Rows first <= i < last of a writer, each column [rows, b, ...], for append-only saving.

        Views of the ring where they do not cross its end: save them before the next put.
        """
        oldest = self.next_row(writer) + 1 - self._ring.num_rows
        if not max(0, oldest) <= first <= last <= self.next_row(writer):
            raise ValueError(
                f"Rows {first} to {last} of writer {writer} are not in the ring, which has "
                f"{max(0, oldest)} to {self.next_row(writer)}; begin new segments at first_row()."
            )
        envs = self._shape.envs_of(writer)
        names = self._ring.arrays.keys() - {*NUMBERS}
        return {name: self._ring.read(first, last, envs, name) for name in sorted(names)}

    def restore_rows(self, first: int, columns: Mapping[str, Tensor], writer: int = 0) -> None:
        """Puts saved rows back, oldest first; `load` comes after the last of them."""
        arrays = {name: to_array(column) for name, column in columns.items()}
        self._ring.write(first, self._shape.envs_of(writer), arrays)
        self._restored_rows[writer] = first + columns["frame"].shape[0]

    def state(self) -> State:
        """Everything but the rows, which `rows` gives, those that are staged included."""
        self._place_beside()
        newest = self._cursors.written % self._ring.num_rows, np.arange(self._shape.num_envs)
        return {
            "num_rows": self._ring.num_rows,
            "num_updates": self._reader.num_draws,
            "num_paid": self._num_paid,
            "reached": list(self._reached),
            "agent_steps": self._agent_steps,
            "rows_since_cut": list(self._rows_since_cut),
            "heads": self._cursors.state(),
            "beside": {name: pool.state() for name, pool in self._pools.items()},
            "sampling": self._rule.state(),
            "newest_frame": self._ring.arrays["frame"][newest],
            "newest_depth": self._ring.arrays["depth"][newest],
        }

    def load(self, state: State) -> None:
        """Continues exactly, after `restore_rows` has put all rows back."""
        self._check_restored(state)
        self._cursors.load(state["heads"])
        self._reader.num_draws, self._num_paid = state["num_updates"], state["num_paid"]
        self._reached, self._rows_since_cut = list(state["reached"]), list(state["rows_since_cut"])
        newest = self._cursors.written % self._ring.num_rows, np.arange(self._shape.num_envs)
        self._ring.arrays["frame"][newest] = state["newest_frame"]
        self._ring.arrays["depth"][newest] = state["newest_depth"]
        for name, pool in self._pools.items():
            pool.load(state["beside"][name])
        rows, envs = self._pools["final"].kept()
        # A cut may have come after saving.
        self._ring.arrays["end"][rows % self._ring.num_rows, envs] = TRUNCATED
        self._rule.load(state["sampling"])
        window = self._cursors.window()
        for reader in (self._reader, *self._others):
            reader.rule.move(window)
        self._num_drawable, self._agent_steps = window.num_steps, state["agent_steps"]

    def _check_restored(self, state: State) -> None:
        if state["num_rows"] != self._ring.num_rows:
            raise ValueError(
                f"The saved replay has {state['num_rows']} rows per environment, this one "
                f"{self._ring.num_rows}; continue with the settings it was saved with."
            )
        written = np.asarray(state["heads"]["written"])
        for writer, restored in enumerate(self._restored_rows):
            expected = int(written[self._shape.envs_of(writer).start])
            if expected > self._history and restored != expected:
                raise ValueError(
                    f"Writer {writer} had {expected} rows when saved, {restored} were restored; "
                    "call restore_rows() with every saved segment before load()."
                )
