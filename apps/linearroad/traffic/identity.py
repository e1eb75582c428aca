"""Which vehicle makes which trip: VIDs, dense from 0 over all expressways.

The simulation produces trips, each on one expressway. Vehicles are formed from them afterwards,
when it is known which trips are in the stream and when each ended: most vehicles make one trip, a
few return on the same expressway, and a share continues on the next expressway. A second trip
therefore starts after the first has ended, regardless of congestion.

Which trips can be matched depends on a hash of the trip alone. The numbers of expressway x
therefore depend on its own trips and on those of the two expressways before it, but not on the
order in which expressways were simulated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linearroad.traffic._kernels_rows import hash_all
from linearroad.traffic.simulation import expressway_key

__all__ = ["RETURN_SHARE", "TRIP", "Numbering", "number_own", "vids_of_trips"]

TRIP = np.dtype(
    [
        ("trip", np.int32),  # the simulation's number
        ("dir", np.int8),
        ("entry", np.int8),  # segment of the entry ramp
        ("begins", np.int8),  # 1 if the first report of the trip is in the stream
        ("ends", np.int8),  # 1 if the vehicle left the expressway before the end of the stream
        ("first", np.int32),  # Time of the first and the last report in the stream
        ("last", np.int32),
    ]
)
RETURN_SHARE = 0.01
BETWEEN_TRIPS_S = 180
FIRST_ABROAD, SECOND_ABROAD, FIRST_AT_HOME, SECOND_AT_HOME = 0, 1, 2, 3
SALT = 0x1DE


@dataclass(frozen=True)
class Numbering:
    """Vehicles of one expressway: `rank` of a trip's vehicle among its own, or -1 for a visitor's.

    `visits` are the places of visitors' trips here, `visitors` those of the same vehicles' first
    trips in the expressway before.
    """

    rank: NDArray[np.int32]
    vehicles: int
    visitors: NDArray[np.int64]
    visits: NDArray[np.int64]


def _roles(seed: int, xway: int, trips: NDArray[np.void]) -> NDArray[np.int64]:
    hashes = hash_all(expressway_key(seed, xway), np.int64(SALT), trips["trip"])
    roles: NDArray[np.int64] = (hashes & np.uint64(3)).astype(np.int64)
    return roles


def match(
    first: NDArray[np.void],
    first_places: NDArray[np.int64],
    second: NDArray[np.void],
    second_places: NDArray[np.int64],
    wanted: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of places (i, j): the trip j of `second` begins well after i of `first` has ended."""
    i_places = first_places[first["ends"][first_places] == 1]
    j_places = second_places[second["begins"][second_places] == 1]
    i_places = i_places[np.argsort(first["last"][i_places], kind="stable")]
    j_places = j_places[np.argsort(second["first"][j_places], kind="stable")]
    # Trips are in order of their start, and each goes to the vehicle that has waited longest.
    ends = first["last"][i_places] + BETWEEN_TRIPS_S
    begins = second["first"][j_places]
    pairs_i: list[int] = []
    pairs_j: list[int] = []
    i = 0
    for j in range(len(begins)):
        if i < len(ends) and ends[i] <= begins[j]:
            pairs_i.append(i)
            pairs_j.append(j)
            i += 1
    # Spread over the whole run, not only its beginning.
    keep = np.unique(np.linspace(0, len(pairs_i) - 1, min(wanted, len(pairs_i))).astype(np.int64))
    chosen_i = np.array(pairs_i, np.int64)[keep]
    chosen_j = np.array(pairs_j, np.int64)[keep]
    return i_places[chosen_i], j_places[chosen_j]


def number_own(
    seed: int,
    xway: int,
    previous: int,
    share: float,
    before: NDArray[np.void],
    trips: NDArray[np.void],
) -> Numbering:
    """Number the vehicles whose first trip is on `xway`.

    `before` are the trips of `previous`, from which vehicles come; none come if both are the same.
    """
    roles = _roles(seed, xway, trips)
    nobody = np.zeros(0, np.int64)
    visitors, visits = nobody, nobody
    if previous != xway:
        visitors, visits = match(
            before,
            np.flatnonzero(_roles(seed, previous, before) == FIRST_ABROAD),
            trips,
            np.flatnonzero(roles == SECOND_ABROAD),
            round(share * len(before)),
        )
    homes, returns = [nobody], [nobody]
    for direction in (0, 1):
        home, back = match(
            trips,
            np.flatnonzero((roles == FIRST_AT_HOME) & (trips["dir"] == direction)),
            trips,
            np.flatnonzero((roles == SECOND_AT_HOME) & (trips["dir"] == 1 - direction)),
            round(0.5 * RETURN_SHARE * len(trips)),
        )
        homes.append(home)
        returns.append(back)
    own = np.ones(len(trips), bool)
    own[visits] = False
    own[np.concatenate(returns)] = False
    rank = np.where(own, np.cumsum(own) - 1, -1).astype(np.int32)
    rank[np.concatenate(returns)] = rank[np.concatenate(homes)]
    return Numbering(rank, int(own.sum()), visitors, visits)


def vids_of_trips(
    numbering: Numbering, first_vid: int, before: Numbering, before_first_vid: int
) -> NDArray[np.int32]:
    """The VID of each trip, by its place in the table of trips."""
    vids = numbering.rank + np.int32(first_vid)
    vids[numbering.visits] = before.rank[numbering.visitors] + np.int32(before_first_vid)
    return vids.astype(np.int32)
