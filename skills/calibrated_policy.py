"""Which policy a calibration is of: what it is, where that is known, and not where it is served.

A policy behind `zmq://HOST:PORT` tells its spec in the hello, with the digest of whatever fixes its
behaviour. It is the same policy at another port, with other keys and on another machine; another
policy at the same port is another one. A policy that is loaded here has a name that says it all; a
server that tells no digest is known by its address alone.
"""

from __future__ import annotations

import hashlib
import json
from typing import Final

from zetta.runtime.core import PolicySpec
from zetta.runtime.records import to_json
from zetta.skills.calibrated import CalibrationRecord

SERVED: Final = "zmq://"
_DIGITS: Final = 16


def is_served(policy: str) -> bool:
    """Say whether a name is only the place of a policy.

    >>> is_served("zmq://127.0.0.1:5601"), is_served("zetta/tiny")
    (True, False)
    """
    return policy.startswith(SERVED)


def policy_key(policy: str, spec: PolicySpec | None) -> str:
    """Return what calibrations of a policy go by.

    Args:
        policy: as `zetta run --policy` takes it.
        spec: what it is; None where that is not known.
    """
    if spec is None or not spec.digest or not is_served(policy):
        return policy
    text = json.dumps(to_json(spec), sort_keys=True)
    return f"served {spec.name} {hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"


def is_of(record: CalibrationRecord, policy: str, spec: PolicySpec | None) -> bool:
    """Say whether a calibration is of a policy.

    One that was written when they went by the address holds there, as long as the weights are the
    same.
    """
    if record.policy == policy_key(policy, spec):
        return True
    known = spec is not None and bool(spec.digest) and record.policy_digest == spec.digest
    return record.policy == policy and known
