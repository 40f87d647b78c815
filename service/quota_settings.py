"""The section `quota` of the settings: what was agreed with whom, and in which steps quotas move."""

from typing import Annotated, Literal

from pydantic import Field

from service.setting_types import Section

Gpus = Annotated[int, Field(ge=0)]


class QuotaSettings(Section):
    """
    Agreements about quotas; the thresholds of proposals stand in `policy`.

    `agreed` is by pool and holder, whole GPUs; where it says nothing, the quota of the first week counts.
    `units` is by pool: GPUs that move together, for example those of a node. `volcano` says which
    field of a Volcano queue is changed: its quota (`deserved`, else `capability`), or its weight.
    """

    agreed: dict[str, dict[str, Gpus]] = {}
    units: dict[str, Annotated[int, Field(ge=1)]] = {}
    volcano: Literal["quota", "weight"] = "quota"
