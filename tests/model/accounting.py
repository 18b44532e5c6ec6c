"""The guard's accounting protocol as a small machine of states, for looking at all of them.

Each step is one access to shared memory, one lock call or one driver call, as in native/guard
(account.c, region.c). A process can be killed between any two steps; the kernel then gives back
its memory and, by a step of its own, its locks. Sizes are small numbers without a unit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import NamedTuple

FREE = -1


class Stage(IntEnum):
    """What a process will do by its next step."""

    TAKE_SLOT = auto()
    CLEAR_SLOT = auto()
    IDLE = auto()
    LOOK = auto()  # adds up before it asks for anything
    ADD = auto()
    SUM = auto()  # adds up again, its own request included
    TAKE_BACK = auto()
    ALLOCATE = auto()
    FREE_MEMORY = auto()
    UNCHARGE = auto()
    SWEEP = auto()
    SWEEP_CLEAR = auto()
    SWEEP_UNLOCK = auto()
    DYING = auto()
    UNLOCKING = auto()
    DEAD = auto()


class Process(NamedTuple):
    """One process; `at` and `total` belong to the loop that it is in."""

    stage: Stage = Stage.TAKE_SLOT
    slot: int = FREE
    held: int = 0  # by the card's account
    allocations_left: int = 0
    at: int = 0
    total: int = 0


class State(NamedTuple):
    """All that is shared, and all processes."""

    words: tuple[int, ...]
    locks: tuple[int, ...]  # process number by slot
    processes: tuple[Process, ...]


@dataclass(frozen=True)
class Protocol:
    """The guard's rules; each flag turns one of them into a known mistake."""

    limit: int = 3
    size: int = 2  # of every allocation
    slots: int = 2
    processes: int = 2
    allocations: int = 2  # that each process tries
    sums_after_adding: bool = True
    sweeps_under_lock: bool = True
    frees_before_uncharging: bool = True
    memory_goes_before_the_lock: bool = True

    def start(self) -> State:
        """Nobody has begun."""
        slots = (0,) * self.slots
        process = Process(allocations_left=self.allocations)
        return State(slots, (FREE,) * self.slots, (process,) * self.processes)

    def moves(self, state: State) -> Iterator[State]:
        """Every state that one step of one process, or one kill, leads to."""
        for number, process in enumerate(state.processes):
            if process.stage is Stage.DEAD:
                continue
            yield from self._step(state, number, process)
            if process.stage < Stage.DYING:
                yield _with(state, number, process._replace(stage=self._first_of_death()))

    def _first_of_death(self) -> Stage:
        return Stage.DYING if self.memory_goes_before_the_lock else Stage.UNLOCKING

    def _step(self, state: State, number: int, process: Process) -> Iterator[State]:
        yield from _STEPS[process.stage](self, state, number, process)

    def take_slot(self, state: State, number: int, process: Process) -> Iterator[State]:
        """The first slot whose lock is free; a process that finds none goes away."""
        if process.at == self.slots:
            yield _with(state, number, process._replace(stage=Stage.DEAD))
        elif state.locks[process.at] == FREE:
            taken = process._replace(stage=Stage.CLEAR_SLOT, slot=process.at)
            yield _with(_locked(state, process.at, number), number, taken)
        else:
            yield _with(state, number, process._replace(at=process.at + 1))

    def clear_slot(self, state: State, number: int, process: Process) -> Iterator[State]:
        """What a dead owner left there is gone."""
        cleared = _charged(state, process.slot, -state.words[process.slot])
        yield _with(cleared, number, process._replace(stage=Stage.IDLE))

    def idle(self, state: State, number: int, process: Process) -> Iterator[State]:
        """It may allocate, free what it has, or stay as it is."""
        if process.allocations_left:
            left = process.allocations_left - 1
            look = process._replace(stage=Stage.LOOK, at=0, total=0, allocations_left=left)
            yield _with(state, number, look)
        if process.held:
            first = Stage.FREE_MEMORY if self.frees_before_uncharging else Stage.UNCHARGE
            yield _with(state, number, process._replace(stage=first))

    def look(self, state: State, number: int, process: Process) -> Iterator[State]:
        """One word more; after the last: is there room?"""
        total = process.total + state.words[process.at]
        following = process._replace(at=process.at + 1, total=total)
        if following.at == self.slots:
            room = total + self.size <= self.limit
            following = following._replace(stage=Stage.ADD if room else Stage.SWEEP, at=0)
        yield _with(state, number, following)

    def add(self, state: State, number: int, process: Process) -> Iterator[State]:
        """The own word tells the others."""
        stage = Stage.SUM if self.sums_after_adding else Stage.ALLOCATE
        added = _charged(state, process.slot, self.size)
        yield _with(added, number, process._replace(stage=stage, at=0, total=0))

    def sum(self, state: State, number: int, process: Process) -> Iterator[State]:
        """One word more; after the last: is it still within the limit?"""
        total = process.total + state.words[process.at]
        following = process._replace(at=process.at + 1, total=total)
        if following.at == self.slots:
            stage = Stage.ALLOCATE if total <= self.limit else Stage.TAKE_BACK
            following = following._replace(stage=stage)
        yield _with(state, number, following)

    def take_back(self, state: State, number: int, process: Process) -> Iterator[State]:
        """Too much: the own word as it was, and a look for dead ones."""
        less = _charged(state, process.slot, -self.size)
        yield _with(less, number, process._replace(stage=Stage.SWEEP, at=0))

    def allocate(self, state: State, number: int, process: Process) -> Iterator[State]:
        """The driver gives memory, or refuses for reasons of its own."""
        given = process._replace(stage=Stage.IDLE, held=process.held + self.size)
        yield _with(state, number, given)
        yield _with(state, number, process._replace(stage=Stage.UNCHARGE))

    def free_memory(self, state: State, number: int, process: Process) -> Iterator[State]:
        """The driver takes memory back."""
        stage = Stage.UNCHARGE if self.frees_before_uncharging else Stage.IDLE
        freed = process._replace(stage=stage, held=process.held - self.size)
        yield _with(state, number, freed)

    def uncharge(self, state: State, number: int, process: Process) -> Iterator[State]:
        """The own word follows."""
        early = not self.frees_before_uncharging and process.held
        stage = Stage.FREE_MEMORY if early else Stage.IDLE
        less = _charged(state, process.slot, -self.size)
        yield _with(less, number, process._replace(stage=stage))

    def sweep(self, state: State, number: int, process: Process) -> Iterator[State]:
        """Tries the lock of the next slot that is charged; a dead owner's is free."""
        if process.at == self.slots:
            yield _with(state, number, process._replace(stage=Stage.IDLE))
            return
        skipped = process._replace(at=process.at + 1)
        own = process.at == process.slot
        if own or not state.words[process.at] or state.locks[process.at] != FREE:
            yield _with(state, number, skipped)
        else:
            found = _locked(state, process.at, number) if self.sweeps_under_lock else state
            yield _with(found, number, process._replace(stage=Stage.SWEEP_CLEAR))

    def sweep_clear(self, state: State, number: int, process: Process) -> Iterator[State]:
        """Zeroes what the dead owner had."""
        cleared = _charged(state, process.at, -state.words[process.at])
        yield _with(cleared, number, process._replace(stage=Stage.SWEEP_UNLOCK))

    def sweep_unlock(self, state: State, number: int, process: Process) -> Iterator[State]:
        """Lets the slot go."""
        opened = _locked(state, process.at, FREE) if self.sweeps_under_lock else state
        following = process._replace(stage=Stage.SWEEP, at=process.at + 1)
        yield _with(opened, number, following)

    def dying(self, state: State, number: int, process: Process) -> Iterator[State]:
        """The kernel closes the driver's descriptors: the memory is the card's again."""
        last = Stage.UNLOCKING if self.memory_goes_before_the_lock else Stage.DEAD
        yield _with(state, number, process._replace(stage=last, held=0))

    def unlocking(self, state: State, number: int, process: Process) -> Iterator[State]:
        """And the region's: all its locks are free."""
        last = Stage.DEAD if self.memory_goes_before_the_lock else Stage.DYING
        locks = tuple(FREE if owner == number else owner for owner in state.locks)
        yield _with(state._replace(locks=locks), number, process._replace(stage=last))


