"""The records of ``spex night``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

_NAME = "spex-night.jsonl"  # in each output folder


class Record:
    """The current contents of the records beside some outputs, whichever process wrote them."""

    def __init__(self, outputs: Iterable[str]) -> None:
        self._read = {os.path.dirname(output): 0 for output in outputs}  # bytes that were read of each folder's record
        self._records: dict[str, dict[str, Any]] = {}
        self._new: set[str] = set()
        self.read()
        self._new.clear()

    def read(self) -> None:
        """Reads the lines that were added since the last call."""
        for folder, begin in self._read.items():
            try:
                with open(os.path.join(folder, _NAME), "rb") as file:
                    file.seek(begin)
                    text = file.read()
            except FileNotFoundError:
                continue
            whole = text[: text.rfind(b"\n") + 1]
            self._read[folder] += len(whole)
            for line in whole.split(b"\n"):
                try:
                    record = json.loads(line)
                    output = os.path.join(folder, record["output"])
                except (ValueError, TypeError, KeyError):
                    continue  # a killed process left an incomplete line
                self._records[output] = record
                self._new.add(output)

    def of(self, output: str) -> dict[str, Any]:
        """Returns the last record of an output; empty if there is none."""
        return self._records.get(output, {})

    def is_new(self, output: str) -> bool:
        """Returns whether the output was recorded after this object was made."""
        return output in self._new
