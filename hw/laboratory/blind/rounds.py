"""rounds: a recorded round is one archive, ROUND.tar.gz: its programs and all raw csv; only notes and evaluations lie
beside it, in ROUND/. A round that is being made lies in ROUND/ as plain files until `pack`.

The archive's bytes follow from its files alone (sorted, no times, no owners), so that its sha256 in the index
(index.py) says whether anything in it has changed."""

import contextlib
import gzip
import hashlib
import io
import pathlib
import shutil
import tarfile
import tempfile

# What stays beside an archive: what people read, and what `foretrace accuracy` and `prices` read.
BESIDE = ("NOTES.md", "README.md", "evaluation", "known-host")


def archive_of(round_):
    return round_.with_name(round_.name + ".tar.gz")


def stays_beside(file):
    return file.name.startswith(BESIDE)


def to_pack(round_):
    """The round's files that belong into its archive, by their names in it, in the archive's order."""
    files = (path for path in round_.rglob("*") if path.is_file())
    return sorted(path for path in files if path.parent != round_ or not stays_beside(path))


def write_archive(archive, top, files):
    """files: {name below `top`: bytes}. Written whole or not at all."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9, mtime=0, filename="") as zipped, \
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size, member.mode = len(files[name]), 0o644
            tar.addfile(member, io.BytesIO(files[name]))
    part = archive.with_name(archive.name + ".part")
    part.write_bytes(packed.getvalue())
    part.replace(archive)


def read_archive(archive):
    """{name below the archive's folder: bytes}. ValueError for a member that is no plain file of that folder."""
    top = archive.name.removesuffix(".tar.gz") + "/"
    files = {}
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            name = member.name.removeprefix(top)
            if not member.isfile() or not member.name.startswith(top) or ".." in pathlib.PurePath(name).parts:
                raise ValueError(f"{archive}: '{member.name}' is no plain file of {top}")
            files[name] = tar.extractfile(member).read()
    return files


def pack(round_):
    """Moves what ROUND/ has into ROUND.tar.gz, beside what is there already; a file of the same name must be equal."""
    archive = archive_of(round_)
    files = read_archive(archive) if archive.exists() else {}
    moved = to_pack(round_)
    for path in moved:
        name, data = path.relative_to(round_).as_posix(), path.read_bytes()
        if files.get(name, data) != data:
            raise ValueError(f"{archive} has another {name} than {path}: what is recorded does not change")
        files[name] = data
    write_archive(archive, round_.name, files)
    for path in moved:
        path.unlink()
    for folder in sorted((path for path in round_.rglob("*") if path.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            folder.rmdir()
    return archive


def unpack(round_, into):
    """Writes the archive's files into the folder `into`; returns how many."""
    files = read_archive(archive_of(round_))
    for name, data in files.items():
        path = into / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return len(files)


@contextlib.contextmanager
def opened(round_):
    """A folder with all of the round's files: itself where it lies open; else a copy that is gone afterwards."""
    if not archive_of(round_).exists():
        yield round_
        return
    with tempfile.TemporaryDirectory(prefix="foretrace-round-") as scratch:
        inside = pathlib.Path(scratch) / round_.name
        inside.mkdir()
        unpack(round_, inside)
        if round_.is_dir():  # notes, evaluations, and what was not packed yet
            shutil.copytree(round_, inside, dirs_exist_ok=True)
        yield inside


def found(file, round_, inside):
    """`file`, or where it is named as one of the round's and lies in its archive, that one."""
    if not file.exists() and file.parent == round_:
        return inside / file.name
    return file


def sha256_of(archive):
    return hashlib.sha256(archive.read_bytes()).hexdigest()
