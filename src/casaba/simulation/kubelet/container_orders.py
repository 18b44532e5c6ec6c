"""Gathers what a container needs: CDI specs, ConfigMaps, Secrets, volumes."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from casaba.kube import CONFIG_MAPS, SECRETS, KubeClient, KubeError, NotFound
from casaba.node.files import make_folder
from casaba.settings.simulation import SimulatedKubeletSettings
from casaba.simulation.kubelet.cdi_devices import ContainerEdits, Mount, UnresolvableDevices
from casaba.simulation.kubelet.cdi_specs import read_devices
from casaba.simulation.kubelet.claims import PodClaims
from casaba.simulation.kubelet.container_plan import (
    ContainerFolders,
    ContainerNotCreatable,
    ContainerPlan,
)
from casaba.simulation.kubelet.container_words import (
    ContainerNotConfigurable,
    Sources,
    sources_of,
)
from casaba.simulation.kubelet.image_names import check_image_name, image_told
from casaba.simulation.kubelet.processes import ProcessOrder
from casaba.simulation.kubelet.volumes import container_mounts, decoded_source, volume_sources

Object = Mapping[str, Any]

NOT_SIMULATED = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle")
"""Fields of a container that change nothing here; who sets them is told so."""

_RESOURCES = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS}


class ContainerOrders:
    """Makes the orders of one pod's containers."""

    def __init__(
        self,
        client: KubeClient,
        claims: PodClaims,
        settings: SimulatedKubeletSettings,
        folder: Path,
    ) -> None:
        self._client = client
        self._claims = claims
        self._settings = settings
        self._folder = folder

    async def check_volumes(self, pod: Object, *, isolated: bool) -> None:
        """Make the pod's volumes; raises VolumeNotMountable and HostError."""
        sources = await self._read(pod, volume_sources(pod))
        spec = pod["spec"]
        for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
            self._volumes(pod, container, sources, isolated=isolated)

    async def order(
        self,
        pod: Object,
        container: Object,
        *,
        isolated: bool,
        say: Callable[[str, str, str], None],
    ) -> ProcessOrder:
        """What the container is to run now; raises CasabaError when it can't be made."""
        check_image_name(container["image"])
        say("Normal", "Pulled", image_told(container["image"], self._settings.images))
        sources = await self._read(pod, {*sources_of(pod), *volume_sources(pod)})
        edits = await self._edits(pod, container)
        if edits.hooks:
            text = "not run by the simulated kubelet: CDI hooks"
            say("Normal", "HooksLeftOut", f"{text} {'; '.join(edits.hooks)}")
        if left_out := [field for field in NOT_SIMULATED if container.get(field)]:
            say("Normal", "LeftOut", f"the simulated kubelet knows no {', '.join(left_out)}")
        own = self._folder / "containers" / container["name"]
        folders = ContainerFolders(view=own / "view", scratch=own / "root")
        make_folder(folders.scratch)
        plan = ContainerPlan(
            pod=pod,
            container=container,
            edits=edits,
            sources=sources,
            volumes=self._volumes(pod, container, sources, isolated=isolated),
            folders=folders,
            settings=self._settings,
            isolated=isolated,
        )
        return plan.order()

    async def _edits(self, pod: Object, container: Object) -> ContainerEdits:
        uses = self._claims.uses(pod, container)
        ids = [id_ for use in uses for _, device in use.devices() for id_ in device.cdi_ids]
        if not ids:
            return ContainerEdits()
        devices = await asyncio.to_thread(read_devices, self._settings.cdi_dirs)
        try:
            return devices.edits(ids)
        except UnresolvableDevices as error:
            raise ContainerNotCreatable(str(error)) from error

    def _volumes(
        self, pod: Object, container: Object, sources: Sources, *, isolated: bool
    ) -> tuple[Mount, ...]:
        folder = self._folder / "volumes"
        return container_mounts(pod, container, folder, sources, isolated=isolated)

    async def _read(self, pod: Object, wanted: Iterable[tuple[str, str]]) -> Sources:
        """ConfigMaps and Secrets that exist; raises ContainerNotConfigurable if unreachable."""
        found = {}
        for kind, name in dict.fromkeys(wanted):
            try:
                namespace = pod["metadata"]["namespace"]
                object_ = await self._client.get(_RESOURCES[kind], name, namespace=namespace)
            except NotFound:
                continue
            except KubeError as error:
                raise ContainerNotConfigurable(f"can't read {kind} {name}: {error}") from error
            found[kind, name] = decoded_source(kind, object_)
        return found
