"""The rows of every other kind, and who prints what. Source: kube-apiserver's printers."""

from collections.abc import Mapping

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.resources import ResourceInfo
from casaba.simulation.api_server.tables.columns import (
    AGE,
    NAME,
    Cell,
    Cells,
    Column,
    Printer,
    age,
    at,
    column,
    since,
    text,
    wide,
)
from casaba.simulation.api_server.tables.pods import PODS

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def _name(object_: Object) -> str:
    return text(object_, "metadata", "name")


def _plain(object_: Object, now_s: float) -> Cells:
    return [_name(object_), age(object_, now_s)]


def _created(object_: Object, _: float) -> Cells:
    return [_name(object_), text(object_, "metadata", "creationTimestamp")]


def _namespace(namespace: Object, now_s: float) -> Cells:
    return [_name(namespace), text(namespace, "status", "phase"), age(namespace, now_s)]


def _node(node: Object, now_s: float) -> Cells:
    told = at(node, "status", "nodeInfo") or {}
    kernel = told.get("kernelVersion") or "<unknown>"
    if architecture := told.get("architecture"):
        kernel += f" ({architecture})"
    return [
        _name(node),
        _node_status(node),
        ",".join(_roles(node)) or "<none>",
        age(node, now_s),
        told.get("kubeletVersion", ""),
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        told.get("osImage") or "<unknown>",
        kernel,
        told.get("containerRuntimeVersion") or "<unknown>",
    ]


def _node_status(node: Object) -> str:
    told = {item["type"]: item["status"] for item in at(node, "status", "conditions") or ()}
    status = {None: "Unknown", "True": "Ready"}.get(told.get("Ready"), "NotReady")
    return status + (",SchedulingDisabled" if at(node, "spec", "unschedulable") else "")


