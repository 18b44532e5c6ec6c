"""What an operator can set on `casaba webhook`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from casaba.settings.conversion import ConversionSettings


@dataclass(frozen=True, kw_only=True)
class WebhookSettings:
    """Everything that the webhook reads from flags and environment, in one value."""

    kubeconfig: Path | None = None
    """How to reach the API server; None: the service account of the pod."""

    address: str = ":8443"
    """Where reviews are taken over HTTPS, as `host:port`; no host: every interface."""

    metrics_address: str = ":8080"
    """Where /metrics, /healthz and /readyz are served over HTTP, in the same form."""

    certificate_dir: Path = Path("/tls")
    """Folder with `tls.crt` and `tls.key`, as the volume of a Secret has them; and `ca.crt`."""

    tls_minimum: Literal["1.2", "1.3"] = "1.3"
    """The oldest version of TLS that is spoken."""

    certificate_check_s: float = 5.0
    """How often that folder is looked at, in seconds."""

    review_limit_s: float = 8.0
    """How long a review may take, in seconds.

    Less than the `timeoutSeconds` of the webhook configuration (10): what is late helps nobody.
    One that the API server tells in its request counts where it is shorter.
    """

    body_limit_bytes: int = 8 << 20
    """The largest review, in bytes. The API server takes objects of 3 MiB; updates have two."""

    aside_above_bytes: int = 256 << 10
    """Larger reviews are worked on in a thread, in bytes, so that small ones need not wait."""

    stamp_age_s: float = 60.0
    """A template's stamp is renewed when it is older than this, in seconds."""

    contact_patience_s: float = 30.0
    """So long without contact to the API server, in seconds, and the webhook is not ready."""

    drain_s: float = 5.0
    """At the end: so long reviews are still taken while we are known not to be ready, in seconds.

    The time that endpoints need to change everywhere.
    """

    conversion: ConversionSettings = field(default_factory=ConversionSettings)
    """How classic pods are read."""
