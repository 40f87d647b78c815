"""Reads the settings: file, then variables, then the command line; says what is wrong and where."""

import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from domain.errors import SettingsError
from service.settings import Settings

PREFIX = "GPULEDGER_"
_SIZES = {"memory_limit", "min_free", "journal_size"}
# Read by the dashboard and by the command line themselves.
_OTHER_VARIABLES = {"GPULEDGER_CONFIG", "GPULEDGER_API_URL", "GPULEDGER_PLAYED_SAMPLE"}
# Kubernetes gives each pod variables for a Service called gpuledger: GPULEDGER_PORT_8080_TCP_ADDR.
_OF_KUBERNETES = re.compile(r"GPULEDGER_(SERVICE_(HOST|PORT\w*)|PORT(_\d+_(TCP|UDP)\w*)?)")

# What the parser raises, also for a scalar of a type that it is not: `2026-99-99`, `!!int x`.
_NO_YAML = (yaml.YAMLError, AttributeError, RecursionError)
_EXPECTED = {
    "int_parsing": "a whole number, for example {example}",
    "int_type": "a whole number, for example {example}",
    "int_from_float": "a whole number, for example {example}",
    "string_type": "a text, for example {example}",
    "bool_parsing": "true or false",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "tuple_type": "a list",
    "path_type": "a path",
}


