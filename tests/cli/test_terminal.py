"""What a person at a terminal sees: colour, progress and notes, and when not."""

from __future__ import annotations

import os
import pty
import re

import pytest
from cli_fake import good
from cli_tool import BUNDLES, OWN, OWN_PUB

BAD = BUNDLES / "changed-byte.jsonl"
ESCAPE = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


def at_terminal(cli, *args, env: dict | None = None, stdin: bytes | None = None) -> tuple[int, bytes]:
    """Runs it with all its streams on a terminal of its own; gives the code and what was shown."""
    master, slave = pty.openpty()
    try:
        process = cli.popen(*args, env={"TERM": "xterm", **(env or {})}, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        slave = -1
        if stdin is not None:
            os.write(master, stdin)
        shown = b""
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:  # the other side has gone
                break
            if not data:
                break
            shown += data
        return process.wait(timeout=60), shown
    finally:
        os.close(master)
        if slave >= 0:
            os.close(slave)


@pytest.mark.parametrize(
    ("flags", "env", "colored"),
    [
        ((), {}, True),
        ((), {"NO_COLOR": "1"}, False),
        ((), {"NO_COLOR": ""}, True),
        ((), {"TERM": "dumb"}, False),
        (("--color", "never"), {}, False),
        (("--color", "always"), {"NO_COLOR": "1", "TERM": "dumb"}, True),
        (("--color", "always", "--json"), {}, False),
    ],
)
def test_color(cli, flags, env, colored):
    code, shown = at_terminal(cli, "verify", *flags, "--pub", OWN_PUB, BAD, env=env)
    assert code == 1 and bool(ESCAPE.search(shown)) is colored
    # Colour never carries meaning alone.
    plain = ESCAPE.sub(b"", shown)
    assert b"error[link]" in plain or b'"class":"link"' in plain


def test_progress_of_a_run_that_takes_its_time(cli, fake):
    daemon = fake(lambda call: daemon.hang(call))
    run = ("run", "--daemon", daemon.url, "--js", "1", "--wait", "1200ms")
    code, shown = at_terminal(cli, *run)
    assert code == 3 and b"waiting for the run" in shown
    # Erased before the error is printed: the last line that shows it is cleared.
    after = shown.split(b"waiting for the run")[-1]
    assert b"\x1b[2K" in after or b"\r" in after
    assert b"error[may_have_run]" in ESCAPE.sub(b"", after)
    for quiet in (("--no-progress",), ("--quiet",), ("--json",)):
        code, shown = at_terminal(cli, "run", "--daemon", daemon.url, *quiet, "--js", "1", "--wait", "700ms")
        assert code == 3 and b"waiting for the run" not in shown


def test_no_progress_of_what_is_done_at_once(cli, fake):
    daemon = fake(good)
    for args in (("run", "--daemon", daemon.url, "--js", "1", "--color", "never"), ("verify", "--pub", OWN_PUB, OWN, "--color", "never")):
        code, shown = at_terminal(cli, *args)
        assert code == 0 and b"waiting" not in shown and b"/s" not in shown


def test_a_terminal_is_told_that_input_is_awaited(cli):
    code, shown = at_terminal(cli, "digest", "request", "-", stdin=b'{"protocol":3,"javascript":{"code":"1"}}\n\x04')
    assert code == 0 and b"reading standard input" in shown and b"c9a463395a2017bfa080ffbd378847d82239b590c7f71127554d2a5ae4be1c5c" in shown
    assert b"reading" not in cli("digest", "request", "-", stdin=b'{"protocol":3}').err


def test_hostile_output_on_a_terminal(cli):
    code, shown = at_terminal(cli, "run", "--js", "console.log('\\x1b]0;title\\x07\\x1b[2J\\u202e')", "--color", "never")
    assert code == 0 and b"\x1b" not in shown and b"\x07" not in shown and b"\\u{1b}]0;title\\u{7}\\u{1b}[2J\\u{202e}" in shown
