"""Serve Google's JSON API, and a part of the XML API, without I/O.

``GcsApp.answer`` takes one request and returns its response. It has two steps, between which faults
can be injected: ``read`` parses a request, ``perform`` executes it. The requests of a batch are
read and performed one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from asynccommit.testing.emulators.gcs.batch import Inner, read_batch, refused, write_batch
from asynccommit.testing.emulators.gcs.buckets import BucketRoutes
from asynccommit.testing.emulators.gcs.call import GcsCall, GcsRoute, decode, parse_query
from asynccommit.testing.emulators.gcs.folders import FolderRoutes
from asynccommit.testing.emulators.gcs.object_json import uniform_access
from asynccommit.testing.emulators.gcs.objects import Objects
from asynccommit.testing.emulators.gcs.projects import ProjectRoutes
from asynccommit.testing.emulators.gcs.routes import Routes
from asynccommit.testing.emulators.gcs.uploads import UploadRoutes
from asynccommit.testing.emulators.gcs.wire import XML, GcsResponse, error_answer
from asynccommit.testing.emulators.gcs.xml_api import RESERVED, XmlApi
from asynccommit.testing.emulators.gcs.xml_wire import error_document
from asynccommit.testing.models.fault_rules import Reply, take_effect
from asynccommit.testing.models.gcs.model import GcsRefusal, GcsService, refuse

_PREDEFINED = frozenset(("destinationPredefinedAcl", "predefinedAcl"))
_ROOTS = (["b"], ["projects"])

Check = Callable[[GcsCall], None]


class GcsApp:
    """The JSON API as a function from requests to responses.

    Header names are in lower case; targets are as on the wire, percent-encoded.

    Args:
        service: model of the service.
        scheme: scheme of the URLs in responses.
        check: raises ``GcsRefusal`` unless the caller of a request is authenticated.
    """

    def __init__(
        self, service: GcsService, *, scheme: str = "http", check: Check | None = None
    ) -> None:
        self.service = service
        self.uploads = UploadRoutes(service, scheme, service.new_id)
        self.routes = Routes(
            Objects(service, scheme),
            BucketRoutes(service, scheme),
            FolderRoutes(service, scheme),
            self.uploads,
            ProjectRoutes(service, scheme),
        )
        self.xml = XmlApi(service, service.new_id)
        self._check = check
        self._batch = GcsRoute("batch", "storage.batch", self._answer_batch, self._read_batch, ())
        self._batches = 0

    def answer(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes = b""
    ) -> GcsResponse:
        """Execute one request now and return its response."""
        try:
            call = self.read(method, target, headers, body)
        except GcsRefusal as refusal:
            return error_answer(refusal)
        return self.perform(call)

    def classify(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes = b""
    ) -> tuple[str, str]:
        """Return a request's operation and place for fault rules.

        Raises ``GcsRefusal``.
        """
        call = self.read(method, target, headers, body)
        return call.route.op, call.place

    def read(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes = b""
    ) -> GcsCall:
        """Parse a request. Raises ``GcsRefusal`` if there is no such operation."""
        path, _, text = target.partition("?")
        if path.startswith("//batch/"):  # as Google's library for Java asks
            path = path[1:]
        query = parse_query(text) if text else {}
        verb = headers.get("x-http-method-override", method)
        if verb == "HEAD":
            verb = "GET"
        if path.partition("/")[2].partition("/")[0] in RESERVED:
            route, raw = self._find(verb, path, query)
        else:
            route, raw = self.xml.find(method, path, query, headers)
        names = tuple([decode(name) for name in raw])
        call = GcsCall(method, route, names, query, headers, body)
        if route.prepare is not None:
            route.prepare(call)
        return call

    def _find(
        self, verb: str, path: str, query: dict[str, str]
    ) -> tuple[GcsRoute, tuple[str, ...]]:
        segments = path.split("/")
        service, version = segments[1:2], segments[2:4]
        if service == ["storage"] and version[:1] == ["v1"] and segments[3:4] in _ROOTS:
            return self.routes.find(verb, segments[3:], query)
        if service == ["resumable"]:
            segments = segments[1:]
            service, version = segments[1:2], segments[2:4]
        if version == ["storage", "v1"]:
            if service == ["upload"] and segments[4:5] + segments[6:] == ["b", "o"]:
                return self.routes.find_upload(verb, query), (segments[5],)
            if service == ["download"] and segments[4:5] + segments[6:7] == ["b", "o"]:
                query.setdefault("alt", "media")
                return self.routes.find(verb, segments[4:], query)
            if service == ["batch"] and len(segments) == 4 and verb == "POST":
                return self._batch, ()
        raise refuse("notFound")

    def perform(self, call: GcsCall) -> GcsResponse:
        """Execute a request and return its response."""
        route = call.route
        try:
            if self._check is not None and route is not self._batch:
                self._check(call)
            if call.name and call.query and not _PREDEFINED.isdisjoint(call.query):
                raise uniform_access()
            if route.asks:
                names = call.names
                asked = [names[at] for at in route.asks]
                self.service.admit(route.op, *asked, user_project=call.user_project)
            return route.handler(call)
        except GcsRefusal as refusal:
            if route.xml and refusal.status >= 400:
                body = error_document(refusal, of_object=bool(call.name))
                return GcsResponse(refusal.status, {**XML, **refusal.headers}, body)
            return error_answer(refusal, media=route.media)

    # --- batches -------------------------------------------------------------------------------

    def _read_batch(self, call: GcsCall) -> None:
        read_batch(call, self.read)

    def _answer_batch(self, call: GcsCall) -> GcsResponse:
        self._batches += 1
        answers = [self._answer_inner(inner) for inner in call.parts]
        return write_batch(call.parts, answers, f"batch_{self._batches:012x}")

    def _answer_inner(self, inner: Inner) -> GcsResponse:
        call, decision = inner.call, inner.decision
        if call is None:
            return inner.answer or refused(decision)
        answer = take_effect(decision, partial(self.perform, call), inner.later)
        if answer is None or decision.reply is not Reply.TRUE:
            return refused(decision)
        return answer
