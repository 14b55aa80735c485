"""`run` against daemons that are down, slow, broken or lying: never a wrong "nothing ran", never a wrong record."""

from __future__ import annotations

import json
import time

import cli_proto
import pytest
from cli_fake import REASONS, Call, Fake, closed_port, good
from cli_proto import snippet

JS = ("--js", "console.log(6*7)")
NO, MAYBE = "no", "maybe"


def failed(cli, url: str, code: int, cls: str, ran: str, *flags, request=JS, daemon: Fake | None = None) -> dict:
    """Runs it on no bundle and on a good one, for a person and for a script; gives the error."""
    missing, present = cli.cwd / "missing.jsonl", cli.cwd / "present.jsonl"
    if not present.exists():
        assert cli("run", "--bundle", present, "--js", "1").code == 0
    before = present.read_bytes()
    sent = len(daemon.calls) if daemon else 0
    for bundle in (missing, present):
        found = cli.both("run", "--daemon", url, "--bundle", bundle, *flags, *request, timeout=30)
        assert (found.code, found.cls) == (code, cls), found.text
        assert found.json["ran"] == found.error["ran"] == ran
        said = found.error["message"]
        # The one sentence that a reader will act on.
        assert ("nothing was run" in said) is (ran == NO), said
        assert ("may have run" in said) is (ran == MAYBE), said
        assert len(found.error["do"]) > 20
        assert not found.json.get("record_sha256") and not found.json.get("line")
    assert not missing.exists() and present.read_bytes() == before, "the bundle changed"
    assert sorted(path.name for path in cli.cwd.iterdir() if "unsealed" in path.name) == []
    if daemon:
        assert len(daemon.calls) - sent == 4, "sent again, or not at all"
    return found.error


def test_down(cli):
    error = failed(cli, closed_port(), 4, "unreachable", NO)
    assert "nothing was sent" in error["message"] and "address" in error["do"]
    for url in ("http://localhost:1", "https://127.0.0.1:1", "http://[::1]:1"):
        failed(cli, url, 4, "unreachable", NO)


def test_no_tls_there(cli, fake):
    """TLS to a port that speaks none fails before the first byte of the request."""
    daemon = fake(good)
    failed(cli, daemon.url.replace("http:", "https:"), 4, "unreachable", NO)
    assert daemon.calls == []


def test_slow(cli, fake):
    daemon = fake(lambda call: daemon.hang(call))
    started = time.monotonic()
    error = failed(cli, daemon.url, 3, "may_have_run", MAYBE, "--wait", "300ms", daemon=daemon)
    assert "time ran out" in error["message"] and "blindly" in error["message"]
    assert time.monotonic() - started >= 4 * 0.3


def test_slow_with_a_request_file(cli, fake):
    """With REQUEST.json the two names are one thing: the whole wait."""
    daemon = fake(lambda call: daemon.hang(call))
    file = cli.cwd / "r.json"
    file.write_text('{"protocol":3,"timeoutMs":100000,"javascript":{"code":"1"}}')
    for flag in ("--timeout", "--wait"):
        failed(cli, daemon.url, 3, "may_have_run", MAYBE, flag, "200ms", request=(file,), daemon=daemon)


def test_slow_after_the_head_and_in_the_body(cli, fake):
    def head(call: Call) -> None:
        call.handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/proto\r\n")
        daemon.hang(call)

    daemon = fake(head)
    failed(cli, daemon.url, 3, "may_have_run", MAYBE, "--wait", "200ms", daemon=daemon)

    def body(call: Call) -> None:
        call.handler.wfile.write(f"HTTP/1.1 200 OK\r\ncontent-type: application/proto\r\nplimsoll-request-id: {call.id}\r\ncontent-length: 500\r\n\r\nx".encode())
        other.hang(call)

    other = fake(body)
    failed(cli, other.url, 3, "may_have_run", MAYBE, "--wait", "200ms", daemon=other)


