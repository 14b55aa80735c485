"""What the official client learns of the software it ran on, from the real engine and the real images. Debian 12's
engine names no manifests; a software identity that is not empty is tested on the fake engine."""

from __future__ import annotations

import plimsoll_client as pc
import pytest
from docker_daemon import PROJECT_IMAGE, SNIPPET_IMAGE, TIERS, Daemon
from docker_engine import Engine

OTHER = "oci-manifest:linux/amd64@sha256:" + "1" * 64


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


def test_another_content_is_another_identity(engine: Engine, runtime: str, start):
    made = engine.build("plimsoll/test-identity:latest", SNIPPET_IMAGE, "LABEL identity=other")
    try:
        other = start(runtime, SANDBOX_DOCKER_IMAGE="plimsoll/test-identity:latest")
        result = snippet(other)
        assert result.record.environment == "docker-image:" + made != "docker-image:" + engine.image(SNIPPET_IMAGE)["Id"]
        assert other.stop() == 0
    finally:
        engine.call("DELETE", "/images/plimsoll/test-identity:latest", force=1)
