"""Scout's folders on disk: private to their owner, and only on local disks."""

import os
import re
import stat
from pathlib import Path

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.settings.record import Settings

_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(r"\\([0-7]{3})")

# These do not guarantee the locks and shared memory that the store needs.
NETWORK = frozenset(
    {
        *("afs", "beegfs", "ceph", "cifs", "coda", "davfs", "glusterfs", "gpfs", "lustre", "ncpfs"),
        *("nfs", "nfs4", "orangefs", "smb3", "smbfs", "fuse.ceph", "fuse.davfs", "fuse.gcsfuse"),
        *("fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"),
    }
)


def prepare(settings: Settings) -> None:
    """Create the folders with mode 0700; refuse folders that cannot be private, and network disks."""
    if _MOUNTS.exists():
        refuse_network(settings.home, _MOUNTS.read_text(errors="surrogateescape"))
    parents = (str(Path(settings.config).parent), settings.runtime)
    inside = (settings.blobs, settings.sessions, settings.logs)
    for folder in dict.fromkeys((settings.home, *parents, *inside)):
        _check_own(folder)
    if Path(settings.runtime).is_symlink():
        raise _build_refusal(settings.runtime, "it is a link")
    _check_config(Path(settings.config))


def make_private(folder: Path) -> None:
    """Create a folder and its missing parents, each with mode 0700."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def refuse_network(home: str, mounts: str) -> None:
    """Refuse a data folder on a network file system; `mounts` is the system's mount table."""
    if (kind := find_file_system(os.path.realpath(home), mounts)) in NETWORK:
        problem = f"{home} is on a network file system ({kind}), where the store cannot be kept safe"
        why = "after setting SCOUT_HOME to a folder on a disk of this machine"
        remedy = Remedy(operation="up", parameters={}, why=why)
        raise Refused(BadRequest(problem=problem, field="home", remedies=(remedy,)))


def find_file_system(path: str, mounts: str) -> str | None:
    """Return the file system type of a real path; if mounts share a mount point, the last one counts."""
    best, found = -1, None
    for line in mounts.splitlines():
        place, _, kind = line.partition(" - ")
        words, kinds = place.split(" "), kind.split(" ")
        if len(words) < 5 or not kinds[0]:
            continue
        point = _ESCAPE.sub(lambda escape: chr(int(escape[1], 8)), words[4]).rstrip("/")
        if len(point) >= best and (path == point or path.startswith(f"{point}/")):
            best, found = len(point), kinds[0]
    return found


def _check_own(folder: str) -> None:
    path = Path(folder)
    try:
        make_private(path)
        seen = path.stat()
        if folder == "/" or seen.st_mode & stat.S_ISVTX or seen.st_uid != os.getuid():
            raise _build_refusal(folder, "other users have access to it")
        if stat.S_IMODE(seen.st_mode) != 0o700:
            path.chmod(0o700)
    except OSError as error:
        raise _build_refusal(folder, error.strerror or str(error)) from None


def _check_config(file: Path) -> None:
    """Refuse a config file that other users own or can write: it names programs that Scout starts."""
    try:
        seen = file.stat()
    except FileNotFoundError:
        return
    others = seen.st_mode & stat.S_IWOTH or seen.st_uid not in (0, os.getuid())
    if others:
        why = f"after you have read {file}, and made it yours: chown $USER and chmod 600"
        remedy = Remedy(operation="up", parameters={}, why=why)
        problem = f"{file} can be changed by other users, so Scout does not use it"
        raise Refused(BadRequest(problem=problem, field="config.toml", remedies=(remedy,)))


def _build_refusal(folder: str, why: str) -> Refused:
    remedy = Remedy(operation="up", parameters={}, why="after setting SCOUT_HOME to a folder of your own")
    return Refused(
        BadRequest(problem=f"{folder} cannot be the data folder: {why}", field="home", remedies=(remedy,))
    )
