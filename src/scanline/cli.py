"""The command line: arguments to calls, nothing else.

Takes `scanline train|evaluate|play|report|sweep|work|status|compare|doctor|bench|reproduce|list|
new|check` and further words; gives an exit code. Every setting of a recipe is an option, with the
sentence under its field. Knows no part: each command is one call into the package, imported when
it is needed. `bench`, `reproduce` and the list of experiments are entry points of scanline_lab, in
the groups `scanline.commands` (words and program name to exit code) and `scanline.lists` (names to
sentences).

What the user can mend (`UserError`, a disk that is full) is one sentence and exit code 2; a run
that failed inside is a traceback and exit code 1. A training run that Ctrl-C or SIGTERM stopped has
saved and ends with 0; whatever is stopped at once ends with 130 (Ctrl-C) or 143 (SIGTERM).
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NoReturn

import tyro

from .command_options import EvaluateOptions, PlayOptions, ReportOptions, option_names
from .errors import MissingPackageError, RefusedError, UserError

PROGRAM = "scanline"
_LAB_COMMANDS = ("bench", "reproduce")
_HELP = ("-h", "--help", "help")

USAGE = """scanline: train Atari agents fast on the machine at hand

  scanline train RECIPE GAME [options]     train; add --help for all options
  scanline train RECIPE GAME --plan        tell steps/s, hours and memory, and do not start
  scanline train --resume RUN [options]    go on with a run, e.g. with more --agent-steps
  scanline evaluate RUN [options]          play whole games with a run's weights
  scanline play RUN [options]              film a game as mp4 and gif, or --live in a window
  scanline report RUN...                   a page of curves, rates and settings
  scanline sweep QUEUE [options]           many runs: add a cell for every combination of settings
  scanline work QUEUE [options]            carry out cells, with other workers on any machines
  scanline status QUEUE                    what is done, running and failed
  scanline compare QUEUE|RUN... [options]  scores with intervals, per game and over games
  scanline bench training|emulation        measure rates, beside the peers' in the same run
  scanline bench learners                  one learner on one core against several
  scanline reproduce EXPERIMENT [options]  measure a paper's table or figure again
  scanline new NAME                        begin a recipe of your own: one file, explained
  scanline check FILE [GAME] [options]     does your recipe fit, learn, save and repeat?
  scanline doctor [--quick] [--json FILE]  check this machine, and what limits runs on it
  scanline list WHAT                       recipes, games, experiments, protocols, ...
  scanline completion bash|zsh             print completions of commands, names and options
  scanline --version

RECIPE is a name (`scanline list recipes`) or a file of your own (./my_recipe.py).
GAME is a name (`scanline list games`) or any Gymnasium id.
Completion: `scanline completion bash > FILE` (or zsh), and `source FILE` in your shell's start."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; errors that a user can mend end with their sentence alone."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None and words[:1] and words[0] in ("train", "check", "doctor", *_LAB_COMMANDS):
        from . import networks

        networks.own_process()
    try:
        ended = _ran(words)
        sys.stdout.flush()
        return ended
    except UserError as error:
        return _mistake(str(error))
    except BrokenPipeError:
        return _unread()
    except OSError as error:
        from .files import refusal_of

        if not (sentence := refusal_of(error)):
            raise
        return _mistake(sentence)
    except KeyboardInterrupt as error:
        print(f"{PROGRAM}: {str(error) or 'Stopped by Ctrl-C.'}", file=sys.stderr)
        code: int = getattr(error, "exit_code", 128 + signal.SIGINT)
        if arguments is None:
            _end_now(code)
        return code


def _ran(words: list[str]) -> int:
    if not words or words[0] in _HELP:
        print(USAGE)
        return 0
    if words[0] == "--version":
        from .runs.folder import versions

        print(f"{PROGRAM} {versions()['scanline']}")
        return 0
    return _command(words[0])(words[1:])


def _unread() -> int:
    """The reader of a pipe has gone, e.g. `| head`: nothing more is said, at the exit too."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE


def _end_now(code: int) -> NoReturn:
    """Without taking the interpreter apart: threads may still be at work in native code."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _mistake(sentence: str) -> int:
    print(f"{PROGRAM}: {sentence}", file=sys.stderr)
    return 2


