"""The volumes of a pod, as folders that are bound into its containers' namespaces.

Without namespaces there is no way to bring a volume to its path: such pods are refused with a
sentence. The service account's own volume is left out in both cases: nothing here mounts tokens.
"""

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from casaba.errors import CasabaError
from casaba.node.files import make_folder, write_whole
from casaba.simulation.kubelet.cdi_devices import Mount
from casaba.simulation.kubelet.container_words import Sources

Object = Mapping[str, Any]

_TOKEN_VOLUME_PREFIX = "kube-api-access-"
_SECRET_MODE = 0o644


class VolumeNotMountable(CasabaError):
    """A volume that this kubelet can't mount; the pod waits, and is told why."""


def volume_sources(pod: Object) -> Iterator[tuple[str, str]]:
    """(kind, name) of every ConfigMap and Secret that a volume of the pod shows."""
    for volume in _volumes(pod).values():
        if reference := volume.get("configMap"):
            yield "ConfigMap", reference.get("name", "")
        if reference := volume.get("secret"):
            yield "Secret", reference.get("secretName", "")


def container_mounts(
    pod: Object, container: Object, folder: Path, sources: Sources, *, isolated: bool
) -> tuple[Mount, ...]:
    """The mounts of a container's volumes, with their folders made below `folder`.

    Raises VolumeNotMountable and HostError.
    """
    volumes = _volumes(pod)
    mounts = []
    for mount in container.get("volumeMounts") or ():
        if mount["name"].startswith(_TOKEN_VOLUME_PREFIX):
            continue
        if not isolated:
            raise VolumeNotMountable(
                f'volume "{mount["name"]}": without root the simulated kubelet can\'t mount '
                f"anything on {mount['mountPath']}; run it as root, or leave volumeMounts out"
            )
        source = _made(volumes[mount["name"]], folder / mount["name"], sources)
        source = source / mount.get("subPath", "")
        read_only = bool(mount.get("readOnly"))
        mounts.append(Mount(source=str(source), target=mount["mountPath"], read_only=read_only))
    return tuple(mounts)


def _volumes(pod: Object) -> dict[str, Object]:
    return {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}


def _made(volume: Object, folder: Path, sources: Sources) -> Path:
    if path := (volume.get("hostPath") or {}).get("path"):
        return Path(path)
    make_folder(folder)
    if "emptyDir" in volume:
        folder.chmod(0o777)
    elif reference := volume.get("configMap"):
        _fill(folder, "ConfigMap", reference.get("name", ""), reference, sources)
    elif reference := volume.get("secret"):
        _fill(folder, "Secret", reference.get("secretName", ""), reference, sources)
    else:
        kind = next((key for key in volume if key != "name"), "unknown")
        raise VolumeNotMountable(
            f'volume "{volume["name"]}": the simulated kubelet knows no {kind}; it knows '
            "emptyDir, hostPath, configMap and secret"
        )
    return folder


def _fill(folder: Path, kind: str, name: str, reference: Object, sources: Sources) -> None:
    content = sources.get((kind, name))
    if content is None:
        if reference.get("optional"):
            return
        raise VolumeNotMountable(
            f'MountVolume.SetUp failed for volume "{folder.name}" : {kind.lower()} "{name}" '
            "not found"
        )
    chosen = {item["key"]: item["path"] for item in reference.get("items") or ()}
    for key, text in content.items():
        if not chosen or key in chosen:
            path = folder / chosen.get(key, key)
            write_whole(path, text.encode(), mode=_SECRET_MODE, durable=False)


def decoded_source(kind: str, object_: Object) -> dict[str, str]:
    """What a ConfigMap or a Secret holds, as text."""
    if kind == "ConfigMap":
        return dict(object_.get("data") or {})
    encoded = object_.get("data") or {}
    return {key: base64.b64decode(value).decode(errors="replace") for key, value in encoded.items()}
