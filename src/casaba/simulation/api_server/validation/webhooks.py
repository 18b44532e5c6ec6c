"""Rules for webhook configurations (admissionregistration.k8s.io/v1)."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from casaba.simulation.api_server.requests import Object
from casaba.simulation.api_server.validation import names
from casaba.simulation.api_server.validation.expressions import condition_expression_errors
from casaba.simulation.api_server.validation.fields import (
    Errors,
    duplicate,
    each,
    invalid,
    not_supported,
    required,
    too_many,
)
from casaba.simulation.api_server.validation.selectors import label_selector_errors

MATCH_CONDITIONS = 64
LONGEST_TIMEOUT_S = 30
_FAILURE_POLICIES = ("Fail", "Ignore")
_MATCH_POLICIES = ("Equivalent", "Exact")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_REINVOCATION_POLICIES = ("IfNeeded", "Never")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_REVIEW_VERSIONS = ("v1", "v1beta1")
_URL_FORM = "; desired format: https://host[/path]"


def webhook_configuration_errors(configuration: Object, old: Object | None) -> Errors:
    """Each webhook once, each complete."""
    seen: set[str] = set()
    for index, webhook in enumerate(configuration.get("webhooks", ())):
        path, name = f"webhooks[{index}]", webhook.get("name", "")
        yield from _webhook_errors(webhook, path)
        yield from _version_errors(
            webhook.get("admissionReviewVersions", ()), f"{path}.admissionReviewVersions"
        )
        if name and name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)


def _webhook_errors(webhook: Object, path: str) -> Errors:
    yield from _name_errors(webhook.get("name", ""), f"{path}.name")
    for index, rule in enumerate(webhook.get("rules", ())):
        yield from _rule_errors(rule, f"{path}.rules[{index}]")
    for field, supported in (
        ("failurePolicy", _FAILURE_POLICIES),
        ("matchPolicy", _MATCH_POLICIES),
        ("reinvocationPolicy", _REINVOCATION_POLICIES),
        ("sideEffects", _SIDE_EFFECTS),
    ):
        if field in webhook and webhook[field] not in supported:
            yield not_supported(f"{path}.{field}", webhook[field], supported)
    if "sideEffects" not in webhook:
        yield required(f"{path}.sideEffects", f"must specify one of {', '.join(_SIDE_EFFECTS)}")
    timeout_s = webhook.get("timeoutSeconds", 1)
    if not 1 <= timeout_s <= LONGEST_TIMEOUT_S:
        detail = f"the timeout value must be between 1 and {LONGEST_TIMEOUT_S} seconds"
        yield invalid(f"{path}.timeoutSeconds", timeout_s, detail)
    for field in ("namespaceSelector", "objectSelector"):
        yield from label_selector_errors(f"{path}.{field}", webhook.get(field, {}))
    yield from _client_errors(webhook.get("clientConfig", {}), f"{path}.clientConfig")
    yield from _conditions_errors(webhook.get("matchConditions", ()), f"{path}.matchConditions")


def _name_errors(name: str, path: str) -> Errors:
    if not name:
        yield required(path)
        return
    told = list(names.subdomain(name))
    yield from each(path, told, name)
    if not told and name.count(".") < 2:
        detail = "should be a domain with at least three segments separated by dots"
        yield invalid(path, name, detail)


def _rule_errors(rule: Object, path: str) -> Errors:
    operations = rule.get("operations", [])
    if not operations:
        yield required(f"{path}.operations")
    if len(operations) > 1 and "*" in operations:
        detail = "if '*' is present, must not specify other operations"
        yield invalid(f"{path}.operations", operations, detail)
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield not_supported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    for field, told in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(field, [])
        if not values:
            yield required(f"{path}.{field}")
        if len(values) > 1 and "*" in values:
            detail = f"if '*' is present, must not specify other {told}"
            yield invalid(f"{path}.{field}", values, detail)
    if not rule.get("resources"):
        yield required(f"{path}.resources")
    if "scope" in rule and rule["scope"] not in _SCOPES:
        yield not_supported(f"{path}.scope", rule["scope"], _SCOPES)


def _client_errors(client: Object, path: str) -> Errors:
    if ("url" in client) == ("service" in client):
        yield required(path, "exactly one of url or service is required")
    elif "url" in client:
        yield from _url_errors(client["url"], f"{path}.url")
    else:
        yield from _service_errors(client["service"], f"{path}.service")


def _url_errors(url: str, path: str) -> Errors:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        yield required(path, f"url must be a valid URL: {error}{_URL_FORM}")
        return
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}")
    if not parts.netloc:
        yield invalid(path, "", f"host must be specified{_URL_FORM}")
    if parts.username is not None:
        detail = "user information is not permitted in the URL"
        yield invalid(path, parts.netloc.rpartition("@")[0], detail)
    if parts.fragment:
        yield invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, parts.query, "query parameters are not permitted in the URL")


def _service_errors(service: Object, path: str) -> Errors:
    # The real server takes the one for the other in what it says.
    for field, told in (("namespace", "name"), ("name", "namespace")):
        if not service.get(field):
            yield required(f"{path}.{told}")
    if not 1 <= service.get("port", 443) <= 65535:
        detail = "port is not valid: must be between 1 and 65535, inclusive"
        yield invalid(f"{path}.port", service["port"], detail)
    target = service.get("path", "")
    if target and not target.startswith("/"):
        yield invalid(f"{path}.path", target, "must start with a '/'")


def _conditions_errors(conditions: Sequence[Object], path: str) -> Errors:
    if len(conditions) > MATCH_CONDITIONS:
        yield too_many(path, len(conditions), MATCH_CONDITIONS)
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        place, name = f"{path}[{index}]", condition.get("name", "")
        expression = condition.get("expression", "")
        yield from condition_expression_errors(expression, f"{place}.expression")
        if not name:
            yield required(f"{place}.name")
            continue
        yield from each(f"{place}.name", names.qualified(name), name)
        if name in seen:
            yield duplicate(f"{place}.name", name)
        seen.add(name)


def _version_errors(versions: Sequence[str], path: str) -> Errors:
    if not versions:
        yield required(path, f"must specify one of {', '.join(_REVIEW_VERSIONS)}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid(f"{path}[{index}]", version, "duplicate version")
    if not set(versions) & set(_REVIEW_VERSIONS):
        detail = f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"
        yield invalid(path, list(versions), detail)
