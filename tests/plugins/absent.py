"""A framework whose package is not there."""

from __future__ import annotations

import a_package_that_nobody_has  # noqa: F401

INSTALL = "pip install 'a-package-that-nobody-has>=2'"
