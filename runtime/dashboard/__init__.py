"""The dashboard: runs in a browser, while they run and afterwards.

Everything is read from run folders. `indexer` keeps a small index of them (`store`), `board` holds
what the views share, `app.make_app` makes the application, `serving` serves it. Nothing here knows
critics, skills or campaigns; what a view needs of them is handed down in `board.Handed`.

A view is added in two files and two lines:

- a module here that gives `routes(board)`: Starlette routes below `/api/`, each a plain function
  that reads `board` and returns JSON (it runs in a thread; raise a `ZettaError` for what the user
  asked wrongly, `HTTPException(404, ...)` for what is not there). A line for it in `app.VIEWS`.
  Ids, never paths, are in URLs: `board.run(id)`, `board.episode(id)` and `board.folder(row)` lead
  to folders. A route that changes something takes POST; `security.Guard` has checked its token,
  Host and Origin before it is called.
- a module `static/<view>.js` that exports `title` and `async function show(place, context)`; a line
  for it in `VIEWS` of `static/app.js`, by the first part of its address `#/<view>/<id>`. `place` is
  an empty element. `context` has `parts` (the rest of the address), `query` (a `URLSearchParams`),
  `signal` (aborted when the user leaves), `onNews(callback)` for server-sent news, `setTitle(text)`
  and `navigate(address)`.

Pages are made with `static/dom.js` (`h("td", {class: "num"}, text)`, which never reads a text as
HTML), `static/table.js` (lists with pages, sorting and filters), `static/chart.js` (lines over one
time axis, strips and intervals), `static/format.js` and `static/api.js`; colours and spaces are
variables of `static/style.css`. There is no build step, and nothing comes from another host.
"""
