"""Addresses that agents talk to, under /api/v1/agents/."""

from django.urls import path

from inventory.api.agents import AgentSelfView, EnrolView, ReportView

urlpatterns = [
    path("enrol/", EnrolView.as_view(), name="agent-enrol"),
    path("report/", ReportView.as_view(), name="agent-report"),
    path("self/", AgentSelfView.as_view(), name="agent-self"),
]
