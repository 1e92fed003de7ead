"""A heap of parts, with the highest bound first."""

from colmatch.kernels._jit import device


@device
def push(heap, waiting, height, bound, part):
    """Enters a part into the heap, with the highest bound first. Returns the heap's new height."""
    at = height
    while at > 0 and heap[(at - 1) >> 1] < bound:
        heap[at], waiting[at] = heap[(at - 1) >> 1], waiting[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at], waiting[at] = bound, part
    return height + 1


@device
def pop(heap, waiting, height):
    """Takes the first part off the heap. Returns the heap's new height."""
    height -= 1
    bound, part = heap[height], waiting[height]
    at = 0
    while 2 * at + 1 < height:
        below = 2 * at + 1
        if below + 1 < height and heap[below + 1] > heap[below]:
            below += 1
        if heap[below] <= bound:
            break
        heap[at], waiting[at] = heap[below], waiting[below]
        at = below
    heap[at], waiting[at] = bound, part
    return height
