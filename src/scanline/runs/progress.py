"""Progress: how far a run is, and its rows at fixed agent steps.

Takes agent steps, metrics of updates and finished games; gives counters, the score, and log rows.
Knows no algorithm: a metric is a name and a scalar tensor, read only when a row is due.

Rows hold nothing that depends on the clock, so equal seeds give equal bytes; rates go into a file
of their own. The row at the end of a run is no part of its state: a resumed run drops it and goes
on as if it had not ended there.

Reading a tensor would wait for the device, so metrics stay tensors between rows: `losses/*` and
`perf/*` are means over the updates since the last row, `charts/*` the last value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..devices import download
from ..interfaces import Metric
from ..machine import used_memory_bytes
from ..records import EpisodeEnd, Slot, State
from ..settings import at_least
from .clock import EVALUATION, TimeSplit
from .limits import Every
from .log import RunLog
from .loggers import Logger, Track
from .scores import Scores

_COUNTED = ("charts/agents", "charts/predictors", "charts/trainers")
"""Charts that say how many threads a run has, not how well it learns."""
_EARLY_AGENT_STEPS = (1_000, 2_000, 5_000)
"""A short run has rows too."""
_SCORE = "charts/episodic_return"


@dataclass(frozen=True, kw_only=True)
class ProgressSettings:
    """What is logged, and how often."""

    log_every_agent_steps: int = 10_000
    """Agent steps between two rows of the log files; before the first of them there are rows at
    1,000, 2,000 and 5,000, and a last one at the end."""
    score_window_episodes: int = 100
    """Games in the mean score; they count in the order in which they started."""
    tensorboard: bool = True
    """Whether TensorBoard events are written."""
    track: Track = "none"
    """Where rows go besides the run's folder: `wandb` is Weights & Biases (extra `track`)."""

    def __post_init__(self) -> None:
        at_least(1, self, "log_every_agent_steps", "score_window_episodes")


@dataclass
class Turn:
    """One repetition of a loop, from its first step to its last update."""

    began_at: int
    """Agent steps before it."""
    collected_agent_steps: int = 0
    learned_agent_steps: int = 0
    is_done: bool = False
    """Whether its last update is done: all that is left is what is due at its end."""


class Moment(NamedTuple):
    """How far a run is at one time."""

    agent_steps: int
    updates: int
    split_seconds: dict[str, float]

    def since(self, before: Moment) -> tuple[float, float, dict[str, float]]:
        """Agent steps and updates per second of training, and the seconds of each part."""
        split = {part: s - before.split_seconds[part] for part, s in self.split_seconds.items()}
        seconds = max(sum(split.values()) - split[EVALUATION], 1e-9)
        steps, updates = self.agent_steps - before.agent_steps, self.updates - before.updates
        return steps / seconds, updates / seconds, split


