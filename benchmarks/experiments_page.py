"""The generated part of docs/experiments.md, and reports that are kept.

    python benchmarks/experiments_page.py                                   from what is kept
    python benchmarks/experiments_page.py reproduced/paac-time-usage-desk   keeps a report first

A kept report is docs/experiments/NAME.md with its picture, and its `results.json` as
benchmarks/results/experiments/NAME.json, from which the page has its verdicts.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from scanline_lab.experiments import EXPERIMENTS
from scanline_lab.experiments.coverage import page

ROOT = Path(__file__).parents[1]
PAGE, REPORTS = ROOT / "docs" / "experiments.md", ROOT / "docs" / "experiments"
RECORDS = ROOT / "benchmarks" / "results" / "experiments"
BEGIN = "<!-- benchmarks/experiments_page.py writes from here to the end -->\n"


def kept() -> dict[str, Any]:
    """Records of kept reports by the name of their experiment."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RECORDS.glob("*.json"))}


def written(text: str) -> str:
    """The page with its generated part made anew."""
    return f"{text.partition(BEGIN)[0]}{BEGIN}\n{page(EXPERIMENTS, kept())}\n"


def keep(folder: Path) -> None:
    """A reproduction's report, picture and record; curves stay in its folder."""
    record = json.loads((folder / "results.json").read_text())
    experiment, scale = record["experiment"], record["scale"]
    for place in (REPORTS, RECORDS):
        place.mkdir(parents=True, exist_ok=True)
    report = (folder / "report.md").read_text().replace("(plot.png)", f"({experiment}.png)")
    command = f"    scanline reproduce {experiment} --scale {scale}\n"
    title, _, rest = report.partition("\n")
    (REPORTS / f"{experiment}.md").write_text(f"{title}\n\n{command}{rest}")
    if (folder / "plot.png").exists():
        shutil.copy(folder / "plot.png", REPORTS / f"{experiment}.png")
    short = {
        key: record[key] for key in ("experiment", "paper", "scale", "machine", "tables", "claims")
    }
    (RECORDS / f"{experiment}.json").write_text(json.dumps(short, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("reproduced", type=Path, nargs="*")
    for folder in parser.parse_args().reproduced:
        keep(folder)
    PAGE.write_text(written(PAGE.read_text()))


if __name__ == "__main__":
    main()
