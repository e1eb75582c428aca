"""`Endpoint`: the host and port of a socket."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from typing import Any

from xstream.errors import GraphError, InputError

__all__ = ["LOOPBACK", "Endpoint", "endpoint"]

#: The host, unless another one is given.
LOOPBACK = "127.0.0.1"
_FORM = re.compile(r"(?:(?P<host>[^\[\]:\s]*|\[[0-9A-Fa-f:.%\w]+\]):)?(?P<port>[0-9]{1,5})")


@dataclass(frozen=True)
class Endpoint:
    """A host, by name or address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def addresses(self, type_: socket.SocketKind) -> list[tuple[int, Any]]:
        """The families and addresses of the host, in the order in which to try them."""
        try:
            found = socket.getaddrinfo(self.host, self.port, type=type_)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"host {self.host!r} is not known: {why}") from error
        return [(int(family), address) for family, _, _, _, address in found]


def endpoint(kind: str, given: str | int | Endpoint) -> Endpoint:
    """The endpoint of `"host:port"`; a port alone is one of the loopback interface.

    >>> str(endpoint("tcp", 9000)), str(endpoint("tcp", "sensor.local:9000"))
    ('127.0.0.1:9000', 'sensor.local:9000')
    >>> endpoint("tcp", "[::1]:9000")
    Endpoint(host='::1', port=9000)
    """
    if isinstance(given, Endpoint):
        return given
    text = str(given) if isinstance(given, str | int) and not isinstance(given, bool) else ""
    form = _FORM.fullmatch(text)
    if form is None or not 1 <= int(form["port"]) <= 65535:
        raise GraphError(
            f"{kind}: an address is 'host:port', '[::1]:port' or a port from 1 to 65535, not "
            f"{given!r}"
        )
    return Endpoint((form["host"] or LOOPBACK).strip("[]"), int(form["port"]))
