"""`run --session`: calls in order, each checked and signed, the close too; what was recorded before a failure stays."""

from __future__ import annotations

import base64
import json
import os
import signal
import stat
import threading

import cli_proto
import pytest
from cli_fake import REASONS, Call, closed_port
from cli_proto import SESSION, SESSION_ID
from cli_tool import OWN_KEY, OWN_PUB, SECRETS

SECRETS.add(SESSION_ID.encode())


class Sessions:
    """A daemon with one session, whose chain it keeps; a test changes what it answers to a call or the close."""

    def __init__(self, on_call=None, on_close=None, on_open=None) -> None:
        self.on = {"SessionRun": on_call, "CloseSession": on_close, "OpenSession": on_open}
        self.sequence = 0
        self.last = ""
        self.procedures: list[str] = []
        self.requests: list = []

    def __call__(self, call: Call) -> None:
        pb = cli_proto.messages()
        self.procedures.append(call.procedure)
        kinds = {"OpenSession": pb.OpenSessionRequest, "SessionRun": pb.SessionRunRequest, "CloseSession": pb.CloseSessionRequest}
        request = kinds[call.procedure].FromString(call.body)
        self.requests.append(request)
        other = self.on[call.procedure]
        if other and other(self, call, request):
            return
        if call.procedure == "OpenSession":
            call.answer(pb.OpenSessionResponse(session_id=SESSION_ID, session=SESSION, sandbox="docker", isolation="kernel", expires_unix_ms=1_893_000_000_000))
        elif call.procedure == "SessionRun":
            self.answer(call, request)
        else:
            call.answer(pb.CloseSessionResponse(session=SESSION, calls=self.sequence, last_record_sha256=self.last, ended=1))

    def chained(self, **record) -> dict:
        self.sequence += 1
        return {"session": SESSION, "sequence": self.sequence, "previous_sha256": self.last, **record}

    def answer(self, call: Call, request, exit_code: int = 0) -> None:
        pb = cli_proto.messages()
        payload = request.WhichOneof("payload")
        results = {
            "javascript": {"javascript": pb.JavaScriptResult(stdout=b"%d\n" % self.sequence, exit_code=exit_code)},
            "cell": {"cell": pb.CellResult(stdout=b"cell\n", interpreter_started=True, exit_code=exit_code)},
        }
        run = cli_proto.answer(request, record=self.chained(), **results[payload])
        self.last = run.record.record_sha256
        call.answer(pb.SessionRunResponse(run=run))

    def unanswered(self, call: Call, request) -> None:
        """It may have run and gave no answer; its record says so."""
        pb = cli_proto.messages()
        members = self.chained(version=3, request_sha256=cli_proto.request_digest(request), provider="docker", isolation="kernel", unanswered="deadline_exceeded")
        record = pb.RunRecord(started_unix_ms=1_793_000_000_000, ended_unix_ms=1_793_000_001_000, **members)
        record.record_sha256 = self.last = cli_proto.record_digest(record)
        value = base64.b64encode(pb.UnansweredCall(record=record).SerializeToString()).rstrip(b"=").decode()
        details = [{"type": "plimsoll.v1.UnansweredCall", "value": value}]
        call.send(json.dumps({"code": "deadline_exceeded", "message": "late", "details": details}).encode(), 504, "application/json")


def at(number: int, action):
    """Does something else with one call of a session."""

    def on_call(sessions: Sessions, call: Call, request) -> bool:
        if sessions.procedures.count("SessionRun") != number:
            return False
        action(sessions, call, request)
        return True

    return on_call


CALLS = [
    {"protocol": 3, "javascript": {"code": "1"}},
    {"protocol": 3, "cell": {"language": "python", "code": "x = 1"}},
    {"protocol": 3, "traceId": "t-3", "timeoutMs": 7000, "javascript": {"code": "3"}},
]


@pytest.fixture
def calls(cli):
    file = cli.cwd / "calls.jsonl"
    file.write_text("".join(json.dumps(call) + "\n" for call in CALLS))
    return file


def lines(cli) -> list[dict]:
    return [json.loads(line) for line in cli.bundle.read_bytes().splitlines()]


def left(cli) -> list[str]:
    return sorted(set(os.listdir(cli.cwd)) - {"calls.jsonl", "plimsoll-runs.jsonl"})


