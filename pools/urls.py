"""Addresses of the pages of pools."""

from django.urls import path

from pools.views import maintenance, pools, quotas, specs, tenants

urlpatterns = [
    path("capacity/pools/", pools.pools, name="pools"),
    path("capacity/pools/add/", pools.pool_add, name="pool-add"),
    path("capacity/pools/preview/", pools.rule_preview, name="rule-preview"),
    path("capacity/pools/<uuid:pool_id>/", pools.pool, name="pool"),
    path("capacity/pools/<uuid:pool_id>/edit/", pools.pool_edit, name="pool-edit"),
    path("capacity/pools/<uuid:pool_id>/delete/", pools.pool_delete, name="pool-delete"),
    path("capacity/pools/<uuid:pool_id>/rules/", pools.rule_add, name="pool-rule-add"),
    path("capacity/pools/<uuid:pool_id>/rules/<uuid:rule_id>/delete/", pools.rule_delete, name="pool-rule-delete"),
    path("capacity/pools/<uuid:pool_id>/members/", pools.member_add, name="pool-member-add"),
    path(
        "capacity/pools/<uuid:pool_id>/members/<uuid:member_id>/delete/", pools.member_delete, name="pool-member-delete"
    ),
    path("capacity/specs/", specs.specs, name="specs"),
    path("capacity/specs/add/", specs.spec_add, name="spec-add"),
    path("capacity/specs/<uuid:spec_id>/", specs.spec_edit, name="spec-edit"),
    path("capacity/specs/<uuid:spec_id>/delete/", specs.spec_delete, name="spec-delete"),
    path("capacity/priority-classes/", specs.priority_classes, name="priority-classes"),
    path("capacity/priority-classes/add/", specs.priority_class_add, name="priority-class-add"),
    path("capacity/priority-classes/<uuid:class_id>/", specs.priority_class_edit, name="priority-class-edit"),
    path(
        "capacity/priority-classes/<uuid:class_id>/delete/", specs.priority_class_delete, name="priority-class-delete"
    ),
    path("capacity/quotas/", quotas.quotas, name="quotas"),
    path("capacity/quotas/add/", quotas.quota_add, name="quota-add"),
    path("capacity/quotas/<uuid:quota_id>/", quotas.quota_edit, name="quota-edit"),
    path("capacity/quotas/<uuid:quota_id>/delete/", quotas.quota_delete, name="quota-delete"),
    path("capacity/maintenance/", maintenance.windows, name="maintenance"),
    path("capacity/maintenance/add/", maintenance.window_add, name="window-add"),
    path("capacity/maintenance/<uuid:window_id>/", maintenance.window_edit, name="window-edit"),
    path("capacity/maintenance/<uuid:window_id>/cancel/", maintenance.window_cancel, name="window-cancel"),
    path("tenants/", tenants.tenants, name="tenants"),
    path("tenants/add/", tenants.tenant_add, name="tenant-add"),
    path("tenants/<uuid:tenant_id>/", tenants.tenant, name="tenant"),
    path("tenants/<uuid:tenant_id>/edit/", tenants.tenant_edit, name="tenant-edit"),
    path("tenants/<uuid:tenant_id>/projects/add/", tenants.project_add, name="project-add"),
    path("tenants/<uuid:tenant_id>/projects/<uuid:project_id>/", tenants.project_edit, name="project-edit"),
    path("tenants/<uuid:tenant_id>/members/add/", tenants.member_add, name="member-add"),
    path("tenants/<uuid:tenant_id>/members/<uuid:membership_id>/delete/", tenants.member_delete, name="member-delete"),
    path("tenants/<uuid:tenant_id>/mapping/add/", tenants.mapping_add, name="mapping-add"),
    path("tenants/<uuid:tenant_id>/mapping/<uuid:rule_id>/delete/", tenants.mapping_delete, name="mapping-delete"),
    path("team/", tenants.team, name="team"),
    path("my-usage/", quotas.my_usage, name="my-usage"),
]
