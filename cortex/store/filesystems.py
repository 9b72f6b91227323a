"""Network filesystems, told by the table of mounts, where SQLite must not run in WAL mode.

WAL needs memory that all who open the file share, and locks that hold: over a network two
machines would each see a log of their own, and lose each other's commits. SQLite says so and
does not look (https://www.sqlite.org/wal.html, "All processes using a database must be on
the same host computer"). Only Linux shows its mounts as a file; elsewhere nothing is refused.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from cortex.domain.errors import UnavailableError

MOUNTS: Final = Path("/proc/self/mounts")

# File systems of a cluster share a disk between machines, but not their memory.
_NETWORK: Final = frozenset(
    {
        "nfs", "nfs3", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "9p", "v9fs", "afs", "ncpfs",
        "ncp", "coda", "ceph", "glusterfs", "lustre", "gpfs", "beegfs", "pvfs2", "orangefs",
        "moosefs", "gfs", "gfs2", "ocfs2", "davfs", "sshfs", "s3fs", "prl_fs", "vboxsf", "vmhgfs",
    }
)  # fmt: skip
_FUSE: Final = frozenset(
    {
        "sshfs", "glusterfs", "ceph", "ceph-fuse", "s3fs", "goofys", "gcsfuse", "rclone", "davfs",
        "davfs2", "curlftpfs", "blobfuse", "blobfuse2", "juicefs", "mfs", "moosefs", "beegfs",
        "lizardfs", "cvmfs2", "hdfs", "seaweedfs", "smbnetfs", "nfs", "grpcfuse", "osxfs",
        "vmhgfs-fuse", "mount-s3", "prl_fsd",
    }
)  # fmt: skip
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


def network_kind(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """The kind of network filesystem that `folder` lies on, such as "nfs4"; None for a local one.

    A folder that is not there yet lies where its nearest folder does; links are followed. None
    as well where there is no table of mounts.
    """
    try:
        table = mounts.read_text("utf-8", "surrogateescape")
    except OSError:
        return None  # not Linux, or a sandbox without /proc: nothing is known against the folder
    real = os.path.join(os.path.realpath(folder), "")
    place, kind = "", ""
    for line in table.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = os.path.join(_unescaped(fields[1]), "")
        if real.startswith(point) and len(point) >= len(place):  # the later one lies on top
            place, kind = point, fields[2]
    if kind == "9p" and place == "/":
        return None  # a sandbox's own root (gVisor), which no other machine opens
    family, _, name = kind.partition(".")
    networked = kind in _NETWORK or (family in ("fuse", "fuseblk") and name in _FUSE)
    return kind if networked else None


def refuse_network(path: Path, mounts: Path = MOUNTS) -> None:
    """Raise UnavailableError where the file `path` lies, or would lie, on a network filesystem."""
    kind = network_kind(path.parent, mounts)
    if kind is not None:
        raise UnavailableError(
            f"{path} is on a network filesystem ({kind}), where SQLite's write-ahead log loses "
            "commits",
            "Valid: a folder on a disk of this machine",
            "Set --home or CORTEX_HOME to one; copy the file there while no cortex runs. "
            "Nothing was opened or changed",
        )


def _unescaped(text: str) -> str:
    """A mount point as it is: the table writes blanks and the like in octal."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 8)), text)
