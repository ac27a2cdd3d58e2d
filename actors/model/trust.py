"""Whom a TLS connection trusts: the system's authorities, and those of `ca_file` besides.

On macOS and Windows the system itself decides (truststore). Elsewhere OpenSSL's file and folder of authorities are
used, or the place where the large distributions keep theirs; `SSL_CERT_FILE` or `SSL_CERT_DIR` replace both.
"""

from __future__ import annotations

import errno
import os
import re
import ssl
import sys
from collections.abc import Mapping

from actors.model.transport_errors import BadCaFile

_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_HASHED = re.compile(r"[0-9a-f]{8}\.[0-9]", re.IGNORECASE)


def client_context(ca_file: str | None, environment: Mapping[str, str]) -> ssl.SSLContext:
    """Raises BadCaFile."""
    context = _system_context(environment)
    if ca_file:
        _load(context, ca_file, None)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _system_context(environment: Mapping[str, str]) -> ssl.SSLContext:
    file, folder = environment.get("SSL_CERT_FILE"), environment.get("SSL_CERT_DIR")
    if not (file or folder) and sys.platform in ("darwin", "win32"):
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if file:
        _load(context, file, None)
    elif folder:
        _load(context, None, folder)
    else:
        _load_system(context)
    return context


def _load_system(context: ssl.SSLContext) -> None:
    paths = ssl.get_default_verify_paths()
    file = paths.openssl_cafile if os.path.isfile(paths.openssl_cafile) else None
    folder = paths.openssl_capath if _has_authorities(paths.openssl_capath) else None
    if not file and not folder:
        file = next(filter(os.path.isfile, _BUNDLES), None)
    if file or folder:
        _load(context, file, folder)


def _has_authorities(folder: str) -> bool:
    return os.path.isdir(folder) and any(map(_HASHED.fullmatch, os.listdir(folder)))


def _load(context: ssl.SSLContext, file: str | None, folder: str | None) -> None:
    try:
        if file and os.path.exists(file) and not os.path.isfile(file):  # a pipe would be waited for
            raise OSError(errno.EINVAL, "it is not a regular file")
        context.load_verify_locations(file, folder)
    except OSError as error:  # also an SSLError: the file holds no certificate
        raise BadCaFile(file or folder or "", error) from None
