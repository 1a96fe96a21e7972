"""Rolling window: the last N steps of all environments, learned from one block at a time.

Gives the sampler slots of a few steps to fill in place, and after each of them the learner one
block of neighbouring environments over the whole window, block after block (CuLE).
Knows no sampler, network or optimiser.

Slots lie one behind the other in arrays of twice the window's length. When the end is reached, the
steps that still count move to the front: each frame is kept once and copied at most once, and a
window is a view; only the stacks of one block are copied, as bytes. Nothing is learned before the
window is full.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from .. import stacks
from ..records import Batch, Experience, Slot, State

_PER_STEP = ("actions", "reward", "raw_reward", "terminated", "truncated", "life_lost", "version")


@dataclass(frozen=True, kw_only=True)
class WindowSettings:
    """How the last steps become batches; CuLE's knobs N and B."""

    window_agent_steps: int = 20
    """Agent steps of every environment in the window, N."""
    num_blocks: int = 20
    """Equal blocks of neighbouring environments that take turns, one per update; with several
    learners, of each learner's environments."""

    def __post_init__(self) -> None:
        if self.window_agent_steps < 1 or self.num_blocks < 1:
            raise ValueError(
                f"window_agent_steps={self.window_agent_steps} and num_blocks={self.num_blocks} "
                "must be at least 1."
            )

    def batch_size(self, num_envs: int, rollout_agent_steps: int) -> int:
        """Agent steps that one update sees."""
        return num_envs // self.num_blocks * self.window_agent_steps

    @property
    def num_kept_steps(self) -> int:
        """Steps that the arrays of a window hold."""
        return 2 * self.window_agent_steps


class WindowStore:
    """Arrays [2 N, B], filled slot by slot; a batch is a block of their last N steps."""

    def __init__(self, arrays: Slot, settings: WindowSettings, rollout_agent_steps: int) -> None:
        _check(arrays, settings, rollout_agent_steps)
        self._arrays, self._size = arrays, settings.window_agent_steps
        self._num_blocks, self._rollout = settings.num_blocks, rollout_agent_steps
        # The sampler knows slots by identity: they are made once.
        starts = range(0, arrays.num_steps, rollout_agent_steps)
        self._slots = [arrays.part(start, rollout_agent_steps) for start in starts]
        self._end = 0
        """Steps of the arrays that are filled."""
        self._num_steps = self._num_updates = 0
        self._owes = False
        self._finals: list[tuple[int, int, Tensor]] = []

    def slot(self) -> Slot:
        if self._end == self._arrays.num_steps:
            self._move_to_front()
        return self._slots[self._end // self._rollout]

    def put(self, experience: Experience) -> None:
        if experience.columns:
            raise ValueError(
                f"{sorted(experience.columns)} were computed once per rollout, but a window is "
                "learned from again and again; use a rollout store, or compute them in the loss."
            )
        slot = experience.slot
        new = [(self._end + t, env, last) for t, env, last in slot.finals]
        starts = {(self._end + t, env): s for (t, env), s in slot.starts.items()}
        self._end += self._rollout
        self._num_steps += self._rollout
        self._owes = self._num_steps >= self._size
        first = self._end - self._size
        self._finals = [final for final in self._finals if final[0] >= first] + new
        starts = {
            at: s for at, s in self._arrays.starts.items() if at[0] > first - slot.stack
        } | starts
        self._arrays.starts = starts

    @property
    def owes(self) -> bool:
        return self._owes

    def batches(self) -> Iterator[Batch]:
        if not self._owes:
            return
        update, self._num_updates, self._owes = self._num_updates, self._num_updates + 1, False
        block = self._block(update % self._num_blocks)
        newest = self._slots[self._end // self._rollout - 1]
        yield Batch(
            observations=block.states(),
            actions=block.actions.flatten(),
            columns={name: column.flatten(0, 1) for name, column in block.columns.items()},
            agent_steps=newest.agent_steps_after,
            update=update,
            slot=block,
        )

    def _block(self, number: int) -> Slot:
        start = self._end - self._size
        num_envs = self._arrays.actions.shape[1] // self._num_blocks
        envs = slice(number * num_envs, (number + 1) * num_envs)
        block = self._arrays.part(start, self._size, envs)
        block.finals = [
            (step - start, env - envs.start, last)
            for step, env, last in self._finals
            if step >= start and envs.start <= env < envs.stop
        ]
        return block

    def _move_to_front(self) -> None:
        """The steps that the next window still needs, to the beginning of the arrays."""
        kept = self._size - self._rollout
        start = self._end - kept
        self._write({name: array.clone() for name, array in self._kept().items()}, kept)
        self._finals = [(step - start, env, last) for step, env, last in self._finals]
        self._finals = [final for final in self._finals if final[0] >= 0]
        self._arrays.starts = self._starts_from(start)

    def _starts_from(self, step: int) -> stacks.Starts:
        return stacks.starts_from(self._arrays.starts, step, self._arrays.stack)

    def _kept(self) -> dict[str, Tensor]:
        """Views of the filled steps that the next window still needs."""
        kept = min(self._end, self._size - self._rollout)
        part = self._arrays.part(self._end - kept, kept)
        named = {f"column/{name}": column for name, column in part.columns.items()}
        steps = {name: getattr(part, name) for name in _PER_STEP}
        return {"frames": part.frames, "depth": part.depth, **steps, **named}

    def _write(self, arrays: dict[str, Tensor], num_steps: int) -> None:
        front = self._arrays.part(0, num_steps)
        for name in ("frames", "depth", *_PER_STEP):
            getattr(front, name).copy_(arrays[name])
        for name, column in front.columns.items():
            column.copy_(arrays[f"column/{name}"])
        self._end = num_steps

    def feedback(self, batch: Batch, priorities: Tensor | None) -> None:
        """Blocks take turns: they have no use for priorities."""

    def state(self) -> State:
        kept = min(self._end, self._size - self._rollout)
        start = self._end - kept
        finals = [final for final in self._finals if final[0] >= start]
        return {
            "num_steps": self._num_steps,
            "num_updates": self._num_updates,
            "num_kept": kept,
            "arrays": {name: array.clone() for name, array in self._kept().items()} if kept else {},
            "finals_at": [[step - start, env] for step, env, _ in finals],
            "finals": [last.clone() for _, _, last in finals],
            "starts": stacks.starts_state(self._starts_from(start)),
        }

    def load(self, state: State) -> None:
        self._num_steps, self._num_updates = state["num_steps"], state["num_updates"]
        self._end = 0
        if state["num_kept"]:
            self._write(state["arrays"], state["num_kept"])
        places = zip(state["finals_at"], state["finals"], strict=True)
        self._finals = [(step, env, last) for (step, env), last in places]
        self._arrays.starts = stacks.starts_of(state["starts"])


def _check(arrays: Slot, settings: WindowSettings, rollout_agent_steps: int) -> None:
    num_envs = arrays.actions.shape[1]
    assert arrays.num_steps == settings.num_kept_steps
    if num_envs % settings.num_blocks:
        raise ValueError(
            f"{num_envs} environments do not divide into num_blocks={settings.num_blocks} equal "
            f"blocks; use a multiple of {settings.num_blocks} environments."
        )
    if settings.window_agent_steps % rollout_agent_steps:
        raise ValueError(
            f"window_agent_steps={settings.window_agent_steps} is no multiple of "
            f"rollout_agent_steps={rollout_agent_steps}; a window holds whole rollouts."
        )
