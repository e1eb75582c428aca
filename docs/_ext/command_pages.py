"""The reference of the command line: one page per group of commands, from the texts of `--help`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from xstream.cli import _command as command_tree

#: Characters that Markdown would interpret; text between backquotes stays as it is.
_SPECIAL = re.compile(r"(`[^`]*`)|([\\*_<>\[\]|$#{}])")


def pages() -> dict[str, str]:
    """The page of `xstream` itself and one per group, by file name."""
    root = command_tree()
    groups = {name: each for name, each in sorted(root.commands.items()) if _children(each)}
    own = {name: each for name, each in sorted(root.commands.items()) if not _children(each)}
    main = [*_command("xstream", root, 1)]
    for name, each in own.items():
        main += _command(f"xstream {name}", each, 2)
    found = {"command-xstream.md": "\n".join(main)}
    for name, each in groups.items():
        found[f"command-{name}.md"] = "\n".join(_tree(f"xstream {name}", each, 1))
    return found


def _children(command: Any) -> dict[str, Any]:
    return dict(getattr(command, "commands", {}))


def _tree(path: str, command: Any, level: int) -> Iterator[str]:
    yield from _command(path, command, level)
    for name, child in _children(command).items():
        if not child.hidden:
            yield from _tree(f"{path} {name}", child, level + 1)


def _command(path: str, command: Any, level: int) -> Iterator[str]:
    """A heading, how the command is called, its text, its arguments and options."""
    context = command.context_class(command, info_name=path, help_option_names=["-h", "--help"])
    yield f"({path.replace(' ', '-')})="
    yield f"{'#' * level} {path}\n"
    yield f"```text\n{_usage(path, command, context)}\n```\n"
    text = (command.help or "").replace("\b\n", "").split("\f")[0]
    yield escaped(text) + "\n"
    if children := _children(command):
        for name, child in children.items():
            summary = (child.help or "").strip().split("\n\n")[0].replace("\n", " ")
            page = "" if level > 1 or path != "xstream" else _page(name, child)
            yield f"* [`{name}`]({page}#{path.replace(' ', '-')}-{name}): {escaped(summary)}"
        yield ""
    for param in command.get_params(context):
        record = param.get_help_record(context)
        if record is not None:
            names, said = record
            yield f"`{names}`\n: {escaped(' '.join(said.split())) or '.'}\n"


def _usage(path: str, command: Any, context: Any) -> str:
    return " ".join([path, *command.collect_usage_pieces(context)])


def _page(name: str, command: Any) -> str:
    return f"command-{name}.md" if _children(command) else ""


def escaped(text: str) -> str:
    """Text of a terminal as Markdown."""
    return _SPECIAL.sub(lambda found: found[1] or "\\" + found[2], text)
