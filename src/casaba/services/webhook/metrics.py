"""The webhook's own series; the label values are few, whatever is sent."""

import functools

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from casaba.net.certificate_pair import CertificatePair

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class WebhookMetrics:
    """What is counted; also hears what becomes of certificates (CertificateObserver)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        reviews = Counter(
            "casaba_webhook_reviews",
            "Admission reviews: changed, allowed, refused (the user's object), invalid (no review "
            "that can be judged), unavailable (try again), failed (a fault of casaba's)",
            ("path", "operation", "outcome"),
            registry=registry,
        )
        seconds = Histogram(
            "casaba_webhook_review_seconds",
            "From the request's head to the answer",
            ("path",),
            buckets=_SECONDS,
            registry=registry,
        )
        templates = Counter(
            "casaba_webhook_templates",
            "ResourceClaimTemplates that pods were given: created, renewed, found as they were, "
            "or failed",
            ("outcome",),
            registry=registry,
        )
        self._reviews = functools.cache(reviews.labels)
        self._seconds = functools.cache(seconds.labels)
        self._templates = functools.cache(templates.labels)
        self._expiry = Gauge(
            "casaba_webhook_certificate_expiry_timestamp_seconds",
            "When the certificate that is served ends",
            registry=registry,
        )
        self._authority_expiry = Gauge(
            "casaba_webhook_certificate_authority_expiry_timestamp_seconds",
            "When the last authority of ca.crt ends; 0 where none is given",
            registry=registry,
        )
        self._swaps = Counter(
            "casaba_webhook_certificate_swaps",
            "Pairs of certificate and key that were taken",
            registry=registry,
        )
        self._swap_errors = Counter(
            "casaba_webhook_certificate_swap_errors",
            "Pairs that were found and not taken, the one before being kept",
            registry=registry,
        )

    def serves(self, path: str) -> None:
        """Reviews may come at a path. What alerts wait for is there from the beginning: `increase`
        does not see a series' first event otherwise."""
        self._seconds(path)
        for operation in ("CREATE", "UPDATE", "unknown"):
            for outcome in ("failed", "unavailable"):
                self._reviews(path, operation, outcome)

    def reviewed(self, path: str, operation: str, outcome: str, seconds: float) -> None:
        """A review was answered."""
        self._reviews(path, operation, outcome).inc()
        self._seconds(path).observe(seconds)

    def template(self, outcome: str) -> None:
        """A pod needed a template."""
        self._templates(outcome).inc()

    def taken(self, pair: CertificatePair) -> None:
        """A pair is served from now on."""
        self._swaps.inc()
        self._expiry.set(pair.expires_at_s)
        self._authority_expiry.set(pair.authority_expires_at_s or 0)

    def refused(self, reason: str) -> None:
        """A pair was found that can't be served."""
        self._swap_errors.inc()
