"""Writes the pages that follow from the code: reference, command line, applications, changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import command_pages
import reference_pages

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]


def application_pages() -> dict[str, str]:
    """The README of each application."""
    found = sorted((ROOT / "apps").glob("*/README.md"))
    texts = {f"application-{path.parent.name}.md": path.read_text() for path in found}
    return {name: text.replace("](../../docs/", "](../") for name, text in texts.items()}


def changes_page() -> str:
    """CHANGELOG.md, whose links start at the root of the project."""
    return (ROOT / "CHANGELOG.md").read_text().replace("](docs/", "](../")


def write_pages(folder: Path) -> None:
    """Write all generated pages; a page whose text has not changed is left alone."""
    folder.mkdir(exist_ok=True)
    pages = {
        **reference_pages.pages(),
        **command_pages.pages(),
        **application_pages(),
        "changes.md": changes_page(),
    }
    for path in folder.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before Sphinx looks for sources."""
    write_pages(Path(app.srcdir) / "generated")
    return {"parallel_read_safe": True}
