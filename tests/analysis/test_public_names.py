"""What `from evenhand.analysis import ...` offers."""

import subprocess
import sys
import types

import pytest

import evenhand.analysis


def test_every_public_name_is_there():
    names = dir(evenhand.analysis)
    assert names == sorted(evenhand.analysis.__all__)
    for name in names:
        # A submodule called like a function would hide it.
        assert not isinstance(getattr(evenhand.analysis, name), types.ModuleType), name


def test_a_wrong_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="cohens_kappa"):
        evenhand.analysis.cohens_kappa  # noqa: B018


def test_importing_loads_no_numerical_library():
    code = "import sys, evenhand.analysis as a; dir(a); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert not loaded & {"numpy", "pandas", "scipy", "sklearn", "statsmodels", "krippendorff"}
