"""Makes src/casaba/wire/_proto from proto/; with --check, tells whether it is current."""

import filecmp
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "src" / "casaba" / "wire" / "_proto"


def generate(target: Path) -> None:
    """Messages only; the services are spelt in net/, where the sockets are."""
    target.mkdir(exist_ok=True)
    protos = sorted(str(path) for path in (ROOT / "proto").glob("*.proto"))
    out = [f"--python_out={target}", f"--pyi_out={target}"]
    if protoc.main(["protoc", f"-I{ROOT / 'proto'}", *out, *protos]) != 0:
        sys.exit("protoc failed")
    init = '"""Messages made from proto/ by tools/gen_proto.py."""\n'
    (target / "__init__.py").write_text(init)


def main() -> int:
    """Write, or compare; exit code 1 names the files that are not current."""
    if "--check" not in sys.argv:
        generate(TARGET)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / "fresh"
        generate(fresh)
        names = sorted(path.name for path in fresh.iterdir() if path.is_file())
        _, different, missing = filecmp.cmpfiles(fresh, TARGET, names, shallow=False)
    for name in different + missing:
        print(f"wire/_proto/{name} is not current: run `make generate`", file=sys.stderr)
    return 1 if different + missing else 0


if __name__ == "__main__":
    sys.exit(main())
