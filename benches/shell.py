#!/usr/bin/env python3
"""What a person waits for: `run` from a shell to a signed bundle, and what the processes weigh.

    benches/shell.py [--runs N] [--quick] [BINARY]

BINARY is target/release/plimsoll-attest unless given. Times are compared with the start of the same
binary (`version`), measured in turns with them. Needs Linux: memory is read from /proc.
"""

import argparse
import json
import os
import pathlib
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
VECTORS = ROOT / "testdata" / "vectors"
SNIPPET = "console.log(6*7)"


def environment(home, **more):
    """Only what a run needs, so that no key or setting of the caller's changes the figures."""
    return {"PATH": os.environ.get("PATH", ""), "HOME": str(home), **more}


def timed(command, env, cwd):
    started = time.perf_counter()
    # Without closing descriptors one by one Python starts a process the fast way.
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, close_fds=False, check=False)
    elapsed = (time.perf_counter() - started) * 1e3
    if done.returncode != 0:
        sys.exit(f"{command}: exit {done.returncode}\n{done.stderr.decode(errors='replace')}")
    return elapsed


def at(times, percent):
    """Nearest rank."""
    return sorted(times)[max(-(-len(times) * percent // 100), 1) - 1]


def status_kib(pid, field):
    """A field of /proc/PID/status in KiB; None once the process has ended."""
    try:
        text = pathlib.Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    for line in text.splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    return None


def peak_kib(command, env, cwd, times):
    """Peak resident memory over several processes, watched from outside. What the kernel reports of an
    ended child also counts the memory of the process that started it."""
    most = 0
    for _ in range(times):
        child = subprocess.Popen(command, env=env, cwd=cwd, stdout=subprocess.DEVNULL)
        own = os.path.realpath(command[0])
        while child.poll() is None:
            try:
                if os.path.realpath(f"/proc/{child.pid}/exe") == own:
                    most = max(most, status_kib(child.pid, "VmHWM") or 0)
            except OSError:
                pass
        if child.returncode != 0:
            sys.exit(f"{command}: exit {child.returncode}")
    return most


class Daemon:
    """A daemon of the wasm provider that ends with its standard input."""

    def __init__(self, binary, home):
        self.token = secrets.token_hex(32)
        settings = {
            "PLIMSOLL_ADDR": "127.0.0.1:0",
            "PLIMSOLL_METRICS_ADDR": "off",
            "PLIMSOLL_TOKEN": self.token,
            "PLIMSOLL_LOG_FORMAT": "json",
            "PLIMSOLL_EMBEDDED": "1",
            "SANDBOX_PROVIDER": "wasm",
            "SANDBOX_RATE_PER_MIN": "0",
        }
        self.process = subprocess.Popen(
            [binary, "daemon"],
            env=environment(home, **settings),
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for line in self.process.stderr:
            address = json.loads(line).get("addr")
            if address:
                self.address = address
                # It writes a line for every run and waits when nobody reads.
                threading.Thread(target=self.process.stderr.read, daemon=True).start()
                return
        sys.exit("the daemon ended before it listened")

    def resident_kib(self):
        return status_kib(self.process.pid, "VmRSS")

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def run_times(binary, folder, runs):
    """Times of `version`, of `run` in a new home and of `run` with a key, in turns."""
    known = folder / "known"
    known.mkdir()
    names = ["version", "run, key made", "run, key there"]
    times = {name: [] for name in names}
    for i in range(runs + 1):
        new = folder / f"new{i}"
        new.mkdir()
        run = [binary, "run", "--js", SNIPPET, "--bundle"]
        sample = [
            timed([binary, "version"], environment(known), folder),
            timed([*run, str(new / "runs.jsonl")], environment(new), folder),
            timed([*run, str(known / f"{i}.jsonl")], environment(known), folder),
        ]
        # The first turn warms caches and makes the known home's key.
        if i > 0:
            for name, value in zip(names, sample):
                times[name].append(value)
    floor = at(times["version"], 50)
    print("| from shell to signed bundle, embedded daemon | samples | median ms | p95 ms | × version |")
    print("|---|---:|---:|---:|---:|")
    for name in names:
        median = at(times[name], 50)
        print(f"| {name} | {runs} | {median:.1f} | {at(times[name], 95):.1f} | {median / floor:.1f} |")
    median = at(times["run, key made"], 50)
    verdict = "met" if median <= 150 else "MISSED"
    print(f"\nrun with its key made: {median:.1f} ms median, target at most 150 ms: {verdict}")


def daemon_memory(binary, folder, runs):
    home = folder / "daemon"
    home.mkdir()
    daemon = Daemon(binary, home)
    idle = daemon.resident_kib()
    bundle = str(home / "runs.jsonl")
    env = environment(home, PLIMSOLL_CALLER_TOKEN=daemon.token)
    command = [binary, "run", "--daemon", f"http://{daemon.address}", "--js", SNIPPET, "--bundle", bundle]
    for _ in range(runs):
        timed(command, env, folder)
    after = daemon.resident_kib()
    daemon.end()
    verdict = "met" if idle <= 60 << 10 else "MISSED"
    print(f"daemon resident: {idle} KiB idle, target at most {60 << 10} KiB: {verdict}; {after} KiB after {runs} runs")


def verify_memory(binary, folder, runs):
    mixed = VECTORS / "own-mixed.jsonl"
    verify = [binary, "verify", "--pub", str(VECTORS / "own-mixed.pub")]
    env = environment(folder)
    peak = peak_kib([*verify, str(mixed)], env, folder, runs)
    floor = peak_kib([binary, "version"], env, folder, runs)
    print(f"verify of {mixed.name} ({mixed.stat().st_size} bytes): peak {peak} KiB, version {floor} KiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20, help="samples of each command")
    parser.add_argument("--quick", action="store_true", help="only show that everything still runs")
    parser.add_argument("binary", nargs="?", default=ROOT / "target" / "release" / "plimsoll-attest")
    options = parser.parse_args()
    binary = str(pathlib.Path(options.binary).resolve())
    if not os.path.exists(binary):
        sys.exit(f"{binary} is missing: cargo build --release -p plimsoll-attest")
    runs, calls = (2, 3) if options.quick else (options.runs, 100)
    # On the disk of the target directory: in memory, syncing a bundle would be free.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="shell-bench-", dir=pathlib.Path(binary).parent))
    try:
        run_times(binary, folder, runs)
        daemon_memory(binary, folder, calls)
        verify_memory(binary, folder, runs)
    finally:
        shutil.rmtree(folder)
    print(f"binary: {os.path.getsize(binary)} bytes")


if __name__ == "__main__":
    main()
