"""What must hold inside the trees of locators, walked node by node in plain Python."""

from __future__ import annotations

from locators.kernels import interval_tree as it

KEYS = 2**64
LOWEST = -(2**63)


def spaces_of_node(k: int, half: int) -> range:
    """Spaces that node k of a tree over ``half`` spaces covers."""
    depth = k.bit_length() - 1
    wide = half >> depth
    return range((k - (1 << depth)) * wide, (k - (1 << depth) + 1) * wide)


def check_segment_tree(tree, intervals) -> None:
    """Nodes of an interval cover its keys once, and are the highest that do: two a level."""
    half = len(tree.cut)
    cuts = [None] * (half + 1)  # lowest key of each space, None where no key comes
    for k in range(1, half):
        cuts[spaces_of_node(2 * k + 1, half).start] = int(tree.cut[k])
    bounds = [cut for cut in cuts if cut is not None]
    assert bounds == sorted(bounds)
    at = {}
    for k in range(1, 2 * half):
        for number in tree.member[tree.first[k] : tree.first[k + 1]].tolist():
            at.setdefault(number, []).append(k)
    assert sorted(at) == list(range(len(intervals)))
    for number, nodes in at.items():
        low, high = intervals[number]
        spaces = sorted(space for k in nodes for space in spaces_of_node(k, half))
        assert spaces == list(range(spaces[0], spaces[-1] + 1))  # once each, without a gap
        assert (LOWEST if spaces[0] == 0 else cuts[spaces[0]]) == low
        behind = spaces[-1] + 1
        assert high == 2**63 - 1 if behind == half else cuts[behind] == high + 1
        assert not {k ^ 1 for k in nodes} & set(nodes)  # two siblings would be their parent
        depths = [k.bit_length() for k in nodes]
        assert all(depths.count(depth) <= 2 for depth in depths)


def zeros(key: int) -> int:
    """How late halving comes to a key: the zeros at its end, counted from the lowest key."""
    shifted = key - LOWEST
    return (shifted & -shifted).bit_length() - 1 if shifted else 64


def check_interval_tree(tree, intervals) -> None:
    """Walk a tree of the intervals by number, and all that is free."""
    root, used, free_node, places = tree.state.tolist()
    nodes, blocks, found = set(), [], {}

    def walk(at, above, low, high, depth):
        if at == it.NONE:
            return
        assert 0 <= at < used and at not in nodes and depth <= 65
        nodes.add(at)
        center = int(tree.center[at])
        left, right, start, size = tree.node[at].tolist()
        assert low <= center <= high and zeros(center) < above
        assert size or (left != it.NONE and right != it.NONE), "a node that nobody needs"
        if size:
            blocks.append((start, 1 << (size - 1).bit_length()))
            ends = tree.low[start : start + size].tolist(), tree.high[start : start + size].tolist()
            assert all(end == sorted(end) for end in ends)
            numbers = tree.low_number[start : start + size].tolist()
            assert sorted(numbers) == sorted(tree.high_number[start : start + size].tolist())
            by_number = dict(zip(tree.high_number[start : start + size].tolist(), ends[1], strict=True))
            for number, lower in zip(numbers, ends[0], strict=True):
                found[number] = (lower, ~by_number[number])
                assert lower <= center <= ~by_number[number]
        walk(left, zeros(center), low, center - 1, depth + 1)
        walk(right, zeros(center), center + 1, high, depth + 1)

    walk(root, 65, LOWEST, LOWEST + KEYS - 1, 1)
    assert found == intervals
    free = []
    while free_node != it.NONE:
        free.append(free_node)
        free_node = int(tree.node[free_node, it.LEFT])
    assert sorted([*nodes, *free]) == list(range(used))
    for power, at in enumerate(tree.free.tolist()):
        while at != it.NONE:
            blocks.append((at, 1 << power))
            at = int(tree.low[at])
    blocks.sort()
    assert [start for start, _ in blocks] == [0, *(start + size for start, size in blocks)][: len(blocks)]
    assert sum(size for _, size in blocks) == places


def shape(tree) -> object:
    """Centers of a tree as nested tuples, with the numbers of the intervals at each."""

    def of(at):
        if at == it.NONE:
            return None
        left, right, start, size = tree.node[at].tolist()
        return int(tree.center[at]), frozenset(tree.low_number[start : start + size].tolist()), of(left), of(right)

    return of(int(tree.state[it.ROOT]))
