"""The language of expressions, and their meaning if a value is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from colmatch.given.arguments import check_choice

LanguageName = Literal["sql", "betree"]
Missing = Literal["unknown", "false"]


@dataclass(frozen=True, slots=True)
class Language:
    """The language and the meaning of expressions; saved with the matcher.

    Attributes
    ----------
    name : ``"sql"``, the WHERE of Spark SQL, or ``"betree"``, the language of the be-tree library
    missing : truth of a predicate on an absent value: ``"unknown"``, as in SQL, or ``"false"``,
        which makes NOT a plain negation
    """

    name: LanguageName = "sql"
    missing: Missing = "unknown"

    @staticmethod
    def read_arguments(name: object, missing: object) -> Language:
        """Returns the language that arguments of ``Matcher.build`` name.

        missing : None for the default of the language

        Raises
        ------
        OptionError : there is no language of this name, or no such meaning
        """
        language = check_choice("language={}", name, get_args(LanguageName))
        if missing is None:
            missing = "false" if language == "betree" else "unknown"
        return Language(language, check_choice("missing={}", missing, get_args(Missing)))

    @property
    def is_betree(self) -> bool:
        """Returns whether columns are domains and events are JSON objects, as in the be-tree
        library.
        """
        return self.name == "betree"

    @property
    def two_valued(self) -> bool:
        """Returns whether a predicate on an absent value is false."""
        return self.missing == "false"

    def to_dict(self) -> dict[str, str]:
        return {"name": self.name, "missing": self.missing}


SQL = Language()
