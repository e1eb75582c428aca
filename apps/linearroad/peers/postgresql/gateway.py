"""Between the driver and PostgreSQL: lines of the wire go into COPY as they are, and out again.

    python -m linearroad.peers.postgresql.gateway polling|trigger TASK...

Python never looks at a row: the server reads the text of a second and writes the text of its
answers. Seconds end with the driver's time marks.
"""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path
from typing import Any

from linearroad.peers.postgresql.cluster import cluster
from linearroad.peers.postgresql.history import load_history
from linearroad.peers.seconds import seconds
from linearroad.peers.system import Task

HERE = Path(__file__).parent
#: How the rows of a second become answers, by implementation.
ANSWERS = {
    "polling": "COPY (SELECT poll({second})) TO STDOUT",
    "trigger": "COPY answers TO STDOUT",
}


def serve(connection: Any, variant: str, client: socket.socket) -> None:
    """Answer a driver."""
    answers = ANSWERS[variant]
    cursor = connection.cursor()
    for second, lines in seconds(client):
        with cursor.copy("COPY input FROM STDIN (FORMAT csv)") as copy:
            copy.write(lines)
        with cursor.copy(answers.format(second=second)) as copy:
            for data in copy:
                client.sendall(data)
        connection.commit()


def main() -> None:
    """Start a cluster, load the schema and the history, and answer one driver."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    variant, task = sys.argv[1], Task.parsed(sys.argv[2:])
    with cluster(task.folder) as connection:
        for name in ("schema.sql", f"{variant}.sql"):
            connection.execute((HERE / name).read_text(encoding="utf-8"))
        connection.execute(
            "INSERT INTO base VALUES (%s, %s)", (task.base_expressways, task.base_vehicles)
        )
        load_history(connection, task)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            host, port = listener.getsockname()
            print(f"listening on {host}:{port}", flush=True)
            client, _ = listener.accept()
            with client:
                serve(connection, variant, client)


if __name__ == "__main__":
    main()
