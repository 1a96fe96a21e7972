"""Random games that fill slots as a sampler does, and remember everything for slow comparisons.

Every frame holds a number that no other frame has, so a wrong frame cannot look right.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from scanline.records import Batch, Experience, Slot, Spaces
from scanline.stores import Replay

FRAME = (2, 3)


def spaces(stack: int, padding: str = "zeros", life_loss_ends_return: bool = True) -> Spaces:
    return Spaces(
        frame_shape=FRAME,
        frame_dtype="float32",
        stack=stack,
        num_actions=5,
        stack_padding=padding,
        life_loss_ends_return=life_loss_ends_return,
    )


@dataclass
class Game:
    """One environment: lists indexed by its own step."""

    frames: list[Tensor] = field(default_factory=list)  # before each step, and one more
    started: list[int] = field(default_factory=list)  # index of the first frame of the episode
    starts: dict[int, Tensor] = field(default_factory=dict)  # frames [S - 1, ...] before that one
    finals: dict[int, Tensor] = field(default_factory=dict)  # last frame after an ended step
    actions: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    terminal: list[bool] = field(default_factory=list)
    truncated: list[bool] = field(default_factory=list)
    first_stored: int = 0


class Games:
    """B games; `fill` plays T steps of each into a slot."""

    def __init__(self, own: Spaces, num_envs: int, seed: int, end_chance: float = 0.25) -> None:
        self.spaces, self._end_chance = own, end_chance
        self._random = np.random.default_rng(seed)
        self._num_frames = 0
        self.games = [Game() for _ in range(num_envs)]
        for game in self.games:
            game.frames.append(self._frame())
            game.started.append(0)
            self._begin(game)

    def _begin(self, game: Game) -> None:
        """Makes the frames that fill the stack of an episode whose first frame is the newest."""
        num = self.spaces.num_start_frames
        if num:
            game.starts[len(game.frames) - 1] = torch.stack([self._frame() for _ in range(num)])

    def _frame(self) -> Tensor:
        self._num_frames += 1
        return torch.full(FRAME, float(self._num_frames))

    def warm_up(self, num_steps: int) -> None:
        """Plays steps that nobody stores."""
        for game in self.games:
            for _ in range(num_steps):
                self._step(game)
            game.first_stored = num_steps

    def restart(self) -> None:
        """Begins all games anew without an end, as after a crash."""
        for game in self.games:
            game.truncated[-1] = not game.terminal[-1]
            if game.truncated[-1] and len(game.frames) - 2 not in game.finals:
                game.finals[len(game.frames) - 2] = game.frames[-1]
            game.frames[-1] = self._frame()
            game.started[-1] = len(game.frames) - 1
            self._begin(game)

    def _step(self, game: Game) -> dict[str, object]:
        step = len(game.actions)
        kind = self._random.random()
        over = kind < self._end_chance
        terminated = over and bool(self._random.random() < 0.5)
        truncated = over and (not terminated or bool(self._random.random() < 0.2))
        life_lost = not over and bool(self._random.random() < 0.15)
        game.actions.append(int(self._random.integers(5)))
        game.rewards.append(float(np.float32(self._random.normal())))
        game.terminal.append(terminated or (life_lost and self.spaces.life_loss_ends_return))
        game.truncated.append(truncated and not game.terminal[-1])
        if over:
            game.finals[step] = self._frame()
        game.frames.append(self._frame())
        game.started.append(step + 1 if over else game.started[-1])
        if over:
            self._begin(game)
        return {"terminated": terminated, "truncated": truncated, "life_lost": life_lost}

    def fill(self, slot: Slot, envs: range, agent_steps: int = 0) -> Experience:
        """T steps of some games, written as the lockstep sampler writes them."""
        slot.finals.clear()
        slot.starts.clear()
        slot.agent_steps = agent_steps
        for b, env in enumerate(envs):
            game = self.games[env]
            self._write_window(slot, b, game)
            for t in range(slot.num_steps):
                self._write_step(slot, t, b, game)
            first = len(game.actions) - slot.num_steps
            for k, start in game.starts.items():
                if k - first > 1 - slot.stack:
                    slot.starts.append(k - first, torch.tensor([b]), start[None])
        slot.version[:] = agent_steps
        return Experience(slot)

    def _write_window(self, slot: Slot, b: int, game: Game) -> None:
        now = len(game.actions)
        for place in range(slot.stack):
            k = now - slot.stack + 1 + place
            if k >= 0:  # `frames[:S]` ends with the newest frame
                slot.frames[place, b] = game.frames[k]
        slot.depth[0, b] = self.depth(game, now)

    def _write_step(self, slot: Slot, t: int, b: int, game: Game) -> None:
        flags = self._step(game)
        now = len(game.actions)
        slot.frames[slot.stack + t, b] = game.frames[now]
        slot.depth[t + 1, b] = self.depth(game, now)
        slot.actions[t, b] = game.actions[-1]
        slot.reward[t, b] = game.rewards[-1]
        for name, flag in flags.items():
            getattr(slot, name)[t, b] = flag
        for name, column in slot.columns.items():
            column[t, b] = hash((name, now)) % 97
        if flags["truncated"]:
            last = self.final_observation(game, now - 1)
            slot.finals.append(t, torch.tensor([b]), last[None])

    def depth(self, game: Game, k: int) -> int:
        return min(k - game.started[k] + 1, self.spaces.stack)

    def observation(self, game: Game, k: int) -> Tensor:
        """By definition: the last S frames of the same episode, padded."""
        return self._stack(game, k, game.frames[game.started[k] : k + 1])

    def final_observation(self, game: Game, k: int) -> Tensor:
        """The true last observation of an episode that ended with step k."""
        return self._stack(game, k, [*game.frames[game.started[k] : k + 1], game.finals[k]])

    def _stack(self, game: Game, k: int, episode: list[Tensor]) -> Tensor:
        if self.spaces.num_start_frames:
            episode = [*game.starts[game.started[k]], *episode]
        newest = episode[-self.spaces.stack :]
        repeats = self.spaces.stack_padding == "repeat"
        first = newest[0] if repeats else torch.zeros(FRAME)
        return torch.stack([first] * (self.spaces.stack - len(newest)) + newest)

    def n_step(self, game: Game, k: int, n: int, discount: float) -> tuple[float, float, Tensor]:
        """By definition: rewards up to n steps or an end, factor, and observation to value."""
        total = 0.0
        for m in range(n):
            total += discount**m * game.rewards[k + m]
            if game.terminal[k + m]:
                return total, 0.0, self.observation(game, k + m + 1)
            if game.truncated[k + m]:
                return total, discount ** (m + 1), self.final_observation(game, k + m)
        return total, discount**n, self.observation(game, k + n)


def poison(replay: Replay) -> None:
    """Fills memory that was never written with numbers that would show."""
    for array in replay._ring.arrays.values():
        array.fill_(99)


def steps_of(replay: Replay, batch: Batch, games: Games) -> list[tuple[int, int]]:
    """(environment, its step) of every item of a batch."""
    layout, window = replay._ring.layout, replay._cursors.drawable()
    assert batch.indices is not None
    found = []
    for index in batch.indices.tolist():
        position, env = divmod(index, layout.num_envs)
        rows = [
            row
            for row in range(int(window.first[env]), int(window.last[env]))
            if row % layout.num_rows == position
        ]
        assert len(rows) == 1, "an index outside the drawable range was drawn"
        found.append((env, rows[0] - (games.spaces.stack - 1) + games.games[env].first_stored))
    return found


def assert_batch_is_true(replay: Replay, batch: Batch, games: Games) -> None:
    """Every item equals its definition."""
    accumulator = replay.settings.accumulator
    assert batch.next_observations is not None
    for item, (env, k) in enumerate(steps_of(replay, batch, games)):
        game = games.games[env]
        reward, discount, following = games.n_step(
            game,
            k,
            accumulator.n_step,
            accumulator.discount,  # type: ignore[attr-defined]
        )
        assert torch.equal(batch.observations[item], games.observation(game, k))
        assert batch.actions[item] == game.actions[k]
        # float32 sums of at most five terms against float64
        assert abs(float(batch.columns["reward"][item]) - reward) < 1e-5
        assert abs(float(batch.columns["discount"][item]) - discount) < 1e-6
        if discount:
            assert torch.equal(batch.next_observations[item], following)
