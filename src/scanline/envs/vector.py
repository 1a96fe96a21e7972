"""The public vector environment: an engine as a Gymnasium `VectorEnv`.

Takes actions of all environments, or of whole groups by `send` and `recv`; gives stacked
observations [N, S, H, W], rewards, ends and infos in Gymnasium's form.
Knows any engine by its interface, and no sampler: training does not go through it.

Arrays that it gives are fresh and stay valid; with `out` it writes into the caller's own.
A lost life counts as `terminated` where the protocol says that it ends the return.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..engines.interface import Autoreset, Engine, EngineError, check_whole
from ..engines.snapshots import COUNT, FLAG, LIVES, SCORE, Bound, pack, unpack
from ..records import Array, Spaces, StepArrays
from .frame_stack import FrameStack
from .recorders import episode_key

MODES: Mapping[Autoreset, AutoresetMode] = {
    "next-step": AutoresetMode.NEXT_STEP,
    "same-step": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}
FRAMES_PER_SECOND = 60
"""Of the console."""
_MAGIC = b"scanline-vector-2\n"


class StepBuffers(NamedTuple):
    """What `step` fills, for a caller who keeps the arrays."""

    observations: Array  # [N, S, ...frame]
    rewards: Array  # [N] float32
    terminations: Array  # [N] bool
    truncations: Array  # [N] bool


Results = tuple[Array, Array, Array, Array, dict[str, Any]]


class EpisodeTotals:
    """Score, length in agent steps and start time of the episodes under way, for `info`.

    A lost life ends no episode here: scores are of whole games.
    """

    def __init__(self, num_envs: int) -> None:
        self.score = np.zeros(num_envs, np.float64)
        self.length = np.zeros(num_envs, np.int64)
        self.waits = np.zeros(num_envs, np.bool_)  # ended, and the next step only resets
        self._started = np.zeros(num_envs, np.float64)

    def restart(self, rows: slice, mask: Array | None = None) -> None:
        where = slice(None) if mask is None else mask
        for column in (self.score, self.length, self.waits):
            column[rows][where] = 0
        self._started[rows][where] = time.perf_counter()

    def add_step(
        self, rows: slice, raw_reward: Array, ended: Array, waits: bool
    ) -> dict[str, Array] | None:
        """Gives return, length and time {r, l, t}, zero where none ended, if any episode did."""
        self.score[rows] += raw_reward
        self.length[rows] += ~self.waits[rows]
        self.waits[rows] = ended & waits
        if not ended.any():
            return None
        seconds = time.perf_counter() - self._started[rows]
        columns = {"r": self.score[rows], "l": self.length[rows], "t": seconds}
        episode = {name: np.where(ended, column, 0) for name, column in columns.items()}
        self.restart(rows, ended)
        self.waits[rows] = ended & waits
        return episode


class EngineVectorEnv(VectorEnv[Array, Array, Array]):
    """All environments of an engine; `scanline.make` builds it."""

    def __init__(self, engine: Engine, render_mode: str | None = None) -> None:
        settings, spaces = engine.settings, engine.spaces
        self.render_mode = _checked_render_mode(render_mode, engine)
        self.engine, self.protocol = engine, settings.protocol
        self.num_envs, self.batch_size = settings.num_envs, settings.group_size
        self.metadata = {
            "autoreset_mode": MODES[settings.autoreset],
            "render_modes": ["rgb_array"],
            "render_fps": max(1, FRAMES_PER_SECOND // settings.protocol.frame_skip),
        }
        self.single_observation_space = _observation_space(spaces)
        self.single_action_space = Discrete(spaces.num_actions)
        # As ale-py has it: those of a batch, which with `batch_size` is a part of the environments.
        self.observation_space = batch_space(self.single_observation_space, self.batch_size)
        self.action_space = batch_space(self.single_action_space, self.batch_size)
        self._all = slice(0, self.num_envs)
        self._steps = StepArrays.allocate(spaces, self.num_envs)
        groups = range(settings.num_groups)
        self._stacks = [FrameStack(spaces, _part(self._steps, settings.rows(g))) for g in groups]
        self._totals = EpisodeTotals(self.num_envs)
        self._everywhere = np.ones(self.num_envs, np.bool_)
        self._everywhere.setflags(write=False)  # every info shares it
        self._is_reset = False

    def buffers(self, num: int | None = None) -> StepBuffers:
        """Fresh arrays for `step(..., out=...)`; for `recv(out=...)` give `batch_size`."""
        num, spaces = self.num_envs if num is None else num, self.engine.spaces
        return StepBuffers(
            np.empty((num, *spaces.observation_shape), spaces.frame_dtype),
            np.empty(num, np.float32),
            np.empty(num, np.bool_),
            np.empty(num, np.bool_),
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """New episodes in all environments, or where `options["reset_mask"]` says."""
        self._refuse_closed()
        if seed is not None:
            check_whole("seed", seed, 0)
        mask = _checked_mask(options or {}, self.num_envs)
        if mask is not None and not self._is_reset:
            raise ResetNeeded("Call reset() for all environments before a reset with a mask.")
        for group, stack in enumerate(self._stacks):
            own = None if mask is None else mask[self.engine.settings.rows(group)]
            if own is None or own.any():
                self.engine.reset(group, stack.arrays, own, seed)
        self._totals.restart(self._all, mask)
        self._is_reset = True
        return self._observations(), self._dense_info(self._all)

    def step(self, actions: Array, out: StepBuffers | None = None) -> Results:
        """One agent step of every environment; fills `out` if given."""
        self.send(actions)
        for group in range(len(self._stacks)):
            self._receive(group)
        return self._results(self._all, out)

    def send(self, actions: Array, env_ids: Array | None = None) -> None:
        """Sends actions to whole groups of `batch_size` environments; returns at once."""
        self._refuse_closed()
        if not self._is_reset:
            raise ResetNeeded("Call reset() before the first step.")
        chosen, groups = _checked_groups(env_ids, self.num_envs, self.batch_size)
        checked = _checked_actions(actions, len(chosen), self.engine.spaces.num_actions)
        parts = checked[np.argsort(chosen)].reshape(len(groups), self.batch_size)
        for group, part in zip(groups, parts, strict=True):
            self.engine.send(group, part)

    def recv(self, out: StepBuffers | None = None) -> Results:
        """The results of the first group that is ready, whose numbers are `info["env_id"]`."""
        self._refuse_closed()
        group = 0
        if len(self._stacks) > 1:
            ready = self.engine.poll(self.engine.settings.wait_seconds)
            if not ready:
                raise EngineError("No group has results; send actions before recv.")
            group = ready[0]
        self._receive(group)
        return self._results(self.engine.settings.rows(group), out)

    def render(self) -> tuple[Array, ...]:
        """The screen of every console in colour, uint8 [H, 160, 3] each; H is 210 for most."""
        self._refuse_closed()
        if self.render_mode is None:
            raise ValueError("Nothing is rendered; make it with render_mode='rgb_array'.")
        engine: Any = self.engine  # one with `screen`, as was checked
        return tuple(engine.screen(env) for env in range(self.num_envs))

    def snapshot(self) -> list[bytes]:
        """The whole state of every environment, its frames and totals included."""
        self._refuse_closed()
        return [self._packed(env, inner) for env, inner in enumerate(self.engine.snapshot())]

    def restore(self, snapshots: Sequence[bytes]) -> Array:
        """Continues every environment from its snapshot; gives the observations there.

        If one is refused, by ValueError, all environments stay as they are.
        """
        self._refuse_closed()
        parts = [_unpacked(snapshot, self.engine.spaces) for snapshot in snapshots]
        self.engine.restore([inner for _, _, inner in parts])
        for env, (header, window, _) in enumerate(parts):
            group, row = divmod(env, self.batch_size)
            self._stacks[group].load_window(row, header["depth"], window)
            self._totals.score[env] = header["score"]
            self._totals.length[env] = header["length"]
            self._totals.waits[env] = header["waits"]
            self._steps.lives[env] = header["lives"]
        self._is_reset = True
        return self._observations()

    def close_extras(self, **kwargs: Any) -> None:
        self.engine.close()

    def _receive(self, group: int) -> None:
        stack = self._stacks[group]
        stack.advance()
        self.engine.recv(group, stack.arrays)

    def _results(self, rows: slice, out: StepBuffers | None) -> Results:
        steps = self._steps
        filled = self.buffers(rows.stop - rows.start) if out is None else out
        np.copyto(filled.rewards, steps.reward[rows])
        np.copyto(filled.terminations, steps.terminated[rows])
        if self.engine.spaces.life_loss_ends_return:
            np.logical_or(filled.terminations, steps.life_lost[rows], out=filled.terminations)
        np.copyto(filled.truncations, steps.truncated[rows])
        info = self._dense_info(rows)
        self._add_ends(info, rows, filled)
        for stack, own in self._stacks_of(rows):
            stack.write(filled.observations[own])
        return (*filled, info)

    def _observations(self) -> Array:
        observations = self.buffers().observations
        for stack, own in self._stacks_of(self._all):
            stack.write(observations[own])
        return observations

    def _stacks_of(self, rows: slice) -> list[tuple[FrameStack, slice]]:
        """The stacks of these rows, each with its part of an array that holds them."""
        size = self.batch_size
        stacks = self._stacks[rows.start // size : rows.stop // size]
        return [(stack, slice(n * size, (n + 1) * size)) for n, stack in enumerate(stacks)]

    def _dense_info(self, rows: slice) -> dict[str, Any]:
        """What every environment reports at every step, each key with its mask."""
        steps = self._steps
        groups = range(rows.start // self.batch_size, rows.stop // self.batch_size)
        counters = [self.engine.counters(group) for group in groups]
        info: dict[str, Any] = {
            "env_id": np.arange(rows.start, rows.stop),
            "lives": steps.lives[rows].copy(),
            "life_lost": steps.life_lost[rows].copy(),
            "raw_reward": steps.raw_reward[rows].copy(),
            **{name: np.concatenate([c[name] for c in counters]) for name in counters[0]},
        }
        info.update({f"_{name}": self._everywhere[rows] for name in list(info)})
        return info

    def _add_ends(self, info: dict[str, Any], rows: slice, filled: StepBuffers) -> None:
        steps, autoreset = self._steps, self.engine.settings.autoreset
        ended = steps.terminated[rows] | steps.truncated[rows]
        waits = autoreset == "next-step"
        episode = self._totals.add_step(rows, steps.raw_reward[rows], ended, waits)
        key = "episode" if episode is None else episode_key(self)
        ends = {} if episode is None else {key: episode, f"_{key}": ended}
        info.update(ends)
        over = filled.terminations | filled.truncations
        if autoreset == "same-step" and over.any():
            info["final_obs"], info["_final_obs"] = self._final(rows, ended), over
            info["final_info"], info["_final_info"] = ends, over

    def _final(self, rows: slice, ended: Array) -> Array:
        """True last observations where an episode ended; after a lost life, the current ones."""
        final = self.buffers(len(ended)).observations
        for stack, own in self._stacks_of(rows):
            stack.write_final(final[own], ended[own])
        return final

    def _packed(self, env: int, inner: bytes) -> bytes:
        group, row = divmod(env, self.batch_size)
        window = self._stacks[group].window_of(row)
        header = {
            "depth": int(self._steps.depth[env]),
            "score": float(self._totals.score[env]),
            "length": int(self._totals.length[env]),
            "waits": bool(self._totals.waits[env]),
            "lives": int(self._steps.lives[env]),
            "window_bytes": len(window),
        }
        return pack(_MAGIC, header, window + inner)

    def _refuse_closed(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError("The environment is closed; make a new one.")


def _observation_space(spaces: Spaces) -> Box:
    if spaces.frame_dtype == "uint8":
        return Box(0, 255, spaces.observation_shape, np.uint8)
    return Box(-np.inf, np.inf, spaces.observation_shape, np.float32)


def _part(steps: StepArrays, rows: slice) -> StepArrays:
    """Views of some environments' rows."""
    return StepArrays(**{field.name: getattr(steps, field.name)[rows] for field in fields(steps)})


