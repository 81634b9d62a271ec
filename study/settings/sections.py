"""Base classes and types of the settings, and a sentence for an invalid value (`fault_of`)."""

import tomllib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic.fields import FieldInfo

from evenhand.errors import InputError
from evenhand.study.trust import check_variable
from evenhand.texts import table_of, written


def settings_words() -> dict[str, Any]:
    """Return the meaning of each setting, by class, and the default background questions."""
    return table_of("evenhand.study.settings", "settings.toml")


class Section(BaseModel):
    """A section of study.toml, which refuses unknown keys. A field's description, in
    `settings.toml` or with the field, is its line in the documentation. Validators are built on
    first use, for most runs need few of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:  # called by pydantic for each section
        for key, entry in settings_words().get(cls.__name__, {}).items():
            field = cls.model_fields[key]
            if isinstance(entry, str):
                field.description = entry
            else:  # {"says": the description, and more about the key}
                field.description, field.json_schema_extra = entry["says"], entry


class Declared(Section):
    """A section that sends environment variables to a host. The operator must confirm what a file
    sends, again after each change (`study.trust`).
    """

    sends_nothing: ClassVar[frozenset[str]] = frozenset()  # keys that may change unconfirmed
    _file: Path | None = PrivateAttr(None)  # that it was read from; None: made by a program

    @model_validator(mode="after")
    def _note_file(self, info: ValidationInfo) -> Self:
        self._file = (info.context or {}).get("file")  # the context that `parsed` was given
        return self

    @property
    def declaration(self) -> dict[str, Any]:
        """Return the keys that the operator confirms."""
        return self.model_dump(mode="json", exclude=set(self.sends_nothing))

    def check(self, key: str, variable: str, to: str = "", for_host: Collection[str] = ()) -> None:
        """Raise InputError where the file may not send a variable; see `check_variable`."""
        if self._file is not None:
            check_variable(self._file, key, variable, self.declaration, to=to, for_host=for_host)


Share = Annotated[float, Field(ge=0, le=1)]
PositiveShare = Annotated[float, Field(gt=0, le=1)]
ShareBelowOne = Annotated[float, Field(ge=0, lt=1)]
Kappa = Annotated[float, Field(ge=-1, le=1)]
NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
PositiveInt = Annotated[int, Field(gt=0)]
SectionType = TypeVar("SectionType", bound=Section)


def _check_unique(names: dict[str, str]) -> dict[str, str]:
    """Return the names; raise ValueError if two are the same."""
    id_by_name: dict[str, str] = {}
    for id_, name in names.items():
        if id_by_name.setdefault(name, id_) != id_:
            first = id_by_name[name]
            raise ValueError(written("names.twice", first=first, id=id_, name=repr(name)))
    return names


DisplayName = Annotated[str, Field(pattern=r"^[^\p{C}\p{Z}]([^\p{C}]{0,58}[^\p{C}\p{Z}])?$")]
DisplayNames = Annotated[dict[str, DisplayName], AfterValidator(_check_unique)]
"""Display names of raters and rubrics, by their ids."""

_PATTERN_WORDS = {
    r"^[^\p{C}\p{Z}]([^\p{C}]{0,58}[^\p{C}\p{Z}])?$": (
        "be 1 to 60 characters, none of them a control character, without spaces around them"
    ),
    r"^[A-Z]{3}$": "be three capital letters, such as GBP",
    r"^[A-Za-z0-9-]{1,64}$": "be 1 to 64 letters, digits or hyphens",
    r"^[A-Za-z0-9._-]{1,64}$": "be 1 to 64 letters, digits, dots, hyphens or underscores",
    r"^[a-z][a-z0-9_]{0,39}$": "be a lower-case letter, then up to 39 of a to z, 0 to 9 and _",
}
"""Rules in words, by pattern: pydantic's message would show the pattern itself."""


def changed(section: SectionType, changes: Mapping[str, Any]) -> SectionType:
    """Return the section with the changes of its own fields. Raises InputError for a bad value."""
    values = dict(section)
    if not (new_values := {name: changes[name] for name in values if name in changes}):
        return section
    try:
        return type(section).model_validate(values | new_values)
    except ValidationError as error:
        raise InputError(fault_of(error)) from None


def parsed(kind: type[SectionType], content: bytes, name: str, **context: Path) -> SectionType:
    """Return a TOML file's section; validators get the `context`. Raises InputError for a fault."""
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        return kind.model_validate(tomllib.loads(text), context=context)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{name} is not valid TOML: {error}") from None
    except ValidationError as error:
        raise InputError(f"{name}: {fault_of(error)}") from None


def fault_of(error: ValidationError, name_of: Callable[[str], str] = lambda key: key) -> str:
    """Return the first fault as a sentence: where it is, what is there, and what must be. `name_of`
    converts a key such as "analysis.margin" to its name for the user.
    """
    fault = error.errors(include_url=False)[0]
    key = name_of(".".join(str(part) for part in fault["loc"]))
    if fault["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{key} is no known key; check its spelling"
    if fault["type"] == "missing":
        return f"{key} is missing; add it"
    if fault["type"] == "value_error":
        return f"{key}: {fault['ctx']['error']}" if key else str(fault["ctx"]["error"])
    _, _, rule = fault["msg"].partition(" should ")  # such as "Input should be greater than 0"
    rule = rule.partition(", unable to parse")[0]
    rule = _PATTERN_WORDS.get(fault.get("ctx", {}).get("pattern", ""), rule)
    value = fault["input"]
    is_plain = isinstance(value, str | int | float)
    return f"{key} is {value!r}; it must {rule}" if is_plain else f"{key} must {rule}"


def keys_of(section: type[Section]) -> dict[str, FieldInfo]:
    """Return the fields of a section in the order of a TOML file: plain keys before tables."""
    fields = section.model_fields
    return dict(sorted(fields.items(), key=lambda item: get_origin(item[1].annotation) is dict))


def section_of(field: FieldInfo) -> type[Section] | None:
    """Return the class of the section or sections in a field; None for a plain key."""
    for kind in (field.annotation, *get_args(field.annotation)):
        if isinstance(kind, type) and issubclass(kind, Section):
            return kind
    return None