CODES = {
    "request": (400, "invalid_argument"),
    "permission": (401, "unauthenticated"),
    "protocol": (501, "unimplemented"),
    "unsupported": (501, "unimplemented"),
    "isolation": (400, "failed_precondition"),
    "capacity": (429, "resource_exhausted"),
    "environment": (400, "failed_precondition"),
}
CURES = {
    "request": "Correct the request",
    "permission": "PLIMSOLL_CALLER_TOKEN",
    "protocol": "protocol 3",
    "unsupported": "Another daemon",
    "isolation": "--floor",
    "capacity": "later",
    "environment": "approved software",
}


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("mark", ["detail", "header", "both"])
def test_refused_before_anything_ran(cli, fake, reason, mark):
    status, code = CODES[reason]

    def refuse(call: Call) -> None:
        detail = REASONS[reason] if mark != "header" else None
        call.error(status, code, "the daemon's own words", reason=detail, header=reason if mark != "detail" else None)

    daemon = fake(refuse)
    error = failed(cli, daemon.url, 4, "not_dispatched", NO, daemon=daemon)
    assert error["reason"] == reason and "the daemon's own words" in error["message"]
    assert CURES[reason] in error["do"]


def test_a_reason_of_a_later_release(cli, fake):
    daemon = fake(lambda call: call.error(400, "failed_precondition", reason=99))
    assert failed(cli, daemon.url, 4, "not_dispatched", NO, daemon=daemon)["reason"] == "unknown"


@pytest.mark.parametrize("reason", ["permission", "capacity"])
def test_a_mark_that_is_another_request_s(cli, fake, reason):
    """What an answer says of a call that may not be this one is believed in nothing."""
    for headers in ({"plimsoll_request_id": None}, {"plimsoll_request_id": "0" * 32}):
        daemon = fake(lambda call, headers=headers: call.error(*CODES[reason], reason=REASONS[reason], header=reason, **headers))
        failed(cli, daemon.url, 3, "unchecked", MAYBE, daemon=daemon)


def test_errors_without_a_mark(cli, fake):
    for status, code in ((500, "internal"), (503, "unavailable"), (504, "deadline_exceeded"), (400, "failed_precondition"), (429, "resource_exhausted")):
        daemon = fake(lambda call, status=status, code=code: call.error(status, code, "it broke"))
        error = failed(cli, daemon.url, 3, "may_have_run", MAYBE, daemon=daemon)
        assert "it broke" in error["message"]


BROKEN_MARKS = {
    "a word of nobody": {"header": "nonsense"},
    "an empty word": {"header": ""},
    "another case": {"header": "REQUEST"},
}


def test_marks_that_are_none(cli, fake):
    for name, options in BROKEN_MARKS.items():
        daemon = fake(lambda call, options=options: call.error(400, "invalid_argument", **options))
        found = cli("run", "--daemon", daemon.url, "--json", *JS)
        # A word this release does not know still says that nothing ran; no word says nothing.
        assert (found.code, found.cls) in ((3, "may_have_run"), (4, "not_dispatched")), (name, found.text)
        assert found.cls == "may_have_run" or found.error["reason"] == "unknown", (name, found.text)
    for value in ("CAI=x", "!!", "CA", "//8", ""):
        body = json.dumps({"code": "internal", "message": "m", "details": [{"type": "plimsoll.v1.NotDispatched", "value": value}]}).encode()
        daemon = fake(lambda call, body=body: call.send(body, 500, "application/json"))
        assert cli("run", "--daemon", daemon.url, "--json", *JS).code in (3, 4), value


def proxy_errors() -> list:
    """What something in between answers."""
    return [
        lambda call: call.send(b"<html>bad gateway</html>", 502, "text/html"),
        lambda call: call.send(b"", 500, "text/plain", plimsoll_request_id=None),
        lambda call: call.send(b"{", 500, "application/json"),
        lambda call: call.send(b'{"code":"internal","code":"internal"}', 500, "application/json"),
        lambda call: call.send(b"[" * 200_000, 500, "application/json"),
        lambda call: call.send(b'{"code":7,"message":[],"details":{}}', 500, "application/json"),
        lambda call: call.send(b"", 404, "text/plain", plimsoll_request_id=None),
        lambda call: call.send(b"", 204, "application/proto"),
        lambda call: call.send(b"", 101, "application/proto"),
    ]


