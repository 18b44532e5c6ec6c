"""What cert-manager makes of Certificates, by what their Issuers say.

As far as the chart needs it: an Issuer that signs with the certificate's own key makes an
authority, and one of an authority's Secret makes serving certificates (cert-manager.io/docs,
"SelfSigned" and "CA").
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.cluster import certificates
from tests.cluster.certificates import KeyPair

GROUP = "cert-manager.io"

Object = dict[str, Any]
Find = Callable[[str, Callable[[Object], bool]], Object]
"""The object of a kind for which something holds; one that is not there yet is waited for."""


class Issuing:
    """Issues one namespace's Certificates, and keeps what it has issued by the Secrets' names."""

    def __init__(self, folder: Path, find: Find) -> None:
        self._folder = folder
        self._find = find
        self._issued: dict[str, KeyPair] = {}
        self.secrets: dict[str, Object] = {}
        """What is issued, as Secrets, by their names; those of authorities first."""

    def issue(self, certificate: str) -> None:
        """Issue a Certificate or renew it; the one of its authority first if that has none."""
        spec = self._find("Certificate", _named(certificate))["spec"]
        signer = self._signer(spec["issuerRef"])
        pair = self._signed(certificate, spec, signer)
        self._issued[spec["secretName"]] = pair
        self.secrets[spec["secretName"]] = _secret(certificate, spec, pair, signer or pair)

    def _signer(self, reference: Object) -> KeyPair | None:
        """Whose key signs; None: the certificate's own."""
        assert reference["kind"] == "Issuer"
        spec = self._find("Issuer", _named(reference["name"]))["spec"]
        if spec == {"selfSigned": {}}:
            return None
        secret = spec["ca"]["secretName"]
        if secret not in self._issued:
            found = self._find("Certificate", lambda one: one["spec"]["secretName"] == secret)
            self.issue(found["metadata"]["name"])
        return self._issued[secret]

    def _signed(self, name: str, spec: Object, signer: KeyPair | None) -> KeyPair:
        if signer is not None:
            return certificates.server(signer, self._folder, name, spec["dnsNames"])
        assert spec["isCA"]
        before = self._issued.get(spec["secretName"])
        keeps = spec["privateKey"]["rotationPolicy"] == "Never"
        key = before.key if before and keeps else None
        return certificates.authority(self._folder, spec["commonName"], key)


def _named(name: str) -> Callable[[Object], bool]:
    return lambda one: one["metadata"]["name"] == name


def _secret(certificate: str, spec: Object, pair: KeyPair, signer: KeyPair) -> Object:
    files = {"ca.crt": signer.crt, "tls.crt": pair.crt, "tls.key": pair.private}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": spec["secretName"],
            "annotations": {f"{GROUP}/certificate-name": certificate},
        },
        "type": "kubernetes.io/tls",
        "data": {
            name: base64.b64encode(file.read_bytes()).decode() for name, file in files.items()
        },
    }
