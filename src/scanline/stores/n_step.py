"""N-step accumulator: what happened from a step on, as one reward and one discount.

Takes rewards and ends [n, N] of the n steps from N drawn ones on; writes their discounted sum, the
factor on the value that follows, and how many steps that value lies ahead.
Knows no ring, frame or network.

It is computed when a batch is drawn and not when a step is written: the ring then holds only what
happened, rows never change once written (so a checkpoint may append them), and no put has to reach
back into an earlier one. At n = 3 it costs three small reads per item.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..records import Array

GOES_ON, TERMINAL, TRUNCATED = 0, 1, 2
"""How a step ended: not at all, without a future, or with a future that was not seen."""


@dataclass(frozen=True)
class Sums:
    """Where an accumulator writes: one entry per drawn step, made once."""

    reward: Array  # [N] float32
    discount: Array  # [N] float32, 0 where nothing follows
    span: Array  # [N] int64, steps until the observation that the discount belongs to
    end: Array  # [N] uint8, how the last step of the span ended

    @classmethod
    def allocate(cls, num: int) -> Sums:
        return cls(
            reward=np.zeros(num, np.float32),
            discount=np.zeros(num, np.float32),
            span=np.zeros(num, np.int64),
            end=np.zeros(num, np.uint8),
        )


class Accumulator(Protocol):
    """Makes one learning target's parts out of a few consecutive steps."""

    @property
    def n_step(self) -> int:
        """Consecutive steps that it reads."""

    def accumulate(self, reward: Array, end: Array, into: Sums) -> None:
        """Reads rewards and ends [n, N]; fills `into`."""


@dataclass(frozen=True, kw_only=True)
class NStep:
    """Discounted sum of up to n rewards, cut at every end."""

    n_step: int = 1
    """Agent steps from an observation to the one that it bootstraps from."""
    discount: float = 0.99
    """Factor per agent step on the future."""

    def __post_init__(self) -> None:
        if self.n_step < 1:
            raise ValueError(f"n_step={self.n_step} reads no reward; use 1 or more.")
        if not 0.0 <= self.discount <= 1.0:
            raise ValueError(f"discount={self.discount} must lie in 0..1.")

    def accumulate(self, reward: Array, end: Array, into: Sums) -> None:
        np.copyto(into.reward, reward[0])
        np.copyto(into.end, end[0])
        into.span.fill(1)
        for ahead in range(1, self.n_step):
            alive = into.end == GOES_ON
            # An ended path adds nothing: what follows in the ring belongs to another episode.
            later = reward[ahead] * np.float32(self.discount**ahead)
            np.add(into.reward, later, out=into.reward, where=alive)
            np.add(into.span, 1, out=into.span, where=alive)
            np.copyto(into.end, end[ahead], where=alive)
        np.power(self.discount, into.span, out=into.discount, casting="same_kind")
        into.discount[into.end == TERMINAL] = 0.0
