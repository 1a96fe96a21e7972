"""C++ of one PTX function: a step per block, executed for every lane of a mask.

Takes a function of ptx_text.py; gives text that native/bench/warp.h runs. Registers that live
longer than a block are arrays by lane in the function's frame; the others are locals of a step.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ptx_text import Block, Function, Memory, Statement

_INFIX = {"add": "+", "sub": "-", "and": "&", "or": "|", "xor": "^"}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_COMPARE |= {"lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
_WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def _stride(num_bytes: int) -> int:
    return -(-max(num_bytes, 1) // 16) * 16


def _width(kind: str) -> int:
    return int(kind[1:])


class FunctionWriter:
    """C++ of one function."""

    def __init__(self, function: Function, module: dict[str, Memory]) -> None:
        self._function = function
        self._module = module
        self._local_names = {memory.name for memory in function.locals}
        self._params: dict[str, int] = dict(function.params)
        self._joined = self._registers_between_blocks()

    # ---- operands ----

    def _kind(self, register: str) -> str:
        prefix = re.sub(r"\d+$", "", register)
        return self._function.registers[prefix]

    @staticmethod
    def _is_register(text: str) -> bool:
        return text.startswith("%") and "." not in text

    def _name(self, register: str) -> str:
        return register.replace("%", "_")

    def _value(self, text: str) -> str:
        if text in ("%tid.x", "%laneid"):
            return "l"
        if text == "%ntid.x":
            return "32u"
        if text == "%ctaid.x":
            return "g_block_index"
        if text.startswith("!"):
            return f"!{self._value(text[1:])}"
        if self._is_register(text):
            return self._name(text)
        if re.fullmatch(r"0[fF][0-9A-Fa-f]{8}", text):
            return f"bits<f32>(u32(0x{text[2:]}))"
        if re.fullmatch(r"0[dD][0-9A-Fa-f]{16}", text):
            return f"bits<f64>(u64(0x{text[2:]}ull))"
        if re.fullmatch(r"-?\d+|0x[0-9A-Fa-f]+", text):
            return f"s64({text}ll)" if abs(int(text, 0)) < 2**63 else f"{text}ull"
        return self._address(text)

    def _address(self, text: str) -> str:
        """Of a register or a name, with or without an offset."""
        base, _, offset = text.strip("[] ").partition("+")
        tail = f" + s64({offset})" if offset else ""
        if self._is_register(base):
            return f"{self._name(base)}{tail}"
        if base in self._local_names:
            return f"u64(f.{base}[l]){tail}"
        if base in self._module and self._module[base].space == "shared":
            return f"{base}_at{tail}"
        if base in self._module:
            return f"u64({base}){tail}"
        if base in self._function.params:
            return f"u64(f.{base} + l * {_stride(self._params[base])}){tail}"
        size = int(base.rsplit("_", 1)[1]) if re.fullmatch(r"\w+_\d+", base) else 0
        if base == "func_retval0":
            return f"u64(f.result + l * {_stride(self._function.result_bytes)}){tail}"
        self._params[base] = size
        return f"u64(f.{base} + l * {_stride(size)}){tail}"

    def _as(self, kind: str, text: str) -> str:
        value = self._value(text)
        if (
            self._is_register(text)
            and self._kind(text)[0] != kind[0]
            and "f"
            in (
                kind[0],
                self._kind(text)[0],
            )
        ):
            return f"bits<{kind}>({value})"
        return f"{kind}({value})"

    # ---- instructions ----

    def _assign(self, target: str, expression: str) -> str:
        return f"{self._name(target)} = {self._kind(target)}({expression});"

    def _memory_access(self, parts: list[str], operands: list[str]) -> str:
        kind = parts[-1]
        count = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
        is_load = parts[0] == "ld"
        values, place = operands if is_load else operands[::-1]
        names = [name.strip() for name in values.strip("{}").split(",")]
        at = self._address(place)
        if "shared" in parts:
            at = f"u64(g_shared) + u32({at})"
        lines = [f"{{ {kind}* q = reinterpret_cast<{kind}*>(u64({at}));"]
        for i, name in enumerate(names[:count]):
            if is_load:
                lines.append(f"{self._name(name)} = {self._loaded(kind, name, i)};")
            else:
                lines.append(f"q[{i}] = {self._as(kind, name)};")
        return " ".join(lines) + " }"

    def _loaded(self, kind: str, name: str, i: int) -> str:
        target = self._kind(name)
        if (target[0] == "f") != (kind[0] == "f"):
            return f"bits<{target}>(q[{i}])"
        return f"{target}(q[{i}])"

    def _convert(self, parts: list[str], operands: list[str]) -> str:
        to, source = parts[-2], parts[-1]
        value = self._as(source, operands[1])
        if "rni" in parts:
            value = f"std::nearbyint({value})"
        return self._assign(operands[0], f"{to}({value})")

    def _move(self, parts: list[str], operands: list[str]) -> str:
        target, source = operands
        if target.startswith("{"):
            names = [name.strip() for name in target.strip("{}").split(",")]
            width = _width(parts[-1]) // len(names)
            return " ".join(
                self._assign(name, f"{self._value(source)} >> {width * i}")
                for i, name in enumerate(names)
            )
        if source.startswith("{"):
            names = [name.strip() for name in source.strip("{}").split(",")]
            width = _width(parts[-1]) // len(names)
            joined = " | ".join(
                f"u64(b{width}({self._value(name)})) << {width * i}" for i, name in enumerate(names)
            )
            return self._assign(target, joined)
        if self._is_register(source) and self._kind(source)[0] != self._kind(target)[0]:
            return f"{self._name(target)} = bits<{self._kind(target)}>({self._name(source)});"
        return self._assign(target, self._value(source))

    def _product(self, parts: list[str], operands: list[str]) -> str:
        kind, a, b = parts[-1], *(self._as(parts[-1], operand) for operand in operands[1:3])
        added = f" + {self._value(operands[3])}" if len(operands) > 3 else ""
        if "wide" in parts:
            wide = _WIDER[kind]
            return self._assign(operands[0], f"{wide}({a}) * {wide}({b}){added}")
        if "hi" in parts:
            wide = {"u32": "u64", "s32": "s64", "u64": "unsigned __int128", "s64": "__int128"}[kind]
            high = f"(({wide}){a} * ({wide}){b} >> {_width(kind)})"
            return self._assign(operands[0], f"{high}{added}")
        if kind[0] in "us":
            a, b = f"u64({a})", f"u64({b})"
        return self._assign(operands[0], f"{a} * {b}{added}")

    def _shift(self, parts: list[str], operands: list[str]) -> str:
        kind, width = parts[-1], _width(parts[-1])
        name = "left" if parts[0] == "shl" else "signed_right" if kind[0] == "s" else "right"
        value = self._as(kind, operands[1])
        return self._assign(
            operands[0], f"{name}({value}, u32({self._value(operands[2])}), {width})"
        )

    def _comparison(self, parts: list[str], operands: list[str]) -> str:
        kind, sign = parts[-1], _COMPARE[parts[1].removesuffix("u")]
        found = f"{self._as(kind, operands[1])} {sign} {self._as(kind, operands[2])}"
        if parts[2] in ("and", "or", "xor"):
            found = f"({found}) {_INFIX[parts[2]]} bool({self._value(operands[3])})"
        return self._assign(operands[0], found)

    def _plain(self, parts: list[str], operands: list[str]) -> str | None:
        """The remaining instructions that compute one value of the others."""
        kind, target = parts[-1], operands[0]
        a = [self._as(kind, operand) if i < 2 else self._value(operand)
             for i, operand in enumerate(operands[1:])]  # fmt: skip
        if parts[0] in _INFIX:
            return self._assign(target, f"{a[0]} {_INFIX[parts[0]]} {a[1]}")
        forms: dict[str, Callable[[], str]] = {
            "div": lambda: f"{a[0]} / {a[1]}",
            "rem": lambda: f"{a[0]} % {a[1]}",
            "min": lambda: f"{a[0]} < {a[1]} ? {a[0]} : {a[1]}",
            "max": lambda: f"{a[0]} < {a[1]} ? {a[1]} : {a[0]}",
            "neg": lambda: f"-{a[0]}",
            "abs": lambda: f"{a[0]} < 0 ? -{a[0]} : {a[0]}",
            "not": lambda: f"!{a[0]}" if kind == "pred" else f"~{a[0]}",
            "selp": lambda: f"{a[2]} ? {a[0]} : {a[1]}",
            "prmt": lambda: f"prmt({a[0]}, {a[1]}, u32({a[2]}))",
            "bfi": lambda: f"bfi({a[0]}, {a[1]}, u32({a[2]}), u32({a[3]}), {_width(kind)})",
            "bfe": lambda: f"bfe({a[0]}, u32({a[1]}), u32({a[2]}), {_width(kind)})",
            "lop3": lambda: f"lop3({a[0]}, {a[1]}, u32({a[2]}), u32({a[3]}))",
            "brev": lambda: f"reversed({a[0]})",
            "popc": lambda: f"__builtin_popcountll({a[0]})",
            "clz": lambda: f"{a[0]} ? __builtin_clz({a[0]}) : 32",
            "bfind": lambda: f"{a[0]} ? __builtin_clz({a[0]}) : -1"
            if "shiftamt" in parts
            else f"{a[0]} ? 31 - __builtin_clz({a[0]}) : -1",
            "cvta": lambda: self._cvta(parts, operands[1]),
            "shf": lambda: f"(u64(u32({a[1]})) << 32 | u32({a[0]})) "
            + (">> (u32(" if parts[1] == "r" else "<< (u32(")
            + f"{a[2]}) & 31)"
            + (" >> 32" if parts[1] == "l" else ""),
        }  # fmt: skip
        return self._assign(target, forms[parts[0]]()) if parts[0] in forms else None

    def _cvta(self, parts: list[str], operand: str) -> str:
        value = self._value(operand)
        if "shared" not in parts:
            return value
        return f"{value} - u64(g_shared)" if "to" in parts else f"{value} + u64(g_shared)"

    def _instruction(self, statement: Statement) -> str:
        parts, operands = statement.opcode.split("."), statement.operands
        special: dict[str, Callable[[list[str], list[str]], str]] = {
            **dict.fromkeys(("ld", "st"), self._memory_access),
            **dict.fromkeys(("mul", "mad"), self._product),
            **dict.fromkeys(("shl", "shr"), self._shift),
            "cvt": self._convert,
            "mov": self._move,
            "setp": self._comparison,
        }
        if parts[0] in special:
            text = special[parts[0]](parts, operands)
        else:
            found = self._plain(parts, operands)
            if found is None:
                raise ValueError(f"PTX has an instruction that is not known here: {statement}.")
            text = found
        return f"if ({self._value(statement.guard)}) {{ {text} }}" if statement.guard else text

    # ---- blocks ----

    def _registers_in(self, block: Block) -> tuple[set[str], set[str]]:
        """Those that are read before they are written here, and those that are written."""
        read: set[str] = set()
        written: set[str] = set()
        for statement in block.statements:
            found = [re.findall(r"%[A-Za-z_]+\d*(?![.\w])", text) for text in statement.operands]
            targets = _targets(statement)
            used = [name for i, names in enumerate(found) if i >= targets for name in names]
            used += re.findall(r"%[A-Za-z_]+\d*", statement.guard)
            if statement.guard:
                used += [name for names in found[:targets] for name in names]
            read |= set(used) - written
            written |= {name for names in found[:targets] for name in names}
        return read, written

    def _registers_between_blocks(self) -> set[str]:
        return {name for block in self._function.blocks for name in self._registers_in(block)[0]}

    def block(self, number: int) -> str:
        block = self._function.blocks[number]
        read, written = self._registers_in(block)
        loads = "".join(
            f"{self._kind(name)} {self._name(name)} = f.{self._name(name)}[l]; "
            for name in sorted(read)
        )
        loads += "".join(
            f"{self._kind(name)} {self._name(name)} = 0; " for name in sorted(written - read)
        )
        stores = "".join(
            f"f.{self._name(name)}[l] = {self._name(name)}; "
            for name in sorted(written & self._joined)
        )
        head = f"static u32 {self.step(number)}({self.frame}& f, u32 mask) {{ u32 taken = 0;\n"
        lanes = "for (u32 m = mask; m; m &= m - 1) { const u32 l = u32(__builtin_ctz(m));"
        body, last = [], block.statements[-1] if block.statements else Statement("", "", [])
        kind = last.opcode.split(".")[0]
        if kind == "call":
            return f"{head} {self._call(last)}\n return taken; }}\n"
        if kind in ("vote", "bar", "barrier", "activemask"):
            return f"{head} {self._joint(last, lanes)} return taken; }}\n"
        for statement in block.statements:
            name = statement.opcode.split(".")[0]
            if name == "brx":
                body.append(f"f.way[l] = u32({self._value(statement.operands[0])});")
            elif name in ("bra", "ret", "exit"):
                if statement.guard:
                    body.append(f"if ({self._value(statement.guard)}) taken |= 1u << l;")
            else:
                body.append(self._instruction(statement))
        inner = "\n  ".join(body)
        return f"{head} {lanes} {loads}\n  {inner}\n  {stores} }}\n return taken; }}\n"

    def _call(self, statement: Statement) -> str:
        *before, name, given = (
            statement.operands
            if len(statement.operands) > 1
            else [
                *statement.operands,
                "()",
            ]
        )
        params = [f"f.{part.strip()}" for part in given.strip("() ").split(",") if part.strip()]
        for part in (*given.strip("() ").split(","), *(text.strip("() ") for text in before)):
            if part.strip():
                self._address(f"[{part.strip()}]")
        result = f"f.{before[0].strip('() ')}" if before else "nullptr"
        return f"call_{name}({', '.join(['mask', result, *params])});"

    def _joint(self, statement: Statement, lanes: str) -> str:
        parts, operands = statement.opcode.split("."), statement.operands
        if parts[0] in ("bar", "barrier"):
            return ""
        if parts[0] == "activemask":
            return f"{lanes} f.{self._name(operands[0])}[l] = mask; }}"
        source = operands[1].lstrip("!")
        flip = "!" if operands[1].startswith("!") else ""
        member = operands[2]
        asked = f"f.{self._name(member)}[l]" if self._is_register(member) else member
        check = f"{lanes} meet_all(mask, u32({asked})); }}"
        vote = f"if ({flip}f.{self._name(source)}[l]) all |= 1u << l;"
        ballot = f"{check} u32 all = 0; {lanes} {vote} }}"
        result = {"any": "all != 0", "all": "all == mask", "ballot": "all"}[parts[2]]
        return f"{ballot} {lanes} f.{self._name(operands[0])}[l] = {result}; }}"

    # ---- the function ----

    @property
    def frame(self) -> str:
        return f"F_{self._function.name}"

    def step(self, number: int) -> str:
        return f"s{number}_{self._function.name}"

    def declaration(self) -> str:
        params = "".join(f", u8* p{i}" for i in range(len(self._function.params)))
        return f"static void call_{self._function.name}(u32 mask, u8* result{params})"

    def text(self) -> str:
        function = self._function
        blocks = [self.block(number) for number in range(len(function.blocks))]
        edges, nodes = [], []
        for block in function.blocks:
            nodes.append(f"{{{len(edges)}, {len(block.successors)}, {block.meets_at}}}")
            edges += block.successors
        steps = ", ".join(self.step(number) for number in range(len(blocks)))
        body = [
            f"static {self.frame} frames[4]; static u32 depth = 0;",
            f"{self.frame}& f = frames[depth++]; f.result = result;",
            *(f"f.{name} = p{i};" for i, name in enumerate(function.params)),
            f"static u32 (*const steps[])({self.frame}&, u32) = {{{steps}}};",
            f"static const Node nodes[] = {{{', '.join(nodes)}}};",
            f"static const int edges[] = {{{', '.join(map(str, edges))}}};",
            f"run(f, steps, nodes, edges, mask, counts_{function.name}); --depth;",
        ]
        return (
            f"static u64 counts_{function.name}[{2 * len(blocks)}];\n{self._frame_text()}"
            + "".join(blocks)
            + f"{self.declaration()} {{\n"
            + "\n".join(body)
            + "}\n"
            + f'extern "C" u64* read_{function.name}() {{ return counts_{function.name}; }}\n'
        )

    def _frame_text(self) -> str:
        own = [f"u8* {name};" for name in self._function.params]
        own += [
            f"alignas(16) u8 {name}[{32 * _stride(size)}];"
            for name, size in sorted(self._params.items())
            if name not in self._function.params
        ]
        own += [f"{self._kind(name)} {self._name(name)}[32];" for name in sorted(self._joined)]
        own += [
            f"alignas(16) u8 {memory.name}[32][{_stride(memory.num_bytes)}];"
            for memory in self._function.locals
            if memory.space == "local"
        ]
        return f"struct {self.frame} {{ u8* result; u32 way[32]; {' '.join(own)} }};\n"


def _targets(statement: Statement) -> int:
    """How many operands an instruction writes."""
    kind = statement.opcode.split(".")[0]
    return 0 if kind in ("st", "bra", "brx", "ret", "exit", "call", "bar", "barrier") else 1