class Progress:
    """Counters, score and log of one run. Load a state first, if there is one; then open."""

    def __init__(
        self, settings: ProgressSettings, *, frame_skip: int, time_split: TimeSplit
    ) -> None:
        self._settings, self.frame_skip, self.time_split = settings, frame_skip, time_split
        self.agent_steps = self.updates = self.episodes = 0
        self.turn: Turn | None = None
        """The turn that is under way; None between two of them."""
        self.intervals: list[Every] = []
        """What happens at the end of a turn, before anything is logged or saved."""
        self.scores = Scores(settings.score_window_episodes)
        self._metrics: dict[str, list[Metric]] = {}
        self._rates: dict[str, list[float]] = {}
        self._figures: dict[str, float] = {}
        self._num_rows, self._last_row_at = 0, 0
        every = settings.log_every_agent_steps
        self._log = Every(every, self._write_row, _EARLY_AGENT_STEPS)
        self._files: RunLog | None = None
        self.loggers: Sequence[Logger] = ()
        """Where rows go besides the files of the run; set before `open`."""
        self.last_row: dict[str, float | int | None] = {}
        """What was logged last in this process."""
        self.curve: list[float] = []
        """Mean scores of all rows that have one, those before a resume included."""
        self._rates_from = self.moment()

    @property
    def raw_frames(self) -> int:
        return self.agent_steps * self.frame_skip

    def moment(self) -> Moment:
        return Moment(self.agent_steps, self.updates, self.time_split.seconds())

    def open(self, folder: Path, settings: Mapping[str, Any] | None = None) -> None:
        """Begins to write; cuts the files back to the rows that this progress knows."""
        self._files = RunLog(folder, self._num_rows, self.loggers, settings)
        self._rates_from = self.moment()
        self.curve = [score for row in self._files.rows if (score := row.get(_SCORE)) is not None]

    def close(self) -> None:
        """Closes the log files; may be called twice."""
        if self._files is not None:
            self._files.close()
            self._files = None

    def begin_turn(self) -> Turn:
        """A new turn, or the one that was broken off."""
        if self.turn is None:
            self.turn = Turn(self.agent_steps)
        return self.turn

    def end_turn(self) -> bool:
        """Ends a turn that is done; gives whether there is none under way."""
        if self.turn is not None and self.turn.is_done:
            for each in self.intervals:
                each.reached(self.turn.began_at, self.agent_steps)
            self.turn = None
        return self.turn is None

    def advance(self, num_agent_steps: int) -> None:
        """Counts agent steps, those of all environments and learners together."""
        self.agent_steps += num_agent_steps

    def count_slot(self, slot: Slot) -> None:
        """Counts a collected rollout's agent steps and logs its policy lag, in updates."""
        self.advance(slot.num_steps * slot.agent_steps_per_step)
        self._keep("perf/policy_lag", self.updates - mean(slot.version.tolist()))

    def count_update(self, metrics: Mapping[str, Metric]) -> None:
        """Counts one update and keeps its metrics."""
        self.updates += 1
        self.log(metrics)

    def log(self, metrics: Mapping[str, Metric]) -> None:
        """Keeps metrics that belong to no update; a name without a group is a loss."""
        shown = ("perf/", *_COUNTED)
        figures = {k: v for k, v in metrics.items() if k.startswith(shown) and type(v) is float}
        self._figures |= figures
        for key, metric in metrics.items():
            self._keep(key if "/" in key else f"losses/{key}", metric)

    def _keep(self, name: str, metric: Metric) -> None:
        # A number where that waits for nothing: small tensors that live until the row would lie in
        # the holes that updates leave in the heap, and each update would take new memory.
        # On a device it stays there, without the graph, which would keep every activation.
        value = metric
        if isinstance(metric, Tensor):
            there = metric.detach()
            value = float(there) if there.is_cpu else there
        if name.startswith("charts/"):
            self._metrics[name] = [value]
        else:
            self._metrics.setdefault(name, []).append(value)

    def log_rates(self, rates: Mapping[str, float]) -> None:
        """Keeps what was measured with a clock; its means go beside the rates of the next row."""
        self._figures |= rates
        for name, value in rates.items():
            self._rates.setdefault(name, []).append(value)

    def figures(self) -> dict[str, float]:
        """Newest figures that only some runs have: queues, waits, lags, numbers of threads.

        Plain numbers only: a tensor may still be under way on its device.
        """
        return dict(self._figures)

    def last_losses(self) -> dict[str, float]:
        """Losses of the last row."""
        return {k: v for k, v in self.last_row.items() if k.startswith("losses/") and v is not None}

    def count_episodes(self, ends: Sequence[EpisodeEnd]) -> None:
        """Counts finished games."""
        self.episodes += len(ends)
        self.scores.add(ends)

    def write_row_if_due(self) -> bool:
        """Writes a row when a multiple of `log_every_agent_steps` was reached since the last."""
        return self._files is not None and self._log.reached(self._last_row_at, self.agent_steps)

    def write_last_row(self) -> bool:
        """Writes what came after the last row; the state of the run does not count it."""
        is_new = self._files is not None and self.agent_steps > self._last_row_at
        if is_new:
            self._write()
        return is_new

    def _write(self) -> None:
        assert self._files is not None
        self.last_row = self._row()
        self._files.write(self.last_row, self._row_of_rates())

    def _write_row(self) -> None:
        self._write()
        if (score := self.scores.mean) is not None:
            self.curve.append(score)
        self._metrics.clear()
        self._rates.clear()
        self._num_rows, self._last_row_at = self._num_rows + 1, self.agent_steps

    def state(self) -> State:
        """Everything a resumed run needs; the rows it counts are on the disk afterwards."""
        if self._files is not None:
            self._files.sync()
        return {
            "agent_steps": self.agent_steps,
            "updates": self.updates,
            "episodes": self.episodes,
            "scores": self.scores.state(),
            "metrics": {
                # Float64, so that a checkpoint between two rows changes no digit of the mean.
                key: torch.tensor(numbers(values), dtype=torch.float64)
                for key, values in self._metrics.items()
            },
            "num_rows": self._num_rows,
            "last_row_at": self._last_row_at,
            "turn": None if self.turn is None else asdict(self.turn),
        }

    def load(self, state: State) -> None:
        assert self._files is None, "load the state before the log files are opened"
        self.agent_steps = state["agent_steps"]
        self.updates, self.episodes = state["updates"], state["episodes"]
        self.scores.load(state["scores"])
        self._metrics = {key: list(values.unbind()) for key, values in state["metrics"].items()}
        self._num_rows, self._last_row_at = state["num_rows"], state["last_row_at"]
        self.turn = turn_of(state)

    def _row(self) -> dict[str, float | int | None]:
        means = {key: mean(numbers(values)) for key, values in self._metrics.items()}
        return {
            "agent_steps": self.agent_steps,
            "raw_frames": self.raw_frames,
            "updates": self.updates,
            "episodes": self.episodes,
            _SCORE: self.scores.mean,
            "charts/episodic_length": self.scores.mean_length,
            "charts/episodes_counted": self.scores.counted,
            **{key: means[key] for key in sorted(means)},
        }

    def _row_of_rates(self) -> dict[str, float | int | None]:
        """Rates since the last row, over training time; evaluation has a time of its own."""
        before, self._rates_from = self._rates_from, self.moment()
        steps_per_second, updates_per_second, split = self._rates_from.since(before)
        return {
            "agent_steps": self.agent_steps,
            "training_seconds": self.time_split.training_seconds(),
            "charts/SPS": steps_per_second,
            "perf/frames_per_second": steps_per_second * self.frame_skip,
            "perf/updates_per_second": updates_per_second,
            **{f"perf/time_{part}": seconds for part, seconds in split.items()},
            "perf/memory_bytes": used_memory_bytes(),
            **{name: mean(values) for name, values in sorted(self._rates.items())},
        }


def turn_of(state: State) -> Turn | None:
    """The turn that was under way when a progress was saved."""
    turn = state.get("turn")
    return None if turn is None else Turn(**turn)


def numbers(values: Sequence[Metric]) -> list[float]:
    """The values as plain numbers; those that are on a device come in one download."""
    there = [v for v in values if isinstance(v, Tensor) and not v.is_cpu]
    brought = iter(download(torch.stack(there)).tolist() if there else ())
    is_there = (isinstance(v, Tensor) and not v.is_cpu for v in values)
    return [next(brought) if far else float(v) for v, far in zip(values, is_there, strict=True)]


def mean(values: list[float]) -> float:
    """One order of summation, whatever the number of torch threads."""
    return sum(values) / len(values)