def test_three_calls(cli, fake, calls):
    sessions = Sessions()
    daemon = fake(sessions)
    found = cli("run", "--daemon", daemon.url, "--session", calls, "--json")
    assert found.code == 0 and sessions.procedures == ["OpenSession", *["SessionRun"] * 3, "CloseSession"]
    assert (found.json["session"], found.json["closed"], found.json["success"], found.json["ran"]) == (SESSION, True, True, "yes")
    assert [call["line"] for call in found.json["calls"]] == [1, 2, 3] and "result" not in found.json
    assert left(cli) == [] and [list(line) for line in lines(cli)] == [["request", "response", "envelope", "link"]] * 3 + [["envelope", "link"], ["link"]]
    (bundle,) = cli.both("verify", "--own", "--expect-count", "3", cli.bundle).json["bundles"]
    assert (bundle["lines"], bundle["sessions"]) == (5, [{"session": SESSION, "calls": 3, "unanswered": 0}])
    for number, call in enumerate(found.json["calls"], 1):
        entry = cli("verify-entry", "--own", "--line", number, "--json", cli.bundle).json["record"]
        assert (entry["sequence"], entry["record_sha256"]) == (number, call["record_sha256"])
def test_a_session_that_a_bundle_holds_already(cli, fake, calls):
    """A daemon gives each session an ID of its own; one that comes twice would break the chain of the first."""
    assert cli("run", "--daemon", fake(Sessions()).url, "--session", calls).code == 0
    before = cli.bundle.read_bytes()
    again = Sessions()
    found = cli("run", "--daemon", fake(again).url, "--session", calls, "--json")
    assert (found.code, found.cls) == (3, "unchecked") and "holds already" in found.error["message"]
    # No code was sent, and the session is not left open on the daemon.
    assert again.procedures == ["OpenSession", "CloseSession"]
    assert cli.bundle.read_bytes() == before and left(cli) == []


def test_what_a_person_sees(cli, fake, calls):
    found = cli("run", "--daemon", fake(Sessions()).url, "--session", calls)
    text = found.out.decode()
    assert text.startswith(f"session {SESSION[:12]}… on docker (kernel): 3 calls recorded, closed\n")
    assert "call 1: exit 0; record " in text and "| cell\n" in text and "not hardware attestation" in found.prose


def test_flags_go_with_the_open(cli, fake, calls):
    sessions = Sessions()
    software = "oci-manifest:linux/amd64@sha256:" + "1" * 64
    flags = ("--floor", "container", "--lifetime", "10m", "--idle", "90s", "--language", "python", "--language", "javascript", "--owner", "someone", "--timeout", "4s")
    found = cli("run", "--daemon", fake(sessions).url, "--session", calls, *flags)
    assert found.code == 0, found.text
    opened = sessions.requests[0]
    assert (opened.protocol, opened.minimum_isolation, opened.lifetime_ms, opened.idle_timeout_ms) == (3, "container", 600_000, 90_000)
    assert list(opened.languages) == ["python", "javascript"]
    assert len(opened.owner) == 64 and "someone" not in opened.owner, "the name itself is sent"
    made = sessions.requests[1:4]
    assert [request.minimum_isolation for request in made] == ["container"] * 3
    assert [request.timeout_ms for request in made] == [4000, 4000, 7000]
    assert [request.trace_id for request in made] == ["", "", "t-3"]
    assert {request.session_id for request in sessions.requests[1:]} == {SESSION_ID}
    # A line's own rule is narrowed by the session's; none left is refused before anything is sent.
    calls.write_text(json.dumps({**CALLS[0], "softwareRule": {"mode": "exact", "identities": ["b:1"]}}))
    refused = cli.both("run", "--daemon", fake(sessions).url, "--session", calls, "--software", f"exact:{software}")
    assert (refused.code, refused.cls, refused.error["line"]) == (1, "request", 1)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_call_that_is_refused(cli, fake, calls, number):
    """Nothing of it ran; what ran before it is recorded, with the close and a checkpoint."""
    sessions = Sessions(at(number, lambda _, call, __: call.error(429, "resource_exhausted", reason=REASONS["capacity"])))
    found = cli("run", "--daemon", fake(sessions).url, "--session", calls, "--json")
    earlier = number - 1
    assert (found.code, found.cls) == (1 if earlier else 4, "not_dispatched")
    assert found.error["reason"] == "capacity" and found.json["ran"] == ("yes" if earlier else "no")
    assert len(found.json["calls"]) == earlier and found.json["closed"] is True
    assert sessions.procedures == ["OpenSession", *["SessionRun"] * number, "CloseSession"]
    assert [list(line) for line in lines(cli)][earlier:] == [["envelope", "link"], ["link"]]
    assert cli("verify", "--own", "--expect-count", earlier, cli.bundle).code == 0
    assert left(cli) == []


