"""``spexd-extract-spectra``, or ``python -m spexd.desispec``, accepts the command line of ``desi_extract_spectra``."""

import logging
import sys

from spexd.desispec import main
from spexd.errors import SpexdError


def run() -> None:
    """Runs the program; exit code 1 with a message if extraction fails."""
    logging.basicConfig(format="%(levelname)s: %(message)s")
    try:
        main()
    except SpexdError as error:
        sys.exit(f"spexd.desispec: {error}")


if __name__ == "__main__":
    run()
