"""What finished runs came to, read from their folders: scores, curves and settings.

Takes folders of queues and of runs; gives an `Outcome` for every finished run and, for every other
one, the reason why it is left out. Folders are data: no code that they name is run.
Knows nothing of groups or statistics.

A score is of one of three kinds, which are never mixed: of games with the best actions (greedy), of
games with actions as in training (sampled), and the mean of the last training games (training).
A finished cell of a queue has all three in `result.json`; a run alone has its training score, and
the newest entry of `evaluations.jsonl` where it paused for evaluation.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import games
from ..errors import RefusedError, UserError
from ..reports.runs import SCORE, SECONDS, Points, RunFiles, number, read_run
from ..settings import flat

KINDS = {
    "greedy": "games with the best actions",
    "sampled": "games with actions as in training",
    "training": "the last training games (100 unless set otherwise)",
}
"""Kinds of scores, and what each is the mean of."""
_RESULT, _FORMAT_VERSION = "result.json", 1
_UNFINISHED = ("pending", "running", "failed")
_MOST_RESULT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One finished run."""

    path: str
    recipe: str
    game: str
    seed: Any
    agent_steps: int
    training_hours: float
    scores: Mapping[str, float]
    """Mean score by kind; a kind that the run does not have is absent."""
    choices: Mapping[str, str]
    """How actions were chosen in the evaluation of a kind, in its own words."""
    settings: Mapping[str, Any]
    """Public setting names and values, without seed and game."""
    by_steps: Points
    """Training score over agent steps."""
    by_hours: Points


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A run that is not compared."""

    path: str
    reason: str


class _CannotCompareError(Exception):
    """Why a run is left out."""


def read_outcomes(paths: Iterable[Path]) -> tuple[list[Outcome], list[LeftOut]]:
    """All runs of these folders, each once."""
    found: dict[Path, Outcome | LeftOut] = {}
    for path in paths:
        for run, in_queue in _runs(path):
            if run.resolve() not in found:
                found[run.resolve()] = _read(run, in_queue)
        for cell in _waiting(path):
            found.setdefault(Path(cell.path).resolve(), cell)
    outcomes = [each for each in found.values() if isinstance(each, Outcome)]
    return outcomes, [each for each in found.values() if isinstance(each, LeftOut)]


def _runs(path: Path) -> Iterator[tuple[Path, bool]]:
    """Run folders, and whether each is a queue's."""
    if (path / "settings.json").exists():
        yield path, (path / _RESULT).exists()
    elif (path / "queue.json").exists() or (path / "runs").is_dir():
        yield from ((run, True) for run in sorted(path.glob("runs/*")) if run.is_dir())
    else:
        raise RefusedError(
            f"There is neither a queue nor a run in {path} (no queue.json, no settings.json); "
            "name the folder of a queue or of a run."
        )


def _waiting(queue: Path) -> Iterator[LeftOut]:
    """Cells of a queue that have no result yet, by the folder that holds their ticket."""
    for state in _UNFINISHED:
        for ticket in sorted(queue.glob(f"{state}/*@*.json")):
            cell = ticket.name.rpartition("@")[0]
            reason = f"the cell is {state}; see `scanline status {queue}`"
            yield LeftOut(path=str(queue / "runs" / cell), reason=reason)


def _read(path: Path, in_queue: bool) -> Outcome | LeftOut:
    try:
        return _outcome(read_run(path), _result(path) if in_queue else None)
    except (_CannotCompareError, UserError) as error:
        return LeftOut(path=str(path), reason=str(error).rstrip("."))


def _outcome(run: RunFiles, result: Mapping[str, Any] | None) -> Outcome:
    settings = {name.rpartition(".")[2]: v for name, v in flat(run.record["settings"]).items()}
    plan = run.record["settings"]
    steps = _steps_alone(run, settings) if result is None else result["agent_steps"]
    scores, choices = _scores_alone(run) if result is None else _scores_of_result(result)
    if not scores:
        raise _CannotCompareError("no game was finished, so it has no score")
    hours = run.training_seconds / 3600 if result is None else result["training_minutes"] / 60
    return Outcome(
        path=str(run.path),
        recipe=str(plan["recipe"].get("name")),
        game=_game(plan.get("game")),
        seed=plan["run"].get("seed"),
        agent_steps=int(steps),
        training_hours=float(hours),
        scores=scores,
        choices=choices,
        settings={n: v for n, v in settings.items() if n not in ("seed", "game", "type")},
        by_steps=run.points(SCORE),
        by_hours=[(x / 3600, y) for x, y in run.points(SCORE, SECONDS)],
    )


def _game(name: Any) -> str:
    """The package's name of a game; another environment keeps its own."""
    try:
        return games.find(str(name)).id
    except ValueError:
        return str(name)


def _steps_alone(run: RunFiles, settings: Mapping[str, Any]) -> float:
    """Agent steps of a run alone, which must have reached what its settings ask for.

    A run with a limit in seconds or a target score may end before; it counts as it stands.
    """
    reached = run.agent_steps or 0.0
    asked = number(settings.get("agent_steps")) or 0.0
    limited = any(settings.get(name) is not None for name in ("seconds", "target_score"))
    if reached < asked and not limited:
        raise _CannotCompareError(f"it has done {reached:,.0f} of {asked:,.0f} agent steps")
    return reached


def _scores_alone(run: RunFiles) -> tuple[dict[str, float], dict[str, str]]:
    """The training score, and the score of the newest pause for evaluation."""
    scores, choices = {}, {}
    for row in run.evaluations:
        words, mean = str(row.get("actions", "")), number(row.get("mean"))
        kind = "greedy" if words.startswith("greedy") else "sampled"
        if words and mean is not None:
            scores[kind], choices[kind] = mean, words
    if points := run.points(SCORE):
        scores["training"] = points[-1][1]
    return scores, choices


def _scores_of_result(result: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, str]]:
    played = {kind: result["evaluation"].get(kind) or {} for kind in ("greedy", "sampled")}
    means = {kind: number(found.get("mean")) for kind, found in played.items()}
    means["training"] = number(result.get("training_score"))
    choices = {kind: str(found["actions"]) for kind, found in played.items() if "actions" in found}
    return {kind: mean for kind, mean in means.items() if mean is not None}, choices


def _result(path: Path) -> Mapping[str, Any]:
    """`result.json` of a finished cell, as far as it is needed."""
    try:
        if (path / _RESULT).stat().st_size > _MOST_RESULT_BYTES:
            raise _CannotCompareError(f"{_RESULT} is too large to be a result")
        record = json.loads((path / _RESULT).read_bytes())
    except FileNotFoundError:
        raise _CannotCompareError(f"the cell is not finished (it has no {_RESULT})") from None
    except (OSError, ValueError, RecursionError) as error:
        raise _CannotCompareError(f"{_RESULT} cannot be read: {error}") from error
    version = record.get("format_version") if isinstance(record, dict) else None
    if version != _FORMAT_VERSION:
        raise _CannotCompareError(
            f"{_RESULT} has format {version}; this scanline reads {_FORMAT_VERSION}"
        )
    if not _is_result(record):
        raise _CannotCompareError(f"{_RESULT} is damaged: it is not what a worker writes")
    return dict(record)


def _is_result(record: Mapping[str, Any]) -> bool:
    played = record.get("evaluation")
    counts = [number(record.get(name)) for name in ("agent_steps", "training_minutes")]
    return (
        isinstance(played, dict)
        and all(isinstance(each, dict) for each in played.values())
        and None not in counts
    )
