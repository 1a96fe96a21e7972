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
from typing import ClassVar

from torch import Tensor

from .. import random
from ..choices import Updates
from ..interfaces import BuildContext
from ..memory import Share
from ..records import Batch, Experience, Slot, State

_PER_STEP = (
    *("frames", "depth", "actions", "reward", "raw_reward"),
    *("terminated", "truncated", "life_lost", "version"),
)


@dataclass(frozen=True, kw_only=True)
class WindowSettings:
    """How the last steps become batches; CuLE's knobs N and B."""

    needs: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[frozenset[str]] = frozenset({"sequences", "whole sequences", "device frames"})

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

    def updates(self, num_envs: int, rollout_agent_steps: int) -> Updates:
        return Updates(1.0, num_envs // self.num_blocks * self.window_agent_steps)

    @property
    def num_kept_steps(self) -> int:
        """Steps that the arrays of a window hold."""
        return 2 * self.window_agent_steps

    def shared(self, num_learners: int, *, divides_batch: bool = True) -> WindowSettings:
        """Learners divide the environments, and with them every block."""
        return self

    def memory(self, context: BuildContext) -> Share:
        """The arrays, and the pictures of a block."""
        kept, envs, spaces = self.num_kept_steps, context.num_envs, context.spaces
        block = envs // self.num_blocks * (self.window_agent_steps + 1)
        return Share(
            f"Windows of {kept:,} steps of {envs:,} environments",
            Slot.num_bytes(spaces, kept, envs, {**context.columns, **context.carried})
            + block * spaces.stack * spaces.frame_bytes,
            lambda left: "use a smaller num_envs or window_agent_steps",
            context.device.memory,
        )

    def build(self, context: BuildContext) -> WindowStore:
        kept, envs = self.num_kept_steps, context.num_envs
        size = (context.columns, context.carried, context.places)
        arrays = Slot.allocate(context.spaces, kept, envs, *size)
        arrays.num_learners = context.num_learners
        key = (context.seed, context.first_env_id)
        return WindowStore(arrays, self, context.rollout_agent_steps, key)


class WindowStore:
    """Arrays [2 N, B], filled slot by slot; a batch is a block of their last N steps."""

    keeps_rows = False

    def __init__(
        self,
        arrays: Slot,
        settings: WindowSettings,
        rollout_agent_steps: int,
        key: tuple[int, int] = (0, 0),
    ) -> None:
        """`key`: seed of the run, and global number of the first environment."""
        _check(arrays, settings, rollout_agent_steps)
        self._key = key
        self._arrays, self._size = arrays, settings.window_agent_steps
        self._num_blocks, self._rollout = settings.num_blocks, rollout_agent_steps
        # The sampler knows slots by identity: they are made once.
        starts = range(0, arrays.num_steps, rollout_agent_steps)
        self._slots = [arrays.part(start, rollout_agent_steps) for start in starts]
        self._end = 0
        """Steps of the arrays that are filled."""
        self._num_steps = self._num_updates = 0
        self._owes = False

    def slot(self) -> Slot:
        if self._end == self._arrays.num_steps:
            self._write(self._kept())  # the steps still needed move to the front
        return self._slots[self._end // self._rollout]

    def put(self, experience: Experience) -> None:
        if experience.columns:
            raise ValueError(
                f"{sorted(experience.columns)} were computed once per rollout, but a window is "
                "learned from again and again; use a rollout store, or compute them in the loss."
            )
        self._arrays.finals.extend(experience.slot.finals, step=self._end)
        self._arrays.starts.extend(experience.slot.starts, step=self._end)
        self._end += self._rollout
        self._num_steps += self._rollout
        self._owes = self._num_steps >= self._size

    @property
    def owes(self) -> bool:
        return self._owes

    def batches(self) -> Iterator[Batch]:
        if not self._owes:
            return
        update, self._num_updates, self._owes = self._num_updates, self._num_updates + 1, False
        num_envs = self._arrays.actions.shape[1] // self._num_blocks
        first = update % self._num_blocks * num_envs
        envs = slice(first, first + num_envs)
        block = self._arrays.part(self._end - self._size, self._size, envs)
        newest = self._slots[self._end // self._rollout - 1]
        yield Batch(
            observations=block.states(),
            actions=block.actions.flatten(),
            columns={name: column.flatten(0, 1) for name, column in block.columns.items()},
            agent_steps=newest.agent_steps_after,
            update=update,
            random=random.generator(self._key[0], "loss", update, self._key[1]),
            slot=block,
            sequences=block.sequences(self._size + 1),
        )

    def feedback(self, batch: Batch, priorities: Tensor | None) -> None:
        """Blocks take turns: they have no use for priorities."""

    def _kept(self) -> State:
        """Copies of the filled steps that the next window still needs."""
        num_steps = min(self._end, self._size - self._rollout)
        part = self._arrays.part(self._end - num_steps, num_steps)
        return {
            "num_steps": num_steps,
            "arrays": {name: array.clone() for name, array in _named(part).items()},
            "finals": part.finals.state(),
            "starts": part.starts.state(),
        }

    def _write(self, kept: State) -> None:
        """Makes the kept steps the first ones of the arrays."""
        self._end = kept["num_steps"]
        for name, array in _named(self._arrays.part(0, self._end)).items():
            array.copy_(kept["arrays"][name])
        self._arrays.finals.load(kept["finals"])
        self._arrays.starts.load(kept["starts"])

    def state(self) -> State:
        return {
            "num_steps": self._num_steps,
            "num_updates": self._num_updates,
            "kept": self._kept(),
        }

    def load(self, state: State) -> None:
        self._num_steps, self._num_updates = state["num_steps"], state["num_updates"]
        self._write(state["kept"])


def _named(slot: Slot) -> dict[str, Tensor]:
    """All arrays of a slot that have a step axis."""
    columns = {f"column/{name}": column for name, column in slot.columns.items()}
    carried = {f"carried/{name}": each for name, each in slot.carried.items()}
    return {name: getattr(slot, name) for name in _PER_STEP} | columns | carried


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
