"""Whom a TLS connection trusts: faults of the file that says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from actors.model.transport_errors import BadCaFile
from actors.model.trust import client_context


@pytest.mark.timeout(20)
@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
@pytest.mark.parametrize("kind", ["pipe", "folder", "text", "missing"])
def test_what_holds_no_certificates_is_refused_and_not_waited_for(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "text":
        path.write_text("no certificate")
    for ca_file, environment in ((str(path), {}), (None, {"SSL_CERT_FILE": str(path)})):
        with pytest.raises(BadCaFile) as raised:
            client_context(ca_file, environment)
        assert raised.value.path == str(path)
