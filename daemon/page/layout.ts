import type { Status } from '../../shared/api/api.ts'
import { version } from '../../shared/version.ts'
import { type Markup, markup } from './markup.ts'
import type { Shown } from './view.ts'

/* The frame of every view: the places to go, what the last action has done, and the view itself. */

type Frame = {
  /** The path of the view. */
  readonly path: string
  readonly status: Status
  readonly notice?: string | undefined
  /** The zone of its times; the page asks again where that of the browser is another. */
  readonly zone: string
}

/** The path of a file of the page; the version in it makes a browser load those of a new version. */
export const assetPath = (name: string): string => `/ui/assets/${version}/${name}`

type Place = {
  readonly path: string
  readonly name: string
  /** How many wait there for the owner. */
  readonly count?: number
}

const places = ({ approvals = [], problems, machines = [] }: Status): readonly Place[] => [
  { path: '/ui/events', name: 'Events' },
  { path: '/ui/waiting', name: 'Waiting', count: approvals.length },
  { path: '/ui/rules', name: 'Rules' },
  { path: '/ui/schedules', name: 'Schedules' },
  { path: '/ui/sessions', name: 'Sessions' },
  { path: '/ui/logins', name: 'Logins and bots' },
  { path: '/ui/usage', name: 'Usage' },
  ...(machines.length > 0 ? [{ path: '/ui/machines', name: 'Machines' }] : []),
  { path: '/ui/problems', name: 'Problems', count: problems.length },
]

/** The whole document of a view. */
export const renderDocument = ({ title, content }: Shown, frame: Frame): string =>
  markup`<!doctype html>
<html lang="en" data-zone="${frame.zone}">
  ${renderHead(title)}
  <body>
    <a class="skip" href="#content">Skip to the content</a>
    <header class="top">
      <a class="brand" href="/ui/events">${mark}<span>Doorward</span></a>
      <nav aria-label="Views"><ul>${places(frame.status).map((place) => renderPlace(place, frame.path))}</ul></nav>
      <a class="add" href="/ui/start"${isHere('/ui/start', frame.path) && markup` aria-current="page"`}>Add a rule</a>
    </header>
    <div class="page">
      <p id="connection" class="connection" role="status" hidden></p>
      <div id="notice" role="status">${
        frame.notice !== undefined && markup`<p class="notice">${frame.notice}</p>`
      }</div>
      <main id="content" tabindex="-1">${content}</main>
      <footer>Doorward ${version}, on this machine. Nothing of this page leaves it.</footer>
    </div>
  </body>
</html>`.html

/** A document without a view: why there is none. */
export const renderMessage = (title: string, content: Markup): string =>
  markup`<!doctype html>
<html lang="en">
  ${renderHead(title)}
  <body class="alone">
    <main id="content">
      <p class="brand">${mark}<span>Doorward</span></p>
      <h1>${title}</h1>
      ${content}
    </main>
  </body>
</html>`.html

const renderHead = (title: string): Markup => markup`<head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <meta name="robots" content="noindex">
    <title>${title} · Doorward</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="${assetPath('page.css')}">
    <script defer src="${assetPath('idiomorph.js')}"></script>
    <script defer src="${assetPath('live.js')}"></script>
  </head>`

const mark = markup`<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M5 21V4.5A1.5 1.5 0 0 1 6.5 3h11A1.5 1.5 0 0 1 19 4.5V21M3 21h18"/><path d="M14.8 12.4v.1" class="knob"/></svg>`

const renderPlace = ({ path, name, count = 0 }: Place, here: string): Markup =>
  markup`<li><a href="${path}"${isHere(path, here) && markup` aria-current="page"`}>${name}${
    count > 0 && markup` <span class="count">${count}</span>`
  }</a></li>`

const isHere = (path: string, here: string): boolean => here === path || here.startsWith(`${path}/`)
