"""The page as people meet it: accessible, in dark and light, narrow and on paper."""

from __future__ import annotations

import json

import page_paths
import pytest

AXE = page_paths.ROOT / "target/npm/node_modules/axe-core/axe.min.js"
SIZES = {"wide": 1100, "phone": 375}


def accessible(tab) -> list[str]:
    """What the checker finds, best practices included."""
    tab.evaluate(AXE.read_text("utf-8") + ";0")
    found = tab.evaluate("axe.run(document, {resultTypes: ['violations', 'incomplete']}).then((r) => JSON.stringify(r.violations))")
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in json.loads(found)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_it_is_accessible_and_fits(example, opened, tab, scheme, size):
    tab.emulate(scheme=scheme, width=SIZES[size])
    assert opened(example).verdict == "valid"
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert accessible(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= SIZES[size]
    page_paths.SHOTS.mkdir(parents=True, exist_ok=True)
    tab.screenshot(page_paths.SHOTS / f"{scheme}-{size}.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_schemes_differ_and_the_ground_is_as_asked(example, opened, tab, scheme):
    tab.emulate(scheme=scheme)
    opened(example)
    ground = tab.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    light = sum(int(part) for part in ground.removeprefix("rgb(").removesuffix(")").split(","))
    assert light > 600 if scheme == "light" else light < 120


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_refusal_is_accessible(example, opened, tab, scheme):
    tab.emulate(scheme=scheme)
    page = opened(example.replace("<b>2</b> passed", "<b>3</b> passed", 1))
    assert page.verdict == "refused"
    assert accessible(tab) == []
    page_paths.SHOTS.mkdir(parents=True, exist_ok=True)
    tab.screenshot(page_paths.SHOTS / f"refused-{scheme}.png")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_that_nobody_checked_is_accessible(example, opened, tab, scheme):
    tab.emulate(scheme=scheme)
    assert opened(example[: example.rindex("<script>")] + "</body></html>").verdict is None
    assert accessible(tab) == []


def test_paper_is_dark_on_light_with_everything_open(example, opened, tab):
    opened(example)
    tab.emulate(scheme="dark", media="print")
    assert tab.evaluate("getComputedStyle(document.documentElement).color") == "rgb(0, 0, 0)"
    assert tab.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    closed = "document.querySelector('details:not([open])')"
    assert tab.evaluate(f"getComputedStyle({closed}, '::details-content').contentVisibility") == "visible"
    page_paths.SHOTS.mkdir(parents=True, exist_ok=True)
    tab.emulate(scheme="dark", media="print", width=760)
    tab.screenshot(page_paths.SHOTS / "paper.png")
    tab.emulate()
    tab.pdf(page_paths.SHOTS / "paper.pdf")
    assert (page_paths.SHOTS / "paper.pdf").read_bytes().startswith(b"%PDF-")
