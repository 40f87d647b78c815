"""The name of a kubeconfig's current context; who reads the cluster reads the rest of the file."""

from pathlib import Path

import yaml

from domain.errors import SettingsError


def current_context(kubeconfig: Path) -> str:
    """
    The context that a kubeconfig names as its current one.

    Raises:
        SettingsError: the file cannot be read or names none.
    """
    what = f"--kubeconfig {kubeconfig}"
    try:
        document = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as cause:
        message = f"{what}: cannot be read ({cause}); expected a kubeconfig"
        raise SettingsError(message) from cause
    except yaml.YAMLError as cause:
        message = f"{what}: not YAML; expected a kubeconfig"
        raise SettingsError(message) from cause
    context = document.get("current-context") if isinstance(document, dict) else None
    if not isinstance(context, str) or not context:
        message = f"{what}: it has no current-context; name one of its contexts with --context"
        raise SettingsError(message)
    return context
