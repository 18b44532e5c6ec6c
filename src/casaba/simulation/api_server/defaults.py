"""What the API server writes into objects that leave it out (the SetDefaults functions of 1.36).

Zero values and defaults that the schema declares are filled in when a body is read; here are the
others, which extend the object in their hands.
"""

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from casaba.simulation.api_server import times
from casaba.simulation.api_server.requests import Object, copied
from casaba.simulation.api_server.resources import ResourceInfo

DEFAULT_SCHEDULER = "default-scheduler"
NAME_LABEL = "kubernetes.io/metadata.name"
_FILE_MODE = 0o644
_TOKEN_LIFETIME_S = 3600
_RBAC_GROUP = "rbac.authorization.k8s.io"
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def set_defaults(info: ResourceInfo, object_: Object, now: str = "") -> Object:
    """Extend an object, which nobody else must hold, by the defaults of its kind; the object.

    `now` is for fields that hold a time; without one, the clock is asked. Fields that are only
    another way to write something, such as a Secret's stringData, become what they stand for.
    """
    if function := _BY_KIND.get(info.kind):
        function(object_, now or times.written(datetime.now(UTC)))
    return object_


def _namespace(namespace: Object, now: str) -> None:
    if name := namespace["metadata"].get("name"):
        namespace["metadata"].setdefault("labels", {})[NAME_LABEL] = name


def _node(node: Object, now: str) -> None:
    status = node.get("status", {})
    if status.get("capacity"):
        allocatable = status.setdefault("allocatable", {})
        for name, quantity in status["capacity"].items():
            allocatable.setdefault(name, quantity)


def _pod(pod: Object, now: str) -> None:
    _pod_spec(pod["spec"])


