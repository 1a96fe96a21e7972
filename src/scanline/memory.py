"""Memory: how much is left, and one sum of what will be taken, compared before it is.

Takes `Share`s of places (the host, a device); gives the sentence that tells of their sum, or a
refusal that names the largest and its remedy. Knows nothing of what the bytes are for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from .errors import RefusedError


def available_bytes() -> float:
    """Memory that this process may still take: the machine's, or its control group's if less."""
    return min(float(psutil.virtual_memory().available), _group_bytes())


def _group_bytes() -> float:
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        used = int((folder / "memory.current").read_text())
        return math.inf if limit == "max" else int(limit) - used
    except (OSError, ValueError):  # no control groups, or the first version of them
        return math.inf


HOST = "this machine"
"""The place of what no other device holds."""


class Share(NamedTuple):
    """A part of the memory that is about to be taken."""

    what: str
    """A noun that may begin a sentence."""
    num_bytes: float
    remedy: Callable[[float], str]
    """What a user can do so that it fits into so many bytes."""
    place: str = HOST

    def times(self, count: int, of_each: str) -> Share:
        """So many of them."""
        if count == 1:
            return self
        return Share(
            f"{self.what} in each of {count} {of_each}",
            count * self.num_bytes,
            lambda left: self.remedy(left / count),
            self.place,
        )


def told(shares: Sequence[Share], free_bytes: Mapping[str, float]) -> str:
    """The sum of each place beside what is free there, largest share first.

    Refuses, as `RefusedError`, a sum that is more than is free.
    """
    sentences = []
    for place in dict.fromkeys(share.place for share in shares):
        here = sorted((s for s in shares if s.place == place), key=lambda s: -s.num_bytes)
        total, free = sum(share.num_bytes for share in here), free_bytes[place]
        if total > free:
            largest = here[0]
            raise RefusedError(
                f"This takes {in_words(total)}, but {place} has {in_words(free)} left; the largest "
                f"share, {in_words(largest.num_bytes)}, is {_continued(largest.what)}: "
                f"{largest.remedy(free - total + largest.num_bytes)}."
            )
        named = ", ".join(f"{in_words(s.num_bytes)} {_continued(s.what)}" for s in here)
        of = "" if math.isinf(free) else f" of {in_words(free)} free"
        sentences += [f"Memory: {in_words(total)}{of} on {place} ({named})."]
    return " ".join(sentences)


def _continued(noun: str) -> str:
    """A noun within a sentence."""
    return noun[:1].lower() + noun[1:]


def in_words(num_bytes: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if num_bytes >= size:
            return f"{num_bytes / size:.2f} {unit}"
    return f"{int(num_bytes)} bytes"
