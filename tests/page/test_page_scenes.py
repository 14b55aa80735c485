"""Receipts of every shape, with texts as hostile as a stranger can make them: each valid, none of them acts."""

from __future__ import annotations

import json
import re

import page_paths
import pytest
from test_page_looks import accessible

SCENES = {
    "failing": ("FAILED", "the tests did not pass"),
    "warned": ("WARNED", "The tests passed."),
    "many": ("PASSED", "The tests passed."),
    "steps-alone": ("PASSED", "The tests passed."),
    "unreadable": ("FAILED", "the tests did not pass"),
    "sha256-repository": ("PASSED", "The tests passed."),
    "timed-out": ("FAILED", "the tests did not pass"),
    "large": ("PASSED", "The tests passed."),
}
ALLOWED = set(
    "html head meta title style body header div svg circle path span h1 h2 h3 p code main section a ul ol li b rect strong article pre"
    " details summary table caption thead tbody tr th td br footer script".split()
)


@pytest.mark.parametrize("name", SCENES)
def test_a_receipt_of_any_shape_is_valid_and_nothing_in_it_acts(receipts, tab, name):
    page = tab.open(receipts / name / "report.html")
    assert page.verdict == "valid", page.text()
    assert page.requests == [] and page.console == []
    result, said = SCENES[name]
    assert page.text(".result .big") == result
    assert said in page.text("#check")
    assert tab.evaluate("document.title") != "owned"
    names = tab.evaluate("JSON.stringify([...new Set([...document.querySelectorAll('*')].map((e) => e.localName))])")
    assert set(json.loads(names)) <= ALLOWED


@pytest.mark.parametrize("name", SCENES)
def test_what_acts_or_hides_is_named(receipts, name):
    visible = (receipts / name / "report.html").read_text("utf-8").split('<script type="application/json"')[0]
    assert not re.search("[\u0000-\u0008\u000b-\u001f\u007f-\u00a0\u00ad\u061c\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff]", visible)


def test_hostile_names_are_readable(receipts, tab):
    page = tab.open(receipts / "failing/report.html")
    shown = page.text("main")
    for text in ("<img src=x onerror=document.title='owned'>", "</code></li></ol><script>document.title='owned'</script>", "{{title}} {{{script}}} {{#tests}}", "$(reboot)U+200B<i>", "U+202Etxt", "&lt;b&gt; &amp; &#60;"):
        assert text in shown, text
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    output = page.text(".output")
    assert "U+001B[31m::error::x" in output and "0xFF0xFE0xC3(0xED0xA00x80" in output and "</pre><script>" in output
    assert re.search(r"… [0-9,]+ bytes …", output)


def test_what_a_reviewer_must_notice_is_said(receipts, tab):
    page = tab.open(receipts / "failing/report.html")
    shown = page.text("main")
    for text in (
        "2 added that are not of the commit",
        "in place of a file of the commit that was left out",
        "199 test files changed by this pull request",
        "none – any tier was accepted",
        "A word this page does not know: it counts as weaker than none.",
        "the configuration file of the tested commit, which the pull request can change",
        "not in the tested commit",
        "its repository is gone",
        "Step 1 ended with exit code 1.",
        "3 of them executable there",
    ):
        assert text in shown, text


def test_a_long_list_is_cut_with_its_count(receipts, tab):
    page = tab.open(receipts / "many/report.html")
    assert tab.evaluate("document.querySelectorAll('.group li').length") == 5000
    assert "12,345" in page.text(".counts")
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert "and 7,345 more" in page.text("main")


@pytest.mark.parametrize("size", [1100, 375])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_hostile_receipt_is_accessible_and_fits(receipts, tab, scheme, size):
    tab.emulate(scheme=scheme, width=size)
    tab.open(receipts / "failing/report.html")
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert accessible(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= size
    page_paths.SHOTS.mkdir(parents=True, exist_ok=True)
    tab.screenshot(page_paths.SHOTS / f"hostile-{scheme}-{size}.png")
