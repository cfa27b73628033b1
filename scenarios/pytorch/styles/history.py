"""The allocator's history as what a step needs: sizes of what lives when it begins, then what it allocates and frees."""

MARK = 3 * 7 * 11 * 13 * 17 * 512


def history(trace):
    """Sizes of the blocks that live at the step's begin, in the order of their birth; of the passes, the clipping and the optimizer sizes that each
    allocates and, negative, frees. train.py marks where they begin. What is freed at once is in the order of its birth: others are decided by addresses."""
    marks = [i for i, (action, _, size) in enumerate(trace) if action == "alloc" and size == MARK]
    alive, born = {}, 0

    def walk(begin, end):
        nonlocal born
        sizes, freed = [], []
        for action, address, size in trace[begin:end]:
            if action == "alloc":
                sizes += [-size for _, size in sorted(freed)]
                freed.clear()
                born += 1
                alive[address] = (born, rounded(size))
                sizes.append(rounded(size))
            elif action == "free_completed":
                freed.append(alive.pop(address))
        return sizes + [-size for _, size in sorted(freed)]
    walk(0, marks[0] + 3)
    base = [size for _, size in alive.values()]
    return base, [walk(begin + 3, end) for begin, end in zip(marks[:3], marks[1:4])]


def rounded(size):
    return -(-size // 512) * 512
