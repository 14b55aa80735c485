"""A daemon over TLS that is not to be trusted: nothing is sent, and the cause is told in our own words with its cure."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import socket
import ssl
import threading

import pytest
from cli_tool import OWN_PUB, VECTORS
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NOW = datetime.datetime.now(datetime.timezone.utc)
DAY = datetime.timedelta(days=1)


class Authority:
    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        self.certificate = self.sign(self.name, self.key, True, NOW - DAY, NOW + DAY, None)

    def sign(self, name, key, authority: bool, begin, end, host):
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(self.name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(begin).not_valid_after(end)
        builder = builder.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        if host:
            builder = builder.add_extension(x509.SubjectAlternativeName([host]), critical=False)
        return builder.sign(self.key, hashes.SHA256())

    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, folder, begin=NOW - DAY, end=NOW + DAY, host=None):
        key = ec.generate_private_key(ec.SECP256R1())
        host = host or x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        leaf = self.sign(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "leaf")]), key, False, begin, end, host)
        file = folder / "leaf.pem"
        private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        file.write_bytes(leaf.public_bytes(serialization.Encoding.PEM) + private)
        return file


@contextlib.contextmanager
def peer(chain=None):
    """Answers each connection with TLS under a certificate, or with plain HTTP; counts the bytes of requests."""
    context = None
    if chain is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
    listener = socket.create_server(("127.0.0.1", 0))
    requests: list[bytes] = []

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(10)
                    if context is None:
                        connection.recv(1)
                        connection.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
                        continue
                    with context.wrap_socket(connection, server_side=True) as secure:
                        requests.append(secure.recv(4096))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}", requests
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


@pytest.mark.parametrize(
    "cause, text, cure",
    [
        ("certificate_expired", "its certificate has expired", "renew"),
        ("certificate_not_yet_valid", "its certificate is not valid yet", "clock"),
        ("wrong_host", "its certificate is for another host", "host"),
        ("unknown_issuer", "no authority trusted here signed its certificate", "--ca-file"),
        ("no_tls", "the other side does not speak TLS", "Check the port"),
    ],
)
def test_each_cause_has_its_words(cli, tmp_path, cause, text, cure):
    ours, theirs = Authority(), Authority()
    (cli.cwd / "ca.pem").write_bytes(ours.pem())
    chain = {
        "certificate_expired": lambda: ours.issue(tmp_path, NOW - 3 * DAY, NOW - DAY),
        "certificate_not_yet_valid": lambda: ours.issue(tmp_path, NOW + DAY, NOW + 2 * DAY),
        "wrong_host": lambda: ours.issue(tmp_path, host=x509.DNSName("elsewhere.example")),
        "unknown_issuer": lambda: theirs.issue(tmp_path),
        "no_tls": lambda: None,
    }[cause]()
    with peer(chain) as (url, requests):
        found = cli.both("run", "--daemon", url, "--ca-file", "ca.pem", "--js", "1")
        assert (found.code, found.cls, found.error["reason"], found.error["ran"]) == (4, "unreachable", cause, "no")
        assert text in found.error["message"] and cure in found.error["do"]
        assert "nothing was sent" in found.error["message"] and not cli.bundle.exists()
        replay = cli("replay", "--daemon", url, "--ca-file", "ca.pem", "--pub", OWN_PUB, "--line", "1", VECTORS / "own-mixed.jsonl", "--json")
        assert replay.code == 4 and text in replay.text
    assert not any(requests), "no byte of a request left"


def test_the_right_authority_is_trusted(cli, tmp_path):
    ours = Authority()
    (cli.cwd / "ca.pem").write_bytes(ours.pem())
    with peer(ours.issue(tmp_path)) as (url, requests):
        found = cli("run", "--json", "--daemon", url, "--ca-file", "ca.pem", "--js", "1")
    assert (found.code, found.cls) == (3, "may_have_run"), "it was sent, and the peer closed without an answer"
    assert requests[0].startswith(b"POST /plimsoll.v1.SandboxService/Run HTTP/1.1\r\n")
