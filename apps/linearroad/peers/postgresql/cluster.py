"""A PostgreSQL cluster of a run's own: in its folder, on a socket, and not as root."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from linearroad.peers.process import StartError, ended_with_parent
from linearroad.peers.system import all_of, needs_package

__all__ = ["cluster", "postgresql_missing"]

USER = "linearroad"
#: Nothing has to survive the run: no durability, everything else by PostgreSQL's own advice for
#: bulk loads and small machines (docs/linear-road-peers.md).
SETTINGS = {
    "listen_addresses": "", "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off",
    "wal_level": "minimal", "max_wal_senders": "0", "max_wal_size": "8GB",
    "checkpoint_timeout": "1h", "shared_buffers": "2GB", "work_mem": "64MB",
    "temp_buffers": "64MB", "maintenance_work_mem": "256MB", "random_page_cost": "1.1",
    "jit": "off",    "autovacuum_naptime": "5s", "max_connections": "10", "timezone": "UTC",
}  # fmt: skip


def _bin() -> Path | None:
    """The folder of the server's programs, which Debian does not put on the path."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: p.parts[4])
    return versions[-1].parent if versions else None


def _server_missing() -> str:
    return "" if _bin() else "there is no PostgreSQL server: run apt-get install postgresql"


postgresql_missing = all_of(
    _server_missing, needs_package("psycopg", "pip install 'psycopg[binary]'")
)


def _server_user() -> str | None:
    """The user to run the server as; None if that is the present one."""
    if os.getuid():
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


@contextmanager
def cluster(folder: Path) -> Iterator[Any]:
    """Create a cluster in a folder and start its server; gives a connection, and stops it."""
    import psycopg

    programs, user = _bin(), _server_user()
    if programs is None:
        raise StartError(_server_missing())
    home = folder / "cluster"
    home.mkdir(mode=0o700)
    if user is not None:  # the server must be able to reach its folder
        folder.chmod(0o711)
        shutil.chown(home, user)
    data = str(home / "data")
    who: dict[str, Any] = {"user": user, "extra_groups": []} if user else {}
    subprocess.run(
        [str(programs / "initdb"), "-D", data, "-U", USER, "--auth=trust", "--encoding=UTF8",
         "--locale=C", "--no-sync"],
        check=True, stdout=subprocess.DEVNULL, cwd="/", **who,
    )  # fmt: skip
    options = [f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items()]
    server = subprocess.Popen(
        [str(programs / "postgres"), "-D", data, f"--unix-socket-directories={home}", *options],
        cwd="/", preexec_fn=ended_with_parent(signal.SIGQUIT), **who,
    )  # fmt: skip
    try:
        _wait_for(programs, home, server)
        with psycopg.connect(host=str(home), user=USER, dbname="postgres") as connection:
            yield connection
    finally:
        server.send_signal(signal.SIGINT)  # end without waiting for clients
        try:
            server.wait(5)
        except subprocess.TimeoutExpired:
            server.send_signal(signal.SIGQUIT)
            server.wait()


def _wait_for(programs: Path, home: Path, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server accepts connections."""
    command = [str(programs / "pg_isready"), "-q", "-h", str(home), "-t", "1"]
    while subprocess.run(command, check=False).returncode:
        if server.poll() is not None:
            raise StartError("the PostgreSQL server ended at its start")
