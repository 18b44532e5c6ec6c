"""Reads the CDI specs of this node, each time that a container is made, as runtimes do."""

import json
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from casaba.simulation.kubelet.cdi_devices import CdiDevices, is_spec

log = logging.getLogger(__name__)

_ENDINGS = (".json", ".yaml", ".yml")


def read_devices(folders: Iterable[Path]) -> CdiDevices:
    """The devices of all specs; a spec that can't be read is left out, and logged. Blocking."""
    return CdiDevices(tuple(_specs(folder)) for folder in folders)


def _specs(folder: Path) -> Iterator[dict[str, Any]]:
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    for path in files:
        if path.suffix not in _ENDINGS or path.name.startswith("."):
            continue
        try:
            document = _document(path)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, yaml.YAMLError) as error:
            log.warning("cdi.spec_unreadable", extra={"spec": str(path), "reason": str(error)})
            continue
        if is_spec(document):
            yield document
        else:
            log.warning("cdi.spec_not_understood", extra={"spec": str(path)})


def _document(path: Path) -> Any:
    content = path.read_bytes()
    return json.loads(content) if path.suffix == ".json" else yaml.safe_load(content)
