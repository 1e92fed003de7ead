"""Sessions on this machine, and the Java that they need."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from colmatch.errors import DependencyError

try:
    from pyspark.sql import SparkSession
except ImportError as error:
    raise DependencyError(f'a session needs PySpark 4: pip install "colmatch[spark]" ({error})') from error

JAVA_LEAST = 17


def local_session(cores: int | str = "*", **config: str | int | bool) -> SparkSession:
    """Makes a classic session on this machine that is ready for ``match``.

    Java is checked, and workers run this Python.

    Parameters
    ----------
    cores : number of cores; ``"*"`` for all
    config : further settings, with ``__`` for the dots of their names: ``spark__ui__enabled=False``

    Raises
    ------
    DependencyError : Java is absent or too old
    """
    check_java()
    # Otherwise workers take the first python3 on the PATH, which seldom has colmatch.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(f"local[{cores}]")
    for name, value in config.items():
        builder = builder.config(name.replace("__", "."), value)
    return builder.getOrCreate()


def check_java() -> None:
    """Checks that the Java that Spark would start is installed and new enough.

    Only sessions that start Spark on this machine need it.

    Raises
    ------
    DependencyError : Java is absent or too old. The message explains how to install it; PySpark
        itself reports only JAVA_GATEWAY_EXITED
    """
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    install = (
        f"install Java {JAVA_LEAST} or later (Debian, Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install openjdk@17; "
        "conda: conda install openjdk=17) and set JAVA_HOME"
    )
    try:
        ran = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        where = f"JAVA_HOME={home}" if home else "the PATH"
        raise DependencyError(f"Spark needs Java, and there is none at {where} ({error}): {install}") from error
    version = re.search(r'version "(?:1\.)?(\d+)', ran.stderr + ran.stdout)
    if version and int(version[1]) < JAVA_LEAST:
        raise DependencyError(f"Spark needs Java {JAVA_LEAST}, and {java} is {version[1]}: {install}")
