"""Files that appear whole or not at all, whoever kills the process or however full the disk is."""

import contextlib
import os
import pathlib
import tempfile


@contextlib.contextmanager
def own(folder):
    """Keeps others from `folder`, which is made, for as long as this lasts; False: another one has it. One that it made goes again where it
    stays empty."""
    folder = pathlib.Path(folder)
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # no Unix
        yield True
        return
    lock = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass  # a file system without locks
        try:
            yield True
        finally:
            if is_new:
                with contextlib.suppress(OSError):
                    folder.rmdir()
    finally:
        os.close(lock)


def write_whole(path, content, spoils=()):
    """`content` is text or bytes. The file that was there stays until the new one is on the disk. `spoils`: files that are of the old one, and go
    with it."""
    path = pathlib.Path(path)
    content = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    if path.exists() and not path.is_file():
        path.write_bytes(content)  # a device or a pipe: nothing to replace
        return
    path = path.resolve()  # behind a link is what it names
    with tempfile.NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(file.name, 0o666 & ~mask)
            for other in spoils:
                pathlib.Path(other).unlink(missing_ok=True)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
