"""The official Python client v0.22.0, unmodified, against this daemon."""

from __future__ import annotations

import asyncio
import threading

import plimsoll_client as pc
import pytest
from interop_daemon import TOKEN
from plimsoll_client.execution import CodeExecutor


@pytest.fixture(scope="module")
def client(daemon):
    return pc.Client(daemon.url, token=TOKEN)


def test_describe(client):
    info = client.describe()
    assert (info.provider, info.isolation, info.protocol) == ("wasm", "process", 3)
    assert info.javascript_environment.identity.startswith("quickjs-wasm:sha256:")
    assert info.javascript_environment.max_timeout_ms == 30_000
    assert info.project_environment.identity == ""
    assert not info.supports_project and not info.supports_module and not info.supports_sessions
    assert info.resources.memory_mb in (0, 256)


def test_snippet_and_record(client):
    result = client.run_javascript('console.log("wasm", 6*7)', minimum_isolation="process", trace_id="job-7.attempt:1")
    assert result.stdout == b"wasm 42\n"
    assert (result.exit_code, result.timed_out) == (0, False)
    assert (result.provider, result.isolation) == ("wasm", "process")
    record = result.record
    assert record is not None and record.version == 2
    assert record.environment == result.environment == client.describe().javascript_environment.identity
    assert record.ended_unix_ms >= record.started_unix_ms


def test_failing_snippet_is_an_answer(client):
    result = client.run_javascript('throw new Error("boom")')
    assert result.exit_code == 1 and b"boom" in result.stderr
    assert result.record is not None


def test_guest_streams_and_bytes(client):
    result = client.run_javascript('console.error("E"); console.log("é \\u0000 \\ud800 end")')
    assert b"E" in result.stderr
    assert "é".encode() in result.stdout and b"\x00" in result.stdout and result.stdout.endswith(b"end\n")


def test_timeout(client):
    result = client.run_javascript('console.log("before"); while (true) {}', timeout=1)
    assert (result.timed_out, result.exit_code) == (True, 124)
    assert result.stdout == b"before\n"
    assert result.duration_ms < 5000


def test_output_cap(client):
    result = client.run_javascript('console.log("x".repeat(70 * 1024))')
    assert len(result.stdout) == 65_536 and result.stdout_truncated and not result.stderr_truncated
    assert result.stdout == b"x" * 65_536


def test_nothing_survives_a_run(client):
    client.run_javascript("globalThis.x = 1")
    assert client.run_javascript("console.log(typeof x)").stdout == b"undefined\n"
    first, second = (client.run_javascript("console.log(Math.random())").stdout for _ in range(2))
    assert first != second


@pytest.mark.parametrize("floor", ["container", "kernel", "vm"])
def test_floor_above_the_tier(client, floor):
    with pytest.raises(pc.InsufficientIsolationError) as refused:
        client.run_javascript("1", minimum_isolation=floor)
    assert refused.value.not_dispatched == "isolation"


def test_software_rule(client):
    rule = pc.SoftwareRule.exact("oci-manifest:linux/amd64@sha256:" + "1" * 64)
    with pytest.raises(pc.SoftwareMismatchError) as refused:
        client.run_javascript("1", software=rule)
    assert refused.value.not_dispatched == "environment"


def test_unsupported_kinds(client):
    with pytest.raises(pc.UnsupportedError) as refused:
        client.run_project({"a.js": "1"}, ["node a.js"])
    assert refused.value.not_dispatched == "unsupported"
    with pytest.raises(pc.UnsupportedError) as refused:
        client.run_module("m", [[1.0, -0.0]], end_time=1.0, step=1.0)
    assert refused.value.not_dispatched == "unsupported"
    with pytest.raises(pc.UnsupportedError) as refused:
        client.open_session()
    assert refused.value.not_dispatched == "unsupported"
    # The floor is reported before what the provider cannot do.
    with pytest.raises(pc.InsufficientIsolationError):
        client.run_project({}, ["true"], minimum_isolation="vm")


def test_grants(client):
    with pytest.raises(pc.PlimsollError) as refused:
        client.run_javascript("1", grant_profile="billing")
    assert (refused.value.code, refused.value.not_dispatched) == ("permission_denied", "permission")


def test_invalid_requests_never_leave_the_client(client):
    with pytest.raises(pc.InvalidRequestError) as refused:
        client.run_javascript("")
    assert refused.value.not_dispatched == "request"


def test_credentials(daemon):
    for token in (None, "x" * 40, TOKEN + "x"):
        with pytest.raises(pc.PlimsollError) as refused:
            pc.Client(daemon.url, token=token).run_javascript("1")
        assert (refused.value.code, refused.value.not_dispatched) == ("unauthenticated", "permission")
    with pytest.raises(pc.PlimsollError):
        pc.Client(daemon.url).describe()


def persistently(client, code, **options):
    """Runs code as soon as the daemon's only slot is free: `in_flight` may hold it."""
    while True:
        try:
            return client.run_javascript(code, **options)
        except pc.AtCapacityError:
            pass


