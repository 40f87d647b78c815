"""The command line that starts Streamlit: nothing asks the internet, nothing is sent there."""

from pathlib import Path

from dashboard.shared.charts import ACCENT

APP = Path(__file__).resolve().parent.parent / "app.py"

_QUIET = (
    "--server.headless=true",
    "--server.showEmailPrompt=false",
    "--server.fileWatcherType=none",
    "--server.runOnSave=false",
    "--server.enableAgentApi=false",
    "--server.maxCacheDataSize=256MB",
    "--browser.gatherUsageStats=false",
    "--client.showErrorDetails=none",
    "--client.showErrorLinks=false",
    "--client.toolbarMode=minimal",
    "--runner.magicEnabled=false",
    # Per base: one colour for both would take the choice of light or dark from the browser.
    f"--theme.light.primaryColor={ACCENT}",
    f"--theme.dark.primaryColor={ACCENT}",
)


def streamlit_command(
    python: str, *, port: int, address: str, base_url: str = "", host: str = ""
) -> list[str]:
    """
    The command that runs the dashboard.

    Args:
        python: the interpreter, `sys.executable`.
        port: where it listens.
        address: the interface it listens on.
        base_url: the path below which a proxy serves it, for example `gpu`; empty at the root.
        host: the name that browsers use, which Streamlit would otherwise look up on the internet;
            `address` if empty, `localhost` if that is every interface.
    """
    seen_as = host or ("localhost" if address in {"", "0.0.0.0", "::"} else address)  # noqa: S104
    command = [python, "-m", "streamlit", "run", str(APP), *_QUIET]
    command += [f"--server.port={port}", f"--server.address={address}", f"--browser.serverAddress={seen_as}"]
    if base_url.strip("/"):
        command.append(f"--server.baseUrlPath={base_url.strip('/')}")
    return command