def load_settings(
    file: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """
    The settings in force.

    Args:
        environment: variables, of which the `GPULEDGER_*` count.
        overrides: dotted key -> value, from the command line; None leaves a key alone.

    Raises:
        SettingsError: the file cannot be read, a key is unknown or a value wrong.
    """
    values = {} if file is None else _read(file)
    origins: dict[str, str] = {}
    given = {f"environment {name}": entry for name, entry in _variables(environment or {}).items()}
    entries = list(given.items()) + [
        ("command line", (tuple(key.split(".")), value))
        for key, value in (overrides or {}).items()
        if value is not None
    ]
    for origin, (keys, value) in entries:
        _put(values, keys, value)
        origins[".".join(keys)] = origin
    try:
        settings = Settings.model_validate(values)
    except ValidationError as cause:
        raise SettingsError(_explain(cause, file, origins)) from cause
    _check_names(settings, origins.get("clusters", str(file) if file else "settings"))
    # Rules, thresholds and prices are checked now: fail at start, not at the first question.
    settings.tenancy_rules()
    settings.thresholds()
    settings.money.agreement()
    return settings


def _check_names(settings: Settings, origin: str) -> None:
    """Under one name two clusters would be one in the books."""
    first: dict[str, int] = {}
    for number, cluster in enumerate(settings.clusters):
        if (other := first.setdefault(cluster.name, number)) != number:
            message = (
                f'{origin}, clusters.{other}.name and clusters.{number}.name are both "{cluster.name}": '
                "expected a name of its own for each; rename the one that was never read, or take it out"
            )
            raise SettingsError(message)


def _read(file: Path) -> dict[str, Any]:
    values = yaml_of(file)
    if values is None:
        return {}
    if not isinstance(values, dict):
        message = f"{file}: expected a mapping with the keys {', '.join(Settings.model_fields)}"
        raise SettingsError(message)
    return values


def yaml_of(file: Path) -> Any:
    """
    What a file in YAML holds.

    Raises:
        SettingsError: it cannot be read, or is no YAML.
    """
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8"))
    except FileNotFoundError as cause:
        message = f"{file}: there is no such file; expected the settings in YAML"
        raise SettingsError(message) from cause
    except (OSError, UnicodeDecodeError) as cause:
        message = f"{file}: cannot be read ({cause}); expected the settings in YAML"
        raise SettingsError(message) from cause
    except ValueError as cause:
        # YAML makes dates of what looks like one.
        message = (
            f"{file}: a date that no calendar has, or a number too long to read ({cause}); expected, for"
            " example, 2026-01-31"
        )
        raise SettingsError(message) from cause
    except _NO_YAML as cause:
        mark = getattr(cause, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        message = f"{file}{where}: not YAML ({getattr(cause, 'problem', None) or _why(cause)})"
        raise SettingsError(message) from cause


def _why(cause: BaseException) -> str:
    if isinstance(cause, RecursionError):
        return "it is nested too deep"
    return "it cannot be parsed" if isinstance(cause, yaml.YAMLError) else f"a value cannot be read: {cause}"


def _variables(environment: Mapping[str, str]) -> dict[str, tuple[tuple[str, ...], Any]]:
    found = {}
    for name, text in sorted(environment.items()):
        if not name.startswith(PREFIX) or name in _OTHER_VARIABLES or _OF_KUBERNETES.fullmatch(name):
            continue
        keys = tuple(name.removeprefix(PREFIX).lower().split("__"))
        found[name] = (keys, _value(text))
    return found


def _value(text: str) -> Any:
    """Lists and mappings are written as YAML or JSON; everything else is a text."""
    if not text.lstrip().startswith(("[", "{")):
        return text
    try:
        return yaml.safe_load(text)
    except _NO_YAML:
        return text


def _put(values: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    for key in keys[:-1]:
        if not isinstance(values.get(key), dict):
            values[key] = {}
        values = values[key]
    values[keys[-1]] = value


def _explain(error: ValidationError, file: Path | None, origins: Mapping[str, str]) -> str:
    """The first thing that is wrong, as the style of our errors asks."""
    # A misspelt key comes before the one that is missing because of it.
    found = error.errors()
    first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    # Pydantic says "[key]" where the key itself of a mapping is wrong.
    is_key = first["loc"][-1:] == ("[key]",)
    path = tuple(str(part) for part in first["loc"] if part != "[key]")
    dotted = ".".join(path)
    origin = next(
        (origins[key] for key in origins if key == dotted or dotted.startswith(f"{key}.")),
        str(file) if file else "settings",
    )
    more = f" ({error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        return f"{origin}, {dotted}: unknown key; {_nearest(path)}{more}"
    if is_key and first["type"] == "enum":
        return f"{origin}, {dotted}: unknown key; {_nearest_of(path, _names(first['ctx']['expected']))}{more}"
    if first["type"] == "missing":
        return f"{origin}, {dotted}: is missing; expected a value, so add that key{more}"
    return f"{origin}, {dotted} = {_shown(first['input'])}: expected {_expected(first, path)}{more}"


def _shown(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


def _expected(error: Any, path: tuple[str, ...]) -> str:
    kind = error["type"]
    if kind == "value_error":
        return str(error["ctx"]["error"])
    if kind in {"enum", "literal_error"}:
        return f"one of {error['ctx']['expected']}"
    if kind == "string_pattern_mismatch":
        return "a size with its unit, for example 2GB" if path[-1] in _SIZES else error["msg"]
    if kind in _EXPECTED:
        return _EXPECTED[kind].format(example=_example(path))
    text: str = error["msg"]
    return text.removeprefix("Input should be ")


def _example(path: tuple[str, ...]) -> str:
    default: Any = Settings()
    for key in path:
        default = getattr(default, key, None)
    return "1" if default in (None, "") else str(default)


def _nearest(path: tuple[str, ...]) -> str:
    """The known key nearest to the unknown one at the end of the path."""
    known = list(_keys_at(path[:-1]))
    close = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {'.'.join((*path[:-1], close[0]))}?"
    everywhere = list(_all_keys(Settings))
    by_name = difflib.get_close_matches(
        path[-1], [key.rpartition(".")[2] for key in everywhere], n=1, cutoff=0.7
    )
    if by_name:
        return f"did you mean {next(key for key in everywhere if key.rpartition('.')[2] == by_name[0])}?"
    return f"expected one of {', '.join(known)}"


def _nearest_of(path: tuple[str, ...], known: Sequence[str]) -> str:
    close = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.5)
    return (
        f"did you mean {'.'.join((*path[:-1], close[0]))}?"
        if close
        else f"expected one of {', '.join(known)}"
    )


def _names(expected: str) -> list[str]:
    """
    The names in Pydantic's own words.

    >>> _names("'interactive', 'batch' or 'best_effort'")
    ['interactive', 'batch', 'best_effort']
    """
    return re.findall(r"'([^']*)'", expected)


def _keys_at(path: tuple[str, ...]) -> tuple[str, ...]:
    """Keys of the section at that path; positions in lists and names in mappings are passed over."""
    section: type[BaseModel] = Settings
    for key in path:
        if key in section.model_fields:
            section = _section_of(section.model_fields[key].annotation) or section
    return tuple(section.model_fields)


def _section_of(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        found = _section_of(argument)
        if found is not None:
            return found
    return None


def _all_keys(section: type[BaseModel], prefix: str = "") -> list[str]:
    keys = []
    for name, field in section.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            keys += _all_keys(inner, f"{prefix}{name}.")
        else:
            keys.append(prefix + name)
    return keys