def _pod_spec(spec: Object) -> None:
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", DEFAULT_SCHEDULER)
    spec.setdefault("securityContext", {})
    spec.setdefault("enableServiceLinks", True)
    _mirror(spec, "serviceAccountName", "serviceAccount")
    for container in _containers(spec):
        _container(container, host_network=bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes", ()):
        _volume(volume)


def _mirror(spec: Object, name: str, old_name: str) -> None:
    """The field has an old name, which the server keeps in step."""
    if value := spec.get(name) or spec.get(old_name):
        spec[name] = spec[old_name] = value


def _containers(spec: Object) -> Iterator[Object]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(field, ())


def _container(container: Object, *, host_network: bool) -> None:
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    container.setdefault("imagePullPolicy", _pull_policy(container.get("image", "")))
    for port in container.get("ports", ()):
        if host_network and not port.get("hostPort"):
            port["hostPort"] = port["containerPort"]
    for variable in container.get("env", ()):
        _environment_variable(variable)
    for name in _PROBES:
        if name in container:
            _probe(container[name])
    resources = container.get("resources", {})
    if limits := resources.get("limits"):
        resources["requests"] = {**limits, **resources.get("requests", {})}


def _pull_policy(image: str) -> str:
    """Always for the newest image: tag latest, or neither tag nor digest."""
    tag = image.rpartition("/")[2].partition(":")[2]
    return "IfNotPresent" if "@" in image or tag not in ("", "latest") else "Always"


def _environment_variable(variable: Object) -> None:
    if variable.get("value") == "":
        del variable["value"]
    if "fieldRef" in variable.get("valueFrom", {}):
        variable["valueFrom"]["fieldRef"].setdefault("apiVersion", "v1")


def _probe(probe: Object) -> None:
    for name, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        probe[name] = probe.get(name) or value
    if "httpGet" in probe:
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")


def _volume(volume: Object) -> None:
    if not volume.keys() - {"name"}:
        volume["emptyDir"] = {}
    for source in ("configMap", "secret", "downwardAPI", "projected"):
        if source in volume:
            volume[source].setdefault("defaultMode", _FILE_MODE)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    _field_references(volume.get("downwardAPI", {}))
    for source in volume.get("projected", {}).get("sources", ()):
        _field_references(source.get("downwardAPI", {}))
        if "serviceAccountToken" in source:
            source["serviceAccountToken"].setdefault("expirationSeconds", _TOKEN_LIFETIME_S)


def _field_references(source: Object) -> None:
    for item in source.get("items", ()):
        if "fieldRef" in item:
            item["fieldRef"].setdefault("apiVersion", "v1")


def _secret(secret: Object, now: str) -> None:
    secret.setdefault("type", "Opaque")
    for key, text in secret.pop("stringData", {}).items():
        secret.setdefault("data", {})[key] = base64.b64encode(text.encode()).decode()


def _claim(claim: Object, now: str) -> None:
    _device_requests(claim["spec"])


def _claim_template(template: Object, now: str) -> None:
    _device_requests(template["spec"].get("spec", {}))


def _device_requests(claim_spec: Object) -> None:
    for request in claim_spec.get("devices", {}).get("requests", ()):
        for one in (request.get("exactly"), *request.get("firstAvailable", ())):
            if one is not None:
                _device_request(one)


def _device_request(request: Object) -> None:
    mode = request["allocationMode"] = request.get("allocationMode") or "ExactCount"
    if mode == "ExactCount" and not request.get("count"):
        request["count"] = 1


def _slice(slice_: Object, now: str) -> None:
    for device in slice_["spec"].get("devices", ()):
        for taint in device.get("taints", ()):
            taint.setdefault("timeAdded", now)


def _binding(binding: Object, now: str) -> None:
    reference = binding["roleRef"]
    reference["apiGroup"] = reference.get("apiGroup") or _RBAC_GROUP
    for subject in binding.get("subjects", ()):
        if subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = subject.get("apiGroup") or _RBAC_GROUP


def _webhooks(configuration: Object, now: str) -> None:
    for webhook in configuration.get("webhooks", ()):
        for name, value in _WEBHOOK_DEFAULTS.items():
            webhook.setdefault(name, copied(value))
        for rule in webhook.get("rules", ()):
            rule.setdefault("scope", "*")
        if service := webhook.get("clientConfig", {}).get("service"):
            service.setdefault("port", 443)


_WEBHOOK_DEFAULTS: Mapping[str, Any] = {
    "failurePolicy": "Fail",
    "matchPolicy": "Equivalent",
    "namespaceSelector": {},
    "objectSelector": {},
    "timeoutSeconds": 10,
}


def _mutating_webhooks(configuration: Object, now: str) -> None:
    _webhooks(configuration, now)
    for webhook in configuration.get("webhooks", ()):
        webhook.setdefault("reinvocationPolicy", "Never")


_BY_KIND: Mapping[str, Callable[[Object, str], None]] = {
    "Namespace": _namespace,
    "Node": _node,
    "Pod": _pod,
    "Secret": _secret,
    "ResourceClaim": _claim,
    "ResourceClaimTemplate": _claim_template,
    "ResourceSlice": _slice,
    "ClusterRoleBinding": _binding,
    "RoleBinding": _binding,
    "MutatingWebhookConfiguration": _mutating_webhooks,
    "ValidatingWebhookConfiguration": _webhooks,
}


def quality_of_service(pod_spec: Object) -> str:
    """Guaranteed, Burstable or BestEffort, by the containers' cpu and memory."""
    containers = [*pod_spec.get("initContainers", ()), *pod_spec.get("containers", ())]
    amounts = [_compute_resources(container) for container in containers]
    if not any(requests or limits for requests, limits in amounts):
        return "BestEffort"
    complete = all(limits.keys() == {"cpu", "memory"} for _, limits in amounts)
    same = all(requests == limits for requests, limits in amounts)
    return "Guaranteed" if complete and same else "Burstable"


def _compute_resources(container: Object) -> tuple[Object, Object]:
    resources = container.get("resources", {})
    return _only_compute(resources.get("requests")), _only_compute(resources.get("limits"))


def _only_compute(
    amounts: Mapping[str, str] | None, names: Iterable[str] = ("cpu", "memory")
) -> Any:
    return {name: (amounts or {})[name] for name in names if (amounts or {}).get(name, "0") != "0"}
