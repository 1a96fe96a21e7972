"""benchmarks/fingerprints.py: equal runs have equal digests, and half a run has none."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def fingerprints(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import fingerprints

    return fingerprints


def test_a_run_that_was_stopped_has_no_fingerprint(
    fingerprints: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As under the time limit of a shell, which sends SIGTERM: the run ends well, but half."""
    small, file = fingerprints.small, tmp_path / "prints.json"
    words = ["record", str(file), "--recipes", "paac", "--engines", "gymnasium"]
    monkeypatch.setattr(sys, "argv", ["fingerprints.py", *words])

    def limited(row: str) -> dict[str, Any]:
        return {**small(row), "seconds": 1e-6}

    with monkeypatch.context() as patched:
        patched.setattr(fingerprints, "small", limited)
        with pytest.raises(SystemExit, match=r"paac on gymnasium: .*of 1,600 agent steps"):
            fingerprints.main()
    assert not file.exists()
    assert fingerprints.main() == 0
    assert fingerprints.differences({}, {"paac": "1"}) == ["paac"]
    monkeypatch.setattr(sys, "argv", ["fingerprints.py", "compare", *words[1:]])
    assert fingerprints.main() == 0
