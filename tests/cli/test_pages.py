"""Manual pages and completions: made from the definitions, the same every time, and read by their readers."""

from __future__ import annotations

import os
import stat
import subprocess

import pytest
from cli_contract import COMMANDS, GROUPS
from cli_tool import BINARY, ROOT

WORDS = {"plimsoll-attest.1": (), **{f"plimsoll-attest-{command.replace(' ', '-')}.1": command.split() for command in ("daemon", *GROUPS, *COMMANDS)}}
PAGES = sorted(WORDS)


@pytest.fixture
def pages(cli):
    for folder in ("a", "b"):
        (cli.cwd / folder).mkdir()
        assert cli("man", "--out", folder).code == 0
    return cli.cwd / "a"


def test_pages_are_the_same_each_time(cli, pages):
    assert sorted(os.listdir(pages)) == PAGES
    for name in PAGES:
        content = (pages / name).read_bytes()
        assert content == (cli.cwd / "b" / name).read_bytes()
        assert stat.S_IMODE((pages / name).stat().st_mode) == 0o644
        assert str(ROOT).encode() not in content and str(cli.folder).encode() not in content
    # Again over themselves, in another time zone and place: the same.
    assert cli("man", "--out", pages, env={"TZ": "Asia/Tokyo", "LANG": "ja_JP.UTF-8"}).code == 0
    assert all((pages / name).read_bytes() == (cli.cwd / "b" / name).read_bytes() for name in PAGES)
    for name in PAGES:
        assert cli("man", *WORDS[name], raw=True).out == (pages / name).read_bytes()


def test_pages_render_without_a_warning(cli, pages):
    for name in PAGES:
        for command in (["man", "--warnings", "-E", "UTF-8", "-l", str(pages / name)], ["groff", "-man", "-ww", "-Tutf8", str(pages / name)]):
            env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MANPAGER": "cat"}
            shown = subprocess.run(command, capture_output=True, env=env, timeout=60)
            assert shown.returncode == 0 and shown.stderr == b"", f"{command}: {shown.stderr.decode()}"
            assert len(shown.stdout) > 400


def test_pages_say_what_help_says(cli, pages):
    for command, flags in COMMANDS.items():
        text = (pages / f"plimsoll-attest-{command.replace(' ', '-')}.1").read_text().replace("\\-", "-")
        for name in flags:
            assert f"--{name}" in text, (command, name)
        for heading in (".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS"):
            assert heading in text, (command, heading)
        assert "EXIT" in text.upper() and "EXAMPLES" in text.upper()


def test_places_for_pages(cli):
    (cli.cwd / "f").write_text("x")
    (cli.cwd / "d").mkdir()
    (cli.cwd / "d/plimsoll-attest.1").symlink_to(cli.cwd / "f")
    for place in ("absent", "f", "d", "/proc"):
        found = cli("man", "--out", place)
        assert found.code in (1, 2) and found.cls in ("io", "exists"), (place, found.text)
    assert (cli.cwd / "f").read_text() == "x"
    for words in (("nothing",), ("run", "verify"), ("run", "")):
        found = cli("man", *words)
        assert (found.code, found.cls) == (2, "usage")


def shell(*command: str, script: str) -> str:
    env = {"PATH": f"{BINARY.parent}:/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "TERM": "dumb"}
    run = subprocess.run([*command], input=script, capture_output=True, text=True, env=env, timeout=60)
    assert run.returncode == 0 and run.stderr == "", f"{command}: {run.stderr}"
    return run.stdout


@pytest.fixture
def script(cli):
    def write(name: str) -> str:
        found = cli("completions", name, raw=True)
        assert found.code == 0 and found.out.endswith(b"\n") and found.err == b""
        assert found.out == cli("completions", name, raw=True).out
        path = cli.cwd / f"complete.{name}"
        path.write_bytes(found.out)
        return str(path)

    return write


def bash(script: str, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    line = " ".join(words)
    return shell(
        "bash",
        "--norc",
        script=f"""
            set -u
            source '{script}'
            complete -p plimsoll-attest >/dev/null
            COMP_WORDS=({" ".join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
            COMP_LINE='{line}'; COMP_POINT={len(line)}; COMPREPLY=()
            function_name=$(complete -p plimsoll-attest | sed 's/.*-F \\([^ ]*\\).*/\\1/')
            $function_name plimsoll-attest '{words[-1]}' '{words[-2]}'
            printf '%s\\n' "${{COMPREPLY[@]:-}}"
        """,
    ).split()


def test_bash(cli, script):
    file = script("bash")
    assert {"verify", "verify-entry"} <= set(bash(file, "plimsoll-attest", "ver"))
    assert set(bash(file, "plimsoll-attest", "run", "--floor", "")) == {"process", "container", "kernel", "vm"}
    assert bash(file, "plimsoll-attest", "run", "--print", "ra") == ["raw"]
    assert "--bundle" in bash(file, "plimsoll-attest", "run", "--bun")
    assert set(bash(file, "plimsoll-attest", "completions", "")) >= {"bash", "zsh", "fish", "powershell", "elvish"}
    # Files complete to files.
    made = cli.cwd / "some-bundle.jsonl"
    made.write_text("")
    for words in (("verify", "--pub", f"{cli.cwd}/some-"), ("run", "--key", f"{cli.cwd}/some-")):
        assert bash(file, "plimsoll-attest", *words) == [str(made)], words


def test_zsh(script):
    file = script("zsh")
    loaded = shell(
        "zsh",
        "-f",
        script=f"""
            autoload -U compinit && compinit -u -D
            source '{file}'
            whence -w _plimsoll-attest
            print -r -- "$_comps[plimsoll-attest]"
        """,
    )
    assert loaded.split() == ["_plimsoll-attest:", "function", "_plimsoll-attest"]
    shell("zsh", "-n", file, script="")
    text = open(file).read()
    assert text.startswith("#compdef plimsoll-attest") and ":_files" in text and "process container kernel vm" in text


def fish(script: str, line: str) -> list[str]:
    out = shell("fish", "--no-config", script=f"source '{script}'\ncomplete -C '{line}'\n")
    return [row.split("\t")[0] for row in out.splitlines()]


def test_fish(cli, script):
    file = script("fish")
    assert {"verify", "verify-entry", "version"} <= set(fish(file, "plimsoll-attest ver"))
    assert set(fish(file, "plimsoll-attest run --floor ")) == {"process", "container", "kernel", "vm"}
    made = cli.cwd / "some-bundle.jsonl"
    made.write_text("")
    assert str(made) in fish(file, f"plimsoll-attest verify --pub {cli.cwd}/some-")


def test_other_shells(script):
    for name in ("powershell", "elvish"):
        text = open(script(name)).read()
        for command, flags in COMMANDS.items():
            assert all(word in text for word in command.split())
            assert all(f"--{flag}" in text for flag in flags)