_STEPS = {
    Stage.TAKE_SLOT: Protocol.take_slot,
    Stage.CLEAR_SLOT: Protocol.clear_slot,
    Stage.IDLE: Protocol.idle,
    Stage.LOOK: Protocol.look,
    Stage.ADD: Protocol.add,
    Stage.SUM: Protocol.sum,
    Stage.TAKE_BACK: Protocol.take_back,
    Stage.ALLOCATE: Protocol.allocate,
    Stage.FREE_MEMORY: Protocol.free_memory,
    Stage.UNCHARGE: Protocol.uncharge,
    Stage.SWEEP: Protocol.sweep,
    Stage.SWEEP_CLEAR: Protocol.sweep_clear,
    Stage.SWEEP_UNLOCK: Protocol.sweep_unlock,
    Stage.DYING: Protocol.dying,
    Stage.UNLOCKING: Protocol.unlocking,
}


def _with(state: State, number: int, process: Process) -> State:
    processes = state.processes
    return state._replace(processes=(*processes[:number], process, *processes[number + 1 :]))


def _locked(state: State, slot: int, owner: int) -> State:
    return state._replace(locks=(*state.locks[:slot], owner, *state.locks[slot + 1 :]))


def _charged(state: State, slot: int, change: int) -> State:
    word = max(state.words[slot] + change, 0)
    return state._replace(words=(*state.words[:slot], word, *state.words[slot + 1 :]))


def faults(protocol: Protocol, state: State) -> Iterator[str]:
    """What must never be so."""
    if sum(process.held for process in state.processes) > protocol.limit:
        yield "more than the limit by the card's account"
    for process in state.processes:
        alive = process.slot != FREE and process.stage < Stage.DYING
        if alive and state.words[process.slot] < process.held:
            yield "a living process lost its charge"
    if all(process.stage is Stage.DEAD for process in state.processes):
        swept = [
            0 if lock == FREE else word for word, lock in zip(state.words, state.locks, strict=True)
        ]
        if any(swept):
            yield "something is left charged after all died and one sweep"


@dataclass(frozen=True)
class Exploration:
    """All states that can be reached, or the first that must not be."""

    states: int
    fault: str | None
    refused: bool  # some process met the limit


def explore(protocol: Protocol) -> Exploration:
    """Walk through every interleaving and every kill."""
    seen = {protocol.start()}
    waiting = [protocol.start()]
    refused = False
    while waiting:
        state = waiting.pop()
        for fault in faults(protocol, state):
            return Exploration(len(seen), fault, refused)
        refused |= any(process.stage is Stage.TAKE_BACK for process in state.processes)
        for following in protocol.moves(state):
            if following not in seen:
                seen.add(following)
                waiting.append(following)
    return Exploration(len(seen), None, refused)
