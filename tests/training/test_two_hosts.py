"""Two hosts under torchrun: network namespaces where they can be made, else loopback.

The long form, with games of the Atari and a link that is cut, is benchmarks/two_hosts.py.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import scanline
from scanline.errors import RefusedError
from scanline.training import make_plan
from scanline_lab.hosts import LoopbackHosts, NamespaceHosts, TorchrunRun, make_hosts, options
from training.standing_pair import StandingPair
from training.test_determinism import assert_equal_runs
from training.test_learners import CATCH, changes_of
from training.test_listeners import listening

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes by /proc")
RECIPE = "accelerated-dqn"
LONGEST_SECONDS = 240.0


@pytest.fixture(scope="module")
def hosts() -> Iterator[NamespaceHosts | LoopbackHosts]:
    with closing(make_hosts(2)) as made:
        yield made


def wait_for_checkpoint(run: TorchrunRun) -> None:
    deadline = time.monotonic() + LONGEST_SECONDS
    while not run.checkpoints():
        assert time.monotonic() < deadline and run.processes[0].poll() is None, run.log(0)
        time.sleep(0.01)


def test_a_learner_killed_on_one_of_two_hosts_changes_no_byte(
    hosts: NamespaceHosts | LoopbackHosts, tmp_path: Path
) -> None:
    """Each host keeps its rows; all start again from the checkpoint that both have."""
    changes = changes_of(RECIPE, agent_steps=4_800)
    with closing(StandingPair()) as pair:
        pair.train(make_plan(RECIPE, CATCH, learners=2, **changes), tmp_path / "whole")
    words = [RECIPE, CATCH, *options({**changes, "lost_learner_seconds": 10})]
    with closing(TorchrunRun(hosts, tmp_path / "hosts", words)) as run:
        run.start()
        wait_for_checkpoint(run)
        learners = [run.learner(host) for host in range(2)]
        for host, pid in enumerate(learners):
            found = listening({pid, run.processes[host].pid}, network_of=pid)
            assert found == {hosts.addresses[host]}
        os.kill(learners[1], signal.SIGKILL)
        assert run.ended(LONGEST_SECONDS) == [0, 0], run.log(0) + run.log(1)
        lost = "\n".join(run.lost(0))
        assert "Learner 0 of 2 lost another learner: learner 1 has ended. All learners end" in lost
    assert_equal_runs(tmp_path / "whole", run.place(0) / "run")
    rows = [sorted((run.place(host) / "run/checkpoints/segments").iterdir()) for host in range(2)]
    for host, files in enumerate(rows):
        assert files and all(file.name.startswith(f"replay-{host}-") for file in files)
    assert not (run.place(1) / "run/settings.json").exists()


def test_a_run_that_torchrun_may_start_again_needs_a_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1"}
    for name, value in {**started, "RANK": "0", "TORCHELASTIC_MAX_RESTARTS": "0"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(RefusedError, match=r"--max-restarts or several hosts a run needs --out"):
        scanline.train("paac", CATCH)
