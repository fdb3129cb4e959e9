"""JSON in, JSON out: one file per noun. `application` joins the routes; `problems` turns errors into RFC 9457."""