@pytest.mark.parametrize("number", range(len(proxy_errors())))
def test_answers_of_something_in_between(cli, fake, number):
    daemon = fake(proxy_errors()[number])
    found = cli("run", "--daemon", daemon.url, "--json", *JS)
    assert found.code == 3 and found.cls in ("may_have_run", "unchecked") and found.json["ran"] == MAYBE, found.text
    assert not cli.bundle.exists() and len(daemon.calls) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(cli, fake, status):
    target = fake(good)
    daemon = fake(lambda call: call.send(b"", status, "text/plain", location=target.url + call.path, plimsoll_request_id=None))
    found = cli.both("run", "--daemon", daemon.url, *JS)
    assert found.code == 3 and found.json["ran"] == MAYBE
    assert target.calls == [] and len(daemon.calls) == 2


BREAKS = {
    "dropped after reading": lambda call: call.drop(),
    "not HTTP": lambda call: call.raw(b"\x16\x03\x01garbage\r\n\r\n"),
    "HTTP/0.9": lambda call: call.raw(b"hello"),
    "a head cut off": lambda call: call.raw(b"HTTP/1.1 200 OK\r\ncontent-ty"),
    "a body cut off": lambda call: call.raw(f"HTTP/1.1 200 OK\r\nplimsoll-request-id: {call.id}\r\ncontent-type: application/proto\r\ncontent-length: 99\r\n\r\nx".encode()),
    "endless head": lambda call: call.raw(b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000),
    "two lengths": lambda call: call.raw(f"HTTP/1.1 200 OK\r\nplimsoll-request-id: {call.id}\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx".encode()),
    "broken chunks": lambda call: call.raw(f"HTTP/1.1 200 OK\r\nplimsoll-request-id: {call.id}\r\ncontent-type: application/proto\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".encode()),
}


@pytest.mark.parametrize("kind", BREAKS)
def test_connections_that_break(cli, fake, kind):
    daemon = fake(BREAKS[kind])
    failed(cli, daemon.url, 3, "may_have_run", MAYBE, daemon=daemon)


def unchecked(name: str):
    """Answers that do not check, each with the member the message must name."""
    pb = cli_proto.messages()

    def changed(**members):
        def answer(call: Call) -> None:
            response = snippet(call.request)
            for member, value in members.items():
                setattr(response.record, member, value)
            call.answer(response)

        return answer

    def resealed(**members):
        return lambda call: call.answer(snippet(call.request, record=members))

    def another(call: Call) -> None:
        other = pb.RunRequest(protocol=3, javascript=pb.JavaScriptRun(code="another"))
        call.answer(snippet(other))

    def no_record(call: Call) -> None:
        response = snippet(call.request)
        response.ClearField("record")
        call.answer(response)

    def output_changed(call: Call) -> None:
        response = snippet(call.request)
        response.javascript.stdout = b"43\n"
        call.answer(response)

    def two_results(call: Call) -> None:
        response = snippet(call.request)
        extra = pb.RunResponse(project=pb.ProjectResult(outcome=1)).SerializeToString()
        call.send(extra + response.SerializeToString())

    def other_kind(call: Call) -> None:
        call.answer(cli_proto.answer(call.request, project=pb.ProjectResult(outcome=1)))

    def no_kind(call: Call) -> None:
        call.answer(cli_proto.answer(call.request))

    return {
        "no record": (no_record, "record"),
        "a wrong record digest": (changed(record_sha256="0" * 64), "record.record_sha256"),
        "a wrong request digest": (resealed(request_sha256="0" * 64), "record.request_sha256"),
        "a wrong result digest": (resealed(result_sha256="0" * 64), "record.result_sha256"),
        "a changed output": (output_changed, "record.result_sha256"),
        "another request's answer": (another, "record.request_sha256"),
        "another provider in the record": (resealed(provider="other"), None),
        "another tier in the record": (resealed(isolation="vm"), None),
        "another environment in the record": (resealed(environment="x"), None),
        "a record of version 1": (resealed(version=1), "record.version"),
        "a record of version 3": (resealed(version=3, unanswered="internal", result_sha256=""), None),
        "a record of a version to come": (changed(version=9), "record.version"),
        "an answered record that says unanswered": (changed(unanswered="internal"), None),
        "a session in a single run": (resealed(session="0" * 64, sequence=1), None),
        "software nobody asked for a rule of": (resealed(software_rule_id="exact:a"), None),
        "two results": (two_results, None),
        "another kind of result": (other_kind, None),
        "no result": (no_kind, None),
        "no message": (lambda call: call.send(b"\xff\xff\xff\xff"), None),
        "an empty message": (lambda call: call.send(b""), None),
        "a length past the end": (lambda call: call.send(b"\x0a\x7fx"), None),
        "a text that is not UTF-8": (lambda call: call.send(b"\x0a\x01\xff"), None),
        "JSON": (lambda call: call.send(b"{}", content_type="application/json"), None),
        "no content type": (lambda call: call.send(snippet(call.request).SerializeToString(), content_type=None), None),
        "compressed": (lambda call: call.answer(snippet(call.request), content_encoding="gzip"), None),
        "not bound": (lambda call: call.answer(snippet(call.request), plimsoll_request_id=None), None),
        "bound to another request": (lambda call: call.answer(snippet(call.request), plimsoll_request_id="0" * 32), None),
        "33 MiB": (lambda call: call.answer(snippet(call.request, stdout=b"x" * (33 << 20))), None),
        "33 MiB without a length": (lambda call: chunked(call, 33), None),
        "a length of 33 MiB": (lambda call: call.send(b"", content_length=str(33 << 20)), None),
    }[name]


