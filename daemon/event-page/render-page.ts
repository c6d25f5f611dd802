import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { packageFolder } from '../../shared/version.ts'
import { isFinal } from '../events.ts'
import type { RenderedPage } from '../oauth/login/callback-page.ts'
import { type EventView, eventContent, titleOf } from './event-page.ts'
import { markup } from './markup.ts'

/** Makes the page of an event; `refreshPath` is where it looks again while the event goes on. */
export type RenderEvent = (view: EventView, refreshPath: string) => RenderedPage

/** Reads the page from `assets/event` once. No script may run, and only this one style applies. */
export const loadEventPage = (): RenderEvent => {
  const template = readAsset('page.html')
  const style = readAsset('page.css')
  const styleHash = createHash('sha256').update(style).digest('base64')
  const contentSecurityPolicy = [
    `default-src 'none'`,
    `style-src 'sha256-${styleHash}'`,
    'img-src data:',
    `base-uri 'none'`,
    `form-action 'self'`,
    `frame-ancestors 'none'`,
  ].join('; ')
  return (view, refreshPath) => {
    const { event } = view
    const values: Readonly<Record<string, string>> = {
      style: `<style>${style}</style>`,
      title: markup`${titleOf(event)}`.html,
      state: event.state,
      content: eventContent(view).html,
      // After a second at most, browsers put it in the place of the page it follows in the history.
      refresh: isFinal(event.state)
        ? ''
        : markup`<meta http-equiv="refresh" content="1; url=${refreshPath}" />`.html,
    }
    return {
      html: template.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? ''),
      contentSecurityPolicy,
    }
  }
}

const readAsset = (name: string): string =>
  readFileSync(new URL(`assets/event/${name}`, packageFolder), 'utf8')
