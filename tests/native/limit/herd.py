"""Runs inside a slice: processes that take and give memory at random, some killed at random.

`python herd.py PROGRAM PROCESSES SECONDS KILLS SEED`; prints what it did as its last line.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time

REFUSED = b"cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY\n"


class Herd:
    """So many processes, each replaced when it ends."""

    def __init__(self, program: str, processes: int, seed: int) -> None:
        self._program = program
        self._seed = seed
        self._members = [self._start() for _ in range(processes)]

    def _start(self) -> subprocess.Popen[bytes]:
        self._seed += 1
        sizes = ["--max-mib=700", "--blocks=6", "--threads=2"]
        command = [self._program, "--seconds=0", *sizes, f"--seed={self._seed}"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def replace_one(self, chance: random.Random) -> None:
        """Kill any, and start another in its place."""
        number = chance.randrange(len(self._members))
        self._end(self._members[number])
        self._members[number] = self._start()

    def replace_refused(self) -> None:
        """Start anew what found no room even for its context; ends this program for other ends."""
        for number, member in enumerate(self._members):
            if member.poll() is None:
                continue
            _, said = member.communicate()
            if said != REFUSED:
                sys.exit(f"a process ended by itself with {member.returncode}: {said!r}")
            self._members[number] = self._start()

    def end(self) -> None:
        """Kill all."""
        for member in self._members:
            self._end(member)

    @staticmethod
    def _end(member: subprocess.Popen[bytes]) -> None:
        member.kill()
        member.communicate()


def main(program: str, processes: int, seconds: float, kills: int, seed: int) -> None:
    """Keep so many processes for so long, killing one of them now and then."""
    chance = random.Random(seed)
    herd = Herd(program, processes, seed)
    try:
        for _ in range(kills):
            time.sleep(seconds / kills)
            herd.replace_refused()
            herd.replace_one(chance)
    finally:
        herd.end()
    print(f"{kills} killed", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
