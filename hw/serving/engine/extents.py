"""Where requests lie in the arena of the cache: in rows of blocks, first fit."""


class Extents:
    def __init__(self, blocks):
        self.free = [(0, blocks)]  # [begin, end), by begin
        self.taken = {}

    def take(self, key, blocks):
        """The first block, or None."""
        for index, (begin, end) in enumerate(self.free):
            if end - begin >= blocks:
                self.free[index:index + 1] = [(begin + blocks, end)] if end - begin > blocks else []
                self.taken[key] = (begin, begin + blocks)
                return begin
        return None

    def give(self, key):
        self.free.append(self.taken.pop(key))
        self.free.sort()
        joined = [self.free[0]]
        for begin, end in self.free[1:]:
            if begin == joined[-1][1]:
                joined[-1] = (joined[-1][0], end)
            else:
                joined.append((begin, end))
        self.free = joined
