"""A wrapped engine: every call goes to the engine inside; wrappers change the calls they are about.

Takes any engine; gives one with its name, settings and spaces. Knows nothing of what is stepped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..records import Array, Spaces, StepArrays
from .interface import Engine, EngineSettings


class WrappedEngine:
    """As many threads as the engine inside allows."""

    def __init__(self, inner: Engine) -> None:
        self._inner = inner
        self.name, self.can_snapshot = inner.name, inner.can_snapshot
        self.settings: EngineSettings = inner.settings
        self.spaces: Spaces = inner.spaces

    def reset(
        self, group: int, out: StepArrays, mask: Array | None = None, seed: int | None = None
    ) -> None:
        self._inner.reset(group, out, mask, seed)

    def send(self, group: int, actions: Array, out: StepArrays | None = None) -> None:
        self._inner.send(group, actions, out)

    def recv(self, group: int, out: StepArrays) -> None:
        self._inner.recv(group, out)

    def poll(self, timeout_seconds: float) -> list[int]:
        return self._inner.poll(timeout_seconds)

    def counters(self, group: int) -> Mapping[str, Array]:
        return self._inner.counters(group)

    def snapshot(self) -> list[bytes]:
        return self._inner.snapshot()

    def restore(self, snapshots: Sequence[bytes]) -> None:
        self._inner.restore(snapshots)

    def close(self) -> None:
        self._inner.close()
