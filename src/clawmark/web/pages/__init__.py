"""The views: one module each, with its `routes`, its handlers and the functions of its model.

A handler is a plain function, which Starlette runs in a worker thread, so that it may call `Memory`
directly. It builds a model of plain values and returns `page(request, "name.html", model)`. The
fields of a posted form are `form(request)`; its page has the hidden field `form_token`. A new
module is added to `PAGES` in `web/app.py`."""