def chunked(call: Call, mebibytes: int) -> None:
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/proto\r\nplimsoll-request-id: {call.id}\r\ntransfer-encoding: chunked\r\n\r\n"
    call.handler.wfile.write(head.encode())
    for _ in range(mebibytes):
        call.handler.wfile.write(b"100000\r\n" + b"x" * (1 << 20) + b"\r\n")
    call.raw(b"0\r\n\r\n")


UNCHECKED = """no record|a wrong record digest|a wrong request digest|a wrong result digest|a changed output|another request's answer
another provider in the record|another tier in the record|another environment in the record|a record of version 1|a record of version 3
a record of a version to come|an answered record that says unanswered|a session in a single run|software nobody asked for a rule of|two results
another kind of result|no result|no message|an empty message|a length past the end|a text that is not UTF-8|JSON|no content type|compressed
not bound|bound to another request|33 MiB|33 MiB without a length|a length of 33 MiB""".replace("\n", "|").split("|")


@pytest.mark.parametrize("kind", UNCHECKED)
def test_answers_that_do_not_check(cli, fake, kind):
    answer, member = unchecked(kind)
    daemon = fake(answer)
    error = failed(cli, daemon.url, 3, "unchecked", MAYBE, daemon=daemon)
    assert "its record was refused and not signed" in error["message"]
    assert member is None or error["member"] == member
    if "digest" in kind:
        assert error["expected"] != error["found"] and len(error["expected"]) == 64
    if "33" in kind:
        assert "33554432" in error["message"]


def test_floor_and_software_are_held(cli, fake):
    """Digests all right, and an answer from below what was asked: refused."""
    software = "oci-manifest:linux/amd64@sha256:" + "1" * 64
    below = fake(lambda call: call.answer(snippet(call.request, isolation="container")))
    error = failed(cli, below.url, 3, "unchecked", MAYBE, "--floor", "kernel", daemon=below)
    assert (error["member"], error["found"]) == ("record.isolation", "container") and "kernel" in error["expected"]
    for tier in ("KERNEL", "unknown", "hypervisor"):
        odd = fake(lambda call, tier=tier: call.answer(snippet(call.request, isolation=tier)))
        failed(cli, odd.url, 3, "unchecked", MAYBE, "--floor", "process", daemon=odd)
        # Without a floor an unknown tier is what the record says it is.
        assert cli("run", "--daemon", odd.url, *JS).code == 0
    rule = f"exact:{software}"
    for answer in (
        lambda call: call.answer(snippet(call.request, software="oci-manifest:linux/amd64@sha256:" + "2" * 64, rule=rule)),
        lambda call: call.answer(snippet(call.request, software="", rule=rule)),
        lambda call: call.answer(snippet(call.request, software=software, rule="")),
    ):
        daemon = fake(answer)
        failed(cli, daemon.url, 3, "unchecked", MAYBE, "--software", rule, daemon=daemon)
    right = fake(lambda call: call.answer(snippet(call.request, software=software, rule=rule)))
    found = cli("run", "--daemon", right.url, "--software", rule, "--json", *JS)
    assert found.code == 0 and found.json["software_identity"] == software


