"""What must hold of every page in every form: checked in Chromium, with a screenshot of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.browser import FORMS, Browser

#: The largest page, the smallest text in CSS pixels, and contrasts by WCAG 2.1.
LARGEST_BYTES, SMALLEST_PX, TEXT_CONTRAST = 1_500_000, 9.0, 4.5

#: Returns the faults of a page: what is wider than the window, text too small or too faint.
INSPECT = Path(__file__).with_name("inspect.js").read_text()
INSPECT = INSPECT.replace("SMALLEST", str(SMALLEST_PX)).replace("CONTRAST", str(TEXT_CONTRAST))


def faults_of(browser: Browser, page: Path, folder: Path) -> dict[str, Any]:
    """The faults of a page in each form, by the name of the form; each form gets a screenshot."""
    found = {}
    for form in FORMS:
        browser.appear(form)
        browser.open(page.as_uri())
        faults = [*browser.run(INSPECT), *(f"error: {error}" for error in browser.errors())]
        picture = browser.screenshot(folder / f"{page.stem}-{form.name}.png")
        if len(picture) < 5_000:
            faults.append(f"the screenshot has {len(picture)} bytes")
        if faults:
            found[form.name] = faults
    return found


def check_appearance(browser: Browser, page: Path, folder: Path) -> None:
    """The page is small, and without a fault on a desk and a phone, in light and dark."""
    assert page.stat().st_size < LARGEST_BYTES, f"{page.name} has {page.stat().st_size:,} bytes"
    assert faults_of(browser, page, folder) == {}
