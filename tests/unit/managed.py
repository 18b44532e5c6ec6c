"""Entries of metadata.managedFields, as an API server writes them."""

from datetime import datetime
from typing import Any


def entry(at: datetime, *path: str, manager: str = "kubelet") -> dict[str, Any]:
    """One of somebody who owns a field, and wrote it then."""
    fields: dict[str, Any] = {}
    for name in reversed(path):
        fields = {f"f:{name}": fields}
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
