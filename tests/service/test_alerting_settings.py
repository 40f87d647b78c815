"""The section `alerting` of the settings: what is taken, and what is refused with the reason."""

from datetime import timedelta
from pathlib import Path

import pytest

from domain.errors import SettingsError
from service.alerting_settings import AlertingSettings
from service.announcing import access_of
from service.settings_file import load_settings


def test_the_example_of_the_documentation_is_accepted_and_its_secrets_are_looked_for(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "alerting.md").read_text()
    examples = [part.partition("```")[0] for part in page.split("```yaml\n")[1:]]
    [example] = [each for each in examples if each.startswith("alerting:")]
    file = tmp_path / "gpuledger.yaml"
    file.write_text(example)
    settings = load_settings(file)
    assert settings.alerting.expire == AlertingSettings().expire == timedelta(days=3)
    assert settings.dashboard_url == "https://gpu.example.org/tools/fair"
    with pytest.raises(SettingsError, match=r"alerting\.alertmanagers\.token_file"):
        access_of(settings.alerting.alertmanagers[0])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("alerting: {resend: 1m, expire: 2m}", "expected expire of at least 4 times resend"),
        (
            "alerting: {alertmanagers: [{url: 'alertmanager:9093'}]}",
            "expected an address, for example http://",
        ),
        (
            "alerting: {alertmanagers: [{url: 'http://u:p@a'}]}",
            "an address without a name and password",
        ),
        (
            "alerting: {alertmanagers: [{url: 'http://a', user: ada}]}",
            "expected user and password_file, or",
        ),
        (
            "alerting: {alertmanagers: [{url: 'http://a', user: u, password_file: f, token_file: t}]}",
            "expected either user and password_file, or token_file",
        ),
        ("alerting: {alertmanager: []}", "did you mean alerting.alertmanagers?"),
        ("alerting: {alertmanagers: [{url: 'http://a', timeout: 5m}]}", "expected a length from 100ms to 1m"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "gpuledger.yaml"
    file.write_text(text)
    with pytest.raises(SettingsError) as raised:
        load_settings(file)
    assert said in str(raised.value)
