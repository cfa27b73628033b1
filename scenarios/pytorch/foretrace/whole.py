"""Files that appear whole or not at all, whoever kills the process or however full the disk is."""

import os
import pathlib
import tempfile


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
