# SPDX-License-Identifier: Apache-2.0
"""Requests checked against AWS's service models (tests/aws/models), and signatures computed anew. Knows nothing of asb."""
import hashlib
import hmac
import json
import os
import re
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))


class Bad(Exception):
    """A request that the service would refuse: status, type, message."""

    def __init__(self, status, kind, message):
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


class Model:
    def __init__(self, name):
        with open(os.path.join(HERE, "models", name + ".json"), encoding="utf-8") as f:
            m = json.load(f)
        self.shapes, self.operations = m["shapes"], m["operations"]
        self.routes = []
        for name, op in self.operations.items():
            path = op["http"]["requestUri"].split("?")[0]
            pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(path))
            self.routes.append((op["http"]["method"], re.compile(pattern + r"\Z"), name))

    def route(self, method, path):
        for m, pattern, name in self.routes:
            found = pattern.match(path)
            if m == method and found:
                return name, found.groupdict()
        return None, None

    # --- what is wrong with VALUE, as a list of texts

    def check(self, shape, value, where):
        s = self.shapes[shape]
        kind = s["type"]
        types = {"string": str, "boolean": bool, "list": list, "map": dict, "structure": dict, "timestamp": (int, float, str)}
        if kind in ("integer", "long"):
            if not isinstance(value, int) or isinstance(value, bool):
                return [f"{where} is not an integer: {value!r}"]
            if value < s.get("min", value) or value > s.get("max", value):
                return [f"Value '{value}' at '{where}' failed to satisfy constraint: {s.get('min')} to {s.get('max')}"]
            return []
        if not isinstance(value, types[kind]) or (kind == "timestamp" and isinstance(value, bool)):
            return [f"{where} is no {kind}: {value!r}"]
        if kind in ("string", "list", "map"):
            n = len(value.encode()) if kind == "string" else len(value)
            if n < s.get("min", 0) or n > s.get("max", n):
                return [f"Value at '{where}' failed to satisfy constraint: length {n}, {s.get('min')} to {s.get('max')}"]
        if kind == "string":
            return self.check_string(s, value, where)
        if kind == "list":
            return [x for i, v in enumerate(value) for x in self.check(s["member"]["shape"], v, f"{where}[{i}]")]
        if kind == "map":
            return [x for k, v in value.items()
                    for x in self.check(s["key"]["shape"], k, f"{where}.key") + self.check(s["value"]["shape"], v, f"{where}.{k}")]
        if kind == "structure":
            return self.check_struct(s, value, where)
        return []

    @staticmethod
    def check_string(s, value, where):
        if "enum" in s and value not in s["enum"]:
            return [f"Value '{value}' at '{where}' failed to satisfy constraint: Member must satisfy enum value set: {s['enum']}"]
        pattern = s.get("pattern", "").replace(r"\p{L}", "a-zA-Z").replace(r"\p{Z}", " ").replace(r"\p{N}", "0-9")
        if pattern and not re.fullmatch(pattern, value):
            return [f"Value '{value}' at '{where}' failed to satisfy constraint: Member must satisfy regular expression pattern: {pattern}"]
        return []

    def check_struct(self, s, value, where):
        bad = [f"Value null at '{where}{m}' failed to satisfy constraint: Member must not be null"
               for m in s.get("required", []) if m not in value]
        for name, v in value.items():
            if name not in s["members"]:
                bad.append(f"{where}{name} is no member")
            else:
                bad += self.check(s["members"][name]["shape"], v, f"{where}{name}")
        if s.get("union") and len(value) != 1:
            bad.append(f"{where} is a union and has {len(value)} members")
        return bad

    def read(self, method, path, query, body, content_type):
        """(operation, members) of a request; Bad when the service would not take it."""
        name, in_path = self.route(method, path)
        if not name:
            raise Bad(404, "UnknownOperationException", f"{method} {path}")
        shape = self.shapes[self.operations[name]["input"]["shape"]]
        values, named = {}, {k: urllib.parse.unquote(v) for k, v in in_path.items()}
        pairs = urllib.parse.parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
        has_body = False
        for member, m in shape["members"].items():
            wire, place = m.get("locationName", member), m.get("location")
            kind = self.shapes[m["shape"]]["type"]
            has_body = has_body or place is None
            if place == "uri":
                values[member] = named[wire]
            elif place == "querystring":
                found = [v for k, v in pairs if k == wire]
                pairs = [(k, v) for k, v in pairs if k != wire]
                if found:
                    values[member] = found if kind == "list" else int(found[0]) if kind == "integer" else found[0]
        if pairs:
            raise Bad(400, "ValidationException", f"unknown query: {pairs}")
        if body and (not has_body or content_type != "application/json"):
            raise Bad(400, "ValidationException", f"a body of type {content_type} for {name}")
        sent = json.loads(body) if body else {}
        body_members = {k for k, m in shape["members"].items() if m.get("location") is None}
        bad = [f"{k} is no member of the body" for k in sent if k not in body_members]
        values.update({k: v for k, v in sent.items() if k in body_members})
        bad += self.check_struct(shape, values, "")
        if bad:
            raise Bad(400, "ValidationException", f"{len(bad)} validation error{'s' * (len(bad) > 1)} detected: " + "; ".join(bad))
        return name, values


# --- Signature Version 4, the other side's view

def quote(s, safe="-_.~"):
    return urllib.parse.quote(s, safe=safe)


def signature(method, path, query, headers, body, secret, auth):
    """What the signature of a request has to be; HEADERS is a list of (lower-case name, value), AUTH the parsed header."""
    date, region, service = auth["scope"]
    pairs = sorted((quote(urllib.parse.unquote(k)), quote(urllib.parse.unquote(v)))
                   for k, _, v in (p.partition("=") for p in query.split("&") if p))
    lines = [f"{n}:{','.join(' '.join(v.split()) for k, v in headers if k == n)}" for n in auth["signed"]]
    uri = path if service == "s3" else quote(path, safe="/-_.~")
    canonical = "\n".join([method, uri, "&".join(f"{k}={v}" for k, v in pairs), *lines, "", ";".join(auth["signed"]),
                           hashlib.sha256(body).hexdigest()])
    when = dict(headers)["x-amz-date"]
    text = "\n".join(["AWS4-HMAC-SHA256", when, f"{date}/{region}/{service}/aws4_request",
                      hashlib.sha256(canonical.encode()).hexdigest()])
    key = b"AWS4" + secret.encode()
    for part in (date, region, service, "aws4_request", text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key.hex()


def parse_authorization(value):
    found = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([a-z0-9-]+)/([a-z0-9]+)/aws4_request, "
                         r"SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})", value or "")
    if not found:
        raise Bad(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
    key, date, region, service, signed, sig = found.groups()
    names = signed.split(";")
    if names != sorted(set(names)) or "host" not in names or "x-amz-date" not in names:
        raise Bad(403, "InvalidSignatureException", f"signed headers {signed}")
    return {"key": key, "scope": (date, region, service), "signed": names, "signature": sig}
