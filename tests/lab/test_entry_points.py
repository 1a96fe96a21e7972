"""The lab seen from the command line: its verbs by entry point, its peers by the extra `lab`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points

import pytest

from scanline import cli
from scanline_lab.benchmarks import emulation, peers
from scanline_lab.experiments import EXPERIMENTS

EXTRA = "pip install 'scanline[lab]'"


def missing(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """As if packages were not installed."""
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)


def refused(capsys: pytest.CaptureFixture[str], words: Sequence[str]) -> str:
    """The one sentence of a command that cannot be carried out."""
    assert cli.main(words) == 2
    seen = capsys.readouterr()
    assert seen.err.count("\n") == 1 and not seen.out
    return seen.err


def test_the_distribution_declares_the_verbs_and_the_list() -> None:
    assert {"bench", "reproduce"} <= entry_points(group="scanline.commands").names
    assert "experiments" in entry_points(group="scanline.lists").names


def test_experiments_are_listed_with_their_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", "experiments"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(EXPERIMENTS)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["bench"], "bench needs one of emulation, learners, training"),
        (["reproduce"], "reproduce needs an experiment"),
        (["reproduce", "paac-scalin"], "did you mean 'paac-scaling'"),
    ],
)
def test_a_verb_of_the_lab_says_what_it_needs(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sentence in refused(capsys, words)


def test_help_names_the_whole_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["bench", "emulation"], ["reproduce"]):
        with pytest.raises(SystemExit):
            cli.main([*words, "--help"])
        assert f"usage: scanline {' '.join(words)} " in capsys.readouterr().out


def test_without_the_lab_one_sentence_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cli, "entry_points", lambda group: ())
    for verb in ("bench", "reproduce"):
        sentence = refused(capsys, [verb])
        assert f"`scanline {verb}`" in sentence and EXTRA in sentence
    assert "experiments" not in refused(capsys, ["list", "stars"])


def test_any_package_may_add_a_verb_but_replaces_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    group = "scanline.commands"
    points = [EntryPoint(name, "builtins:print", group) for name in ("list", "shout")]
    monkeypatch.setattr(cli, "entry_points", lambda group: points)
    cli.main(["shout", "loud"])
    assert capsys.readouterr().out == "['loud'] scanline shout\n"
    assert "list needs one of" in refused(capsys, ["list"])
    assert "shout" in refused(capsys, ["whisper"])


def test_a_peer_that_is_not_installed_is_refused_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing(monkeypatch, "stable_baselines3", "cv2")
    sentence = refused(capsys, ["bench", "training", "--peers", "sb3"])
    assert "stable-baselines3 and opencv-python-headless" in sentence and EXTRA in sentence


def test_emulation_is_measured_without_envpool_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing(monkeypatch, "envpool")
    said: list[str] = []
    assert emulation.installed(("native", "envpool"), said.append) == ("native",)
    assert len(said) == 1 and "left out" in said[0] and EXTRA in said[0]
    assert emulation.installed(("native", "ale"), said.append) == ("native", "ale")
    assert len(said) == 1


def test_emulation_of_a_missing_peer_alone_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing(monkeypatch, "envpool")
    assert EXTRA in refused(capsys, ["bench", "emulation", "--engines", "envpool"])


def test_what_is_installed_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("stable_baselines3", "cv2", "envpool"):
        monkeypatch.setitem(sys.modules, module, pytest)
    assert not any(peers.lacking(peer) for peer in ("sb3", "sb3-vector", "envpool"))
