"""The logs of the Parallel Workloads Archive by name (https://www.cs.huji.ac.il/labs/parallel/workload/).

The names, folders and versions are those of the archive's list of logs. A SHA-256 is pinned for the files that
this project was tested with, as they were when it was tested; for the others the digest is printed and written
down when they are downloaded. Whoever uses a log cites the archive (Feitelson, Tsafrir and Krakov, Experience
with using the Parallel Workloads Archive, JPDC 74, 2014) and the site that gave it.
"""

from __future__ import annotations

import dataclasses
import difflib

from policyfactory.core.errors import UsageError

__all__ = ["ARCHIVE_URL", "KNOWN_LOGS", "KnownLog", "find_log"]

ARCHIVE_URL = "https://www.cs.huji.ac.il/labs/parallel/workload/"


@dataclasses.dataclass(frozen=True, slots=True)
class KnownLog:
    """One file of the archive.

    Parameters
    ----------
    name : str
        Its name without ``.swf.gz``.
    folder : str
        The archive's folder of the machine.
    site : str
        Whose machine it was.
    short : str
        A name that is easier to type.
    sha256 : str or None
        Digest of the file that this project was tested with.
    """

    name: str
    folder: str
    site: str
    short: str = ""
    sha256: str | None = None

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.name}.swf.gz"

    @property
    def page(self) -> str:
        """The archive's page about the log: how it was made, what is known of it, whom to thank."""
        return f"{ARCHIVE_URL}{self.folder}/index.html"

    def url(self, base: str = ARCHIVE_URL) -> str:
        """Return where the file is, at the archive or at a mirror with the same folders."""
        return f"{base.rstrip('/')}/{self.folder}/{self.file}"


