"""The page of a comparison: one HTML file that needs nothing else.

Takes a `Comparison`; gives the text of the page: what was compared, tables, profiles, pairs and
curves. Computes no figure. Every table and picture names the kind of score that it is of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from ..reports import charts
from ..reports.layout import document, section, table
from .compare import Comparison, CurvePicture, Figures, Improvement
from .outcomes import KINDS, Outcome
from .statistics import Band, Estimate

_MOST_OPEN_GAMES = 6
"""Games that are shown unfolded."""


def html(comparison: Comparison) -> str:
    """The whole page."""
    num_runs = sum(map(len, comparison.groups.values()))
    title = f"{num_runs} runs by {comparison.by}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        _sub(_intervals(comparison)),
        "<h2>What was compared</h2>" + _compared(comparison),
        *(_sub(line) for line in _notes(comparison)),
        *(_figures(figures, list(comparison.groups)) for figures in comparison.figures),
        _curves(comparison),
        "<h2>Runs</h2>" + _runs(comparison),
        _left_out(comparison),
        f"<footer>{_footer(comparison)}</footer>",
    ]
    return document(title, parts)


def interval(estimate: Estimate) -> str:
    """A figure with its interval, if it has one."""
    value = short(estimate.value)
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} [{short(estimate.low)}, {short(estimate.high)}]"


def short(value: float) -> str:
    """Three decimals of small figures, none of large ones."""
    size = abs(value)
    digits = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3
    return f"{value:,.{digits}f}"


def _sub(text: str) -> str:
    return f'<p class="sub">{escape(text)}</p>'


def _intervals(comparison: Comparison) -> str:
    return (
        f"Brackets are {comparison.confidence:.0%} intervals of a stratified bootstrap: "
        f"{comparison.resamples:,} times, runs are drawn with replacement within each game. "
        "A figure without brackets has a game with a single run."
    )


def _compared(comparison: Comparison) -> str:
    columns = ["group", "games", "runs", "runs per game", "agent steps", "hours in all", "scores"]
    rows = [[name, *_about(runs)] for name, runs in comparison.groups.items()]
    return table(columns, rows)


def _about(runs: Sequence[Outcome]) -> list[str]:
    games = [run.game for run in runs]
    per_game = [games.count(game) for game in set(games)]
    kinds = [kind for kind in KINDS if any(kind in run.scores for run in runs)]
    return [
        str(len(set(games))),
        str(len(runs)),
        _range(per_game),
        _range([run.agent_steps for run in runs]),
        short(sum(run.training_hours for run in runs)),
        ", ".join(kinds),
    ]


def _count(number: int) -> str:
    return f"{number} run{'' if number == 1 else 's'}"


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _notes(comparison: Comparison) -> Iterable[str]:
    for name, settings in comparison.mixed.items():
        if settings:
            yield (
                f"Runs of {name} differ in more than seed and game ({', '.join(settings)}): "
                "its intervals are not of seeds alone."
            )
    if len({run.agent_steps for runs in comparison.groups.values() for run in runs}) > 1:
        yield "Runs were not all trained for the same number of agent steps."
    if comparison.without_human_score:
        games = ", ".join(comparison.without_human_score)
        yield f"Without human scores, so with figures per game only: {games}."
    if comparison.left_out:
        yield f"Left out: {_count(len(comparison.left_out))}; the reasons are at the end."


def _figures(figures: Figures, names: Sequence[str]) -> str:
    """All of one kind of score."""
    words = f"Mean score of {KINDS[figures.kind]}"
    parts = [
        f"<h2>{figures.kind.capitalize()} score</h2>",
        _sub("; ".join([words, *(f"actions {choice}" for choice in figures.choices)]) + "."),
        *([_sub(_missing(figures))] if figures.without else []),
        _over_games(figures),
        _pairs(figures.kind, figures.improvements),
        _profile(figures, names),
        f"<h3>Per game, {figures.kind} score</h3>" + _per_game(figures),
    ]
    return "".join(parts)


def _missing(figures: Figures) -> str:
    missing = _count(len(figures.without))
    return f"Without a {figures.kind} score, and so not in these tables: {missing}."


def _per_game(figures: Figures) -> str:
    names = list(figures.per_game[0].raw)
    rows = [
        [
            row.game,
            row.group,
            str(row.num_runs),
            *(interval(each) for each in row.raw.values()),
            interval(row.human_normalised["mean"]) if row.human_normalised else "-",
        ]
        for row in figures.per_game
    ]
    columns = ["game", "group", "runs", *names, "mean, human-normalised"]
    cells = table(columns, rows, num_left=2)
    num_games = len({row.game for row in figures.per_game})
    if num_games <= _MOST_OPEN_GAMES:
        return cells
    return f"<details><summary>{num_games} games</summary>{cells}</details>"


def _over_games(figures: Figures) -> str:
    heading = f"<h3>Over games, human-normalised {figures.kind} score</h3>"
    if not figures.over_games:
        return heading + _sub("The groups share no game that has a human score.")
    names = list(next(iter(figures.over_games.values())))
    rows = [
        [group, *(interval(each) for each in found.values())]
        for group, found in figures.over_games.items()
    ]
    many = len(figures.games) > _MOST_OPEN_GAMES
    over = f"{len(figures.games)} games" if many else ", ".join(figures.games)
    about = (
        f"Over {over}. 0 is random play, 1 a human player. The optimality gap "
        "is what runs lack to 1 in the mean: less is better."
    )
    return heading + table(["group", *names], rows) + _sub(about)


def _pairs(kind: str, improvements: Sequence[Improvement]) -> str:
    if not improvements:
        return ""
    rows = [[each.x, each.y, interval(each.chance), str(len(each.games))] for each in improvements]
    columns = ["X", "Y", "P(X > Y)", "games"]
    about = "Chance that a run of X scores higher than one of Y on the same game; ties count half."
    heading = f"<h3>Probability of improvement, {kind} score</h3>"
    return heading + table(columns, rows, num_left=2) + _sub(about)


def _profile(figures: Figures, names: Sequence[str]) -> str:
    if not figures.profiles:
        return ""
    curves = {
        name: (figures.thresholds, figures.profiles[name]) if name in figures.profiles else None
        for name in names
    }
    title = f"Share of runs above a score ({figures.kind})"
    picture = _chart(title, curves, "human-normalised score")
    heading = f"<h3>Performance profile, {figures.kind} score</h3>"
    return heading + charts.legend(names) + f'<div class="charts">{picture}</div>'


def _curves(comparison: Comparison) -> str:
    names = list(comparison.groups)
    games = sorted({picture.game or "" for picture in comparison.pictures} - {""})
    shown, folded = games[:_MOST_OPEN_GAMES], games[_MOST_OPEN_GAMES:]
    pictures = {
        game: [_picture(each, names) for each in comparison.pictures if each.game == game]
        for game in (None, *games)
    }
    first = [drawn for game in (None, *shown) for drawn in pictures[game]]
    rest = "".join(drawn for game in folded for drawn in pictures[game])
    more = f'<div class="charts">{rest}</div>'
    about = "Means over runs with their intervals, as far as all runs of a group have come."
    parts = [section("Curves of the training score", first), charts.legend(names), _sub(about)]
    if folded:
        parts += [f"<details><summary>{len(folded)} more games</summary>{more}</details>"]
    return "".join(parts)


def _picture(picture: CurvePicture, names: Sequence[str]) -> str:
    found = {name: picture.curves.get(name) for name in names}
    curves = {name: (curve.points, curve.band) if curve else None for name, curve in found.items()}
    title = picture.game or "IQM over games, human-normalised"
    return _chart(f"{title}, training score", curves, picture.over)


def _chart(
    title: str, curves: Mapping[str, tuple[Sequence[float], Band] | None], x_label: str
) -> str:
    """A curve with its band for every group; a group without one keeps its colour."""
    lines: dict[str, list[charts.Point]] = {name: [] for name in curves}
    bands: dict[str, list[charts.Span]] = {}
    for name, found in curves.items():
        if found is None:
            continue
        xs, band = found
        lines[name] = list(zip(xs, band.values, strict=True))
        if band.low is not None and band.high is not None:
            bands[name] = list(zip(xs, band.low, band.high, strict=True))
    return charts.line_chart(title, lines, x_label, bands)


def _runs(comparison: Comparison) -> str:
    columns = ["run", "group", "game", "seed", "agent steps", "hours", *KINDS]
    rows = [
        [
            *(run.path, name, run.game, str(run.seed), f"{run.agent_steps:,}"),
            short(run.training_hours),
            *(short(run.scores[kind]) if kind in run.scores else "-" for kind in KINDS),
        ]
        for name, runs in comparison.groups.items()
        for run in runs
    ]
    inner = table(columns, rows, num_left=3)
    return f"<details><summary>all runs ({len(rows)})</summary>{inner}</details>"


def _left_out(comparison: Comparison) -> str:
    if not comparison.left_out:
        return ""
    rows = [[each.path, each.reason] for each in comparison.left_out]
    return f"<h2>Left out ({len(rows)})</h2>" + table(["run", "reason"], rows, num_left=2)


def _footer(comparison: Comparison) -> str:
    return _sub(
        f"Human-normalised scores are (score - random) / (human - random) by {comparison.source}. "
        "The mean is of the games' means, the median of the games' means; the IQM is the mean of "
        "the middle half of all runs, so a game with more runs weighs more in it. Figures follow "
        "Agarwal et al. 2021, Deep reinforcement learning at the edge of the statistical precipice."
    )
