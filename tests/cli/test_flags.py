"""How flags are written, and the rules between them: a usage error does nothing at all."""

from __future__ import annotations

import os

import pytest
from cli_contract import COMMANDS, GROUPS, Flag
from cli_fake import closed_port
from cli_tool import OWN, OWN_KEY, OWN_PUB, VECTORS

NOWHERE = closed_port()

BASE = {
    "keygen": ("--out", "k"),
    "run": ("--daemon", NOWHERE, "--js", "1"),
    "verify": ("--pub", OWN_PUB, OWN),
    "verify-entry": ("--pub", OWN_PUB, "--line", "1", OWN),
    "digest": ("line", "--line", "1", OWN),
    "replay": ("--daemon", NOWHERE, "--pub", OWN_PUB, OWN),
    "inspect": ("--line", "1", OWN),
    "sbom": ("--pub", OWN_PUB, "--line", "1", OWN),
    "sign-statement": ("--key", OWN_KEY, "e.json"),
    "open-statement": ("--pub", OWN_PUB, "--any-type", "e.json"),
    "clients create": ("--file", "c.json", "--id", "a", "--token-stdout"),
    "clients import": ("--file", "c.json", "--id", "a"),
    "clients limit": ("--file", "c.json", "--id", "a", "--paid-seconds-per-day", "1"),
    "clients list": ("--file", "c.json"),
    "clients rotate": ("--file", "c.json", "--id", "a", "--token-stdin"),
    "clients revoke": ("--file", "c.json", "--id", "a"),
    "clients check": ("--file", "c.json"),
    "pr-receipt init": (),
    "pr-receipt run": ("--daemon", NOWHERE, "--step", "true"),
    "pr-receipt verify": ("--no-git", "receipt"),
    "pr-receipt render": ("receipt",),
    "pr-receipt challenge": ("--out", "w", "receipt"),
    "completions": ("bash",),
    "man": (),
    "version": (),
}
"""Arguments that each command takes."""

FLAGS = [(command, name, flag) for command, flags in COMMANDS.items() for name, flag in flags.items() if name != "help"]
GOOD = {"path": "somewhere", "text": "a", "number": "1", "duration": "1s", "time": "2026-10-18T09:00:00Z"}


def untouched(cli) -> bool:
    """Nothing was made: no key, no bundle, no output."""
    return os.listdir(cli.home) == [] and set(os.listdir(cli.cwd)) <= {"e.json"}


def usage(cli, *args, **options) -> dict:
    """A usage error, which did nothing. The first of a test is also asked for as a script would."""
    command = " ".join(args[:2]) if args[0] in GROUPS else args[0]
    first = "json" in COMMANDS.get(command, {}) and not hasattr(cli, "asked")
    cli.asked = True
    found = cli.both(*args, **options) if first else cli(*args, **options)
    assert (found.code, found.cls) == (2, "usage"), f"{args}: {found.text}"
    assert untouched(cli), args
    return found.error


def value_of(flag: Flag) -> str:
    return flag.words[0] if flag.words else GOOD[flag.kind]


@pytest.mark.parametrize(("command", "name", "flag"), FLAGS, ids=[f"{command} {name}" for command, name, _ in FLAGS])
def test_every_flag_is_read_strictly(cli, command, name, flag):
    base = (*command.split(), *BASE[command])
    given = [str(arg) for arg in base]
    present = f"--{name}" in given
    if flag.value is None:
        for spelled in (f"--{name}=x", f"--{name}=", f"-{name}=TRUE", f"--{name}=2"):
            usage(cli, *base, spelled)
        if name != "json":
            usage(cli, *base, f"--{name}", f"--{name}=false")
        return
    # No value, an empty one, a flag in its place.
    usage(cli, *base, f"--{name}")
    usage(cli, *base, f"-{name}")
    usage(cli, *base, f"--{name}=")
    usage(cli, *base, f"--{name}", "--quiet")
    if flag.short:
        usage(cli, *base, f"-{flag.short}")
        usage(cli, *base, f"-{flag.short}x")
    once = () if present else (f"--{name}", value_of(flag))
    if not flag.repeatable:
        for twice in (f"--{name}", f"-{name}"):
            error = usage(cli, *base, *once, twice, value_of(flag))
            assert "more than once" in error["message"]
    if present:
        base = tuple(arg for at, arg in enumerate(base) if str(base[at]) != f"--{name}" and (at == 0 or str(base[at - 1]) != f"--{name}"))
    # Values that are none of their kind.
    wrong = {
        "number": ("x", "1.5", "01", "+1", " 1", "0x1", "99999999999999999999", "-2", "1\n"),
        "duration": ("5", "-1s", "1", "s", "1x", "1s ", "1e3s", "99999999h", "\x1b"),
        "time": ("x", "", "-1", "2026-10-18", "2026-10-18T09:00:00", "2026-13-01T00:00:00Z", "2026-10-18 09:00:00Z", "1" * 16, "1.5"),
        "words": ("x", *{value_of(flag).upper()} - set(flag.words), value_of(flag)[:-1], value_of(flag) + " ", "\x1b[31m"),
        "text": (),
        "path": (),
    }
    for value in wrong[flag.kind]:
        usage(cli, *base, f"--{name}", value)
    # A value that must be text and is not.
    if flag.kind != "path":
        usage(cli, *base, f"--{name}", b"\xff\xfe")
        usage(cli, *base, b"--" + name.encode() + b"=\xff\xfe")


