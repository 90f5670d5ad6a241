"""The licences a source of training text may have."""

PERMISSIVE = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "Apache-2.0 OR BSD-3-Clause",
        "Apache-2.0 OR MIT",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC0-1.0",
        "ISC",
        "MIT",
        "PostgreSQL",
        "PSF-2.0",
        "TCL",
        "Unicode-3.0",
        "Unlicense",
        "WordNet",
    }
)
PUBLIC_DOMAIN = frozenset({"LicenseRef-public-domain", "PDDL-1.0 AND CC0-1.0", "blessing"})
ATTRIBUTION = frozenset({"CC-BY-3.0", "CC-BY-4.0", "CC-BY-SA-3.0", "CC-BY-SA-4.0"})
ALLOWED = PERMISSIVE | PUBLIC_DOMAIN | ATTRIBUTION


def is_allowed(licence: str) -> bool:
    """Check an SPDX expression against the list above."""
    return licence in ALLOWED
