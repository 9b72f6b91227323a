"""Rows on their way into a partition: in memory while they are few, then in a draft of its file.

A rebuild of any size thus holds 4 MB of rows. Where the disk refuses, what it took is read back,
and all rows are in memory.
"""

from __future__ import annotations

import sys

import numpy as np

from cortex.domain.errors import UnavailableError
from cortex.domain.values import Generation, WorkspaceId
from cortex.vectors.draft import Draft
from cortex.vectors.files import Files
from cortex.vectors.partition import Contents, GrowingRows
from cortex.vectors.vector_file import MappedFile, Unfit
from cortex.vectors.view import Rows


class SpooledRows(GrowingRows):
    """`GrowingRows` that go to the disk by pieces; `array` is what is in memory still."""

    def __init__(self, files: Files, workspace: WorkspaceId) -> None:
        super().__init__(files.dimension)
        self._files = files
        self._workspace = workspace
        self._draft: Draft | None = None
        self._piece = max(files.smallest, 1)

    @property
    def count(self) -> int:
        """All rows that were appended, wherever they are."""
        return super().count + (0 if self._draft is None else self._draft.rows)

    def append(self, rows: Rows) -> None:
        super().append(rows)
        if self.array.nbytes >= self._piece and self._files.may_write(self._workspace):
            self._spill()

    def published(self, contents: Contents, watermark: Generation) -> MappedFile | None:
        """The file of these rows and contents; None where they are in memory, all of them."""
        self._piece = sys.maxsize  # what comes later is no part of this file
        if self._draft is not None and len(self.array):
            self._spill()
        if self._draft is None:
            return None
        try:
            return self._files.publish(self._draft, contents, self._workspace, watermark)
        except (OSError, Unfit) as error:
            self._take_back(self._draft, error)
            return None

    def discard(self) -> None:
        """Remove what was not published."""
        if self._draft is not None:
            self._draft.discard()

    def _spill(self) -> None:
        try:
            if self._draft is None:
                self._draft = self._files.draft(self._workspace)
            draft = self._draft
            draft.append(self.array)
        except OSError as error:
            if self._draft is None:
                self._files.refuse(self._workspace, error)
            else:
                self._take_back(self._draft, error)
        else:
            self.clear()

    def _take_back(self, draft: Draft, error: Exception) -> None:
        """Hold all rows in memory again."""
        self._files.refuse(self._workspace, error)
        held = self.array
        self._draft = None
        try:
            self.replace(np.concatenate([draft.rows_back(), held]))
        except OSError as failure:
            raise UnavailableError(
                f"the disk lost what was just written ({failure})", "", "Check the disk"
            ) from failure
        draft.discard()
