"""A Linear Road system in plain Python: rows of text in, answers out, by the rules of the paper.

Run it with a port, then drive it (docs/benchmark-your-system.md):

    python examples/linearroad_system.py 9000
"""

import socket
import sys
from collections import Counter, defaultdict
from math import floor

last = {}  # (vehicle, expressway): its last report
stopped = {}  # (vehicle, expressway): the place where it stands, and until when
speeds = defaultdict(lambda: defaultdict(list))  # (segment, minute): the speeds of each vehicle
wrecks = defaultdict(set)  # (expressway, direction, minute): segments with an accident
charged = Counter()  # tolls by vehicle


def average(seg, minute):
    """The LAV of a segment: a mean over minutes of means over vehicles."""
    means = [[sum(s) / len(s) for s in speeds[seg, m].values()] for m in range(minute - 5, minute)]
    means = [sum(m) / len(m) for m in means if m]
    return floor(sum(means) / len(means) + 1e-9) if means else -1


def report(time, vid, spd, xway, lane, way, seg, pos):
    """Take a position report; yields its notification and alert."""
    minute, place = time // 60, (xway, lane, way, pos)
    before = last.get((vid, xway))
    if before and before["time"] == time:
        return  # a second report in one second does not count
    trip = before if before and before["time"] == time - 30 else None
    equal = trip["equal"] + 1 if trip and trip["place"] == place else 1
    stopped.pop((vid, xway), None)
    if equal >= 4 and lane in (1, 2, 3):
        stopped[vid, xway] = place, time + 30
    speeds[(xway, way, seg), minute][vid].append(spd)
    entered, quote = not trip or trip["seg"] != seg, trip["quote"] if trip else 0
    if trip and entered:
        charged[vid] += quote
    if entered:
        quote = 0
    if entered and lane != 4:
        reach = range(seg, min(seg + 5, 100)) if way == 0 else range(seg, max(seg - 5, -1), -1)
        ahead = [s for s in reach if s in wrecks[xway, way, minute - 1]]
        lav, cars = average((xway, way, seg), minute), len(speeds[(xway, way, seg), minute - 1])
        quote = 2 * (cars - 50) ** 2 if lav < 40 and cars > 50 and not ahead else 0
        if ahead:
            yield f"1,{time},{time},{vid},{ahead[0]}"
        yield f"0,{vid},{time},{time},{lav},{quote}"
    last[vid, xway] = {"time": time, "seg": seg, "place": place, "equal": equal, "quote": quote}


def second_over(rows, time, until):
    """Answer the rows of a second, which is followed by second `until`."""
    for row in rows:
        if row[0] == 0:
            yield from report(*row[1:9])
    for kind, _, vid, *_, qid, _, _, _, _, _ in rows:  # after all reports of the second
        if kind == 2:
            yield f"2,{time},{time},{time},{qid},{charged[vid]}"
        elif kind == 3:
            yield f"3,{time},{time},{qid},0"  # there is no history
        elif kind == 4:
            yield f"4,{time},{time},{qid},-1,-1"
    for second in range(time, min(until, time + 60)):
        standing = Counter(place for place, end in stopped.values() if second < end)
        for (xway, _, way, pos), cars in standing.items():
            if cars > 1:
                wrecks[xway, way, second // 60].add(pos // 5280)


def answer(connection):
    """Answer one driver, second by second."""
    rows, time = [], -1
    with connection, connection.makefile("r") as lines, connection.makefile("w") as out:
        for line in lines:
            row = [int(field) for field in line.split(",")]
            if row[1] > time and rows:  # the second before is complete
                out.writelines(f"{text}\n" for text in second_over(rows, time, row[1]))
                out.flush()
                rows = []
            time = row[1]
            rows.append(row)
        out.writelines(f"{text}\n" for text in second_over(rows, time, time + 1))


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as listener:
        answer(listener.accept()[0])
