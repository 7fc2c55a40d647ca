"""The dashboard has no field and no enumerated value that Grafana's schema does not have.

The SDK is generated from that schema. It ignores unknown fields, so a field that does not return
is unknown, in the dashboard or in the options of a panel.
"""

import json
import re
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

# Fields of Grafana's exports that the schema leaves out.
EXPORTED = {"__inputs", "__requires", "annotations.list.builtIn", "templating.list.definition"}


def dashboard():
    file = Path(__file__).parents[2] / "grafana" / "bentpipe.json"
    return json.loads(file.read_text())


def returned(text):
    return json.loads(JSONEncoder().encode(Dashboard.from_json(text)))


def differences(sent, back, path=""):
    if isinstance(sent, dict) and isinstance(back, dict):
        for key, value in sent.items():
            inner = f"{path}.{key}".lstrip(".")
            yield from differences(value, back[key], inner) if key in back else [inner]
    elif isinstance(sent, list) and isinstance(back, list) and len(sent) == len(back):
        for one, other in zip(sent, back):
            yield from differences(one, other, path)
    elif sent != back:
        yield path


def unknown(text):
    return set(differences(text, returned(text))) - EXPORTED


def setup_module():
    register_default_plugins()


def test_fields_and_values_are_those_of_the_schema():
    assert unknown(dashboard()) == set()


def test_unknown_fields_are_found():
    text = dashboard()
    panel = next(panel for panel in text["panels"] if panel["type"] == "timeseries")
    panel["fieldConfig"]["defaults"]["custom"]["lineColour"] = 1
    panel["options"]["legends"] = {}
    text["graphToolTip"] = 1
    assert {re.sub(r".*\.", "", path) for path in unknown(text)} == {
        "lineColour", "legends", "graphToolTip",
    }
