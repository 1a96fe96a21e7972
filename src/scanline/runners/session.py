"""A session: what surrounds a loop from its start to its stop.

Takes the parts that a checkpoint holds and the settings of a run; tells the loop whether to go on,
and is told what was collected and learned. It logs, saves, shows, watches and stops.
Knows no algorithm and no order of acting and learning: that is the loop's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from torch import Tensor

from ..records import EpisodeEnd, Saved, Slot, State
from .checkpoint import Checkpoints, CheckpointSettings
from .clock import EVALUATION, OTHER, Spans
from .folder import RunFolder
from .live import Live, LiveSettings
from .progress import Progress, ProgressSettings
from .stopping import Limits, SaveSchedule, SaveSettings, Signals, Stop
from .watchdog import Watchdog, WatchdogSettings


class NotFiniteError(RuntimeError):
    """A loss or another metric became infinite or no number."""


@dataclass(frozen=True, kw_only=True)
class SessionSettings:
    """How a run is logged, saved, shown and watched."""

    progress: ProgressSettings = field(default_factory=ProgressSettings)
    saving: SaveSettings = field(default_factory=SaveSettings)
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    watchdog: WatchdogSettings = field(default_factory=WatchdogSettings)
    live: LiveSettings = field(default_factory=LiveSettings)


Evaluate = Callable[[], Mapping[str, float]]
"""Plays some games with the present weights; gives metrics."""


class Session:
    """One run, from `begin` to the end of the `with` block."""

    def __init__(
        self, folder: RunFolder, progress: Progress, spans: Spans, limits: Limits,
        settings: SessionSettings,
    ) -> None:
        self.folder, self.progress, self.spans = folder, progress, spans
        self.stop: Stop | None = None
        self._limits, self._settings = limits, settings
        self._checkpoints = Checkpoints(folder.checkpoints, settings.checkpoints)
        self._saves = SaveSchedule(settings.saving, progress.agent_steps)
        self._signals = Signals()
        self._live = Live(settings.live, progress, spans, limits)
        self._saved: Mapping[str, Saved] = {}
