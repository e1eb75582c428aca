"""A Linear Road system in plain Python, without history: see docs/benchmark-your-system.md."""

import socket
import sys
from collections import Counter, defaultdict
from itertools import groupby
from math import floor
from statistics import fmean

last = {}  # by vehicle and expressway: time, segment, place, equal places in a row, and toll
speeds = defaultdict(lambda: defaultdict(list))  # by segment and minute: speeds by vehicle
wrecks = defaultdict(set)  # by expressway, direction and minute: segments with an accident
charged = Counter()  # by vehicle: the tolls so far


def report(time, vid, spd, xway, lane, way, seg, pos):
    """Take a position report; yield its toll notification and accident alert."""
    minute, here, place = time // 60, (xway, way, seg), (xway, lane, way, pos)
    then, old_seg, old_place, equal, toll = last.get((vid, xway), (None,) * 5)
    if then == time:
        return  # a second report in one second does not count
    goes_on = then == time - 30  # otherwise it starts a trip
    equal = equal + 1 if goes_on and place == old_place else 1
    speeds[here, minute][vid].append(spd)
    if not goes_on or seg != old_seg:  # it enters a segment
        charged[vid] += toll if goes_on else 0
        toll = 0
        if lane != 4:
            minutes = [speeds[here, m].values() for m in range(minute - 5, minute)]
            means = [fmean(map(fmean, vehicles)) for vehicles in minutes if vehicles]
            lav, cars = floor(fmean(means) + 1e-9) if means else -1, len(minutes[-1])
            reach = range(seg, seg + 5) if way == 0 else range(seg, seg - 5, -1)
            ahead = [s for s in reach if s in wrecks[xway, way, minute - 1]]
            toll = 2 * (cars - 50) ** 2 if lav < 40 and cars > 50 and not ahead else 0
            yield f"0,{vid},{time},0,{lav},{toll}\n"
            yield from (f"1,{time},0,{vid},{nearest}\n" for nearest in ahead[:1])
    last[vid, xway] = time, seg, place, equal, toll


def answers(lines):
    """Yield the answers to rows; a second is answered when a row of a later one arrives."""
    rows, done = (list(map(int, line.split(","))) for line in lines), 0
    for time, second in groupby(rows, key=lambda row: row[1]):
        for s in range(done, min(time, done + 30)):  # accidents after the second before
            stopped = (at for then, _, at, equal, _ in last.values() if equal > 3 and s < then + 30)
            for (xway, lane, way, pos), cars in Counter(stopped).items():
                if cars > 1 and lane in (1, 2, 3):
                    wrecks[xway, way, s // 60].add(pos // 5280)
        done = time
        for kind, _, vid, *where, qid, _, _, _, _, _ in sorted(second, key=lambda row: row[0]):
            if kind == 0:  # reports come before requests
                yield from report(time, vid, *where)
            else:  # there is no history of expenditures and travel times
                text = {2: f"{time},{qid},{charged[vid]}", 3: f"{qid},0", 4: f"{qid},-1,-1"}[kind]
                yield f"{kind},{time},0,{text}\n"


connection, _ = socket.create_server(("127.0.0.1", int(sys.argv[1]))).accept()
for answer in answers(connection.makefile()):
    connection.sendall(answer.encode())
