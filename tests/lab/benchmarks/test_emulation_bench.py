"""`bench emulation` on the real engines and peers, for a moment."""

from __future__ import annotations

import pytest

from scanline_lab.benchmarks import emulation


@pytest.mark.parametrize("stacks", [False, True])
def test_rows_of_engines_and_of_vector_environments(stacks: bool) -> None:
    bench = emulation.EmulationBench(
        num_envs=(4,),
        num_threads=(1,),
        engines=("native", "ale"),
        protocols=("ale-vector", "baselines"),
        stacks=stacks,
        repeats=1,
        seconds=0.05,
        warm_up_seconds=0.0,
    )
    rows = emulation.run(bench, say=lambda _: None)
    kinds = [(row["engine"], row["protocol"], row["reset"]) for row in rows]
    assert kinds == [
        *(("native", "ale-vector", reset) for reset in ("ale", "cached")),
        *(("native", "baselines", reset) for reset in ("ale", "cached")),
        ("ale", "ale-vector", "ale"),
    ]
    assert {row["stack"] for row in rows} == {4 if stacks else 1}
    assert all(row["raw_fps"] > 0 for row in rows)
    assert rows[0]["times_best_peer"] > 0
