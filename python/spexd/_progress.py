"""Progress of a job, as a bar or for a function."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

Report = Callable[[int, int], None]
Progress = bool | Report | None


@contextlib.contextmanager
def progress_of(progress: Progress, unit: str = "bundle") -> Iterator[Report | None]:
    """What to call with (done, in all)."""
    if progress is not True:
        yield progress or None
        return
    from tqdm.auto import tqdm

    with tqdm(unit=unit) as bar:

        def report(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield report
