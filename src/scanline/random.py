"""Random numbers by counter (Philox 4x32, keyed by seed and purpose), and actions drawn with them.

Takes a seed, a purpose and counters (an environment and its step, or an update), or scores of
actions and uniform numbers; gives numbers, or actions, that depend on nothing else.
Knows no engine, sampler, algorithm or network.

A generator with hidden state makes results depend on the order of calls. A counter does not: the
number for environment 7 at its step 1,000 is the same with any number of threads, groups or
learners, and a checkpoint needs no generator state.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ._native import draw_categorical
from .devices import HOST, Device
from .native_arrays import is_readable, unchecked_spans

Words = npt.NDArray[np.uint32]

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_ROUNDS = 10


def philox(key: tuple[int, int], counters: Words) -> Words:
    """Philox 4x32-10 of counters [..., 4]; gives words [..., 4]."""
    c0, c1, c2, c3 = (counters[..., i].astype(np.uint64) for i in range(4))
    for step in range(_ROUNDS):
        k0, k1 = (np.uint64((key[i] + step * _WEYL[i]) & 0xFFFFFFFF) for i in range(2))
        first, second = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (
            (second >> _SHIFT) ^ c1 ^ k0,
            second & _MASK,
            (first >> _SHIFT) ^ c3 ^ k1,
            first & _MASK,
        )
    return np.stack([c0, c1, c2, c3], axis=-1).astype(np.uint32)


def philox_there(key: tuple[int, int], counters: Sequence[Tensor]) -> list[Tensor]:
    """The same words by tensor operations: four counters and four words, int64 of 32 bits each.

    Products of two words wrap around in 64 bits, and their bits are those of unsigned numbers.
    """
    c0, c1, c2, c3 = counters
    mask, multipliers = int(_MASK), [int(each) for each in _MULTIPLIERS]
    for step in range(_ROUNDS):
        k0, k1 = ((key[i] + step * _WEYL[i]) & mask for i in range(2))
        first, second = c0 * multipliers[0], c2 * multipliers[1]
        c0, c1, c2, c3 = (
            ((second >> 32) & mask) ^ c1 ^ k0,
            second & mask,
            ((first >> 32) & mask) ^ c3 ^ k1,
            first & mask,
        )
    return [c0, c1, c2, c3]


def key_of(seed: int, purpose: str) -> tuple[int, int]:
    """The two key words of a seed and a purpose."""
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=8).digest()
    return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")


def uniforms(
    seed: int, purpose: str, rows: npt.ArrayLike, columns: npt.ArrayLike
) -> npt.NDArray[np.float32]:
    """Numbers in [0, 1), [..., 4], for counters (row, column) that broadcast together."""
    words = _words(seed, purpose, rows, columns)
    return (words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def seeds(seed: int, purpose: str, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """One seed in 0..2^31 - 1 per row, for generators that are not ours."""
    return (_words(seed, purpose, rows, 0)[..., 0] >> np.uint32(1)).astype(np.int64)


def _words(seed: int, purpose: str, rows: npt.ArrayLike, columns: npt.ArrayLike) -> Words:
    """Words [..., 4] for counters (row, column), each of 64 bits."""
    row, column = np.broadcast_arrays(np.asarray(rows, np.uint64), np.asarray(columns, np.uint64))
    parts = [row & _MASK, row >> _SHIFT, column & _MASK, column >> _SHIFT]
    return philox(key_of(seed, purpose), np.stack(parts, axis=-1).astype(np.uint32))


def generator(seed: int, purpose: str, *counters: int) -> torch.Generator:
    """A fresh torch generator for one purpose and counters, e.g. one update."""
    text = "/".join(map(str, (seed, purpose, *counters)))
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)


DRAWS_PER_STEP = 2
"""Uniforms of an environment's step, unless an algorithm declares more."""


def draws(
    seed: int, purpose: str, rows: npt.ArrayLike, columns: npt.ArrayLike, num_draws: int
) -> Tensor:
    """Numbers in [0, 1), [..., num_draws], for counters (row, column) that broadcast together.

    The first four are `uniforms` of the purpose itself: more draws leave the first ones as they
    are.
    """
    drawn = [uniforms(seed, each, rows, columns) for each in purposes(purpose, num_draws)]
    return torch.from_numpy(np.concatenate(drawn, axis=-1)[..., :num_draws].copy())


