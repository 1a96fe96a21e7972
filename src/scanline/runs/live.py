"""The live view of a run in a terminal, plain lines elsewhere, and a last word.

Takes the run's progress and limits; writes to a rich console.
Knows no loop: the run calls `refresh_if_due` often, and it draws only when it is time.

It draws from the thread that trains, twice a second at most, because a drawing thread would take
the interpreter from the learner at any moment. Only what no loop surrounds (a warm start, a save,
evaluation games) is shown by a thread of its own.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from ..machine import cpu_seconds, total_memory_bytes, used_memory_bytes
from ..processes import granted_cores
from .limits import Limits, Stop
from .picture import About, Load, View, last_word, line, opening, picture
from .progress import Moment, Progress
from .signals import say_on_stderr

_FIRST_LOOK_SECONDS = 1.0
"""Longest time until a loop that has begun shows its first figures."""
_SHORT_SECONDS = 1.0
"""Work that takes no longer is not shown."""


@dataclass(frozen=True, kw_only=True)
class LiveSettings:
    """How a run shows itself."""

    live: bool = True
    """Whether the run shows itself at all."""
    refresh_seconds: float = 0.5
    """Seconds between two pictures in a terminal."""
    plain_seconds: float = 10.0
    """Seconds between two lines where there is no terminal."""
    rate_seconds: float = 10.0
    """Seconds over which rates are taken."""

    def __post_init__(self) -> None:
        for name in ("refresh_seconds", "plain_seconds", "rate_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)} must be positive.")


class _Sample(NamedTuple):
    clock_seconds: float
    cpu_seconds: float
    moment: Moment


class LiveView:
    """Shows a run inside a `with` block; `refresh_if_due` may be called often."""

    def __init__(
        self,
        settings: LiveSettings,
        progress: Progress,
        limits: Limits,
        *,
        about: About,
        console: Console | None = None,
        clock_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._progress, self._limits = settings, progress, limits
        self._about, self._clock_seconds = about, clock_seconds
        self._console = console or Console(file=sys.stdout)
        self._drawn = self._console.is_terminal and not self._console.is_dumb_terminal
        self._every = settings.refresh_seconds if self._drawn else settings.plain_seconds
        self._live: Live | None = None
        self._shown: RenderableType = ""
        self._restart()

    def __enter__(self) -> LiveView:
        if self._settings.live and self._drawn:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def begin(self) -> None:
        """A loop begins: rates count from now on, and there is something to see at once."""
        self._restart()
        if self._live is not None:
            self._show(self.view())
        elif self._settings.live and not self._drawn:
            self._print(f"{self._about.title}: training.")

    def _restart(self) -> None:
        self._samples: deque[_Sample] = deque([self._sample()])
        self._next = self._clock_seconds() + min(self._every, _FIRST_LOOK_SECONDS)

    def say(self, sentence: str) -> None:
        """A sentence besides the view, from any thread; also where the run shows nothing else."""
        if self._live is not None:
            self._print(sentence)
        else:
            say_on_stderr(sentence)

    @contextmanager
    def during(self, what: str) -> Iterator[None]:
        """Shows what is done inside, with its seconds, if it takes more than a moment."""
        if not self._settings.live:
            yield
            return
        over = threading.Event()
        thread = threading.Thread(
            target=self._show_duration, args=(what, over), name="live", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _show_duration(self, what: str, over: threading.Event) -> None:
        begun, wait_seconds = time.monotonic(), _SHORT_SECONDS
        while not over.wait(wait_seconds):
            sentence = f"{self._about.title}: {what} ({time.monotonic() - begun:.0f} s) ..."
            if self._live is not None:
                self._live.update(Group(self._shown, Text(sentence)), refresh=True)
            else:
                self._print(sentence)
            wait_seconds = self._every

    def refresh_if_due(self) -> None:
        """Shows the run if it is time to."""
        if self._clock_seconds() < self._next:
            return
        self._next = self._clock_seconds() + self._every
        if not self._settings.live:
            return
        self._show(self.view())

    def _show(self, view: View) -> None:
        if self._live is not None:
            self._shown = picture(view, self._console.width)
            self._live.update(self._shown, refresh=True)
        elif not self._drawn:
            self._print(line(view))

    def _print(self, words: RenderableType) -> None:
        self._console.print(words, soft_wrap=True, highlight=False)

    def finish(self, stop: Stop, folder: Path) -> None:
        """The last word: how it ended, where the run is, and what to do with it."""
        self.__exit__()
        if self._settings.live:
            if self._drawn:
                self._console.print(picture(self.view(), self._console.width))
            else:
                self._print(line(self.view()))
            agent_steps = self._progress.agent_steps
            seconds = self._progress.time_split.training_seconds()
            longer = self._limits.longer(stop.kind, agent_steps=agent_steps, seconds=seconds)
            self._print(last_word(stop, folder, longer))

    def view(self) -> View:
        """The run as it is now, with rates over the last seconds."""
        progress, now, samples = self._progress, self._sample(), self._samples
        samples.append(now)
        oldest_seconds = now.clock_seconds - self._settings.rate_seconds
        while len(samples) > 2 and samples[1].clock_seconds <= oldest_seconds:
            samples.popleft()
        rate, updates_per_second, split = now.moment.since(samples[0].moment)
        seconds = progress.time_split.training_seconds()
        score, losses = progress.scores.mean, progress.last_losses()
        return View(
            title=self._about.title,
            agent_steps=progress.agent_steps,
            raw_frames=progress.raw_frames,
            updates=progress.updates,
            episodes=progress.episodes,
            steps_per_second=rate,
            frames_per_second=rate * progress.frame_skip,
            updates_per_second=updates_per_second,
            score=score,
            best=progress.scores.best,
            window=progress.scores.window,
            training_seconds=seconds,
            remaining_seconds=self._limits.remaining_seconds(
                agent_steps=progress.agent_steps, seconds=seconds, steps_per_second=rate
            ),
            done=self._limits.done(agent_steps=progress.agent_steps, seconds=seconds),
            load=_load(samples[0], now, split),
            further={**losses, **progress.figures()},
            folder=self._about.folder,
            curve=[] if score is None else [*progress.curve, score],
            opening=opening(self._about, progress.agent_steps, progress.scores.waiting),
        )

    def _sample(self) -> _Sample:
        return _Sample(self._clock_seconds(), cpu_seconds(), self._progress.moment())


def _load(old: _Sample, now: _Sample, split: dict[str, float]) -> Load:
    seconds = now.clock_seconds - old.clock_seconds
    return Load(
        split_seconds=split,
        num_cores=granted_cores(),
        busy_cores=(now.cpu_seconds - old.cpu_seconds) / seconds if seconds > 0 else None,
        memory_bytes=used_memory_bytes(),
        total_memory_bytes=total_memory_bytes(),
    )
