"""Standard output that is closed, full or gone, and what it must not change."""

from __future__ import annotations

import os
import subprocess

import pytest
from cli_fake import closed_port, good
from cli_tool import BINARY, BUNDLES, OWN, OWN_PUB, VECTORS

BAD = BUNDLES / "changed-byte.jsonl"


def verdicts(cli, fake) -> list:
    """Verdict commands with the exit code that is theirs whatever reads them."""
    return [
        (("verify", "--pub", OWN_PUB, OWN), 0),
        (("verify", "--pub", OWN_PUB, BAD), 1),
        (("verify", "--pub", OWN_PUB, OWN, BAD), 1),
        (("verify", "--pub", OWN_PUB, OWN, "absent"), 2),
        (("verify", "--pub", OWN_PUB), 2),
        (("verify-entry", "--pub", OWN_PUB, "--line", "1", OWN), 0),
        (("verify-entry", "--pub", OWN_PUB, "--line", "4", OWN), 1),
        (("run", "--js", "console.log('x'.repeat(60000))"), 0),
        (("run", "--js", "throw 1", "--require-success"), 5),
        (("run", "--daemon", closed_port(), "--js", "1"), 4),
        (("run", "--daemon", fake(lambda call: call.drop()).url, "--js", "1"), 3),
        (("run", "--bundle", BAD, "--shared-bundle", "--js", "1"), 1),
    ]


TEXTS = [
    ("digest", "line", "--line", "1", OWN),
    ("digest", "request", "--fields", "r.json"),
    ("version",),
    ("--version",),
    ("help",),
    ("run", "--help"),
    ("daemon", "--help"),
    ("man", "run"),
    ("completions", "bash"),
]


def request(cli) -> None:
    (cli.cwd / "r.json").write_text('{"protocol":3,"javascript":{"code":"1"}}')


@pytest.mark.parametrize("script", [False, True])
def test_a_verdict_stays_when_nobody_reads_it(cli, fake, script):
    for args, code in verdicts(cli, fake):
        args = (args[0], "--json", *args[1:]) if script else args
        with cli.broken_pipe() as pipe:
            found = cli(*args, stdout=pipe)
        assert found.code == code, args
        if code == 0:
            assert b"error" not in found.err and b"pipe" not in found.err.lower(), found.err


def test_a_reader_that_stops_after_one_byte(cli):
    """`verify … | head -c1` cannot turn a refusal into success."""
    for args, code in ((("verify", "--pub", OWN_PUB, OWN), 0), (("verify", "--pub", OWN_PUB, *[OWN] * 400, BAD), 1)):
        process = cli.popen(*args)
        process.stdout.read(1)
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(timeout=30) == code
        assert (b"error[link]" in err) is (code == 1) and b"panicked" not in err
    # The shell's own way to say it.
    command = f"set -o pipefail; '{BINARY}' verify --pub '{OWN_PUB}' '{BAD}' | head -c1"
    assert subprocess.run(["bash", "-c", command], capture_output=True).returncode == 1


def test_text_stops_quietly(cli):
    request(cli)
    for args in TEXTS:
        with cli.broken_pipe() as pipe:
            found = cli(*args, stdout=pipe)
        assert (found.code, found.err) == (0, b""), args


def test_a_full_disk_is_an_error_everywhere(cli, fake):
    request(cli)
    worse = [3, 1, 2, 4, 5, 0]
    texts = [(args, 0) for args in TEXTS if args[0] != "daemon"]
    with open("/dev/full", "wb") as full:
        for args, code in (*verdicts(cli, fake), *texts):
            forms = [args] if (args, code) in texts[1:] else [args, (args[0], "--json", *args[1:])]
            for form in forms:
                writes = cli(*form, raw=True).out != b""
                found = cli(*form, stdout=full)
                # What is worse news for a reader decides; a success it cannot be.
                assert found.code == (min(code, 1, key=worse.index) if writes else code), (form, found.text)
                if writes:
                    assert b"error[io]" in found.err and b"no space is left" in found.err, (form, found.err)


def test_a_run_whose_output_is_lost_is_recorded(cli):
    with open("/dev/full", "wb") as full:
        found = cli("run", "--js", "console.log(1)", stdout=full)
    assert found.code == 1 and b"standard output could not be written" in found.err
    assert cli("verify", "--own", "--expect-count", "1", cli.bundle).code == 0


