"""Importing this module makes the pipeline extract with spexd, including ``desi_proc``::

    import spexd.desispec.in_place
    import desispec.scripts.proc
    desispec.scripts.proc.main(args, comm)

It does what :func:`spexd.desispec.install` does, and cannot be undone.
"""

import spexd.desispec

spexd.desispec.install()
