"""Logs of daemons: one JSON object a line, the message being a stable event name."""

import logging
from datetime import UTC, datetime
from pathlib import Path

import msgspec

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """time, level, event, logger, then what the caller gave as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; values that JSON does not know are written as text."""
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
        }
        entry |= {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry, enc_hook=str).decode()


def log_to_stderr(level: str) -> None:
    """Configure the root logger; raises ValueError for an unknown level."""
    _log_to(logging.StreamHandler(), level)


def log_to_file(path: Path, level: str) -> None:
    """The same into a file, for a command whose terminal belongs to its story."""
    _log_to(logging.FileHandler(path, delay=True), level)


def _log_to(handler: logging.Handler, level: str) -> None:
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], level=level.upper())