_LOGS = (
    KnownLog("NASA-iPSC-1993-3.1-cln", "l_nasa_ipsc", "NASA Ames iPSC/860", "nasa"),
    KnownLog("LANL-CM5-1994-4.1-cln", "l_lanl_cm5", "Los Alamos CM-5", "lanl-cm5"),
    KnownLog("SDSC-Par-1995-3.1-cln", "l_sdsc_par", "San Diego Paragon, 1995", "sdsc-par-95"),
    KnownLog("SDSC-Par-1996-3.1-cln", "l_sdsc_par", "San Diego Paragon, 1996", "sdsc-par-96"),
    KnownLog("CTC-SP2-1995-2", "l_ctc_sp2", "Cornell Theory Center SP2, early log", "ctc-95"),
    KnownLog("CTC-SP2-1996-3.1-cln", "l_ctc_sp2", "Cornell Theory Center SP2", "ctc"),
    KnownLog("LLNL-T3D-1996-2", "l_llnl_t3d", "Lawrence Livermore T3D", "llnl-t3d"),
    KnownLog(
        "KTH-SP2-1996-2.1-cln",
        "l_kth_sp2",
        "KTH Stockholm SP2",
        "kth",
        "3e152f201fd2e96808a735bced6ea6eb0bb07fdc447689cafb0750d87b264c0b",
    ),
    KnownLog("SDSC-SP2-1998-4.2-cln", "l_sdsc_sp2", "San Diego SP2", "sdsc-sp2"),
    KnownLog("LANL-O2K-1999-2", "l_lanl_o2k", "Los Alamos Origin 2000", "lanl-o2k"),
    KnownLog("OSC-Clust-2000-3.1-cln", "l_osc", "Ohio Supercomputer Center", "osc"),
    KnownLog(
        "SDSC-BLUE-2000-4.2-cln",
        "l_sdsc_blue",
        "San Diego Blue Horizon",
        "sdsc-blue",
        "9aab21f3cfa108f3ecefa52391b384d996dcf4216f920186f47a734646b2c658",
    ),
    KnownLog("Sandia-Ross-2001-1.1-cln", "l_sandia_ross", "Sandia Ross", "sandia-ross"),
    KnownLog("HPC2N-2002-2.2-cln", "l_hpc2n", "HPC2N Umea Seth", "hpc2n"),
    KnownLog(
        "HPC2N-2002-2.1-cln",
        "l_hpc2n",
        "HPC2N Umea Seth, earlier version",
        "hpc2n-2.1",
        "e56a97045de773f2a395acaf74cb04e6e3393b9c8c5ae12b542b5de93bb04838",
    ),
    *(KnownLog(f"DAS2-fs{n}-2003-1", "l_das2", f"DAS-2 cluster fs{n}", f"das2-fs{n}") for n in range(5)),
    KnownLog("SDSC-DS-2004-2.1-cln", "l_sdsc_ds", "San Diego DataStar", "sdsc-ds"),
    KnownLog("LPC-EGEE-2004-1.2-cln", "l_lpc", "LPC Clermont-Ferrand", "lpc"),
    KnownLog("LCG-2005-1", "l_lcg", "LHC Computing Grid", "lcg"),
    KnownLog("SHARCNET-2005-2", "l_sharcnet", "SHARCNET, ten clusters", "sharcnet"),
    KnownLog("SHARCNET-Whale-2006-2", "l_sharcnet", "SHARCNET Whale", "whale"),
    KnownLog("LLNL-uBGL-2006-2", "l_llnl_ubgl", "Lawrence Livermore uBGL", "ubgl"),
    KnownLog("LLNL-Atlas-2006-2.1-cln", "l_llnl_atlas", "Lawrence Livermore Atlas", "atlas"),
    KnownLog("LLNL-Thunder-2007-1.1-cln", "l_llnl_thunder", "Lawrence Livermore Thunder", "thunder"),
    KnownLog("ANL-Intrepid-2009-1", "l_anl_int", "Argonne Intrepid", "intrepid"),
    KnownLog("METACENTRUM-2009-2", "l_metacentrum", "MetaCentrum", "metacentrum"),
    KnownLog("PIK-IPLEX-2009-1", "l_pik_iplex", "PIK Potsdam iDataPlex", "pik"),
    KnownLog("RICC-2010-2", "l_ricc", "RIKEN Integrated Cluster of Clusters", "ricc"),
    KnownLog(
        "CEA-Curie-2011-2.1-cln",
        "l_cea_curie",
        "CEA Curie",
        "curie",
        "2a0fdbd40837590b491bbbac7d4cfe521de1f0b14c0dc39bbf82c4e49ea75bce",
    ),
    KnownLog("Intel-NetbatchA-2012-1", "l_intel_netbatch", "Intel NetBatch pool A", "intel-a"),
    KnownLog("Intel-NetbatchB-2012-1", "l_intel_netbatch", "Intel NetBatch pool B", "intel-b"),
    KnownLog("Intel-NetbatchC-2012-1", "l_intel_netbatch", "Intel NetBatch pool C", "intel-c"),
    KnownLog("Intel-NetbatchD-2012-1", "l_intel_netbatch", "Intel NetBatch pool D", "intel-d"),
    KnownLog("UniLu-Gaia-2014-2", "l_unilu_gaia", "University of Luxembourg Gaia", "gaia"),
    KnownLog("METACENTRUM-2013-3", "l_metacentrum2", "MetaCentrum, 2013", "metacentrum-13"),
    KnownLog("CIEMAT-Euler-2008-1", "l_ciemat_euler", "CIEMAT Euler", "euler"),
    KnownLog("KIT-FH2-2016-1", "l_kit_fh2", "KIT ForHLR II", "kit"),
)  # fmt: skip

KNOWN_LOGS = {log.name: log for log in _LOGS}


def find_log(name: str) -> KnownLog:
    """Return the log called ``name``: its file's name with or without suffix, or its short name, in any case.

    Raises
    ------
    UsageError
        If none is called so, with those whose names are near.
    """
    wanted = name.casefold().removesuffix(".gz").removesuffix(".swf")
    names = {log.name.casefold(): log for log in _LOGS} | {log.short: log for log in _LOGS}
    if wanted in names:
        return names[wanted]
    near = difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)
    hint = f"near are {', '.join(names[n].name for n in near)}; " if near else ""
    raise UsageError(f"no log is called {name!r}; {hint}policyfactory workload download --list prints all {len(_LOGS)}")
