"""Completions, as a shell gives them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from scanline import cli


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "scanline.bash"
    with pytest.MonkeyPatch.context() as patch, path.open("w") as file:
        patch.setattr("sys.stdout", file)
        assert cli.main(["completion", "bash"]) == 0
    return path


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash reads the script")
@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("tr", "train"),
        ("train paac-", "paac-repo"),
        ("train paac riv", "riverraid"),
        ("train paac pong --agent-", "--agent-steps"),
        ("train paac pong --frame", "--frame-skip"),
        ("play --li", "--live"),
        ("list proto", "protocols"),
        ("evaluate --run", ""),  # a place, not an option
        ("evaluate pyproj", "pyproject.toml"),
    ],
)
def test_bash_completes(script: Path, typed: str, wanted: str) -> None:
    words = ["scanline", *typed.split()]
    source = (
        f"source {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
        'COMPREPLY=(); _scanline; echo "${COMPREPLY[@]}"'
    )
    found = subprocess.run(
        ["bash", "-c", source],
        capture_output=True,
        text=True,
        timeout=30,
        cwd=Path(__file__).parents[1],
        check=True,
    )
    assert found.stdout.split() == wanted.split()


def test_help_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    assert "scanline completion bash > FILE" in capsys.readouterr().out
    assert cli.main(["completion", "zsh"]) == 0
    assert "bashcompinit" in capsys.readouterr().out
    assert cli.main(["completion", "tcsh"]) == 2
    assert "one of bash, zsh" in capsys.readouterr().err
