"""`Idempotency-Key`: a POST that is sent again creates nothing again and answers what the first answered.

The key is kept per user for a day with a digest of method, path and body. Answers may hold a
one-time secret, so they are stored encrypted.
"""

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils import timezone
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput
from sensaka.platform.models import IdempotencyRecord

HEADER = "Idempotency-Key"
KEPT_FOR = timedelta(days=1)


def _fingerprint(request: Request) -> str:
    body = json.dumps(request.data, sort_keys=True, default=str)
    return hashlib.sha256(f"{request.method} {request.path} {body}".encode()).hexdigest()


def once(request: Request, act: Callable[[], Response]) -> Response:
    """Run `act` unless this user already sent this key; then give the stored answer.

    Raises Conflict while the first request is still at work and InvalidInput when the key was used
    for another request.
    """
    key = request.headers.get(HEADER, "")
    if not key or not isinstance(request.user, User):
        return act()
    if len(key) > 200:
        raise InvalidInput(f"{HEADER}: at most 200 characters")
    fingerprint = _fingerprint(request)
    IdempotencyRecord.objects.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()
    try:
        with transaction.atomic():
            record = IdempotencyRecord.objects.create(user=request.user, key=key, fingerprint=fingerprint)
    except IntegrityError:
        return _repeat(IdempotencyRecord.objects.filter(user=request.user, key=key).first(), fingerprint)
    try:
        response = act()
    except BaseException:
        record.delete()
        raise
    record.status = response.status_code
    record.body = JSONRenderer().render(response.data).decode()
    record.save(update_fields=["status", "body", "updated_at"])
    return response


def _repeat(record: IdempotencyRecord | None, fingerprint: str) -> Response:
    if record is None:
        raise Conflict(f"{HEADER}: the first request with this key has just failed; try again")
    if record.fingerprint != fingerprint:
        raise InvalidInput(f"{HEADER}: this key was used for another request; make a new one")
    if record.status is None:
        raise Conflict(f"{HEADER}: the first request with this key is still at work; try again")
    body = json.loads(record.body) if record.body else None  # some answers are a status alone
    return Response(body, status=record.status, headers={"Idempotent-Replay": "true"})
