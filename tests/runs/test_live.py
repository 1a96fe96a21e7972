"""The live view: pictures in a terminal, lines elsewhere, a last word everywhere."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from scanline.records import EpisodeEnd
from scanline.runs import live
from scanline.runs.clock import TimeSplit
from scanline.runs.limits import Limits, Stop
from scanline.runs.live import LiveSettings, LiveView
from scanline.runs.picture import About, line, picture
from scanline.runs.progress import Progress, ProgressSettings


class MadeUpRun:
    """800 agent steps, 5 updates and one game in a tenth of a second of made-up time."""

    def __init__(self, console: Console, **settings: bool) -> None:
        self.now = 0.0
        self.time_split = TimeSplit(lambda: round(self.now * 1e9))
        self.progress = Progress(ProgressSettings(), frame_skip=4, time_split=self.time_split)
        self.view = LiveView(
            LiveSettings(**settings),  # type: ignore[arg-type]
            self.progress,
            Limits(agent_steps=960_000),
            about=About("paac pong, seed 3", Path("runs/mine"), 32, limit_agent_steps=27_000),
            console=console,
            clock_seconds=lambda: self.now,
        )

    def go(self, num_rollouts: int) -> None:
        for _ in range(num_rollouts):
            for part, seconds in (("environment", 0.07), ("acting", 0.02), ("learning", 0.01)):
                self.time_split.mark(part)
                self.now += seconds
            self.progress.advance(800)
            self.progress.updates += 5
            number = self.progress.episodes
            self.progress.count_episodes([EpisodeEnd(0, float(number % 100), 800, number)])
            self.view.refresh_if_due()


def drawn(**options: object) -> Console:
    return Console(force_terminal=True, width=100, file=io.StringIO(), **options)  # type: ignore[arg-type]


def text_of(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


STOP = Stop("agent_steps", "All 960,000 agent steps are done.")


def test_a_picture_shows_rates_score_split_time_left_and_advice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    console = drawn(record=True, no_color=True)
    run = MadeUpRun(console)
    with run.view:
        run.go(600)
        run.view.finish(STOP, Path("runs/x"))
    text = console.export_text().split("paac pong")[-1]
    for words in (
        *("480,000", "1,920,000", "3,000", "600"),
        *("agent steps/s", "8,000", "raw frames/s", "32,000", "updates/s", "50.0"),
        *("score, last 100 games", "49.5", "best score"),
        *("environment", "70%", "acting", "20%", "learning", "10%", "done", "50%"),
        *("training time", "0:01:00", "time left, about", "GiB", "The environments limit"),
    ):
        assert words in text, words


def test_pictures_come_twice_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    console = drawn()
    run = MadeUpRun(console)
    with run.view:
        run.go(100)
    assert 18 <= text_of(console).count("paac pong") <= 21


def test_lines_come_every_ten_seconds_without_a_terminal() -> None:
    console = Console(file=io.StringIO(), width=40)
    run = MadeUpRun(console)
    with run.view:
        run.go(305)
        run.view.finish(STOP, Path("runs/x"))
    lines = text_of(console).splitlines()
    assert len(lines) == 4 + 6
    assert "\x1b" not in text_of(console)
    assert lines[0].startswith("8,000 agent steps")  # the first one after a second
    assert lines[1].startswith(
        "88,800 agent steps (355,200 frames) | 8,000 steps/s | 32,000 frames/s"
    )
    assert "left 0:01:49" in lines[1]
    assert "environment 70%" in lines[1]


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch, term: str) -> None:
    monkeypatch.setenv("TERM", term)
    console = drawn()
    run = MadeUpRun(console)
    with run.view:
        run.go(110)
    assert len(text_of(console).splitlines()) == 1
    assert "\x1b" not in text_of(console)


@pytest.mark.parametrize("width", [40, 100])
def test_a_loop_that_begins_has_something_to_show_at_once(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    plain = Console(file=io.StringIO(), width=width)
    with MadeUpRun(plain).view as view:
        view.begin()
    assert text_of(plain) == "paac pong, seed 3: training.\n"
    console = drawn()
    with MadeUpRun(console).view as view:
        view.begin()
        assert "Nothing measured yet." in text_of(console)


def test_rates_count_from_the_beginning_of_the_loop() -> None:
    run = MadeUpRun(Console(file=io.StringIO()))
    run.now += 100.0  # a warm start
    run.time_split.restart()
    run.view.begin()
    run.go(5)
    assert run.view.view().steps_per_second == pytest.approx(8_000)


def test_what_takes_long_is_named_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_SHORT_SECONDS", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    for console in (Console(file=io.StringIO(), width=100), drawn()):
        with MadeUpRun(console).view as view, view.during("Starting the games"):
            wait_until(lambda: "Starting" in text_of(console))  # noqa: B023
        assert "paac pong, seed 3: Starting the games (0 s) ..." in text_of(console)


def test_what_is_short_needs_no_word() -> None:
    console = Console(file=io.StringIO(), width=100)
    with MadeUpRun(console).view as view, view.during("Saving"):
        pass
    assert text_of(console) == ""


def test_a_sentence_goes_above_the_picture_and_elsewhere_to_the_error_stream(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    console = drawn()
    with MadeUpRun(console).view as view:
        view.say("Ctrl-C: stopping.")
    assert "Ctrl-C: stopping." in text_of(console)
    for settings in ({}, {"live": False}):
        with MadeUpRun(Console(file=io.StringIO()), **settings).view as view:
            view.say("Ctrl-C: stopping.")
        assert capsys.readouterr().err == "Ctrl-C: stopping.\n"


def test_no_color_draws_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    console = drawn(color_system="standard")
    run = MadeUpRun(console)
    with run.view:
        run.go(10)
    assert "paac pong" in text_of(console)
    assert "\x1b[3" not in text_of(console)  # foreground colours


@pytest.mark.parametrize("width", [20, 40, 78, 200])
def test_any_width_can_be_drawn(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("TERM", "xterm")
    console = Console(force_terminal=True, width=width, file=io.StringIO(), record=True)
    run = MadeUpRun(console)
    run.go(10)
    console.print(picture(run.view.view()))
    assert max(map(len, console.export_text().splitlines())) <= width


def test_before_anything_has_happened_it_can_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    console = drawn()
    run = MadeUpRun(console)
    with run.view:
        run.view.finish(STOP, Path("runs/x"))
    assert "Nothing measured yet." in text_of(console)


def test_the_last_word_tells_where_the_run_is_and_what_to_do() -> None:
    console = Console(file=io.StringIO(), width=200)
    run = MadeUpRun(console)
    with run.view:
        run.view.finish(STOP, Path("runs/x"))
    for words in (
        "All 960,000 agent steps are done. The run is in runs/x",
        "scanline train --resume runs/x --agent-steps 1_920_000",
        "scanline evaluate runs/x",
        "scanline play runs/x",
        "tensorboard --logdir runs/x",
    ):
        assert words in text_of(console)


def test_rates_leave_evaluation_out() -> None:
    run = MadeUpRun(Console(file=io.StringIO()))
    run.go(5)
    with run.time_split.during("evaluation"):
        run.now += 100.0
    view = run.view.view()
    assert view.steps_per_second == pytest.approx(8_000)
    assert view.updates_per_second == pytest.approx(50)
    assert view.training_seconds == pytest.approx(0.5)


def test_it_can_be_silent() -> None:
    console = Console(file=io.StringIO())
    run = MadeUpRun(console, live=False)
    with run.view:
        run.go(300)
        run.view.finish(STOP, Path("runs/x"))
    assert text_of(console) == ""


@pytest.mark.parametrize("name", ["refresh_seconds", "plain_seconds", "rate_seconds"])
def test_impossible_settings_are_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}=0"):
        LiveSettings(**{name: 0})


def test_a_run_s_own_figures_are_shown_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    console = drawn(record=True, no_color=True)
    run = MadeUpRun(console)
    run.progress.log(
        {"perf/policy_lag": 2.5, "perf/training_queue": 17.0, "charts/predictors": 3.0}
    )
    with run.view:
        run.go(10)
    shown = console.export_text()
    for words in ("policy lag", "2.5", "training queue", "17", "predictors", "3"):
        assert words in shown
    plain = Console(file=io.StringIO(), width=100)
    other = MadeUpRun(plain)
    other.progress.log({"perf/policy_lag": 2.5})
    other.go(110)
    assert "policy lag 2.5" in text_of(plain)


def screen(width: int, run: MadeUpRun) -> str:
    console = Console(width=width, file=io.StringIO(), record=True, no_color=True)
    console.print(picture(run.view.view(), width))
    return console.export_text()


def logged(tmp_path: Path) -> MadeUpRun:
    """A run with rows, losses and a score that rises."""
    run = MadeUpRun(Console(file=io.StringIO()))
    run.progress.open(tmp_path)
    for _ in range(20):
        run.progress.log({"losses/policy_loss": 0.25, "losses/entropy": 1.5})
        run.go(13)
        run.progress.write_row_if_due()
    run.progress.close()
    return run


@pytest.mark.parametrize("width", [80, 160])
def test_a_picture_fills_the_terminal_and_shows_losses_curve_seed_and_folder(
    tmp_path: Path, width: int
) -> None:
    lines = screen(width, logged(tmp_path)).splitlines()
    assert {len(line) for line in lines} == {width}
    text = "\n".join(lines)
    for words in ("seed 3", "runs/mine", "policy loss", "0.25", "entropy", "1.5", "score", "█"):
        assert words in text, words
    assert "…" not in text
    has_curve_beside_bars = any("█" in line and "━" in line for line in lines)
    assert has_curve_beside_bars == (width == 160)


def test_a_wide_terminal_needs_fewer_lines(tmp_path: Path) -> None:
    run = logged(tmp_path)
    assert len(screen(160, run).splitlines()) < len(screen(80, run).splitlines()) - 6


@pytest.mark.parametrize("width", [40, 80, 160])
def test_before_the_first_score_it_says_what_is_under_way(width: int) -> None:
    run = MadeUpRun(Console(file=io.StringIO()))
    run.progress.advance(3_200)
    run.progress.count_episodes([EpisodeEnd(1, -21.0, 90, 1)])
    shown = " ".join(line.strip("│ ") for line in screen(width, run).splitlines())
    assert (
        "No score yet: 32 games under way, the longest for 100 agent steps, cut after 27,000; "
        "1 have ended and count when it has." in shown
    )
    assert "no game finished (32 games under way" in line(run.view.view()).plain


def test_the_curve_goes_on_after_a_resume(tmp_path: Path) -> None:
    run = logged(tmp_path)
    again = MadeUpRun(Console(file=io.StringIO()))
    again.progress.load(run.progress.state())
    again.progress.open(tmp_path)
    again.progress.close()
    assert len(run.progress.curve) == 20
    assert again.progress.curve == run.progress.curve
