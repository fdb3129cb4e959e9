"""The HTML part of a mail: small, readable without styles, in light and dark, with nothing remote in it.

Tables and inline styles, because mail programs know little else; the block of styles only turns the colours around in
the dark. Every text is escaped. Pure.
"""

from __future__ import annotations

from html import escape

from zerocron.channels.wording import COLOURS, Entry, Message

_FONT = "font-family:-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif"
_MONO = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"

_PAGE = """<!doctype html>
<html lang="{language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="supported-color-schemes" content="light dark">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
@media (prefers-color-scheme: dark) {{
  .page {{ background: #0d1117 !important; }}
  .card {{ background: #161b22 !important; border-color: {colour} #30363d #30363d !important; }}
  .ink, .ink a {{ color: #e6edf3 !important; }}
  .soft {{ color: #9da7b3 !important; }}
  .code {{ background: #0d1117 !important; border-color: #30363d !important; color: #e6edf3 !important; }}
}}
</style>
</head>
<body class="page" style="margin:0;padding:0;background:#f6f8fa">
<table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0" style="background:#f6f8fa">
<tr><td align="center" style="padding:24px 12px">
<table role="presentation" class="card" width="100%" cellpadding="0" cellspacing="0"
 style="max-width:600px;table-layout:fixed;background:#ffffff;border:1px solid #d0d7de;border-top:4px solid {colour}">
<tr><td class="ink" style="padding:24px;{font};font-size:15px;line-height:1.5;color:#1f2328;overflow-wrap:anywhere">
{body}
</td></tr>
</table>
<p class="soft" style="max-width:600px;margin:16px 0 0;{font};font-size:12px;line-height:1.5;color:#59636e">{footer}</p>
</td></tr>
</table>
</body>
</html>
"""


def html_of(message: Message) -> str:
    """The whole page of a message."""
    parts = [f'<h1 style="margin:0 0 12px;font-size:20px;line-height:1.3">{escape(message.title)}</h1>']
    for entry in message.entries:
        parts += _short(entry, message) if message.is_digest else _whole(entry, message)
    if message.more:
        parts.append(f'<p style="margin:16px 0 0">{escape(message.more)}</p>')
    return _PAGE.format(
        language=message.language,
        title=escape(message.title),
        colour=COLOURS[message.tone],
        font=_FONT,
        body="\n".join(parts),
        footer=escape(message.words.footer),
    )


def _whole(entry: Entry, message: Message) -> list[str]:
    parts = [f'<p style="margin:0 0 16px">{escape(entry.lead)}</p>'] if entry.lead else []
    parts.append(_table(entry))
    if entry.output:
        parts += [
            '<p class="soft" style="margin:16px 0 4px;font-size:13px;color:#59636e">'
            f"{escape(message.words.output)}</p>",
            '<pre class="code" style="margin:0;padding:12px;background:#f6f8fa;border:1px solid #d0d7de;'
            f'{_MONO};font-size:13px;line-height:1.45;white-space:pre-wrap;overflow-wrap:anywhere">'
            f"{escape(entry.output)}</pre>",
        ]
    if entry.url:
        parts.append(
            f'<p style="margin:20px 0 0"><a href="{escape(entry.url)}" style="display:inline-block;padding:10px 16px;'
            'background:#0969da;border-radius:6px;color:#ffffff;text-decoration:none;font-weight:600">'
            f"{escape(message.words.open)}</a></p>"
        )
    return parts


def _short(entry: Entry, message: Message) -> list[str]:
    title = escape(entry.title)
    if entry.url:
        title = f'<a href="{escape(entry.url)}" style="color:#1f2328">{title}</a>'
    lines = [f"<strong>{title}</strong>", *([escape(entry.lead)] if entry.lead else [])]
    facts = (escape(f"{label}{message.words.colon}{value}") for label, value in entry.facts)
    lines += [f'<span class="soft" style="color:#59636e">{fact}</span>' for fact in facts]
    style = f"margin:12px 0 0;padding-left:12px;border-left:4px solid {COLOURS[entry.tone]}"
    return [f'<p style="{style}">{"<br>".join(lines)}</p>']


def _table(entry: Entry) -> str:
    cell = "vertical-align:top;font-size:14px"
    rows = "".join(
        f'<tr><td class="soft" width="28%" style="padding:3px 12px 3px 0;{cell};color:#59636e">{escape(label)}</td>'
        f'<td class="ink" style="padding:3px 0;{cell};color:#1f2328">{escape(value)}</td></tr>\n'
        for label, value in entry.facts
    )
    style = "table-layout:fixed;border-collapse:collapse"
    return f'<table width="100%" cellpadding="0" cellspacing="0" style="{style}">\n{rows}</table>'
