"""Forms of tenants, projects, members and mapping rules."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from inventory.models import Cluster
from pools.forms.base import RowForm
from pools.models import MappingKind, MappingRule, MemberRole, Project, Tenant
from sensaka.identity.models import User


class TenantForm(RowForm):
    """A team, department or customer."""

    weight = forms.FloatField(
        min_value=0.01, max_value=1_000_000, initial=1, label=_("Weight in fair share"),
        help_text=_("Twice the weight, twice the share."),
    )  # fmt: skip

    class Meta:
        model = Tenant
        fields = ["name", "slug", "description", "contact", "cohort", "weight", "active"]
        labels = {"slug": _("Short name")}
        help_texts = {"slug": _("Names its account and namespace: lower-case letters, digits, hyphens.")}


class ProjectForm(RowForm):
    """A project of a tenant."""

    class Meta:
        model = Project
        fields = ["name", "slug", "description", "active"]
        labels = {"slug": _("Short name")}


class MemberAddForm(forms.Form):
    """A person who joins a tenant or one of its projects."""

    username = forms.CharField(
        max_length=150, label=_("User name"), widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    role = forms.ChoiceField(choices=MemberRole.choices, initial=MemberRole.MEMBER)
    project = forms.ModelChoiceField(
        Project.objects.none(), required=False, help_text=_("Empty: every project of the tenant.")
    )

    def __init__(self, *args: Any, tenant: Tenant, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["project"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = Project.objects.filter(tenant=tenant)
        field.empty_label = str(_("All projects"))

    def clean_username(self) -> User:
        user = User.objects.filter(username=self.cleaned_data["username"].strip(), is_active=True).first()
        if user is None:
            raise forms.ValidationError(_("Nobody of this name may sign in; an operator adds people under Users."))
        return user


class MappingRuleForm(forms.Form):
    """By which account, namespace or label a cluster's jobs are told to be the tenant's."""

    cluster = forms.ModelChoiceField(Cluster.objects.select_related("site"))
    kind = forms.ChoiceField(choices=MappingKind.choices, initial=MappingKind.ACCOUNT)
    key = forms.CharField(max_length=317, required=False, label=_("Name of the label"))
    value = forms.CharField(max_length=253)
    project = forms.ModelChoiceField(Project.objects.none(), required=False)

    DEPENDENT = {"key": f"kind={MappingKind.LABEL}"}

    def __init__(self, *args: Any, tenant: Tenant, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        project, cluster = self.fields["project"], self.fields["cluster"]
        assert isinstance(project, forms.ModelChoiceField)
        assert isinstance(cluster, forms.ModelChoiceField)
        project.queryset = Project.objects.filter(tenant=tenant)
        project.empty_label = str(_("The tenant as a whole"))
        cluster.empty_label = str(_("Choose a cluster"))

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("kind") != MappingKind.LABEL:
            data["key"] = ""
        elif not data.get("key"):
            self.add_error("key", str(_("A label rule needs the label's name.")))
        same = MappingRule.objects.filter(**{name: data.get(name) for name in ("cluster", "kind", "key", "value")})
        if not self.errors and same.exists():
            raise forms.ValidationError(_("There is a rule for this already."))
        return data
