"""A CA of our own and the certificate that it signs for the extender's Service.

The CA lasts ten years, because kube-scheduler reads whom to trust only when it starts; what it
signs lasts one, and is signed again a month before it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LASTS: Final = timedelta(days=3650)
CERTIFICATE_LASTS: Final = timedelta(days=365)
RENEW_BEFORE: Final = timedelta(days=30)
EARLIER: Final = timedelta(hours=1)
"""Certificates begin a little in the past, for clocks that lag."""


@dataclass(frozen=True, slots=True)
class Signed:
    """A certificate with its key, both PEM."""

    certificate: bytes
    key: bytes


def make_authority(now: datetime) -> Signed:
    """A CA that signs for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hami-web")])
    builder = _builder(name, name, key, now, AUTHORITY_LASTS)
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(usage, critical=True)
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return _signed(builder.add_extension(own, critical=False), key, key)


def make_certificate(authority: Signed, names: Sequence[str], now: datetime) -> Signed:
    """A server's certificate for DNS names and addresses; ValueError for an unusable authority."""
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = serialization.load_pem_private_key(authority.key, password=None)
    if not isinstance(issuer_key, ec.EllipticCurvePrivateKey):
        raise ValueError("the CA's key is of another kind; allowed: an elliptic curve")  # noqa: TRY004
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    builder = _builder(name, issuer.subject, key, now, CERTIFICATE_LASTS)
    builder = builder.add_extension(
        x509.SubjectAlternativeName([_general(name) for name in names]), critical=False
    )
    builder = builder.add_extension(
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
    )
    theirs = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    return _signed(builder.add_extension(theirs, critical=False), key, issuer_key)


def must_be_renewed(
    certificate: bytes, authority: bytes, names: Sequence[str], now: datetime
) -> bool:
    """Whether it ends soon, is not of this CA, misses a name, or cannot be read."""
    try:
        found = x509.load_pem_x509_certificate(certificate)
        found.verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
        extension = found.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except Exception:  # noqa: BLE001  # the library names no base of what may be wrong
        return True
    missing = {_general(name) for name in names} - set(extension.value)
    return bool(missing) or found.not_valid_after_utc - now < RENEW_BEFORE


def now() -> datetime:
    """This moment, with its zone."""
    return datetime.now(UTC)


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    lasts: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + lasts)
    )


def _signed(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    by: ec.EllipticCurvePrivateKey,
) -> Signed:
    pem = serialization.Encoding.PEM
    return Signed(
        builder.sign(by, hashes.SHA256()).public_bytes(pem),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )
