"""The pages: one module for each area, with its `PAGES`."""

from __future__ import annotations

from zerocron.dashboard.views import (
    account,
    alerts,
    channels,
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

MODULES = (overview, jobs, job_form, runs, monitors, channels, alerts, secrets, sign_in, account, team, system)
