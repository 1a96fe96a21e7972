"""The public vector environment: an engine as a Gymnasium `VectorEnv`.

Takes actions of all environments, or of whole groups by `send` and `recv`; gives stacked
observations [N, S, H, W], rewards, ends and infos in Gymnasium's form.
Knows any engine by its interface, and no sampler: training does not go through it.

Arrays that it gives are fresh and stay valid; with `out` it writes into the caller's own.
A lost life counts as `terminated` where the protocol says that it ends the return.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ..engines import heads
from ..engines.interface import Autoreset, Engine, EngineError
from ..records import Array, Spaces, StepArrays
from . import checks
from .history import History
from .totals import Totals

MODES: Mapping[Autoreset, AutoresetMode] = {
    "next-step": AutoresetMode.NEXT_STEP,
    "same-step": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}
_MAGIC = b"scanline-vector-2\n"


class StepBuffers(NamedTuple):
    """What `step` fills, for a caller who keeps the arrays."""

    observations: Array  # [N, S, ...frame]
    rewards: Array  # [N] float32
    terminations: Array  # [N] bool
    truncations: Array  # [N] bool


Results = tuple[Array, Array, Array, Array, dict[str, Any]]


class EngineVectorEnv(VectorEnv[Array, Array, Array]):
    """All environments of an engine; `scanline.make` builds it."""

    def __init__(self, engine: Engine) -> None:
        settings, spaces = engine.settings, engine.spaces
        self.engine, self.protocol = engine, settings.protocol
        self.num_envs, self.batch_size = settings.num_envs, settings.group_size
        self.metadata = {"autoreset_mode": MODES[settings.autoreset]}
        self.single_observation_space = _observation_space(spaces)
        self.single_action_space = Discrete(spaces.num_actions)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._rows = [
            slice(g * self.batch_size, (g + 1) * self.batch_size)
            for g in range(settings.num_groups)
        ]
        self._histories = [History(spaces, self.batch_size) for _ in self._rows]
        self._totals = Totals(self.num_envs)
        self._steps = _allocate(spaces, self.num_envs)
        self._everywhere = np.ones(self.num_envs, np.bool_)
        self._everywhere.setflags(write=False)  # every info shares it
        self._started = False

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
        mask = checks.mask((options or {}).get("reset_mask"), self.num_envs)
        for group, rows in enumerate(self._rows):
            own = None if mask is None else mask[rows]
            if own is None or own.any():
                self.engine.reset(group, self._step_arrays(group), own, seed)
        self._totals.restart(slice(0, self.num_envs), mask)
        self._started = True
        observations = self.buffers().observations
        self._write_observations(observations)
        return observations, self._dense_info(slice(0, self.num_envs))

    def step(self, actions: Array, out: StepBuffers | None = None) -> Results:
        """One agent step of every environment; fills `out` if given."""
        self.send(actions)
        for group in range(len(self._rows)):
            self._receive(group)
        return self._results(slice(0, self.num_envs), out)

    def send(self, actions: Array, env_ids: Array | None = None) -> None:
        """Hands actions to whole groups of `batch_size` environments; returns at once."""
        self._refuse_closed()
        if not self._started:
            raise ResetNeeded("Call reset() before the first step.")
        chosen, groups = checks.groups(env_ids, self.num_envs, self.batch_size)
        checked = checks.actions(actions, len(chosen), self.engine.spaces.num_actions)
        checked = checked[np.argsort(chosen)]
        for place, group in enumerate(groups):
            start = place * self.batch_size
            self.engine.send(group, checked[start : start + self.batch_size])

    def recv(self, out: StepBuffers | None = None) -> Results:
        """The results of the first group that is ready; `info["env_id"]` says whose."""
        self._refuse_closed()
        group = 0
        if len(self._rows) > 1:
            ready = self.engine.poll(self.engine.settings.wait_seconds)
            if not ready:
                raise EngineError("No group has results; send actions before recv.")
            group = ready[0]
        self._receive(group)
        return self._results(self._rows[group], out)

    def snapshot(self) -> list[bytes]:
        """The whole state of every environment, its frames and totals included."""
        self._refuse_closed()
        inner = self.engine.snapshot()
        return [self._packed(env, inner[env]) for env in range(self.num_envs)]

    def restore(self, snapshots: Sequence[bytes]) -> Array:
        """Continues every environment from its snapshot; gives the observations there.

        If one is refused, by ValueError, all environments stay as they are.
        """
        self._refuse_closed()
        parts = [_unpacked(snapshot, self.engine.spaces) for snapshot in snapshots]
        self.engine.restore([inner for _, _, inner in parts])
        for env, (head, window, _) in enumerate(parts):
            group, row = divmod(env, self.batch_size)
            self._histories[group].load_window(row, head["depth"], window)
            self._totals.score[env] = head["score"]
            self._totals.length[env] = head["length"]
            self._totals.waits[env] = head["waits"]
            self._steps.lives[env] = head["lives"]
        self._started = True
        observations = self.buffers().observations
        self._write_observations(observations)
        return observations

    def close_extras(self, **kwargs: Any) -> None:
        self.engine.close()

    def _receive(self, group: int) -> None:
        self._histories[group].advance()
        self.engine.recv(group, self._step_arrays(group))

    def _results(self, rows: slice, out: StepBuffers | None) -> Results:
        steps, num = self._steps, rows.stop - rows.start
        filled = self.buffers(num) if out is None else out
        ended = steps.terminated[rows] | steps.truncated[rows]
        over = steps.terminated[rows].copy()
        if self.engine.spaces.life_loss_ends_return:
            over |= steps.life_lost[rows]
        self._write_observations(filled.observations, rows)
        np.copyto(filled.rewards, steps.reward[rows])
        np.copyto(filled.terminations, over)
        np.copyto(filled.truncations, steps.truncated[rows])
        info = self._dense_info(rows)
        self._add_ends(info, rows, ended, filled)
        return (*filled, info)

    def _write_observations(self, out: Array, rows: slice | None = None) -> None:
        first = 0 if rows is None else rows.start
        for group, own in enumerate(self._rows):
            if rows is None or rows.start <= own.start < rows.stop:
                self._histories[group].write(out[own.start - first : own.stop - first])

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

    def _add_ends(
        self, info: dict[str, Any], rows: slice, ended: Array, filled: StepBuffers
    ) -> None:
        waits = self.engine.settings.autoreset == "next-step"
        episode = self._totals.note(rows, self._steps.raw_reward[rows], ended, waits)
        if episode is not None:
            info["episode"], info["_episode"] = episode, ended
        over = filled.terminations | filled.truncations
        if self.engine.settings.autoreset == "same-step" and over.any():
            info["final_obs"], info["_final_obs"] = self._final_observations(rows, filled), over
            final = {} if episode is None else {"episode": episode, "_episode": ended}
            info["final_info"], info["_final_info"] = final, over

    def _final_observations(self, rows: slice, filled: StepBuffers) -> Array:
        """True last observations where an episode ended; after a lost life, the current ones."""
        final: Array = filled.observations.copy()
        ended = self._steps.terminated | self._steps.truncated
        for group, own in enumerate(self._rows):
            if rows.start <= own.start < rows.stop and ended[own].any():
                place = final[own.start - rows.start : own.stop - rows.start]
                frames = self._steps.final_frame[own]
                self._histories[group].write_final(place, np.flatnonzero(ended[own]), frames)
        return final

    def _step_arrays(self, group: int) -> StepArrays:
        rows, steps, history = self._rows[group], self._steps, self._histories[group]
        return StepArrays(
            frame=history.newest,
            depth=history.depth,
            reward=steps.reward[rows],
            raw_reward=steps.raw_reward[rows],
            terminated=steps.terminated[rows],
            truncated=steps.truncated[rows],
            life_lost=steps.life_lost[rows],
            lives=steps.lives[rows],
            final_frame=steps.final_frame[rows],
            start_frames=history.start_frames,
        )

    def _packed(self, env: int, inner: bytes) -> bytes:
        group, row = divmod(env, self.batch_size)
        window = self._histories[group].window_of(row)
        head = {
            "depth": int(self._histories[group].depth[row]),
            "score": float(self._totals.score[env]),
            "length": int(self._totals.length[env]),
            "waits": bool(self._totals.waits[env]),
            "lives": int(self._steps.lives[env]),
            "window_bytes": len(window),
        }
        return _MAGIC + json.dumps(head).encode() + b"\n" + window + inner

    def _refuse_closed(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError("The environment is closed; make a new one.")


def _observation_space(spaces: Spaces) -> gymnasium.spaces.Box:
    if spaces.frame_dtype == "uint8":
        return Box(0, 255, spaces.observation_shape, np.uint8)
    return Box(-np.inf, np.inf, spaces.observation_shape, np.float32)


def _allocate(spaces: Spaces, num_envs: int) -> StepArrays:
    """Arrays of one step of all environments, but for those that the histories keep."""

    def column(dtype: type) -> Array:
        return np.zeros(num_envs, dtype)

    return StepArrays(
        frame=np.empty(0),
        depth=np.empty(0),
        reward=column(np.float32),
        raw_reward=column(np.float32),
        terminated=column(np.bool_),
        truncated=column(np.bool_),
        life_lost=column(np.bool_),
        lives=column(np.int32),
        final_frame=np.zeros((num_envs, *spaces.frame_shape), spaces.frame_dtype),
        start_frames=np.empty(0),
    )


def _unpacked(snapshot: bytes, spaces: Spaces) -> tuple[dict[str, Any], bytes, bytes]:
    if not snapshot.startswith(_MAGIC):
        raise ValueError("This is no snapshot of a scanline vector environment, version 2.")
    head_text, _, body = snapshot[len(_MAGIC) :].partition(b"\n")
    size = int(np.prod(spaces.observation_shape)) * np.dtype(spaces.frame_dtype).itemsize
    bounds = {
        "depth": heads.Bound(int, 1, spaces.stack),
        "score": heads.SCORE,
        "length": heads.COUNT,
        "waits": heads.FLAG,
        "lives": heads.LIVES,
        "window_bytes": heads.Bound(int, size, min(size, len(body))),
    }
    return heads.read(head_text, bounds), body[:size], body[size:]
