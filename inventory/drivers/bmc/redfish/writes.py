"""PATCH with entity tags, as the pickiest BMCs want it (TELEMETRY 6.7)."""

from collections.abc import Iterator

from inventory.drivers.bmc.redfish.client import Answer, RedfishClient
from inventory.drivers.bmc.redfish.resources import Resource, words
from inventory.drivers.bmc.redfish.session import Login

_PRECONDITION = (412, 428)


async def patch(client: RedfishClient, login: Login, path: str, changes: Resource) -> Answer:
    """Changes properties; RedfishError when the BMC refuses.

    The tag is read just before, because some resources change it every second, and always sent,
    because some AMI firmware drops a write without one and says nothing. A service that does not like
    the tag's form gets it in another one.
    """
    await login.ensure()
    current = await client.send("GET", path, None)
    client.expect_success(path, current)
    answer = Answer(0, {})
    for tag in _forms(current):
        answer = await client.send("PATCH", path, changes, headers={"If-Match": tag} if tag else {})
        if answer.status not in _PRECONDITION:
            break
    client.expect_success(path, answer)
    return answer


def _forms(current: Answer) -> Iterator[str]:
    """The tag as given, in strong form, and any; nothing where the service has no tags."""
    tag = current.headers.get("etag", "") or words(current.body.get("@odata.etag"))
    yield tag
    if tag.startswith("W/"):
        yield tag.removeprefix("W/")
    yield "*"
