"""From a stored connection to an open driver. Secrets live as long as the visit and are in no repr."""

import base64
import binascii
import hashlib
import hmac
import json
import tempfile
import time
from dataclasses import dataclass, field

from inventory.drivers.clusters import KubernetesTarget, SlurmTarget, open_kubernetes, open_slurm
from inventory.drivers.clusters.capabilities import ClusterDriver
from inventory.models import ClusterConnection, Scheduler
from sensaka.kernel.errors import InvalidInput

_TOKEN_SECONDS = 3600
_SHORTEST_KEY = 16  # bytes


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach one scheduler, with its secrets in clear."""

    scheduler: str
    address: str = ""
    username: str = ""
    token: str = field(default="", repr=False)
    jwt_key: str = field(default="", repr=False)
    kubeconfig: str = field(default="", repr=False)
    in_cluster: bool = False
    tls_authority: str = field(default="", repr=False)
    commands: bool = False
    slurm_conf: str = ""


def access_of(connection: ClusterConnection) -> Access:
    """The access of a stored connection."""
    return Access(**{name: getattr(connection, name) for name in Access.__dataclass_fields__})


def open_driver(access: Access) -> ClusterDriver:
    """A driver, to be closed by the caller. Raises InvalidInput for what can't be used."""
    if access.scheduler == Scheduler.SLURM:
        return _open_slurm(access)
    if access.scheduler == Scheduler.KUBERNETES:
        return _open_kubernetes(access)
    raise InvalidInput(f"scheduler is one of {', '.join(Scheduler.values)}", field="scheduler")


def _open_slurm(access: Access) -> ClusterDriver:
    token = access.token
    if access.jwt_key:
        token = slurm_token(access.jwt_key, user=access.username, now=time.time())
    environment = {"SLURM_CONF": access.slurm_conf} if access.slurm_conf else {}
    try:
        # The PEM is read while the driver is made and needed no longer.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as authority:
            authority.write(access.tls_authority)
            authority.flush()
            return open_slurm(
                SlurmTarget(
                    url=access.address,
                    user=access.username,
                    token=token,
                    ca_file=authority.name if access.tls_authority else "",
                    commands=access.commands,
                    environment=environment,
                )
            )
    except (ValueError, OSError) as error:  # ssl's errors are OSErrors
        raise InvalidInput(f"this connection can't be used: {error}") from None


def _open_kubernetes(access: Access) -> ClusterDriver:
    text = access.kubeconfig or ("" if access.in_cluster else _kubeconfig(access))
    try:
        return open_kubernetes(KubernetesTarget(kubeconfig=text, in_cluster=access.in_cluster))
    except (ValueError, OSError) as error:
        raise InvalidInput(f"this connection can't be used: {error}") from None


def _kubeconfig(access: Access) -> str:
    """A kubeconfig (JSON is YAML) of an address, a token and an authority."""
    cluster: dict[str, str] = {"server": access.address}
    if access.tls_authority:
        cluster["certificate-authority-data"] = base64.b64encode(access.tls_authority.encode()).decode()
    named = {"name": "cluster"}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "cluster",
        "contexts": [{**named, "context": {"cluster": "cluster", "user": "cluster"}}],
        "clusters": [{**named, "cluster": cluster}],
        "users": [{**named, "user": {"token": access.token}}],
    }
    return json.dumps(document)


def slurm_token(key: str, *, user: str, now: float) -> str:
    """A JWT for slurmrestd, signed with Slurm's HS256 key (base64), good for an hour.

    Claims as Slurm's auth/jwt reads them: `sun` is the user's name, `iat` and `exp` are seconds (RFC 7519).
    """
    claims = {"exp": int(now) + _TOKEN_SECONDS, "iat": int(now), "sun": user}
    parts = [{"alg": "HS256", "typ": "JWT"}, claims]
    text = ".".join(_encoded(json.dumps(part, separators=(",", ":")).encode()) for part in parts)
    signature = hmac.new(key_bytes(key), text.encode(), hashlib.sha256).digest()
    return f"{text}.{_encoded(signature)}"


def key_bytes(key: str) -> bytes:
    """The key's bytes. Raises InvalidInput when it is no base64 or too short."""
    try:
        found = base64.b64decode("".join(key.split()), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("give the key file's bytes as base64 (base64 -w0 jwt_hs256.key)", field="jwt_key") from None
    if len(found) < _SHORTEST_KEY:
        raise InvalidInput(f"a key has at least {_SHORTEST_KEY} bytes", field="jwt_key")
    return found


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
