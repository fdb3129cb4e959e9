"""The pages: one module for each area, with its `PAGES`."""

from __future__ import annotations

from zerocron.dashboard.views import (
    account,
    alerts,
    channels,
    job,
    job_form,
    jobs,
    monitors,
    overview,
    runs,
    secrets,
    sign_in,
    system,
    team,
)

MODULES = (overview, job_form, jobs, job, runs, monitors, channels, alerts, secrets, sign_in, account, team, system)
"""Their order matters where addresses overlap: `/jobs/new` is no job."""
