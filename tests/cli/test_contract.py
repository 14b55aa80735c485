"""Help and definitions against the contract: a flag, default or word that differs either way fails here."""

from __future__ import annotations

import re
import shlex

import pytest
from cli_contract import COMMANDS, GROUPS, Flag
from cli_tool import TABLE, shrunk

SECTIONS = re.compile(r"^(Usage|Arguments|Options|Exit codes|Environment|Examples|Commands):", re.M)


def sections(text: str) -> dict[str, str]:
    """A help text by its headings; what comes before the first is under an empty one."""
    parts = SECTIONS.split(text)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2]))}


def help_of(cli, command: str) -> dict[str, str]:
    found = cli(*command.split(), "--help")
    assert (found.code, found.err) == (0, b"")
    return sections(found.out.decode())


def flags_of(options: str) -> dict[str, dict]:
    """The flags that a help text lists, each with what it says of it."""
    found: dict[str, dict] = {}
    for block in re.split(r"\n(?=\s+(?:-\w, )?--\w)", "\n" + options):
        match = re.match(r"\s*(?:-(\w), )?--([a-z-]+)(?: <([^>]+)>)?(?:\s|$)", block)
        if not match:
            assert not block.strip(), block
            continue
        text = shrunk(block[match.end() :])
        words = re.search(r"\[possible values: ([^\]]+)\]", text)
        default = re.search(r"\[default: ([^\]]+)\]", text)
        found[match[2]] = {
            "short": match[1],
            "value": match[3],
            "words": tuple(words[1].split(", ")) if words else (),
            "default": default[1] if default else None,
            "repeatable": "repeatable" in text,
            "text": text,
        }
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_flags_are_those_of_the_contract(cli, command):
    implemented = flags_of(help_of(cli, command)["Options"])
    stated: dict[str, Flag] = COMMANDS[command]
    assert implemented.keys() == stated.keys(), "a flag that the contract does not have, or the other way round"
    for name, flag in stated.items():
        found = implemented[name]
        assert found["value"] == flag.value, name
        assert found["short"] == flag.short, name
        assert found["words"] == flag.words, name
        assert found["repeatable"] == flag.repeatable, name
        if flag.default is not None:
            assert found["default"] == flag.default, name
        assert len(found["text"]) > 5, f"{name} is not explained"


def test_every_command_is_known(cli):
    listed = re.findall(r"^  ([a-z-]+)  ", sections(cli("help").out.decode())["Commands"], re.M)
    assert sorted(listed) == sorted({"daemon", *(command.split()[0] for command in COMMANDS)})
    # Usage without a command names them too.
    assert re.findall(r"^  ([a-z-]+)  ", cli().err.decode(), re.M) == ["do", *listed] or all(name in cli().err.decode() for name in listed)


def examples(found: dict[str, str], command: str) -> list[str]:
    """The examples of a help, as a shell reads them."""
    text = re.sub(r" \\\n +", " ", found["Examples"])
    return re.findall(rf"^  plimsoll-attest ({command}(?: .*)?)$", text, re.M)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_complete(cli, command):
    found = help_of(cli, command)
    assert found[""].strip(), "a sentence on what it does"
    assert f"plimsoll-attest {command}" in found["Usage"]
    codes = [int(code) for code in re.findall(r"^  (\d+)  ", found["Exit codes"], re.M)]
    assert codes == sorted(codes) and 0 in codes and set(codes) <= {*TABLE.values(), 70}
    assert len(examples(found, command)) >= 2
    shown = cli(*command.split(), "--help").out
    assert cli("help", *command.split()).out == shown
    assert all(len(line) <= 100 for line in shown.decode().splitlines())
    assert b"\x1b" not in shown


@pytest.mark.parametrize("group", GROUPS)
def test_groups_name_their_commands(cli, group):
    found = help_of(cli, group)
    words = [command.split()[1] for command in COMMANDS if command.startswith(f"{group} ")]
    assert re.findall(r"^  ([a-z-]+)  ", found["Commands"], re.M) == words
    assert len(examples(found, group)) >= 2 and found["Exit codes"].strip()
    assert cli("help", group).out == cli(group, "-h").out == cli(group, "help").out
    nothing = cli(group)
    assert (nothing.code, nothing.cls) == (2, "usage") and all(word in nothing.err.decode() for word in words)
    script = cli(group, "--json")
    assert (script.code, script.cls) == (2, "usage") and script.json["format"] == f"plimsoll-attest/{group}/v1"
    near = cli(group, words[0][:-1])
    assert (near.code, near.cls) == (2, "usage") and words[0] in near.prose


CODES = {
    "keygen": {0, 2},
    "run": {0, 1, 2, 3, 4, 5},
    "digest": {0, 1, 2},
    "replay": {0, 1, 2, 3, 4, 5},
    "inspect": {0, 1, 2},
    "verify": {0, 1, 2, 5},
    "verify-entry": {0, 1, 2, 5},
    **{command: {0, 1, 2} for command in COMMANDS if command.startswith("clients ")},
    "pr-receipt init": {0, 2},
    "pr-receipt run": {0, 1, 2, 3, 4, 5},
    "pr-receipt verify": {0, 1, 2, 3, 4, 5},
    "pr-receipt render": {0, 1, 2},
    "pr-receipt challenge": {0, 1, 2},
}


def test_exit_codes_are_those_of_the_contract(cli):
    for command, codes in CODES.items():
        listed = {int(code) for code in re.findall(r"^  (\d+)  ", help_of(cli, command)["Exit codes"], re.M)}
        assert listed - {70} == codes, command


def test_examples_are_lines_that_the_program_takes(cli):
    """Each example of each help parses: what it names may be missing, its flags are right."""
    for command in COMMANDS:
        for line in examples(help_of(cli, command), command):
            words = shlex.split(re.split(r" [|<>] ", line)[0])
            words = ["http://127.0.0.1:1" if word.startswith("https://sandbox.example") else word for word in words]
            words = [str(cli.cwd / "made") if word.startswith(("/usr/", "/secure/")) else word for word in words]
            found = cli(*words, raw=True)
            assert found.code != 2 or found.cls != "usage", f"{line}: {found.text}"


def test_help_of_the_daemon(cli):
    found = cli("daemon", "--help")
    assert found.code == 0 and b"SANDBOX_PROVIDER" in found.out and found.err == b""
    for args in (("daemon", "--port", "1"), ("daemon", "extra"), ("daemon", "--color", "never"), ("daemon", "--json")):
        process = cli.popen(*args)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 2 and out == b"" and args[1].encode() in err


def test_help_does_not_depend_on_its_environment(cli):
    plain = cli("run", "--help").out
    for env in ({"COLUMNS": "40"}, {"TERM": "xterm"}, {"LANG": "de_DE.UTF-8"}, {"HOME": None}, {"PLIMSOLL_CALLER_TOKEN": "x y"}):
        assert cli("run", "--help", env=env).out == plain


def test_version(cli):
    line = cli("version").out.decode()
    script = cli("version", "--json").json
    assert line == f"plimsoll-attest {script['version']} (protocol 3, records 1-3, {script['commit']})\n"
    assert script["protocol"] == 3 and script["record_versions"] == [1, 2, 3] and script["providers"] == ["wasm"]
    for spelling in ("-V", "--version", "-version"):
        assert cli(spelling).out.decode() == line
    assert cli("--version", "--json").json == script
