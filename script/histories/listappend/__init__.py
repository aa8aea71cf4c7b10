"""Finds anomalies in histories of operations that append to lists, by the method of Elle.

A list shows which appends made it, and in which order. So the order of all observed appends follows from the reads, and
with it which operation must be before which other one:

    ww   both appended to a list, in this order
    wr   the second one read what the first one had appended
    rw   the first one read a list without what the second one appended

Time says more: an operation that has ended is before those that begin later. If all operations can be put into one order,
these arrows have no cycle; a cycle is an anomaly, and its arrows explain it.

    operations.py   what a history is
    lists.py        what single reads show: a value twice, a value of a failed operation, lists that contradict each other
    arrows.py       which operation must be before which other one, and why
    cycles.py       groups that depend on each other, and the shortest cycle in a group
    checker.py      names the anomalies
"""
