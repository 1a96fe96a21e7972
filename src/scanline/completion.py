"""Completions for a shell: commands, the names that they take, and their options.

Takes commands, names by list (recipes, games, ...) and names of options by command; gives a script
for bash or zsh. Knows no command's work. Names are those of the moment when it is printed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SHELLS = ("bash", "zsh")
_ZSH = "autoload -U +X compinit bashcompinit && compinit && bashcompinit\n"
_SCRIPT = """\
_{program}() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" choices=""
  case "$COMP_CWORD:${{COMP_WORDS[1]}}" in
{places}
  esac
  if [[ $word == -* ]]; then
    case "${{COMP_WORDS[1]}}" in
{options}
    esac
  fi
  COMPREPLY=($(compgen -W "$choices" -- "$word"))
  [[ -n $choices ]] || COMPREPLY=($(compgen -f -- "$word"))
}}
complete -o filenames -F _{program} {program}"""


def script(
    program: str,
    shell: str,
    commands: Sequence[str],
    names: Mapping[str, Sequence[str]],
    options: Mapping[str, Sequence[str]],
) -> str:
    """What a shell reads to complete the program's words; other words are completed as files."""
    places = {
        "1:*": commands,
        "2:train": names["recipes"],
        "3:train": names["games"],
        "2:reproduce": names.get("experiments", ()),
        "2:list": tuple(names),
        "2:bench": ("training", "emulation", "learners"),
        "2:completion": SHELLS,
    }
    flags = {
        command: [f"--{name.replace('_', '-')}" for name in fields]
        for command, fields in options.items()
    }
    text = _SCRIPT.format(program=program, places=_cases(places, 4), options=_cases(flags, 6))
    return _ZSH + text if shell == "zsh" else text


def _cases(choices: Mapping[str, Sequence[str]], indent: int) -> str:
    lines = (f'{place}) choices="{" ".join(words)}" ;;' for place, words in choices.items())
    return "\n".join(" " * indent + line for line in lines)
