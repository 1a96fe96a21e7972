"""The files of a run as rows and numbers.

Takes the folder of a run; gives its settings, log rows, rates and evaluations.
Knows neither how a run was made nor how it is shown. A line that a crash cut is left out.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..files import read_json_lines
from ..settings import nested_deeper

Row = Mapping[str, Any]
Points = list[tuple[float, float]]

SCORE, STEPS, SECONDS = "charts/episodic_return", "agent_steps", "training_seconds"
_PARTS = "perf/time_"
_MOST_LEVELS = 32


class ReportError(UserError):
    """A folder holds no run that can be reported."""


@dataclass(frozen=True)
class RunFiles:
    """What a run has written."""

    path: Path
    record: Row
    """`settings.json`: settings, versions, machine, when it began."""
    rows: Sequence[Row]
    """`progress.jsonl`"""
    rates: Sequence[Row]
    """`rates.jsonl`, one for every row of the log."""
    evaluations: Sequence[Row]
    """`evaluations.jsonl`, where the run paused for them."""

    @property
    def title(self) -> str:
        return f"{self.subject}, seed {self.seed}"

    @property
    def subject(self) -> str:
        """The recipe and the game."""
        plan = self.record["settings"]
        return f"{plan['recipe'].get('name')} on {plan.get('game')}"

    @property
    def seed(self) -> Any:
        return self.record["settings"]["run"].get("seed")

    def points(self, name: str, over: str = STEPS) -> Points:
        """A metric over agent steps, or over training seconds; rows without it are left out."""
        both = ({**rate, **row} for row, rate in zip(self.rows, self.rates, strict=False))
        return _points(both, name, over)

    def names(self, group: str) -> list[str]:
        """Metrics of a group, in the order in which they appeared."""
        rows = (*self.rows, *self.rates)
        return list(dict.fromkeys(name for row in rows for name in row if name.startswith(group)))

    def split_seconds(self) -> dict[str, float]:
        """Seconds per part over the logged run."""
        totals = {
            name.removeprefix(_PARTS): sum(number(rate.get(name)) or 0.0 for rate in self.rates)
            for name in self.names(_PARTS)
        }
        return {part: seconds for part, seconds in totals.items() if seconds > 0}

    @property
    def agent_steps(self) -> float | None:
        """Agent steps that the log or a checkpoint tells of; None where neither does."""
        saved = (re.search(r"agent-steps-(\d+)$", p.name) for p in self.path.glob("checkpoints/*"))
        logged = number(self.rows[-1].get(STEPS)) if self.rows else None
        found = [logged, *(float(match[1]) for match in saved if match)]
        return max((steps for steps in found if steps is not None), default=None)

    @property
    def training_seconds(self) -> float:
        return number(self.rates[-1].get(SECONDS)) or 0.0 if self.rates else 0.0

    @property
    def evaluated(self) -> Points:
        """Mean scores of the pauses over agent steps."""
        return _points(self.evaluations, "mean", STEPS)

    @property
    def best_evaluation(self) -> tuple[float, float] | None:
        """The pause with the highest mean, the first of equals."""
        return max(self.evaluated, key=lambda point: point[1], default=None)


def read_run(path: Path) -> RunFiles:
    """Reads a run; a folder without one is refused."""
    try:
        record = json.loads((path / "settings.json").read_text())
    except FileNotFoundError:
        raise ReportError(
            f"There is no run in {path} (it has no settings.json); name the folder of a run."
        ) from None
    except (ValueError, RecursionError, OSError) as error:
        raise ReportError(f"{path / 'settings.json'} cannot be read: {error}.") from error
    if not _is_record(record):
        raise ReportError(f"{path / 'settings.json'} cannot be read: it is not what a run writes.")
    files = ("progress.jsonl", "rates.jsonl", "evaluations.jsonl")
    return RunFiles(path, record, *(read_json_lines(path / name) for name in files))


def _is_record(record: Any) -> bool:
    """Whether a run could have written it, as far as a page needs it."""
    plan = record.get("settings") if isinstance(record, dict) else None
    if not isinstance(plan, dict) or nested_deeper(record, _MOST_LEVELS):
        return False
    parts = [plan.get("recipe"), plan.get("run")]
    parts += [record.get(name, {}) for name in ("machine", "versions")]
    lists = [record.get(name, []) for name in ("resumed", "inexact")]
    return all(isinstance(p, dict) for p in parts) and all(isinstance(each, list) for each in lists)


def number(value: Any) -> float | None:
    """A finite number; None for anything else that a file may hold in its place."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _points(rows: Iterable[Row], name: str, over: str) -> Points:
    places = ((number(row.get(over)), number(row.get(name))) for row in rows)
    return [(x, y) for x, y in places if x is not None and y is not None]
