"""`replay`: nothing is sent unless the bundle verifies, and what comes back is compared with what was signed."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import signal

import cli_proto
import cli_sign
import pytest
from cli_fake import REASONS, closed_port
from cli_tool import BUNDLES, OWN, OWN_PUB, SECRETS, VECTORS

LINKED = VECTORS / "sessions-linked.jsonl"
LINKED_PUB = VECTORS / "sessions-linked.pub"
TOKEN = "replay-canary-token-0123456789abcdef"


def stored(bundle) -> dict[bytes, object]:
    """The stored response of each stored request, the first of several."""
    pb = cli_proto.messages()
    found: dict[bytes, object] = {}
    for line in bundle.read_bytes().splitlines():
        line = json.loads(line)
        if "response" in line:
            found.setdefault(base64.b64decode(line["request"]), pb.RunResponse.FromString(base64.b64decode(line["response"])))
    return found


class Recorded:
    """A daemon that gives each request the result a bundle holds for it, in sessions of its own."""

    def __init__(self, *bundles) -> None:
        self.known = {request: response for bundle in bundles for request, response in stored(bundle).items()}
        self.sessions = 0
        self.chain: tuple[str, int, str] = ("", 0, "")
        self.odd = {}
        """What is done instead, by the number of the call."""
        self.calls = 0

    def __call__(self, call) -> None:
        pb = cli_proto.messages()
        if call.procedure == "OpenSession":
            self.sessions += 1
            id_ = f"{self.sessions:032x}"
            self.chain = (hashlib.sha256(id_.encode()).hexdigest(), 0, "")
            provider = next(iter(self.known.values())).sandbox
            tier = next(response.isolation for response in self.known.values() if response.record.session)
            call.answer(pb.OpenSessionResponse(session_id=id_, session=self.chain[0], sandbox=provider, isolation=tier))
        elif call.procedure == "CloseSession":
            session, calls, last = self.chain
            call.answer(pb.CloseSessionResponse(session=session, calls=calls, last_record_sha256=last, ended=1))
        else:
            self.calls += 1
            if odd := self.odd.get(self.calls):
                odd(call)
            elif call.procedure == "Run":
                call.answer(self.known[call.body])
            else:
                call.answer(pb.SessionRunResponse(run=self.in_session(call)))

    def in_session(self, call):
        pb = cli_proto.messages()
        sent = pb.SessionRunRequest.FromString(call.body)
        request = pb.RunRequest(protocol=sent.protocol, minimum_isolation=sent.minimum_isolation, trace_id=sent.trace_id, timeout_ms=sent.timeout_ms)
        if sent.HasField("software_rule"):
            request.software_rule.CopyFrom(sent.software_rule)
        kind = sent.WhichOneof("payload")
        getattr(request, kind).CopyFrom(getattr(sent, kind))
        response = pb.RunResponse()
        if request.SerializeToString() in self.known:
            response.CopyFrom(self.known[request.SerializeToString()])
        else:
            # Recorded without an answer; this daemon has one.
            getattr(response, kind).SetInParent()
            response.sandbox, response.isolation = "docker", "kernel"
        session, calls, last = self.chain
        response.record.CopyFrom(
            pb.RunRecord(
                version=2,
                request_sha256=cli_proto.request_digest(request),
                result_sha256=cli_proto.result_digest(response),
                provider=response.sandbox,
                isolation=response.isolation,
                environment=response.environment,
                software_identity=response.software_identity,
                started_unix_ms=1,
                ended_unix_ms=2,
                session=session,
                sequence=calls + 1,
                previous_sha256=last,
            )
        )
        response.record.record_sha256 = cli_proto.record_digest(response.record)
        self.chain = (session, calls + 1, response.record.record_sha256)
        return response


def snippets(cli, *outputs: bytes):
    """A bundle of snippets with these outputs."""
    pb = cli_proto.messages()
    exchanges = []
    for n, output in enumerate(outputs):
        request = pb.RunRequest(protocol=3, javascript=pb.JavaScriptRun(code=f"{n}"))
        exchanges.append((request, cli_proto.snippet(request, stdout=output)))
    (cli.cwd / "b").write_bytes(cli_sign.bundle(*exchanges))
    return cli.cwd / "b"


def replay(cli, fake, bundle, *flags, pub=OWN_PUB, **options):
    return cli("replay", "--daemon", fake.url, "--pub", pub, bundle, *flags, **options)


def test_a_session_is_the_same(cli, fake):
    daemon = fake(Recorded(LINKED))
    found = replay(cli, daemon, LINKED, pub=LINKED_PUB)
    results = [json.loads(base64.b64decode(json.loads(line)["envelope"]["payload"]))["predicate"] for line in LINKED.read_bytes().splitlines()[:5]]
    lines = [f"entry {n} (session c92f06904dda…): same result ({record['result_sha256'][:16]})" for n, record in enumerate(results, 1)]
    assert found.code == 0
    assert found.out.decode().splitlines() == [*lines, "5 of 5 replays reproduced the recorded result"]
    assert [call.procedure for call in daemon.calls] == ["OpenSession", *["SessionRun"] * 5, "CloseSession"]
    opening = cli_proto.messages().OpenSessionRequest.FromString(daemon.calls[0].body)
    assert (opening.minimum_isolation, opening.owner, list(opening.languages), opening.lifetime_ms) == ("", "", [], 0), "opened with no options"
    script = replay(cli, daemon, LINKED, "--json", pub=LINKED_PUB).json
    assert (script["same"], script["different"], script["failed"], script["unanswered"]) == (5, 0, 0, 0)
    for result, record in zip(script["results"], results):
        assert (result["session"], result["recorded"], result["replayed"]) == (record["session"], record["result_sha256"], record["result_sha256"])
        assert (result["outcome"], result["ran"]) == ("same", "yes")


def test_every_kind_of_call(cli, fake):
    recorded = Recorded(OWN)
    daemon = fake(recorded)
    requests = {n: base64.b64decode(json.loads(line)["request"]) for n, line in enumerate(OWN.read_bytes().splitlines(), 1) if b'"request"' in line}
    found = replay(cli, daemon, OWN)
    lines = found.out.decode().splitlines()
    # A session's calls follow its first one.
    assert [re.match(r"entry (\d+)", line)[1] for line in lines[:-1]] == ["1", "2", "3", "5", "7", "8", "10"]
    # Line 3 holds a table with values that no daemon takes: it is not sent.
    assert re.fullmatch(r"entry 3: the replay failed: .+; nothing ran", lines[2])
    assert lines[4] == "entry 7 (session 5947d7c33d78…): recorded without an answer (deadline_exceeded), nothing to compare"
    assert lines[7] == "5 of 7 replays reproduced the recorded result"
    assert (found.code, found.cls) == (4, "not_dispatched") and "line 3" in found.error["message"]
    # What is sent is what is stored, to the byte.
    assert [call.body for call in daemon.calls if call.procedure == "Run"] == [requests[n] for n in (1, 2, 10)]
    script = replay(cli, daemon, OWN, "--json").json
    assert (script["same"], script["different"], script["failed"], script["unanswered"]) == (5, 0, 1, 1)
    fine = replay(cli, daemon, OWN, "--line", "1", "--line", "8", "--json")
    assert (fine.code, [r["line"] for r in fine.json["results"]]) == (0, [1, 5, 7, 8])
    alone = replay(cli, daemon, OWN, "--line", "7", "--json")
    assert (alone.code, alone.json["same"], alone.json["unanswered"]) == (0, 1, 1)
    # Lines 1 and 10 hold one request with two results: here the first comes again.
    recorded.known[requests[10]] = recorded.known[requests[1]]
    other = replay(cli, daemon, OWN, "--line", "10")
    assert other.out.decode().splitlines() == [
        "entry 10: different result: recorded 1f6acc238415f761, replayed bdb1d24f55c38948; first differing member stderr",
        "0 of 1 replays reproduced the recorded result",
    ]
    assert (other.code, other.cls) == (5, "different") and "line 10" in other.error["message"]
    script = replay(cli, daemon, OWN, "--line", "10", "--json").json
    assert script["error"]["reason"] == "result" and script["results"][0]["member"] == "stderr"


def test_only_calls_without_an_answer(cli, fake):
    pb = cli_proto.messages()
    request = pb.RunRequest(protocol=3, javascript=pb.JavaScriptRun(code="1"))
    record = pb.RunRecord(version=3, request_sha256=cli_proto.request_digest(request), provider="docker", isolation="kernel", session="a" * 64, sequence=1)
    record.unanswered = "internal"
    record.record_sha256 = cli_proto.record_digest(record)
    close = {"session": "a" * 64, "calls": 1, "last_record_sha256": record.record_sha256}
    entries = [
        {"request": base64.b64encode(request.SerializeToString()).decode(), "envelope": cli_sign.record_envelope(record)},
        {"envelope": cli_sign.statement("session-close/v1", "session", "a" * 64, close)},
    ]
    (cli.cwd / "b").write_bytes(sealed(entries))
    recorded = Recorded(OWN)
    daemon = fake(recorded)
    found = cli("replay", "--daemon", daemon.url, "--pub", OWN_PUB, "b", "--json")
    assert (found.code, found.cls, found.error["reason"]) == (5, "different", "result")
    assert found.json["results"][0]["ran"] == "yes" and "recorded" not in found.json["results"][0]
    assert "0 of 1 replays reproduced" in cli("replay", "--daemon", daemon.url, "--pub", OWN_PUB, "b").out.decode()
    # Nobody knows whether it ran this time: that is worse than nothing to compare.
    recorded.odd = {recorded.calls + 1: lambda call: call.drop()}
    lost = cli("replay", "--daemon", daemon.url, "--pub", OWN_PUB, "b")
    assert (lost.code, lost.cls) == (3, "may_have_run")
    assert "nothing to compare\n" in lost.out.decode() and "; may have run\n" in lost.out.decode()


def sealed(entries: list[dict]) -> bytes:
    """A whole bundle of these entries and a checkpoint."""
    lines: list[bytes] = []
    previous = ""
    for entry in [*entries, None]:
        index = len(lines) + 1
        if entry is None:
            link = {"index": index, "previous_sha256": previous, "checkpoint": True, "lines": index - 1}
            lines.append(cli_sign.encode({"link": cli_sign.statement("bundle-link/v1", "bundle-line", previous, link)}))
        else:
            digest = hashlib.sha256(cli_sign.encode(entry)).hexdigest()
            link = {"index": index, "previous_sha256": previous, "entry_sha256": digest}
            lines.append(cli_sign.encode({**entry, "link": cli_sign.statement("bundle-link/v1", "bundle-line", digest, link)}))
        previous = hashlib.sha256(lines[-1]).hexdigest()
    return b"\n".join(lines) + b"\n"


def test_nothing_is_sent_unless_it_verifies(cli, fake):
    daemon = fake(Recorded(OWN))
    bundles = {"flipped": bytearray(OWN.read_bytes()), "cut": OWN.read_bytes()[:-9000]}
    bundles["flipped"][100] ^= 1
    for name, content in bundles.items():
        (cli.cwd / name).write_bytes(content)
    for bundle, pub, flags in (
        ("flipped", OWN_PUB, ()),
        ("flipped", OWN_PUB, ("--line", "10")),
        ("cut", OWN_PUB, ("--line", "1")),
        (OWN, LINKED_PUB, ()),
        (BUNDLES / "checkpoint-only.jsonl", OWN_PUB, ()),
        (BUNDLES / "empty.jsonl", OWN_PUB, ()),
        (OWN, OWN_PUB, ("--line", "4")),
        (OWN, OWN_PUB, ("--line", "1", "--line", "6")),
        (OWN, OWN_PUB, ("--line", "12")),
    ):
        found = cli.both("replay", "--daemon", daemon.url, "--pub", pub, bundle, *flags)
        assert (found.code, found.error["ran"]) == (1, "no"), (bundle, flags, found.text)
        if not flags:
            assert found.cls == cli("verify", "--pub", pub, bundle, "--json").cls
    assert found.cls == "no_line"
    for args in (("--pub", OWN_PUB), ("--pub", OWN_PUB, "-"), (OWN,), ("--own", OWN), ("--pub", OWN_PUB, "absent"), ("--pub", OWN, OWN)):
        assert cli("replay", "--daemon", daemon.url, *args, stdin=OWN.read_bytes()).code == 2
    assert daemon.calls == []


def test_failures_by_what_may_have_run(cli, fake):
    bundle = snippets(cli, b"1", b"2", b"3")
    for odd, code, cls, said in (
        (lambda call: call.drop(), 3, "may_have_run", "may have run"),
        (lambda call: call.error(500, "internal", "no"), 3, "may_have_run", "may have run"),
        (lambda call: call.answer(cli_proto.snippet(call.request, record={"result_sha256": "0" * 64})), 3, "unchecked", "may have run"),
        (lambda call: call.answer(cli_proto.messages().RunResponse(sandbox="docker")), 3, "unchecked", "may have run"),
        *((lambda call, n=n: call.error(503, "unavailable", "no", reason=n), 4, "not_dispatched", "nothing ran") for n in REASONS.values()),
    ):
        recorded = Recorded(bundle)
        recorded.odd = {2: odd, 5: odd}
        daemon = fake(recorded)
        human = replay(cli, daemon, bundle)
        script = replay(cli, daemon, bundle, "--json")
        assert (human.code, human.cls, script.code, script.cls) == (code, cls, code, cls)
        lines = human.out.decode().splitlines()
        assert re.fullmatch(rf"entry 2: the replay failed: .+; {said}", lines[1]), lines
        assert lines[0].startswith("entry 1: same result (") and lines[2].startswith("entry 3: same result ("), "a failure stops nothing"
        assert lines[3] == "2 of 3 replays reproduced the recorded result"
        assert [r["outcome"] for r in script.json["results"]] == ["same", "failed", "same"]
        assert script.json["results"][1]["error"] == script.error and script.error["line"] == 2
        assert script.json["results"][1]["ran"] == ("maybe" if code == 3 else "no")


def test_the_worst_news_is_the_exit_code(cli, fake):
    bundle = snippets(cli, b"1", b"2", b"3")
    other = lambda call: call.answer(cli_proto.snippet(call.request, stdout=b"other"))  # noqa: E731
    full = lambda call: call.error(503, "unavailable", "no", reason=REASONS["capacity"])  # noqa: E731
    lost = lambda call: call.drop()  # noqa: E731
    for odd, code in (({1: other}, 5), ({1: other, 2: full}, 4), ({1: full, 2: lost, 3: other}, 3)):
        recorded = Recorded(bundle)
        recorded.odd = odd
        assert replay(cli, fake(recorded), bundle).code == code


def test_no_daemon_at_all(cli):
    bundle = snippets(cli, b"1", b"2")
    found = cli("replay", "--daemon", closed_port(), "--pub", OWN_PUB, bundle)
    assert (found.code, found.cls) == (4, "unreachable")
    assert found.out.decode().count("; nothing ran\n") == 2 and "0 of 2 replays" in found.out.decode()
    assert cli("replay", "--daemon", closed_port(), "--pub", LINKED_PUB, LINKED, "--json").json["failed"] == 5


def test_a_request_of_an_older_protocol(cli, fake):
    pb = cli_proto.messages()
    request = pb.RunRequest(protocol=2, javascript=pb.JavaScriptRun(code="1"))
    (cli.cwd / "b").write_bytes(cli_sign.bundle((request, cli_proto.snippet(request))))
    daemon = fake(lambda call: call.error(400, "unimplemented", "another", reason=REASONS["protocol"]))
    found = replay(cli, daemon, cli.cwd / "b", "--json")
    assert (found.code, found.cls, found.error["reason"]) == (4, "not_dispatched", "protocol")
    assert "states protocol 2" in found.error["message"]
    assert daemon.calls[0].body == request.SerializeToString()


def test_a_daemon_without_sessions(cli, fake):
    recorded = Recorded(OWN)

    def answer(call):
        if call.procedure == "OpenSession":
            call.error(501, "unimplemented", "no sessions", reason=REASONS["unsupported"])
        else:
            recorded(call)

    daemon = fake(answer)
    found = replay(cli, daemon, OWN, "--json")
    assert found.code == 4
    assert [r["outcome"] for r in found.json["results"]] == ["same", "same", "failed", "failed", "unanswered", "failed", "same"]
    assert [r["ran"] for r in found.json["results"][3:6]] == ["no"] * 3
    assert all(call.procedure != "SessionRun" for call in daemon.calls)
    assert replay(cli, daemon, OWN).out.decode().count("its session could not be opened: ") == 3


def test_the_embedded_daemon(cli):
    for code in ("console.log(6*7)", "throw 1", "console.log(Math.random())"):
        assert cli("run", "--js", code).code == 0
    kept = cli.bundle.read_bytes()
    found = cli("replay", "--own", cli.bundle)
    assert (found.code, found.cls) == (5, "different")
    lines = found.out.decode().splitlines()
    assert lines[0].startswith("entry 1: same result (") and lines[1].startswith("entry 3: same result (")
    assert lines[2].endswith("; first differing member stdout") and lines[3].startswith("2 of 3 ")
    fine = cli("replay", "--own", cli.bundle, "--line", "1", "--provider", "wasm")
    assert fine.code == 0 and fine.out.decode().endswith("1 of 1 replays reproduced the recorded result\n")
    assert cli.bundle.read_bytes() == kept, "a replay signs nothing"
    assert cli("replay", "--pub", LINKED_PUB, LINKED).code == 4, "wasm has no sessions"


def test_flags(cli, fake):
    daemon = fake(Recorded(OWN))
    for args in (
        ("--daemon", daemon.url, "--provider", "wasm"),
        ("--ca-file", OWN_PUB),
        ("--provider", "e2b"),
        ("--provider", "disabled"),
        ("--daemon", "ftp://x"),
        ("--daemon", "http://sandbox.example"),
        ("--daemon", daemon.url, "--timeout", "1s", "--wait", "1s"),
        ("--daemon", daemon.url, "--wait", "0"),
        ("--daemon", daemon.url, "--line", "0"),
        ("--daemon", daemon.url, "--pub", OWN_PUB),
        ("--daemon", daemon.url, "--key", "k"),
    ):
        found = cli.both("replay", "--pub", OWN_PUB, OWN, *args)
        assert (found.code, found.cls) == (2, "usage"), args
    assert daemon.calls == []
    for flag in ("--timeout", "--wait"):
        found = cli("replay", "--daemon", fake(lambda call: daemon.hang(call)).url, "--pub", OWN_PUB, OWN, "--line", "1", flag, "200ms")
        assert (found.code, found.cls) == (3, "may_have_run")


def test_the_token_is_sent_and_never_shown(cli, fake):
    SECRETS.add(TOKEN.encode())
    daemon = fake(lambda call: call.error(401, "unauthenticated", f"who is {call.headers['authorization']}", reason=REASONS["permission"]))
    for flags in ((), ("--json",)):
        found = cli("replay", "--daemon", daemon.url, "--pub", OWN_PUB, OWN, "--line", "1", *flags, env={"PLIMSOLL_CALLER_TOKEN": TOKEN}, raw=True)
        assert found.code == 4 and daemon.calls[-1].headers["authorization"] == f"Bearer {TOKEN}"
    count = len(daemon.calls)
    assert replay(cli, daemon, OWN, env={"PLIMSOLL_CALLER_TOKEN": "a\nb"}).cls == "config"
    assert len(daemon.calls) == count


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_the_call_in_flight(cli, fake, name):
    daemon = fake(lambda call: daemon.hang(call))
    process = cli.popen("replay", "--daemon", daemon.url, "--pub", OWN_PUB, OWN)
    assert daemon.reached.wait(60)
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    assert process.returncode == -getattr(signal, name)
    assert b"entry 1: the replay failed: " in out and b"; may have run\n" in out and b"entry 2" not in out
    assert b"may have run" in err and len(daemon.calls) == 1


def test_a_verdict_does_not_depend_on_its_reader(cli, fake):
    bundle = snippets(cli, b"1", b"2")
    for odd, code in (({}, 0), ({1: lambda call: call.answer(cli_proto.snippet(call.request))}, 5)):
        recorded = Recorded(bundle)
        recorded.odd = odd
        daemon = fake(recorded)
        with cli.broken_pipe() as closed:
            assert replay(cli, daemon, bundle, stdout=closed).code == code
        assert len(daemon.calls) == 2, "the work is finished"


def test_hostile_text_of_a_daemon(cli, fake):
    hostile = "\x1b]8;;http://x\x07\u202e\n::error::x ##[y]" + "z" * 10_000
    bundle = snippets(cli, b"1")
    daemon = fake(lambda call: call.error(500, "internal", hostile))
    for flags in ((), ("--json",)):
        assert replay(cli, daemon, bundle, *flags, env={"GITHUB_ACTIONS": "true"}).code == 3