def test_an_open_that_is_refused(cli, fake, calls):
    for reason in REASONS:
        sessions = Sessions(on_open=lambda _, call, __, reason=reason: call.error(400, "failed_precondition", reason=REASONS[reason]) or True)
        found = cli.both("run", "--daemon", fake(sessions).url, "--session", calls)
        assert (found.code, found.cls, found.error["reason"], found.json["ran"]) == (4, "not_dispatched", reason, "no")
        assert set(sessions.procedures) == {"OpenSession"} and not cli.bundle.exists() and left(cli) == []
    found = cli.both("run", "--daemon", closed_port(), "--session", calls)
    assert (found.code, found.cls) == (4, "unreachable") and left(cli) == []


def test_sessions_that_are_not_what_was_asked(cli, fake, calls):
    pb = cli_proto.messages()
    for answer in (
        pb.OpenSessionResponse(session_id=SESSION_ID, session="0" * 64, sandbox="docker", isolation="kernel"),
        pb.OpenSessionResponse(session_id=SESSION_ID, session=SESSION, sandbox="docker", isolation="process"),
        pb.OpenSessionResponse(session="", sandbox="docker", isolation="kernel"),
    ):
        sessions = Sessions(on_open=lambda _, call, __, answer=answer: call.answer(answer) or True)
        found = cli("run", "--daemon", fake(sessions).url, "--session", calls, "--floor", "container", "--json")
        assert found.code in (3, 4) and "SessionRun" not in sessions.procedures, found.text
        assert not cli.bundle.exists() and left(cli) == []


@pytest.mark.parametrize("how", ["dropped", "wrong digest", "wrong sequence", "another session", "no record", "unmarked error"])
def test_a_call_that_may_have_run(cli, fake, calls, how):
    """It is not signed and stops the sequence; the first call stays recorded, whatever the close says."""
    pb = cli_proto.messages()

    def wrong(**record):
        def action(sessions: Sessions, call: Call, request) -> None:
            run = cli_proto.answer(request, cell=pb.CellResult(), record=sessions.chained(**record))
            sessions.last = run.record.record_sha256
            if how == "wrong digest":
                run.record.record_sha256 = "0" * 64
            if how == "no record":
                run.ClearField("record")
            call.answer(pb.SessionRunResponse(run=run))

        return action

    actions = {
        "dropped": lambda _, call, __: call.drop(),
        "unmarked error": lambda _, call, __: call.error(500, "internal"),
        "wrong digest": wrong(),
        "no record": wrong(),
        "wrong sequence": wrong(sequence=7),
        "another session": wrong(session="0" * 64),
    }
    sessions = Sessions(at(2, actions[how]))
    found = cli("run", "--daemon", fake(sessions).url, "--session", calls, "--json")
    assert found.code == 3 and found.cls in ("may_have_run", "unchecked"), found.text
    assert found.json["ran"] == "yes" and len(found.json["calls"]) == 1
    assert sessions.procedures == ["OpenSession", "SessionRun", "SessionRun", "CloseSession"]
    kept(cli, found, 1)


def kept(cli, found, count: int) -> None:
    """The calls that checked are in a bundle that verifies, or, where it would not, in a side file that is named."""
    if cli.bundle.exists():
        assert left(cli) == [] and cli("verify", "--own", "--expect-count", count, cli.bundle).code == 0
        return
    (side,) = left(cli)
    assert found.json["unsealed"] == side and side in found.error["do"] + str(found.json)
    file = cli.cwd / side
    entries = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert [list(entry) for entry in entries] == [["request", "response", "envelope"]] * count
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    # The place is free for a bundle that is whole.
    assert cli("run", "--js", "1").code == 0


