"""Cycles: groups of operations that depend on each other, and the shortest cycle in a group."""

from collections import deque

#: From how many operations of a group the shortest cycle is looked for.
STARTS_MAX = 300


def groups(numbers, after):
    """The strongly connected groups of more than one operation (Tarjan's algorithm, without recursion)."""
    index, low, on_stack, stack, found = {}, {}, set(), [], []
    for root in numbers:
        if root in index:
            continue
        work = [(root, iter(after(root)))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            number, rest = work[-1]
            for later in rest:
                if later not in index:
                    index[later] = low[later] = len(index)
                    stack.append(later)
                    on_stack.add(later)
                    work.append((later, iter(after(later))))
                    break
                if later in on_stack:
                    low[number] = min(low[number], index[later])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[number])
                if low[number] == index[number]:
                    place = stack.index(number)
                    group = stack[place:]
                    del stack[place:]
                    on_stack.difference_update(group)
                    if len(group) > 1:
                        found.append(sorted(group))
    return found


def shortest_cycle(group, after):
    """The shortest cycle in a group, as a list of numbers that begins with the least one; None if there is none."""
    inside, best = set(group), None
    for start in group[:STARTS_MAX]:
        cycle = cycle_through(start, inside, after)
        if cycle is not None and (best is None or len(cycle) < len(best)):
            best = cycle
    if best is None:
        return None
    place = best.index(min(best))
    return best[place:] + best[:place]


def cycle_through(start, inside, after):
    """The shortest cycle through one operation, which it begins with; None if there is none."""
    previous, queue = {}, deque([start])
    while queue:
        number = queue.popleft()
        for later in after(number):
            if later == start:
                cycle = [number]
                while cycle[-1] != start:
                    cycle.append(previous[cycle[-1]])
                return cycle[::-1]
            if later in inside and later not in previous:
                previous[later] = number
                queue.append(later)
    return None
