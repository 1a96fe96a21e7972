"""Random numbers by counter: Philox 4x32, keyed by seed and purpose.

Takes a seed, a purpose and counters (an environment and its step, or an update); gives numbers
that depend on nothing else. Knows no engine, sampler or algorithm.

A generator with a hidden position makes results depend on who asked first. A counter does not:
the number for environment 7 at its step 1,000 is the same with any number of threads, groups or
learners, and a resumed run needs to remember no generator at all.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
import torch

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


def key_of(seed: int, purpose: str) -> tuple[int, int]:
    """The two key words of a seed and a purpose."""
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=8).digest()
    return int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:], "little")


def uniforms(
    seed: int, purpose: str, rows: npt.ArrayLike, columns: npt.ArrayLike
) -> npt.NDArray[np.float32]:
    """Numbers in [0, 1), [..., 4], for counters (row, column) that broadcast together."""
    row, column = np.broadcast_arrays(np.asarray(rows, np.uint64), np.asarray(columns, np.uint64))
    counters = np.stack(
        [row & _MASK, row >> _SHIFT, column & _MASK, column >> _SHIFT], axis=-1
    ).astype(np.uint32)
    words = philox(key_of(seed, purpose), counters)
    return (words >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def seeds(seed: int, purpose: str, rows: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """One seed in 0..2^31 - 1 per row, for generators that are not ours."""
    row = np.asarray(rows, np.uint64)
    zero = np.zeros_like(row)
    counters = np.stack([row & _MASK, row >> _SHIFT, zero, zero], axis=-1).astype(np.uint32)
    return (philox(key_of(seed, purpose), counters)[..., 0] >> np.uint32(1)).astype(np.int64)


def generator(seed: int, purpose: str, *counters: int) -> torch.Generator:
    """A fresh torch generator for one purpose and place, e.g. one update."""
    text = "/".join(map(str, (seed, purpose, *counters)))
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)


class EnvStream:
    """Two uniforms per environment and step, drawn in blocks so that a step costs one index.

    Knows its seed and purpose only: the position is an argument, so it holds no state.
    """

    BLOCK = 128

    def __init__(self, seed: int, purpose: str, env_ids: npt.NDArray[np.int64]) -> None:
        self._seed, self._purpose, self._env_ids = seed, purpose, env_ids
        self._block, self._numbers = -1, tuple[torch.Tensor, ...]()

    def at(self, step: int) -> torch.Tensor:
        """[b, 2] numbers for every environment of this stream at one step of its own."""
        block, place = divmod(step, self.BLOCK)
        if block != self._block:
            steps = np.arange(block * self.BLOCK, (block + 1) * self.BLOCK)[:, None]
            drawn = uniforms(self._seed, self._purpose, self._env_ids[None, :], steps)
            self._block, self._numbers = block, torch.from_numpy(drawn[..., :2].copy()).unbind()
        return self._numbers[place]
