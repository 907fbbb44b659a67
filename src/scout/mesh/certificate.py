"""The certificate of the server of a mesh: made here, signed by itself, and pinned by its SHA-256."""

import hashlib
import hmac
import ssl
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_LIVES = timedelta(days=36_500)  # it is trusted by its hash, so its date protects nothing
_CLOCKS = timedelta(days=400)  # the clocks of two machines may differ


class WrongCertificate(ssl.SSLError):
    """The server showed another certificate; both are SHA-256 in hex."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"the server shows the certificate {found}")
        self.expected = expected
        self.found = found


def make_certificate(name: str) -> tuple[str, str]:
    """Return a new certificate and its private key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - _CLOCKS).not_valid_after(now + _LIVES)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    certificate = builder.sign(key, SHA256())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM).decode(), private.decode()


def hash_certificate(pem: str) -> str:
    """Return the SHA-256 of a certificate, in hex."""
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()


def build_pinned_context(expected: str) -> ssl.SSLContext:
    """Build a context that accepts exactly one certificate, whatever name or address the server has.

    The hash is compared as the last step of the handshake, before the first byte is sent to the server.
    """

    class PinnedObject(ssl.SSLObject):
        pin: ClassVar[str] = expected

        def do_handshake(self) -> None:
            super().do_handshake()
            found = hashlib.sha256(self.getpeercert(binary_form=True) or b"").hexdigest()
            if not hmac.compare_digest(found.encode(), self.pin.encode()):
                raise WrongCertificate(self.pin, found)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # the hash says more than any authority
    context.sslobject_class = PinnedObject
    return context
