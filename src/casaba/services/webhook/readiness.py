"""Whether reviews should be sent here."""

from casaba.net.tls_listener import TlsListener
from casaba.services.webhook.cluster import ClusterView


class Readiness:
    """Ready: the certificate is good, what decisions need is known, the API server answers."""

    def __init__(self, listener: TlsListener, cluster: ClusterView, *, patience_s: float) -> None:
        self._listener = listener
        self._cluster = cluster
        self._patience_s = patience_s
        self.draining = False
        """Set at the end, while reviews are still answered."""

    def reason(self) -> str | None:
        """Why we are not ready; None if we are."""
        if self.draining:
            return "the webhook is ending"
        return self._listener.trouble() or self._cluster.missing() or self._away()

    def _away(self) -> str | None:
        away_s = self._cluster.away_for_s()
        if away_s <= self._patience_s:
            return None
        return f"no contact to the API server for {away_s:.0f} s"
