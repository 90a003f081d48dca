"""TLS by policy. A pinned certificate is compared inside the handshake, before any byte of a request.

httpx can't do that itself; `SSLContext.sslobject_class` is the documented hook. Every connection of
the driver is compared, not only the first, so nothing can slip in between two of them.
"""

import hashlib
import ssl

from inventory.observations import BmcTarget, TlsPolicy


def normal_fingerprint(text: str) -> str:
    """SHA-256 as lower-case hex, from any of the forms people paste (colons, blanks, `sha256:`)."""
    return text.strip().lower().removeprefix("sha256:").replace(":", "").replace(" ", "")


class CertificateMemory:
    """The fingerprint that is required, and the one that was seen."""

    def __init__(self, required: str = "") -> None:
        self.required = normal_fingerprint(required)
        self.seen = ""

    def check(self, certificate: bytes | None) -> None:
        """Raises SSLCertVerificationError when the certificate is not the required one.

        With nothing required the first one is kept (trust on first use) and the visit stays with it.
        """
        found = hashlib.sha256(certificate or b"").hexdigest() if certificate else ""
        if self.required and found != self.required:
            raise ssl.SSLCertVerificationError(f"the certificate has fingerprint {found}, not {self.required}")
        self.seen = found


def _object_class(memory: CertificateMemory, *, pin: bool) -> type[ssl.SSLObject]:
    class CheckedObject(ssl.SSLObject):
        def do_handshake(self) -> None:
            super().do_handshake()
            memory.check(self.getpeercert(binary_form=True))
            if pin and not memory.required:
                memory.required = memory.seen

    return CheckedObject


def client_context(target: BmcTarget, memory: CertificateMemory) -> ssl.SSLContext:
    """The context for this target's policy. A CA that can't be read raises ssl.SSLError."""
    if target.tls is TlsPolicy.AUTHORITY:
        context = ssl.create_default_context(cadata=target.tls_authority or None)
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        # Old BMCs have 1024-bit keys, which OpenSSL 3 refuses at its default level (TELEMETRY 6.8).
        context.set_ciphers("DEFAULT:@SECLEVEL=1")
    context.sslobject_class = _object_class(memory, pin=target.tls is TlsPolicy.FINGERPRINT)
    return context
