"""The parts together: a made-up run that is killed again and again ends like one that was not."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

SCRIPT = """
    import os, random, signal, sys, time
    from pathlib import Path
    import torch
    from scanline.records import EpisodeEnd
    from scanline.runs.checkpoint import Checkpoints, CheckpointSettings
    from scanline.runs.clock import ENVIRONMENT, LEARNING, OTHER, TimeSplit
    from scanline.runs.folder import RunFolder, versions
    from scanline.runs.progress import Progress, ProgressSettings
    from scanline.runs.limits import Limits, SaveSchedule, SaveSettings
    from scanline.runs.signals import Signals
    from scanline.runs.watchdog import Watchdog, WatchdogSettings

    torch.set_num_threads(1)
    LIMITS = Limits(agent_steps=60_000)
    LOG = ProgressSettings(log_every_agent_steps=1_000, tensorboard=False)
    SAVE = SaveSettings(save_every_agent_steps=4_000)

    class Learner:
        def __init__(self):
            self.weights = torch.zeros(100)

        def learn(self, step):
            self.weights = 0.99 * self.weights + torch.sin(torch.arange(100.0) * step)
            return {"loss": self.weights.mean()}

    def train(path):
        begin = RunFolder.resume if (path / "settings.json").exists() else RunFolder.create
        time_split, learner = TimeSplit(), Learner()
        progress = Progress(LOG, frame_skip=4, time_split=time_split)
        with (
            begin(path, {"seed": 0}, versions(engine="none 0")) as run,
            Signals() as signals,
            signals.deferred(),
        ):
            checkpoints = Checkpoints(run.checkpoints, CheckpointSettings())
            if saved := checkpoints.latest():
                learner.weights = saved.state["weights"]
                progress.load(saved.state["progress"])
                time_split.load(saved.state["time_split"])
            progress.open(run.path)
            schedule = SaveSchedule(SAVE, progress.agent_steps)

            def save():
                parts = {"progress": progress.state(), "time_split": time_split.state()}
                checkpoints.save({"weights": learner.weights, **parts}, progress.agent_steps)
                schedule.saved(progress.agent_steps)

            def position():
                return progress.agent_steps

            with Watchdog(
                run.path, WatchdogSettings(), position=position, part=lambda: time_split.part
            ):
                while not (signals.stop or LIMITS.reached(
                    agent_steps=progress.agent_steps,
                    seconds=time_split.training_seconds(),
                    score=progress.scores.full_mean,
                )):
                    time_split.mark(ENVIRONMENT)
                    progress.advance(160)
                    score = progress.agent_steps % 37
                    progress.count_episodes([EpisodeEnd(0, score, 10, progress.episodes)])
                    time_split.mark(LEARNING)
                    progress.count_update(learner.learn(progress.agent_steps))
                    time_split.mark(OTHER)
                    progress.write_row_if_due()
                    if schedule.due(progress.agent_steps):
                        save()
                    time.sleep(0.001)
                save()
                progress.close()

    folder, rng = Path(sys.argv[1]), random.Random(7)
    train(folder / "whole")
    num_kills = 0
    while True:
        child = os.fork()
        if not child:
            train(folder / "killed")
            os._exit(0)
        number = rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
        if num_kills < 12:
            time.sleep(rng.uniform(0.0, 0.3))
            os.kill(child, number)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        num_kills += 1
        assert code in (0, -number), code
        if num_kills > 12:
            break
"""


def test_a_run_that_is_killed_again_and_again_ends_like_one_that_is_not(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(SCRIPT), tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for name in ("progress.jsonl", "progress.csv"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    last = [sorted((run / "checkpoints").glob("*-60000"))[-1] for run in (whole, killed)]
    tensors = [(path / "tensors.safetensors").read_bytes() for path in last]
    assert tensors[0] == tensors[1]
    names = {path.name for path in whole.iterdir()}
    assert {path.name for path in killed.iterdir()} == names
    assert "run.lock" not in names
    assert "stuck.txt" not in names