HOSTILE = ("\x1b[31mred", "a\nb", "\u202e", "::error::x", "-", "--", "-x", "x" * 100_000, " ")


@pytest.mark.parametrize("command", sorted(command for command in COMMANDS if command != "man"))
def test_hostile_values_are_refused_or_used_and_never_act(cli, command):
    for name, flag in COMMANDS[command].items():
        if flag.value is None:
            continue
        base = [arg for at, arg in enumerate(BASE[command]) if str(arg) != f"--{name}" and (at == 0 or str(BASE[command][at - 1]) != f"--{name}")]
        if command == "run" and name in ("file", "project", "session"):
            base = base[:2]
        for value in HOSTILE:
            # What they must not do is checked of every result: no control byte, no workflow command, no crash.
            found = cli(*command.split(), *base, f"--{name}", value, env={"GITHUB_ACTIONS": "true"})
            assert found.code in (0, 1, 2, 4, 5), (name, value[:10])
        for value in (b"\xff\xfe", b"a/\xff"):
            if flag.kind == "path" and name != "key":
                found = cli(*command.split(), *base, f"--{name}", value, env={"GITHUB_ACTIONS": "true"})
                assert found.code in (0, 1, 2, 4), (name, found.text)


def test_spellings(cli):
    whole = cli("verify", "--pub", OWN_PUB, OWN).out
    for args in (
        ("-pub", OWN_PUB, OWN),
        (f"-pub={OWN_PUB}", OWN),
        ("--pub", OWN_PUB, "--", OWN),
        (OWN, "--pub", OWN_PUB),
        ("-pub", OWN_PUB, "-expect-count", "7", OWN),
        ("--pub", OWN_PUB, "--expect-count", "-1", OWN),
        ("--pub", OWN_PUB, "--expect-count=-1", OWN),
        ("--pub", OWN_PUB, "--quiet", "--quiet=true", OWN),
        ("--pub", OWN_PUB, "--json=false", OWN),
        ("--pub", OWN_PUB, "--json=0", "-quiet=1", OWN),
        ("--pub", OWN_PUB, "-q", OWN),
    ):
        assert cli("verify", *args).out == whole, args
    for args in (
        ("verify", "--pub", OWN_PUB, "-qh", OWN),
        ("verify", "--pub", OWN_PUB, "-qq", OWN),
        ("verify", "--pub", OWN_PUB, "--exp", "x", OWN),
        ("verify", "--PUB", OWN_PUB, OWN),
        ("verify", "---pub", OWN_PUB, OWN),
        ("keygen", "-ok"),
        ("keygen", "-o=k", "x"),
        ("keygen", "--out", "k", "extra"),
        ("version", "extra"),
        ("verify", "--pub", OWN_PUB),
        ("verify", "--pub", OWN_PUB, "--json", OWN, "--json=false"),
        ("verify", "--pub", OWN_PUB, "--token", "x", OWN),
        ("run", "--token", "x", "--js", "1"),
        ("run", "--daemon", NOWHERE, "--js", "1", "--token=x"),
    ):
        found = cli(*args)
        assert (found.code, found.cls) == (2, "usage"), args
        assert untouched(cli), args


def test_a_file_of_a_flag_s_name(cli):
    (cli.cwd / "--json").write_bytes(OWN_PUB.read_bytes())
    (cli.cwd / "-x").write_bytes(OWN.read_bytes())
    found = cli("verify", "--pub=--json", "--", "-x")
    assert found.code == 0 and not found.out.startswith(b"{")
    found = cli("verify", "--pub", "--json", "--", "-x")
    assert found.code == 2