def in_flight(client):
    """Returns once another call holds the daemon's only slot."""
    while True:
        try:
            client.run_javascript("1")
        except pc.AtCapacityError:
            return


def test_cancelled_call(start):
    daemon = start(SANDBOX_PROVIDER="wasm", PLIMSOLL_INSECURE="1", SANDBOX_MAX_CONCURRENT="1", SANDBOX_RATE_PER_MIN="0")
    client, handle, errors = pc.Client(daemon.url), pc.CancelHandle(), []

    def call():
        try:
            persistently(client, "while (true) {}", timeout=30, cancel=handle)
        except pc.PlimsollError as error:
            errors.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    in_flight(client)
    handle.cancel()
    thread.join()
    assert isinstance(errors[0], pc.RequestCanceledError) and not errors[0].not_dispatched
    # The daemon hears of it: the run ends long before its own budget, and its slot comes back.
    line = daemon.wait_for("code run failed")
    assert line["duration_ms"] < 20_000
    assert client.run_javascript("console.log(1)").stdout == b"1\n"


def test_cancelled_before_sending(client):
    handle = pc.CancelHandle()
    handle.cancel()
    with pytest.raises(pc.RequestCanceledError) as never:
        client.run_javascript("1", cancel=handle)
    assert never.value.not_dispatched == "request"


def test_request_timeout_is_unmarked(daemon):
    hasty = pc.Client(daemon.url, token=TOKEN, request_timeout=0.5)
    with pytest.raises(pc.RequestTimeoutError) as lost:
        hasty.run_javascript("while (true) {}", timeout=2)
    assert not lost.value.not_dispatched


def test_many_callers_at_once(client):
    answers: list[bytes] = []
    refused: list[str] = []

    def call(n: int) -> None:
        try:
            answers.append(client.run_javascript(f"console.log({n})").stdout)
        except pc.AtCapacityError as full:
            refused.append(full.not_dispatched)

    threads = [threading.Thread(target=call, args=(n,)) for n in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) + len(refused) == 32 and answers
    assert set(refused) <= {"capacity"}
    assert len(set(answers)) == len(answers)


def test_async_client(daemon):
    async def go():
        result = await pc.AsyncClient(daemon.url, token=TOKEN).run_javascript("console.log(1)")
        return result.stdout

    assert asyncio.run(go()) == b"1\n"


def test_code_executor_needs_projects(daemon):
    executor = CodeExecutor(pc.Client(daemon.url, token=TOKEN), minimum_isolation="process")
    with pytest.raises(pc.UnsupportedError) as refused:
        executor.execute_code("console.log(6 * 7)", language="javascript")
    assert refused.value.not_dispatched == "unsupported"


def test_disabled_provider(start):
    daemon = start()
    assert (daemon.listening["provider"], daemon.listening["isolation"]) == ("disabled", "none")
    client = pc.Client(daemon.url)
    info = client.describe()
    assert (info.provider, info.isolation) == ("disabled", "none")
    with pytest.raises(pc.DisabledError) as refused:
        client.run_javascript("1")
    assert refused.value.not_dispatched == "unsupported"


def test_capacity(start):
    daemon = start(SANDBOX_PROVIDER="wasm", PLIMSOLL_INSECURE="1", SANDBOX_RATE_PER_MIN="1", SANDBOX_RATE_BURST="1")
    client = pc.Client(daemon.url)
    # Refusals before admission spend nothing of the rate.
    with pytest.raises(pc.InsufficientIsolationError):
        client.run_javascript("1", minimum_isolation="vm")
    client.run_javascript("1")
    with pytest.raises(pc.AtCapacityError) as shed:
        client.run_javascript("1")
    assert shed.value.not_dispatched == "capacity"


def test_stop_finishes_the_run_in_flight(start):
    daemon = start(SANDBOX_PROVIDER="wasm", PLIMSOLL_INSECURE="1", SANDBOX_MAX_CONCURRENT="1", SANDBOX_RATE_PER_MIN="0")
    client, results = pc.Client(daemon.url), []
    code = "const end = performance.now() + 2000; while (performance.now() < end) {} console.log('done')"
    thread = threading.Thread(target=lambda: results.append(persistently(client, code, timeout=10)))
    thread.start()
    in_flight(client)
    assert daemon.stop() == 0
    thread.join()
    assert results and results[0].stdout == b"done\n"
    with pytest.raises(pc.TransportError) as gone:
        client.describe()
    assert gone.value.not_dispatched == "environment"


def test_the_log_says_what_ran_and_nothing_of_it(daemon, client):
    client.run_javascript("console.log('canary-output-5417'); /* canary-code-5417 */", trace_id="trace-5417")
    with pytest.raises(pc.PlimsollError):
        pc.Client(daemon.url, token="canary-token-" + "5417" * 10).describe()
    client.describe()
    text = str(daemon.lines)
    assert "trace-5417" in text and "'op': 'javascript'" in text  # what ran is there
    for secret in ("canary-output-5417", "canary-code-5417", "canary-token", TOKEN):
        assert secret not in text
