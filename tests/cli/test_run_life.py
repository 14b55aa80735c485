"""`run` with the daemon it starts itself: what that child knows, and that it never outlives its run."""

from __future__ import annotations

import os
import resource
import select
import signal
import uuid
from pathlib import Path

import pytest
from cli_fake import good
from cli_tool import OWN_KEY, SECRETS, guard_key

LOOP = "while (true) {}"


def marked(mark: str) -> list[int]:
    """The processes that have this mark in their environment."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if mark.encode() in (process / "environ").read_bytes():
                    found.append(int(process.name))
            except OSError:
                pass  # it has ended, or is not ours to read
    return found


def children(pid: int) -> list[int]:
    try:
        return [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()]
    except OSError:
        return []


def ticks(pid: int) -> int:
    """Processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def child_of(process) -> int:
    """The embedded daemon, as soon as it is there."""
    while not (found := children(process.pid)):
        assert process.poll() is None, process.communicate()
    return found[0]


def looping(process) -> int:
    """The embedded daemon, once a guest keeps it busy: nothing else in it takes a fifth of a second."""
    child = child_of(process)
    while ticks(child) < 20:
        assert process.poll() is None, process.communicate()
    return child


class Ends:
    """Awaits the end of a process that is not ours."""

    def __init__(self, pid: int) -> None:
        self.descriptor = os.pidfd_open(pid)

    def within(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        ended = bool(poll.poll(seconds * 1000))
        os.close(self.descriptor)
        return ended


def test_no_daemon_is_left(cli, fake):
    for n, args in enumerate((("--js", "1"), ("--js", "throw 1"), ("--project", ".", "--step", "true"), ("--js", LOOP, "--timeout", "200ms"), ("--session", "s"))):
        mark = f"MARK{uuid.uuid4().hex}"
        (cli.cwd / "s").write_text('{"protocol":3,"javascript":{"code":"1"}}\n')
        found = cli("run", "--bundle", f"{n}.jsonl", *args, env={"CLI_TEST_MARK": mark})
        assert found.code in (0, 4) and marked(mark) == []


def test_what_the_child_knows(cli):
    """Not the key, not a token, not another daemon's settings; and nothing of it on a command line."""
    pem = OWN_KEY.read_text()
    guard_key(pem.encode())
    canaries = {
        "PLIMSOLL_ATTEST_KEY": pem,
        "PLIMSOLL_CALLER_TOKEN": "canary-caller-token-5417-0123456789",
        "PLIMSOLL_TOKEN": "canary-daemon-token-5417-0123456789",
        "PLIMSOLL_TLS_CERT": "/canary/tls/cert",
        "PLIMSOLL_ADDR": "127.0.0.1:1",
        "PLIMSOLL_CLIENTS_FILE": "/canary/clients",
        "PLIMSOLL_ANYTHING": "canary-anything",
        "SANDBOX_PROVIDER": "docker",
        "SANDBOX_MEMORY_MB": "1",
        "SANDBOX_ANYTHING": "canary-sandbox",
    }
    process = cli.popen("run", "--js", LOOP, "--timeout", "30s", env={**canaries, "PASSED_ON": "yes"})
    child = looping(process)
    environment = dict(entry.split(b"=", 1) for entry in Path(f"/proc/{child}/environ").read_bytes().split(b"\0") if entry)
    arguments = Path(f"/proc/{child}/cmdline").read_bytes()
    ours = Path(f"/proc/{process.pid}/cmdline").read_bytes()
    files = [os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")]
    program = os.readlink(f"/proc/{child}/exe")
    assert program == os.readlink(f"/proc/{process.pid}/exe")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    found = cli.result(("run",), process.returncode, out, err)
    assert "SANDBOX_PROVIDER names docker" in found.prose

    assert environment[b"PASSED_ON"] == b"yes"
    mine = {name: value for name, value in environment.items() if name.startswith((b"PLIMSOLL_", b"SANDBOX_"))}
    token = mine.pop(b"PLIMSOLL_TOKEN")
    assert mine == {
        b"SANDBOX_PROVIDER": b"wasm",
        b"PLIMSOLL_ADDR": b"127.0.0.1:0",
        b"PLIMSOLL_METRICS_ADDR": b"off",
        b"PLIMSOLL_LOG_FORMAT": b"json",
        b"PLIMSOLL_EMBEDDED": b"1",
    }
    assert len(token) == 64 and set(token) <= set(b"0123456789abcdef")
    everything = b"\0".join([*environment.values(), arguments, ours, *map(str.encode, files)])
    assert b"canary" not in everything and not any(secret in everything for secret in SECRETS)
    assert token not in arguments + ours + found.out + found.err
    assert arguments.split(b"\0")[1:] == [b"daemon", b""]
    assert not any("attest.key" in file or str(cli.bundle) == file for file in files)


def test_the_default_key_is_no_open_file_of_the_child(cli):
    process = cli.popen("run", "--js", LOOP, "--timeout", "30s")
    child = looping(process)
    files = [os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")]
    limits = Path(f"/proc/{process.pid}/limits").read_text()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert not any(str(cli.home) in file or str(cli.cwd) in file for file in files), files
    # A core dump of the process that holds the key would hold it too.
    (cores,) = [line.split()[4:6] for line in limits.splitlines() if line.startswith("Max core file size")]
    assert cores == ["0", "0"]


def test_killed_while_the_guest_runs(cli):
    """kill -9 of `run`: the child sees its standard input end, and ends."""
    process = cli.popen("run", "--js", LOOP, "--timeout", "30s")
    child = looping(process)
    end = Ends(child)
    process.kill()
    assert end.within(10)
    process.communicate()
    # The record is lost with the process; the bundle is not harmed.
    assert not cli.bundle.exists()
    assert cli("run", "--js", "1").code == 0


def test_killed_while_the_daemon_starts(cli):
    process = cli.popen("run", "--js", "1")
    end = Ends(child_of(process))
    process.kill()
    assert end.within(10)
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("script", [False, True])
def test_interrupted_while_the_guest_runs(cli, number, script):
    """It says first that the code may have run, then ends by the signal; no child is left."""
    assert cli("run", "--js", "1").code == 0
    before = cli.bundle.read_bytes()
    process = cli.popen("run", "--js", LOOP, "--timeout", "30s", *(("--json",) if script else ()))
    end = Ends(looping(process))
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == -number
    assert end.within(0)
    text = (out + err).decode()
    assert "may have run" in " ".join(text.split()) and "may_have_run" in text
    assert cli.bundle.read_bytes() == before and not any(".unsealed" in path.name for path in cli.cwd.iterdir())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_during_the_wait_for_a_daemon(cli, fake, number):
    daemon = fake(lambda call: daemon.hang(call))
    process = cli.popen("run", "--daemon", daemon.url, "--js", "1")
    assert daemon.reached.wait(30)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == -number and b"may have run" in err and not cli.bundle.exists()


def test_interrupted_before_anything_is_sent(cli):
    """While the daemon starts: by the signal as well, nothing was run, and nobody is left."""
    for wait in range(6):
        mark = f"MARK{uuid.uuid4().hex}"
        process = cli.popen("run", "--js", LOOP, "--timeout", "20s", env={"CLI_TEST_MARK": mark})
        if wait % 2:
            child_of(process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        assert process.returncode == -signal.SIGINT
        assert marked(mark) == [] and not cli.bundle.exists()


def test_a_second_signal_ends_it_at_once(cli, fake):
    daemon = fake(lambda call: daemon.hang(call))
    process = cli.popen("run", "--daemon", daemon.url, "--js", "1")
    assert daemon.reached.wait(30)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT


def test_an_interrupt_from_a_terminal_reaches_the_run_alone(cli):
    """Ctrl-C goes to the whole foreground group: the child is not in it, so its run can still be ended in order."""
    process = cli.popen("run", "--js", LOOP, "--timeout", "30s", start_new_session=True)
    child = looping(process)
    assert os.getpgid(child) != os.getpgid(process.pid)
    end = Ends(child)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT and b"may have run" in err and end.within(0)


def test_a_daemon_that_dies_under_its_run(cli):
    process = cli.popen("run", "--js", LOOP, "--timeout", "30s")
    os.kill(looping(process), signal.SIGKILL)
    out, err = process.communicate(timeout=20)
    found = cli.result(("run",), process.returncode, out, err)
    assert (found.code, found.cls) == (3, "may_have_run") and not cli.bundle.exists()


def test_a_daemon_that_cannot_start(cli):
    """No room for what it prepares: exit 4, and its own last words."""
    found = cli("run", "--js", "1", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
    assert (found.code, found.cls) == (4, "environment"), found.text
    assert "nothing was run" in found.prose and not cli.bundle.exists()


def test_the_wait_is_held(cli):
    """A wait shorter than the guest's own budget: may have run, and the child is not left looping."""
    mark = f"MARK{uuid.uuid4().hex}"
    found = cli("run", "--js", LOOP, "--timeout", "30s", "--wait", "500ms", "--json", env={"CLI_TEST_MARK": mark}, timeout=20)
    assert (found.code, found.cls, found.json["ran"]) == (3, "may_have_run", "maybe")
    assert marked(mark) == [] and not cli.bundle.exists()


def test_tokens(cli, fake):
    daemon = fake(good)
    for value in ("canary-5417\nX-Evil: 1", "canary-5417\r", " canary-5417", "canary-5417é", b"canary-5417\xff", "canary-5417" * 500, "\t"):
        found = cli("run", "--daemon", daemon.url, "--js", "1", env={"PLIMSOLL_CALLER_TOKEN": value})
        assert (found.code, found.cls) == (2, "config") and "PLIMSOLL_CALLER_TOKEN" in found.prose
        assert "canary" not in found.text
        script = cli("run", "--daemon", daemon.url, "--js", "1", "--json", env={"PLIMSOLL_CALLER_TOKEN": value})
        assert script.cls == "config" and "canary" not in script.text
    assert daemon.calls == []
    assert cli("run", "--daemon", daemon.url, "--js", "1", env={"PLIMSOLL_CALLER_TOKEN": ""}).code == 0
    # Without --daemon there is nobody to send it to.
    assert cli("run", "--js", "1", env={"PLIMSOLL_CALLER_TOKEN": "bad\n"}).code == 0