def test_unknown_words_name_the_near_one(cli):
    for args, near in (
        (("verfy",), "verify"),
        (("verify", "--pubb", "k", "f"), "--pub"),
        (("verify", "--expct", "k", "f"), "--expect"),
        (("rnu",), "run"),
        (("run", "--bundel", "x"), "--bundle"),
        (("run", "--js", "1", "--floor", "kernal"), "kernel"),
        (("digest", "recod", "x"), "record"),
        (("completions", "bsh"), "bash"),
        (("help", "verfy"), "verify"),
    ):
        found = cli(*args)
        assert (found.code, found.cls) == (2, "usage") and near in found.prose, found.text
    assert "Did you mean" not in cli("frobnicate").prose
    for args in ((), ("--json",), ("nothing", "--json")):
        found = cli(*args)
        assert (found.code, found.cls) == (2, "usage")
        assert found.json is None or found.json["format"] == "plimsoll-attest/usage/v1"
    assert cli("verfy", b"\xff", "--json").json["format"] == "plimsoll-attest/usage/v1"
    for command in ("completions", "man"):
        refused = cli(command, "bash" if command == "completions" else "run", "--json")
        assert (refused.code, refused.cls) == (2, "usage")


def test_help_checks_nothing_else(cli):
    for args in (("verify", "--help"), ("verify", "-h", "--no-such"), ("verify", "--pub", "--help"), ("help", "verify"), ("run", "-js", "1", "-h")):
        found = cli(*args)
        assert (found.code, found.err) == (0, b""), args
        assert found.out.startswith(b"Verifies whole") or args[0] == "run"
    assert cli("help").out == cli("--help").out == cli("-h").out
    assert cli("-V").out == cli("--version").out == cli("version").out


# The rules of `run`.


FORMS = {
    "REQUEST.json": ("r.json",),
    "--js": ("--js", "1"),
    "--file": ("--file", "f.js"),
    "--project": ("--project", ".", "--step", "true"),
    "--session": ("--session", "s.jsonl"),
}


def test_exactly_one_thing_to_run(cli):
    for flags in ((), ("--step", "x"), ("--floor", "vm"), ("--daemon", NOWHERE)):
        usage(cli, "run", *flags)
    for first, one in FORMS.items():
        for second, two in FORMS.items():
            if first < second:
                assert "more than one" in usage(cli, "run", "--daemon", NOWHERE, *one, *two)["message"]
    usage(cli, "run", "r.json", "s.json")


RULES = [
    *((flags, form) for flags in (("--step", "x"), ("--artifact", "x"), ("--exclude", "x"), ("--skip-binary",)) for form in FORMS if form != "--project"),
    *((flags, form) for flags in (("--lifetime", "1m"), ("--idle", "1m"), ("--language", "python"), ("--owner", "x")) for form in FORMS if form != "--session"),
    *((flags, "REQUEST.json") for flags in (("--floor", "vm"), ("--software", "exact:x"), ("--grant-profile", "x"), ("--trace-id", "x"))),
    *((flags, "--session") for flags in (("--grant-profile", "x"), ("--trace-id", "x"), ("--save-artifacts", "x"))),
    (("--timeout", "1s", "--wait", "1s"), "REQUEST.json"),
]


@pytest.mark.parametrize(("flags", "form"), RULES, ids=[f"{' '.join(flags)} {form}" for flags, form in RULES])
def test_flags_that_do_not_go_together(cli, flags, form):
    error = usage(cli, "run", "--daemon", NOWHERE, *FORMS[form], *flags)
    assert flags[0] in error["message"] or flags[0] in error["do"]


def test_other_rules_of_run(cli):
    for args in (
        ("--project", "."),
        ("--daemon", NOWHERE, "--provider", "wasm", "--js", "1"),
        ("--ca-file", "x", "--js", "1"),
        ("--provider", "disabled", "--js", "1"),
        ("--provider", "e2b", "--js", "1"),
        ("--provider", "WASM", "--js", "1"),
        ("--floor", "none", "--js", "1"),
        ("--js", "1", "--software", "any"),
        ("--js", "1", "--software", "approved:"),
        ("--js", "1", "--software", "EXACT:a"),
        ("--project", ".", "--step", "x", "--exclude", "a{b"),
        ("--js", "1", "--bundle", "-"),
        ("--js", "1", "--key", "-"),
    ):
        usage(cli, "run", *args)