def _commands() -> dict[str, Callable[[list[str]], int]]:
    """Those of this package."""
    return {
        "train": _train,
        "evaluate": _evaluate,
        "play": _play,
        "report": _report,
        "sweep": _queue("sweep"),
        "work": _queue("work"),
        "status": _queue("status"),
        "compare": _compare,
        "doctor": _doctor,
        "list": _list,
        "completion": _completion,
        "new": _authored("new"),
        "check": _authored("check"),
    }


def _command(name: str) -> Callable[[list[str]], int]:
    commands = _commands()
    if name in commands:
        return commands[name]
    installed = _installed("commands")
    if name in installed:
        return lambda words: installed[name](words, f"{PROGRAM} {name}")
    if name in _LAB_COMMANDS:
        raise MissingPackageError(
            f"`{PROGRAM} {name}` needs scanline_lab, which is not installed; get it with: "
            "pip install 'scanline[lab]'"
        )
    names = ", ".join([*commands, *installed])
    raise RefusedError(f"there is no command {name!r}; one of {names}.")


def _installed(group: str) -> dict[str, Callable[..., Any]]:
    """What installed packages add to the command line; each is imported when it is called."""
    points = entry_points(group=f"{PROGRAM}.{group}")
    return {point.name: partial(_loaded, point) for point in points}


def _loaded(point: EntryPoint, *arguments: Any) -> Any:
    return point.load()(*arguments)


def _train(words: list[str]) -> int:
    resumed, words = _taken(words, "--resume")
    names, words = _names(words, is_resumed=resumed is not None)
    if resumed is None and len(names) < 2:
        print(USAGE)
        if set(words) & {"-h", "--help"}:
            return 0
        raise RefusedError("train needs a recipe and a game, e.g. `scanline train paac pong`.")
    from . import train_options, training
    from .runs.signals import Signals

    out = None if resumed is None else _run_to_resume(resumed, words)
    plan = training.make_plan(**names) if out is None else training.read_plan(out, **names)
    given = train_options.parse(plan, words, f"{PROGRAM} train {plan.recipe.source} {plan.game}")
    own = {field.name for field in dataclasses.fields(train_options.TrainOptions)} & given.keys()
    options = train_options.TrainOptions(**{name: given.pop(name) for name in own})
    plan = training.changed_plan(plan, given)
    if options.plan:
        from .doctor import forecast

        print(*forecast(plan).lines(), sep="\n")
        return 0
    if out is None:
        out = _numbered(options.out) if options.if_exists == "number" else options.out
    signals = Signals(ends_process=True)
    run = training.carry_out(plan, out=out, resume=resumed is not None, signals=signals)
    if options.film and run.stop.kind != "signal":
        print("Filming a game ...")
        _print_film(training.film(run.folder, recipe=plan.recipe, game=plan.game))
    return 0


def _names(words: list[str], is_resumed: bool) -> tuple[dict[str, str], list[str]]:
    """Recipe and game, which stand first, and the other words; a resumed run needs neither."""
    names, place = {}, 0
    for name in ("recipe", "game"):
        if words[place : place + 1] and not words[place].startswith("-"):
            names[name] = words[place]
            place += 1
    words = words[place:]
    for name in ("recipe", "game") if is_resumed else ():
        value, words = _taken(words, f"--{name}")
        names |= {name: value} if value else {}
    return names, words


def _taken(words: list[str], option: str) -> tuple[str | None, list[str]]:
    """The value of an option and the words without it; None without the option, '' for none."""
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == option:
            following = [] if equals else words[place + 1 : place + 2]
            following = [each for each in following if not each.startswith("-")]
            return value or "".join(following), words[:place] + words[place + 1 + len(following) :]
    return None, words


def _run_to_resume(resumed: str, words: list[str]) -> Path:
    """The run after --resume, or the one in --out."""
    out, _ = _taken(words, "--out")
    if not resumed and not out:
        raise RefusedError("--resume needs the folder of a run, e.g. `train --resume runs/x`.")
    if resumed and out and Path(out) != Path(resumed):
        raise RefusedError(f"--resume {resumed} goes on in its own folder; leave out --out {out}.")
    return Path(resumed or str(out))


def _numbered(out: Path | None) -> Path | None:
    """The folder, or the first of folder-2, folder-3, ... that is free."""
    number, chosen = 1, out
    while out is not None and chosen is not None and chosen.exists():
        number += 1
        chosen = out.with_name(f"{out.name}-{number}")
    return chosen