def test_the_order_of_checks(cli, fake):
    """Nothing is contacted before everything local is in order."""
    daemon = fake(good)
    bundle = cli.cwd / "plimsoll-runs.jsonl"
    bundle.write_bytes(b"not a bundle\n")
    bundle.chmod(0o600)
    # Flags, key, request, bundle: the earlier fault is the one reported.
    for args, cls in (
        (("--wait", "x", "--key", "absent", "r.json"), "usage"),
        (("--key", "absent", "r.json"), "io"),
        (("r.json",), "io"),
        (("--js", "1"), "bundle"),
    ):
        assert cli("run", "--daemon", daemon.url, *args).cls == cls, args
    assert daemon.calls == [] and bundle.read_bytes() == b"not a bundle\n"
    # A bundle of another key is refused before a daemon that is not there is missed.
    assert cli("keygen", "--out", "other").code == 0
    bundle.unlink()
    assert cli("run", "--js", "1").code == 0
    before = bundle.read_bytes()
    found = cli.both("run", "--daemon", closed_port(), "--key", "other.key", "--js", "1")
    assert (found.code, found.cls, found.error["reason"]) == (1, "bundle", "signature")
    assert "nothing was run" in found.error["message"] and bundle.read_bytes() == before
    assert cli("run", "--daemon", closed_port(), "--js", "1").code == 4


def test_what_is_sent(cli, fake):
    daemon = fake(good)
    token = "visible-token-0123456789"
    found = cli("run", "--daemon", daemon.url + "/prefix/", "--floor", "process", "--trace-id", "t-1", "--timeout", "1500ms", *JS, env={"PLIMSOLL_CALLER_TOKEN": token})
    assert found.code == 0
    (call,) = daemon.calls
    assert call.path == "/prefix/plimsoll.v1.SandboxService/Run"
    assert call.headers["authorization"] == f"Bearer {token}"
    assert call.headers["connect-protocol-version"] == "1" and len(call.id) == 32
    request = call.request
    assert (request.protocol, request.minimum_isolation, request.trace_id, request.timeout_ms) == (3, "process", "t-1", 1500)
    # A shorthand asks for nothing that was not asked for.
    cli("run", "--daemon", daemon.url, "--js", "1")
    pb = cli_proto.messages()
    assert daemon.calls[1].request == pb.RunRequest(protocol=3, javascript=pb.JavaScriptRun(code="1"))
    assert "authorization" not in daemon.calls[1].headers
    assert daemon.calls[1].id != call.id


def test_proxies_are_not_used(cli, fake):
    daemon, proxy = fake(good), fake(good)
    names = ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    assert cli("run", "--daemon", daemon.url, *JS, env=dict.fromkeys(names, proxy.url)).code == 0
    assert len(daemon.calls) == 1 and proxy.calls == []


def test_a_token_repeated_by_a_daemon_is_not_repeated(cli, fake):
    from cli_tool import SECRETS

    token = "canary-token-5417-abcdefghij"
    SECRETS.add(token.encode())
    for reason in (None, 2):
        daemon = fake(lambda call, reason=reason: call.error(401, "unauthenticated", f"bad token {call.headers['authorization']}", reason=reason))
        for flags in ((), ("--json",)):
            found = cli("run", "--daemon", daemon.url, *flags, *JS, env={"PLIMSOLL_CALLER_TOKEN": token})
            assert found.code == (4 if reason else 3) and "[redacted]" in found.text