@pytest.mark.parametrize(
    "url",
    ["", "x", "127.0.0.1:1", "ftp://127.0.0.1", "http://example.com", "http://127.0.0.1.example.com", "http://10.0.0.1:1", "http://0.0.0.0:1"]
    + ["https://user@example.com", "https://user:canary-5417@example.com", "https://example.com?q", "https://example.com#f", "http://", "https://:1"]
    + [" https://example.com", "https://example.com ", "https://exa mple.com", "https://example.com:99999", "http://[::2]:1", "file:///etc/passwd"]
    + ["https://exämple.com", "http://127.0.0.1:1/\n", "http://localhost.example.com"],
)
def test_daemon_urls(cli, url):
    error = usage(cli, "run", "--js", "1", "--daemon", url)
    assert "canary" not in str(error)


def test_the_client_s_own_checks_come_before_anything_is_sent(cli):
    """Class `request`: the flags are well formed, what they ask for is not."""
    (cli.cwd / "empty.js").write_bytes(b"")
    (cli.cwd / "bytes.js").write_bytes(b"\xff")
    (cli.cwd / "nul.js").write_bytes(b"a\0b")
    (cli.cwd / "large.js").write_bytes(b"1" * (256 * 1024 + 1))
    (cli.cwd / "p").mkdir()
    (cli.cwd / "ids").write_text("# a comment\n\na:1\na:1\n")
    project = ("--project", "p", "--step", "x")
    for args, member in (
        (("--js", " " * 0 + "\n", "--trace-id", "a b"), "traceId"),
        (("--js", "1", "--trace-id", "\x1b[31m"), "traceId"),
        (("--js", "1", "--trace-id", "x" * 65), "traceId"),
        (("--js", "1", "--grant-profile", "x" * 129), "grantProfile"),
        (("--js", "1", "--software", "exact:a b"), None),
        (("--js", "1", "--software", "exact:"), None),
        (("--js", "1", "--software", "exact:" + "a" * 257), None),
        (("--js", "1", "--software", "approved:ids"), None),
        (("--js", "1", "--software", "approved:empty.js"), None),
        (("--js", "1", "--software", "approved:bytes.js"), None),
        (("--file", "empty.js"), "javascript.code"),
        (("--file", "bytes.js"), None),
        (("--file", "nul.js"), "javascript.code"),
        (("--file", "large.js"), None),
        (("--project", "p", *("--step", "x") * 21), "project.steps"),
        ((*project, "--step", "y" * 16_385), "project.steps[1]"),
        ((*project, "--artifact", "../a"), "project.artifacts[0]"),
        ((*project, "--artifact", "/a"), "project.artifacts[0]"),
        ((*project, "--artifact", "a", "--artifact", "a"), "project.artifacts[1]"),
        ((*project, *(f for n in range(101) for f in ("--artifact", f"a{n}"))), "project.artifacts"),
    ):
        found = cli.both("run", "--daemon", NOWHERE, *args)
        assert (found.code, found.cls) == (1, "request"), f"{args}: {found.text}"
        assert "nothing was run" in found.error["message"], f"{args}: {found.text}"
        assert member is None or found.error["member"] == member, f"{args}: {found.text}"
    # At the bound itself it is sent.
    (cli.cwd / "large.js").write_bytes(b"1" * (256 * 1024))
    assert cli.both("run", "--daemon", NOWHERE, "--file", "large.js").cls == "unreachable"
    assert cli.both("run", "--daemon", NOWHERE, "--js", "1", "--timeout", "0", "--wait", "1s").cls == "unreachable"
    assert not cli.bundle.exists()


def test_expectations_speak_of_one_bundle(cli):
    for flags in (("--expect", VECTORS / "own-mixed.expect"), ("--expect-count", "7"), ("--expect-request", VECTORS / "x")):
        refused = cli("verify", "--pub", OWN_PUB, *flags, OWN, OWN)
        assert refused.code == 2 and refused.cls in ("usage", "io")
    assert cli("verify", "--pub", OWN_PUB, "--expect-count", "-1", OWN, OWN).code == 0


def test_keys_that_are_not_given(cli):
    for command in (("verify", OWN), ("verify-entry", "--line", "1", OWN)):
        usage(cli, *command)
        usage(cli, *command, "--own")
    made = cli("run", "--js", "1")
    assert made.code == 0
    for command in (("verify", OWN), ("verify-entry", "--line", "1", OWN)):
        found = cli.both(*command)
        assert (found.code, found.cls) == (2, "usage") and str(cli.default_pub) in found.error["do"]
    assert cli.both("verify", "--own", cli.bundle).code == 0
    # Instead of --pub, or beside it.
    found = cli.both("verify", "--own", "--pub", OWN_PUB, cli.bundle, OWN)
    assert [bundle["ok"] for bundle in found.json["bundles"]] == [True, True]
