"""Where a step begins and ends: at `foretrace.region`, or from one optimizer step's end to the next one's."""

import contextlib


class Steps:
    """Tells a listener of the steps of a program. The listener has begin(name), end(name), mark(name, begins)."""

    def __init__(self, listener, region=None):
        self.listener, self.region = listener, region
        self.by = "region" if region else None  # found out by the first of the two that happens
        self.optimizer = None
        self.handle = None
        self.inside = 0

    def watch_optimizers(self):
        from torch.optim.optimizer import register_optimizer_step_post_hook
        self.handle = register_optimizer_step_post_hook(self._after_optimizer)
        if self.by is None:
            self.listener.begin("step")

    def _after_optimizer(self, optimizer, *_):
        if self.by == "region":
            return
        self.by = "optimizer"
        if self.optimizer is None:
            self.optimizer = id(optimizer)
        if id(optimizer) == self.optimizer:  # a program's other optimizers step within
            self.listener.end("step")
            self.listener.begin("step")

    @contextlib.contextmanager
    def in_region(self, name):
        if self.by is None:
            self.by = "region"
            self.region = self.region or name
            self.listener.abandon()
        if self.by == "region" and name == self.region and self.inside == 0:
            self.inside += 1
            self.listener.begin(name)
            try:
                yield
            finally:
                self.inside -= 1
                self.listener.end(name)
            return
        self.listener.mark(name, True)
        try:
            yield
        finally:
            self.listener.mark(name, False)

    def close(self):
        if self.handle:
            self.handle.remove()
