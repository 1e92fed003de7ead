"""Writes the oldest versions that pyproject.toml allows, as constraints for pip."""

import re
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
extras = project["optional-dependencies"].values()
for wanted in {*project["dependencies"], *(one for extra in extras for one in extra)}:
    if found := re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)(?:,.*)?", wanted):
        print(f"{found[1]}=={found[2]}.*")
