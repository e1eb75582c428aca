"""The configuration of the documentation site: `make docs` builds it into build/docs."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "xstream"
author = "the xstream developers"
release = version = installed_version("xstream")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "repository_links",
    "generated_pages",
]
exclude_patterns = ["_ext"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
# Docstrings put names and expressions between single backquotes.
default_role = "code"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_mock_imports: list[str] = []
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"
# Examples use the names of their own modules without a prefix.
doctest_global_setup = """
__name__ = "examples"
from fractions import Fraction
import numpy as np, xstream as xs
from xstream import *
from xstream.io import Clock, Reconnect, StreamTime, SystemClock
from xstream.testing import *
"""

html_theme = "furo"
html_show_copyright = False
html_title = f"xstream {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fa8", "color-brand-content": "#1f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#7fb2ee", "color-brand-content": "#7fb2ee"},
}