def _unpacked(snapshot: bytes, spaces: Spaces) -> tuple[dict[str, Any], bytes, bytes]:
    """Header, frames of the window, and the engine's own snapshot."""
    size = int(np.prod(spaces.observation_shape)) * np.dtype(spaces.frame_dtype).itemsize
    bounds = {
        "depth": Bound(int, 1, spaces.stack),
        "score": SCORE,
        "length": COUNT,
        "waits": FLAG,
        "lives": LIVES,
        "window_bytes": Bound(int, size, size),
    }
    owner = "a scanline vector environment, version 2"
    header, body = unpack(_MAGIC, snapshot, bounds, owner)
    if len(body) < size:
        raise ValueError("This snapshot cannot be restored because its window_bytes are cut off.")
    return header, body[:size], body[size:]


def _checked_actions(given: Any, num: int, num_actions: int) -> Array:
    """One action per environment, as int64."""
    found = np.asarray(given)
    if found.shape != (num,):
        raise ValueError(f"actions have shape {found.shape}; give one per environment, {(num,)}.")
    if not np.issubdtype(found.dtype, np.integer):
        raise TypeError(f"actions are {found.dtype}; give integers, such as int64.")
    if found.min() < 0 or found.max() >= num_actions:
        raise ValueError(
            f"actions are {found.min()} to {found.max()}; they must lie in 0..{num_actions - 1}."
        )
    return found.astype(np.int64, copy=False)


