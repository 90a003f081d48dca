"""Addresses of the cockpit: every page that reads, and a person's own."""

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from sensaka.cockpit.views import (
    account,
    cards,
    collectors,
    exports,
    heatmap,
    journal,
    nodes,
    overview,
    search,
    tree,
    users,
    work,
)

urlpatterns = [
    path("", work.landing, name="overview"),
    path("overview/attention/", overview.attention_list, name="attention-list"),
    path("overview/groups/", overview.groups, name="overview-groups"),
    path("fleet/map/", heatmap.heatmap, name="map"),
    path("fleet/map/data/", heatmap.data, name="map-data"),
    path("fleet/tree/", tree.tree, name="tree"),
    path("fleet/tree/part/", tree.part, name="tree-part"),
    path("fleet/nodes/", nodes.nodes, name="nodes"),
    path("fleet/nodes/<uuid:node_id>/", nodes.node, name="node"),
    path("fleet/nodes/<uuid:node_id>/<slug:part>/", nodes.node_part, name="node-part"),
    path("fleet/cards/", cards.cards, name="cards"),
    path("fleet/cards/<uuid:card_id>/", cards.card, name="card"),
    path("fleet/cards/<uuid:card_id>/history/", cards.history, name="card-history"),
    path("fleet/cards/<uuid:card_id>/<slug:part>/", cards.card_part, name="card-part"),
    path("fleet/nodes.csv", exports.nodes_csv, name="nodes-csv"),
    path("fleet/cards.csv", exports.cards_csv, name="cards-csv"),
    path("collectors.csv", exports.collectors_csv, name="collectors-csv"),
    path("journal.csv", exports.journal_csv, name="journal-csv"),
    path("journal/", journal.journal, name="journal"),
    path("search/", search.search, name="search"),
    path("collectors/", collectors.collectors, name="collectors"),
    path("settings/users/", users.users, name="users"),
    path("settings/users/add/", users.user_add, name="user-add"),
    path("settings/users/<uuid:user_id>/", users.user_edit, name="user-edit"),
    path("account/", account.profile, name="profile"),
    path("account/tokens/", account.tokens, name="tokens"),
    path("account/tokens/<uuid:reference>/revoke/", account.token_revoke, name="token-revoke"),
    path(
        "sign-in/",
        login_not_required(LoginView.as_view(template_name="identity/sign_in.html", redirect_authenticated_user=True)),
        name="sign-in",
    ),
    path("sign-out/", login_not_required(LogoutView.as_view()), name="sign-out"),
]
