"""Makes the Python side of native/include/*.def; with --check, tells whether it is current."""

import ast
import re
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "native" / "include"
CODES = {"uint8_t": "B", "uint32_t": "I", "uint64_t": "Q", "atomic_u32": "I", "atomic_u64": "Q"}
LINE = re.compile(r"^(CONST|STRUCT|END|FIELDS|FIELD|ARRAY|PATH)\((.*?)\)\s*$")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass
class Layouts:
    """What one .def file says: numbers, and records with offsets in bytes."""

    constants: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    offsets: dict[str, dict[str, tuple[int, str]]] = field(default_factory=dict)

    def number(self, text: str) -> int:
        """The value of a literal or of a constant named before."""
        if text in self.constants:
            return self.constants[text]
        return int(ast.literal_eval(text.rstrip("u")))


def rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The macro calls of a .def file, in order."""
    for line in COMMENT.sub("", path.read_text()).splitlines():
        if match := LINE.match(line.strip()):
            yield match[1], [part.strip() for part in match[2].split(",", 2)]


def read_layouts(path: Path) -> Layouts:
    """Offsets and sizes as a C compiler lays them out; all fields are naturally aligned."""
    layouts, record, offset = Layouts(), "", 0
    for macro, parts in rows(path):
        if macro == "CONST":
            layouts.constants[parts[0]] = layouts.number(parts[1])
        elif macro == "STRUCT":
            record, offset = parts[0], 0
            layouts.offsets[record] = {}
        elif macro == "END":
            layouts.sizes[record] = offset
        else:
            code, size = place(layouts, macro, parts)
            layouts.offsets[record][parts[1]] = (offset, code)
            offset += size
    return layouts


def place(layouts: Layouts, macro: str, parts: list[str]) -> tuple[str, int]:
    """The struct code and the size in bytes of one field."""
    count = layouts.number(parts[2]) if len(parts) > 2 else 1
    if macro == "ARRAY":
        return parts[0], layouts.sizes[parts[0]] * count
    code = CODES[parts[0]]
    size = struct.calcsize(f"<{code}")
    if code == "B":
        code = "s"
    return (f"{count}{code}" if macro == "FIELDS" else code), size * count


def layout_module(path: Path) -> str:
    """The text of the Python module for one layout .def file."""
    layouts = read_layouts(path)
    lines = [
        f'"""Offsets and sizes of native/include/{path.name}; made by tools/gen_contracts.py."""',
        "",
    ]
    lines += [f"{name} = {value}" for name, value in layouts.constants.items()]
    for record, fields in layouts.offsets.items():
        upper = record.upper()
        lines += ["", f"{upper}_BYTES = {layouts.sizes[record]}"]
        for name, (offset, code) in fields.items():
            value = str(offset) if code in layouts.sizes else f'({offset}, "<{code}")'
            lines.append(f"{upper}_{name.upper()} = {value}")
    return "\n".join(lines) + "\n"


def paths_module() -> str:
    """The text of the Python module for host_paths.def."""
    lines = ['"""Paths of native/include/host_paths.def; made by tools/gen_contracts.py."""', ""]
    for macro, parts in rows(INCLUDE / "host_paths.def"):
        assert macro == "PATH", macro
        lines.append(f"{parts[0]} = {parts[1]}")
    return "\n".join(lines) + "\n"


def outputs() -> dict[Path, str]:
    """Every generated file and what must be in it."""
    source = ROOT / "src" / "casaba"
    return {
        source / "wire" / "_policy_layout.py": layout_module(INCLUDE / "policy.def"),
        source / "wire" / "_region_layout.py": layout_module(INCLUDE / "region.def"),
        source / "wire" / "_schedule_layout.py": layout_module(INCLUDE / "schedule.def"),
        source / "settings" / "_host_paths.py": paths_module(),
    }


def main() -> int:
    """Write, or compare; exit code 1 names the files that are not current."""
    check = "--check" in sys.argv
    stale = [p for p, text in outputs().items() if not p.exists() or p.read_text() != text]
    for path in stale:
        if check:
            print(f"{path.relative_to(ROOT)} is not current: run `make generate`", file=sys.stderr)
        else:
            path.write_text(outputs()[path])
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
