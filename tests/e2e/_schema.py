# SPDX-License-Identifier: Apache-2.0
"""JSON Schema, as far as the tools of `asb mcp` use it. A keyword that is not known here is a finding: nothing goes unchecked."""

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
NOTES = {"title", "description", "default"}


def is_type(name, value):
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "integer":
        return is_type("number", value) and value == int(value)
    return isinstance(value, TYPES[name])


def check(schema, value, where="$", closed=False):
    """What is wrong with VALUE: a list of texts. CLOSED: members that an object's schema does not name are wrong too."""
    bad = [f"{where}: the keyword {k} is not known" for k in set(schema) - NOTES - {"type", "properties", "required", "items", "anyOf", "additionalProperties"}]
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(t, value) for t in types):
        return bad + [f"{where}: {value!r:.80} is no {' or '.join(types)}"]
    if "anyOf" in schema and all(check(s, value, where, closed) for s in schema["anyOf"]):
        bad.append(f"{where}: {value!r:.80} is none of those that may be")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        rest = schema.get("additionalProperties")
        bad += [f"{where}: {k} is missing" for k in schema.get("required", []) if k not in value]
        if closed and known:
            bad += [f"{where}: {k} is not described" for k in value if k not in known]
        for k, v in value.items():
            if k in known or isinstance(rest, dict):
                bad += check(known.get(k, rest), v, f"{where}.{k}", closed)
    if isinstance(value, list) and "items" in schema:
        for i, v in enumerate(value):
            bad += check(schema["items"], v, f"{where}[{i}]", closed)
    return bad
