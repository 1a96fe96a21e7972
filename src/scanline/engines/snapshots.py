"""Snapshots in Python: a magic line, a header of a few numbers as JSON, and a body of bytes.

Takes a header and a body and gives a snapshot; reads one back and checks every number of its header
against a bound. A snapshot may come from anywhere, so `ValueError` names the first number that is
missing, of another type or out of bounds. Knows no environment, and imports no torch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

INT32_MAX, INT64_MAX = 2**31 - 1, 2**63 - 1


@dataclass(frozen=True)
class Bound:
    """What one number of a header may be."""

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


def pack(magic: bytes, header: Mapping[str, Any], body: bytes) -> bytes:
    """One snapshot; the magic is empty or ends its line."""
    return magic + json.dumps(header).encode() + b"\n" + body


def unpack(
    magic: bytes, snapshot: bytes, bounds: Mapping[str, Bound], owner: str = ""
) -> tuple[dict[str, Any], bytes]:
    """The header, which has exactly the numbers with a bound, and the body.

    `owner` says in a refusal which snapshots begin with this magic.
    """
    if not snapshot.startswith(magic):
        raise ValueError(f"This is no snapshot of {owner}.")
    text, _, body = snapshot[len(magic) :].partition(b"\n")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            "This snapshot cannot be restored because its header is damaged."
        ) from error
    return checked(header, bounds), body


def checked(header: object, bounds: Mapping[str, Bound]) -> dict[str, Any]:
    """A header that has been read: exactly the numbers that have a bound."""
    if not isinstance(header, dict) or header.keys() != bounds.keys():
        raise ValueError(
            f"This snapshot cannot be restored because its header has not the fields "
            f"{', '.join(bounds)}."
        )
    for name, bound in bounds.items():
        if not bound.holds(header[name]):
            raise ValueError(
                f"This snapshot cannot be restored because {name}={header[name]!r} is out of "
                f"bounds: {bound.kind.__name__}, {bound.least:g} to {bound.most:g}."
            )
    return header
