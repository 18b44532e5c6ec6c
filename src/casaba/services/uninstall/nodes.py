"""Ends the agents and has their nodes cleaned."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

import msgspec

from casaba.errors import CasabaError, HostError, InvalidInput
from casaba.kube import (
    DAEMON_SETS,
    Forbidden,
    Invalid,
    KubeClient,
    KubeError,
    Unauthorized,
    load_config,
)
from casaba.policy.removal import (
    AwaitCleaned,
    AwaitGone,
    Cleaned,
    ClusterSeen,
    CreateCleaner,
    Delete,
    Step,
    kept,
    last_step,
    next_step,
    uninstalled_with,
)
from casaba.services.uninstall.workloads import Workloads
from casaba.settings.uninstall import UninstallSettings

Tell = Callable[[str], None]

_TOLD = 10
_CLEAN = ("node-clean", "--host-root=/host")

_TAKE_BACK_S = 10.0
"""For the last request of an uninstall that is late already."""

_LASTING = (Forbidden, Unauthorized, Invalid)
"""Answers that do not become others by waiting."""


class NodesNotClean(CasabaError):
    """Some nodes could not be cleaned in time."""


async def clean_nodes(settings: UninstallSettings, tell: Tell) -> None:
    """End the agents, run the cleaner on their nodes, delete it; done again it goes on.

    Nodes that are not Ready are told and left out.

    Raises NodesNotClean with each node and why, InvalidInput, HostError, KubeError.
    """
    cleaner = read_cleaner(settings)
    async with KubeClient(load_config(settings.kubeconfig)) as client:
        workloads = Workloads(client, settings.namespace, agent=settings.agent, cleaner=cleaner)
        await NodeCleaning(workloads, settings, tell, by_hand=by_hand(cleaner)).run()


def read_cleaner(settings: UninstallSettings) -> Mapping[str, Any]:
    """The cleaner's DaemonSet; raises InvalidInput and HostError."""
    try:
        content = settings.cleaner.read_bytes()
    except OSError as error:
        raise HostError(f"can't read --cleaner {settings.cleaner}: {error.strerror}") from error
    try:
        found = msgspec.json.decode(content, type=dict[str, Any])
        kind, name = found["kind"], found["metadata"]["name"]
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise InvalidInput(f"--cleaner {settings.cleaner}: not a DaemonSet: {error}") from error
    if kind != DAEMON_SETS.kind or not isinstance(name, str):
        raise InvalidInput(f"--cleaner {settings.cleaner}: it is a {kind}, give a DaemonSet")
    if name == settings.agent:
        raise InvalidInput(f"--cleaner {settings.cleaner}: it has the agent's name {name}")
    return found


def by_hand(cleaner: Mapping[str, Any]) -> str:
    """The command that does on one node what the cleaner does; a word for what it does not say."""
    try:
        clean = cleaner["spec"]["template"]["spec"]["initContainers"][0]
        image, words = str(clean["image"]), tuple(map(str, clean["args"]))
    except (KeyError, IndexError, TypeError):
        image, words = "IMAGE_OF_THE_NODE_AGENT", _CLEAN
    command = " ".join(("casaba", *words))
    return f"kubectl debug node/NODE --profile=sysadmin --image={image} -- {command}"


class DaemonSets(Protocol):
    """The agent's and the cleaner's; raises KubeError."""

    async def look(self) -> ClusterSeen:
        """What there is."""

    async def carry_out(self, step: Delete | CreateCleaner) -> None:
        """Do it, unless it was done meanwhile."""


class NodeCleaning:
    """One run, with one deadline for all steps."""

    def __init__(
        self, workloads: DaemonSets, settings: UninstallSettings, tell: Tell, *, by_hand: str = ""
    ) -> None:
        self._workloads = workloads
        self._settings = settings
        self._tell = tell
        self._by_hand = by_hand
        self._told: Step | None = None
        self._trouble: tuple[str, ...] = ()
        self._is_clean = False

    async def run(self) -> None:
        """Until every node that answers is clean.

        Raises NodesNotClean, and KubeError that waiting won't end.

        Pods of the cleaner that take long to end are told, no more: their work is done.
        """
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                done = await self._until_done(next_step)
                self._is_clean = True
                self._tell(told_clean(done, self._by_hand))
                await self._until_done(last_step)
        except TimeoutError as error:
            await self._take_cleaner_back()
            if not self._is_clean:
                raise NodesNotClean(self._refusal()) from error
            self._tell(f"not waited for: {few(self._trouble)}")

    async def _until_done(self, decide: Callable[[ClusterSeen], Step]) -> Cleaned:
        while True:
            try:
                step = decide(await self._workloads.look())
                if isinstance(step, Cleaned):
                    return step
                self._note(step)
                if isinstance(step, Delete | CreateCleaner):
                    await self._workloads.carry_out(step)
            except _LASTING:
                raise
            except KubeError as error:
                self._trouble = (str(error),)
            await asyncio.sleep(self._settings.poll_s)

    def _note(self, step: Step) -> None:
        if isinstance(step, AwaitGone | AwaitCleaned):
            self._trouble = step.waiting
        if step != self._told:
            self._tell(told(step))
            self._told = step

    async def _take_cleaner_back(self) -> None:
        """Nobody else would; what it did not clean, another uninstall will."""
        with suppress(KubeError, TimeoutError):
            async with asyncio.timeout(_TAKE_BACK_S):
                cleaner = (await self._workloads.look()).cleaner
                if cleaner is not None:
                    step = Delete(part="cleaner", uid=cleaner.metadata.uid)
                    await self._workloads.carry_out(step)

    def _refusal(self) -> str:
        release = self._settings.release
        return (
            f"not done after {self._settings.timeout_s:g} s: {few(self._trouble)}. Mend these and "
            "uninstall again, it goes on from here; or leave the nodes as they are: "
            f"{uninstalled_with(release, 'uninstall.cleanNodes=false')}; or keep casaba: "
            f"{kept(release)}"
        )


def told(step: Step) -> str:
    """A step as a line for people."""
    match step:
        case Delete(part="agent"):
            return "ending the agents"
        case Delete():
            return "removing the cleaner"
        case CreateCleaner():
            return "cleaning the nodes"
        case AwaitGone(part=part, waiting=waiting):
            return f"waiting for the end of the {part}: {few(waiting)}"
        case AwaitCleaned(waiting=waiting):
            return f"waiting for nodes: {few(waiting)}"
        case Cleaned():
            return told_clean(step, "")


def told_clean(done: Cleaned, command: str) -> str:
    """What became of the nodes, and how those that were away are cleaned later."""
    if not done.silent:
        return "every node is clean"
    return (
        f"every node that answers is clean; not cleaned, since they are not Ready: "
        f"{few(done.silent)}. Their pods stay in Terminating until they are back or their Node "
        f"objects are deleted. Clean each when it is back: {command}"
    )


def few(texts: tuple[str, ...]) -> str:
    """The first of many."""
    more = [f"and {len(texts) - _TOLD} more"] if len(texts) > _TOLD else []
    return "; ".join([*texts[:_TOLD], *more]) or "the cluster has not been seen yet"
