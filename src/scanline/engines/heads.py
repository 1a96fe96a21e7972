"""Heads: the few numbers of a snapshot that are kept as JSON, read back within bounds.

Takes the text of a head and the bound of every number in it; gives the numbers, or a ValueError
that names the first one that is missing, of another kind or out of bounds. Knows no environment.
A snapshot may come from anywhere, so whatever reads one says here what each number may be.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1


@dataclass(frozen=True)
class Bound:
    """What one number of a head may be."""

    kind: type
    """int, float, bool or NoneType, exactly."""
    least: float
    most: float

    def holds(self, value: Any) -> bool:
        exact = type(value) is self.kind
        return exact and (value is None or self.least <= value <= self.most)


NOTHING = Bound(type(None), 0, 0)
FLAG = Bound(bool, 0, 1)
LIVES = Bound(int, -INT32_MAX - 1, INT32_MAX)
COUNT = Bound(int, 0, INT64_MAX // 2)
SCORE = Bound(float, -1e300, 1e300)


def read(text: bytes, bounds: Mapping[str, Bound]) -> dict[str, Any]:
    """Exactly the numbers that have a bound."""
    try:
        head = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError("This snapshot cannot be restored because its head is damaged.") from error
    return checked(head, bounds)


def checked(head: object, bounds: Mapping[str, Bound]) -> dict[str, Any]:
    """The same, of a head that has been read."""
    if not isinstance(head, dict) or head.keys() != bounds.keys():
        raise ValueError(
            f"This snapshot cannot be restored because its head has not the fields "
            f"{', '.join(bounds)}."
        )
    for name, bound in bounds.items():
        if not bound.holds(head[name]):
            raise ValueError(
                f"This snapshot cannot be restored because {name}={head[name]!r} is out of "
                f"bounds: {bound.kind.__name__}, {bound.least:g} to {bound.most:g}."
            )
    return head
