"""From CDI ids to container edits."""

from typing import Any

import pytest

from casaba.simulation.kubelet.cdi_devices import (
    CdiDevices,
    DeviceNode,
    Mount,
    UnresolvableDevices,
    is_spec,
)


def spec(*names: str, kind: str = "v.example/c", **edits: Any) -> dict[str, Any]:
    """A spec whose devices set a variable each."""
    devices = [{"name": name, "containerEdits": {"env": [f"{name}=1"]}} for name in names]
    return {"cdiVersion": "0.5.0", "kind": kind, "devices": devices, "containerEdits": edits}


def test_edits_of_the_spec_come_once_and_before_the_devices() -> None:
    devices = CdiDevices([[spec("a", "b", env=["ALL=x=y"])]])
    edits = devices.edits(["v.example/c=b", "v.example/c=a", "v.example/c=b"])
    assert edits.environment == (("ALL", "x=y"), ("b", "1"), ("a", "1"))


def test_mounts_devices_and_hooks_are_understood() -> None:
    mounts = [
        {"hostPath": "/h", "containerPath": "/c", "options": ["ro", "bind"]},
        {"hostPath": "/w", "containerPath": "/d"},
    ]
    nodes = [{"path": "/dev/x"}, {"path": "/dev/y", "hostPath": "/root/dev/y"}]
    hooks = [{"hookName": "createContainer", "path": "/bin/hook", "args": ["hook", "do", "it"]}]
    edits = CdiDevices([[spec("a", mounts=mounts, deviceNodes=nodes, hooks=hooks)]]).edits(
        ["v.example/c=a"]
    )
    assert edits.mounts == (
        Mount(source="/h", target="/c", read_only=True),
        Mount(source="/w", target="/d", read_only=False),
    )
    assert edits.device_nodes == (
        DeviceNode(source="/dev/x", target="/dev/x"),
        DeviceNode(source="/root/dev/y", target="/dev/y"),
    )
    assert edits.hooks == ("/bin/hook do it",)


def test_the_same_mount_of_two_devices_is_made_once() -> None:
    mount = {"hostPath": "/h", "containerPath": "/c"}
    devices = CdiDevices([[spec("a", mounts=[mount]), spec("b", kind="w/x", mounts=[mount])]])
    assert len(devices.edits(["v.example/c=a", "w/x=b"]).mounts) == 1


def test_the_later_folder_wins() -> None:
    first, second = spec("a", env=["FROM=etc"]), spec("a", env=["FROM=run"])
    edits = CdiDevices([[first], [second]]).edits(["v.example/c=a"])
    assert edits.environment[0] == ("FROM", "run")


def test_two_specs_of_a_folder_take_the_device_from_each_other() -> None:
    with pytest.raises(UnresolvableDevices):
        CdiDevices([[spec("a"), spec("a")]]).edits(["v.example/c=a"])


def test_unknown_devices_are_named() -> None:
    with pytest.raises(UnresolvableDevices, match=r"unresolvable CDI devices x/y=1, x/y=2$"):
        CdiDevices([[spec("a")]]).edits(["v.example/c=a", "x/y=1", "x/y=2"])


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"kind": "a/b"},
        {"kind": "a/b", "devices": 3},
        {"kind": "a/b", "devices": [{}]},
        {"kind": "a/b", "devices": [{"name": "x", "containerEdits": {"mounts": [{}]}}]},
        {"kind": "a/b", "devices": [{"name": "x", "containerEdits": {"env": [1]}}]},
    ],
)
def test_what_is_no_spec_is_known(document: object) -> None:
    assert not is_spec(document)
