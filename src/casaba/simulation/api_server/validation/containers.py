"""Rules for the containers of a pod (core/v1 in 1.36)."""

from collections.abc import Iterable, Sequence

from casaba.model.quantity import quantity, whole
from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation import names
from casaba.simulation.api_server.validation.fields import (
    Errors,
    chosen,
    duplicate,
    each,
    invalid,
    not_found,
    not_supported,
    required,
)

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_STANDARD_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_PORTS = range(1, 65536)


def containers_errors(
    containers: Sequence[Object],
    path: str,
    claims: Sequence[str],
    volumes: Sequence[str],
    taken: Iterable[str],
) -> Errors:
    """Each named once, whole, and using only claims and volumes that the pod has."""
    seen = set(taken)
    for index, container in enumerate(containers):
        place, name = f"{path}[{index}]", container.get("name", "")
        yield from _container_errors(container, place, claims, volumes)
        if name in seen:
            yield duplicate(f"{place}.name", name)
        seen.add(name)


def _container_errors(
    container: Object, path: str, claims: Sequence[str], volumes: Sequence[str]
) -> Errors:
    if name := container.get("name"):
        yield from each(f"{path}.name", names.label(name), name)
    else:
        yield required(f"{path}.name")
    if not container.get("image"):
        yield required(f"{path}.image")
    message_policy = container.get("terminationMessagePolicy", "")
    yield from chosen(f"{path}.terminationMessagePolicy", message_policy, _MESSAGE_POLICIES)
    for index, port in enumerate(container.get("ports", ())):
        yield from _port_errors(port, f"{path}.ports[{index}]")
    for index, variable in enumerate(container.get("env", ())):
        yield from _variable_errors(variable, f"{path}.env[{index}]")
    yield from _mount_errors(container.get("volumeMounts", ()), f"{path}.volumeMounts", volumes)
    yield from chosen(
        f"{path}.imagePullPolicy", container.get("imagePullPolicy", ""), _PULL_POLICIES
    )
    resources = container.get("resources", {})
    yield from _amounts_errors(resources, f"{path}.resources")
    yield from _claim_uses_errors(resources.get("claims", ()), f"{path}.resources.claims", claims)


def _port_errors(port: Object, path: str) -> Errors:
    for field in ("containerPort", "hostPort"):
        number = port.get(field, 0)
        if not number and field == "containerPort":
            yield required(f"{path}.{field}")
        elif number and number not in _PORTS:
            yield invalid(f"{path}.{field}", number, "must be between 1 and 65535, inclusive")
    if (protocol := port.get("protocol")) not in _PROTOCOLS:
        yield not_supported(f"{path}.protocol", protocol, _PROTOCOLS)


def _variable_errors(variable: Object, path: str) -> Errors:
    if name := variable.get("name"):
        yield from each(f"{path}.name", names.environment_variable(name), name)
    else:
        yield required(f"{path}.name")
    if "valueFrom" not in variable:
        return
    place, count = f"{path}.valueFrom", len(variable["valueFrom"])
    if variable.get("value"):
        yield invalid(place, "", "may not be specified when `value` is not empty")
    if count != 1:
        told = "may not have more than one field specified at a time"
        yield invalid(
            place,
            "",
            told
            if count
            else "must specify one of: `fieldRef`, "
            "`resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        )


def _mount_errors(mounts: Iterable[Object], path: str, volumes: Sequence[str]) -> Errors:
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        place, name, target = f"{path}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield required(f"{place}.name")
        if name not in volumes:
            yield not_found(f"{place}.name", name)
        if not target:
            yield required(f"{place}.mountPath")
        if target in seen:
            yield invalid(f"{place}.mountPath", target, "must be unique")
        seen.add(target)


def _amounts_errors(resources: Object, path: str) -> Errors:
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            place = f"{path}.{kind}[{name}]"
            yield from _resource_name_errors(place, name)
            yield from _amount_errors(place, name, amount)
    for name, amount in requests.items():
        yield from _request_errors(path, name, amount, limits.get(name))


def _resource_name_errors(path: str, name: str) -> Errors:
    yield from each(path, names.qualified(name), name)
    if "/" not in name and not name.startswith("hugepages-") and name not in _STANDARD_RESOURCES:
        yield invalid(path, name, "must be a standard resource type or fully qualified")
        yield invalid(path, name, "must be a standard resource for containers")


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


def _amount_errors(path: str, name: str, amount: str) -> Errors:
    asked = quantity(amount)
    if asked.nanos < 0:
        yield invalid(path, amount, "must be greater than or equal to 0")
    if _is_extended(name) and asked.nanos != whole(asked.value()).nanos:
        yield invalid(path, amount, "must be an integer")


def _request_errors(path: str, name: str, amount: str, limit: str | None) -> Errors:
    if limit is None:
        if _is_extended(name):
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
    elif _is_extended(name) and quantity(amount).nanos != quantity(limit).nanos:
        yield invalid(f"{path}.requests", amount, f"must be equal to {name} limit of {limit}")
    elif quantity(amount).nanos > quantity(limit).nanos:
        detail = f"must be less than or equal to {name} limit of {limit}"
        yield invalid(f"{path}.requests", amount, detail)


def _claim_uses_errors(uses: Iterable[Object], path: str, claims: Sequence[str]) -> Errors:
    seen: set[str] = set()
    for index, use in enumerate(uses):
        place, name, request = f"{path}[{index}]", use.get("name", ""), use.get("request", "")
        if not name:
            yield required(place)
            continue
        key = f"{name}/{request}" if request else name
        if request:
            yield from each(f"{place}.request", names.label(request), request)
        by_request = any(other.startswith(f"{name}/") for other in seen)
        if key in seen or name in seen or (not request and by_request):
            yield duplicate(place, key if name not in seen else name)
        seen.add(key)
        if name not in claims:
            known = f": {', '.join(sorted(claims))}" if claims else " which is empty"
            yield not_found(
                place, name, f"must be one of the names in pod.spec.resourceClaims{known}"
            )
