"""Reads PTX, the assembly language that NVRTC makes of the kernels, into functions and blocks.

Takes the text; gives functions with their parameters, local memory and basic blocks, each with its
statements, its successors and its immediate post-dominator: where a warp that parted meets again.
Knows only the forms that the kernels of native/gpu compile to, and refuses others by name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

EXIT = -1
"""The block behind every return."""
JOINT = ("call", "vote", "shfl", "bar", "barrier", "activemask", "redux", "match")
"""Instructions that lanes of a warp execute together: each ends a block."""

_BYTES = {"b8": 1, "b16": 2, "b32": 4, "b64": 8, "u32": 4, "u64": 8, "f32": 4, "f64": 8}
_HEADER = re.compile(
    r"\.(?P<kind>entry|func)\s*(?:\((?P<result>[^)]*)\))?\s*(?P<name>[\w$]+)\s*\((?P<params>[^)]*)\)"
)
_PARAM = re.compile(
    r"\.param\s+(?:\.align\s+\d+\s+)?\.(?P<type>\w+)\s+(?P<name>[\w$]+)(?:\[(?P<n>\d+)\])?"
)
_MEMORY = re.compile(
    r"\.(?P<space>local|shared|global|const)\s+(?:\.align\s+\d+\s+)?\.(?P<type>\w+)\s+"
    r"(?P<name>[\w$]+)(?:\[(?P<n>\d*)\])?(?:\s*=\s*(?P<value>.*))?$",
    re.DOTALL,
)


@dataclass(frozen=True)
class Memory:
    """A named piece of memory: `value` are its first elements."""

    space: str
    name: str
    element_bytes: int
    num_bytes: int
    value: tuple[int, ...] = ()


@dataclass
class Statement:
    """One instruction: `guard` is its predicate or empty, `operands` are as written."""

    guard: str
    opcode: str
    operands: list[str]


@dataclass
class Block:
    """Statements that are executed together."""

    statements: list[Statement] = field(default_factory=list)
    successors: list[int] = field(default_factory=list)
    """Where it goes if its last statement does not jump, then where that one jumps to."""
    meets_at: int = EXIT


@dataclass
class Function:
    """One entry point or subroutine."""

    name: str
    is_entry: bool
    params: dict[str, int]
    """Bytes of each parameter, in their order."""
    result_bytes: int
    registers: dict[str, str] = field(default_factory=dict)
    """Type by prefix, such as b32 by %r."""
    locals: list[Memory] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)


def functions_of(text: str) -> tuple[list[Function], list[Memory]]:
    """Functions with bodies, and the memory of the whole module."""
    text = re.sub(r"//[^\n]*", "", text)
    functions, outside, position = [], [], 0
    while (start := text.find("\n{", position)) >= 0:
        end = text.index("\n}", start)
        before = text[position:start]
        header = list(_HEADER.finditer(before))[-1]
        functions.append(_function(header, text[start + 2 : end]))
        outside.append(before)
        position = end + 2
    memory = [
        memory
        for line in ("\n".join([*outside, text[position:]])).split(";")
        if (memory := _memory(line.strip())) is not None
    ]
    return functions, memory


def _sizes(text: str | None) -> dict[str, int]:
    return {
        found["name"]: _BYTES[found["type"]] * int(found["n"] or 1)
        for found in _PARAM.finditer(text or "")
    }


def _memory(line: str) -> Memory | None:
    found = _MEMORY.search(line)
    if found is None:
        return None
    size = _BYTES.get(found["type"], 1)
    value = tuple(int(word, 0) for word in re.findall(r"-?\w+", found["value"] or ""))
    count = int(found["n"]) if found["n"] else max(len(value), 1)
    return Memory(found["space"], found["name"], size, size * count, value)


def _function(header: re.Match[str], body: str) -> Function:
    result = sum(_sizes(header["result"]).values())
    function = Function(header["name"], header["kind"] == "entry", _sizes(header["params"]), result)
    labels: dict[str, int] = {}
    tables: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    blocks = [Block()]
    for line in _lines(body):
        if line.endswith(":"):
            if blocks[-1].statements:
                blocks.append(Block())
            labels[line[:-1]] = len(blocks) - 1
        elif ".branchtargets" in line:
            name, targets = line.split(".branchtargets")
            tables[name.strip(" :")] = [part.strip() for part in targets.split(",")]
        elif line.startswith("."):
            _declare(function, sizes, line)
        else:
            _append(blocks, _statement(line, sizes))
    function.blocks = blocks
    _connect(function, labels, tables)
    return function


def _lines(body: str) -> list[str]:
    """Statements and labels, one each; braces around calls are left out."""
    lines, pending = [], ""
    for raw in body.splitlines():
        line = raw.strip()
        if line in ("{", "}", ""):
            continue
        if not pending and re.fullmatch(r"[\w$]+:(\s*\.branchtargets)?", line):
            if not line.endswith(":"):
                pending = line + " "
                continue
            lines.append(line)
            continue
        pending += line + " "
        if line.endswith(";"):
            lines += [part.strip() for part in pending.rstrip("; ").split(";")]
            pending = ""
    return lines


def _declare(function: Function, sizes: dict[str, int], line: str) -> None:
    if register := re.match(r"\.reg\s+\.(\w+)\s+(%?[A-Za-z_]+)", line):
        function.registers[register[2]] = register[1]
    elif line.startswith(".param"):
        sizes.update(_sizes(line))
    elif (memory := _memory(line)) is not None:
        function.locals.append(memory)


def _statement(line: str, sizes: dict[str, int]) -> Statement:
    """Names of a call's parameters get their size behind them."""
    guard = ""
    if line.startswith("@"):
        guard, line = line[1:].split(None, 1)
    opcode, _, rest = line.partition(" ")
    opcode, _, more = opcode.partition("\t")
    text = re.sub(r"\b((?:param|retval)\d+)\b", lambda m: f"{m[1]}_{sizes[m[1]]}", more + rest)
    return Statement(guard, opcode, _operands(text))