def _roles(node: Object) -> list[str]:
    labels: Mapping[str, str] = at(node, "metadata", "labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return sorted((roles | {labels.get(_ROLE_LABEL, "")}) - {""})


def _address(node: Object, type_: str) -> str:
    for address in at(node, "status", "addresses") or ():
        if address["type"] == type_:
            return str(address["address"])
    return "<none>"


def _event(event: Object, now_s: float) -> Cells:
    first = since(event.get("firstTimestamp") or event.get("eventTime"), now_s)
    last = since(event["lastTimestamp"], now_s) if event.get("lastTimestamp") else first
    count = event.get("count") or 1
    if series := event.get("series"):
        last, count = since(series.get("lastObservedTime"), now_s), series.get("count", 0)
    return [
        last,
        event.get("type", ""),
        event.get("reason", ""),
        _involved(event),
        text(event, "involvedObject", "fieldPath"),
        _source(event),
        event.get("message", "").strip(),
        first,
        count,
        _name(event),
    ]


def _involved(event: Object) -> str:
    kind, name = (text(event, "involvedObject", key) for key in ("kind", "name"))
    return f"{kind.lower()}/{name}" if name else kind.lower()


def _source(event: Object) -> str:
    component = text(event, "source", "component") or event.get("reportingComponent", "")
    host = text(event, "source", "host") or event.get("reportingInstance", "")
    return f"{component}, {host}" if host else component


def _config_map(object_: Object, now_s: float) -> Cells:
    count = len(object_.get("data") or ()) + len(object_.get("binaryData") or ())
    return [_name(object_), count, age(object_, now_s)]


def _secret(secret: Object, now_s: float) -> Cells:
    count = len(secret.get("data") or ())
    return [_name(secret), secret.get("type", ""), count, age(secret, now_s)]


def _lease(lease: Object, now_s: float) -> Cells:
    return [_name(lease), text(lease, "spec", "holderIdentity"), age(lease, now_s)]


def _slice(slice_: Object, now_s: float) -> Cells:
    spec = slice_.get("spec") or {}
    told: list[Cell] = [
        spec.get("nodeName", ""),
        spec.get("driver", ""),
        text(spec, "pool", "name"),
    ]
    return [_name(slice_), *told, age(slice_, now_s)]


def _claim(claim: Object, now_s: float) -> Cells:
    return [_name(claim), ",".join(_claim_states(claim)), age(claim, now_s)]


def _claim_states(claim: Object) -> list[str]:
    deleted = ["deleted"] if at(claim, "metadata", "deletionTimestamp") else []
    if at(claim, "status", "allocation") is None:
        return deleted or ["pending"]
    reserved = ["reserved"] if at(claim, "status", "reservedFor") else []
    return [*deleted, "allocated", *reserved]


def _webhooks(configuration: Object, now_s: float) -> Cells:
    count = len(configuration.get("webhooks") or ())
    return [_name(configuration), count, age(configuration, now_s)]


def _binding(binding: Object, now_s: float) -> Cells:
    role = f"{text(binding, 'roleRef', 'kind')}/{text(binding, 'roleRef', 'name')}"
    subjects = [_subjects(binding, kind) for kind in ("User", "Group", "ServiceAccount")]
    return [_name(binding), role, age(binding, now_s), *subjects]


def _subjects(binding: Object, kind: str) -> str:
    names = [
        f"{subject.get('namespace', '')}/{subject['name']}"
        if kind == "ServiceAccount"
        else subject["name"]
        for subject in binding.get("subjects") or ()
        if subject["kind"] == kind
    ]
    return ", ".join(names)


def _quota(quota: Object, now_s: float) -> Cells:
    status = quota.get("status") or {}
    used = status.get("used") or {}
    lines = [
        (name, f"{name}: {used.get(name, '0')}/{hard}")
        for name, hard in sorted((status.get("hard") or {}).items())
    ]
    requests, limits = (
        ", ".join(line for name, line in lines if name.startswith("limits") is of_limits)
        for of_limits in (False, True)
    )
    return [_name(quota), requests, limits, age(quota, now_s)]


_COUNT = column("Data", "How many entries it holds.")
_WEBHOOKS = Printer(
    columns=(NAME, column("Webhooks", "How many webhooks it names.", type_="integer"), AGE),
    cells=_webhooks,
)
_BY_CREATION = Printer(
    columns=(NAME, Column(name="Created At", type="date", description="When it was created.")),
    cells=_created,
)
_BINDINGS = Printer(
    columns=(
        NAME,
        column("Role", "The role that is given."),
        AGE,
        wide("Users", "Users who get it."),
        wide("Groups", "Groups that get it."),
        wide("ServiceAccounts", "Service accounts that get it."),
    ),
    cells=_binding,
)
_PLAIN = Printer(columns=(NAME, AGE), cells=_plain)

_BY_RESOURCE: Mapping[str, Printer] = {
    "pods": PODS,
    "namespaces": Printer(
        columns=(NAME, column("Status", "Its phase."), AGE),
        cells=_namespace,
    ),
    "nodes": Printer(
        columns=(
            NAME,
            column("Status", "Whether it is ready, and takes new pods."),
            column("Roles", "Its roles, by its labels."),
            AGE,
            column("Version", "Its kubelet's version."),
            wide("Internal-IP", "Its address inside the cluster."),
            wide("External-IP", "Its address outside the cluster."),
            wide("OS-Image", "Its operating system."),
            wide("Kernel-Version", "Its kernel."),
            wide("Container-Runtime", "Its container runtime."),
        ),
        cells=_node,
    ),
    "events": Printer(
        columns=(
            column("Last Seen", "Time since it happened last."),
            column("Type", "Normal or Warning."),
            column("Reason", "Why it happened, in one word."),
            column("Object", "What it happened to."),
            wide("Subobject", "Which part of the object."),
            wide("Source", "Who reports it."),
            column("Message", "What happened."),
            wide("First Seen", "Time since it happened first."),
            wide("Count", "How often it happened."),
            wide("Name", "The event's own name.", format_="name"),
        ),
        cells=_event,
    ),
    "configmaps": Printer(columns=(NAME, _COUNT, AGE), cells=_config_map),
    "secrets": Printer(
        columns=(NAME, column("Type", "What the secret is for."), _COUNT, AGE), cells=_secret
    ),
    "serviceaccounts": _PLAIN,
    "resourcequotas": Printer(
        columns=(
            NAME,
            column("Request", "What is used of what may be asked for."),
            column("Limit", "What is used of what limits may sum up to."),
            AGE,
        ),
        cells=_quota,
    ),
    "leases.coordination.k8s.io": Printer(
        columns=(NAME, column("Holder", "Who holds it."), AGE), cells=_lease
    ),
    "deviceclasses.resource.k8s.io": _PLAIN,
    "resourceclaimtemplates.resource.k8s.io": _PLAIN,
    "resourceslices.resource.k8s.io": Printer(
        columns=(
            NAME,
            column("Node", "The node whose devices these are."),
            column("Driver", "The driver that publishes them."),
            column("Pool", "The pool that they belong to."),
            AGE,
        ),
        cells=_slice,
    ),
    "resourceclaims.resource.k8s.io": Printer(
        columns=(NAME, column("State", "pending, or allocated and reserved; deleted."), AGE),
        cells=_claim,
    ),
    "rolebindings.rbac.authorization.k8s.io": _BINDINGS,
    "clusterrolebindings.rbac.authorization.k8s.io": _BINDINGS,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": _WEBHOOKS,
}


def printer_of(info: ResourceInfo) -> Printer:
    """How a resource is printed; roles, and kinds of which nothing is known, by name and time."""
    return _BY_RESOURCE.get(info.qualified, _BY_CREATION)
