"""Examples in the documentation run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def python_blocks() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.S)):
            found.append((f"{page.name}-{number}", block))
    return found


@pytest.mark.parametrize(
    "block", [b for _, b in python_blocks()], ids=[n for n, _ in python_blocks()]
)
def test_a_python_example_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # runs that an example makes go there
    exec(compile(block, "example", "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_recipe_has_a_page() -> None:
    from scanline.recipes import RECIPES

    text = " ".join(page.read_text() for page in (ROOT / "docs" / "recipes").glob("*.md"))
    for name in RECIPES:
        assert re.search(rf"\b{re.escape(name)}\b", text), f"{name} has no page in docs/recipes"


def test_the_site_builds_and_all_its_links_lead_somewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "environments" / "index.html").exists()


@pytest.mark.parametrize("page", ["docs/flow.md", "CONTRIBUTING.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    folders = [ROOT, ROOT / "src" / "scanline"]
    for name in re.findall(r"`([\w./]+\.(?:py|h|cpp))`", (ROOT / page).read_text()):
        assert any((folder / name).exists() for folder in folders), f"{page} names {name}"
