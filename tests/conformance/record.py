"""What a conformance run has found so far, in a file: an interrupted run goes on where it was.

One line of JSON per finished case, behind a line with the fingerprint of what was compared. A file
with another fingerprint is begun anew: outcomes of one build say nothing of another. Knows neither
suites nor consoles; a case is known by the text of its fields.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from side_by_side import Outcome

COUNTS = ("frames", "resets", "ends", "rewards", "difference")


def fingerprint(files: Iterable[Path], *words: str) -> str:
    """Of the files' contents and of the words."""
    digest = hashlib.sha256(" ".join(words).encode())
    for path in sorted(files):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


class Record:
    def __init__(self, path: Path, fingerprint: str):
        self._path = path
        self._done: dict[str, dict[str, Any]] = {}
        head = {"fingerprint": fingerprint}
        lines = path.read_text().splitlines() if path.exists() else []
        rows = [row for line in lines if (row := _parsed(line))]
        if rows[:1] == [head]:
            self._done = {row["key"]: row for row in rows[1:]}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in (head, *self._done.values())))

    def find(self, suite: str, case: Any) -> Outcome | None:
        """What came of the case, if it has been played."""
        row = self._done.get(_key(suite, case))
        return row and Outcome(case=case, **{name: row[name] for name in COUNTS})

    def add(self, suite: str, outcome: Outcome) -> None:
        counts = {name: getattr(outcome, name) for name in COUNTS}
        with self._path.open("a") as file:
            file.write(json.dumps({"key": _key(suite, outcome.case), **counts}) + "\n")


def _key(suite: str, case: Any) -> str:
    return f"{suite}: {dataclasses.asdict(case)}"


def _parsed(line: str) -> dict[str, Any] | None:
    """None for a line that was cut off."""
    try:
        row: dict[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return None
    return row
