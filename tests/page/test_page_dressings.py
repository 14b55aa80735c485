"""The evidence is good and the page around it is not: whatever a reader would see, the page refuses."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

HEAD = "242085db39798080553c88a7f6e0b887ba5e33dc"
OTHER = "142085db39798080553c88a7f6e0b887ba5e33dc"


def swap(old: str, new: str, count: int = 1):
    """One text for another; the text must be there."""

    def apply(page: str) -> str:
        assert old in page.split("<script")[0], old
        return page.replace(old, new, count)

    return apply


def before(anchor: str, text: str):
    return swap(anchor, text + anchor)


def after(anchor: str, text: str):
    return swap(anchor, anchor + text)


def restyled(page: str) -> str:
    """Another style, and a policy that allows it."""
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
    changed = style + "#verdict, .caveat { display: none }\n"
    digest = lambda text: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()  # noqa: E731
    return page.replace(style, changed, 1).replace(digest(style), digest(changed), 1)


def sections_swapped(page: str) -> str:
    found = re.findall(r"<section aria-labelledby.*?</section>\n", page, re.DOTALL)
    return page.replace(found[0], "@@", 1).replace(found[1], found[0], 1).replace("@@", found[1], 1)


DRESSINGS = {
    "another result": swap('<p class="big">PASSED</p>', '<p class="big">FAILED</p>'),
    "another count": swap("<b>2</b> passed", "<b>3</b> passed"),
    "another tier": swap('<p class="big tier">kernel</p>', '<p class="big tier">vm</p>'),
    "another rung": swap('<li class="here" aria-current="true">kernel</li>\n<li>vm</li>', '<li>kernel</li>\n<li class="here" aria-current="true">vm</li>'),
    "the tier's qualification removed": swap("<strong>Stated by the daemon; not hardware attestation.</strong> ", ""),
    "another head": swap(f"--head {HEAD}", f"--head {OTHER}"),
    "another digest": swap('<code class="digest">1c46946d', '<code class="digest">2c46946d'),
    "another key in the command": swap("--keyid 8b10", "--keyid 9b10"),
    "another command": swap("pr-receipt verify --repo", "pr-receipt render --repo"),
    "another title": swap("<title>PASSED:", "<title>PASSED, verified:"),
    "a limit removed": swap("<li><b>That the daemon told the truth.</b>", "<li><b>The daemon told the truth.</b>"),
    "the caveat hidden": swap('<p class="caveat">', '<p class="caveat" hidden>'),
    "a seal added": before('<section class="hero"', "<p>Audited and certified</p>\n"),
    "a hidden element added": before("</main>", '<div hidden>x</div>'),
    "an empty element added": before("</main>", "<i></i>"),
    "a comment added": before("</main>", "<!-- checked -->"),
    "a comment after the page": lambda page: page + "<!-- checked -->",
    "text after the page": lambda page: page + "checked",
    "a comment before the page": lambda page: "<!-- checked -->" + page,
    "a legacy document type": swap("<!DOCTYPE html>", '<!DOCTYPE html SYSTEM "about:legacy-compat">'),
    "no document type": lambda page: page.removeprefix("<!DOCTYPE html>\n"),
    "another class": swap('<div class="card result passed">', '<div class="card result failed">'),
    "a style attribute": swap('<main>', '<main style="display:none">'),
    "an attribute on the root": swap('<html lang="en">', '<html lang="en" data-verdict="valid">'),
    "an attribute on the body": swap("<body>", '<body dir="rtl">'),
    "another language": swap('<html lang="en">', '<html lang="ar">'),
    "another label": swap('aria-label="2 passed, 0 warned', 'aria-label="9 passed, 0 warned'),
    "a longer bar": swap('x="0" width="1000"', 'x="0" width="900"'),
    "a second verdict": before('<section id="check"', '<div id="verdict"><h2>Valid</h2></div>'),
    "an id twice": swap('<footer>', '<footer id="verdict">'),
    "a second style": before("</head>", "<style>body { color: red }</style>"),
    "a changed style": swap("color-scheme: light dark;", "color-scheme: dark;"),
    "a changed style that the policy allows": restyled,
    "a linked style": before("</head>", '<link rel="stylesheet" href="https://example.org/x.css">'),
    "a wider policy": swap("base-uri 'none'", "img-src *; base-uri 'none'"),
    "no policy": lambda page: re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>\n', "", page),
    "a second policy": before("<title>", "<meta http-equiv=\"Content-Security-Policy\" content=\"img-src *\">"),
    "a refresh": before("<title>", '<meta http-equiv="refresh" content="600; url=https://example.org/">'),
    "a base": before("<title>", '<base href="https://example.org/">'),
    "an image": before("</main>", '<img src="https://example.org/x.png" alt="">'),
    "a frame": before("</main>", '<iframe src="https://example.org/"></iframe>'),
    "an open dialog": before("</main>", "<dialog open>Valid</dialog>"),
    "another link": swap('href="#again"', 'href="https://example.org/"'),
    "an invisible character": swap("example-org/adder</span>", "example-org/add\u200ber</span>"),
    "a look-alike letter": swap("example-org/adder</span>", "ex\u0430mple-org/adder</span>"),
    "a space more": swap("</li>\n</ul>", "</li> \n</ul>"),
    "a test more": before("<li><code>adds zero", "<li><code>divides</code></li>\n"),
    "a left-out file removed": swap("<tr><td><code>logo.png</code></td>", "<tr hidden><td><code>logo.png</code></td>"),
    "sections swapped": sections_swapped,
    "an open shadow tree": after('<div class="card result passed">', '<template shadowrootmode="open">FAILED</template>'),
    "a closed shadow tree": after('<div class="card result passed">', '<template shadowrootmode="closed">FAILED</template>'),
    "a closed shadow tree on the body": after("<body>", '<template shadowrootmode="closed">Valid</template>'),
    "a second data script": before("</main>", '<script type="application/json">{}</script>'),
    "a script of another type": before("</main>", '<script type="text/plain">x</script>'),
    "editable text": swap("<main>", '<main contenteditable="true">'),
    "a folded list": swap('<details class="group passed" open>', '<details class="group passed">'),
}


@pytest.mark.parametrize("name", DRESSINGS)
def test_a_dressed_page_is_refused(example, opened, name):
    dressed = DRESSINGS[name](example)
    assert dressed != example
    page = opened(dressed)
    assert page.verdict == "refused"
    assert page.text("h2") == "Refused"
    assert "page: " in page.text()
    # Nothing of what the page said stands beside its refusal.
    assert "example-org/adder" not in page.text() and "kernel" not in page.text()
    assert page.requests == []


CUT = {
    "a check removed": lambda page: page.replace("must(await verifies(", "void (await verifies(", 1),
    "another style expected": lambda page: re.sub(r'STYLE_SHA256 = "[0-9a-f]{64}"', 'STYLE_SHA256 = ""', page),
    "the comparison removed": lambda page: page.replace("await comparePage(", "void (", 1),
    "the last line removed": lambda page: page.replace('call(EventTarget.prototype.addEventListener, document, "DOMContentLoaded", start);', "", 1),
    "an inline script added": lambda page: page.replace("</main>", "<script>document.documentElement.dataset.verdict = 'valid'</script></main>", 1),
    "a handler added": lambda page: page.replace("<main>", "<main onclick=\"document.documentElement.dataset.verdict = 'valid'\">", 1),
}


@pytest.mark.parametrize("name", CUT)
def test_a_page_whose_script_was_touched_is_never_valid(example, opened, name):
    touched = CUT[name](example)
    assert touched != example
    page = opened(touched)
    assert page.verdict in (None, "refused")
    assert "Valid: checked" not in page.text()


COVERED = (
    "addEventListener adoptNode attributes body characterSet childNodes cloneNode compatMode createElement crypto currentScript doctype "
    "documentElement getElementById head parentNode querySelector querySelectorAll replaceChildren scripts self TextEncoder"
).split()
COVERS = ['<img name="{1}" id="{1}" alt="">', '<form name="{1}" id="{1}"><input name="{1}"></form>']
COVERS += [f'<{tag} name="{{1}}" id="{{1}}"></{tag}>' for tag in ("iframe", "object", "a")] + ['<embed name="{1}" id="{1}">']


@pytest.mark.parametrize("name", COVERED)
def test_a_name_in_front_of_a_member_is_refused(example, opened, name):
    faked = example.replace('<h2 id="check-title">Not checked</h2>', '<h2 id="check-title">Valid: checked in this browser</h2>', 1)
    for cover in COVERS:
        page = opened(faked.replace("</main>", cover.replace("{1}", name) + "</main>", 1))
        assert page.verdict == "refused", cover
        assert page.text("h2") == "Refused" and "Valid: checked" not in page.text()
