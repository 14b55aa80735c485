"""Drives one headless Chromium over its debugging pipe: no driver, no port, no network."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import queue
import shutil
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 60
"""Longest wait for any one answer: a bound for a hung browser, never a measure."""


@dataclass
class Loaded:
    """A page that was opened, and what the browser said while it was."""

    verdict: str | None
    requests: list[str]
    console: list[str]
    tab: Tab = field(repr=False)

    def text(self, selector: str = "body") -> str:
        return self.tab.evaluate(f"document.querySelector({json.dumps(selector)}).innerText")


class Browser:
    """A running Chromium with nothing of a profile kept."""

    def __init__(self, home: Path) -> None:
        binary = shutil.which("chromium") or shutil.which("chromium-browser")
        assert binary, "Debian's package chromium is needed"
        to_browser, self._out = _high_pipe()
        self._in, from_browser = _high_pipe()

        def at_three_and_four() -> None:
            os.dup2(to_browser, 3)
            os.dup2(from_browser, 4)

        self._process = subprocess.Popen(
            [
                binary,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--no-first-run",
                "--remote-debugging-pipe",
                f"--user-data-dir={home}",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(home)},
            pass_fds=(3, 4),
            preexec_fn=at_three_and_four,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._last = 0
        self._messages: queue.Queue[dict | None] = queue.Queue()
        self.events: list[dict] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        rest = b""
        while chunk := os.read(self._in, 1 << 20):
            *whole, rest = (rest + chunk).split(b"\0")
            for message in whole:
                self._messages.put(json.loads(message))
        self._messages.put(None)

    def _next(self) -> dict:
        message = self._messages.get(timeout=SECONDS)
        assert message is not None, "the browser ended"
        return message

    def call(self, method: str, session: str | None = None, **params):
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        while (answer := self._next()).get("id") != self._last:
            self.events.append(answer)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def wait(self, method: str, session: str) -> dict:
        """The next such event, or one that has come already."""
        for event in self.events:
            if event.get("method") == method and event.get("sessionId") == session:
                return event
        while True:
            event = self._next()
            self.events.append(event)
            if event.get("method") == method and event.get("sessionId") == session:
                return event

    def tab(self) -> Tab:
        return Tab(self)

    def close(self) -> None:
        os.close(self._out)
        try:
            self._process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Tab:
    """One tab; every opened file starts from nothing."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params):
        return self.browser.call(method, self.session, **params)

    def before_each_page(self, script: str) -> None:
        self.call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def emulate(self, *, scheme: str = "light", media: str = "", width: int = 1100, height: int = 1400) -> None:
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def evaluate(self, expression: str):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, file: Path) -> Loaded:
        """Opens a file and waits for its verdict; `None` when its script was not let run."""
        self.browser.events.clear()
        url = file.resolve().as_uri()
        self.call("Page.navigate", url=url)
        self.browser.wait("Page.loadEventFired", self.session)
        blocked = any("script-src" in entry for entry in self._log())
        # A page that refused itself has no script any more.
        verdict = self.evaluate("document.documentElement.dataset.verdict") or None
        has_script = self.evaluate("[...document.scripts].some((script) => !script.type)")
        if verdict is None and has_script and not blocked:
            verdict = self.evaluate(
                "new Promise((done) => { const look = () => document.documentElement.dataset.verdict && done(document.documentElement.dataset.verdict);"
                " new MutationObserver(look).observe(document, {attributes: true, subtree: true, childList: true}); look(); })"
            )
        return Loaded(verdict, [request for request in self._requests() if request != url], self._log(), self)

    def _of(self, method: str) -> list[dict]:
        events = self.browser.events
        return [event["params"] for event in events if event.get("method") == method and event.get("sessionId") == self.session]

    def _requests(self) -> list[str]:
        """What was let go: a request that the page's policy stops is announced too, and then fails as blocked."""
        blocked = {event["requestId"] for event in self._of("Network.loadingFailed") if event.get("blockedReason") == "csp"}
        return [event["request"]["url"] for event in self._of("Network.requestWillBeSent") if event["requestId"] not in blocked]

    def _log(self) -> list[str]:
        entries = [event["entry"]["text"] for event in self._of("Log.entryAdded")]
        entries += [str(event["args"]) for event in self._of("Runtime.consoleAPICalled")]
        return entries + [event["exceptionDetails"]["text"] for event in self._of("Runtime.exceptionThrown")]

    def screenshot(self, file: Path) -> None:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, file: Path) -> None:
        printed = self.call("Page.printToPDF", printBackground=False, preferCSSPageSize=True)
        file.write_bytes(base64.b64decode(printed["data"]))

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)


def _high_pipe() -> tuple[int, int]:
    """A pipe whose ends are no low descriptors, so that they can be put at 3 and 4 in a child."""
    ends = []
    for end in os.pipe():
        ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10))
        os.close(end)
    return ends[0], ends[1]
