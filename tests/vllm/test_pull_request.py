"""A description in whatever form the tree's template has."""

from __future__ import annotations

from patchq.vllm.pull_request import NAMES, fill_template

PARTS = {part: f"({part})" for part in NAMES}
OLD = """<!-- lint -->
PLEASE FILL IN.

## Purpose

## Test Plan

## Test Result

---
- [ ] everything
"""
NEW = """## Overview

<!-- One line. -->

## Claims

## Validation

<!-- Two. -->

## Demo

<!-- A film. -->

---

- [ ] AI assistance was used here.
"""


def test_the_old_form() -> None:
    body, left = fill_template(OLD, PARTS, assisted=True)
    assert body == (
        "<!-- lint -->\n\n## Purpose\n\n(purpose)\n\n(claims)\n\n(details)\n\n## Test Plan\n\n(plan)\n\n"
        "## Test Result\n\n(result)\n\n---\n- [ ] everything\n"
    )
    assert left == ()


def test_the_new_form_and_what_it_has_no_place_for() -> None:
    body, left = fill_template(NEW, PARTS, assisted=True)
    assert body == (
        "## Overview\n\n(purpose)\n\n## Claims\n\n(claims)\n\n## Validation\n\n(plan)\n\n(result)\n\n"
        "## Demo\n\n<!-- A film. -->\n\n## Details\n\n(details)\n\n---\n\n- [x] AI assistance was used here.\n"
    )
    assert left == ("Demo",)
    assert "- [ ] AI" in fill_template(NEW, PARTS, assisted=False)[0]


def test_no_template() -> None:
    body, left = fill_template(None, {**PARTS, "details": ""}, assisted=False)
    assert body == (
        "## Purpose\n\n(purpose)\n\n## Changes\n\n(claims)\n\n## Test Plan\n\n(plan)\n\n## Test Result\n\n(result)\n"
    )
    assert left == ()
