"""What a page shows while the rest of it has not come."""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from page_browser import SECONDS, Loaded

VERDICT = re.compile(r'<div id="verdict".*?</div>', re.DOTALL)
PREPARED = '<div id="verdict" role="status"><h2 id="check-title">Valid: checked in this browser</h2></div>'
MARK = '<p id="mark">here</p>'


@contextmanager
def in_two_parts(first: bytes, second: bytes):
    """Serves a page whose second part is sent when it is asked for; gives its address and how to ask."""
    asked = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Content-Length", str(len(first) + len(second)))
            self.end_headers()
            self.wfile.write(first)
            self.wfile.flush()
            asked.wait(SECONDS)
            self.wfile.write(second)

        def log_message(self, *_) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.handle_request, daemon=True)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/report.html", asked.set
        finally:
            asked.set()
            serving.join(SECONDS)


WAIT = """new Promise((done) => {
  const look = () => %s && done(true);
  new MutationObserver(look).observe(document, {attributes: true, subtree: true, childList: true});
  look();
})"""

STYLES = {
    "as it is": "",
    "important": "html { display: block !important; }",
    "a transition": "html { transition: display 1000s allow-discrete !important; }",
}


@pytest.mark.parametrize("style", STYLES)
def test_a_prepared_verdict_is_not_shown_while_the_page_loads(example, tab, style):
    page = VERDICT.sub(PREPARED, example).replace("<html ", '<html data-verdict="valid" ', 1)
    # The policy goes with it, or the added style would not act.
    page = re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", page).replace("</style>", STYLES[style] + "</style>", 1)
    assert page.count("Valid: checked in this browser</h2>") == 1
    # What follows the script shows that it ran.
    head, body_end, rest = page.rpartition("</body>")
    with in_two_parts((head + MARK).encode(), (body_end + rest).encode()) as (url, finish):
        tab.browser.events.clear()
        tab.call("Page.navigate", url=url)
        tab.browser.wait("Page.frameNavigated", tab.session)
        assert tab.evaluate(WAIT % "document.getElementById('mark')")
        assert tab.evaluate("document.readyState") == "loading"
        assert tab.evaluate("document.getElementById('verdict').getClientRects().length") == 0
        assert tab.evaluate("document.documentElement.dataset.verdict ?? null") is None
        finish()
        assert tab.evaluate(WAIT % "document.documentElement.dataset.verdict")
        loaded = Loaded(tab.evaluate("document.documentElement.dataset.verdict"), [], [], tab)
        assert loaded.verdict == "refused"
        assert loaded.text("h2") == "Refused"
        assert "Valid" not in loaded.text()
        assert tab.evaluate("document.querySelector('h2').getClientRects().length") > 0


IN_FRONT = """
for (const name of %s.split(" ")) {
  Object.defineProperty(document, name, { get() {
    if (new Error().stack.includes("report.html")) throw new Error(name);
    const found = Reflect.get(Document.prototype, name, document);
    return typeof found === "function" ? found.bind(document) : found;
  } });
}
"""
MEMBERS = (
    "addEventListener adoptNode body characterSet childNodes compatMode createElement currentScript doctype documentElement getElementById head "
    "importNode querySelector querySelectorAll scripts"
)


def test_nothing_that_stands_in_front_of_a_member_of_the_document_is_asked(example, tab, tmp_path):
    """As an element's name would stand there, but for those who look on."""
    tab.before_each_page(IN_FRONT % json.dumps(MEMBERS))
    for name, page in (("valid", example), ("refused", example.replace('<p class="big tier">kernel', '<p class="big tier">vm'))):
        file = tmp_path / "report.html"
        file.write_text(page, "utf-8")
        loaded = tab.open(file)
        assert (loaded.verdict, loaded.console) == (name, [])


def test_a_place_is_named_in_few_words_whatever_the_page_calls_it(example, opened):
    around = "".join(f'<div id="{"x" * 5000}{i}">' for i in range(40))
    page = opened(example.replace("</main>", f"<p>added</p>{around}</main>", 1).replace("<main>", f'<main id="{"y" * 5000}">', 1))
    assert page.verdict == "refused"
    said = page.text()
    assert "page: the page shows something else" in said and len(said) < 3000
