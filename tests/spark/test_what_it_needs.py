"""What Spark needs, and what is said where it is not there."""

import os
import subprocess
import sys

import pytest

from colmatch.errors import DependencyError
from colmatch.spark import check_java


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, env={**os.environ, **environment}
    )


def test_without_pyspark():
    ran = python("import sys; sys.modules['pyspark'] = None\nfrom colmatch.spark import match")
    assert "colmatch.errors.DependencyError" in ran.stderr and 'pip install "colmatch[spark]"' in ran.stderr


def test_java(monkeypatch, tmp_path):
    check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DependencyError, match="there is none at JAVA_HOME=.*install Java 17"):
        check_java()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    for version, name in (("11.0.2", "11"), ("1.8.0_292", "8")):
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
        with pytest.raises(DependencyError, match=f"Spark needs Java 17, and .* is {name}: install"):
            check_java()