def purposes(purpose: str, num_draws: int) -> list[str]:
    """The purpose itself, and one more for every further four numbers."""
    return [purpose, *(f"{purpose}/{number}" for number in range(1, -(-num_draws // 4)))]


def normals(uniforms: Tensor) -> Tensor:
    """Normal numbers with mean 0 and deviation 1 from uniform ones, one of each; all finite."""
    inside = uniforms.clamp(2.0**-25, 1.0 - 2.0**-24)
    return torch.erfinv(2.0 * inside - 1.0) * math.sqrt(2.0)


class EnvStream:
    """Uniforms per environment and step, drawn in blocks so that a step costs one index.

    Knows its seed and purpose only: the position is an argument, so it holds no state.
    """

    BLOCK = 128

    def __init__(
        self, seed: int, purpose: str, env_ids: npt.NDArray[np.int64], device: Device = HOST
    ) -> None:
        """Numbers are drawn on the device, and are there."""
        self._seed, self._purpose, self._env_ids = seed, purpose, env_ids
        self._device, self._ids_there = device, device.upload(env_ids)
        self._held, self._numbers = (-1, 0), tuple[Tensor, ...]()

    def at(self, step: int, num_draws: int = DRAWS_PER_STEP) -> Tensor:
        """[b, num_draws] numbers for every environment of this stream at one step of its own."""
        block, place = divmod(step, self.BLOCK)
        if (block, num_draws) != self._held:
            first = block * self.BLOCK
            drawn = self._drawn if self._device.is_host else self._drawn_there
            self._held, self._numbers = (block, num_draws), drawn(first, num_draws).unbind()
        return self._numbers[place]

    def _drawn(self, first: int, num_draws: int) -> Tensor:
        """[BLOCK, b, num_draws] from this step on."""
        steps = np.arange(first, first + self.BLOCK)[:, None]
        return draws(self._seed, self._purpose, self._env_ids[None, :], steps, num_draws)

    def _drawn_there(self, first: int, num_draws: int) -> Tensor:
        """The same numbers, by operations of the device."""
        mask, rows = int(_MASK), self._ids_there[None, :]
        steps = torch.arange(first, first + self.BLOCK, device=rows.device)[:, None]
        counters = rows & mask, rows >> 32, steps & mask, steps >> 32
        words = list[Tensor]()
        for purpose in purposes(self._purpose, num_draws):
            words += philox_there(key_of(self._seed, purpose), counters)
        return (torch.stack(words[:num_draws], dim=-1) >> 8).float() * 2.0**-24


class Choice(NamedTuple):
    """How actions are chosen from a network's outputs."""

    greedy: bool = False
    """The best action; else as in training: drawn from a policy, or explored by a schedule."""
    epsilon: float = 0.0
    """Chance of any action instead of the best one; only where the choice is greedy."""

    def __str__(self) -> str:
        if not self.greedy:
            return "sampled as in training"
        return f"greedy with epsilon {self.epsilon:g}" if self.epsilon else "greedy"


SAMPLED, GREEDY = Choice(), Choice(greedy=True)


def categorical(logits: Tensor, uniforms: Tensor) -> Tensor:
    """Actions [N] by inverting the cumulated softmax of logits [N, A] at uniforms [N, K].

    The first uniform of a row counts. On a CPU one native call replaces six operations.
    """
    if is_readable(logits) and is_readable(uniforms):
        actions = torch.empty(len(logits), dtype=torch.int64)
        draw_categorical(*unchecked_spans(logits, uniforms, actions))
        return actions
    cumulated = torch.softmax(logits, dim=-1).cumsum(dim=-1)
    drawn = (uniforms[:, :1] >= cumulated).sum(dim=-1)
    return drawn.clamp(max=logits.shape[-1] - 1)


def choose_actions(logits: Tensor, uniforms: Tensor, choice: Choice) -> Tensor:
    """Actions [N] of a policy: the best of logits [N, A], or drawn at uniforms [N, 2]."""
    if choice.greedy:
        return epsilon_greedy(logits, choice.epsilon, uniforms)
    return categorical(logits, uniforms)


def epsilon_greedy(q: Tensor, epsilon: float, uniforms: Tensor) -> Tensor:
    """Actions [N]: the best of q [N, A], or with chance epsilon any; uniforms [N, 2]."""
    num_actions = q.shape[-1]
    anything = (uniforms[:, 1] * num_actions).long().clamp(max=num_actions - 1)
    return torch.where(uniforms[:, 0] < epsilon, anything, q.argmax(dim=-1))