def _checked_groups(env_ids: Any, num_envs: int, batch_size: int) -> tuple[Array, list[int]]:
    """The environments in the order given, and the whole groups that they make."""
    chosen = np.arange(num_envs) if env_ids is None else np.asarray(env_ids)
    found = np.unique(chosen // batch_size)
    whole = (found[:, None] * batch_size + np.arange(batch_size)).ravel()
    fits = whole.size > 0 and whole[0] >= 0 and whole[-1] < num_envs
    if not fits or not np.array_equal(np.sort(chosen), whole):
        raise ValueError(
            f"env_ids {chosen.tolist()} are not whole groups of {batch_size} of the {num_envs} "
            "environments; send what recv gave, or all."
        )
    return chosen, found.tolist()


def _checked_mask(options: Mapping[str, Any], num_envs: int) -> Array | None:
    """The reset mask, which may name no environment, or None for all of them."""
    if unknown := sorted(options.keys() - {"reset_mask"}):
        raise ValueError(
            f"reset has no option {', '.join(map(repr, unknown))}; it knows 'reset_mask' only."
        )
    if "reset_mask" not in options:
        return None
    given = options["reset_mask"]
    if not isinstance(given, np.ndarray) or given.dtype != np.bool_:
        raise TypeError("options['reset_mask'] must be a boolean NumPy array.")
    if given.shape != (num_envs,):
        raise ValueError(
            f"options['reset_mask'] has shape {given.shape}; it must have one entry per "
            f"environment, {(num_envs,)}."
        )
    return given


def _checked_render_mode(render_mode: str | None, engine: Engine) -> str | None:
    if render_mode not in (None, "rgb_array"):
        raise ValueError(
            f"render_mode={render_mode!r} is none of a vector environment; use 'rgb_array', with "
            "gymnasium.wrappers.vector.HumanRendering around it for a window."
        )
    if render_mode is not None and not hasattr(engine, "screen"):
        raise ValueError(f"Engine {engine.name!r} shows no screens; render with engine='native'.")
    return render_mode
