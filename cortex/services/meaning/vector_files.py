"""Where the embedded index of a memory has its files, and what the log says of their states."""

from __future__ import annotations

from cortex.services.engine import Engine
from cortex.vectors.files import Files


def vector_files(engine: Engine, model: str, dimension: int) -> Files:
    """The files of the model of that key, in the folder of derived files beside the database."""
    database = engine.database

    def said_of(seq: int) -> str:
        with database.read() as snapshot:
            return snapshot.changes.moment(seq) or ""

    return Files(
        database.path.with_name(database.path.name + ".derived"),
        model,
        dimension,
        said_of,
        read_only=engine.settings.read_only,
    )


def remove_vector_files(engine: Engine) -> None:
    """Remove those of all models; who has one mapped keeps it until its next look."""
    vector_files(engine, "", 0).keep_only(())


def file_bytes(engine: Engine) -> int:
    """Bytes of all vector files of this memory."""
    return vector_files(engine, "", 0).bytes_on_disk()
