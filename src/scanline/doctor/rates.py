"""Rates: how long the parts of a run take on this machine, by size.

Takes measured points; gives seconds for any size between and beyond them, and plain records for a
file. Knows neither how they were measured nor what is made of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

Points = tuple[tuple[float, float], ...]
"""(size, seconds), by size."""


@dataclass(frozen=True)
class Curve:
    """Seconds by size: straight between two points, and on beyond the last two."""

    points: Points

    def at(self, size: float) -> float:
        """Seconds for a size; below the smallest point in proportion to nothing: as long as it."""
        if len(self.points) == 1 or size <= self.points[0][0]:
            return self.points[0][1]
        pairs = zip(self.points, self.points[1:], strict=False)
        (low, shorter), (high, longer) = next(
            (pair for pair in pairs if size <= pair[1][0]), self.points[-2:]
        )
        return shorter + (longer - shorter) * (size - low) / (high - low)

    def joined(self, other: Curve) -> Curve:
        """The points of both; of two for one size the shorter: the machine's noise only adds."""
        longest_first = sorted((*self.points, *other.points), reverse=True)
        return Curve(tuple(sorted(dict(longest_first).items())))

    def covers(self, size: float) -> bool:
        """Whether the size lies between points."""
        return self.points[0][0] <= size <= self.points[-1][0]


@dataclass(frozen=True, kw_only=True)
class Rates:
    """What one learner's parts take, each alone."""

    environment: Curve
    """One step of so many environments, by all engine threads."""
    acting: Curve
    """One decision for so many environments."""
    learning: Curve
    """One update from so many steps, with its part of what is computed once per rollout."""
    other: Curve
    """What a rollout of so many steps takes besides: counting, logging."""

    def joined(self, other: Rates) -> Rates:
        return replace(
            self, **{name: getattr(self, name).joined(curve) for name, curve in vars(other).items()}
        )

    def record(self) -> dict[str, Any]:
        return {name: curve["points"] for name, curve in asdict(self).items()}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Rates:
        """What `record` gave; `ValueError`, `TypeError` or `KeyError` where it is no such thing."""
        return cls(
            **{
                name: Curve(tuple((float(size), float(took)) for size, took in record[name]))
                for name in cls.__dataclass_fields__
            }
        )
