"""Places the operators of a graph in layers, from the sources down, with few crossings of edges.

The usual steps (Sugiyama, Tagawa and Toda, 1981): edges that close cycles are turned round, every
node gets a layer below its inputs, edges across several layers get a bend in each, the nodes of a
layer are ordered by the means of their neighbours, and moved as close to them as their sizes allow.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Box", "Layout", "layered"]

#: Sweeps over all layers, for the order of nodes and for their places.
ORDER_SWEEPS, PLACE_SWEEPS = 12, 16
#: Space between neighbours of a layer and between layers; bends need less.
GAP, LAYER_GAP, BEND = 28.0, 64.0, 18.0


@dataclass(frozen=True, slots=True)
class Box:
    """The size of a node."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """The centres of the nodes, the corners that each edge passes, and the size of the picture."""

    centres: list[tuple[float, float]]
    paths: list[list[tuple[float, float]]]
    width: float
    height: float


def layered(boxes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> Layout:
    """Place boxes that are connected by edges, given as pairs of their numbers.

    >>> found = layered([Box(80, 30)] * 3, [(0, 1), (0, 2)])
    >>> found.centres[0][1] < found.centres[1][1] == found.centres[2][1]
    True
    """
    forward = _without_cycles(len(boxes), edges)
    ranks = _ranks(len(boxes), forward)
    chains, layers = _with_bends(len(boxes), forward, ranks)
    _order(layers, chains)
    widths = [box.width for box in boxes]
    widths += [BEND] * (sum(map(len, layers)) - len(boxes))
    x = _places(layers, chains, widths)
    heights = [
        max((boxes[node].height for node in layer if node < len(boxes)), default=0.0)
        for layer in layers
    ]
    y, top = [0.0] * len(widths), 0.0
    for layer, height in zip(layers, heights, strict=True):
        for node in layer:
            y[node] = top + height / 2
        top += height + LAYER_GAP
    left = min((x[i] - widths[i] / 2 for i in range(len(x))), default=0.0)
    x = [at - left for at in x]
    paths = []
    for (first, _), chain in zip(edges, chains, strict=True):
        turned = bool(chain) and chain[0] != first
        paths.append([(x[node], y[node]) for node in (chain[::-1] if turned else chain)])
    width = max((x[i] + widths[i] / 2 for i in range(len(x))), default=0.0)
    return Layout(
        list(zip(x[: len(boxes)], y[: len(boxes)], strict=True)), paths, width,
        max(top - LAYER_GAP, 0.0),
    )  # fmt: skip


def _without_cycles(nodes: int, edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The edges, with those turned round that a search in depth finds to lead back."""
    after: list[list[int]] = [[] for _ in range(nodes)]
    for number, (first, _) in enumerate(edges):
        after[first].append(number)
    turned, state = set(), [0] * nodes  # 0 not seen, 1 on the path, 2 done
    fed = {second for _, second in edges}
    for start in sorted(range(nodes), key=lambda node: node in fed):
        if state[start]:
            continue
        path = [(start, iter(after[start]))]
        state[start] = 1
        while path:
            node, left = path[-1]
            for number in left:
                second = edges[number][1]
                if state[second] == 1:
                    turned.add(number)
                elif not state[second]:
                    state[second] = 1
                    path.append((second, iter(after[second])))
                    break
            else:
                state[node] = 2
                path.pop()
    return [(b, a) if number in turned else (a, b) for number, (a, b) in enumerate(edges)]


