"""Acts on runs, after saying what will happen."""

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse

from inventory.forms.clusters import ReasonForm, SignalForm
from inventory.models import Job
from inventory.services.clusters import steering
from inventory.services.clusters.steering import Verb
from inventory.views import job_sentences
from inventory.views.acts import done, refused
from sensaka.identity.access import operator_page, person
from sensaka.kernel.errors import Conflict, InvalidInput, NotFound


@operator_page
def act(request: HttpRequest, job_id: UUID, name: str) -> HttpResponse:
    """Ask, then do it."""
    if name not in set(Verb):
        raise Http404(f"There is no act {name!r}.")
    job = get_object_or_404(Job.objects.select_related("cluster__connection"), pk=job_id)
    form = (SignalForm if name == "signal" else ReasonForm)(request.POST or None)
    back = reverse("job", args=[job_id])
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            result = steering.act(
                job=job, verb=Verb(name), signal=data.get("signal", ""), reason=data["reason"], actor=person(request)
            )
        except (InvalidInput, Conflict, NotFound) as error:
            refused(form, error)
        else:
            said = job_sentences.of_job(name, job)
            messages.success(request, f"{said.done} {result.detail}".strip())
            return done(request, back)
    context = {
        "form": form,
        "said": job_sentences.of_job(name, job),
        "job": job,
        "back": back,
        "form_template": "inventory/job_act_form.html",
    }
    template = context["form_template"] if request.headers.get("HX-Request") else "inventory/act_page.html"
    return render(request, str(template), context)
