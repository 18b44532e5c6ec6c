"""The prepared claims on disk, one file each, so that they outlive the agent."""

import logging
from dataclasses import dataclass
from pathlib import Path

from casaba.errors import InvalidInput
from casaba.model.ids import ClaimUid
from casaba.model.prepared import CheckpointEntry
from casaba.node.files import explained, make_folder, remove_file, write_whole
from casaba.wire.checkpoint import build_entry, parse_entry

log = logging.getLogger(__name__)

_PRIVATE = 0o600


@dataclass(frozen=True)
class Checkpoint:
    """The folder of entries, `<claim uid>.json`."""

    folder: Path

    def load(self) -> dict[ClaimUid, CheckpointEntry]:
        """All readable entries; a damaged one is put aside as `.damaged` and logged."""
        make_folder(self.folder)
        for leftover in self.folder.glob(".*"):
            remove_file(leftover)
        entries = (self._read(path) for path in sorted(self.folder.glob("*.json")))
        return {entry.claim.uid: entry for entry in entries if entry is not None}

    def _read(self, path: Path) -> CheckpointEntry | None:
        with explained("read", path):
            content = path.read_bytes()
        try:
            return parse_entry(content)
        except InvalidInput as error:
            aside = path.with_suffix(".damaged")
            log.warning("checkpoint.damaged", extra={"path": str(path), "reason": str(error)})
            with explained("put aside", path):
                path.rename(aside)
            return None

    def put(self, entry: CheckpointEntry) -> None:
        """Write an entry; raises HostError, and then the old one stays.

        Not flushed to the disk: what a power cut takes away belongs to a boot that is over.
        """
        write_whole(self._path(entry.claim.uid), build_entry(entry), mode=_PRIVATE, durable=False)

    def drop(self, uid: ClaimUid) -> None:
        """Remove an entry if there is one; raises HostError."""
        remove_file(self._path(uid))

    def _path(self, uid: ClaimUid) -> Path:
        return self.folder / f"{uid}.json"
