"""Rules for the status of a ResourceClaim (resource.k8s.io/v1 in 1.36)."""

import ipaddress
from collections.abc import Sequence
from typing import Any

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation import names
from casaba.simulation.api_server.validation.binding_conditions import binding_condition_errors
from casaba.simulation.api_server.validation.claims import (
    RequestNames,
    config_errors,
    request_names,
    request_reference_errors,
)
from casaba.simulation.api_server.validation.conditions import conditions_errors
from casaba.simulation.api_server.validation.device_names import (
    CONFIGS,
    driver_errors,
    label_errors,
    pool_errors,
    raw_object_errors,
)
from casaba.simulation.api_server.validation.fields import (
    Errors,
    each,
    forbidden,
    immutable,
    invalid,
    listed,
    not_supported,
    required,
    too_long,
    too_many,
)
from casaba.simulation.api_server.validation.selectors import node_selector_errors

RESERVATIONS = 256
RESULTS = 32
CONDITIONS = 8
DATA_BYTES = 10 << 10
INTERFACE_NAME_BYTES = 256
HARDWARE_ADDRESS_BYTES = 128
ADDRESSES = 16
_SOURCES = ("FromClaim", "FromClass")


def claim_status_errors(claim: Object, old: Object) -> Errors:
    """Reservations, devices and an allocation that is written once."""
    status, old_status = claim.get("status", {}), old.get("status", {})
    yield from listed(
        "status.reservedFor",
        status.get("reservedFor", ()),
        RESERVATIONS,
        _reservation_errors,
        lambda reservation: reservation.get("uid", ""),
    )
    yield from _devices_errors(status)
    yield from _reservations_errors(claim, old)
    allocation, old_allocation = status.get("allocation"), old_status.get("allocation")
    if allocation is not None and old_allocation is not None:
        yield from immutable("status.allocation", allocation, old_allocation)
    elif allocation is not None:
        known = request_names(claim["spec"].get("devices", {}))
        yield from _allocation_errors(allocation, "status.allocation", known)


def _reservation_errors(reservation: Object, path: str) -> Errors:
    for field in ("resource", "name", "uid"):
        if not reservation.get(field):
            yield required(f"{path}.{field}")


def _reservations_errors(claim: Object, old: Object) -> Errors:
    reservations = claim.get("status", {}).get("reservedFor", ())
    if not reservations:
        return
    if "allocation" not in claim["status"]:
        detail = "may not be specified when `allocated` is not set"
        yield forbidden("status.reservedFor", detail)
    elif "deletionTimestamp" in claim["metadata"]:
        known = old.get("status", {}).get("reservedFor", ())
        if any(reservation not in known for reservation in reservations):
            detail = (
                "new entries may not be added while `deallocationRequested` or "
                "`deletionTimestamp` are set"
            )
            yield forbidden("status.reservedFor", detail)


def _allocation_errors(allocation: Object, path: str, known: RequestNames) -> Errors:
    devices = allocation.get("devices", {})
    yield from listed(
        f"{path}.devices.results",
        devices.get("results", ()),
        RESULTS,
        lambda result, place: _result_errors(result, place, known),
    )
    yield from listed(
        f"{path}.devices.config",
        devices.get("config", ()),
        2 * CONFIGS,
        lambda config, place: _allocation_config_errors(config, place, known),
    )
    if "nodeSelector" in allocation:
        yield from node_selector_errors(f"{path}.nodeSelector", allocation["nodeSelector"])


def _result_errors(result: Object, path: str, known: RequestNames) -> Errors:
    yield from request_reference_errors(result.get("request", ""), f"{path}.request", known)
    yield from _device_errors(result, path)
    yield from binding_condition_errors(result, path)
    if "shareID" in result:
        yield from each(f"{path}.shareID", names.uuid(result["shareID"]), result["shareID"])


def _device_errors(device: Object, path: str) -> Errors:
    yield from driver_errors(device.get("driver", ""), f"{path}.driver")
    yield from pool_errors(device.get("pool", ""), f"{path}.pool")
    yield from label_errors(device.get("device", ""), f"{path}.device")


def _allocation_config_errors(config: Object, path: str, known: RequestNames) -> Errors:
    source = config.get("source", "")
    if not source:
        yield required(f"{path}.source")
    elif source not in _SOURCES:
        yield not_supported(f"{path}.source", source, _SOURCES)
    yield from config_errors(config, path, known)


def _device_id(device: Object) -> tuple[Any, ...]:
    return tuple(device.get(field) for field in ("driver", "pool", "device", "shareID"))


def _shown_id(device: Object) -> str:
    return "/".join(part for part in _device_id(device) if part)


def _devices_errors(status: Object) -> Errors:
    results = status.get("allocation", {}).get("devices", {}).get("results", ())
    yield from listed(
        "status.devices",
        status.get("devices", ()),
        None,
        lambda device, place: _device_status_errors(device, place, results),
        _shown_id,
    )


def _device_status_errors(device: Object, path: str, results: Sequence[Object]) -> Errors:
    yield from _device_errors(device, path)
    if "shareID" in device:
        yield from each(f"{path}.shareID", names.uuid(device["shareID"]), device["shareID"])
    if _device_id(device) not in [_device_id(result) for result in results]:
        yield invalid(path, _shown_id(device), "must be an allocated device in the claim")
    conditions = device.get("conditions", ())
    if len(conditions) > CONDITIONS:
        yield too_many(f"{path}.conditions", len(conditions), CONDITIONS)
    yield from conditions_errors(f"{path}.conditions", conditions)
    if "data" in device:
        yield from raw_object_errors(device["data"], f"{path}.data", DATA_BYTES)
    yield from _network_errors(device.get("networkData", {}), f"{path}.networkData")


def _network_errors(network: Object, path: str) -> Errors:
    for field, limit_bytes in (
        ("interfaceName", INTERFACE_NAME_BYTES),
        ("hardwareAddress", HARDWARE_ADDRESS_BYTES),
    ):
        if len(network.get(field, "").encode()) > limit_bytes:
            yield too_long(f"{path}.{field}", limit_bytes)
    yield from listed(f"{path}.ips", network.get("ips", ()), ADDRESSES, _address_errors, str)


def _address_errors(address: str, path: str) -> Errors:
    detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
    try:
        interface = ipaddress.ip_interface(address)
    except ValueError:
        yield invalid(path, address, detail)
        return
    if "/" not in address:
        yield invalid(path, address, detail)
    elif str(interface) != address:
        yield invalid(path, address, f'must be in canonical form ("{interface}")')
