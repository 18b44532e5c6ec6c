"""What credential plugins answer (k8s.io/client-go, client.authentication.k8s.io v1, v1beta1)."""

from casaba.wire.kubernetes.meta import Wire


class ExecCredentialStatus(Wire, frozen=True):
    """A credential and its end; certificate and key are PEM."""

    expiration_timestamp: str | None = None
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""


class ExecCredential(Wire, frozen=True):
    """A plugin's answer."""

    kind: str = ""
    api_version: str = ""
    status: ExecCredentialStatus | None = None
