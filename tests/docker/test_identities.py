"""What the official client learns of the software it ran on, from the real engine as it is and from a relay in front
of it that answers what an engine with images in containerd answers. The containers are real either way."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import plimsoll_client as pc
import pytest
from docker_daemon import PROJECT_IMAGE, SNIPPET_IMAGE, TIERS, Daemon, settings
from docker_engine import Engine
from docker_proxy import Proxy
from plimsoll_client.execution import CodeExecutor

OTHER = "oci-manifest:linux/amd64@sha256:" + "1" * 64


class ManifestStore(Proxy):
    """Speaks API 1.49 to the daemon and 1.41 to the engine, and names a manifest for each image."""

    def __init__(self, engine: Engine, directory: Path) -> None:
        self.engine = engine
        super().__init__(engine.socket, directory)

    def answer(self, line: str) -> object:
        path, _, query = line.split()[1].partition("?")
        path = path.removeprefix("/v1.49")
        if path == "/version":
            return self.engine.call("GET", path) | {"ApiVersion": "1.49"}
        if path == "/info":
            return self.engine.call("GET", path) | {"DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]]}
        image = re.fullmatch("/images/(sha256:[0-9a-f]{64})/json", path)
        if image and "platform=" in query:
            manifest = {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": image[1], "size": 1}
            return self.engine.image(image[1]) | {"Descriptor": manifest}
        return None

    def forward(self, head: bytes) -> bytes:
        return head.replace(b"/v1.49/", b"/v1.41/", 1)


@pytest.fixture(scope="module")
def manifests(engine: Engine, runtime: str):
    """A daemon whose engine names manifests."""
    with tempfile.TemporaryDirectory(prefix="px") as directory:
        store = ManifestStore(engine, Path(directory))
        running = Daemon(settings(runtime, DOCKER_HOST=store.host))
        yield running
        assert running.stop() == 0


def snippet(daemon: Daemon, **more):
    return daemon.client.run_javascript("console.log(6*7)", **more)


def project(daemon: Daemon, **more):
    return daemon.client.run_project({}, ["echo 42"], **more)


KINDS = [(snippet, SNIPPET_IMAGE, "javascript_environment"), (project, PROJECT_IMAGE, "project_environment")]


def software(engine: Engine, image: str) -> str:
    seen = engine.image(image)
    return f"oci-manifest:{seen['Os']}/{seen['Architecture']}@{seen['Id']}"


@pytest.mark.parametrize("run, image, described", KINDS, ids=["snippet", "project"])
def test_the_engine_as_it_is(daemon: Daemon, engine: Engine, runtime: str, run, image: str, described: str):
    identity = "docker-image:" + engine.image(image)["Id"]
    stated = getattr(daemon.client.describe(), described)
    assert (stated.identity, stated.software_identity) == (identity, "")
    result = run(daemon, minimum_isolation=TIERS[runtime])
    assert (result.environment, result.software_identity, result.isolation) == (identity, "", TIERS[runtime])
    record = result.record
    assert (record.environment, record.software_identity, record.software_rule_id) == (identity, "", "")
    # Nothing can be claimed here, so no rule is met, not even one that names what another engine would say.
    for rule in [pc.SoftwareRule.exact(software(engine, image)), pc.SoftwareRule.approved(OTHER, identity)]:
        with pytest.raises(pc.SoftwareMismatchError) as refused:
            run(daemon, software=rule)
        assert refused.value.not_dispatched == "environment"


@pytest.mark.parametrize("run, image, described", KINDS, ids=["snippet", "project"])
def test_an_engine_that_names_manifests(manifests: Daemon, engine: Engine, runtime: str, run, image: str, described: str):
    identity, named = "docker-image:" + engine.image(image)["Id"], software(engine, image)
    stated = getattr(manifests.client.describe(), described)
    assert (stated.identity, stated.software_identity) == (identity, named)
    result = run(manifests)
    assert (result.environment, result.software_identity) == (identity, named)
    for rule in [pc.SoftwareRule.exact(named), pc.SoftwareRule.approved(OTHER, named)]:
        result = run(manifests, software=rule, minimum_isolation=TIERS[runtime])
        assert (result.software_identity, result.isolation) == (named, TIERS[runtime])
        record = result.record
        assert (record.environment, record.software_identity, record.software_rule_id) == (identity, named, rule.rule_id())
    with pytest.raises(pc.SoftwareMismatchError) as refused:
        run(manifests, software=pc.SoftwareRule.exact(OTHER))
    assert refused.value.not_dispatched == "environment"


def test_the_two_images_are_told_apart(manifests: Daemon, engine: Engine):
    with pytest.raises(pc.SoftwareMismatchError):
        snippet(manifests, software=pc.SoftwareRule.exact(software(engine, PROJECT_IMAGE)))


def test_the_executor_under_a_rule(manifests: Daemon, engine: Engine, runtime: str):
    named = software(engine, PROJECT_IMAGE)
    executor = CodeExecutor(manifests.client, minimum_isolation=TIERS[runtime], software=pc.SoftwareRule.exact(named))
    result = executor.execute_code("print(6*7)")
    assert (result.steps[0].stdout, result.software_identity) == (b"42\n", named)
    with pytest.raises(pc.SoftwareMismatchError):
        CodeExecutor(manifests.client, minimum_isolation=TIERS[runtime], software=pc.SoftwareRule.exact(OTHER)).execute_code("print(1)")


def test_another_content_is_another_identity(engine: Engine, runtime: str, start):
    made = engine.build("plimsoll/test-identity:latest", SNIPPET_IMAGE, "LABEL identity=other")
    try:
        other = start(runtime, SANDBOX_DOCKER_IMAGE="plimsoll/test-identity:latest")
        result = snippet(other)
        assert result.record.environment == "docker-image:" + made != "docker-image:" + engine.image(SNIPPET_IMAGE)["Id"]
        assert other.stop() == 0
    finally:
        engine.call("DELETE", "/images/plimsoll/test-identity:latest", force=1)
