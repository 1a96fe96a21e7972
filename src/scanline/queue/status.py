"""The state of a queue: counts, what runs, what failed, when it will be finished.

Takes a queue; gives a record fit for JSON, and a table for a terminal. It only reads, at any time.
Knows no process: all it says stands in files. What is damaged is shown as damaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import UserError
from ..files import json_object
from ..tables import Table
from .cells import Cell
from .folder import STATES, Queue, State, Ticket, lines_of
from .lease import read_lease
from .result import read_result

_STEPS, _SCORE, _RATE = "agent_steps", "charts/episodic_return", "charts/SPS"
_TAIL_BYTES = 65_536


def status_of(queue: Queue) -> dict[str, Any]:
    """Everything that is known of a queue, as plain values."""
    tickets = {state: _read_tickets(queue, state) for state in STATES}
    damaged = [row for row in (_damaged(queue, i) for i in queue.cell_ids()) if row]
    broken = {row["cell"] for row in damaged}
    rows: dict[str, list[dict[str, Any]]] = {
        state: [_row(queue, state, t) for t in found if t.cell_id not in broken]
        for state, found in tickets.items()
    }
    return {
        "queue": str(queue.path),
        "counts": {**{state: len(found) for state, found in rows.items()}, "damaged": len(damaged)},
        "running": rows["running"],
        "failed": rows["failed"],
        "done": rows["done"],
        "pending": rows["pending"],
        "damaged": damaged,
        "remaining_seconds": _remaining_seconds(rows),
    }


def _read_tickets(queue: Queue, state: State) -> list[Ticket]:
    """Sorted by cell; a cell that moves meanwhile may be missed once."""
    return sorted(queue.tickets(state), key=lambda ticket: ticket.cell_id)


def _damaged(queue: Queue, cell_id: str) -> dict[str, Any] | None:
    try:
        queue.cell(cell_id)
    except UserError as error:
        return {"cell": cell_id, "error": str(error)}
    return None


def _row(queue: Queue, state: State, ticket: Ticket) -> dict[str, Any]:
    row: dict[str, Any] = {"cell": ticket.cell_id, "claims": ticket.number}
    row["errors"] = len(queue.errors(ticket.cell_id))
    row["agent_steps_wanted"] = _wanted(queue, ticket.cell_id)
    if state == "running":
        row |= _progress(queue.attempt(ticket)) | {"worker": _worker(queue, ticket)}
    elif state == "failed":
        row["error"] = next(lines_of(queue.errors(ticket.cell_id)[::-1]), "")
    elif state == "done":
        row |= _outcome(queue.run(ticket.cell_id))
    return row


def _wanted(queue: Queue, cell_id: str) -> int | None:
    """Agent steps of the whole run, where the cell says so or its recipe has a name."""
    try:
        cell = queue.cell(cell_id)
    except UserError:
        return None
    steps = cell.settings.get("agent_steps")
    return steps if isinstance(steps, int) else _recipe_steps(cell)


def _recipe_steps(cell: Cell) -> int | None:
    from ..recipes import RECIPES

    return RECIPES[cell.recipe].agent_steps if cell.recipe in RECIPES else None


def _worker(queue: Queue, ticket: Ticket) -> str:
    lease = read_lease(queue.lease_file(ticket))
    return f"{lease.get('host', '?')}:{lease.get('pid', '?')}"


def _progress(run: Path) -> dict[str, Any]:
    row, rate = _last_row(run / "progress.jsonl"), _last_row(run / "rates.jsonl")
    return {"agent_steps": row.get(_STEPS, 0), "score": row.get(_SCORE), "rate": rate.get(_RATE)}


def _last_row(path: Path) -> dict[str, Any]:
    """The last complete row of a log."""
    try:
        with open(path, "rb") as file:
            file.seek(max(path.stat().st_size - _TAIL_BYTES, 0))
            lines = file.read().split(b"\n")[:-1]
    except OSError:
        return {}
    return (json_object(lines[-1]) if lines else None) or {}


def _outcome(run: Path) -> dict[str, Any]:
    result = read_result(run) or {}
    evaluation = result.get("evaluation")
    scores = evaluation if isinstance(evaluation, dict) else {}
    means = {f"{name}_mean": (found or {}).get("mean") for name, found in scores.items()}
    return {
        "agent_steps": result.get("agent_steps"),
        "score": result.get("training_score"),
        **means,
    }


def _remaining_seconds(rows: Mapping[str, list[dict[str, Any]]]) -> float | None:
    """Work that is left at the rates of now; None where nothing tells."""
    rates = [row["rate"] for row in rows["running"] if row.get("rate")]
    left = [*rows["running"], *rows["pending"]]
    if not left:
        return 0.0
    if not rates or any(row["agent_steps_wanted"] is None for row in left):
        return None
    steps = sum(max(r["agent_steps_wanted"] - (r.get("agent_steps") or 0), 0) for r in left)
    return float(steps / sum(rates))


def table(status: Mapping[str, Any]) -> str:
    """The record for a terminal."""
    found = [_part(name, status[name], columns) for name, columns in _COLUMNS.items()]
    return "\n\n".join([_counts(status), *(part.text() for part in found if part.rows)])


_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "running": {
        "cell": "cell",
        "agent steps": "agent_steps",
        "of": "agent_steps_wanted",
        "score": "score",
        "steps/s": "rate",
        "worker": "worker",
        "claims": "claims",
    },
    "done": {
        "cell": "cell",
        "agent steps": "agent_steps",
        "training score": "score",
        "greedy": "greedy_mean",
        "sampled": "sampled_mean",
    },
    "failed": {"cell": "cell", "error": "error"},
    "damaged": {"cell": "cell", "error": "error"},
}


def _part(name: str, rows: list[dict[str, Any]], columns: Mapping[str, str]) -> Table:
    cells = [[row.get(key) for key in columns.values()] for row in rows]
    num_left = 2 if "error" in columns else 1
    return Table(title=name, columns=list(columns), rows=cells, num_left=num_left)


def _counts(status: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{number} {what}" for what, number in status["counts"].items() if number)
    return f"{status['queue']}: {counts or 'no cells'}; {_finish(status['remaining_seconds'])}"


def _finish(seconds: float | None) -> str:
    if seconds is None:
        return "no rate yet to tell when it will be finished."
    if seconds == 0:
        return "nothing is left to do."
    minutes = round(seconds / 60)
    return f"finished in about {minutes // 60} h {minutes % 60:02d} min at the present rates."