def _operands(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    found, depth, start = [], 0, 0
    for place, letter in enumerate(text + ","):
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and depth == 0:
            found.append(text[start:place].strip())
            start = place + 1
    return [operand for operand in found if operand]


def _append(blocks: list[Block], statement: Statement) -> None:
    kind = statement.opcode.split(".")[0]
    if kind in JOINT and blocks[-1].statements:
        blocks.append(Block())
    blocks[-1].statements.append(statement)
    if kind in ("bra", "brx", "ret", "exit", *JOINT):
        blocks.append(Block())


def _connect(function: Function, labels: dict[str, int], tables: dict[str, list[str]]) -> None:
    blocks = function.blocks
    for number, block in enumerate(blocks):
        following = number + 1 if number + 1 < len(blocks) else EXIT
        last = block.statements[-1] if block.statements else Statement("", "", [])
        kind = last.opcode.split(".")[0]
        if kind in ("ret", "exit"):
            block.successors = [following, EXIT] if last.guard else [EXIT]
        elif kind == "bra":
            target = labels[last.operands[0]]
            block.successors = [following, target] if last.guard else [target]
        elif kind == "brx":
            block.successors = [labels[name] for name in tables[last.operands[1]]]
        else:
            block.successors = [following]
    _find_meetings(blocks)


def _find_meetings(blocks: list[Block]) -> None:
    """Immediate post-dominators, by the usual iteration over the reversed graph."""
    order = _reversed_postorder(blocks)
    rank = {number: place for place, number in enumerate(order)}
    meets: dict[int, int] = {EXIT: EXIT}

    def common(one: int, two: int) -> int:
        while one != two:
            while rank[one] > rank[two]:
                one = meets[one]
            while rank[two] > rank[one]:
                two = meets[two]
        return one

    changed = True
    while changed:
        changed = False
        for number in order[1:]:
            known = [other for other in blocks[number].successors if other in meets]
            found = known[0]
            for other in known[1:]:
                found = common(found, other)
            changed |= meets.get(number) != found
            meets[number] = found
    for number, block in enumerate(blocks):
        block.meets_at = meets.get(number, EXIT)


def _reversed_postorder(blocks: list[Block]) -> list[int]:
    """Of the graph with all edges turned round, from the exit on."""
    before: dict[int, list[int]] = {EXIT: []}
    for number, block in enumerate(blocks):
        for other in block.successors:
            before.setdefault(other, []).append(number)
    done, seen, stack = [], {EXIT}, [(EXIT, iter(before[EXIT]))]
    while stack:
        number, rest = stack[-1]
        for other in rest:
            if other not in seen:
                seen.add(other)
                stack.append((other, iter(before.get(other, []))))
                break
        else:
            done.append(number)
            stack.pop()
    return done[::-1]