def test_an_unanswered_call_is_recorded_and_the_session_goes_on(cli, fake, calls):
    sessions = Sessions(at(2, lambda sessions, call, request: sessions.unanswered(call, request)))
    found = cli("run", "--daemon", fake(sessions).url, "--session", calls, "--json")
    assert found.code == 0, found.text
    assert [call["answered"] for call in found.json["calls"]] == [True, False, True] and found.json["success"] is False
    assert found.json["calls"][1]["unanswered"] == "deadline_exceeded"
    (bundle,) = cli("verify", "--own", "--json", cli.bundle).json["bundles"]
    assert bundle["sessions"] == [{"session": SESSION, "calls": 3, "unanswered": 1}]
    cli.bundle.unlink()
    other = Sessions(at(2, lambda sessions, call, request: sessions.unanswered(call, request)))
    found = cli("run", "--daemon", fake(other).url, "--session", calls, "--json", "--require-success")
    assert (found.code, found.cls) == (5, "not_success") and cli("verify", "--own", cli.bundle).code == 0


def test_a_failing_call_is_a_call(cli, fake, calls):
    sessions = Sessions(at(2, lambda sessions, call, request: sessions.answer(call, request, exit_code=3)))
    found = cli("run", "--daemon", fake(sessions).url, "--session", calls, "--json")
    assert found.code == 0 and [call["success"] for call in found.json["calls"]] == [True, False, True]


@pytest.mark.parametrize("how", ["count", "last record", "dropped", "refused"])
def test_a_close_that_does_not_check(cli, fake, calls, how):
    """It is not signed: exit 3. A bundle with the open session would be none that verifies."""
    pb = cli_proto.messages()

    def close(sessions: Sessions, call: Call, _) -> bool:
        if how == "dropped":
            call.drop()
        elif how == "refused":
            call.error(500, "internal")
        else:
            count, last = (9, sessions.last) if how == "count" else (sessions.sequence, "0" * 64)
            call.answer(pb.CloseSessionResponse(session=SESSION, calls=count, last_record_sha256=last, ended=1))
        return True

    found = cli("run", "--daemon", fake(Sessions(on_close=close)).url, "--session", calls, "--json")
    assert (found.code, found.cls, found.error["reason"]) == (3, "not_kept", "close"), found.text
    assert found.json["closed"] is False and len(found.json["calls"]) == 3
    kept(cli, found, 3)


def test_a_provider_without_sessions(cli, calls):
    assert cli("run", "--js", "1").code == 0
    before = cli.bundle.read_bytes()
    found = cli.both("run", "--session", calls)
    assert (found.code, found.cls, found.error["reason"], found.json["ran"]) == (4, "not_dispatched", "unsupported", "no")
    assert cli.bundle.read_bytes() == before and left(cli) == []
    assert "--daemon" in found.error["do"]


def test_interrupted_in_the_second_call(cli, fake, calls):
    """The call in flight is given up, the session closed on the daemon; what ran is kept or said to be lost."""
    sessions = Sessions(at(2, lambda _, call, __: daemon.hang(call)))
    daemon = fake(sessions)
    process = cli.popen("run", "--daemon", daemon.url, "--session", calls)
    while sessions.procedures.count("SessionRun") < 2:
        assert process.poll() is None
        daemon.reached.wait(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT and b"may have run" in err
    assert sessions.procedures[-1] == "CloseSession"
    assert "request" in lines(cli)[0] and cli("verify-entry", "--own", "--line", "1", cli.bundle).code == 0


def test_two_processes_with_one_session_id(cli, calls, fake):
    """A daemon that repeats its IDs: both checked the bundle before either appended; the second is refused under the lock."""
    both_open = threading.Barrier(2)

    def on_open(sessions: Sessions, call: Call, request) -> bool:
        both_open.wait(timeout=60)
        return False

    key = cli.cwd / "own.key"
    key.write_bytes(OWN_KEY.read_bytes())
    key.chmod(0o600)
    running = [cli.popen("run", "--json", "--daemon", fake(Sessions(on_open=on_open)).url, "--key", key, "--session", calls) for _ in range(2)]
    ended = [(process.communicate(timeout=120), process.returncode) for process in running]
    assert sorted(code for _, code in ended) == [0, 3]
    [refused] = [json.loads(out) for (out, _), code in ended if code == 3]
    assert (refused["error"]["class"], refused["error"]["reason"], refused["error"]["ran"]) == ("not_kept", "session_held", "yes")
    kept = cli.cwd / refused["unsealed"]
    assert len(kept.read_bytes().splitlines()) == 4 and stat.S_IMODE(kept.stat().st_mode) == 0o600
    found = cli.both("verify", "--pub", OWN_PUB, cli.bundle)
    assert found.code == 0 and found.json["bundles"][0]["records"] == 3, "the bundle is whole and holds the session once"
