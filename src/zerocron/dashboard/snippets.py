"""How a job of one's own reports to a monitor: a few lines for each place that jobs run in.

Owns code only, no words. An address has nothing in it that a shell or YAML would take for more than text.
"""

from __future__ import annotations

from dataclasses import dataclass

CURL = "curl -fsS -m 10 --retry 5 -o /dev/null"
CRON_FIELDS = 5


@dataclass(frozen=True, slots=True)
class Snippet:
    """`name` says where it belongs; it is the same in all languages."""

    key: str
    name: str
    text: str


def snippets(url: str, *, cron: str | None, post_only: bool) -> list[Snippet]:
    """What to copy. `cron`: when the job runs, for those places that want to know."""
    curl = f"{CURL} -X POST" if post_only else CURL
    when = cron if cron and len(cron.split()) == CRON_FIELDS else "30 2 * * *"
    return [
        Snippet("curl", "curl", f"{curl} {url}"),
        Snippet("crontab", "crontab", f"{when}  /path/to/job && {curl} {url}"),
        Snippet("exec", "0cron exec", f"{when}  0cron exec {url} -- /path/to/job"),
        Snippet("shell", "Shell", _SHELL.format(curl=curl, url=url)),
        Snippet("python", "Python", _PYTHON.format(url=url, data=', data=b""' if post_only else "")),
        Snippet("node", "Node.js", _NODE.format(url=url, method='method: "POST", ' if post_only else "")),
        Snippet("github", "GitHub Actions", _GITHUB.format(curl=curl)),
        Snippet("systemd", "systemd", _SYSTEMD.format(curl=curl, url=url)),
        Snippet("kubernetes", "Kubernetes", _KUBERNETES.format(curl=curl, url=url, when=when)),
    ]


_SHELL = """\
PING={url}
report() {{ {curl} "$@" || true; }}

report "$PING/start"
output=$(/path/to/job 2>&1)
code=$?
printf '%s' "$output" | tail -c 10000 | report --data-binary @- "$PING/$code"
exit $code"""

_PYTHON = """\
import urllib.request

PING = "{url}"

def report(word=""):
    try:
        urllib.request.urlopen(PING + word, timeout=10{data})
    except OSError:
        pass

report("/start")
try:
    work()
except BaseException:
    report("/fail")
    raise
report()"""

_NODE = """\
const PING = "{url}";
const report = (word = "") =>
  fetch(PING + word, {{ {method}signal: AbortSignal.timeout(10_000) }}).catch(() => {{}});

await report("/start");
try {{
  await work();
}} catch (error) {{
  await report("/fail");
  throw error;
}}
await report();"""

_GITHUB = """\
- name: Report to 0cron
  if: always()
  env:
    PING: ${{{{ secrets.PING }}}}
    WORD: ${{{{ job.status == 'success' && '0' || 'fail' }}}}
  run: {curl} "$PING/$WORD\""""

_SYSTEMD = """\
[Service]
Type=oneshot
Environment=PING={url}
ExecStartPre=-/usr/bin/{curl} ${{PING}}/start
ExecStart=/path/to/job
ExecStopPost=-/bin/sh -c '[ "$SERVICE_RESULT" = success ] && w=0 || w=fail; {curl} "$PING/$w"'"""

_KUBERNETES = """\
apiVersion: batch/v1
kind: CronJob
metadata: {{name: job}}
spec:
  schedule: "{when}"
  jobTemplate:
    spec:
      backoffLimit: 0
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: job
              image: example.com/job
              env:
                - {{name: PING, value: "{url}"}}
              command: ["/bin/sh", "-c"]
              args:
                - |
                  {curl} "$PING/start" || true
                  /path/to/job; code=$?
                  {curl} "$PING/$code" || true
                  exit $code"""
