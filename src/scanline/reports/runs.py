"""The files of a run as rows and numbers.

Takes the folder of a run; gives its settings, log rows, rates and evaluations.
Knows neither how a run was made nor how it is shown. A line that a crash cut is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]
Points = list[tuple[float, float]]

SCORE, STEPS, SECONDS = "charts/episodic_return", "agent_steps", "training_seconds"
_PARTS = "perf/time_"


class ReportError(ValueError):
    """A folder holds no run that can be reported."""


@dataclass(frozen=True)
class RunFiles:
    """What a run has written."""

    path: Path
    record: Row
    """`settings.json`: settings, versions, machine, when it began."""
    rows: list[Row]
    """`progress.jsonl`"""
    rates: list[Row]
    """`rates.jsonl`, one for every row of the log."""
    evaluations: list[Row]
    """`evaluations.jsonl`, where the run paused for them."""

    @property
    def title(self) -> str:
        plan = self.record["settings"]
        return f"{plan['recipe']['name']} on {plan['game']}, seed {plan['run']['seed']}"

    def points(self, name: str, over: str = STEPS) -> Points:
        """A metric over agent steps, or over training seconds; rows without it are left out."""
        found = []
        for row, rate in zip(self.rows, self.rates, strict=False):
            both = {**rate, **row}
            if both.get(name) is not None and both.get(over) is not None:
                found.append((float(both[over]), float(both[name])))
        return found

    def names(self, group: str) -> list[str]:
        """Metrics of a group, in the order in which they appeared."""
        rows = (*self.rows, *self.rates)
        return list(dict.fromkeys(name for row in rows for name in row if name.startswith(group)))

    def split_seconds(self) -> dict[str, float]:
        """Seconds per part over the logged run."""
        totals = {
            name.removeprefix(_PARTS): sum(float(rate.get(name) or 0.0) for rate in self.rates)
            for name in self.names(_PARTS)
        }
        return {part: seconds for part, seconds in totals.items() if seconds > 0}

    @property
    def training_seconds(self) -> float:
        return float(self.rates[-1][SECONDS]) if self.rates else 0.0

    @property
    def best_evaluation(self) -> Row | None:
        """The pause with the highest mean, the first of equals."""
        scored = [row for row in self.evaluations if row.get("mean") is not None]
        return max(scored, key=lambda row: float(row["mean"]), default=None)


def read_run(path: Path) -> RunFiles:
    """Reads a run; a folder without one is refused."""
    try:
        record = json.loads((path / "settings.json").read_text())
        record["settings"]["recipe"]["name"]
    except FileNotFoundError:
        raise ReportError(
            f"There is no run in {path} (it has no settings.json); name the folder of a run."
        ) from None
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise ReportError(f"{path / 'settings.json'} cannot be read: {error}.") from error
    files = ("progress.jsonl", "rates.jsonl", "evaluations.jsonl")
    return RunFiles(path, record, *(list(_rows(path / name)) for name in files))


def _rows(path: Path) -> Iterator[Row]:
    """Complete rows, up to the first line that is none."""
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            return
        if not isinstance(row, dict):
            return
        yield row


def flat(values: Row, prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted name."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found
