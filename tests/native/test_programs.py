"""The native test programs: built once by CMake, each one a test. Compiling takes minutes, so
`make native` runs them and `make test` does not; `.ci/run` builds and runs the few that matter most
(SCANLINE_NATIVE_TESTS=short).

`make sanitize` builds and runs the same programs with sanitizers, hostile cartridges and forged
snapshots at length.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scanline import games

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "native" / "tests"
BUILD = ROOT / "build" / "native-tests"
CMAKE = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
OPTIONS = ("-DSCANLINE_PYTHON=OFF", "-DSCANLINE_TESTS=ON", "-DCMAKE_CXX_FLAGS_RELEASE=-O1")
BUILD_SECONDS, RUN_SECONDS = 3000, 600
HOSTILE_FRAMES, FORGED_RESTORES = 2000, 4000
WANTED = os.environ.get("SCANLINE_NATIVE_TESTS")
NAMES = sorted(path.stem for path in SOURCES.glob("test_*.cpp"))
if WANTED == "short":
    NAMES = ["test_batch", "test_loop_decoded", "test_state_check"]

if not WANTED:
    pytest.skip("run by `make native`", allow_module_level=True)
if CMAKE is None or shutil.which(os.environ.get("CXX", "c++")) is None:
    pytest.skip("native tests need CMake and a C++ compiler", allow_module_level=True)


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder of the programs, built from the sources as they are now."""
    command = [str(CMAKE), "-S", str(ROOT), "-B", str(BUILD), *OPTIONS]
    if not (BUILD / "CMakeCache.txt").exists() and shutil.which("ninja"):
        command += ["-G", "Ninja"]
    build = [str(CMAKE), "--build", str(BUILD), "--parallel", "--target"]
    for step in (command, [*build, "hostile_roms", "fuzz_snapshots", *NAMES]):
        done = subprocess.run(step, capture_output=True, text=True, timeout=BUILD_SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
    return BUILD / "native" / "tests"


def run(program: Path, *arguments: str) -> str:
    done = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=RUN_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def roms() -> list[str]:
    pytest.importorskip("ale_py", reason="ale-py brings the ROMs")
    return [str(path) for path in sorted(games.rom_path("pong").parent.glob("*.bin"))]


@pytest.mark.parametrize("name", NAMES)
def test_program(programs: Path, name: str) -> None:
    assert " 0 failures" in run(programs / name)


def test_hostile_cartridges_of_every_type(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = run(programs / "hostile_roms", str(HOSTILE_FRAMES), "all", *roms())
    with capsys.disabled():
        print(f"\n{table}")
    assert len(table.splitlines()) == 1 + 9 + 1


def test_forged_snapshots_of_every_type(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = run(programs / "fuzz_snapshots", str(FORGED_RESTORES), "0", *roms())
    with capsys.disabled():
        print(f"\n{table}")
    assert len(table.splitlines()) == 2 + 9 + 1
