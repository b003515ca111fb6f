"""Importing this module makes the pipeline extract with spexd, ``desi_proc`` included::

    import spexd.desispec.in_place
    import desispec.scripts.proc
    desispec.scripts.proc.main(args, comm)

``desispec.scripts.extract`` keeps its ``parse``; its main functions become those of :mod:`spexd.desispec`.
"""

import desispec.scripts.extract

import spexd.desispec

for _name in ("main", "main_mpi", "main_gpu_specter"):
    setattr(desispec.scripts.extract, _name, getattr(spexd.desispec, _name))
