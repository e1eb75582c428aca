"""Pages are read in the repository and on the site: links that only work there are rewritten."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: An anchor in HTML, which GitHub follows, and as a label, which the site resolves.
_ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>$', re.M)
_APPLICATION = re.compile(r"\]\(\.\./apps/(\w+)/README\.md\)")
_EXAMPLE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+(examples/[\w.]+)\)")


def for_the_site(text: str, up: str = "") -> str:
    """The text of a page with links that the site resolves; `up` leads to the folder docs."""
    text = _ANCHOR.sub(r"(\1)=", text)
    text = _APPLICATION.sub(rf"]({up}generated/application-\1.md)", text)
    text = text.replace("](../CHANGELOG.md)", f"]({up}generated/changes.md)")
    return _EXAMPLE.sub(r"\1 (`\2`)", text)


def _rewrite(app: Sphinx, name: str, source: list[str]) -> None:
    source[0] = for_the_site(source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Rewrite each page as it is read."""
    app.connect("source-read", _rewrite)
    return {"parallel_read_safe": True}
