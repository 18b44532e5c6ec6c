"""`casaba doctor`: what is wrong with this cluster or node, and what to do."""

import asyncio
import logging
from collections.abc import Sequence

import msgspec
from cyclopts import App, CycloptsError

from casaba.cli.doctor_flags import THIS, ClusterFlags, HostFlags, Question, settings_from
from casaba.cli.doctor_scope import Examination, examination
from casaba.cli.doctor_view import print_problems, print_table, report
from casaba.cli.exits import exit_code_of
from casaba.errors import InvalidInput
from casaba.policy.diagnosis import exit_code

app = App(name="casaba doctor", help="What is wrong, and what to do.", version_flags=[])

_QUESTION, _CLUSTER, _HOST = Question(), ClusterFlags(), HostFlags()


@app.default
def doctor(
    *, asked: Question = _QUESTION, cluster: ClusterFlags = _CLUSTER, host: HostFlags = _HOST
) -> int:
    """What is wrong with this cluster or node, and what to do.

    Looks at the cluster that kubectl would talk to, and changes nothing there; where there is
    none, at this machine. Exit code: 0 all is well, 1 something is wrong, 2 wrong usage,
    3 nothing is wrong, but something could not be looked at.
    """
    asked.check()
    settings = settings_from(asked, cluster, host)
    return _tell(examination(asked, settings), asked.json)


def _tell(examined: Examination, json: bool) -> int:
    found = asyncio.run(examined.work)
    if json:
        print(msgspec.json.encode(report(examined.scope, found)).decode(), flush=True)
    elif examined.scope.startswith("pre"):
        print_problems(found)
    else:
        print_table(examined.scope, found)
    return exit_code(found)


def _with_node_named(arguments: Sequence[str]) -> list[str]:
    """`--node` without a name gets the one that means this machine."""
    named: list[str] = []
    for position, argument in enumerate(arguments):
        following = arguments[position + 1 : position + 2]
        is_bare = argument == "--node" and (not following or following[0].startswith("-"))
        named.append(f"--node={THIS}" if is_bare else argument)
    return named


def main(arguments: Sequence[str]) -> int:
    """Run; returns the exit code."""
    logging.getLogger("casaba").addHandler(logging.NullHandler())  # findings tell all there is
    codes: list[int] = []

    def parse_and_run() -> None:
        code = _parsed(_with_node_named(arguments))
        codes.append(code if isinstance(code, int) else 0)  # None: help was shown

    return exit_code_of("doctor", parse_and_run) or sum(codes)


def _parsed(arguments: list[str]) -> object:
    """What the command returns; wrong usage must not end with 1, which has a meaning."""
    try:
        return app(arguments, result_action="return_value", exit_on_error=False, print_error=False)
    except CycloptsError as error:
        raise InvalidInput(f"{str(error).rstrip('.')}; see casaba doctor --help") from error
