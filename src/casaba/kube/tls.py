"""TLS towards the API server, with a context of our own instead of the library's default."""

import os
import ssl

from casaba.kube.config import KubeConfig
from casaba.kube.errors import KubeConfigError


def tls_context(config: KubeConfig) -> ssl.SSLContext | None:
    """The context for a server, None for plain HTTP; raises KubeConfigError for bad PEM."""
    if config.server.startswith("http://"):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        _trust(context, config)
    if config.client_certificate_pem and config.client_key_pem:
        _identify(context, config, config.client_certificate_pem + b"\n" + config.client_key_pem)
    return context


def _trust(context: ssl.SSLContext, config: KubeConfig) -> None:
    if config.authority_pem is None:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cadata=config.authority_pem)
    except (ssl.SSLError, ValueError) as error:
        raise KubeConfigError(
            f"{config.origin}: certificate-authority holds no PEM certificate: {error}"
        ) from None


def _identify(context: ssl.SSLContext, config: KubeConfig, chain_and_key_pem: bytes) -> None:
    # The ssl module only reads files; one in memory keeps the key off the disk.
    descriptor = os.memfd_create("client-key", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(chain_and_key_pem)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=_no_password)
    except (ssl.SSLError, ValueError) as error:
        raise KubeConfigError(
            f"{config.origin}: client-certificate and client-key are no matching PEM pair: {error}"
        ) from None
    finally:
        os.close(descriptor)


def _no_password() -> str:
    """Without it, OpenSSL would ask at the terminal for the password of an encrypted key."""
    raise ValueError("the key is encrypted")
