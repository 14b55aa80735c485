"""The deployment files: what systemd itself says of the unit, and what it must hold."""

import pathlib
import shutil
import subprocess

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "docs" / "deploy"
UNIT = "plimsoll-attest.service"


def directives(path):
    found = {}
    for line in path.read_text().splitlines():
        if line and line[0] not in "#[;":
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def test_systemd_accepts_the_unit_and_its_drop_in(tmp_path):
    """Its program must exist to be accepted, so it is the shell here."""
    text = (DEPLOY / UNIT).read_text()
    assert "ExecStart=/usr/local/bin/plimsoll-attest daemon\n" in text
    unit = tmp_path / UNIT
    unit.write_text(text.replace("/usr/local/bin/plimsoll-attest", "/bin/sh"))
    # The engine's unit is another package's.
    (tmp_path / "docker.service").write_text("[Service]\nExecStart=/bin/sh\n")
    for with_drop_in in (False, True):
        if with_drop_in:
            shutil.copytree(DEPLOY / f"{UNIT}.d", tmp_path / f"{UNIT}.d")
        verified = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", "--recursive-errors=one", str(unit)],
            capture_output=True,
            text=True,
            timeout=120,
        )
        ours = [line for line in verified.stderr.splitlines() if UNIT in line]
        assert ours == [], verified.stderr


def test_the_unit_neither_loops_nor_cuts_runs():
    unit = directives(DEPLOY / UNIT)
    assert unit["Restart"] == ["on-failure"]
    assert unit["RestartPreventExitStatus"] == ["2"]
    assert int(unit["TimeoutStopSec"][0]) > 360
    assert int(unit["TimeoutStartSec"][0]) > 120
    assert unit["LimitCORE"] == ["0"]
    for name in ("NoNewPrivileges", "DynamicUser", "PrivateDevices", "ProtectKernelModules", "RestrictNamespaces"):
        assert unit[name] == ["yes"], name
    assert unit["CapabilityBoundingSet"] == [""]


def test_the_docker_drop_in_keeps_a_directory_that_the_engine_sees():
    """A unit with a dynamic user has a /tmp of its own, and PrivateTmp=no would be ignored."""
    assert directives(DEPLOY / UNIT)["DynamicUser"] == ["yes"]
    drop_in = directives(DEPLOY / f"{UNIT}.d" / "docker.conf")
    assert "PrivateTmp" not in drop_in
    assert drop_in["Environment"] == [f"TMPDIR=/run/{drop_in['RuntimeDirectory'][0]}"]


def test_the_image_stops_gently_and_is_not_root():
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    final = lines[max(i for i, line in enumerate(lines) if line.startswith("FROM ")) :]
    assert "STOPSIGNAL SIGTERM" in final
    assert any(line.startswith("USER 65532") for line in final)
    assert 'ENTRYPOINT ["/usr/local/bin/plimsoll-attest", "daemon"]' in final
    assert not any("TOKEN" in line for line in lines)