def _ranks(nodes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The layer of every node: below all that feed it; sources right above what they feed."""
    after: list[list[int]] = [[] for _ in range(nodes)]
    missing = [0] * nodes
    for first, second in edges:
        if first != second:
            after[first].append(second)
            missing[second] += 1
    sources = [node for node in range(nodes) if not missing[node]]
    ranks, ready = [0] * nodes, list(sources)
    while ready:
        node = ready.pop()
        for second in after[node]:
            ranks[second] = max(ranks[second], ranks[node] + 1)
            missing[second] -= 1
            if not missing[second]:
                ready.append(second)
    for node in sources:
        if after[node]:
            ranks[node] = min(ranks[second] for second in after[node]) - 1
    return ranks


def _with_bends(
    nodes: int, edges: Sequence[tuple[int, int]], ranks: Sequence[int]
) -> tuple[list[list[int]], list[list[int]]]:
    """The nodes and bends of every edge from top to bottom, and those of every layer."""
    layers: list[list[int]] = [[] for _ in range(max(ranks, default=-1) + 1)]
    for node in range(nodes):
        layers[ranks[node]].append(node)
    chains, following = [], nodes
    for first, second in edges:
        chain = [first]
        for layer in range(ranks[first] + 1, ranks[second]):
            layers[layer].append(following)
            chain.append(following)
            following += 1
        chains.append([*chain, second] if first != second else [])
    return chains, layers


def _neighbours(chains: Sequence[Sequence[int]]) -> tuple[dict[int, list[int]], ...]:
    above: dict[int, list[int]] = {}
    below: dict[int, list[int]] = {}
    for chain in chains:
        for first, second in itertools.pairwise(chain):
            above.setdefault(second, []).append(first)
            below.setdefault(first, []).append(second)
    return above, below


def _order(layers: list[list[int]], chains: Sequence[Sequence[int]]) -> None:
    """Order every layer by the means of its neighbours; the order with fewest crossings is kept."""
    above, below = _neighbours(chains)
    best, fewest = [list(layer) for layer in layers], _crossings(layers, below)
    for sweep in range(ORDER_SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        near, sequence = (above, layers[1:]) if down else (below, layers[-2::-1])
        at = {node: place for layer in layers for place, node in enumerate(layer)}
        for layer in sequence:
            means = {}
            for place, node in enumerate(layer):
                found = near.get(node)
                means[node] = sum(at[other] for other in found) / len(found) if found else place
            layer.sort(key=means.__getitem__)
            at.update((node, place) for place, node in enumerate(layer))
        crossings = _crossings(layers, below)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    layers[:] = best


def _crossings(layers: Sequence[Sequence[int]], below: dict[int, list[int]]) -> int:
    """The number of pairs of edges that cross, counted with a tree of sums for each layer."""
    total = 0
    for layer, following in itertools.pairwise(layers):
        at = {node: place for place, node in enumerate(following)}
        size = len(following)
        tree = [0] * (size + 1)
        seen = 0
        for node in layer:
            ends = sorted(at[other] for other in below.get(node, ()))
            for end in ends:
                place, upto = end + 1, 0
                while place:
                    upto += tree[place]
                    place &= place - 1
                total += seen - upto
            for end in ends:
                seen += 1
                place = end + 1
                while place <= size:
                    tree[place] += 1
                    place += place & -place
    return total


def _places(
    layers: Sequence[Sequence[int]], chains: Sequence[Sequence[int]], widths: Sequence[float]
) -> list[float]:
    """The horizontal centre of every node and bend."""
    above, below = _neighbours(chains)
    nodes = len({node for chain in chains for node in (*chain[:1], *chain[-1:])})
    x = [0.0] * len(widths)
    for layer in layers:
        right = 0.0
        for node in layer:
            x[node] = right + widths[node] / 2
            right += widths[node] + GAP
    for sweep in range(PLACE_SWEEPS if nodes else 0):
        down = sweep % 2 == 0
        for layer in layers if down else reversed(layers):
            wished = []
            for node in layer:
                near = above.get(node, []) if down else below.get(node, [])
                if not near or sweep >= PLACE_SWEEPS - 2:  # at last, between both sides
                    near = above.get(node, []) + below.get(node, [])
                wished.append(sum(x[other] for other in near) / len(near) if near else x[node])
            for node, place in zip(layer, _apart(layer, wished, widths), strict=True):
                x[node] = place
    return x


def _apart(
    layer: Sequence[int], wished: Sequence[float], widths: Sequence[float]
) -> list[float]:  # fmt: skip
    """The places closest to the wished ones, in the least squares, that keep order and distance.

    Without the distances, which are subtracted first, this is the regression to an increasing
    sequence: neighbours in the wrong order are pooled and get their mean.
    """
    offsets, offset = [], 0.0
    for place, node in enumerate(layer):
        if place:
            offset += (widths[layer[place - 1]] + widths[node]) / 2 + GAP
        offsets.append(offset)
    pools: list[tuple[float, int]] = []  # sum and number
    for wish, offset in zip(wished, offsets, strict=True):
        total, count = wish - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before, more = pools.pop()
            total, count = total + before, count + more
        pools.append((total, count))
    flat = [total / count for total, count in pools for _ in range(count)]
    return [place + offset for place, offset in zip(flat, offsets, strict=True)]
