"""The part of the OpenAPI document that no view can describe: the telemetry endpoint in front of Django."""

from typing import Any

import msgspec

from inventory.ingest.wire import MAX_BODY, Telemetry

_REFUSALS = {
    "400": "Not JSON, or not gzip where announced",
    "401": "The node token is unknown or revoked",
    "409": "`unknown_cards`: some cards were never reported on this node; send a report first. Nothing was stored",
    "413": f"Larger than {MAX_BODY} bytes",
    "415": "Not application/json",
    "422": "A value can't be used, or a sample is from the future or older than what is kept. Nothing was stored",
    "503": "Try again after `Retry-After` seconds. Nothing was acknowledged",
}


def add_telemetry(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Postprocessing hook of drf-spectacular; the body's schema is made from the struct that reads it."""
    (body,), components = msgspec.json.schema_components([Telemetry], ref_template="#/components/schemas/{name}")
    for value in components["TelemetrySample"]["properties"].values():
        value.pop("default", None)  # inside, an absent number is NaN; on the wire it is left out or null
    result["components"]["schemas"].update(components)
    result["components"].setdefault("securitySchemes", {})["nodeToken"] = {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "`Token ska_...`, given to an agent when it enrols",
    }
    problem = {"content": {"application/problem+json": {"schema": {"type": "object"}}}}
    result["paths"]["/api/v1/telemetry/"] = {
        "post": {
            "operationId": "telemetry_create",
            "tags": ["telemetry"],
            "description": "Samples of one node, answered after the commit. A sample sent twice is stored once.",
            "security": [{"nodeToken": []}],
            "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
            "responses": {
                "200": {
                    "description": "Stored",
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "required": ["stored", "repeated"],
                                "properties": {
                                    "stored": {"type": "integer"},
                                    "repeated": {"type": "integer", "description": "known before, stored once"},
                                },
                            }
                        }
                    },
                },
                **{code: {"description": text, **problem} for code, text in _REFUSALS.items()},
            },
        }
    }
    return result