def _parsed(kind: Any, words: list[str], command: str) -> Any:
    return tyro.cli(kind, args=words, prog=f"{PROGRAM} {command}", config=(tyro.conf.DisallowNone,))


def _evaluate(words: list[str]) -> int:
    from . import training

    options = _parsed(EvaluateOptions, words, "evaluate")
    seed = training.EVALUATION_SEED if options.seed is None else options.seed
    print(training.evaluate(**options.arguments() | {"seed": seed}).sentence())
    return 0


def _play(words: list[str]) -> int:
    from . import training

    options = _parsed(PlayOptions, words, "play")
    given = options.arguments()
    if not given.pop("live"):
        _print_film(training.film(**given))
        return 0
    if given.pop("out") is not None:
        raise RefusedError("--live writes nothing; leave out --out, or film without --live.")
    shown = training.watch(**given)
    closed = ", closed" if shown.was_closed else ""
    print(f"Score {shown.score:g} after {shown.agent_steps:,} agent steps{closed}")
    return 0


def _print_film(film: Any) -> None:
    print(f"Score {film.score:g} after {film.agent_steps:,} agent steps: {film.mp4} and {film.gif}")


def _report(words: list[str]) -> int:
    from . import reports
    from .files import disk_errors

    if not words:
        raise RefusedError("report needs the folder of a run, e.g. `scanline report runs/x`.")
    options = _parsed(ReportOptions, words, "report")
    with disk_errors("the report", "choose another place with --out"):
        path = reports.write(options.runs, options.out)
    print(f"The report is {path}")
    return 0


def _queue(name: str) -> Callable[[list[str]], int]:
    def call(words: list[str]) -> int:
        from .queue import command

        if not words:
            raise RefusedError(f"{name} needs the folder of a queue, e.g. `scanline {name} q`.")
        run: Callable[[list[str], str], int] = getattr(command, name)
        return run(words, f"{PROGRAM} {name}")

    return call


def _authored(name: str) -> Callable[[list[str]], int]:
    def call(words: list[str]) -> int:
        from . import authoring

        run: Callable[[list[str], str], int] = getattr(authoring, name)
        return run(words, f"{PROGRAM} {name}")

    return call


def _compare(words: list[str]) -> int:
    from .queue import compare_command

    return compare_command.run(words, f"{PROGRAM} compare")


def _doctor(words: list[str]) -> int:
    from .doctor import command

    return command.run(words, f"{PROGRAM} doctor")


def _list(words: list[str]) -> int:
    lists = _lists()
    if words[:1] and words[0] in _HELP:
        print(f"usage: {PROGRAM} list WHAT\n\nWHAT is one of {', '.join(lists)}.")
        return 0
    if not words or words[0] not in lists:
        raise RefusedError(f"list needs one of {', '.join(lists)}.")
    from .tables import aligned

    print(*aligned(list(lists[words[0]]().items()), num_left=2), sep="\n")
    return 0


def _completion(words: list[str]) -> int:
    from . import completion, train_options, training

    if words[:1] and words[0] in _HELP:
        print(f"usage: {PROGRAM} completion {'|'.join(completion.SHELLS)}")
        return 0
    if not words or words[0] not in completion.SHELLS:
        raise RefusedError(f"completion needs a shell, one of {', '.join(completion.SHELLS)}.")
    kinds = {"evaluate": EvaluateOptions, "play": PlayOptions, "report": ReportOptions}
    options = {name: option_names(kind) for name, kind in kinds.items()}
    options["train"] = train_options.names(training.make_plan(recipe="paac", game="pong"))
    names = {name: list(entries()) for name, entries in _lists().items()}
    commands = [*_commands(), *_installed("commands")]
    print(completion.script(PROGRAM, words[0], commands, names, options))
    return 0


def _lists() -> Mapping[str, Callable[[], Mapping[str, str]]]:
    from . import engines, games, networks, protocols, recipes

    return {
        "recipes": lambda: {name: row.summary for name, row in recipes.RECIPES.items()},
        "games": lambda: {game.id: game.gymnasium_id for game in games.GAMES},
        "protocols": lambda: protocols.SUMMARIES,
        "engines": lambda: {
            name: row.summary for name, row in engines.KINDS.items() if row.is_listed
        },
        "networks": networks.descriptions,
        **_installed("lists"),
    }