def closed(*numbers: int):
    """Closes descriptors before the program begins."""

    def close() -> None:
        for number in numbers:
            os.close(number)

    return close


def test_closed_descriptors_are_not_taken_by_files(cli, fake):
    """With descriptor 1 free, the bundle could become it, and text would land in the evidence."""
    request(cli)
    daemon = fake(good)
    for numbers in ((1,), (2,), (1, 2), (0,), (0, 1, 2)):
        found = cli("run", "--daemon", daemon.url, "--js", "1", preexec_fn=closed(*numbers), raw=True)
        assert found.code == 0, numbers
        found = cli("verify", "--pub", OWN_PUB, OWN, preexec_fn=closed(*numbers), raw=True)
        assert found.code == 0, numbers
        process = cli.popen("verify", "--pub", OWN_PUB, BAD, preexec_fn=closed(*numbers))
        process.communicate(timeout=30)
        assert process.returncode == 1, numbers
        process = cli.popen("digest", "request", "r.json", preexec_fn=closed(*numbers))
        process.communicate(timeout=30)
        assert process.returncode == 0, numbers
    assert cli("verify", "--own", "--expect-count", "5", cli.bundle).code == 0
    assert cli.bundle.read_bytes().startswith(b'{"request":')


def test_a_broken_standard_error_is_ignored(cli, fake):
    for args, code in verdicts(cli, fake):
        with cli.broken_pipe() as pipe, open("/dev/full", "wb") as full:
            for sink in (pipe, full):
                process = cli.popen(*args, stderr=sink, stdout=subprocess.DEVNULL)
                assert process.wait(timeout=30) == code, args


def test_standard_input_is_left_alone(cli):
    """Only `-` reads it: a command that hangs on an open terminal would be one nobody can use in a script."""
    reader, writer = os.pipe()
    try:
        for args in (("verify", "--pub", OWN_PUB, OWN), ("run", "--js", "1"), ("version",), ("digest", "line", "--line", "1", OWN)):
            assert cli(*args, timeout=30).code == 0
            process = cli.popen(*args, stdin=reader)
            process.communicate(timeout=30)
            assert process.returncode == 0
    finally:
        os.close(reader)
        os.close(writer)


def test_quiet_and_color(cli, fake):
    # What --quiet drops: notes. What it does not: data, warnings, errors.
    loud, quiet = cli("run", "--js", "console.log(1)"), cli("run", "-q", "--js", "console.log(1)")
    assert b"note:" in loud.err and quiet.err == b"" and b"| 1" in quiet.out
    assert b"error[" in cli("verify", "-q", "--pub", OWN_PUB, BAD).err
    assert cli("verify", "-q", "--pub", OWN_PUB, OWN).out == cli("verify", "--pub", OWN_PUB, OWN).out
    assert cli("keygen", "-q", "--out", "a").out == b"" and (cli.cwd / "a.key").exists()
    # Colour: never into a file or pipe by itself, always when asked, never in JSON.
    for flags, env, colored in (
        ((), {}, False),
        (("--color", "always"), {}, True),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        (("--color", "never"), {}, False),
        (("--color", "always", "--json"), {}, False),
    ):
        process = cli.popen("verify", *flags, "--pub", OWN_PUB, BAD, env=env)
        out, err = process.communicate()
        assert (b"\x1b[" in out + err) is colored, flags
    assert VECTORS.exists()


def test_output_does_not_depend_on_the_environment(cli):
    plain = cli("verify", "--pub", OWN_PUB, OWN)
    for env in (
        {"LANG": "de_DE.UTF-8", "LC_ALL": "tr_TR.UTF-8"},
        {"TZ": "Asia/Kathmandu"},
        {"TERM": "xterm-256color", "COLUMNS": "20"},
        {"HOME": None},
        {"RUST_BACKTRACE": "full", "RUST_LOG": "trace"},
        {"HTTP_PROXY": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1"},
        {"PLIMSOLL_ATTEST_KEY": "x", "PLIMSOLL_CALLER_TOKEN": "x"},
    ):
        found = cli("verify", "--pub", OWN_PUB, OWN, env=env)
        assert (found.code, found.out, found.err) == (0, plain.out, b""), env
