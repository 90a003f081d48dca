"""Self-signed ECDSA certificates, as BMCs ship them. Nothing stays on disk after the context is made."""

import datetime
import hashlib
import ipaddress
import ssl
import tempfile
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its key, both PEM; `fingerprint` is SHA-256 of the DER form in lower-case hex."""

    certificate: str
    key: str
    fingerprint: str

    def server_context(self) -> ssl.SSLContext:
        """A TLS context that presents this certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(self.key + self.certificate)
            file.flush()
            context.load_cert_chain(file.name)
        return context


def self_signed(host: str = "127.0.0.1", *, valid_days: int = 3650) -> Certificate:
    """A fresh certificate for `host` (name or address), usable as its own authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"bmc-{host}")])
    now = datetime.datetime.now(datetime.UTC)
    alternative: list[x509.GeneralName] = [x509.DNSName("localhost")]
    try:
        alternative.append(x509.IPAddress(ipaddress.ip_address(host)))
    except ValueError:
        alternative.append(x509.DNSName(host))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=valid_days))
        .add_extension(x509.SubjectAlternativeName(alternative), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Certificate(
        certificate=certificate.public_bytes(serialization.Encoding.PEM).decode(),
        key=key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode(),
        fingerprint=hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).hexdigest(),
    )
