"""Certificates as a cluster has them, made for the moment by `openssl`."""

import os
import shutil
import ssl
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
# Which parts of a name an authority wants, and what it puts beside it.
_SETTINGS = """
[ca]
default_ca = here
[here]
dir = {folder}
database = $dir/index.txt
new_certs_dir = $dir
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
[server]
subjectAltName = IP:127.0.0.1
extendedKeyUsage = serverAuth
[client]
extendedKeyUsage = clientAuth
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A certificate and its key."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority in a folder, that signs certificates from any instant to any other."""

    folder: Path

    @classmethod
    def made(cls, folder: Path) -> "Authority":
        """A new one; skips the test, or fails in CI, where there is no `openssl`."""
        if shutil.which("openssl") is None:
            message = "openssl is absent: this test makes certificates"
            if os.environ.get("CI") == "true":
                pytest.fail(message)
            pytest.skip(message)
        (folder / "index.txt").touch()
        (folder / "settings").write_text(_SETTINGS.format(folder=folder))
        made = cls(folder)
        subject = ("-x509", "-subj", "/CN=authority", "-days", "3650")
        made._run("req", *_CURVE, *subject, "-keyout", "ca.key", "-out", "ca.pem")
        return made

    @property
    def certificate(self) -> Path:
        """Its own."""
        return self.folder / "ca.pem"

    def signs(self, kind: str, name: str, *, hours_ago: float, hours_left: float) -> Pair:
        """A certificate for a `client` or a `server`, good from so long ago for so long to come."""
        now = datetime.now(tz=UTC)
        start, end = now - timedelta(hours=hours_ago), now + timedelta(hours=hours_left)
        self._run("req", *_CURVE, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        self._run(
            *("ca", "-batch", "-notext", "-config", "settings", "-extensions", kind),
            *("-cert", "ca.pem", "-keyfile", "ca.key", "-in", f"{name}.csr", "-out", f"{name}.pem"),
            *("-startdate", f"{start:%Y%m%d%H%M%SZ}", "-enddate", f"{end:%Y%m%d%H%M%SZ}"),
        )
        return Pair(certificate=self.folder / f"{name}.pem", key=self.folder / f"{name}.key")

    def server(self, own: Pair) -> ssl.SSLContext:
        """How a server shows itself that lets in whom this authority knows, and nobody else."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(own.certificate, own.key)
        context.load_verify_locations(self.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _run(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)
