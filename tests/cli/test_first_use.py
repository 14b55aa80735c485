"""The signing key: made once, kept private, never shown."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from cli_fake import closed_port, good
from cli_tool import OWN_ID, OWN_KEY, OWN_PUB, SECRETS, Cli, guard_key


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def key_id(cli: Cli, pub: Path) -> str:
    """The ID of a public key, found by what a bundle signed with it says."""
    import hashlib

    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

    key = load_pem_public_key(pub.read_bytes())
    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


@pytest.mark.parametrize("umask", [0o022, 0o000, 0o077, 0o027])
def test_first_use(cli, umask):
    found = cli("run", "--js", "console.log(6*7)", umask=umask)
    assert found.code == 0 and found.out.endswith(b"stdout:\n| 42\n")
    assert sorted(os.listdir(cli.default_key.parent)) == ["attest.key", "attest.pub"], "something else was left"
    assert (mode(cli.default_key), mode(cli.default_key.parent), mode(cli.bundle)) == (0o600, 0o700, 0o600)
    assert mode(cli.default_pub) == 0o644 & ~umask
    identity = key_id(cli, cli.default_pub)
    for said in (identity, str(cli.default_key), str(cli.default_pub), "whoever holds that file can sign as you", "to those who verify"):
        assert said in found.prose, said
    assert found.out.decode().startswith("ran on wasm (process): exit 0\nrecord ")
    # The key is made once, and told of once.
    before = cli.default_key.read_bytes()
    again = cli("run", "--js", "1", "--json")
    assert again.json["key_created"] is False and again.json["key_id"] == identity and b"made the signing key" not in again.err
    assert cli.default_key.read_bytes() == before
    assert "(2 records)" in cli("verify", "--own", cli.bundle).out.decode()


def test_first_use_as_json(cli):
    found = cli("run", "--js", "1", "--json")
    assert found.json["key_created"] is True and found.json["embedded"] is True and b"made the signing key" in found.err


def test_first_uses_at_once(cli):
    """One creates, the others read it; all records in one bundle."""
    processes = [cli.popen("run", "--js", f"console.log({n})") for n in range(8)]
    ends = [(process, *process.communicate(timeout=120)) for process in processes]
    results = [cli.result(("run",), process.returncode, out, err) for process, out, err in ends]
    assert [found.code for found in results] == [0] * 8, [found.text for found in results]
    assert sum(b"made the signing key" in found.err for found in results) == 1
    assert sorted(os.listdir(cli.default_key.parent)) == ["attest.key", "attest.pub"]
    found = cli.both("verify", "--own", "--expect-count", "8", cli.bundle)
    assert found.code == 0 and found.json["bundles"][0]["lines"] == 16
    assert len(os.listdir(cli.cwd)) == 1, "a side file although all was kept"


def test_which_key(cli, fake):
    daemon = fake(good)
    key = cli.cwd / "own.key"
    key.write_bytes(OWN_KEY.read_bytes())
    key.chmod(0o600)
    pem = OWN_KEY.read_text()
    run = ("run", "--daemon", daemon.url, "--js", "1", "--json")
    assert cli(*run, "--bundle", "a", "--key", key).json["key_id"] == OWN_ID
    assert cli(*run, "--bundle", "b", env={"PLIMSOLL_ATTEST_KEY": pem}).json["key_id"] == OWN_ID
    assert os.listdir(cli.home) == [], "a default key was made beside one that was given"
    # --key before the variable; an empty variable is none; then the default key.
    assert cli("keygen", "--out", "other").code == 0
    other = key_id(cli, cli.cwd / "other.pub")
    guard_key((cli.cwd / "other.key").read_bytes())
    assert cli(*run, "--bundle", "c", "--key", "other.key", env={"PLIMSOLL_ATTEST_KEY": pem}).json["key_id"] == other
    assert cli(*run, "--bundle", "d", env={"PLIMSOLL_ATTEST_KEY": ""}).json["key_created"] is True
    # A signing key of one's own is no reason to trust bundles: verify never takes it unasked.
    assert cli("verify", "--pub", OWN_PUB, "a").code == 0
    for text in ("x", pem[:60], "-----BEGIN PUBLIC KEY-----", OWN_PUB.read_text(), b"\xff\xfe", "\n"):
        found = cli("run", "--daemon", daemon.url, "--js", "1", env={"PLIMSOLL_ATTEST_KEY": text})
        assert (found.code, found.cls) == (2, "key") and "nothing was run" in found.prose, found.text


def test_xdg_config_home(cli):
    config = cli.cwd / "config"
    found = cli("run", "--js", "1", env={"XDG_CONFIG_HOME": str(config)})
    assert found.code == 0 and mode(config / "plimsoll/attest.key") == 0o600 and os.listdir(cli.home) == []
    assert cli("verify", "--own", cli.bundle, env={"XDG_CONFIG_HOME": str(config)}).code == 0
    # A relative value would name another key in each directory; it is ignored.
    cli.bundle.unlink()
    for value in ("config", "", "./config"):
        found = cli("run", "--js", "1", "--json", env={"XDG_CONFIG_HOME": value})
        assert found.code == 0 and cli.default_key.exists()
    found = cli("run", "--daemon", closed_port(), "--js", "1", env={"HOME": None, "XDG_CONFIG_HOME": "config"})
    assert (found.code, found.cls) == (2, "key")


@pytest.mark.parametrize("kind", ["unset", "empty", "relative", "a file", "read-only", "absent below a file"])
def test_homes_that_hold_no_key(cli, fake, kind):
    """Exit 2 with the advice to give --key; nothing was run, nothing made."""
    daemon = fake(good)
    (cli.cwd / "f").write_text("x")
    home = {"unset": None, "empty": "", "relative": "somewhere", "a file": str(cli.cwd / "f"), "read-only": "/proc", "absent below a file": str(cli.cwd / "f/below")}
    for flags in ((), ("--json",)):
        found = cli("run", "--daemon", daemon.url, "--js", "1", *flags, env={"HOME": home[kind]})
        assert found.code == 2 and found.cls in ("key", "io"), found.text
        assert "nothing was run" in found.prose and "--key" in found.prose
        assert "os error" not in found.text
    assert daemon.calls == [] and os.listdir(cli.cwd) == ["f"]
    for flags in ((), ("--json",)):
        assert cli("verify", "--own", OWN_PUB, *flags, env={"HOME": home[kind]}).cls == "usage"
    # With a key of one's own the home does not matter.
    key = cli.cwd / "own.key"
    key.write_bytes(OWN_KEY.read_bytes())
    key.chmod(0o600)
    assert cli("run", "--daemon", daemon.url, "--js", "1", "--key", key, env={"HOME": home[kind]}).code == 0


def test_key_files_that_others_can_read(cli, fake):
    daemon = fake(good)
    assert cli("run", "--js", "1").code == 0
    before = cli.bundle.read_bytes()
    for bits in (0o644, 0o640, 0o604, 0o660, 0o606, 0o610, 0o601, 0o777):
        cli.default_key.chmod(bits)
        found = cli.both("run", "--daemon", daemon.url, "--js", "1")
        assert (found.code, found.cls, found.error["file"]) == (2, "key", str(cli.default_key))
        assert "chmod 600" in found.error["do"] and f"{bits:o}" in found.error["message"]
        assert mode(cli.default_key) == bits, "the mode is its owner's to change"
    assert daemon.calls == [] and cli.bundle.read_bytes() == before
    for bits in (0o600, 0o400):
        cli.default_key.chmod(bits)
        assert cli("run", "--daemon", daemon.url, "--js", "1").code == 0
    # Permissions are those of the file, not of a link to it.
    link = cli.cwd / "link"
    link.symlink_to(cli.default_key)
    assert cli("run", "--daemon", daemon.url, "--js", "1", "--key", link).code == 0


def test_default_keys_that_are_none(cli, fake):
    daemon = fake(good)
    assert cli("run", "--js", "1").code == 0
    key, good_key = cli.default_key, cli.default_key.read_bytes()

    def refused(cls: tuple[str, ...]):
        found = cli.both("run", "--daemon", daemon.url, "--js", "1", timeout=10)
        assert found.code == 2 and found.cls in cls, found.text
        assert "nothing was run" in found.error["message"]

    for content in (b"", good_key[:60], good_key[:-30], b"x" * 200, b"\n", OWN_PUB.read_bytes()):
        key.write_bytes(content)
        refused(("key",))
        assert key.read_bytes() == content, "a key is never made over another file"
    key.write_bytes(b"x" * (64 * 1024 + 1))
    refused(("io", "key"))
    key.unlink()
    key.mkdir()
    refused(("io", "key"))
    key.rmdir()
    os.mkfifo(key, 0o600)
    refused(("io", "key"))
    key.unlink()
    key.symlink_to("nowhere")
    refused(("io", "key", "exists"))
    key.unlink()
    # A public key without its private half may be all that verifiers of old bundles have.
    before = cli.default_pub.read_bytes()
    refused(("exists",))
    assert cli.default_pub.read_bytes() == before and not key.exists()
    assert daemon.calls == []
    # The other way round it is made again.
    key.write_bytes(good_key)
    key.chmod(0o600)
    cli.default_pub.unlink()
    assert cli("run", "--daemon", daemon.url, "--js", "1").code == 0 and cli.default_pub.read_bytes() == before


def test_keygen(cli):
    found = cli("keygen", "--out", "k")
    assert found.code == 0 and sorted(os.listdir(cli.cwd)) == ["k.key", "k.pub"]
    key, pub = cli.cwd / "k.key", cli.cwd / "k.pub"
    assert (mode(key), mode(pub)) == (0o600, 0o644)
    assert found.out.decode() == f"key {key_id(cli, pub)}\nk.key\nk.pub\n"
    guard_key(key.read_bytes())
    before = key.read_bytes(), pub.read_bytes()
    for missing in (None, pub, key):
        if missing:
            missing.rename(cli.cwd / "aside")
        found = cli.both("keygen", "--out", "k")
        assert (found.code, found.cls) == (2, "exists") and "neither" in found.error["message"]
        if missing:
            assert not missing.exists()
            (cli.cwd / "aside").rename(missing)
        assert (key.read_bytes(), pub.read_bytes()) == before
    # Links are not followed, dangling ones included.
    (cli.cwd / "l.key").symlink_to("target")
    assert cli("keygen", "--out", "l").cls == "exists" and not (cli.cwd / "target").exists()
    for prefix in ("absent/k", "k.key/x", "/proc/k"):
        found = cli.both("keygen", "--out", prefix)
        assert (found.code, found.cls) == (2, "io"), prefix
    script = cli("keygen", "--out", "j", "--json").json
    assert (script["key"], script["pub"]) == ("j.key", "j.pub") and script["key_id"] == key_id(cli, cli.cwd / "j.pub")
    assert sorted(os.listdir(cli.cwd)) == ["j.key", "j.pub", "k.key", "k.pub", "l.key"]
    # The umask narrows the public half alone.
    assert cli("keygen", "--out", "u", umask=0o077).code == 0
    assert (mode(cli.cwd / "u.key"), mode(cli.cwd / "u.pub")) == (0o600, 0o600)
    # Two keys are two keys.
    assert (cli.cwd / "u.key").read_bytes() != before[0]


def test_a_key_of_keygen_signs(cli, fake):
    daemon = fake(good)
    assert cli("keygen", "--out", "k").code == 0
    guard_key((cli.cwd / "k.key").read_bytes())
    assert cli("run", "--daemon", daemon.url, "--key", "k.key", "--js", "1").code == 0
    assert cli("verify", "--pub", "k.pub", cli.bundle).code == 0
    assert cli("verify", "--pub", OWN_PUB, cli.bundle).cls == "signature"


def test_no_key_in_any_file_it_writes(cli, fake):
    """Not in the bundle, not in a page, not in what is said; every output of every test is looked at as well."""
    daemon = fake(good)
    assert cli("run", "--daemon", daemon.url, "--js", "1").code == 0
    guard_key(cli.default_key.read_bytes())
    for file in cli.folder.rglob("*"):
        if file.is_file() and file != cli.default_key:
            content = file.read_bytes()
            assert not any(secret in content for secret in SECRETS), file
    assert len(SECRETS) > 6 and json.loads(cli.bundle.read_bytes().splitlines()[0])
