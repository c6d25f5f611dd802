// Makes the page live, and nothing else: every view and action works without it.
//
// One tab of a browser listens to the daemon and tells the others, because a browser opens six connections to a host.
// On a change each tab that is seen asks for its own view again, and changes only what is different.
;(() => {
  const quietMs = 250
  const retryMs = 1000
  const main = document.getElementById('content')
  const connection = document.getElementById('connection')
  // A page without views, such as that of an expired link.
  if (!main || !connection) return

  let timer
  let isAsking = false
  let isStale = false

  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone
  if (zone && zone !== document.documentElement.dataset.zone) {
    document.cookie = `doorward-zone=${zone}; path=/ui; max-age=31536000; samesite=strict`
    void refresh()
  }

  /** Asks for this view again; changes meanwhile count as one. */
  async function refresh() {
    if (document.visibilityState === 'hidden' || isAsking) {
      isStale = true
      return
    }
    isAsking = true
    isStale = false
    try {
      const answer = await fetch(location.href, { headers: { 'doorward-live': '1' } })
      if (answer.status === 401)
        say('The daemon was stopped, which ends the key of this browser. Run: doorward open')
      else if (answer.ok || answer.status === 404) show(await answer.text())
      else soon(retryMs)
    } catch {
      // The stream says that the daemon is gone.
      soon(retryMs)
    } finally {
      isAsking = false
    }
    if (isStale) soon()
  }

  function soon(afterMs = quietMs) {
    timer ??= setTimeout(() => {
      timer = undefined
      void refresh()
    }, afterMs)
  }

  function show(html) {
    const next = new DOMParser().parseFromString(html, 'text/html')
    const content = next.getElementById('content')
    const places = next.querySelector('header.top')
    if (!content || !places) return
    document.title = next.title
    const options = {
      ignoreActiveValue: true,
      callbacks: {
        // What a person has begun to fill in, or has opened, stays.
        beforeNodeMorphed: (node) => !(node instanceof HTMLFormElement && node.dataset.touched),
        beforeAttributeUpdated: (name, node) => !(name === 'open' && node.nodeName === 'DETAILS'),
      },
    }
    Idiomorph.morph(document.querySelector('header.top'), places, options)
    Idiomorph.morph(main, content, options)
  }

  function say(text) {
    connection.textContent = text
    connection.hidden = text === ''
  }

  document.addEventListener('input', ({ target }) => {
    const form = target instanceof Element ? target.closest('form') : null
    if (form) form.dataset.touched = '1'
  })
  document.addEventListener('visibilitychange', () => {
    if (isStale) soon()
  })

  const others = new BroadcastChannel('doorward')
  others.addEventListener('message', ({ data }) => hear(data))

  // What changed since this view was made.
  soon()

  function hear(what) {
    if (what === 'gone') say('The daemon does not answer. This page goes on when it is back.')
    else {
      if (what === 'change') say('')
      soon()
    }
  }

  function tell(what) {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has one origin
    others.postMessage(what)
    hear(what)
  }

  // Held by one tab at a time; the next takes over when it closes.
  void navigator.locks.request('doorward-stream', () => {
    listen()
    return new Promise(() => {})
  })

  function listen() {
    const stream = new EventSource('/ui/stream')
    // What changed before comes with no message.
    stream.addEventListener('open', () => tell('change'))
    stream.addEventListener('error', () => {
      if (stream.readyState !== EventSource.CLOSED) return tell('gone')
      // A browser does not try again after an answer that refuses it; the view says why.
      tell('refused')
      setTimeout(listen, retryMs)
    })
    for (const name of ['event', 'status']) stream.addEventListener(name, () => tell('change'))
  }
})()
