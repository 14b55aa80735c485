"""The page computes its own verdict, says what it is worth, and asks nothing of any network."""

from __future__ import annotations

import json
import re

import page_paths

NO_ED25519 = """
const real = SubtleCrypto.prototype.importKey;
SubtleCrypto.prototype.importKey = function (format, data, algorithm, ...rest) {
  if ((algorithm.name || algorithm) === "Ed25519") return Promise.reject(new DOMException("no", "NotSupportedError"));
  return real.call(this, format, data, algorithm, ...rest);
};
"""
NO_WEBCRYPTO = 'Object.defineProperty(Crypto.prototype, "subtle", { get: () => undefined });'


def test_a_good_receipt_is_valid_and_nothing_leaves(example, opened):
    page = opened(example)
    assert page.verdict == "valid"
    assert page.requests == []
    assert page.console == []
    said = page.text("#check")
    assert "Valid: checked in this browser" in said
    assert "The tests passed." in said
    assert "Whoever can rewrite the page can rewrite its check" in said
    assert "Not checked here: that the files are those of the commit" in said


def test_the_page_names_the_command_that_counts(example, opened):
    shown = opened(example).text("main")
    head = "242085db39798080553c88a7f6e0b887ba5e33dc"
    key = "8b101f25ca1dd8273794606a8172594ce47f8e53ae5bd2450cbf6026b862ab13"
    assert "git fetch origin pull/7/head" in shown
    assert f"plimsoll-attest pr-receipt verify --repo . --head {head} --keyid {key} plimsoll-receipt/" in shown


def test_the_tier_is_never_shown_without_what_it_rests_on(example, opened):
    shown = opened(example).text("main")
    assert shown.lower().count("not hardware attestation") == 2
    assert "never hardware attestation" in shown
    assert not re.search(r"\b(attested|proven|verified isolation)\b", shown.lower())


def test_without_its_script_the_page_says_that_nothing_was_checked(example, opened):
    bare = re.sub(r"<script>.*</script>", "", example, flags=re.DOTALL)
    page = opened(bare)
    assert page.verdict is None
    assert "Not checked" in page.text("#check")
    assert "nothing below is confirmed" in page.text("#check")
    assert "PASSED" in page.text(".hero")


def test_without_ed25519_nothing_is_called_valid(example, tab, tmp_path):
    tab.before_each_page(NO_ED25519)
    file = tmp_path / "report.html"
    file.write_text(example, "utf-8")
    page = tab.open(file)
    assert page.verdict == "unchecked"
    assert "Not checked here" in page.text("#check")
    assert "no signature was checked" in page.text("#check")
    assert "Valid" not in page.text("#check")


def test_without_ed25519_a_changed_page_is_still_refused(example, tab, tmp_path):
    tab.before_each_page(NO_ED25519)
    file = tmp_path / "report.html"
    file.write_text(example.replace('<p class="big tier">kernel', '<p class="big tier">vm'), "utf-8")
    assert tab.open(file).verdict == "refused"


def test_without_webcrypto_nothing_is_called_valid(example, tab, tmp_path):
    tab.before_each_page(NO_WEBCRYPTO)
    file = tmp_path / "report.html"
    file.write_text(example, "utf-8")
    page = tab.open(file)
    assert page.verdict == "unchecked"
    assert "Nothing was checked" in page.text("#check")


def test_the_policy_lets_nothing_in(example):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', example)
    assert policy
    assert re.fullmatch(
        r"default-src 'none'; script-src 'sha256-[A-Za-z0-9+/]{43}='; style-src 'sha256-[A-Za-z0-9+/]{43}='; base-uri 'none'; form-action 'none'",
        policy[1],
    )
    visible = example.split("<script")[0]
    assert not re.search(r"\b(src|srcset|action|style|on[a-z]+)=", re.sub(r"<style>.*?</style>|<meta[^>]*>|<code[^>]*>.*?</code>|<pre.*?</pre>", "", visible, flags=re.DOTALL))
    assert set(re.findall(r'href="([^"]*)"', visible)) == {"#again"}


def test_the_page_carries_the_evidence_byte_for_byte(example, receipts):
    island = re.search(r'<script type="application/json" id="evidence">(.*?)</script>', example, re.DOTALL)
    assert island and island[1].isascii()
    carried = json.loads(island[1])
    for member, name in page_paths.EVIDENCE.items():
        assert carried[member] == (receipts / "example" / name).read_text("utf-8")
