"""How to reach one API server: a kubeconfig's text, or the account of the pod that we run in.

A kubeconfig is a program as much as a file: it may name commands to run and files to read. Here it
comes from a form, so only what is written in it counts, and everything else is refused by name.
"""

import base64
import binascii
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from msgspec import Struct

_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LONGEST = 1_000_000  # characters
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_COMMANDS = ("exec", "auth-provider")
_SECRET = ("as", "as-groups", "as-uid", "as-user-extra", "username", "password")


class KubeconfigError(ValueError):
    """A kubeconfig that can't be used, and why."""


class Access(Struct, frozen=True, kw_only=True):
    """One API server and who we are there. Secrets are never shown: repr leaves them out."""

    server: str
    name: str = ""
    ca: str = ""  # PEM
    token: str = ""
    token_file: str = ""  # of a pod's own account only: the kubelet renews it
    certificate: str = ""  # PEM
    key: str = ""  # PEM
    tls_server_name: str = ""
    proxy: str = ""

    def __repr__(self) -> str:
        return f"Access({self.server})"


def access_of(text: str, context: str = "") -> Access:
    """What a kubeconfig says, of `context` or of its current one. KubeconfigError says what is wrong."""
    if len(text) > _LONGEST:
        raise KubeconfigError("this is longer than a kubeconfig can be")
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        # The parser's own words quote the line, which may hold a token.
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        raise KubeconfigError(f"this is no YAML{where}") from None
    if not isinstance(document, dict):
        raise KubeconfigError("this is no kubeconfig")
    chosen = context or str(document.get("current-context") or "")
    if not chosen:
        raise KubeconfigError("no current-context: name the context to use")
    place = _named(document, "contexts", chosen, "context")
    cluster_name = str(place.get("cluster") or "")
    cluster = _named(document, "clusters", cluster_name, "cluster")
    user = _named(document, "users", str(place.get("user") or ""), "user")
    _refuse(cluster, user)
    return _checked(
        Access(
            server=str(cluster.get("server") or "").rstrip("/"),
            name=cluster_name[:200],
            ca=_decoded(cluster, "certificate-authority-data"),
            token=str(user.get("token") or "").strip(),
            certificate=_decoded(user, "client-certificate-data"),
            key=_decoded(user, "client-key-data"),
            tls_server_name=str(cluster.get("tls-server-name") or ""),
            proxy=str(cluster.get("proxy-url") or ""),
        )
    )


def access_in_cluster() -> Access:
    """The account that Kubernetes gives to the pod that we run in. KubeconfigError outside of one."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    token = _SERVICE_ACCOUNT / "token"
    if not host or not port or not token.is_file():
        raise KubeconfigError("we don't run in a pod with an account: give a kubeconfig")
    shown = f"[{host}]" if ":" in host else host
    ca = (_SERVICE_ACCOUNT / "ca.crt").read_text()
    return Access(server=f"https://{shown}:{port}", name="in-cluster", ca=ca, token_file=str(token))


def _named(document: dict[str, Any], section: str, name: str, key: str) -> dict[str, Any]:
    entries = document.get(section)
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("name") == name:
            found = entry.get(key)
            if isinstance(found, dict):
                return found
    raise KubeconfigError(f"there is no {key} {name[:100]!r} in it")


def _refuse(cluster: dict[str, Any], user: dict[str, Any]) -> None:
    for name in _COMMANDS:
        if name in user:
            raise KubeconfigError(
                f"the user is logged in by {name}, which would run a program here: "
                "make a token of a service account instead"
            )
    for name in _FILES:
        if cluster.get(name) or user.get(name):
            raise KubeconfigError(f"{name} names a file: put its content in (kubectl config view --raw --flatten)")
    for name in _SECRET:
        if user.get(name):
            raise KubeconfigError(f"{name} is not supported: use a token or a client certificate")
    if cluster.get("insecure-skip-tls-verify"):
        raise KubeconfigError(
            "insecure-skip-tls-verify would give our token to anybody: put the authority into "
            "certificate-authority-data"
        )


def _decoded(entry: dict[str, Any], name: str) -> str:
    value = entry.get(name)
    if not value:
        return ""
    try:
        return base64.b64decode(str(value), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise KubeconfigError(f"{name} is not base64 of PEM") from error


def _checked(access: Access) -> Access:
    parts = urlsplit(access.server)
    if parts.scheme != "https" and not _on_this_host(parts.hostname or "", parts.scheme):
        raise KubeconfigError("the server's address has to begin with https://")
    if not parts.hostname or parts.username or parts.query:
        raise KubeconfigError("the server's address makes no sense")
    if bool(access.certificate) != bool(access.key):
        raise KubeconfigError("a client certificate needs its key, and a key its certificate")
    if not access.token and not access.certificate:
        raise KubeconfigError("the user has neither a token nor a client certificate")
    if access.proxy and urlsplit(access.proxy).scheme not in ("http", "https"):
        raise KubeconfigError("proxy-url has to be http:// or https://")
    return access


def _on_this_host(host: str, scheme: str) -> bool:
    return scheme == "http" and host in ("127.0.0.1", "localhost", "::1")
