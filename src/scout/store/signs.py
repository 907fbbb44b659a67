"""Signs of life that are newer than the rows: kept in memory, and seen by whoever reads an endpoint."""

from collections.abc import Mapping

from scout.model.endpoint import Endpoint


def as_heard(endpoint: Endpoint, signs: Mapping[str, Endpoint]) -> Endpoint:
    """The endpoint with its last sign of life, by its id; a row that has changed since is newer."""
    sign = signs.get(endpoint.id)
    return sign if sign is not None and sign.revision == endpoint.revision else endpoint
