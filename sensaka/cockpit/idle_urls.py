"""Addresses of idle cards."""

from django.urls import path

from sensaka.cockpit.views import idle

urlpatterns = [
    path("capacity/idle/", idle.idle, name="idle"),
    path("capacity/idle/spared/add/", idle.exemption_add, name="idle-exemption-add"),
    path("capacity/idle/spared/<uuid:exemption_id>/end/", idle.exemption_lift, name="idle-exemption-lift"),
    path("capacity/idle/<uuid:case_id>/<slug:name>/", idle.act, name="idle-act"),
]
