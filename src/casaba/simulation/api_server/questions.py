"""Creates that store nothing: reviews, and tokens for service accounts."""

from casaba.simulation.api_server.access import Objects
from casaba.simulation.api_server.authentication import Authenticator
from casaba.simulation.api_server.requests import ResourceRequest
from casaba.simulation.api_server.reviews import reviewed
from casaba.simulation.api_server.strategy import decoded
from casaba.simulation.api_server.token_requests import requested_token
from casaba.simulation.api_server.writes import Clock, Written
from casaba.simulation.authority import ClusterAuthority

_TOKEN_REQUEST = ("authentication.k8s.io/v1", "TokenRequest")


class Questions:
    """Answers what is asked by creating an object."""

    def __init__(
        self,
        authority: ClusterAuthority,
        authenticator: Authenticator,
        objects: Objects,
        clock: Clock,
    ) -> None:
        self._authority = authority
        self._authenticator = authenticator
        self._objects = objects
        self._clock = clock

    async def review(self, request: ResourceRequest) -> Written:
        """Who is it, or may it; raises ApiError."""
        validation = request.query.get("fieldValidation", "")
        asked, warnings = decoded(request.resource, request.body, request.content_type, validation)
        answer = await reviewed(
            request, asked, authenticator=self._authenticator, objects=self._objects
        )
        return Written(object=answer, code=201, warnings=warnings)

    async def token(self, request: ResourceRequest) -> Written:
        """A service account's token; raises ApiError."""
        asked, warnings = decoded(
            request.resource, request.body, request.content_type, "", kind=_TOKEN_REQUEST
        )
        answer = requested_token(
            request,
            asked,
            authority=self._authority,
            objects=self._objects,
            now_s=int(self._clock().timestamp()),
        )
        return Written(object=answer, code=201, warnings=warnings)
